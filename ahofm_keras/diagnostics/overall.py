"""A few checks of the model as a whole, each a number, what it should be, and a sentence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from ahofm_keras.decomposition.parts import Parts
from ahofm_keras.diagnostics.checked_rows import CheckedRows, rows_outside
from ahofm_keras.diagnostics.lines import CHANCE, UNLIKELY, Line, even_groups, line
from ahofm_keras.diagnostics.losses import loss_calibration, loss_lines
from ahofm_keras.diagnostics.survival import survival_calibration, survival_lines
from ahofm_keras.model import AdditiveModel
from ahofm_keras.transforms import evaluate_expression

# Differences that are worth a word.
_LEAST_SHIFT = 0.1
_LEAST_RANK_CORRELATION = 0.1
_LEAST_DISPERSION = 0.2
_LEAST_TAIL = 1.4
_LEAST_GAP = 0.02
_LEAST_ZEROS = 0.02
_LEAST_DISTANCE = 0.05
# Quantile of Kolmogorov's statistic times the root of n that chance exceeds once in 1000.
_KOLMOGOROV = 1.95
# A row that decides this share of its own fitted value.
_HIGH_LEVERAGE = 0.5
# Share of the variance that a fit leaves in the residuals of its rows, at least.
_LEAST_LEFT = 0.05
# Degrees of freedom a row.
_MOST_DEGREES = 0.5


def overall_frame(
    model: AdditiveModel, rows: CheckedRows, residuals: pd.DataFrame, calibration: pd.DataFrame
) -> pd.DataFrame:
    """A row a check, with `check`, `value`, `expected`, `ok` and a `verdict`.

    The verdict is empty where all is well, and where another one says it already.
    """
    lines = list(_own_lines(model, rows, residuals, calibration))
    lines += [*_degrees_lines(model, rows), *_rank_lines(model), *_row_lines(model, rows, residuals)]
    if model.fit_result is not None and not model.fit_result.converged:
        told = " ".join(model.fit_result.warnings) or "give it more epochs."
        text = f"Not converged: {told}"
        lines.append(("converged", 0.0, "1", False, text))
    return pd.DataFrame(lines, columns=["check", "value", "expected", "ok", "verdict"])


def _own_lines(
    model: AdditiveModel, rows: CheckedRows, residuals: pd.DataFrame, calibration: pd.DataFrame
) -> Iterator[Line]:
    """What is asked of a loss, of censored times, or of a distribution of each response."""
    family = model.family
    if rows.conditions:
        yield from loss_lines(model, rows)
        return
    if family.nuisance:
        yield from survival_lines(model, rows, residuals, calibration)
        return
    yield from _spread_lines(rows, residuals)
    yield from _trend_lines(model, residuals)
    yield from _feature_lines(model, rows, residuals["quantile"].to_numpy())
    if family.dispersion_known and len(family.parameters) == 1 and not family.binary:
        yield _dispersion_line(model, rows)
    if family.discrete and not family.binary and not family.labelled:
        yield _zeros_line(rows)
    if family.binary and len(calibration) > 2:
        yield _calibration_line(rows, calibration, "")
    if family.labelled:
        for own, frame in calibration.groupby("class", sort=False):
            if len(frame) > 2:
                yield _calibration_line(rows, frame.reset_index(drop=True), str(own))


def calibration_frame(rows: CheckedRows) -> pd.DataFrame:
    """Mean response by bins of the fitted mean; of classes the probability of each.

    Returns:
        A row a bin with `rows`, `fitted` and `observed` (means over the bin), and `lower` and `upper`:
        where the observed mean lies in 95 of 100 cases if the model is right. Of classes also `class`,
        of quantiles `quantile`, of censored times `time`.
    """
    if rows.conditions:
        return loss_calibration(rows)
    if rows.family.nuisance:
        return survival_calibration(rows)
    if not rows.family.labelled:
        return _calibration(rows.y, rows.mean, rows.variance)
    chances = rows.distribution.probabilities
    frames = [
        _calibration((rows.y == place).astype(float), chance, chance * (1 - chance)).assign(
            **{"class": own}
        )
        for place, (own, chance) in enumerate(zip(map(str, rows.family.classes), chances.T, strict=True))
    ]
    return pd.concat(frames, ignore_index=True)


def _calibration(y: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> pd.DataFrame:
    table = pd.DataFrame(
        {"place": even_groups(mean), "fitted": mean, "observed": y, "variance": variance}
    )
    groups = table.groupby("place")
    found = groups[["fitted", "observed"]].mean()
    found.insert(0, "rows", groups.size())
    reach = stats.norm.ppf(0.975) * np.sqrt(groups["variance"].sum()) / found["rows"]
    found["lower"], found["upper"] = found["fitted"] - reach, found["fitted"] + reach
    return found.reset_index(drop=True)


def expected_spread(model: AdditiveModel, residuals: np.ndarray) -> float:
    """Standard deviation that the residuals may have, at most 1.

    A fit takes its degrees of freedom out of the residuals of its rows: with a quarter of the rows as
    degrees of freedom three quarters of the variance are left.
    """
    record = model.fit_result
    if model.family.dispersion_known or record is None or not record.edf or not record.rows:
        return 1.0
    least = np.sqrt(max(1 - record.edf / record.rows, _LEAST_LEFT))
    return float(np.clip(residuals.std(), least, 1.0))


def _spread_lines(rows: CheckedRows, frame: pd.DataFrame) -> Iterator[Line]:
    """Mean, standard deviation, tails and shape of the quantile residuals."""
    spread, bias, family = frame.attrs["spread"], _bias(rows), rows.family
    residuals = frame["quantile"].to_numpy() / spread
    n = len(residuals)
    mean, sd = float(residuals.mean()), float(residuals.std())
    tails = [_tail(residuals, cut) for cut in (2, 3)]
    # A wide middle fills the tails by itself; heavy tails widen the spread, but not the middle.
    wide_middle = _middle_spread(residuals) > 1 + max(CHANCE / np.sqrt(n), _LEAST_SHIFT)
    least = max(CHANCE / np.sqrt(n), _LEAST_SHIFT)
    # A wrong shape moves their mean too, where the response itself has the mean that was fitted.
    off, biased = abs(mean) > least, abs(bias) > least
    side = "low" if mean > 0 else "high"
    text = f"Fitted values are too {side} on average, by {abs(mean):.2g} standard deviations."
    yield line("mean of residuals", mean, "0", off, text if biased else "")
    least = max(CHANCE / np.sqrt(2 * n), _LEAST_SHIFT)
    wrong = off, abs(sd - 1) > least, tails[0][2], tails[1][2]
    said = sd > 1 and not wide_middle and any(tail[2] for tail in tails)
    side = "more" if sd > 1 else "less"
    text = f"Responses vary {side} than the model says: residuals have standard deviation {sd:.2g}."
    yield line("sd of residuals", sd * spread, f"{spread:.3g}", wrong[1], "" if said else text)
    for cut, (share, expected, heavy) in zip((2, 3), tails, strict=True):
        said = wide_middle or (cut == 2 and tails[1][2])
        text = (
            f"Heavy tails: {share:.2%} of residuals lie beyond ±{cut}, {expected:.2%} are expected."
            f"{family.remedy('heavy tails')}"
        )
        yield line(f"beyond ±{cut}", share, f"{expected:.4f}", heavy, "" if said else text)
    distance = float(stats.kstest(residuals, "norm").statistic)
    remedy = family.remedy("shape") or " Another family may fit better."
    text = f"Residuals do not have the shape they should have.{remedy}"
    said = any(wrong[1:]) or (off and biased)
    far = distance > max(_KOLMOGOROV / np.sqrt(n), _LEAST_DISTANCE)
    yield line("distance from gaussian", distance, "0", far, "" if said else text)


def _tail(residuals: np.ndarray, cut: int) -> tuple[float, float, bool]:
    """Share of residuals beyond a cut, the gaussian one, and whether it is too large for chance."""
    n = len(residuals)
    share, expected = float(np.mean(np.abs(residuals) > cut)), float(2 * stats.norm.sf(cut))
    likely = stats.binom.ppf(stats.norm.cdf(CHANCE), n, expected) / n
    return share, expected, share > max(likely, _LEAST_TAIL * expected)


def _bias(rows: CheckedRows) -> float:
    """Mean of Pearson's residuals: response less mean, in standard deviations."""
    return float(
        np.mean((rows.y - rows.mean) / np.sqrt(np.maximum(rows.variance, np.finfo(float).tiny)))
    )


