"""Deviances of `evaluate`, weights of rows, and what a fit gains on the null model."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from tests.model.short_fits import (
    FAMILIES,
    assert_same_weights,
    fit,
    new_model,
    unit_deviance,
    weights_differ,
)

# Weights of rows --------------------------------------------------------------------------------


@pytest.mark.parametrize("batch_size", [None, 50])
def test_whole_weights_are_repeated_rows(frame: pd.DataFrame, batch_size: int | None) -> None:
    model = new_model(frame)
    weight = np.random.default_rng(0).integers(0, 4, len(frame))
    repeated = frame.loc[frame.index.repeat(weight)]
    by_weight = model.evaluate(frame, sample_weight=weight, batch_size=batch_size, return_dict=True)
    by_rows = model.evaluate(repeated, batch_size=batch_size, return_dict=True)
    assert by_weight["deviance"] == pytest.approx(by_rows["deviance"], rel=1e-6)


def test_weight_by_name_or_values(frame: pd.DataFrame) -> None:
    model = new_model(frame)
    by_name = model.evaluate(frame, sample_weight="exposure")
    assert by_name == pytest.approx(model.evaluate(frame, sample_weight=frame.exposure))
    assert by_name != pytest.approx(model.evaluate(frame), rel=1e-6)


def test_weight_of_zero_leaves_a_row_out(frame: pd.DataFrame) -> None:
    spoilt = frame.copy()
    spoilt.loc[:50, "gaussian"] += 1e4
    weight = (np.arange(len(frame)) > 50).astype(float)
    options = {"sample_weight": weight, "validation_split": 0.0}
    first, second = new_model(frame), new_model(frame)
    fit(first, frame, **options)
    fit(second, spoilt, **options)
    assert_same_weights(first, second, rtol=1e-5, atol=1e-6)


def test_class_weight_is_the_weight_of_the_rows_of_a_class(frame: pd.DataFrame) -> None:
    formula, options = "bernoulli ~ s(x1, k=6)", {"validation_split": 0.0}
    first, second, third = (new_model(frame, formula, family="bernoulli") for _ in range(3))
    fit(first, frame, class_weight={0: 1.0, 1: 3.0}, **options)
    fit(second, frame, sample_weight=1.0 + 2.0 * frame.bernoulli, **options)
    fit(third, frame, **options)
    assert_same_weights(first, second, rtol=1e-4, atol=1e-6)
    assert weights_differ(first, third)


# Deviance ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_evaluated_deviance(frame: pd.DataFrame, family: str) -> None:
    model = new_model(frame, f"{family} ~ x1 + group + offset(log(exposure))", family=family)
    rng = np.random.default_rng(0)
    for weight in model.trainable_weights:
        weight.assign(0.5 * rng.normal(size=weight.shape))
    expected = unit_deviance(family, frame[family].to_numpy(float), model.predict(frame))
    for batch_size in (None, 50):
        found = model.evaluate(frame, batch_size=batch_size, return_dict=True)["deviance"]
        assert found == pytest.approx(expected.mean(), rel=1e-5)
    weight = rng.uniform(size=len(frame))
    found = model.evaluate(frame, sample_weight=weight, return_dict=True)["deviance"]
    assert found == pytest.approx(np.average(expected, weights=weight), rel=1e-5)


@pytest.mark.parametrize("batch_size", [None, 50, 100, 7])
def test_evaluated_deviance_after_a_fit(
    plain: ak.AdditiveModel, frame: pd.DataFrame, batch_size: int | None
) -> None:
    """A fit runs several steps in one call; evaluation has another number of steps."""
    expected = unit_deviance("gaussian", frame.gaussian.to_numpy(), plain.predict(frame)).mean()
    found = plain.evaluate(frame, batch_size=batch_size, return_dict=True)["deviance"]
    assert found == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("batch_size", [50, 100, 7])
def test_prediction_after_a_fit(plain: ak.AdditiveModel, frame: pd.DataFrame, batch_size: int) -> None:
    np.testing.assert_allclose(
        plain.predict(frame, batch_size=batch_size), plain.predict(frame), rtol=1e-6
    )


@pytest.fixture(scope="module")
def simulated() -> pd.DataFrame:
    """A strong effect for every family: the true mean halves the deviance, or nearly so."""
    rng = np.random.default_rng(7)
    data = pd.DataFrame({"x": rng.uniform(size=800), "exposure": rng.uniform(0.2, 5.0, 800)})
    eta = 2.5 * np.sin(2 * np.pi * data.x)
    data["gaussian"] = 1000 + 10 * (eta + rng.normal(size=800))
    data["bernoulli"] = (rng.random(800) < 1 / (1 + np.exp(-1.5 * eta))).astype(int)
    data["poisson"] = rng.poisson(data.exposure * np.exp(0.5 * eta))
    data["gamma"] = np.exp(0.5 * eta) * rng.gamma(4.0, 0.25, 800)
    return data


@pytest.mark.parametrize("family", FAMILIES)
def test_fit_improves_on_the_null_model(simulated: pd.DataFrame, family: str) -> None:
    offset = " + offset(log(exposure))" if family == "poisson" else ""
    model = new_model(simulated, f"{family} ~ s(x){offset}", family=family)
    y = simulated[family].to_numpy(float)
    null = np.full(len(y), y.mean())
    if family == "poisson":
        null = simulated.exposure.to_numpy() * y.sum() / simulated.exposure.sum()
    fit(model, simulated, epochs=20, batch_size=None)
    deviance = model.evaluate(simulated, return_dict=True)["deviance"]
    assert deviance < 0.6 * unit_deviance(family, y, null).mean()
    assert model.predict(simulated).mean() == pytest.approx(y.mean(), rel=0.1)


def test_exposure_recovers_a_rate() -> None:
    rng = np.random.default_rng(3)
    data = pd.DataFrame({"x": rng.uniform(size=3000), "t": rng.uniform(1, 20, 3000)})
    data["n"] = rng.poisson(data.t * np.exp(-1 + data.x))
    model = new_model(data, "n ~ x + offset(log(t))", family="poisson")
    fit(model, data, epochs=60, batch_size=None)
    rate = model.predict({"x": [0.0, 1.0], "t": 1.0})
    np.testing.assert_allclose(rate, np.exp([-1.0, 0.0]), rtol=0.08)
    np.testing.assert_allclose(model.predict({"x": [0.0, 1.0], "t": 7.0}), 7 * rate, rtol=1e-5)
