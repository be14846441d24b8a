"""Additive higher-order factorization machines: GAMs with all smooth interactions, in Keras.

TensorFlow and Keras take seconds to import, so names that need them are imported when they are first
asked for. Reading a data set or a formula does without.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ahofm_keras._import_hooks import import_within
from ahofm_keras._quiet import quietly
from ahofm_keras._serializable import register_names, registering
from ahofm_keras._version import __version__
from ahofm_keras.errors import AhofmError, AhofmWarning, DataError, FormulaError, NotFittedError

if TYPE_CHECKING:
    from ahofm_keras import datasets as datasets
    from ahofm_keras import families as families
    from ahofm_keras.comparison import Comparison, compare
    from ahofm_keras.decomposition import (
        Effect,
        Explanation,
        effect,
        effects,
        explain,
        interactions,
        shares,
    )
    from ahofm_keras.diagnostics import Check, check
    from ahofm_keras.families import register_family
    from ahofm_keras.formula import parse_formula
    from ahofm_keras.model import (
        AdditiveModel,
        afm,
        ahofm,
        fit,
        fm,
        gam,
        hofm,
        load_model,
        nam,
    )
    from ahofm_keras.plotting import plot, plot_regions, plot_survival
    from ahofm_keras.refinement import refine
    from ahofm_keras.reporting import report
    from ahofm_keras.scores import crps, log_score
    from ahofm_keras.summaries import Summary, coef, summary, vcov
    from ahofm_keras.survival_curves import baseline, concordance, survival
    from ahofm_keras.terms import register_term

__all__ = [
    "AdditiveModel",
    "AhofmError",
    "AhofmWarning",
    "Check",
    "Comparison",
    "DataError",
    "Effect",
    "Explanation",
    "FormulaError",
    "NotFittedError",
    "Summary",
    "__version__",
    "afm",
    "ahofm",
    "baseline",
    "check",
    "coef",
    "compare",
    "concordance",
    "crps",
    "effect",
    "effects",
    "explain",
    "fit",
    "fm",
    "gam",
    "hofm",
    "interactions",
    "load_model",
    "log_score",
    "nam",
    "parse_formula",
    "plot",
    "plot_regions",
    "plot_survival",
    "refine",
    "register_family",
    "register_term",
    "report",
    "shares",
    "summary",
    "survival",
    "vcov",
]

# Module -> the names above that it holds, as type checkers read it from the imports.
_NAMES = {
    "comparison": ("Comparison", "compare"),
    "decomposition": ("Effect", "Explanation", "effect", "effects", "explain", "interactions", "shares"),
    "diagnostics": ("Check", "check"),
    "families": ("register_family",),
    "formula": ("parse_formula",),
    "model": ("AdditiveModel", "afm", "ahofm", "fit", "fm", "gam", "hofm", "load_model", "nam"),
    "plotting": ("plot", "plot_regions", "plot_survival"),
    "refinement": ("refine",),
    "reporting": ("report",),
    "scores": ("crps", "log_score"),
    "summaries": ("Summary", "coef", "summary", "vcov"),
    "survival_curves": ("baseline", "concordance", "survival"),
    "terms": ("register_term",),
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """A public name from its module, or a module of the package, imported now."""
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = import_module(f"{__name__}.{_HOMES.get(name, name)}")
    except ModuleNotFoundError as error:
        if error.name != f"{__name__}.{name}":
            raise
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    value = getattr(module, name) if name in _HOMES else module
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "datasets", "families"])


import_within("tensorflow", quietly)
if "keras" in sys.modules:
    register_names()
else:
    import_within("keras", registering)