def _middle_spread(residuals: np.ndarray) -> float:
    """Standard deviation of the gaussian with the same quartiles."""
    low, high = np.quantile(residuals, [0.25, 0.75])
    return float((high - low) / (2 * stats.norm.ppf(0.75)))


def _trend_lines(model: AdditiveModel, residuals: pd.DataFrame) -> Iterator[Line]:
    """Whether the residuals' spread changes along the fitted mean."""
    fitted, size = residuals["fitted"].to_numpy(), residuals["quantile"].abs().to_numpy()
    if len(fitted) < 10 or np.ptp(fitted) == 0 or np.ptp(size) == 0:
        return
    found = stats.spearmanr(fitted, size)
    correlation = float(found.statistic)
    off = abs(correlation) > max(_LEAST_RANK_CORRELATION, CHANCE / np.sqrt(len(fitted)))
    side = "high" if correlation > 0 else "low"
    text = f"Residuals spread more where fitted values are {side}.{model.family.remedy('uneven spread')}"
    yield line("spread along fitted", correlation, "0", off, text)


def _feature_lines(model: AdditiveModel, rows: CheckedRows, residuals: np.ndarray) -> Iterator[Line]:
    """Whether the residuals' spread changes along the feature where it does so most."""
    size, found = np.abs(residuals), {}
    for variable in model.design.variables():
        if variable.is_category:
            continue
        for name, own in zip(variable.coordinates, variable.expression.coordinates, strict=True):
            values = np.asarray(evaluate_expression(own, rows.columns))
            if np.ptp(values) > 0 and np.ptp(size) > 0:
                found[name] = float(stats.spearmanr(values, size).statistic)
    if len(size) < 10 or not found:
        return
    label = max(found, key=lambda name: abs(found[name]))
    # As likely as 3 standard errors of one correlation, whatever the number of features.
    chance = stats.norm.isf(stats.norm.sf(CHANCE) / len(found)) / np.sqrt(len(size))
    off = abs(found[label]) > max(_LEAST_RANK_CORRELATION, chance)
    side = "high" if found[label] > 0 else "low"
    remedy = model.family.remedy("uneven spread")
    text = f"Residuals spread more where `{label}` is {side}.{remedy}"
    yield line("spread along a feature", found[label], "0", off, text)


