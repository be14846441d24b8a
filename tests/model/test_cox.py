"""Proportional hazards: against the partial likelihood, statsmodels and mgcv; what is read of a fit."""

from __future__ import annotations

import itertools
import json
import warnings
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from scipy.optimize import minimize

import ahofm_keras as ak
from ahofm_keras.families.baseline import Baseline, baseline_hazard, partial_log_likelihood


def make_times(rows: int = 120, seed: int = 3) -> pd.DataFrame:
    """The rows of the stored fits below: `make_times().to_csv("times.csv", index=False)`."""
    rng = np.random.default_rng(seed)
    x, z = rng.uniform(size=(2, rows)).round(3)
    time = rng.exponential(size=rows) / np.exp(1.5 * np.sin(6 * x) - z)
    censored = rng.exponential(2.0, size=rows)
    time, event = np.ceil(np.minimum(time, censored) * 20) / 20, (time <= censored).astype(int)
    return pd.DataFrame({"x": x, "z": z, "time": time, "event": event})


DATA = make_times()
LATE = DATA.assign(start=np.where(np.arange(len(DATA)) % 3 == 0, DATA.time / 2 + 0.001, 0.0))
# from statsmodels.duration.hazard_regression import PHReg
# PHReg(d.time, d[["x", "z"]], status=d.event, ties="breslow").fit(), 0.14.5: params, bse, llf;
# the second with entry=d.start, within every third time.
PHREG = ([-2.15412439, -1.63553372], [0.48147072, 0.5177968], -224.15057372381168)
PHREG_LATE = ([-1.79205293, -1.19680863], [0.48869334, 0.52839084], -212.48678529050204)


def fitted(
    formula: str = "Surv(time, event) ~ x + z",
    data: pd.DataFrame = DATA,
    solver: str = "bcd",
    **kwargs: Any,
) -> ak.AdditiveModel:
    model = ak.AdditiveModel(formula, data, family="cox")
    model.fit(data, verbose=0, solver=solver, **kwargs)
    return model


@pytest.fixture(scope="module")
def model() -> ak.AdditiveModel:
    return fitted("Surv(time, event) ~ s(x) + z", solver="variational")


def slopes(model: ak.AdditiveModel, data: pd.DataFrame = DATA) -> np.ndarray:
    columns = np.column_stack([np.ones(len(data)), data.x, data.z])
    return np.linalg.lstsq(columns, model.predict(data, type="link"), rcond=None)[0][1:]


# The estimate


@pytest.mark.parametrize("solver", ["bcd", "variational"])
@pytest.mark.parametrize("late", [False, True])
def test_is_that_of_statsmodels(solver: str, late: bool) -> None:
    data, formula = (LATE, "Surv(start, time, event) ~ x + z") if late else (DATA, None)
    model = fitted(formula, data, solver) if formula else fitted(data=data, solver=solver)
    coefficients, errors, likelihood = PHREG_LATE if late else PHREG
    np.testing.assert_allclose(slopes(model, data), coefficients, atol=2e-3)
    covariance = ak.vcov(model)
    found = [np.sqrt(covariance.loc[name, name]) for name in ("x", "z")]
    np.testing.assert_allclose(found, errors, rtol=2e-3)
    assert model.fit_result.log_likelihood == pytest.approx(likelihood, abs=1e-4)
    assert model.fit_result.edf == pytest.approx(2.0, abs=1e-6)


STORED = json.loads(
    (Path(__file__).parent.parent / "fixtures" / "statsmodels_families.json").read_text()
)


@pytest.mark.parametrize("solver", ["bcd", "variational"])
@pytest.mark.parametrize("late", [False, True])
def test_efrons_ties_are_those_of_statsmodels(solver: str, late: bool) -> None:
    """Times of `fixtures/statsmodels_families.py`: 300 rows at 20 different ones."""
    data, wanted = pd.DataFrame(STORED["data"]), STORED["fits"]["cox_late" if late else "cox"]
    response = "Surv(start, time, event)" if late else "Surv(time, event)"
    model = ak.AdditiveModel(f"{response} ~ x + z", data, family=ak.families.Cox(ties="efron"))
    model.fit(data, verbose=0, solver=solver)
    np.testing.assert_allclose(slopes(model, data), wanted["ratio"], atol=2e-3)
    covariance = ak.vcov(model)
    found = [np.sqrt(covariance.loc[name, name]) for name in ("x", "z")]
    np.testing.assert_allclose(found, wanted["errors"], rtol=2e-3)
    assert model.fit_result.log_likelihood == pytest.approx(wanted["log_likelihood"], abs=1e-4)
    other = fitted(f"{response} ~ x + z", data, solver)
    assert np.abs(slopes(other, data) - wanted["ratio"]).max() > 0.01


