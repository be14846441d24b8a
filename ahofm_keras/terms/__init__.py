"""`TermSpec` + training columns -> frozen terms that hold all that was learned; JSON in and out."""

from ahofm_keras.terms.design import Design, fit_terms
from ahofm_keras.terms.features import Feature
from ahofm_keras.terms.margins import Margin, Margins, cell_of
from ahofm_keras.terms.records import (
    TERMS,
    InteractionTerm,
    LinearTerm,
    OffsetTerm,
    Order,
    PenalisedTerm,
    SmoothTerm,
    TensorTerm,
    Term,
)
from ahofm_keras.terms.variables import Product, Variable, split_column, variables_by_key

__all__ = [
    "TERMS",
    "Design",
    "Feature",
    "InteractionTerm",
    "LinearTerm",
    "Margin",
    "Margins",
    "OffsetTerm",
    "Order",
    "PenalisedTerm",
    "Product",
    "SmoothTerm",
    "TensorTerm",
    "Term",
    "Variable",
    "cell_of",
    "fit_terms",
    "split_column",
    "variables_by_key",
]
