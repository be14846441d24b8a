"""Text -> frozen `Formula`: patsy's grammar, calls taken apart with `ast`, nothing evaluated."""

from ahofm_keras.formula.options import TERM_CALLS, OptionError, TermCall
from ahofm_keras.formula.parse import parse_formula
from ahofm_keras.formula.spec import Formula, TermSpec

__all__ = ["TERM_CALLS", "Formula", "OptionError", "TermCall", "TermSpec", "parse_formula"]