def brute_efron(y: np.ndarray, eta: np.ndarray, weight: np.ndarray) -> float:
    """Efron's partial log-likelihood, as its definition has it."""
    total = 0.0
    for time in np.unique(y[y[:, 1] > 0, 0]):
        tied = np.flatnonzero((y[:, 1] > 0) & (y[:, 0] == time))
        risk = np.flatnonzero((y[:, 2] < time) & (time <= y[:, 0]))
        hazards = weight * np.exp(eta)
        total += weight[tied] @ eta[tied]
        for place in range(len(tied)):
            left = hazards[risk].sum() - place / len(tied) * hazards[tied].sum()
            total -= weight[tied].mean() * np.log(left)
    return total


def test_efrons_likelihood_is_its_definition_and_its_poisson_score_the_derivative() -> None:
    rng = np.random.default_rng(0)
    stop = np.ceil(rng.uniform(0, 8, 40)) / 2
    start = np.where(rng.uniform(size=40) < 0.3, stop / 2, 0.0)
    y = np.column_stack([stop, rng.integers(0, 2, 40), start, np.zeros(40)])
    eta, weight = rng.normal(size=40), rng.uniform(0.5, 2, 40)
    assert partial_log_likelihood(y, eta, weight, "efron") == pytest.approx(brute_efron(y, eta, weight))
    family = ak.families.Cox(ties="efron")
    parameters = {"ratio": np.exp(eta)}
    given = family.given(y, family.learn_nuisance(y, parameters, weight))
    score = weight * family.score(given, parameters)["ratio"] * np.exp(eta)
    step = 1e-5 * np.eye(40)
    slopes = [brute_efron(y, eta + own, weight) - brute_efron(y, eta - own, weight) for own in step]
    np.testing.assert_allclose(score, np.array(slopes) / 2e-5, atol=1e-7)
    # Poisson information less that of the nuisance is minus the second derivative.
    functions = rng.normal(size=(40, 2))
    exposed = family.information(given, parameters)["ratio"] * np.exp(2 * eta) * weight
    found = functions.T @ (exposed[:, None] * functions)
    found -= family.nuisance_information(given, functions, parameters, weight)
    ends = [1e-3 * functions @ own for own in ([1, 1], [1, -1], [-1, 1], [-1, -1])]
    values = [brute_efron(y, eta + own, weight) for own in ends]
    mixed = (values[0] - values[1] - values[2] + values[3]) / 4e-6
    assert -mixed == pytest.approx(found[0, 1], rel=1e-4)


def test_without_ties_both_forms_are_one() -> None:
    data = DATA.assign(time=DATA.time + np.linspace(0, 1e-3, len(DATA)))
    eta = [
        fitted_by(ties, data).predict(data, type="link", interval=0.9) for ties in ("breslow", "efron")
    ]
    pd.testing.assert_frame_equal(*eta)


def fitted_by(ties: str, data: pd.DataFrame) -> ak.AdditiveModel:
    family = ak.families.Cox(ties=ties)
    model = ak.AdditiveModel("Surv(time, event) ~ s(x) + z", data, family=family)
    model.fit(data, verbose=0, solver="variational")
    return model


def test_efrons_model_survives_its_file(tmp_path: Any) -> None:
    model = fitted_by("efron", DATA)
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert repr(again.family) == "Cox(link='log', ties='efron')" == repr(model.family)
    assert again.evaluate(DATA) == model.evaluate(DATA)
    pd.testing.assert_frame_equal(ak.survival(again, DATA), ak.survival(model, DATA))
    assert ak.check(model).censored
    with pytest.raises(
        ak.DataError, match=r"`ties` .* `breslow`, `efron`.*'effron'. Did you mean `efron`"
    ):
        ak.families.Cox(ties="effron")


