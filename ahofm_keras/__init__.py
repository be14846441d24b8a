"""Additive higher-order factorization machines: GAMs with all smooth interactions, in Keras."""

from ahofm_keras import _quiet as _quiet  # first: it decides what TensorFlow says when it is imported
from ahofm_keras import families as families
from ahofm_keras._version import __version__
from ahofm_keras.diagnostics import Check, check
from ahofm_keras.effects import Effect, Explanation, effect, effects, explain, interactions, shares
from ahofm_keras.errors import AhofmError, AhofmWarning, DataError, FormulaError, NotFittedError
from ahofm_keras.families import register_family
from ahofm_keras.formula import parse_formula
from ahofm_keras.model import AdditiveModel, afm, ahofm, fm, gam, hofm, load_model
from ahofm_keras.plotting import plot
from ahofm_keras.refine import refine
from ahofm_keras.report import report
from ahofm_keras.summary import Summary, coef, summary, vcov

__all__ = [
    "AdditiveModel",
    "AhofmError",
    "AhofmWarning",
    "Check",
    "DataError",
    "Effect",
    "Explanation",
    "FormulaError",
    "NotFittedError",
    "Summary",
    "__version__",
    "afm",
    "ahofm",
    "check",
    "coef",
    "effect",
    "effects",
    "explain",
    "fm",
    "gam",
    "hofm",
    "interactions",
    "load_model",
    "parse_formula",
    "plot",
    "refine",
    "register_family",
    "report",
    "shares",
    "summary",
    "vcov",
]
