"""One formula per parameter of the family: what the user wrote, by the family's own names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ahofm_keras.errors import DataError
from ahofm_keras.families import FAMILIES, Family
from ahofm_keras.formula import Formula, parse_formula
from ahofm_keras.transforms import RESPONSES, Expression

CONSTANT = "~ 1"
_COLUMN = "column"
_FORMS = {
    _COLUMN: "one column",
    "cbind": "`cbind(successes, failures)`",
    "Surv": "`Surv(time, event)`",
}


def read_formulas(
    formula: str | Mapping[str, str], family: Family, columns: Sequence[Any] | None = None
) -> tuple[Family, dict[str, Formula]]:
    """The family whose parameters all have a predictor, and the formula of each.

    Args:
        formula: that of the first parameter, or one per parameter: the first with the response, others
            as `"~ s(x)"`. A parameter without one is constant.
        family: of the response. One that estimates its dispersion on the side is replaced by that with
            a parameter in its place, where that parameter has a formula.
        columns: names of the data's columns, which `.` stands for.

    Raises:
        FormulaError, DataError: naming the place in the formula, or the parameter.
    """
    first = next(iter(family.parameters))
    if isinstance(formula, Mapping):
        family, given = _by_parameter(formula, family)
        first = next(iter(family.parameters))
    else:
        given = {family.shared or first: formula}
    leading = given.get(first) if family.shared is None else _with_response(given)
    parsed = parse_formula(str(leading), columns)
    check_form(parsed.response, family)
    left = str(leading).partition("~")[0].strip()
    found: dict[str, Formula] = {}
    for name in family.parameters:
        shared = CONSTANT if name in family.unshared else given.get(str(family.shared), CONSTANT)
        text = given.get(name, shared)
        before, tilde, after = text.partition("~")
        if text == leading:
            found[name] = parsed
            continue
        if not tilde:
            raise DataError(
                f'The formula of `{name}` must start with `~`, e.g. "~ s(x1)". Received: {text!r}.'
            )
        found[name] = parse_formula(f"{left} ~{after}", columns)
        if before.strip() and parse_formula(text, columns).response != parsed.response:
            raise DataError(
                f"All parameters have the response of the first, `{parsed.response}`: write the formula "
                f'of `{name}` without one, "~{after}".'
            )
    return family, found


def formula_lines(model: Any) -> list[str]:
    """The formula of a model, or of one of its predictors; of several `loc: y ~ s(x)`, `scale: ~ 1`."""
    if isinstance(model.formula, str):
        return [model.formula]
    (first, text), *others = model.formula.items()
    return [f"{first}: {text}", *(f"{name}: {right_side(own)}" for name, own in others)]


def formula_text(model: Any) -> str:
    """The same in one line."""
    return "; ".join(formula_lines(model))


def right_side(formula: str) -> str:
    """A formula without its response: `~ s(x)`."""
    return f"~{formula.partition('~')[2]}"


def family_with(family: Family, parameters: Iterable[str]) -> Family:
    """The family, or that with a parameter in the place of its dispersion, where these are asked for."""
    if not family.with_dispersion or all(family.own_parameter(name) for name in parameters):
        return family
    cls = FAMILIES[family.with_dispersion]
    return cls({next(iter(cls.links)): family.link})


def find_response(formula: str | Mapping[str, str], columns: Sequence[Any] | None = None) -> Expression:
    """The response, which one of the formulas has."""
    texts = [formula] if isinstance(formula, str) else list(formula.values())
    own = {str(place): text for place, text in enumerate(texts) if isinstance(text, str)}
    return parse_formula(_with_response(own), columns).response


def _with_response(texts: Mapping[str, str]) -> str:
    """The formula that names the response; the first where none does."""
    own = (text for text in texts.values() if text.partition("~")[0].strip())
    return next(own, next(iter(texts.values()), ""))


def check_form(response: Expression, family: Family) -> None:
    """Raise a `DataError` where the family's response has another number of columns."""
    form = response.function if response.function in RESPONSES else _COLUMN
    if form in family.forms:
        return
    wanted = " or ".join(_FORMS[own] for own in family.forms)
    others = ", ".join(f"`{name}`" for name, own in FAMILIES.items() if form in own.forms)
    raise DataError(
        f"The response of the {family.name} family is {wanted}. Received: `{response}`. Families of "
        f"{_FORMS[form]}: {others}."
    )


def _by_parameter(formula: Mapping[str, str], family: Family) -> tuple[Family, dict[str, str]]:
    """The formulas by the names that the family has for its parameters."""
    if not formula:
        raise DataError("`formula` has no entries: give one for each parameter that is not constant.")
    for name, text in formula.items():
        if not isinstance(text, str):
            raise DataError(
                f'The formula of `{name}` must be a text, e.g. "~ s(x1)". Received: {text!r}.'
            )
    family = family_with(family, formula)
    given: dict[str, str] = {}
    for name, text in formula.items():
        own = name if name == family.shared else family.own_parameter(name)
        if own is None:
            raise family.no_parameter(name, family.parameters)
        if own in given:
            raise DataError(f"The parameter `{own}` has two formulas: {given[own]!r} and {text!r}.")
        given[own] = text
    first = next(iter(family.parameters))
    if family.shared is None and first not in given:
        raise DataError(
            f"The first parameter of the {family.name} family, `{first}`, needs a formula with the "
            f'response: {{"{first}": "y ~ 1", ...}}.'
        )
    return family, given