def brute_partial(y: np.ndarray, eta: np.ndarray, weight: np.ndarray) -> float:
    """The partial log-likelihood, as its definition has it."""
    total = 0.0
    for row in np.flatnonzero(y[:, 1] > 0):
        at_risk = [k for k in range(len(y)) if y[k, 2] < y[row, 0] <= y[k, 0]]
        total += weight[row] * (eta[row] - np.log(sum(weight[k] * np.exp(eta[k]) for k in at_risk)))
    return total


def test_partial_likelihood_and_baseline_are_those_of_their_definitions() -> None:
    rng = np.random.default_rng(0)
    stop = np.ceil(rng.uniform(0, 8, 40)) / 2
    start = np.where(rng.uniform(size=40) < 0.3, stop / 2, 0.0)
    y = np.column_stack([stop, rng.integers(0, 2, 40), start, np.zeros(40)])
    eta, weight = rng.normal(size=40), rng.uniform(0.5, 2, 40)
    assert partial_log_likelihood(y, eta, weight) == pytest.approx(brute_partial(y, eta, weight))
    known = baseline_hazard(y, np.exp(eta), weight)
    for time, hazard in zip(known.times, known.hazard, strict=True):
        wanted = 0.0
        for row in np.flatnonzero((y[:, 1] > 0) & (stop <= time)):
            risk = (start < stop[row]) & (stop[row] <= stop)
            wanted += weight[row] / np.sum(weight[risk] * np.exp(eta[risk]))
        assert hazard == pytest.approx(wanted)


@pytest.mark.parametrize("seed", range(3))
def test_is_the_optimum_of_the_partial_likelihood(seed: int) -> None:
    data = make_times(40, seed)
    model = fitted(data=data, solver="variational")
    y = model.family.encode(data[["time", "event"]].to_numpy(), "y")
    columns = data[["x", "z"]].to_numpy()
    wanted = minimize(lambda b: -brute_partial(y, columns @ b, np.ones(len(y))), np.zeros(2))
    np.testing.assert_allclose(slopes(model, data), wanted.x, atol=2e-3)


def test_a_monotone_function_of_time_changes_nothing() -> None:
    other = fitted("Surv(time, event) ~ s(x) + z", DATA.assign(time=np.exp(DATA.time) ** 2))
    wanted = fitted("Surv(time, event) ~ s(x) + z")
    np.testing.assert_array_equal(other.predict(DATA, type="link"), wanted.predict(DATA, type="link"))


def test_a_weight_of_2_is_the_row_twice() -> None:
    weight = np.where(np.arange(len(DATA)) % 4 == 0, 2.0, 1.0)
    model = ak.AdditiveModel("Surv(time, event) ~ x + z", DATA, family="cox")
    model.fit(DATA, verbose=0, solver="variational", sample_weight=weight)
    other = ak.AdditiveModel("Surv(time, event) ~ x + z", DATA, family="cox")
    twice = DATA.loc[DATA.index.repeat(weight.astype(int))]
    other.fit(twice, verbose=0, solver="variational")
    np.testing.assert_allclose(
        model.predict(DATA, type="link"), other.predict(DATA, type="link"), atol=1e-4
    )
    np.testing.assert_allclose(ak.baseline(model).hazard, ak.baseline(other).hazard, rtol=1e-4)
    assert model.fit_result.log_likelihood == pytest.approx(other.fit_result.log_likelihood, rel=1e-6)


def test_agrees_with_mgcv() -> None:
    """library(mgcv); d <- read.csv("times.csv")
    b <- gam(time ~ s(x, bs="ps", k=10) + z, family=cox.ph, weights=event, data=d, method="REML")
    new <- data.frame(x=seq(0.05, 0.95, length.out=7), z=0.5)
    predict(b, new, type="link") - mean(predict(b, type="link")); sum(b$edf)
    """
    wanted = [0.07008008, 1.386536, 1.323344, 0.2142829, -0.8249822, -1.24878, -0.7662142]
    model = fitted("Surv(time, event) ~ s(x, k=10, knots='even') + z", solver="variational")
    new = {"x": np.linspace(0.05, 0.95, 7), "z": 0.5}
    link = model.predict(new, type="link")
    # The smoothing is chosen by other criteria: within a fraction of the standard errors, 0.29 to 0.67.
    np.testing.assert_allclose(link, wanted, atol=0.12)
    assert model.fit_result.edf == pytest.approx(4.921305, rel=0.15)


