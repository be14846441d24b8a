"""Quantiles and expectiles: losses, their slopes, direct minima, no crossing, what a loss cannot say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from scipy import stats

import ahofm_keras as ak
from ahofm_keras.errors import DataError
from ahofm_keras.families import FAMILIES, Expectile, Quantile, get_family

LEVELS = [0.1, 0.5, 0.9]
LOSSES = {
    "one quantile": Quantile(),
    "a low quantile": Quantile(levels=0.025),
    "three quantiles": Quantile(levels=LEVELS),
    "quantiles above": Quantile(levels=[0.6, 0.75, 0.9, 0.99]),
    "mean": Expectile(),
    "an expectile": Expectile(level=0.85),
}
every_loss = pytest.mark.parametrize("name", LOSSES)
# statsmodels 0.15.0, `QuantReg(y, add_constant(column_stack([x, z]))).fit(q, p_tol=1e-10).params` of the
# rows of `linear_data`.
QUANTREG = {
    0.1: (-0.48972766148876484, 1.3008513181761916, -1.0881931869296695),
    0.5: (0.9556625063331764, 1.972113240192854, -0.951969998266217),
    0.9: (2.535409571385409, 3.098708590608424, -1.0632782039597453),
}


@pytest.fixture(scope="module")
def linear_data() -> pd.DataFrame:
    rng = np.random.default_rng(7)
    data = pd.DataFrame({"x": rng.uniform(-1, 1, 400), "z": rng.uniform(-1, 1, 400)})
    return data.assign(y=1 + 2 * data.x - data.z + (1 + 0.5 * data.x) * rng.standard_t(4, 400))


def quantreg(data: pd.DataFrame, level: float) -> np.ndarray:
    return np.column_stack([np.ones(len(data)), data.x, data.z]) @ np.array(QUANTREG[level])


def check_loss(y: Any, quantile: Any, level: float) -> float:
    rest = np.asarray(y) - np.asarray(quantile)
    return float(np.mean(np.maximum(level * rest, (level - 1) * rest)))


def some_rows(family: Any) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    rng = np.random.default_rng(3)
    etas = {name: rng.normal(0, 0.5, 40) for name in family.parameters}
    return rng.normal(0, 2, 40), family.inverse_links(etas)


def test_every_loss_of_the_registry_is_looked_at() -> None:
    found = {name for name, family in FAMILIES.items() if family.is_loss}
    assert found == {family.name for family in LOSSES.values()}


@every_loss
def test_json_and_back(name: str) -> None:
    family = LOSSES[name]
    again = get_family(json.loads(json.dumps(family.to_json())))
    assert again == family
    assert list(again.parameters) == list(family.parameters)
    assert again != get_family(family.name) or name in ("one quantile", "mean")


@every_loss
def test_the_score_is_the_slope(name: str) -> None:
    family = LOSSES[name]
    y, parameters = some_rows(family)
    variables = {key: tf.Variable(value) for key, value in parameters.items()}
    with tf.GradientTape() as tape:
        own = family.log_density(tf.constant(y), variables, keras.ops)
    np.testing.assert_allclose(own.numpy(), family.log_density(y, parameters), rtol=1e-10)
    found = tape.gradient(own, variables)
    for key, score in family.score(y, parameters).items():
        np.testing.assert_allclose(found[key].numpy(), score, rtol=1e-8, atol=1e-10)


@every_loss
@pytest.mark.parametrize("size", [3.0, 300.0, 800.0])
def test_extremes_are_finite(name: str, size: float) -> None:
    family = LOSSES[name]
    y = np.array([-1e6, 0.0, 1e6] * 2)
    sides = np.repeat([-size, size], 3)
    etas = {key: tf.Variable(sides) for key in family.parameters}
    with tf.GradientTape() as tape:
        own = family.log_density(tf.constant(y), family.inverse_links(etas, keras.ops), keras.ops)
    assert np.isfinite(own.numpy()).all()
    for slope in tape.gradient(own, etas).values():
        assert np.isfinite(slope.numpy()).all()


@every_loss
def test_of_normal_responses_the_curvature_is_the_variance_of_the_slope(name: str) -> None:
    """As of a likelihood: for a shift of all quantiles, at the true scale and to its rounding."""
    family = LOSSES[name]
    y = stats.norm.ppf((np.arange(20_000) + 0.5) / 20_000)
    if isinstance(family, Expectile):
        place = {"mean": np.full(len(y), family.start_values(y)["mean"])}
        slope, curvature = family.score(y, place)["mean"], family.information(y, place)["mean"]
        squares = np.mean(curvature * (y - place["mean"]) ** 2)
        dispersion = family.estimate_dispersion(squares, 1.0)
        assert np.mean(slope**2) / np.mean(curvature) == pytest.approx(dispersion, rel=1e-3)
        return
    places = {key: np.full(len(y), value) for key, value in family.start_values(y).items()}
    assert places["scale"][0] == pytest.approx(1, rel=1e-3)
    first = next(iter(family.parameters))
    slope, curvature = family.score(y, places)[first], family.information(y, places)[first]
    assert np.mean(slope) == pytest.approx(0, abs=2e-3)
    assert np.mean(slope**2) == pytest.approx(np.mean(curvature), rel=0.08)


@every_loss
def test_starts_are_the_minimum_of_the_loss(name: str) -> None:
    family = LOSSES[name]
    y = np.random.default_rng(0).gamma(2, 1, 5000)
    start = {key: np.full(len(y), value) for key, value in family.start_values(y).items()}
    least = family.loss(y, start).mean()
    for key in start:
        for factor in (0.97, 1.03):
            assert family.loss(y, {**start, key: start[key] * factor}).mean() > least - 1e-4


def test_quantiles_never_cross() -> None:
    family = Quantile(levels=[0.01, 0.3, 0.5, 0.8, 0.99])
    rng = np.random.default_rng(0)
    etas = {name: rng.normal(0, 30, 1000) for name in family.parameters}
    found = np.stack(list(family.quantiles_of(family.inverse_links(etas)).values()))
    assert (np.diff(found, axis=0) >= 0).all()
    assert list(family.parameters) == [
        "q50", "q1_to_q30", "q30_to_q50", "q50_to_q80", "q80_to_q99", "scale",
    ]  # fmt: skip


# Fits


@pytest.mark.parametrize("level", LEVELS)
def test_a_linear_model_is_that_of_statsmodels(linear_data: pd.DataFrame, level: float) -> None:
    model = ak.fit("y ~ x + z", linear_data, family=Quantile(levels=level), verbose=0)
    wanted, found = quantreg(linear_data, level), model.predict(linear_data)
    assert found.shape == (400,)
    # Without a corner the loss has its minimum a little beside that of the check loss.
    best = check_loss(linear_data.y, wanted, level)
    assert best <= check_loss(linear_data.y, found, level) < best * (1 + 1e-3)
    first = next(iter(model.family.parameters))
    error = model.predict(linear_data, type="link", interval=0.9)[f"{first}_se"]
    assert (np.abs(found - wanted) < 0.4 * error).all()


def test_three_levels_are_three_columns(linear_data: pd.DataFrame, tmp_path: Path) -> None:
    model = ak.fit("y ~ x + z", linear_data, family=Quantile(levels=LEVELS), verbose=0)
    assert model.formula["q10_to_q50"] == model.formula["q50"] == "y ~ x + z"
    assert model.formula["scale"] == "y ~ 1"
    found = model.predict(linear_data)
    assert list(found) == ["q10", "q50", "q90"]
    assert (found.index == linear_data.index).all()
    pd.testing.assert_frame_equal(model.predict(linear_data, type="quantile"), found)
    np.testing.assert_array_equal(
        model.predict(linear_data, type="quantile", q=[0.9, 0.1]), found[["q90", "q10"]]
    )
    assert (np.diff(found, axis=1) > 0).all()
    shares = np.mean(linear_data.y.to_numpy()[:, None] <= found, axis=0)
    np.testing.assert_allclose(shares, LEVELS, atol=0.02)
    for level, column in zip(LEVELS, found, strict=True):  # gaps are log-linear, not linear
        best = check_loss(linear_data.y, quantreg(linear_data, level), level)
        assert check_loss(linear_data.y, found[column], level) < best * 1.01
    bands = model.predict(linear_data, interval=0.9)
    assert list(bands)[3:6] == ["q50", "q50_lower", "q50_upper"]
    for column in found:
        assert (bands[f"{column}_lower"] < found[column]).all()
        assert (bands[f"{column}_upper"] > found[column]).all()
    parameters = model.predict(linear_data, type="parameters")
    np.testing.assert_allclose(parameters.q50 + parameters.q50_to_q90, found.q90)
    model.save(tmp_path / "model.keras")
    pd.testing.assert_frame_equal(ak.load_model(tmp_path / "model.keras").predict(linear_data), found)
    assert model.fit_result.log_likelihood is None
    with pytest.raises(DataError, match=r"quantiles of the levels 0\.1, 0\.5, 0\.9, and no others"):
        model.predict(linear_data, type="quantile", q=0.2)
    with pytest.raises(DataError, match="is a loss, not a distribution"):
        model.predict(linear_data, type="distribution")


@pytest.mark.filterwarnings("ignore:The fit reached its last epoch")
def test_adam_finds_the_same(linear_data: pd.DataFrame) -> None:
    model = ak.AdditiveModel("y ~ x + z", linear_data, family=Quantile(levels=LEVELS))
    model.fit(linear_data, solver="adam", epochs=25, verbose=0)
    for level, found in zip(LEVELS, model.predict(linear_data).to_numpy().T, strict=True):
        best = check_loss(linear_data.y, quantreg(linear_data, level), level)
        assert check_loss(linear_data.y, found, level) < best * 1.03


@pytest.mark.parametrize("level", [0.1, 0.5, 0.9])
def test_an_expectile_is_that_of_asymmetric_least_squares(
    linear_data: pd.DataFrame, level: float
) -> None:
    design, y = np.column_stack([np.ones(400), linear_data.x, linear_data.z]), linear_data.y.to_numpy()
    wanted = np.zeros(3)
    for _ in range(100):
        weight = np.where(y > design @ wanted, level, 1 - level)[:, None]
        wanted = np.linalg.solve(design.T @ (weight * design), design.T @ (weight[:, 0] * y))
    model = ak.fit("y ~ x + z", linear_data, family=Expectile(level=level), verbose=0)
    np.testing.assert_allclose(model.predict(linear_data), design @ wanted, atol=2e-5)
    assert list(model.predict(linear_data, interval=0.9)) == ["mean", "lower", "upper"]


def test_at_a_half_the_fit_is_gaussian(linear_data: pd.DataFrame) -> None:
    fits = [
        ak.fit("y ~ s(x) + z", linear_data, family=family, verbose=0)
        for family in ("gaussian", "expectile")
    ]
    bands = [model.predict(linear_data, interval=0.9)[["mean", "lower", "upper"]] for model in fits]
    pd.testing.assert_frame_equal(*bands)
    assert fits[0].fit_result.edf == fits[1].fit_result.edf


# Bad input


@pytest.mark.parametrize("levels", [[], [0.0], 1.0, [0.1, "a"], None, [0.5, 0.5]])
def test_levels_that_are_none_are_told(levels: Any) -> None:
    with pytest.raises(DataError, match="`levels` of the quantile family must"):
        Quantile(levels=levels)


@pytest.mark.parametrize("level", [0, 1, "a", None, float("nan")])
def test_a_level_that_is_none_is_told(level: Any) -> None:
    with pytest.raises(DataError, match="`level` of the expectile family must"):
        Expectile(level=level)


def test_a_quantile_made_of_others_has_no_formula(linear_data: pd.DataFrame) -> None:
    with pytest.raises(DataError, match=r"`q90` is `q50` and the gaps .* `q50_to_q90`, `scale`"):
        ak.AdditiveModel({"q50": "y ~ x", "q90": "~ x"}, linear_data, family=Quantile(levels=LEVELS))


def test_a_loss_has_no_score() -> None:
    for family in (Quantile(), Expectile(level=0.2)):
        with pytest.raises(DataError, match="is a loss, not a distribution"):
            family.crps(np.zeros(2), {name: np.ones(2) for name in family.parameters})
