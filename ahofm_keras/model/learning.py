"""Formula + training data -> all that a model needs to be built, as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from ahofm_keras.data import (
    ARRAY,
    ROWS,
    TEXT,
    column_names,
    kind_of,
    ordered_columns,
    read_columns,
    read_levels,
)
from ahofm_keras.errors import DataError, warn
from ahofm_keras.families import Family
from ahofm_keras.families.suggestions import repeated_value
from ahofm_keras.formula import Formula
from ahofm_keras.model.formulas import check_form, find_response, read_formulas
from ahofm_keras.model.reading import learn_response, read_response_columns, response_values
from ahofm_keras.terms import Design, Network, fit_terms
from ahofm_keras.transforms import Expression, quote_column

# Fewer rows may agree by chance.
_ROWS_OF_COPIES = 10
# What a copy in other units may differ by, as a share of the largest value: roundings.
_ROUNDING = 1e-9
# A column of texts of which this share are numbers was meant to be one of numbers.
_MOSTLY = 0.8


def learn_state(
    formula: str | Mapping[str, str],
    data: Any,
    family: Family,
    df_kind: str,
    extrapolation: str,
    neighbours: Mapping[str, Any] | None = None,
    networks: Mapping[str, Network] | None = None,
) -> dict[str, Any]:
    """Everything that the training data teaches.

    Args:
        formula: text, or one per parameter of the family.
        data: data frame or dict of columns.
        family: of the response.
        df_kind: definition of degrees of freedom.
        extrapolation: outside the training range.
        neighbours: of regions, by the name of their column.
        networks: that terms may be, by name.

    Returns:
        A dict with the `family`, the `formula` with `.` written out (of several parameters a dict), the
        `response` expression, the `design`, and of the first predictor `shift` and `scale`, between
        which and the response's own units it translates, of others both in `units`, by parameter; None
        where the data has no response.
    """
    if data is None:
        raise DataError("`AdditiveModel` needs data to learn its bases from: pass `data=`.")
    family = _learn_family(formula, data, family)
    family, formulas = read_formulas(formula, family, column_names(data))
    parsed = next(iter(formulas.values()))
    names = dict.fromkeys(name for own in formulas.values() for name in own.columns())
    # A model of the intercept alone reads no column, but has to know how many rows there are.
    arrays = set[str]().union(*(own.array_columns() for own in formulas.values()))
    columns = read_columns(data, list(names) or [ROWS], arrays=arrays)
    kinds = {name: kind_of(values) for name, values in columns.items()}
    response, y = parsed.response, None
    if set(response.columns()) <= set(column_names(data)):
        response, y = learn_response(data, response, family)
        rows = len(next(iter(columns.values()), y))
        if len(y) != rows:
            raise DataError(f"The response has {len(y)} values, the data {rows} rows.")
        for own in {formula.text: formula for formula in formulas.values()}.values():
            warn_of_response(own, data, response, y, family)
        warn_of_repeats(formulas, response, y, family)
    single = [name for name in columns if kinds[name] != ARRAY]
    levels, ordered = read_levels(data, single), ordered_columns(data, single)
    for own in formulas.values():
        _warn_of_offsets_as_features(own)
        plain = {name: columns[name] for name in own.columns() if name not in levels}
        _warn_of_numbers_as_texts(own, plain)
    # Matrices of bases are small: threads that wait for each other take longer than one alone.
    with threadpool_limits(1, "blas"):
        design = fit_terms(
            formulas, columns, kinds, levels=levels, ordered=ordered, df_kind=df_kind,
            extrapolation=extrapolation, neighbours=neighbours, networks=networks,
        )  # fmt: skip
    _check_used(networks or {}, formulas)
    offset = design.first.offset(columns) if design.first.offsets else 0.0
    units = None if y is None else learn_units(family.as_weighted(y, None)[0], offset, family, design)
    shift, scale = (None, None) if units is None else next(iter(units.values()))
    several = len(formulas) > 1
    state = {
        "family": family.to_json(),
        "formula": {name: own.text for name, own in formulas.items()} if several else parsed.text,
        "response": response.to_json(),
        "design": design.to_json(),
        "shift": shift,
        "scale": scale,
        **({"units": units} if several else {}),
    }
    # Keras writes tuples in a form of its own; as JSON there are only lists.
    return json.loads(json.dumps(state))


def _check_used(networks: Mapping[str, Network], formulas: Mapping[str, Formula]) -> None:
    """A network that is given and left alone is a typing error."""
    used = {spec.options.get("net") for own in formulas.values() for spec in own.terms}
    unused = [name for name in networks if name not in used]
    if unused:
        raise DataError(
            f"No term uses the network `{unused[0]}` of `nets`: write `deep(x1, x2, "
            f'net="{unused[0]}")` into the formula, or leave it out.'
        )


def _learn_family(formula: str | Mapping[str, str], data: Any, family: Family) -> Family:
    """The family with what the response teaches it, before formulas are read by its parameters."""
    if type(family).learn is Family.learn:
        return family
    names = column_names(data)
    response = find_response(formula, names)
    check_form(response, family)
    if not set(response.columns()) <= set(names):
        family.check_known(str(response))
        return family
    return family.learn(response_values(data, response, family), str(response))


def learn_units(
    y: np.ndarray, offset: np.ndarray | float, family: Family, design: Design
) -> dict[str, tuple[float, float]]:
    """Shift and scale of each predictor, between which and its own units the predictor translates.

    Args:
        y: response.
        offset: of the first predictor.
        family: of the response.
        design: of the model.
    """
    if len(family.parameters) == 1:
        first, own = next(iter(design.predictors.items()))
        shift = family.start(y, offset) if own.intercept else 0.0
        return {first: (shift, family.predictor_scale(y, offset))}
    start = family.start_values(y)
    rows = np.ones(1)
    information = family.information(y[:1], {name: value * rows for name, value in start.items()})
    found = {}
    for name, link in family.parameters.items():
        shift = float(link.function(np.asarray(start[name]), np))
        # On the whole line a predictor has the unit of the response; a logarithm or a class has none.
        unit = link.is_identity and not family.labelled
        scale = float(information[name][0]) ** -0.5 if unit else 1.0
        found[name] = (shift if design.predictors[name].intercept else 0.0, scale)
    return found


def warn_of_response(
    formula: Formula, data: Any, response: Expression, y: np.ndarray, family: Family
) -> None:
    """Of a response that another family serves better, or that a feature tells exactly."""
    advice = family.advice(y)
    if advice is not None:
        warn(f"The response `{response}` {advice}")
    columns = read_columns(data, _feature_columns(formula), arrays=formula.array_columns())
    responses = {str(response): y} if y.ndim == 1 else {}
    if set(response.columns()) <= set(column_names(data)) and not family.labelled:
        responses |= read_response_columns(data, response)
    _warn_of_copies(formula, columns, responses)


def warn_of_repeats(
    formulas: Mapping[str, Formula], response: Expression, y: np.ndarray, family: Family
) -> None:
    """Of a value that many rows share, which a spread with effects can follow until it is nothing."""
    others = list(formulas)[1:]
    spread = any(term.kind != "offset" for name in others for term in formulas[name].terms)
    if not spread or family.discrete or family.labelled or family.is_loss or y.ndim > 1:
        return
    found = None if np.isin(family.bounds, y).any() else repeated_value(y)
    if found is None:
        return
    value, rows = found
    tweedie = '`family="tweedie"` has a probability of 0; ' if value == 0 and y.min() == 0 else ""
    warn(
        f"The response `{response}` is {value:g} exactly in {rows:,} of {len(y):,} rows. Where that is "
        f"likely, a {others[0]} with features can fall to nothing, and the likelihood then has no "
        f"maximum. {tweedie}or model whether it is {value:g} apart from the rest, or leave the features "
        f"of `{others[0]}` out."
    )


def _feature_columns(formula: Formula) -> list[str]:
    """Columns that terms learn from, each once: not those of offsets alone."""
    features = (f for term in formula.terms if term.kind != "offset" for f in term.inputs)
    return list(dict.fromkeys(name for feature in features for name in feature.columns()))


def _warn_of_offsets_as_features(formula: Formula) -> None:
    """As in R a `.` holds the columns of an offset too; hardly anybody means that."""
    used = set(formula.dotted) & set(_feature_columns(formula))
    for term in formula.terms:
        names = [name for name in term.features[0].columns() if name in used]
        if term.kind == "offset" and names:
            listed = ", ".join(f"`{name}`" for name in names)
            away = " ".join(f"- {quote_column(name)}" for name in names)
            warn(
                f"`.` takes {listed} as a feature too, beside `{term.label}`. End the formula with "
                f"`{away}` to leave it out of `.`; the offset stays."
            )


def _warn_of_copies(
    formula: Formula, columns: Mapping[str, np.ndarray], responses: Mapping[str, np.ndarray]
) -> None:
    """A feature that is the response itself, in its or other units or words, leaves nothing to learn."""
    for name in _feature_columns(formula):
        for response, y in responses.items():
            if kind_of(columns[name]) == ARRAY:
                continue
            if len(y) >= _ROWS_OF_COPIES and _is_copy(columns[name], y):
                away = f": end the formula with `- {quote_column(name)}`"
                warn(
                    f"Column `{name}` tells the response `{response}` exactly, in every row: where that "
                    f"is not known beforehand, leave it out{away if name in formula.dotted else ''}."
                )
                break


def _is_copy(values: np.ndarray, y: np.ndarray) -> bool:
    """Whether a column is a + b y, or texts that stand for the values of y one to one."""
    if kind_of(values) == TEXT:
        codes, levels = pd.factorize(values)
        others, responses = pd.factorize(y)
        # Where nearly every row has a level of its own, as names do, levels tell nothing.
        if 2 * len(levels) > len(y) or len(levels) != len(responses):
            return False
        return len(pd.unique(codes * len(responses) + others)) == len(levels)
    x, z = _centred(values.astype(float)), _centred(y)
    size = float(x @ x)
    if not np.abs(z).max():  # a constant, such as the event of times of which none is censored
        return False
    return bool(size and np.abs(z - (x @ z) / size * x).max() <= _ROUNDING * np.abs(z).max())


def _centred(values: np.ndarray) -> np.ndarray:
    """Less their mean, in units in which squares do not overflow."""
    scaled = values / (np.abs(values).max() or 1.0)
    return scaled - scaled.mean()


def _warn_of_numbers_as_texts(formula: Formula, columns: Mapping[str, np.ndarray]) -> None:
    """A column with one `n/a` is read as texts from a file, and each of its numbers is a level then.

    Whole numbers alone may be names, such as those of shops.
    """
    meant = {expression for term in formula.terms for expression in term.inputs}
    for name, values in columns.items():
        if kind_of(values) != TEXT or not any(e.is_column and e.arguments[0] == name for e in meant):
            continue
        codes, levels = pd.factorize(values, sort=True)
        counts = np.bincount(codes)
        numbers = pd.to_numeric(pd.Series(levels), errors="coerce").to_numpy(float)
        others = np.isnan(numbers)
        known = int(counts[~others].sum())
        if known < _MOSTLY * len(values) or (not others.any() and (numbers == np.round(numbers)).all()):
            continue
        odd = f" (another: {str(levels[others][0])!r})" if others.any() else ""
        warn(
            f"Column `{name}` holds texts, of which {known:,} of {len(values):,} are numbers{odd}: it "
            f"is taken as a category with {len(levels):,} levels. Write `C({quote_column(name)})` if "
            'that is meant, else convert it with `pandas.to_numeric(..., errors="coerce")`.'
        )
