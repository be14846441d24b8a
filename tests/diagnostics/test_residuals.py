"""Residuals against closed forms, SciPy and the deviance."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from ahofm_keras.diagnostics.residuals import REACH, deviance_residuals, quantile_residuals
from ahofm_keras.families import get_family
from tests.families.cases import ONE

DRAWS = 20_000
DISPERSION = 0.4


def draws(name: str, weight: np.ndarray | float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Means, and responses drawn from the family's own distribution at them."""
    rng = np.random.default_rng(3)
    mean = rng.uniform(0.1, 0.9, DRAWS) if name == "bernoulli" else rng.uniform(0.3, 6.0, DRAWS)
    y = {
        "gaussian": lambda: rng.normal(mean, np.sqrt(DISPERSION / weight)),
        "bernoulli": lambda: (rng.random(DRAWS) < mean).astype(float),
        "poisson": lambda: rng.poisson(mean).astype(float),
        "gamma": lambda: rng.gamma(weight / DISPERSION, mean * DISPERSION / weight),
    }[name]()
    return mean, y


def quantile(
    name: str, y: np.ndarray, mean: np.ndarray, seed: int = 0, weight: object = 1.0
) -> np.ndarray:
    weights = np.broadcast_to(np.asarray(weight, float), np.shape(y))
    return quantile_residuals(get_family(name), y, mean, DISPERSION, weights, seed)[0]


@pytest.mark.parametrize("name", ONE)
def test_quantile_residuals_are_gaussian_at_the_truth_and_not_beside_it(name: str) -> None:
    mean, y = draws(name)
    assert stats.kstest(quantile(name, y, mean), "norm").pvalue > 1e-3
    wrong = mean**2 if name == "bernoulli" else 1.3 * mean
    assert stats.kstest(quantile(name, y, wrong), "norm").pvalue < 1e-6


@pytest.mark.parametrize("name", ["gaussian", "gamma"])
def test_weights_divide_the_dispersion(name: str) -> None:
    weight = np.where(np.arange(DRAWS) % 2, 5.0, 0.5)
    mean, y = draws(name, weight)
    assert stats.kstest(quantile(name, y, mean, weight=weight), "norm").pvalue > 1e-3
    assert stats.kstest(quantile(name, y, mean), "norm").pvalue < 1e-6


def test_of_a_gaussian_response_they_are_standardised_residuals_far_out_too() -> None:
    y = np.array([-25.0, -3.0, 0.0, 0.5, 9.0, 25.0]) * np.sqrt(DISPERSION) + 7
    expected = (y - 7) / np.sqrt(DISPERSION)
    np.testing.assert_allclose(quantile("gaussian", y, np.full(6, 7.0)), expected, atol=1e-9)


@pytest.mark.parametrize("name", ["bernoulli", "poisson"])
def test_of_whole_numbers_they_lie_between_two_steps_of_the_distribution(name: str) -> None:
    mean, y = draws(name)
    distribution = stats.bernoulli(mean) if name == "bernoulli" else stats.poisson(mean)
    low, high = (stats.norm.ppf(distribution.cdf(value)) for value in (y - 1, y))
    first, again, other = (quantile(name, y, mean, seed) for seed in (1, 1, 2))
    assert ((first >= low - 1e-9) & (first <= high + 1e-9)).all()
    np.testing.assert_array_equal(first, again)
    assert np.mean(first != other) > 0.99


def test_randomisation_has_nothing_to_do_with_data_of_the_same_seed() -> None:
    # All that a response of 0 at mean log(2) tells is which half of (0, 1) its quantile lies in.
    y, mean = np.zeros(500), np.full(500, np.log(2))
    share = 2 * stats.norm.cdf(quantile("poisson", y, mean, seed=0))
    assert abs(np.corrcoef(share, np.random.default_rng(0).uniform(size=500))[0, 1]) < 0.15


def test_impossible_responses_are_clipped_and_counted() -> None:
    y, mean = np.array([5000.0, 0.0, 2.0]), np.array([2.0, 5000.0, 2.0])
    found, clipped = quantile_residuals(get_family("poisson"), y, mean, 1.0, np.ones(3), 0)
    np.testing.assert_array_equal(found[:2], [REACH, -REACH])
    assert clipped == 2
    assert np.isfinite(found).all()


def _log_likelihood(name: str, y: np.ndarray, mean: np.ndarray, dispersion: float) -> float:
    """Written out; a mean of 0 or 1 is taken as its limit."""
    if name == "gaussian":
        return stats.norm(mean, np.sqrt(dispersion)).logpdf(y).sum()
    if name == "gamma":
        return stats.gamma(1 / dispersion, scale=mean * dispersion).logpdf(y).sum()
    if name == "poisson":
        return stats.poisson(np.maximum(mean, 1e-300)).logpmf(y).sum()
    return np.log(np.where(y == 1, mean, 1 - mean)).sum()


@pytest.mark.parametrize("name", ONE)
def test_squares_of_deviance_residuals_sum_to_the_deviance(name: str, right, frame) -> None:
    model, found = right(name)
    residuals = found.residuals
    mean = residuals["fitted"].to_numpy()
    log = _log_likelihood(name, frame[name].to_numpy(float), mean, model.fit_result.dispersion)
    best = _log_likelihood(
        name, frame[name].to_numpy(float), frame[name].to_numpy(float), model.fit_result.dispersion
    )
    total = 2 * model.fit_result.dispersion * (best - log)
    assert np.sum(residuals["deviance"] ** 2) == pytest.approx(total, rel=1e-6)
    assert np.sum(residuals["deviance"] ** 2) == pytest.approx(model.fit_result.deviance, rel=1e-5)
    assert (np.sign(residuals["deviance"]) == np.sign(residuals["response"])).all()


def test_deviance_residuals_have_the_roots_of_the_weights() -> None:
    mean, y = draws("gamma")
    weight = np.linspace(0.1, 4, DRAWS)
    ratio = y / mean
    expected = np.sign(y - mean) * np.sqrt(2 * weight * (ratio - 1 - np.log(ratio)))
    found = deviance_residuals(get_family("gamma"), y, mean, weight)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("name", ONE)
def test_a_fitted_model_of_the_right_form_has_gaussian_residuals(name: str, right, frame) -> None:
    _, found = right(name)
    assert stats.kstest(found.residuals["quantile"], "norm").pvalue > 1e-3
    np.testing.assert_array_equal(found.residuals["observed"], frame[name])


def test_fitted_values_are_the_models_predictions(right, frame) -> None:
    model, found = right("poisson")
    np.testing.assert_allclose(found.residuals["fitted"], model.predict(frame), rtol=1e-5)
    np.testing.assert_allclose(found.residuals["link"], np.log(found.residuals["fitted"]), atol=1e-9)
    difference = found.residuals["observed"] - found.residuals["fitted"]
    np.testing.assert_array_equal(found.residuals["response"], difference)


def test_leverages_sum_to_the_degrees_of_freedom(right) -> None:
    model, found = right("gaussian")
    leverage = found.residuals["leverage"]
    assert ((leverage > 0) & (leverage < 1)).all()
    assert leverage.sum() == pytest.approx(model.fit_result.edf, rel=0.01)
