"""Additive higher-order factorization machines: GAMs with all smooth interactions, in Keras."""

from ahofm_keras._version import __version__
from ahofm_keras.errors import AhofmError, AhofmWarning, DataError, FormulaError, NotFittedError
from ahofm_keras.formula import parse_formula
from ahofm_keras.model import AdditiveModel, afm, ahofm, fm, gam, hofm

__all__ = [
    "AdditiveModel",
    "AhofmError",
    "AhofmWarning",
    "DataError",
    "FormulaError",
    "NotFittedError",
    "__version__",
    "afm",
    "ahofm",
    "fm",
    "gam",
    "hofm",
    "parse_formula",
]
