"""A level of a random effect that was not in the training data: its own variance is in the band."""

from __future__ import annotations

from pathlib import Path

import keras
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

import ahofm_keras as ak
from ahofm_keras.layers import Posterior
from ahofm_keras.layers.posterior import _new_level_weights

GROUPS, NEW = 40, 400


def draw(groups: np.ndarray, effects: np.ndarray, rng: np.random.Generator, stem: str) -> pd.DataFrame:
    data = pd.DataFrame({"x": rng.uniform(0.01, 0.99, len(groups)), "g": [f"{stem}{g}" for g in groups]})
    data["link"] = 2 + np.sin(6 * data.x) + effects[groups]
    return data.assign(y=data.link + rng.normal(size=len(groups)))


@pytest.fixture(scope="module")
def frames() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows of some groups, few of some and many of others, and one row of each of many new groups."""
    rng = np.random.default_rng(5)
    groups = np.concatenate([np.arange(GROUPS), rng.choice(GROUPS, 10 * GROUPS, p=_shares())])
    seen = draw(groups, rng.normal(0, 1.5, GROUPS), rng, "g")
    new = draw(np.arange(NEW), rng.normal(0, 1.5, NEW), rng, "new")
    return seen, new.assign(x=new.x.clip(seen.x.min(), seen.x.max()))


def _shares() -> np.ndarray:
    sizes = np.arange(1.0, GROUPS + 1)
    return sizes / sizes.sum()


@pytest.fixture(scope="module")
def model(frames: tuple[pd.DataFrame, pd.DataFrame]) -> ak.AdditiveModel:
    model = ak.AdditiveModel('y ~ s(x, k=8, df=5) + s(g, bs="re")', frames[0])
    model.fit(frames[0], verbose=0)
    return model


def warned_predict(model: ak.AdditiveModel, data: pd.DataFrame, **options: object) -> pd.DataFrame:
    with pytest.warns(ak.AhofmWarning, match="not seen in training"):
        return model.predict(data, **options)


def test_intervals_of_new_groups_hold_what_they_say(
    model: ak.AdditiveModel, frames: tuple[pd.DataFrame, pd.DataFrame]
) -> None:
    new = frames[1]
    link = warned_predict(model, new, type="link", interval=0.9)
    band = warned_predict(model, new, interval=0.9)
    covered = float(np.mean((link.lower <= new.link) & (new.link <= link.upper)))
    hit = float(np.mean((band.predictive_lower <= new.y) & (new.y <= band.predictive_upper)))
    print(f"links {covered:.3f}, responses {hit:.3f}")
    # The standard deviation of 40 effects is known to 11 %, which moves the coverage by 4 %.
    assert 0.82 < covered < 0.96
    assert 0.82 < hit < 0.96


def test_a_new_level_of_equal_groups_is_that_of_the_mixed_model() -> None:
    """mu with a flat prior, b_j and b_new iid: all coefficients jointly, without any centring."""
    rng, smoothing, levels = np.random.default_rng(3), 2.5, 6
    groups = np.repeat(np.arange(levels), 5)
    data = pd.DataFrame({"g": groups.astype(str), "y": rng.normal(size=30) + groups % 3})
    model = ak.AdditiveModel(f"y ~ s(g, sp={smoothing})", data)
    model.fit(data, solver="bcd", verbose=0)
    design = np.column_stack([np.ones(30), np.eye(levels + 1)[groups]])
    precision = design.T @ design + np.diag([0.0] + [smoothing] * (levels + 1))
    dispersion = float(model.posterior.dispersion) * model.scale**2
    at_new = np.eye(levels + 2)[0] + np.eye(levels + 2)[-1]
    at_first = np.eye(levels + 2)[0] + np.eye(levels + 2)[1]
    wanted = [dispersion * at @ np.linalg.solve(precision, at) for at in (at_new, at_first)]
    link = warned_predict(model, pd.DataFrame({"g": ["new", "0"]}), type="link", interval=0.9)
    np.testing.assert_allclose(link.se**2, wanted, rtol=1e-5)


@pytest.mark.parametrize("center", [True, False])
def test_weights_of_unequal_groups(center: bool) -> None:
    """v (1 + sum p^2) from a prior of the coefficients with variance v each, centred or not."""
    counts, smoothing, dispersion = np.array([3, 4, 8, 15]), 0.7, 1.3
    groups = np.repeat(np.arange(4), counts)
    data = pd.DataFrame({"g": groups.astype(str), "x": np.sin(groups + np.arange(30)), "y": groups % 3})
    formula = f"y ~ afm(x, g, F=1, center={center})"
    design = ak.AdditiveModel(formula, data).design
    (feature,) = [f for f in design.features if f.basis.kind == "re"]
    precisions = 30 * smoothing * feature.eigenvalues
    prior = feature.transform * (dispersion / precisions) @ feature.transform.T
    shares, variance = counts / 30, dispersion / smoothing
    if center:
        wanted = variance * (np.eye(4) - np.outer(shares, shares) / (shares @ shares))
    else:
        wanted = variance * np.eye(4)
    np.testing.assert_allclose(prior, wanted, atol=1e-9)
    new = dispersion * np.sum(_new_level_weights(feature.transform) / precisions)
    # The levels' mean over the rows, which is in the constant, and the new level's own effect.
    draws = np.append(-shares * center, 1.0)
    assert new == pytest.approx(variance * draws @ draws, rel=1e-9)


def test_levels_of_the_training_data_are_as_before(
    model: ak.AdditiveModel, frames: tuple[pd.DataFrame, pd.DataFrame]
) -> None:
    """Bit by bit what the covariance of the coefficients alone gives."""
    layer = model.posterior
    config = layer.get_config()
    config["linear"] = [{**entry, "eigenvalues": None} for entry in config["linear"]]
    without = Posterior.from_config({**config, "name": "without"})
    # One row of a level that was seen, one of none; both have the fourth function of the smooth.
    bases = [
        (np.full((1, 1, 2), 3, "int32"), np.ones((1, 1, 2))),
        (np.array([[[7, 0]]], "int32"), np.array([[[1.0, 0.0]]])),
    ]
    without.build()
    without.set_weights(layer.get_weights())
    before, after = (np.asarray(own(bases))[:, 0] for own in (without, layer))
    assert before[0] == after[0]
    assert after[1] > 20 * before[1]
    narrow = model.predict(frames[0].drop_duplicates("g"), type="link", interval=0.9).se
    assert narrow.max() < 1.1  # a group of one row; a new group has about 1.5


def test_an_earlier_model_has_no_variance_of_new_levels(model: ak.AdditiveModel) -> None:
    config = model.posterior.get_config()
    for entry in config["linear"]:
        del entry["eigenvalues"]
    layer = Posterior.from_config({**config, "name": "earlier"})
    assert np.asarray(layer._new_levels_variance([np.zeros((1, GROUPS, 2))])).max() == 0.0


def test_saved_and_exported_models_know_it(
    model: ak.AdditiveModel, frames: tuple[pd.DataFrame, pd.DataFrame], tmp_path: Path
) -> None:
    rows = pd.concat([frames[0].head(3), frames[1].head(3)])[["x", "g"]]
    wanted = warned_predict(model, rows, type="link", interval=0.9)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    pd.testing.assert_frame_equal(warned_predict(loaded, rows, type="link", interval=0.9), wanted)
    model.export(tmp_path / "1", verbose=False)
    serve = tf.saved_model.load(str(tmp_path / "1")).signatures["uncertainty"]
    served = serve(x=tf.constant(rows.x.to_numpy()), g=tf.constant(rows.g.tolist()))
    np.testing.assert_allclose(served["link_se"], wanted.se, rtol=1e-6)


def test_unpenalised_levels_have_no_prior() -> None:
    data = pd.DataFrame({"g": list("abc") * 10, "y": np.sin(np.arange(30))})
    model = ak.AdditiveModel("y ~ s(g, sp=0)", data)
    model.fit(data, solver="bcd", verbose=0)
    link = warned_predict(model, pd.DataFrame({"g": ["new", "a"]}), type="link", interval=0.9)
    assert link.se[0] < link.se[1]
