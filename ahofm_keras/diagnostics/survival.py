"""Checks of censored times: are there as many events as expected, when, and are hazards proportional?"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pandas as pd
from scipy import stats

from ahofm_keras.diagnostics.checked_rows import CheckedRows, quietly_predict
from ahofm_keras.diagnostics.lines import CHANCE, UNLIKELY, Line, even_groups, line
from ahofm_keras.families.baseline import EVENT, START, STOP, Baseline, sums_at_risk
from ahofm_keras.families.cox import Cox
from ahofm_keras.model import AdditiveModel

# Times at which survival is compared, as shares of the events; bins of rows there.
_SHARES = (0.25, 0.5, 0.75)
_BINS = 5
# Differences that are worth a word.
_LEAST_RATIO = 0.1
_LEAST_GAP = 0.05
_LEAST_DISTANCE = 0.05
_LEAST_CORRELATION = 0.1
# Quantile of Kolmogorov's statistic times the root of n that chance exceeds once in 1000.
_KOLMOGOROV = 1.95
# Bars of the numbers of events.
_PERIODS = 20


def survival_lines(
    model: AdditiveModel, rows: CheckedRows, residuals: pd.DataFrame, calibration: pd.DataFrame
) -> Iterator[Line]:
    """Events and their expected number, the residuals of all times, survival at times, hazards."""
    yield _events_line(rows)
    found = residuals["quantile"].to_numpy()
    distance = float(stats.kstest(found, "norm").statistic)
    far = distance > max(_KOLMOGOROV / np.sqrt(len(found)), _LEAST_DISTANCE)
    text = "Times do not follow the predicted survival curves: residuals do not have their shape."
    yield line("distance from gaussian", distance, "0", far, text)
    for time, frame in calibration.groupby("time", sort=False):
        if len(frame) > 2:
            yield _gap_line(float(str(time)), frame.reset_index(drop=True), rows.trained)
    yield from _proportional_lines(model, rows)


def survival_calibration(rows: CheckedRows) -> pd.DataFrame:
    """Survival until some times by bins of the predicted chance: Kaplan-Meier beside the prediction.

    Returns:
        A row a bin and time with `time`, `rows`, `fitted` and `observed` chance to survive it, and
        `lower` and `upper`: where the observed one lies in 95 of 100 cases if the model is right.
    """
    known = _baseline(rows)
    events = np.sort(rows.y[rows.y[:, EVENT] > 0, STOP])
    if not len(events):
        return pd.DataFrame(
            columns=["time", "rows", "fitted", "observed", "lower", "upper"], dtype=float
        )
    groups = even_groups(rows.link, _BINS)
    found = []
    for time in np.unique(np.quantile(events, _SHARES, method="higher")):
        survival = np.exp(-rows.parameters["ratio"] * known.at(time))
        for group in range(int(groups.max()) + 1):
            own = groups == group
            fitted = float(np.average(survival[own], weights=rows.counts[own]))
            observed, error = kaplan_meier(rows.y[own], rows.counts[own], float(time))
            if np.isfinite(observed):
                error = max(error, np.sqrt(fitted * (1 - fitted) / own.sum()))
                reach = stats.norm.ppf(0.975) * error
                found.append((time, own.sum(), fitted, observed, fitted - reach, fitted + reach))
    return pd.DataFrame(found, columns=["time", "rows", "fitted", "observed", "lower", "upper"])


def kaplan_meier(y: np.ndarray, weight: np.ndarray, time: float) -> tuple[float, float]:
    """Chance to survive a time with Greenwood's standard error; NaN beyond what was observed."""
    events = (y[:, EVENT] > 0) & (y[:, STOP] <= time)
    if y[:, STOP].max() < time:
        return np.nan, np.nan
    times, place = np.unique(y[events, STOP], return_inverse=True)
    if not len(times):
        return 1.0, 0.0
    died = np.bincount(place, weight[events], len(times))
    risk = sums_at_risk(weight[:, None], y[:, STOP], y[:, START], times)[:, 0]
    survival = float(np.prod(1 - died / risk))
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(risk > died, died / (risk * (risk - died)), 0.0)
    return survival, survival * float(np.sqrt(terms.sum()))