def _dispersion_line(model: AdditiveModel, rows: CheckedRows) -> Line:
    """Pearson's chi-squared over its degrees of freedom."""
    family, least = model.family, np.finfo(float).tiny
    squares = (rows.y - rows.mean) ** 2 / np.maximum(rows.variance, least)
    degrees = float(rows.counts.sum()) - _used_degrees(model, rows)
    ratio = float(rows.counts @ squares) / max(degrees, 1.0)
    # Var((y - mu)^2 / V) is 2 and the excess kurtosis; tiny means would make that as large as one likes.
    kurtosis = rows.drawn.distribution(np.maximum(rows.mean, 1e-3)).stats(moments="k")
    error = np.sqrt(np.sum(rows.counts**2 * (2 + kurtosis))) / max(degrees, 1.0)
    off = abs(ratio - 1) > max(CHANCE * error, _LEAST_DISPERSION)
    if ratio > 1:
        text = (
            f"Overdispersed: the variance is about {ratio:.2g} times {family.variance_text}. Standard "
            f"errors are too small by a factor of about {np.sqrt(ratio):.2g}; a feature may be missing."
            f"{family.remedy('overdispersed')}"
        )
    else:
        text = f"Underdispersed: the variance is about {ratio:.2g} times {family.variance_text}."
        text += family.remedy("underdispersed")
    return line("Pearson chi2 / df", ratio, "1", off, text)


def _zeros_line(rows: CheckedRows) -> Line:
    """Rows of 0, beside those that are expected."""
    chance = rows.distribution.cdf(np.zeros(len(rows)))
    total = rows.counts.sum()
    expected = float(rows.counts @ chance / total)
    error = np.sqrt(rows.counts**2 @ (chance * (1 - chance))) / total
    share = float(rows.counts @ (rows.drawn_y == 0) / total)
    off = abs(share - expected) > max(CHANCE * error, _LEAST_ZEROS)
    side, kind = ("More", "more zeros") if share > expected else ("Fewer", "fewer zeros")
    text = f"{side} zeros than the model says: {share:.1%} of the rows, {expected:.1%} are expected."
    return line("share of zeros", share, f"{expected:.4f}", off, text + rows.family.remedy(kind))


