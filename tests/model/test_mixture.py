"""Mixtures over the posterior of the predictors against normal distributions and quadrature."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from ahofm_keras.families import get_family
from ahofm_keras.model.mixture import mixture_quantile, mixtures

LEVELS = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


@pytest.mark.parametrize("error", [0.3, 0.6, 1.0, 2.0, 4.0, 10.0])
@pytest.mark.parametrize("level", LEVELS)
def test_a_location_however_little_it_is_known(error: float, level: float) -> None:
    """Of a normal response whose location is normal."""
    rows = np.zeros(3)
    links = {"loc": (rows + 2.0, rows + error * 0.5), "scale": (rows + np.log(0.5), rows)}
    found = mixture_quantile(get_family("gaussian_ls"), links, level)
    spread = 0.5 * np.hypot(1, error)
    np.testing.assert_allclose(found, stats.norm.ppf(level, 2.0, spread), atol=0.03 * spread)


@pytest.mark.parametrize("error", [0.2, 0.7, 1.5])
def test_a_scale_however_little_it_is_known(error: float) -> None:
    """Of a normal response whose scale is lognormal: by an integral over it."""
    rows = np.zeros(2)
    links = {"loc": (rows, rows), "scale": (rows, rows + error)}
    z = np.linspace(-8, 8, 4001)
    weight = stats.norm.pdf(z) / stats.norm.pdf(z).sum()
    for level in (0.75, 0.95, 0.99):
        found = mixture_quantile(get_family("gaussian_ls"), links, level)[0]
        assert weight @ stats.norm.cdf(found / np.exp(error * z)) == pytest.approx(level, abs=0.004)


def test_counts_of_a_rate_that_is_hardly_known() -> None:
    rows = np.zeros(2)
    links = {"mean": (rows + 3.0, rows + 1.2), "dispersion": (rows - 2.0, rows + 0.1)}
    family = get_family("negative_binomial")
    z = np.linspace(-8, 8, 2001)
    weight = stats.norm.pdf(z) / stats.norm.pdf(z).sum()
    parameters = {"mean": np.exp(3 + 1.2 * z), "dispersion": np.full(len(z), np.exp(-2.0))}
    exact = family.distribution_of(parameters)
    for level in (0.05, 0.5, 0.95):
        found = mixture_quantile(family, links, level)[0]
        below, reached = (weight @ exact.cdf(np.full(len(z), found + side)) for side in (-1.0, 0.0))
        assert below - 0.01 < level < reached + 0.01


def test_rows_have_the_nodes_that_they_need() -> None:
    """Three where a location is known well, more where it is not, one where there is no doubt."""
    error = np.array([0.0, 0.1, 1.0, 2.5, 30.0])
    links = {"loc": (np.zeros(5), error), "scale": (np.zeros(5), np.zeros(5))}
    found = {int(row): own for own in mixtures(get_family("gaussian_ls"), links) for row in own.rows}
    assert [len(found[row].weights) for row in range(5)] == [3, 3, 9, 21, 101]
    for own in found.values():
        assert sum(own.weights) == pytest.approx(1)
    links["scale"] = np.zeros(5), np.full(5, 4.0)
    assert max(len(own.weights) for own in mixtures(get_family("gaussian_ls"), links)) <= 1000


def test_averaged_densities_are_those_of_the_mixture() -> None:
    links = {"loc": (np.zeros(4), np.array([0.1, 1.0, 3.0, 5.0])), "scale": (np.zeros(4), np.zeros(4))}
    for own in mixtures(get_family("gaussian_ls"), links):
        for row, y in zip(own.rows, np.array([0.5, -1.0, 4.0, 9.0])[own.rows], strict=True):
            place = int(np.flatnonzero(own.rows == row)[0])
            density = sum(
                weight * each.pdf(np.full(len(own.rows), y))[place]
                for weight, each in zip(own.weights, own.components, strict=True)
            )
            spread = np.hypot(1, links["loc"][1][row])
            assert density == pytest.approx(stats.norm.pdf(y, 0, spread), rel=0.04)