def event_frequencies(rows: CheckedRows) -> pd.DataFrame:
    """Events by their time, `observed` and `expected`: what the hazards of rows at risk sum to."""
    known, ratio = _baseline(rows), rows.counts * rows.parameters["ratio"]
    stop, start, event = rows.y[:, STOP], rows.y[:, START], rows.y[:, EVENT] > 0
    times = np.unique(stop[event])
    if not len(times):
        return pd.DataFrame(columns=["low", "high", "observed", "expected"], dtype=float)
    periods = int(np.clip(event.sum() // 5, 1, _PERIODS))
    ends = np.unique(np.concatenate([[0.0], np.linspace(0, times[-1], periods + 1)[1:]]))
    place = np.searchsorted(ends[1:-1], stop[event], side="left")
    observed = np.bincount(place, rows.counts[event], len(ends) - 1)
    expected = [
        float(ratio @ (known.at(np.clip(stop, low, high)) - known.at(np.clip(start, low, high))))
        for low, high in pairwise(ends)
    ]
    return pd.DataFrame({"low": ends[:-1], "high": ends[1:], "observed": observed, "expected": expected})


def schoenfeld_correlation(
    values: np.ndarray, y: np.ndarray, ratio: np.ndarray, weight: np.ndarray
) -> tuple[float, float]:
    """Whether the effect of a term changes with time: a correlation, and how likely that is by chance.

    The score test of Grambsch & Therneau (1994) for the product of a fitted term and the rank of time,
    beside the term itself: Schoenfeld's residuals are its values at events less their mean over the rows
    at risk, whose variance there is their own.

    Args:
        values: of the term `(n,)`.
        y: censored times `(n, 4)`.
        ratio: hazard ratio `(n,)`.
        weight: of each row `(n,)`.
    """
    events = np.flatnonzero((y[:, EVENT] > 0) & (weight > 0))
    hazard = weight * ratio
    sums = sums_at_risk(
        np.column_stack([hazard, hazard * values, hazard * values**2]),
        y[:, STOP], y[:, START], y[events, STOP],
    )  # fmt: skip
    mean = sums[:, 1] / sums[:, 0]
    variance = np.maximum(sums[:, 2] / sums[:, 0] - mean**2, 0.0) * weight[events]
    residual = weight[events] * (values[events] - mean)
    if variance.sum() <= 0:
        return 0.0, 1.0
    rank = stats.rankdata(y[events, STOP])
    time = rank - np.average(rank, weights=variance)
    spread = float(variance @ time**2)
    if spread <= 0:
        return 0.0, 1.0
    score = float(residual @ time)
    norm = np.sqrt(float(residual @ residual) * float(time @ time))
    return score / norm if norm else 0.0, float(2 * stats.norm.sf(abs(score) / np.sqrt(spread)))


def _proportional_lines(model: AdditiveModel, rows: CheckedRows) -> Iterator[Line]:
    frame = quietly_predict(model, rows.columns, type="terms")
    tests = {
        name: schoenfeld_correlation(
            frame[name].to_numpy(float), rows.y, rows.parameters["ratio"], rows.counts
        )
        for name in frame
        if np.ptp(frame[name].to_numpy(float)) > 0
    }
    if not tests:
        return
    name, (correlation, chance) = min(tests.items(), key=lambda entry: entry[1][1])
    p_value = min(1.0, chance * len(tests))
    off = p_value < UNLIKELY and abs(correlation) > _LEAST_CORRELATION
    side = "weaker" if correlation < 0 else "stronger"
    text = (
        f"Hazards are not proportional: the effect of `{name}` becomes {side} with time (p = "
        f"{p_value:.2g}). Split the rows at some times, `Surv(start, stop, event)`, and let it interact "
        "with the period."
    )
    expected = f"0 (p = {p_value:.2g})"
    yield line(f"hazards proportional: {name}", correlation, expected, off, text)


def _events_line(rows: CheckedRows) -> Line:
    """Observed over expected number of events; 1 on the rows of the fit, whose baseline this is."""
    observed = float(rows.counts @ rows.observed)
    expected = float(rows.counts @ (rows.observed - rows.residual))
    ratio = observed / expected if expected else np.inf
    error = np.sqrt(expected) / expected if expected else 0.0
    off = abs(ratio - 1) > max(CHANCE * error, _LEAST_RATIO)
    side = "More" if ratio > 1 else "Fewer"
    text = f"{side} events than the model says: {observed:,.0f}, {expected:,.1f} are expected."
    return line("events / expected", ratio, "1", off, text)


def _gap_line(time: float, calibration: pd.DataFrame, trained: bool) -> Line:
    gap = calibration["observed"] - calibration["fitted"]
    error = (calibration["upper"] - calibration["fitted"]) / stats.norm.ppf(0.975)
    statistic = float(np.sum((gap / np.maximum(error, np.finfo(float).tiny)) ** 2))
    p_value = float(stats.chi2.sf(statistic, max(len(calibration) - (2 if trained else 0), 1)))
    worst = int(np.argmax(np.abs(gap)))
    off = p_value < UNLIKELY and abs(gap[worst]) > _LEAST_GAP
    text = (
        f"Survival until {time:.4g} is not calibrated: where {calibration['fitted'][worst]:.1%} is "
        f"predicted, {calibration['observed'][worst]:.1%} is observed."
    )
    expected = f"0 (p = {p_value:.2g})"
    return line(f"survival gap at {time:.3g}", float(gap[worst]), expected, off, text)


def _baseline(rows: CheckedRows) -> Baseline:
    assert isinstance(rows.family, Cox)
    assert rows.family.baseline is not None
    return rows.family.baseline
