"""The posterior in the model: variances, files, and what later fits make of it."""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path

import keras
import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from ahofm_keras.bands import read_band
from ahofm_keras.layers.posterior import Posterior
from ahofm_keras.solvers.engine import Engine
from ahofm_keras.solvers.job import Rows
from ahofm_keras.solvers.posterior import read_posterior, write_posterior
from ahofm_keras.solvers.settings import use_settings
from ahofm_keras.solvers.weights import write_weights
from tests.solvers.conftest import (
    Run,
    dense_functions,
    draw_posterior,
    draw_response,
    fit_quietly,
    pair_frame,
    true_pair,
)

FORMULA = "y ~ x2 + s(hour, bs='cp', knots=(0, 24)) + ahofm(x0, x1, group, D=3, F=2)"


def mixed_frame(family: str = "gaussian", rows: int = 250, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    data = pair_frame(rows, 3, seed=seed)
    data["hour"] = rng.uniform(0, 24, rows)
    data["group"] = rng.choice(["a", "b", "c"], rows)
    eta = true_pair(data) + data.x0 * data.x1 * (data.group == "b") + 0.5 * np.sin(data.hour / 24 * 6.28)
    data["y"] = draw_response(family, eta.to_numpy() / 2, rng)
    return data


Fitted = tuple[ak.AdditiveModel, pd.DataFrame, dict[str, list[float]]]


@cache
def fit_mixed(family: str) -> Fitted:
    data = mixed_frame(family)
    model = ak.AdditiveModel(FORMULA, data, family=family)
    model.compile(jit_compile=False)
    # What is read back has covariances at the means of the last sweep: those of a fit that stands still.
    with use_settings(bound_gain=1e-6):
        return model, data, fit_quietly(model, data, "variational")


@pytest.fixture(scope="module", params=["gaussian", "poisson"])
def fitted(request: pytest.FixtureRequest) -> Fitted:
    return fit_mixed(request.param)


@pytest.fixture(scope="module")
def gaussian() -> Fitted:
    return fit_mixed("gaussian")


def copy_of(model: ak.AdditiveModel, path: Path) -> ak.AdditiveModel:
    model.save(path / "model.keras")
    return keras.models.load_model(path / "model.keras")


def graph_variance(model: ak.AdditiveModel, data: pd.DataFrame) -> np.ndarray:
    """Variance of the predictor as the graph computes it, on the model's scale."""
    return (model.predict(data, type="link", interval=0.9)["se"].to_numpy() / model.scale) ** 2


def encoded_engine(model: ak.AdditiveModel, data: pd.DataFrame) -> Run:
    rows = model._reader.with_response(data, None, None)
    assert isinstance(rows, Rows)

    given = model.design, model.family, rows, model.shift, model.scale
    engine = Engine(*given, variational=True)
    return Run(engine, engine.start())


def simulate_variance(model: ak.AdditiveModel, data: pd.DataFrame, draws: int) -> np.ndarray:
    """Variance of the predictor over draws of all coefficients from their posterior."""
    rng = np.random.default_rng(0)
    engine = encoded_engine(model, data)
    layer, functions = model.posterior, dense_functions(engine, data)
    X = np.hstack(
        [
            np.ones((len(data), 1)),
            engine.chunks[0].columns.T,
            *(functions[own.term.feature] for own in engine.linear.columns.layout.penalised),
        ]
    )
    root = layer.linear_roots
    total = X @ root @ rng.normal(size=(root.shape[1], draws))
    state = read_posterior(model, engine.engine)
    assert state is not None
    for group in state.groups:
        phi = []
        for block in group.blocks:
            drawn = rng.multivariate_normal(block.mean, block.covariance, draws, method="eigh").T
            drawn = drawn.reshape(block.rank, block.width, draws)
            phi.append(np.einsum("nr,frd->fnd", functions[block.position], drawn))
        assert len(phi) == 3
        a, b, c = phi
        products = a * b + a * c + b * c if group.order == 2 else a * b * c
        total = total + products.sum(axis=0)
    return total.var(axis=1)


# To the model and back


def test_what_is_written_is_read_again() -> None:
    data = mixed_frame(rows=100)
    model = ak.AdditiveModel(FORMULA, data)
    engine = encoded_engine(model, data)
    engine.linearise()
    draw_posterior(engine, seed=0)
    engine.change(groups=(engine.groups[0].without(0), engine.groups[1]))
    for _ in range(2):
        engine.sweep(newton_steps=1)
    write_weights(model, engine.state)
    write_posterior(model, engine.engine, engine.state)
    state = read_posterior(model, encoded_engine(model, data).engine)
    assert state is not None
    assert state.dispersion == pytest.approx(engine.dispersion, rel=1e-12)
    assert [group.kept for group in state.groups] == [(1,), (0, 1)]
    np.testing.assert_allclose(state.linear.mean, engine.linear.mean, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(state.linear.covariance, engine.linear.covariance, atol=1e-12)
    found, wanted = (linear.prior.smoothing() for linear in (state.linear, engine.linear))
    np.testing.assert_array_equal(found, wanted)
    for found, wanted in zip(state.blocks[1:], engine.blocks[1:], strict=True):
        np.testing.assert_array_equal(found.mean, wanted.mean)
        np.testing.assert_array_equal(found.prior.parameters, wanted.prior.parameters)
    # Covariances are what updates at these means give: bands of those of the others are enough for it.
    for index, group in enumerate(engine.groups):
        for feature in range(len(group.blocks)):
            updated = engine.engine.update_factors(engine.state, index, feature)
            found, wanted = (own.groups[index].blocks[feature] for own in (state, updated))
            np.testing.assert_allclose(found.covariance, wanted.covariance, rtol=1e-8, atol=1e-12)
            assert found.spread.log_determinant == pytest.approx(wanted.spread.log_determinant, 1e-6)
    edf = np.asarray(model.posterior.factor_edf[0])
    assert not edf[:, 0].any()
    np.testing.assert_array_equal(edf[:, 1], [block.factor_edf[0] for block in engine.groups[0].blocks])


# The variance


def test_the_variance_in_the_graph_is_that_of_the_engine(fitted: Fitted) -> None:
    model, data, _ = fitted
    engine = encoded_engine(model, data)
    state = read_posterior(model, engine.engine)
    assert state is not None
    engine.state = state
    chosen = np.asarray(model.posterior.smoothing_root)
    covariance = engine.linear.covariance + chosen @ chosen.T
    wanted = []
    for chunk in engine.chunks:
        X = engine.linear.columns.dense(chunk)
        variance = np.einsum("an,ab,bn->n", X, covariance, X)
        wanted.append(variance + sum(chunk.moments(group).variance for group in engine.groups))
    found = graph_variance(model, data)
    assert (found > 0).all()
    np.testing.assert_allclose(found, np.concatenate(wanted), rtol=2e-5, atol=1e-6 * found.max())


def test_the_variance_is_that_of_draws_from_the_posterior(gaussian: Fitted) -> None:
    model, data, _ = gaussian
    found, simulated = graph_variance(model, data)[:40], simulate_variance(model, data, 20_000)[:40]
    np.testing.assert_allclose(found, simulated, rtol=0.08)
    assert np.mean(found / simulated) == pytest.approx(1, abs=0.01)


def test_interactions_add_to_the_variance(gaussian: Fitted) -> None:
    model, data, _ = gaussian
    found = graph_variance(model, data)
    bands = [np.asarray(band) for band in model.posterior.factor_bands]
    try:
        for band in model.posterior.factor_bands:
            band.assign(np.zeros(band.shape))
        assert (graph_variance(model, data) < found + 1e-12).all()
        assert graph_variance(model, data).mean() < 0.9 * found.mean()
    finally:
        for band, values in zip(model.posterior.factor_bands, bands, strict=True):
            band.assign(values)


def test_more_rows_make_less_variance() -> None:
    means = []
    for rows in (150, 600):
        data = mixed_frame(rows=rows)
        model = ak.AdditiveModel("y ~ s(x0) + s(x1)", data)
        fit_quietly(model, data, "variational")
        means.append(graph_variance(model, data).mean())
    assert means[1] < 0.5 * means[0]


# Files


def test_the_posterior_survives_a_file(fitted: Fitted, tmp_path: Path) -> None:
    model, data, _ = fitted
    loaded = copy_of(model, tmp_path)
    assert isinstance(loaded.posterior, Posterior)
    names = [weight.name for weight in model.posterior.weights]
    assert len(names) == len(set(names)) == 19
    for found, wanted in zip(loaded.posterior.weights, model.posterior.weights, strict=True):
        np.testing.assert_array_equal(np.asarray(found), np.asarray(wanted), err_msg=wanted.name)
    np.testing.assert_array_equal(graph_variance(loaded, data), graph_variance(model, data))
    np.testing.assert_array_equal(loaded.predict(data), model.predict(data))


def test_a_model_without_posterior_has_none_after_loading(tmp_path: Path) -> None:
    data = mixed_frame()
    assert not copy_of(ak.AdditiveModel(FORMULA, data), tmp_path).has_posterior


def test_the_layer_survives_its_config(gaussian: Fitted) -> None:
    model, data, _ = gaussian
    layer = model.posterior
    other = Posterior.from_config(layer.get_config())
    bases, columns = model._graph.bases.tensors, model._graph.columns
    variance = other(bases, columns)
    for found, wanted in zip(other.weights, layer.weights, strict=True):
        assert found.shape == wanted.shape
        found.assign(wanted)
    run = keras.Function(model._graph.encoded, variance)
    encoded = model._reader.with_response(data, None, None).encoded
    np.testing.assert_allclose(
        np.asarray(run(list(encoded)))[:, 0], graph_variance(model, data), rtol=1e-6
    )


def test_the_posterior_is_not_trained(gaussian: Fitted) -> None:
    model, _, _ = gaussian
    trainable = {id(weight) for weight in model.trainable_weights}
    assert not any(id(weight) in trainable for weight in model.posterior.weights)
    assert all(str(weight.dtype) == "float64" for weight in model.posterior.weights)


@pytest.mark.parametrize("name", ["posterior", "dispersion"])
def test_a_column_may_have_the_name_of_the_layer(name: str, tmp_path: Path) -> None:
    data = mixed_frame().rename(columns={"x0": name})
    model = ak.AdditiveModel(f"y ~ {name} + s(x1)", data)
    fit_quietly(model, data, "variational")
    loaded = copy_of(model, tmp_path)
    np.testing.assert_array_equal(graph_variance(loaded, data), graph_variance(model, data))


# Later fits


@pytest.mark.parametrize("solver", ["adam", "bcd"])
def test_other_solvers_replace_the_posterior(gaussian: Fitted, tmp_path: Path, solver: str) -> None:
    model, data, _ = gaussian
    model = copy_of(model, tmp_path)
    before = np.asarray(model.posterior.linear_root)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The fit reached its last", ak.AhofmWarning)
        fit_quietly(model, data, solver, epochs=1)
    assert float(model.posterior.dispersion) > 0
    assert np.abs(np.asarray(model.posterior.linear_root) - before).max() > 1e-6


def test_a_fit_without_a_posterior_makes_it_unknown(gaussian: Fitted, tmp_path: Path) -> None:
    model, data, _ = gaussian
    model = copy_of(model, tmp_path)
    model.compile(loss="mae", jit_compile=False)
    with pytest.warns(ak.AhofmWarning, match="The fit reached its last"):
        fit_quietly(model, data, "adam", epochs=1)
    assert float(model.posterior.dispersion) == 0
    with pytest.raises(ak.NotFittedError):
        model.predict(data, interval=0.9)


def test_a_second_fit_goes_on_from_the_first(fitted: Fitted, tmp_path: Path) -> None:
    model, data, history = fitted
    model = copy_of(model, tmp_path)
    edf = [np.asarray(edf).sum() for edf in model.posterior.factor_edf]
    second = fit_quietly(model, data, "variational")
    tolerance = 1e-6 if model.family.name == "gaussian" else 1e-5
    assert second["bound"][0] >= history["bound"][-1] - tolerance * len(data)
    assert second["bound"][-1] >= history["bound"][-1] - tolerance * len(data)
    assert len(second["bound"]) < len(history["bound"])
    for before, after in zip(edf, model.posterior.factor_edf, strict=True):
        assert (before > 0) == (np.asarray(after).sum() > 0)


def test_what_was_switched_off_stays_off_in_the_posterior() -> None:
    rng = np.random.default_rng(0)
    data = pair_frame(200, 3)
    data["y"] = np.sin(3 * data.x0) + 0.3 * rng.normal(size=200)
    model = ak.AdditiveModel("y ~ ahofm(x0, x1, x2, D=2, F=2)", data)
    first = fit_quietly(model, data, "variational")
    layer = model.posterior
    assert not np.asarray(layer.factor_means[0]).any()
    assert not np.asarray(layer.factor_bands[0]).any()
    assert np.isinf(np.asarray(layer.factor_smoothing[0])).all()
    second = fit_quietly(model, data, "variational")
    assert second["bound"][-1] >= first["bound"][-1] - 1e-6 * 200
    assert not np.asarray(layer.factor_means[0]).any()


def test_means_of_the_posterior_are_the_weights(fitted: Fitted) -> None:
    model, _, _ = fitted
    layer = model.get_layer("ahofm_x0_x1_group")
    for place, means in enumerate(model.posterior.factor_means):
        wanted = np.asarray(means).transpose(0, 2, 1)
        np.testing.assert_allclose(layer.coordinates(place), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("center", [True, False])
def test_what_is_kept_of_a_covariance(center: bool) -> None:
    """Bands, smoothest functions and degrees of freedom are those of the whole covariance."""
    data = mixed_frame(rows=120)
    model = ak.AdditiveModel(f"y ~ ahofm(x0, x1, group, D=2, F=3, k=11, center={center})", data)
    engine = encoded_engine(model, data)
    engine.linearise()
    draw_posterior(engine, seed=0)
    engine.sweep(newton_steps=1)
    engine.change(groups=(engine.groups[0].without(1),))
    engine.sweep()
    write_posterior(model, engine.engine, engine.state)
    layer, slots = model.posterior, np.array([0, 2])
    assert layer.is_centred(0) == center
    means = model.design.function_means()
    for j, block in enumerate(engine.groups[0].blocks):
        feature, size = block.feature, block.width
        V = block.covariance.reshape(2, size, 2, size)
        T, width = feature.transform, feature.basis.width
        assert width == (1 if j == 2 else 4)
        centred = T - means[block.position]
        for f in range(2):
            for g in range(2):
                S = (V[f, :, g] + V[g, :, f]) / 2
                for found, own in ((False, T), (True, T if center else centred)):
                    band = layer.band(0, j, slots, centred=found)[f, g]
                    np.testing.assert_allclose(
                        band, read_band(own @ S @ own.T, width), rtol=1e-7, atol=1e-11
                    )
                wanted = 0.0 if center else means[block.position] @ S @ means[block.position]
                assert layer.mean_covariance(0, j, slots)[f, g] == pytest.approx(wanted, rel=1e-8)
        smoothest = np.argsort(feature.eigenvalues, kind="stable")[:8]
        tested = V[:, smoothest][:, :, :, smoothest]
        np.testing.assert_array_equal(layer.tested_covariance(0, j, slots), tested)
        influence = block.spread.solution.inverse @ block.spread.gram
        wanted = np.trace(2 * influence - influence @ influence)
        assert np.asarray(layer.reference_df[0])[j, 0] == pytest.approx(wanted, rel=1e-6)