def test_adam_agrees() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = fitted(solver="adam", validation_split=0.0, epochs=40)
    np.testing.assert_allclose(slopes(model), PHREG[0], atol=0.15)


@pytest.mark.slow
def test_recovers_an_interaction() -> None:
    rng = np.random.default_rng(1)
    rows = 1500
    data = pd.DataFrame({"a": rng.uniform(size=rows), "b": rng.uniform(size=rows)})
    truth = 2 * np.sin(5 * data.a) * (data.b - 0.5) + data.b
    time, censored = rng.exponential(size=(2, rows)) * np.stack([np.exp(-truth), np.full(rows, 2.0)])
    data["t"], data["e"] = np.minimum(time, censored), time <= censored
    model = fitted("Surv(t, e) ~ ahofm(a, b)", data, solver="variational", restarts=0)
    assert np.corrcoef(model.predict(data, type="link"), truth)[0, 1] > 0.95
    best = np.corrcoef(np.argsort(np.argsort(truth)), np.argsort(np.argsort(data.t)))[0, 1]
    assert best < -0.3
    assert ak.concordance(model) > 0.6


def test_likelihood_is_the_same_in_keras_and_its_derivative_the_score() -> None:
    family = ak.families.get_family("cox")
    y = family.encode(LATE[["start", "time", "event"]].to_numpy(), "y")
    ratio = np.exp(np.linspace(-8, 8, len(y)))
    found = family.log_density(y, {"ratio": ratio})
    tensors = keras.ops.convert_to_tensor(y), {"ratio": keras.ops.convert_to_tensor(ratio)}
    np.testing.assert_allclose(family.log_density(*tensors, keras.ops), found, rtol=1e-12)
    deviance = family.unit_deviance(*tensors[:1], tensors[1]["ratio"], keras.ops)
    np.testing.assert_allclose(deviance, family.unit_deviance(y, ratio), rtol=1e-12)
    assert (family.unit_deviance(y, ratio) >= -1e-12).all()
    step = 1e-6 * ratio
    ends = [family.log_density(y, {"ratio": ratio + side}) for side in (step, -step)]
    score = family.score(y, {"ratio": ratio})["ratio"]
    np.testing.assert_allclose((ends[0] - ends[1]) / (2 * step), score, rtol=1e-5, atol=1e-6)
    # A Poisson variable with the mean mu has the information mu on its logarithm.
    information = family.information(y, {"ratio": ratio})["ratio"] * ratio**2
    np.testing.assert_allclose(information, y[:, 3] * ratio)


# What is read of a fit


def test_the_average_predictor_is_0(model: ak.AdditiveModel) -> None:
    assert model.predict(DATA, type="link").mean() == pytest.approx(0.0, abs=1e-6)
    np.testing.assert_allclose(model.predict(DATA), np.exp(model.predict(DATA, type="link")))


def test_the_baseline_is_that_of_the_fitted_ratios(model: ak.AdditiveModel) -> None:
    ratio = model.predict(DATA)
    table = ak.baseline(model)
    assert list(table.columns) == ["time", "hazard", "survival"]
    for time, hazard in zip(table.time, table.hazard, strict=True):
        events = DATA[(DATA.event == 1) & (DATA.time <= time)].time
        wanted = sum(1 / ratio[DATA.time >= own].sum() for own in events)
        assert hazard == pytest.approx(wanted, rel=1e-5)


def test_survival_curves_follow_from_it(model: ak.AdditiveModel) -> None:
    new = DATA.iloc[[4, 9]]
    table = ak.baseline(model)
    frame = ak.survival(model, new)
    for row, ratio in zip((4, 9), model.predict(new), strict=True):
        own = frame[frame.row == row]
        assert own.survival.iloc[0] == 1.0
        np.testing.assert_allclose(own.survival.iloc[1:], np.exp(-ratio * table.hazard), rtol=1e-6)
    band = ak.survival(model, new, times=[0.5, 1.0], interval=0.9)
    assert ((band.lower < band.survival) & (band.survival < band.upper)).all()
    assert np.isnan(ak.survival(model, new, times=[1e6]).survival).all()


