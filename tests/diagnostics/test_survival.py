"""Checks of censored times, against loops over risk sets, statsmodels, and simulations."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import ahofm_keras as ak
from ahofm_keras.diagnostics import Check, check
from ahofm_keras.diagnostics.survival import kaplan_meier, schoenfeld_correlation
from ahofm_keras.errors import DataError
from ahofm_keras.families import Cox


@cache
def times(late: float = 1.0) -> pd.DataFrame:
    """Hazards exp(2 x) until 0.5 and exp(late 2 x) from then on; a third is censored, some join late."""
    rng = np.random.default_rng(5)
    x = rng.uniform(-1, 1, 700)
    hazard = rng.exponential(size=700)
    early = 0.5 * np.exp(2 * x)
    event = np.where(
        hazard < early, hazard / np.exp(2 * x), 0.5 + (hazard - early) / np.exp(2 * late * x)
    )
    censored = rng.exponential(1.5, 700)
    stop = np.minimum(event, censored)
    start = np.where(rng.random(700) < 0.2, stop * rng.uniform(0, 0.5, 700), 0.0)
    return pd.DataFrame({"x": x, "start": start, "stop": stop, "event": (event <= censored).astype(int)})


@cache
def model_of(late: float = 1.0, formula: str = "x") -> ak.AdditiveModel:
    model = ak.AdditiveModel(f"Surv(start, stop, event) ~ {formula}", times(late), family="cox")
    model.fit(times(late), verbose=0, solver="bcd")
    return model


@cache
def checked(late: float = 1.0, formula: str = "x") -> Check:
    return check(model_of(late, formula))


def as_response(data: pd.DataFrame) -> np.ndarray:
    return np.column_stack([data.stop, data.event, data.start, np.zeros(len(data))])


def test_residuals_are_those_of_the_predicted_curves() -> None:
    data, model, found = times(), model_of(), checked()
    frame = found.residuals
    known = ak.baseline(model)
    ratio = model.predict(data)

    def cumulative(time: np.ndarray, side: str) -> np.ndarray:
        place = np.searchsorted(known["time"], time, side=side)
        return np.concatenate([[0.0], known["hazard"]])[place]

    entered = cumulative(data.start, "right")
    before, after = (ratio * (cumulative(data.stop, side) - entered) for side in ("left", "right"))
    event = data.event.to_numpy() == 1
    np.testing.assert_allclose(frame["fitted"], ratio)
    np.testing.assert_allclose(frame["response"], event - after, atol=1e-9)  # martingale
    u = stats.norm.cdf(frame["quantile"])
    low = np.where(event, -np.expm1(-before), -np.expm1(-after))
    high = np.where(event, -np.expm1(-after), 1.0)
    assert ((u >= low - 1e-9) & (u <= high + 1e-9)).all()
    share = (u - low)[high > low] / (high - low)[high > low]
    assert stats.kstest(share, "uniform").pvalue > 0.01
    assert stats.kstest(frame["quantile"], "norm").pvalue > 0.01
    squares = 2 * (after - event + np.where(event, -np.log(np.where(event, after, 1.0)), 0.0))
    np.testing.assert_allclose(frame["deviance"] ** 2, squares, atol=1e-8)
    assert (np.sign(frame["deviance"]) == np.sign(event - after)).all()


def test_kaplan_meier_is_that_of_statsmodels() -> None:
    duration = pytest.importorskip("statsmodels.duration.api")
    data = times()
    own = as_response(data.assign(start=0.0))
    found = duration.SurvfuncRight(data.stop, data.event)
    for time in (0.1, 0.5, 1.2):
        place = np.searchsorted(found.surv_times, time, side="right") - 1
        survival, error = kaplan_meier(own, np.ones(len(own)), time)
        assert survival == pytest.approx(found.surv_prob[place])
        assert error == pytest.approx(found.surv_prob_se[place])
    assert np.isnan(kaplan_meier(own, np.ones(len(own)), 1e6)[0])
    assert kaplan_meier(own, np.ones(len(own)), 1e-9) == (1.0, 0.0)


def test_weights_count_rows_several_times() -> None:
    own = as_response(times().head(60))
    weight = np.random.default_rng(0).integers(1, 4, 60)
    repeated = np.repeat(own, weight, axis=0)
    found = kaplan_meier(own, weight.astype(float), 0.4)
    assert found == pytest.approx(kaplan_meier(repeated, np.ones(len(repeated)), 0.4))


def test_the_score_of_time_is_that_of_a_loop_over_events() -> None:
    data = times().head(120)
    own, values = as_response(data), data.x.to_numpy()
    ratio = np.exp(1.5 * values)
    residuals, variances, at = [], [], []
    for stop in data.stop[data.event == 1]:
        risk = (data.start < stop) & (data.stop >= stop)
        share = ratio[risk] / ratio[risk].sum()
        mean = share @ values[risk]
        residuals.append(values[(data.stop == stop).to_numpy()][0] - mean)
        variances.append(share @ (values[risk] - mean) ** 2)
        at.append(stop)
    residual, variance = np.array(residuals), np.array(variances)
    time = stats.rankdata(at) - np.average(stats.rankdata(at), weights=variance)
    z = residual @ time / np.sqrt(variance @ time**2)
    correlation, chance = schoenfeld_correlation(values, own, ratio, np.ones(120))
    assert chance == pytest.approx(2 * stats.norm.sf(abs(z)))
    assert correlation == pytest.approx(
        residual @ time / np.linalg.norm(residual) / np.linalg.norm(time)
    )


def test_a_term_without_variance_says_nothing() -> None:
    own = as_response(times())
    assert schoenfeld_correlation(np.ones(len(own)), own, np.ones(len(own)), np.ones(len(own)))[1] == 1


def test_hazards_that_are_not_proportional_are_found() -> None:
    assert checked().tests["ok"].all(), checked().verdicts
    found = checked(-0.5)
    assert any("Hazards are not proportional: the effect of `x` becomes weaker" in text
               for text in found.verdicts)  # fmt: skip


def test_a_missing_curve_is_found_by_survival_at_times() -> None:
    data = times()
    bent = data.assign(x=data.x.abs() ** 3 * 2 - 1)  # the effect of x is lost
    found = check(model_of(), bent)
    assert any("is not calibrated: where" in text for text in found.verdicts)


def test_events_are_those_expected_on_the_rows_of_the_fit() -> None:
    found = checked()
    np.testing.assert_allclose(found.frequencies["expected"], found.frequencies["observed"], rtol=1e-6)
    assert found.frequencies["observed"].sum() == times().event.sum()
    held = check(model_of(), times().assign(event=(np.arange(700) % 2) * times().event))
    assert any(text.startswith("Fewer events than the model says") for text in held.verdicts)
    assert held.frequencies["expected"].sum() == pytest.approx(times().event.sum(), rel=0.02)


def test_the_calibration_frame_has_a_line_per_time() -> None:
    frame = checked().calibration
    assert frame["time"].nunique() == 3
    assert frame.groupby("time")["rows"].sum().tolist() == [700] * 3
    assert frame[["fitted", "observed"]].stack().between(0, 1).all()
    assert checked().censored
    assert "Predictions and rows" in str(checked())


def test_rows_without_events_are_no_error() -> None:
    found = check(model_of(), times().assign(event=0))
    assert not len(found.calibration)
    assert not len(found.frequencies)
    assert any("Fewer events" in text for text in found.verdicts)


def test_chances_need_a_baseline() -> None:
    with pytest.raises(ak.errors.NotFittedError, match="baseline"):
        Cox().chances(as_response(times()), {"ratio": np.ones(700)})


def test_a_log_score_of_censored_times_is_refused() -> None:
    with pytest.raises(DataError, match=r"`ak\.concordance\(model, data\)` says how well"):
        ak.log_score(model_of())
