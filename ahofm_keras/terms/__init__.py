"""`TermSpec` + training columns -> frozen terms that hold all that was learned; JSON in and out.

Other modules ask terms, `Design.layout` and `Design.sources`; none names the class of a term.
"""

from ahofm_keras.terms import (  # noqa: F401, each registers
    deep,
    functional,
    interaction,
    linear,
    offset,
    scaled,
    shrunken,
    smooth,
    tensor,
)
from ahofm_keras.terms.base import TERMS, Term, register_term
from ahofm_keras.terms.blocks import Columns, InteractionOrder, RowsOfTerms, Sources
from ahofm_keras.terms.design import Design, Predictor, fit_terms
from ahofm_keras.terms.encoded import EncodedRows
from ahofm_keras.terms.features import Feature
from ahofm_keras.terms.groups import Group, GroupReader
from ahofm_keras.terms.layout import MEAN, Layout, PredictorLayout, Span
from ahofm_keras.terms.margins import Margin, Margins, cell_of
from ahofm_keras.terms.networks import Network, read_networks
from ahofm_keras.terms.variables import Product, Variable, split_column, variables_by_key

__all__ = [
    "MEAN",
    "TERMS",
    "Columns",
    "Design",
    "EncodedRows",
    "Feature",
    "Group",
    "GroupReader",
    "InteractionOrder",
    "Layout",
    "Margin",
    "Margins",
    "Network",
    "Predictor",
    "PredictorLayout",
    "Product",
    "RowsOfTerms",
    "Sources",
    "Span",
    "Term",
    "Variable",
    "cell_of",
    "fit_terms",
    "read_networks",
    "register_term",
    "split_column",
    "variables_by_key",
]