def test_quantiles_are_where_the_curve_passes(model: ak.AdditiveModel) -> None:
    found = model.predict(DATA, type="quantile", q=[0.25, 0.5, 0.999])
    frame = ak.survival(model, DATA)
    for place, chance in enumerate((0.25, 0.5, 0.999)):
        for row, time in enumerate(found[:, place]):
            own = frame[frame.row == row]
            passed = own.time[own.survival <= 1 - chance]
            assert time == (passed.min() if len(passed) else np.inf)
    assert np.isinf(found[:, 2]).any()
    assert np.isfinite(found[:, 0]).any()
    distribution = model.predict(DATA, type="distribution")
    np.testing.assert_allclose(distribution.quantile(0.25), found[:, 0])


def test_predictive_intervals_are_of_times(model: ak.AdditiveModel) -> None:
    band = model.predict(DATA, interval=0.8)
    distribution = model.predict(DATA, type="distribution")
    assert (band.predictive_lower <= distribution.quantile(0.5)).all()
    assert (band.predictive_upper >= distribution.quantile(0.5)).all()
    covered = (DATA.time >= band.predictive_lower) & (DATA.time <= band.predictive_upper)
    assert covered[DATA.event == 1].mean() > 0.6


def test_concordance_counts_pairs(model: ak.AdditiveModel) -> None:
    eta = model.predict(DATA, type="link")
    right, pairs = 0.0, 0
    time, event = DATA.time.to_numpy(), DATA.event.to_numpy()
    for i, j in itertools.permutations(range(len(DATA)), 2):
        if event[i] and (time[i] < time[j] or (time[i] == time[j] and not event[j])):
            pairs += 1
            right += 1.0 if eta[i] > eta[j] else 0.5 * (eta[i] == eta[j])
    assert ak.concordance(model) == pytest.approx(right / pairs)
    assert ak.concordance(model, DATA) == pytest.approx(right / pairs)
    beside = ak.concordance(model, DATA[["x", "z"]], DATA[["time", "event"]])
    assert beside == pytest.approx(right / pairs)


def test_a_constant_model_ranks_nobody() -> None:
    assert ak.concordance(fitted("Surv(time, event) ~ 1")) == 0.5


def test_survives_its_file_and_its_export(model: ak.AdditiveModel, tmp_path: Any) -> None:
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    pd.testing.assert_frame_equal(
        ak.survival(again, DATA, interval=0.9), ak.survival(model, DATA, interval=0.9)
    )
    assert again.evaluate(DATA) == model.evaluate(DATA)
    model.export(tmp_path / "served")
    served = tf.saved_model.load(str(tmp_path / "served"))
    columns = {name: tf.constant(DATA[name].to_numpy()) for name in ("x", "z")}
    found = served.signatures["serving_default"](**columns)
    np.testing.assert_allclose(found["response"], model.predict(DATA), rtol=1e-6)


def test_a_second_fit_goes_on(model: ak.AdditiveModel) -> None:
    before = model.predict(DATA, type="link", interval=0.9)
    again = fitted("Surv(time, event) ~ s(x) + z", solver="variational")
    again.fit(DATA, verbose=0, solver="variational")
    after = again.predict(DATA, type="link", interval=0.9)
    np.testing.assert_allclose(after["link"], before["link"], atol=0.02)
    np.testing.assert_allclose(after["se"], before["se"], rtol=0.05)


def test_deviance_is_that_of_deviance_residuals(model: ak.AdditiveModel) -> None:
    known = Baseline.from_json(model.fit_result.nuisance)
    expected = model.predict(DATA) * known.at(DATA.time)
    martingale = DATA.event - expected
    assert martingale.sum() == pytest.approx(0, abs=1e-4)
    logarithm = np.log(np.where(DATA.event == 1, expected, 1.0))
    residuals = -2 * (martingale + DATA.event * logarithm)
    assert model.fit_result.deviance == pytest.approx(residuals.sum(), rel=1e-5)


def test_summary_and_picture(model: ak.AdditiveModel) -> None:
    import matplotlib.pyplot as plt

    from ahofm_keras.plotting import plot_survival

    assert "s(x)" in str(ak.summary(model))
    ax = plot_survival(model, DATA.iloc[:3])
    assert len(ax.get_lines()) == 3
    plt.close("all")
    with pytest.raises(ak.DataError, match="up to 7"):
        plot_survival(model, DATA)


