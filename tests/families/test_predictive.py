"""Quantiles of new responses: right for any mean and standard error, and never NaN."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from ahofm_keras.errors import DataError
from ahofm_keras.families import FAMILIES, Bernoulli, Family, Gamma, Gaussian, Poisson, get_family
from ahofm_keras.intervals import (
    Reach,
    band_of_link,
    band_of_mean,
    conformal_band,
    predictive_spread,
)
from tests.families.cases import PLAIN

# A dense grid of the predictor in standard errors, as an oracle.
Z = np.linspace(-8.5, 8.5, 40_001)
DENSITY = stats.norm.pdf(Z) / stats.norm.pdf(Z).sum()


def distribution_function(name: str, y: float, link: float, error: float, dispersion: float) -> float:
    """P(Y <= y) by brute force."""
    predictors = link + error * Z
    if y < 0:
        return 0.0
    if name == "bernoulli":
        chances = special.expit(-predictors) if y < 1 else np.ones_like(Z)
    elif name == "gamma":
        chances = special.gammainc(1 / dispersion, y * np.exp(-predictors) / dispersion)
    elif y < 1e9:
        chances = special.pdtr(np.floor(y), np.exp(predictors))
    else:  # SciPy gives up; the response's own noise is far below 1 %
        chances = (np.exp(predictors) <= y).astype(float)
    return float(DENSITY @ chances)


@pytest.mark.parametrize("name", ["bernoulli", "gamma", "poisson"])
@pytest.mark.parametrize("error", [0.0, 0.01, 0.3, 2.0, 7.0, 20.0])
@pytest.mark.parametrize("probability", [0.005, 0.3, 0.6, 0.975])
def test_quantiles_against_a_dense_grid_of_the_predictor(
    name: str, error: float, probability: float
) -> None:
    """A quantile that is moved by 1 % has the probability asked for between its two sides."""
    links = np.array([-5.0, 25.0] if name == "gamma" else [-27.0, -5.0, 0.0, 3.0, 12.0, 25.0, 34.5])
    for dispersion in (0.01, 0.5, 5.0) if name == "gamma" else (1.0,):
        errors = np.full(len(links), error)
        found = get_family(name).predictive_quantile(links, errors, dispersion, probability)
        for link, quantile in zip(links, found, strict=True):
            step = 1.0 if FAMILIES[name].discrete and quantile < 1e9 else 0.0
            below = distribution_function(name, 0.99 * quantile - step, link, error, dispersion)
            above = distribution_function(name, 1.01 * quantile, link, error, dispersion)
            assert below <= probability <= above + 1e-12


@pytest.mark.parametrize("mean", [1e-12, 0.1, 3.0, 1e4])
def test_without_a_standard_error_poisson_quantiles_are_exact(mean: float) -> None:
    for probability in (1e-6, 0.025, 0.5, 0.975, 1 - 1e-6):
        link, error = np.array([np.log(mean)]), np.zeros(1)
        found = get_family("poisson").predictive_quantile(link, error, 1.0, probability)
        assert found == stats.poisson(np.exp(link)).ppf(probability)


@pytest.mark.parametrize("mean", [1e6, 1e7, 1e9, 1e15, 1e100])
def test_of_large_means_a_poisson_variable_is_almost_gaussian(mean: float) -> None:
    link, deviation = np.array([np.log(mean)]), np.sqrt(mean)
    for probability in (1e-6, 0.025, 0.975, 1 - 1e-6):
        found = get_family("poisson").predictive_quantile(link, np.zeros(1), 1.0, probability)
        score = stats.norm.ppf(probability)
        expected = mean + score * deviation + (score**2 - 1) / 6  # with the skewness, by Cornish-Fisher
        assert abs(found[0] - expected) < 1 + 1e-3 * deviation + 1e-11 * mean


def test_of_a_gamma_response_nothing_is_lost_below_float64() -> None:
    """With a dispersion of 100 one of 40 responses lies below 1e-157 of the mean."""
    error, probability, dispersion = np.zeros(1), 0.025, 100.0
    low = get_family("gamma").predictive_quantile(np.array([300.0]), error, dispersion, probability)
    logarithm = (np.log(probability) + special.gammaln(1 + 1 / dispersion)) * dispersion
    assert np.log(low[0]) == pytest.approx(300 + np.log(dispersion) + logarithm, rel=1e-9)


def test_a_quantile_beyond_float64_is_infinite() -> None:
    for name in ("gamma", "poisson"):
        link, error = np.array([0.0, 0.0]), np.array([300.0, 400.0])
        high = get_family(name).predictive_quantile(link, error, 1.0, 0.975)
        assert np.log(high[0]) == pytest.approx(1.959964 * 300, rel=1e-3)
        assert high[1] == np.inf


LEVELS = st.one_of(st.floats(1e-6, 1 - 1e-6), st.sampled_from([1e-16, 0.95, 1 - 2**-53]))


@settings(max_examples=150, deadline=None)
@given(
    name=st.sampled_from(sorted(PLAIN)),
    logarithm=st.floats(np.log(1e-12), np.log(1e15)),
    error=st.one_of(st.just(0.0), st.floats(0, 20)),
    dispersion=st.floats(np.log(1e-14), np.log(1e4)).map(np.exp),
    level=LEVELS,
)
def test_no_nan_and_no_disorder(
    name: str, logarithm: float, error: float, dispersion: float, level: float
) -> None:
    family, errors = get_family(name), np.array([error, error])
    links = np.array([logarithm, -logarithm])
    band = band_of_mean(family, links, errors, float(dispersion), level)
    assert np.isfinite(band).all(axis=None)
    assert (band.lower <= band["mean"]).all()
    assert (band["mean"] <= band.upper).all()
    assert (band.predictive_lower <= band.predictive_upper).all()
    assert np.isfinite(band_of_link(links, errors, level)).all(axis=None)
    if name != "bernoulli":
        spread = predictive_spread(family, links, errors, float(dispersion))
        scores = np.geomspace(1e-9, 1e9, 50)
        mean = band["mean"].to_numpy()
        assert np.isfinite(conformal_band(family, mean, Reach.around(mean, spread), scores, 0.9)).all(
            axis=None
        )


def test_more_error_is_never_a_narrower_interval() -> None:
    errors = np.concatenate([[0.0], np.geomspace(1e-6, 20, 200)])
    for name in ("gamma", "poisson"):
        links = np.full(len(errors), 2.0)
        band = band_of_mean(get_family(name), links, errors, 0.5, 0.95)
        assert (np.diff(band.predictive_upper) >= -1e-6 * band.predictive_upper[1:]).all()
        assert (np.diff(band.predictive_lower) <= 1e-6 * band.predictive_lower[:-1]).all()


OTHER_LINKS = [
    (Gamma(link="inverse"), np.array([0.3, 1.0, 50.0]), np.array([0.02, 0.2, 5.0]), 0.2),
    (Gamma(link="inverse"), np.array([2e-6]), np.array([1e-7]), 0.01),
    (Poisson(link="sqrt"), np.array([0.4, 2.0, 40.0]), np.array([0.1, 0.3, 8.0]), 1.0),
    (Gaussian(link="log"), np.array([-1.0, 0.5, 3.0]), np.array([0.01, 0.3, 1.0]), 0.5),
    (Gaussian(link="inverse"), np.array([0.5, 3.0]), np.array([0.05, 0.2]), 0.01),
]


@pytest.mark.parametrize(("family", "links", "errors", "dispersion"), OTHER_LINKS, ids=repr)
@pytest.mark.parametrize("probability", [0.005, 0.3, 0.6, 0.975])
def test_quantiles_of_other_links_against_a_dense_grid(
    family: Family, links: np.ndarray, errors: np.ndarray, dispersion: float, probability: float
) -> None:
    """A quantile that is moved by 1 % of a standard deviation has its probability on both sides."""
    found = family.predictive_quantile(links, errors, dispersion, probability)
    for link, error, quantile in zip(links, errors, found, strict=True):
        mean = np.asarray(family.inverse_link(link + error * Z, np))
        distribution = family.distribution(mean, dispersion)
        if family.discrete:
            assert DENSITY @ distribution.cdf(quantile) >= probability - 1e-9
            assert DENSITY @ distribution.cdf(quantile - 1) < probability + 1e-9
        else:
            step = 0.01 * float(np.sqrt(dispersion * family.variance(family.inverse_link(link, np))))
            assert DENSITY @ distribution.cdf(quantile - step) < probability
            assert DENSITY @ distribution.cdf(quantile + step) > probability


@pytest.mark.parametrize("link", Bernoulli.links["mean"])
@pytest.mark.parametrize("error", [0.0, 0.5, 3.0])
def test_a_class_is_predicted_where_it_is_likely_enough(link: str, error: float) -> None:
    family, links = Bernoulli(link), np.linspace(-4.03, 3, 15)
    for probability in (0.1, 0.5, 0.9):
        found = family.predictive_quantile(links, np.full(len(links), error), 1.0, probability)
        zero = [DENSITY @ (1 - np.asarray(family.inverse_link(eta + error * Z, np))) for eta in links]
        np.testing.assert_array_equal(found, np.where(np.array(zero) >= probability, 0.0, 1.0))


def test_bands_of_a_falling_link_are_in_order_and_end_at_infinity() -> None:
    band = band_of_mean(Gamma(link="inverse"), np.array([1.0, 0.1]), np.array([0.1, 0.2]), 0.1, 0.95)
    assert (band.lower < band["mean"]).all()
    assert (band["mean"] < band.upper).all()
    assert band.upper[0] == pytest.approx(1 / (1 - 1.959964 * 0.1), rel=1e-6)
    assert band.upper[1] == np.inf


def test_conformal_bands_keep_to_the_support() -> None:
    mean, spread, scores = np.array([0.1, 5.0]), np.ones(2), np.full(99, 2.0)
    for family, low in ((Poisson("sqrt"), 0.0), (Gamma("inverse"), 0.0), (Gaussian("log"), -1.9)):
        assert conformal_band(family, mean, Reach.around(mean, spread), scores, 0.9).predictive_lower[
            0
        ] == pytest.approx(low)
    with pytest.raises(DataError, match="more than two values"):
        conformal_band(Bernoulli("probit"), mean, Reach.around(mean, spread), scores, 0.9)
