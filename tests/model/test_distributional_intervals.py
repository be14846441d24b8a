"""Bands of several predictors: those of one where they should be, and as wide as the scale is."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from tests.several import PARAMETERS, several_frame, several_model


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


def test_every_parameter_and_predictor_has_its_band() -> None:
    """Those of the view of each, under its name."""
    model, rows = several_model(), several_frame().iloc[:20]
    parameters = model.predict(rows, type="parameters", interval=0.9)
    links = model.predict(rows, type="link", interval=0.9)
    assert list(parameters)[:3] == ["loc", "loc_lower", "loc_upper"]
    assert list(links)[4:8] == ["scale", "scale_se", "scale_lower", "scale_upper"]
    for name in PARAMETERS:
        band = model.parameter(name).predict(rows, interval=0.9)
        own = parameters[[name, f"{name}_lower", f"{name}_upper"]]
        np.testing.assert_allclose(own, band, rtol=1e-6)
        band = model.parameter(name).predict(rows, type="link", interval=0.9)
        own = links[[name, f"{name}_se", f"{name}_lower", f"{name}_upper"]]
        np.testing.assert_allclose(own, band, rtol=1e-6)
    assert list(parameters.index) == list(rows.index)
    with pytest.raises(ak.DataError, match=r"Received: type='quantile'"):
        model.predict(rows, type="quantile", q=0.5, interval=0.9)


def test_a_dispersion_on_the_side_stands_beside_the_band() -> None:
    data = make_data(200, 4, 0.0)
    model = ak.fit("y ~ s(x, k=10)", data, verbose=0)
    found = model.predict(data[:5], type="parameters", interval=0.9)
    assert list(found) == ["mean", "mean_lower", "mean_upper", "dispersion"]
    band = model.predict(data[:5], interval=0.9)
    np.testing.assert_allclose(found.iloc[:, :3], band[["mean", "lower", "upper"]], rtol=1e-6)


def test_a_predictor_without_anything_is_nothing() -> None:
    """What is left of switched-off terms is no variance that could have shares."""
    rng = np.random.default_rng(5)
    data = make_data(300, 5, 0.0).assign(z=rng.uniform(size=300))
    model = ak.fit({"loc": "y ~ s(x, k=10)", "scale": "~ s(z, k=10)"}, data, verbose=0)
    assert ak.summary(model, parameter="scale").terms["pruned"].all()
    (effect,) = ak.effects(model, parameter="scale")
    assert effect.share == 0
    assert ak.summary(model).terms.loc["scale", "share"].tolist() == [0]
    with pytest.raises(ak.DataError, match=r"predictor of `scale` has no interactions of order 2"):
        ak.interactions(model, parameter="scale")
    with pytest.raises(ak.DataError, match=r"of order 2: its .* is 1\. With .* `loc` are read"):
        ak.interactions(several_model(), parameter="scale")