# Bad input

BAD = {
    "event of 2": ({"event": 2}, r"must be 1 \(event\) or 0"),
    "event as text": ({"event": "dead"}, "`event`"),
    "time of 0": ({"time": 0.0}, "must be above 0"),
    "negative time": ({"time": -1.0}, "must be above 0"),
    "missing time": ({"time": np.nan}, "missing"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_rows_are_refused(case: str) -> None:
    values, message = BAD[case]
    data = DATA.astype({"event": object})
    for name, value in values.items():
        data.loc[3, name] = value
    with pytest.raises(ak.DataError, match=message):
        ak.AdditiveModel("Surv(time, event) ~ x", data, family="cox")


@pytest.mark.parametrize(
    ("formula", "data", "message"),
    [
        ("Surv(time, event) ~ x", DATA.assign(event=0), "no events"),
        ("Surv(time, event) ~ x", DATA.assign(time=1.0), "at one time"),
        ("Surv(time, event) ~ x", DATA.assign(event=DATA.event + 1), "event - 1"),
        ("Surv(start, time, event) ~ x", LATE.assign(start=LATE.time), "before the stop times"),
        ("time ~ x", DATA, r"`Surv\(time, event\)`"),
    ],
)
def test_what_nothing_can_be_learned_from_is_refused(
    formula: str, data: pd.DataFrame, message: str
) -> None:
    with pytest.raises(ak.DataError, match=message):
        ak.AdditiveModel(formula, data, family="cox")


def batches(response: bool = True) -> tf.data.Dataset:
    columns = {"x": DATA.x.to_numpy(), "z": DATA.z.to_numpy()}
    times = DATA[["time", "event"]].to_numpy(float)
    return tf.data.Dataset.from_tensor_slices((columns, times) if response else columns).batch(32)


ACTIONS: dict[str, tuple[Any, str]] = {
    "fit on batches": (lambda model: model.fit(batches(), verbose=0), "batch by batch"),
    "validation in batches": (lambda model: model.fit(DATA, validation_data=batches(), verbose=0), "batch by batch"),
    "evaluation of batches": (lambda model: model.evaluate(batches()), "batch by batch"),
    "conformal": (lambda model: model.predict(DATA, interval=0.9, method="conformal", calibration=DATA), "those of the cox family are censored"),
    "curves of a mean": (lambda model: ak.survival(fitted_gaussian(), DATA), "those of the cox family"),
    "times before 0": (lambda model: ak.survival(model, DATA, times=[-1]), "times"),
}  # fmt: skip


@pytest.mark.parametrize("case", ACTIONS)
def test_what_a_censored_response_cannot_have_is_refused(case: str, model: ak.AdditiveModel) -> None:
    action, message = ACTIONS[case]
    with pytest.raises(ak.DataError, match=message):
        action(model)


def test_batches_without_a_response_are_predicted(model: ak.AdditiveModel) -> None:
    np.testing.assert_allclose(model.predict(batches(response=False)), model.predict(DATA), rtol=1e-6)


def fitted_gaussian() -> ak.AdditiveModel:
    model = ak.AdditiveModel("time ~ x", DATA)
    model.fit(DATA, verbose=0)
    return model


def test_other_weights_have_no_baseline(tmp_path: Path) -> None:
    model = fitted()
    model.set_weights([0.5 * weight for weight in model.get_weights()])
    with pytest.raises(ak.NotFittedError, match="call `fit` first"):
        ak.baseline(model)


def test_the_distribution_has_the_moments_of_the_observed_span(model: ak.AdditiveModel) -> None:
    """Mean and variance of the time until the event or the end of observation, by draws; no density."""
    found = model.predict(DATA[:3], type="distribution")
    last = DATA.time.max()
    draws = np.minimum(found.sample(20_000, seed=0), last)
    np.testing.assert_allclose(found.mean(), draws.mean(axis=0), rtol=0.02)
    np.testing.assert_allclose(found.var(), draws.var(axis=0), rtol=0.05)
    np.testing.assert_allclose(found.std() ** 2, found.var())
    for what in (found.log_prob, found.crps):
        with pytest.raises(ak.DataError, match="steps at the times of events"):
            what(np.ones(3))
    assert ak.explain(model, DATA[:1]).headline.startswith("hazard ratio: predicted")
