"""What users of other packages write is answered with what it is called here, and that works."""

from __future__ import annotations

import pytest

from ahofm_keras.errors import FormulaError
from ahofm_keras.formula import parse_formula
from ahofm_keras.formula.foreign_syntax import ARGUMENTS, BASES, SIGNS, TERMS
from ahofm_keras.formula.options import BASES as KNOWN_BASES
from ahofm_keras.formula.options import TERM_CALLS
from ahofm_keras.transforms import CALLABLE

COLUMNS = ["y", "x", "z", "g"]
WRITTEN = {
    **{f"y ~ afm(x, z, {name}=2)": words for name, words in ARGUMENTS.items()},
    **{f"y ~ te(x, z, bs=('ps', '{name}'))": words for name, words in BASES.items()},
    **{f"y ~ s(x) + 1 {sign} g": words for sign, words in SIGNS.items()},
    **{f"y ~ I(x {sign} 2)": words for sign, words in SIGNS.items()},
    **{f"y ~ {name}(x)": words for name, words in TERMS.items()},
    "y ~ ahofm(x, z, main=FALSE)": "Write False.",
    "y ~ ahofm(x, z, center=TRUE)": "Write True.",
    "y ~ s(x, knots=c(0, 1))": "Several values are written `(0, 1)`.",
}
MEANT = [
    "y ~ (1 | g)", "y ~ ahofm(x, z, g)", "y ~ s(x, sp=0)", "y ~ s(x, k=9)", 'y ~ s(x, bs="cp")',
    'y ~ s(x, knots="quantile")', "y ~ I(x ** 2)", "y ~ s(g)", "y ~ C(x)", "y ~ te(x, z)",
    "y ~ ahofm(x, z, main=False)", "y ~ s(x, knots=(0, 1))",
]  # fmt: skip


@pytest.mark.parametrize("formula", WRITTEN)
def test_a_habit_is_answered_with_what_to_write(formula: str) -> None:
    with pytest.raises(FormulaError) as raised:
        parse_formula(formula, COLUMNS)
    first = str(raised.value).splitlines()[0]
    assert first.endswith(WRITTEN[formula])


@pytest.mark.parametrize("formula", MEANT)
def test_what_the_answers_say_works(formula: str) -> None:
    assert parse_formula(formula, COLUMNS).terms


def test_no_habit_is_known_here() -> None:
    assert not set(BASES) & set(KNOWN_BASES)
    assert not set(TERMS) & {*TERM_CALLS, *CALLABLE}
    assert not set(ARGUMENTS) & set(TERM_CALLS["afm"].options)
