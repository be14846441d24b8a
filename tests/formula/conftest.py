"""What the tables of bad formulas share."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ahofm_keras.errors import FormulaError
from ahofm_keras.formula import parse_formula

COLUMNS = ("y", "x", "z", "g")


@pytest.fixture
def formula_error() -> Callable[[str], FormulaError]:
    def error(text: str) -> FormulaError:
        with pytest.raises(FormulaError) as caught:
            parse_formula(text, COLUMNS)
        return caught.value

    return error


@pytest.fixture
def check_message(formula_error: Callable[[str], FormulaError]) -> Callable[[str, str, str], None]:
    """Checks the whole message: what is wrong, the formula, the carets (empty: none are drawn)."""

    def check(text: str, carets: str, message: str) -> None:
        drawn = f"\n    {carets}" if carets else ""
        assert str(formula_error(text)) == f"{message}\n    {text}{drawn}"

    return check
