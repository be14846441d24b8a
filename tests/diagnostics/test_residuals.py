"""Residuals against closed forms, SciPy and the deviance."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from ahofm_keras.diagnostics.checked_rows import CheckedRows
from ahofm_keras.diagnostics.curves import pit_frame
from ahofm_keras.diagnostics.residuals import (
    REACH,
    deviance_residuals,
    parameter_residuals,
    quantile_residuals,
)
from ahofm_keras.families import Family, get_family
from tests.simulated import SIMULATED, simulate

from .conftest import FAMILIES as ONE

DRAWS = 5_000
DISPERSION = 0.4


def quantile(name: str, y: np.ndarray, parameters: dict[str, np.ndarray], seed: int = 0) -> np.ndarray:
    return quantile_residuals(get_family(name), y, parameters, seed)[0]


def around(mean: np.ndarray, weight: np.ndarray | float = 1.0) -> dict[str, np.ndarray]:
    return {"mean": mean, "dispersion": DISPERSION / weight + 0 * mean}


def draws(name: str, weight: np.ndarray | float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Means, and responses drawn from the family's own distribution at them."""
    rng = np.random.default_rng(3)
    mean = rng.uniform(0.1, 0.9, DRAWS) if name == "bernoulli" else rng.uniform(0.3, 6.0, DRAWS)
    y = get_family(name).distribution_of(around(mean, weight)).rvs(random_state=rng)
    return mean, y.astype(float)


@pytest.mark.parametrize("name", SIMULATED)
def test_quantile_residuals_are_gaussian_at_the_truth_and_not_beside_it(name: str) -> None:
    data, parameters = simulate(name, DRAWS, seed=3)
    found = quantile(name, data.y.to_numpy(), parameters)
    assert stats.kstest(found, "norm").pvalue > 1e-3
    # The probability integral transform is uniform, and the features know nothing of the residuals.
    assert stats.chisquare(pit_frame(found)["rows"]).pvalue > 1e-3
    assert abs(stats.spearmanr(data.x, found).statistic) < 0.05
    assert abs(stats.spearmanr(data.x**2, np.abs(found)).statistic) < 0.05
    for parameter, values in parameters.items():
        family = get_family(name)
        if parameter in family.parameters:
            link = family.parameters[parameter]
            shift = 0.7 if parameter == next(iter(family.parameters)) else -2.0
            wrong = {**parameters, parameter: link.inverse(link.function(values, np) + shift, np)}
            assert stats.kstest(quantile(name, data.y.to_numpy(), wrong), "norm").pvalue < 1e-3


@pytest.mark.parametrize("name", SIMULATED)
def test_scores_of_parameters_have_mean_0_and_variance_1(name: str) -> None:
    family = get_family(name)
    if len(family.parameters) == 1:
        pytest.skip("of one parameter they are residuals of the deviance")
    data, parameters = simulate(name, DRAWS, seed=4)
    rows = rows_at(family, data.y.to_numpy(), parameters)
    for column, values in parameter_residuals(rows).items():
        assert column.startswith("score_")
        assert abs(values.mean()) < 5 * values.std() / np.sqrt(DRAWS)
        squares = values**2
        assert abs(squares.mean() - 1) < 5 * squares.std() / np.sqrt(DRAWS) + 0.02


def rows_at(family: Family, y: np.ndarray, parameters: dict[str, np.ndarray]) -> CheckedRows:
    """Rows of known parameters."""
    links = {name: link.function(parameters[name], np) for name, link in family.parameters.items()}
    return CheckedRows({}, y, np.ones(len(y)), np.arange(len(y)), "", True, 0, family, links, None, 1.0)


@pytest.mark.parametrize("name", ["gaussian", "gamma"])
def test_weights_divide_the_dispersion(name: str) -> None:
    weight = np.where(np.arange(DRAWS) % 2, 5.0, 0.5)
    mean, y = draws(name, weight)
    assert stats.kstest(quantile(name, y, around(mean, weight)), "norm").pvalue > 1e-3
    assert stats.kstest(quantile(name, y, around(mean)), "norm").pvalue < 1e-6


def test_of_a_gaussian_response_they_are_standardised_residuals_far_out_too() -> None:
    y = np.array([-25.0, -3.0, 0.0, 0.5, 9.0, 25.0]) * np.sqrt(DISPERSION) + 7
    expected = (y - 7) / np.sqrt(DISPERSION)
    np.testing.assert_allclose(quantile("gaussian", y, around(np.full(6, 7.0))), expected, atol=1e-9)


@pytest.mark.parametrize("name", ["bernoulli", "poisson"])
def test_of_whole_numbers_they_lie_between_two_steps_of_the_distribution(name: str) -> None:
    mean, y = draws(name)
    distribution = stats.bernoulli(mean) if name == "bernoulli" else stats.poisson(mean)
    low, high = (stats.norm.ppf(distribution.cdf(value)) for value in (y - 1, y))
    first, again, other = (quantile(name, y, around(mean), seed) for seed in (1, 1, 2))
    assert ((first >= low - 1e-9) & (first <= high + 1e-9)).all()
    np.testing.assert_array_equal(first, again)
    assert np.mean(first != other) > 0.99


def test_randomisation_has_nothing_to_do_with_data_of_the_same_seed() -> None:
    # All that a response of 0 at mean log(2) tells is which half of (0, 1) its quantile lies in.
    y, mean = np.zeros(500), np.full(500, np.log(2))
    share = 2 * stats.norm.cdf(quantile("poisson", y, around(mean), seed=0))
    assert abs(np.corrcoef(share, np.random.default_rng(0).uniform(size=500))[0, 1]) < 0.15


def test_impossible_responses_are_clipped_and_counted() -> None:
    y, mean = np.array([5000.0, 0.0, 2.0]), np.array([2.0, 5000.0, 2.0])
    found, clipped = quantile_residuals(get_family("poisson"), y, {"mean": mean}, 0)
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
