"""Bands of several predictors: those of one where they should be, and as wide as the scale is."""

from __future__ import annotations

import numpy as np
import pandas as pd

import ahofm_keras as ak


def make_data(rows: int, seed: int, slope: float) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    data = pd.DataFrame({"x": np.r_[0.0, 1.0, rng.uniform(size=rows - 2)]})
    data["sd"] = 0.3 * np.exp(slope * (data.x - 0.5))
    data["y"] = np.sin(5 * data.x) + data.sd * rng.normal(size=rows)
    return data


def test_a_constant_scale_gives_the_intervals_of_a_dispersion() -> None:
    train, fresh = make_data(400, 0, 0.0), make_data(100, 1, 0.0)
    one = ak.fit("y ~ s(x, k=10)", train, solver="variational", verbose=0)
    two = ak.fit({"loc": "y ~ s(x, k=10)", "scale": "~ 1"}, train, solver="variational", verbose=0)
    first, second = (model.predict(fresh, interval=0.9) for model in (one, two))
    np.testing.assert_allclose(second["mean"], first["mean"], atol=0.02)
    width = (first["predictive_upper"] - first["predictive_lower"]).mean()
    for end in ("predictive_lower", "predictive_upper"):
        np.testing.assert_allclose(second[end], first[end], atol=0.04 * width)
    ratio = (second["upper"] - second["lower"]).mean() / (first["upper"] - first["lower"]).mean()
    assert 0.85 < ratio < 1.15


def test_predictive_intervals_are_wide_where_the_scale_is() -> None:
    train, fresh = make_data(500, 2, 2.0), make_data(4000, 3, 2.0)
    model = ak.fit({"loc": "y ~ s(x, k=10)", "scale": "~ x"}, train, solver="variational", verbose=0)
    band = model.predict(fresh, interval=0.9)
    width = band["predictive_upper"] - band["predictive_lower"]
    # 2 * 1.645 standard deviations, and a little for the uncertainty of the fit.
    ratio = width / (2 * 1.644854 * fresh["sd"])
    assert ratio.between(0.75, 1.35).all()
    held = (band["predictive_lower"] <= fresh["y"]) & (fresh["y"] <= band["predictive_upper"])
    for part in (fresh.x < 0.25, fresh.x > 0.75):
        assert 0.83 < held[part].mean() < 0.96