def _used_degrees(model: AdditiveModel, rows: CheckedRows) -> float:
    """Degrees of freedom that the fit spent on these rows."""
    record: Any = model.fit_result
    if not rows.trained or record is None or record.edf is None or not record.rows:
        return 0.0
    return float(record.edf) * len(rows) / record.rows


def _calibration_line(rows: CheckedRows, calibration: pd.DataFrame, name: str) -> Line:
    """The statistic of Hosmer & Lemeshow; the value is the largest gap of a bin."""
    gap = calibration["observed"] - calibration["fitted"]
    error = (calibration["upper"] - calibration["fitted"]) / stats.norm.ppf(0.975)
    statistic = float(np.sum((gap / np.maximum(error, np.finfo(float).tiny)) ** 2))
    p_value = float(stats.chi2.sf(statistic, len(calibration) - (2 if rows.trained else 0)))
    worst = int(np.argmax(np.abs(gap)))
    of = f" of `{name}`" if name else ""
    text = (
        f"Not calibrated{of}: where {calibration['fitted'][worst]:.1%} is predicted, "
        f"{calibration['observed'][worst]:.1%} is observed."
    )
    off = p_value < UNLIKELY and abs(gap[worst]) > _LEAST_GAP
    expected = f"0 (p = {p_value:.2g})"
    return line(f"largest calibration gap{of.replace('`', '')}", float(gap[worst]), expected, off, text)


def _degrees_lines(model: AdditiveModel, rows: CheckedRows) -> Iterator[Line]:
    """Degrees of freedom that a row pays for."""
    record: Any = model.fit_result
    if not rows.trained or record is None or record.edf is None or not record.rows:
        return
    share = float(record.edf) / record.rows
    text = (
        f"The model uses {record.edf:,.0f} degrees of freedom for {record.rows:,} rows and may follow "
        'their noise: ask for fewer factors or a smaller df, or let solver="variational" choose.'
    )
    yield line("edf / rows", share, f"< {_MOST_DEGREES:g}", share > _MOST_DEGREES, text)


def _rank_lines(model: AdditiveModel) -> Iterator[Line]:
    """Whether surfaces use all factors that they may have; only the variational solver does without."""
    if model.fit_result is None or model.fit_result.solver != "variational":
        return
    for name in model.design.predictors:
        view = model.parameter(name)
        used = {group.source: len(group.kept) for group in Parts(view).groups}
        for order in view.design.layout.only.orders:
            if order.automatic:
                continue
            count = used.get(order.key, 0)
            text = (
                f"All factors of {order.label} are in use, F = {order.rank}: its surfaces may need "
                "more, and bands do not hold what is missing. Raise `F`, or let the data choose: "
                '`F="auto"`.'
            )
            slots = order.rank * view.starts
            full = count == slots
            yield line(f"factors of order {order.order}", count, f"< {slots}", full, text)


def _row_lines(model: AdditiveModel, rows: CheckedRows, residuals: pd.DataFrame) -> Iterator[Line]:
    """Rows that stand out."""
    leverage = residuals["leverage"].to_numpy()
    # No leverage exceeds 1: where it seems to, the posterior of products is too rough to tell.
    if rows.trained and np.nanmax(leverage, initial=0.0) <= 1 and not np.isnan(leverage).any():
        high = int(np.sum(leverage > _HIGH_LEVERAGE))
        text = _rows(high, "decides half or more of its", "decide half or more of their")
        yield line("rows of high leverage", float(high), "0", high, f"{text} own fitted value.")
    clipped = int(residuals.attrs["clipped"])
    if clipped:
        text = _rows(clipped, "is as good as impossible", "are as good as impossible")
        yield line("clipped residuals", float(clipped), "0", True, f"{text} under the model.")
    if not rows.trained:
        outside = rows_outside(model, rows)
        listed = ", ".join(f"`{name}` in {_rows(count)}" for name, count in outside.items())
        text = f"Outside the training range: {listed}."
        count = sum(outside.values())
        yield line("values outside range", float(count), "0", count, text)
    if rows.left_out:
        text = f"{_rows(rows.left_out, 'has', 'have')} weight 0; left out here."
        yield line("rows of weight 0", float(rows.left_out), "0", True, text)


def _rows(count: int, one: str = "", many: str = "") -> str:
    """A number of rows, with the verb that goes with it."""
    return f"{count:,} row {one}".strip() if count == 1 else f"{count:,} rows {many}".strip()
