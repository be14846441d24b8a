"""What users of mgcv, lme4, R and pyGAM write, and what it is called here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

ARGUMENTS = {
    "by": "Interactions that differ between levels of `g` are `ahofm(x1, x2, g)`.",
    "constraints": 'That is `shape` of `s()` here, e.g. `s(x, shape="increasing")`.',
    "fx": "`sp=0` leaves a smooth without penalty.",
    "lam": "That is `sp` here.",
    "n_splines": "That is `k` here.",
    "xt": "There is nothing like it here.",
}
_LEFT_OUT = 'Leave `bs` out for a P-spline; `knots="quantile"` puts knots where the rows are.'
# scam's names of the shapes.
_SHAPES = {
    "mpi": "increasing",
    "mpd": "decreasing",
    "cx": "convex",
    "cv": "concave",
    "micx": "increasing convex",
    "micv": "increasing concave",
    "mdcx": "decreasing convex",
    "mdcv": "decreasing concave",
}
BASES = {
    "cc": 'A cyclic spline is bs="cp".',
    **dict.fromkeys(("ad", "bs", "cr", "cs", "ts"), _LEFT_OUT),
    **{name: f'That is `s(x, shape="{shape}")`.' for name, shape in _SHAPES.items()},
}
SIGNS = {
    "^": "A power is written `**`.",
    "|": "A random intercept of `g` is `(1 | g)` in brackets, or `s(g)`.",
}
_SMOOTH = "A smooth is written `s(x)`."
TERMS = {
    **dict.fromkeys(("bs", "cr", "cs", "lo", "ns", "pb", "rcs", "sm", "smooth", "spline"), _SMOOTH),
    "c": "Several values are written `(0, 1)`.",
    "cc": 'A cyclic smooth is `s(x, bs="cp")`.',
    "f": "A category is written `x` or `C(x)`.",
    "factor": "A category is written `C(x)`.",
    "l": "A linear term is written `x`.",
    "re": "A random intercept of `g` is `s(g)`.",
    "t2": "A tensor product is `te(x1, x2)` or `ti(x1, x2)`.",
}
_VALUES = {"TRUE": "Write True.", "FALSE": "Write False.", "NULL": "Leave it out.", "NA": "Write None."}


def hint(habits: Mapping[str, str], word: str) -> str:
    """What to write instead, as a sentence after another; nothing where the word is not known."""
    return f" {habits[word]}" if word in habits else ""


def hint_for_value(option: str, value: Any) -> str:
    """The same for the value of an option, or for one of several."""
    for word in value if isinstance(value, tuple) else (value,):
        if isinstance(word, str):
            found = hint(BASES, word) if option == "bs" else hint(_VALUES, word)
            if found:
                return found
    return ""
