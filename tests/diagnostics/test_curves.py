"""Data behind the pictures of a check."""

from __future__ import annotations

import numpy as np
import pytest

from ahofm_keras.diagnostics.curves import qq_frame, trend_frame


def test_the_band_of_quantiles_is_what_simulation_gives() -> None:
    rng = np.random.default_rng(0)
    sample = rng.normal(size=40)
    found = qq_frame(sample)
    np.testing.assert_array_equal(found["sample"], np.sort(sample))
    simulated = np.sort(rng.normal(size=(20_000, 40)), axis=1)
    for name, tail in (("lower", 0.025), ("upper", 0.975)):
        np.testing.assert_allclose(found[name], np.quantile(simulated, tail, axis=0), atol=0.06)
    np.testing.assert_allclose(found["theoretical"], np.median(simulated, axis=0), atol=0.05)


def test_the_trend_of_a_straight_line_is_that_line_and_its_error_that_of_simulation() -> None:
    rng = np.random.default_rng(1)
    fitted = rng.gamma(2.0, 1.0, 200)
    straight = trend_frame(fitted, 3 - 2 * fitted)
    np.testing.assert_allclose(straight["trend"], 3 - 2 * straight["fitted"], atol=1e-9)
    noise = [trend_frame(fitted, rng.normal(size=200))["trend"] for _ in range(300)]
    np.testing.assert_allclose(straight["reach"] / 2, np.std(noise, axis=0), rtol=0.25)


def test_the_trend_follows_a_curve() -> None:
    fitted = np.linspace(-1, 1, 400)
    found = trend_frame(fitted, fitted**2)
    np.testing.assert_allclose(found["trend"], found["fitted"] ** 2, atol=0.06)


@pytest.mark.parametrize("fitted", [[1.0], [1.0, 2.0], [1.0, 1.0, 1.0, 5.0], [0.0] * 50 + [1.0] * 50])
def test_few_and_equal_rows_have_a_trend(fitted) -> None:
    found = trend_frame(np.array(fitted), np.ones(len(fitted)))
    np.testing.assert_allclose(found["trend"], 1)
