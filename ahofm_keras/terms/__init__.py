"""`TermSpec` + training columns -> frozen terms that hold all that was learned; JSON in and out."""

from ahofm_keras.terms.design import Design, fit_terms
from ahofm_keras.terms.features import Feature
from ahofm_keras.terms.records import (
    TERMS,
    InteractionTerm,
    LinearTerm,
    OffsetTerm,
    Order,
    SmoothTerm,
    Term,
)

__all__ = [
    "TERMS",
    "Design",
    "Feature",
    "InteractionTerm",
    "LinearTerm",
    "OffsetTerm",
    "Order",
    "SmoothTerm",
    "Term",
    "fit_terms",
]
