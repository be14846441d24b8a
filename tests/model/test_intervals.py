"""`predict(interval=)`: bands of the mean, predictive intervals, saved and exported."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from scipy import stats

import ahofm_keras as ak
from ahofm_keras.families import get_family
from tests.families.cases import ONE

COLUMNS = ["mean", "lower", "upper", "predictive_lower", "predictive_upper"]


def test_columns_and_their_order(fitted: ak.AdditiveModel, frame: pd.DataFrame) -> None:
    band = fitted.predict(frame, interval=0.9)
    assert list(band) == COLUMNS
    np.testing.assert_allclose(band["mean"], fitted.predict(frame), rtol=1e-6)
    assert (band.lower < band["mean"]).all()
    assert (band["mean"] < band.upper).all()
    assert (band.predictive_lower <= band.predictive_upper).all()
    assert band.index.equals(frame.index)


def test_a_higher_level_is_wider(fitted: ak.AdditiveModel, frame: pd.DataFrame) -> None:
    narrow, wide = (fitted.predict(frame, interval=level) for level in (0.5, 0.99))
    assert (wide.lower < narrow.lower).all()
    assert (wide.upper > narrow.upper).all()
    assert (wide.predictive_lower <= narrow.predictive_lower).all()


def test_link_has_a_standard_error(fitted: ak.AdditiveModel, frame: pd.DataFrame) -> None:
    link = fitted.predict(frame, type="link", interval=0.95)
    band = fitted.predict(frame, interval=0.95)
    np.testing.assert_allclose(link.upper - link.link, 1.959964 * link.se, rtol=1e-6)
    inverse = fitted.family.inverse_link
    np.testing.assert_allclose(band.lower, inverse(link.lower.to_numpy(), np), rtol=1e-9)


def test_intervals_need_a_posterior(frame: pd.DataFrame) -> None:
    model = ak.AdditiveModel("gaussian ~ s(x1, k=6)", frame)
    with pytest.raises(ak.NotFittedError, match="conformal"):
        model.predict(frame, interval=0.95)
    model.fit(frame, verbose=0)
    first = model.predict(frame, interval=0.95)
    with pytest.warns(ak.AhofmWarning):
        model.fit(frame, solver="adam", epochs=1, verbose=0)
    assert not model.predict(frame, interval=0.95).equals(first)
    dataset = tf.data.Dataset.from_tensor_slices(({"x1": frame.x1}, frame.gaussian)).batch(60)
    with pytest.warns(ak.AhofmWarning):
        model.fit(dataset, epochs=1, verbose=0)
    with pytest.raises(ak.NotFittedError, match="conformal"):
        model.predict(frame, interval=0.95)


@pytest.mark.parametrize("level", [0, 1, -0.5, 95, True, "0.95", np.nan])
def test_levels_that_are_none(fitted: ak.AdditiveModel, frame: pd.DataFrame, level: object) -> None:
    with pytest.raises(ak.DataError, match="between 0 and 1"):
        fitted.predict(frame, interval=level)


def test_terms_have_no_interval(fitted: ak.AdditiveModel, frame: pd.DataFrame) -> None:
    with pytest.raises(ak.DataError, match="type="):
        fitted.predict(frame, type="terms", interval=0.95)


@pytest.mark.parametrize("name", ONE)
@pytest.mark.parametrize("probability", [0.025, 0.5, 0.975])
def test_predictive_quantiles_against_draws(name: str, probability: float) -> None:
    """Of a response whose predictor has mean 0.7 and standard deviation 0.6."""
    family, rng = get_family(name), np.random.default_rng(0)
    eta = rng.normal(0.7, 0.6, 400_000)
    draws = family.distribution(family.inverse_link(eta, np), 0.3).rvs(random_state=rng)
    found = family.predictive_quantile(np.array([0.7]), np.array([0.6]), 0.3, probability)
    assert found == pytest.approx(np.quantile(draws, probability), rel=0.03, abs=0.02)


@pytest.mark.parametrize("name", ONE)
def test_without_uncertainty_quantiles_are_the_familys(name: str) -> None:
    family, link = get_family(name), np.linspace(-1, 2, 7)
    expected = family.distribution(family.inverse_link(link, np), 0.4).ppf(0.9)
    found = family.predictive_quantile(link, np.zeros(7), 0.4, 0.9)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_predictive_interval_of_a_gaussian_is_exact() -> None:
    found = get_family("gaussian").predictive_quantile(np.array([1.0]), np.array([3.0]), 16.0, 0.975)
    assert found == pytest.approx(1 + 5 * stats.norm.ppf(0.975))


def test_counts_that_a_smooth_cannot_reach_have_intervals() -> None:
    """No counts in nine tenths of the range: standard errors of 8 on the scale of the logarithm."""
    x = np.random.default_rng(0).uniform(size=500)
    data = pd.DataFrame({"x": x, "y": np.where(x > 0.9, 3.0, 0.0)})
    model = ak.AdditiveModel("y ~ s(x)", data, family="poisson")
    model.fit(data, verbose=0)
    assert np.isfinite(model.predict(data, interval=0.95)).all(axis=None)
