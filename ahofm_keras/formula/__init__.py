"""Text -> frozen `Formula`: patsy's grammar, calls taken apart with `ast`, nothing evaluated."""

from ahofm_keras.formula.parse import Formula, TermSpec, parse_formula

__all__ = ["Formula", "TermSpec", "parse_formula"]
