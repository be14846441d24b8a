"""Checks of a loss, which predicts quantiles or expectiles and assumes no distribution."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from scipy import stats

from ahofm_keras.diagnostics.checked_rows import CheckedRows
from ahofm_keras.diagnostics.lines import (
    BINS,
    CHANCE,
    LEAST_ROWS_A_BIN,
    UNLIKELY,
    Line,
    even_groups,
    line,
)
from ahofm_keras.families.conditions import Condition
from ahofm_keras.model import AdditiveModel
from ahofm_keras.texts import percent
from ahofm_keras.transforms import evaluate_expression

# Shares of rows that are worth a word: of all rows, of a bin.
_LEAST_SHARE = 0.02
_LEAST_SHARE_OF_A_BIN = 0.05
# The same of an expectile, in standard deviations of its residuals.
_LEAST_SHIFT = 0.1
_LEAST_SHIFT_OF_A_BIN = 0.2


def loss_lines(model: AdditiveModel, rows: CheckedRows) -> Iterator[Line]:
    """Each prediction on all rows, along what is fitted, and along the feature where it is off most."""
    along = list(_features(model, rows))
    for own in rows.conditions:
        yield _overall_line(own, rows)
        fitted = even_groups(own.fitted)
        if fitted.max():
            yield _line_along(own, rows, [("its fitted values", own.fitted, fitted)], "fitted", 1)
        if along:
            tests = len(along) * len(rows.conditions)
            yield _line_along(own, rows, along, "a feature", tests)


def loss_calibration(rows: CheckedRows) -> pd.DataFrame:
    """Each prediction by bins of what is fitted.

    Returns:
        A row a bin with `rows` and `fitted` (mean). Of quantiles also `quantile`; `observed` is the
        share of responses below it, and `lower` and `upper` are where that lies in 95 of 100 cases if it
        is right. Of an expectile `observed` is that of the bin, in units of the response.
    """
    frames = []
    for own in rows.conditions:
        groups = even_groups(own.fitted)
        size = int(groups.max()) + 1
        shift, error = own.shift(rows.counts, groups, size)
        count = np.bincount(groups, minlength=size)
        fitted = np.bincount(groups, own.fitted, size) / count
        centre = fitted if own.level is None else np.full(size, own.level)
        reach = stats.norm.ppf(0.975) * error
        found = {"rows": count, "fitted": fitted, "observed": centre + shift}
        frame = pd.DataFrame({**found, "lower": centre - reach, "upper": centre + reach})
        frames.append(frame if own.level is None else frame.assign(quantile=own.name))
    return pd.concat(frames, ignore_index=True)


def level_frequencies(rows: CheckedRows) -> pd.DataFrame:
    """Rows by the levels between which their responses lie, of quantiles; else a frame without rows."""
    levels = [own.level for own in rows.conditions if own.level is not None]
    if not levels:
        return pd.DataFrame(columns=["low", "high", "observed", "expected"], dtype=float)
    ends = np.array([0.0, *levels, 1.0])
    above = np.sum([rows.y > own.fitted for own in rows.conditions], axis=0)
    observed = np.bincount(above, rows.counts, len(ends) - 1)
    expected = rows.counts.sum() * np.diff(ends)
    return pd.DataFrame({"low": ends[:-1], "high": ends[1:], "observed": observed, "expected": expected})


def _overall_line(own: Condition, rows: CheckedRows) -> Line:
    shift, error = (float(found[0]) for found in own.shift(rows.counts, np.zeros(len(rows), int), 1))
    least = _LEAST_SHARE if own.level is not None else _LEAST_SHIFT * _spread(own)
    off = abs(shift) > max(CHANCE * error, least)
    if own.level is not None:
        text = (
            f"`{own.name}` is too {'high' if shift > 0 else 'low'}: {percent(own.level + shift)} of the "
            f"responses lie below it, {percent(own.level)} should."
        )
        return line(f"share below {own.name}", own.level + shift, f"{own.level:g}", off, text)
    side = "low" if shift > 0 else "high"
    text = f"The {own.name} is too {side} on average, by {abs(shift):.3g}."
    return line(f"{own.name} of residuals", shift, "0", off, text)


def _line_along(
    own: Condition, rows: CheckedRows, along: list[tuple[str, np.ndarray, np.ndarray]], what: str,
    tests: int,
) -> Line:  # fmt: skip
    """The worst bin of the variable along which the condition is the least likely to hold."""
    found = []
    for name, values, groups in along:
        size = int(groups.max()) + 1
        shift, error = own.shift(rows.counts, groups, size)
        statistic = float(np.sum((shift / np.maximum(error, np.finfo(float).tiny)) ** 2))
        # By logarithms: of clear cases all chances are 0 in float64.
        chance = float(stats.chi2.logsf(statistic, size))
        found.append((chance, name, values, groups, shift, error))
    chance, name, values, groups, shift, error = min(found, key=lambda entry: entry[0])
    worst = int(np.argmax(np.abs(shift) / np.maximum(error, np.finfo(float).tiny)))
    at = values[groups == worst]
    place = f"is {at[0]}" if at.dtype.kind not in "fiub" else f"is about {np.median(at):.3g}"
    least = _LEAST_SHARE_OF_A_BIN if own.level is not None else _LEAST_SHIFT_OF_A_BIN * _spread(own)
    off = chance < np.log(UNLIKELY / tests) and abs(shift[worst]) > least
    if own.level is not None:
        below = percent(own.level + shift[worst])
        seen = f"{below} of the responses lie below it, not {percent(own.level)}"
    else:
        seen = f"it is {abs(shift[worst]):.3g} too {'low' if shift[worst] > 0 else 'high'}"
    where = "that" if what != "fitted" else "its fitted value"
    text = f"`{own.name}` is off along {name}: where {where} {place}, {seen}."
    expected = f"0 (p = {min(1.0, np.exp(chance) * tests):.2g})"
    return line(f"largest gap of {own.name} along {what}", float(shift[worst]), expected, off, text)


def _features(model: AdditiveModel, rows: CheckedRows) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Name, values and groups of each variable of which there is more than one group."""
    for variable in model.design.variables():
        values = np.asarray(evaluate_expression(variable.expression, rows.columns))
        if variable.is_category:
            levels, groups = np.unique(values, return_inverse=True)
            # Levels with few rows count together.
            counts = np.bincount(groups)
            rare = counts < LEAST_ROWS_A_BIN
            if len(levels) > 3 * BINS or rare.all():
                continue
            groups = np.unique(np.where(rare[groups], len(levels), groups), return_inverse=True)[1]
            if groups.max():
                yield f"`{variable.label}`", values, groups
            continue
        columns = values.T if variable.is_point else values[None]
        for name, own in zip(variable.coordinates, columns, strict=True):
            groups = even_groups(own)
            if groups.max():
                yield f"`{name}`", own, groups


def _spread(own: Condition) -> float:
    """Standard deviation of the residuals."""
    return float(np.std(own.pull / own.weight))
