"""The posterior at the weights of a solver without variances."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from ahofm_keras.bases import evaluate_basis
from ahofm_keras.solvers.sweeps import make_engine
from tests.solvers.conftest import FAMILIES, draw_response, fit_quietly, pair_frame

PLACES = [(-1, -1), (-2, -2), (-1, -2), (0, 0), (0, -1), (3, 5)]
PAIRS = "y ~ ahofm(x0, x1, x2, D=2, F=2, df=5)"


def smooth_frame(family: str, rows: int = 200) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    data = pd.DataFrame({"x": rng.uniform(size=rows), "z": rng.normal(size=rows)})
    data["y"] = draw_response(family, np.sin(4 * data.x) + 0.3 * data.z, rng)
    return data


@pytest.mark.parametrize("family", FAMILIES)
def test_of_a_linear_block_it_is_the_inverse_of_the_penalised_information(family: str) -> None:
    data = smooth_frame(family)
    model = ak.AdditiveModel("y ~ z + s(x, df=5)", data, family=family)
    fit_quietly(model, data, "bcd")
    feature, term = model.design.features[0], model.design.terms[1]
    basis = evaluate_basis(feature.basis, data.x.to_numpy()) @ feature.transform
    z = (data.z - data.z.mean()) / data.z.std(ddof=0)
    X = np.column_stack([np.ones(len(data)), z, basis])
    mean = model.predict(data)
    weight = {"bernoulli": mean * (1 - mean), "poisson": mean}.get(family, np.ones(len(data)))
    information = (X.T * weight) @ X
    penalty = np.zeros(X.shape[1])
    penalty[2:] = len(data) * term.smoothing * feature.eigenvalues
    root = np.asarray(model.posterior.linear_root)
    wanted = np.linalg.inv(information + np.diag(penalty)) * float(model.posterior.dispersion)
    np.testing.assert_allclose(root @ root.T, wanted, rtol=2e-3, atol=1e-5 * wanted.max())
    edf = np.trace(np.linalg.solve(information + np.diag(penalty), information))
    assert model.fit_result.edf == pytest.approx(edf, rel=1e-3)
    if not model.family.dispersion_known:
        left = model.fit_result.deviance / (len(data) - edf)
        assert model.fit_result.dispersion == pytest.approx(left, rel=1e-3)


def test_of_a_feature_it_is_the_curvature_with_the_others_fixed() -> None:
    """Numerical second derivatives of half the penalised deviance in one factor of one feature."""
    data = pair_frame(150)
    model = ak.AdditiveModel(PAIRS, data, extrapolation="linear")  # nothing holds predictions in a range
    with pytest.warns(ak.AhofmWarning, match="reached its last epoch"):
        fit_quietly(model, data, "bcd", epochs=5)
    layer = model.get_layer("ahofm_x0_x1_x2")
    start = layer.coordinates(0)

    def half_deviance(step: np.ndarray) -> float:
        moved = start.copy()
        moved[1, :, 0] += step
        layer.assign_coordinates(0, moved)
        return float(np.sum((data.y - model.predict(data)) ** 2)) / (2 * model.scale**2)

    size = start.shape[1]
    unit = 0.5 * np.eye(size)  # a quadratic function: any step is exact, a long one loses no digits
    found = []
    for a, b in PLACES:
        corners = [half_deviance(s * unit[a] + t * unit[b]) for s in (1, -1) for t in (1, -1)]
        found.append(corners[0] - corners[1] - corners[2] + corners[3])
    layer.assign_coordinates(0, start)
    gram = _gram(model, data)
    wanted = [gram[a, b] for a, b in PLACES]
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=2e-3 * np.abs(wanted).max())


def _gram(model: ak.AdditiveModel, data: pd.DataFrame) -> np.ndarray:
    from ahofm_keras.solvers.job import FitJob
    from ahofm_keras.solvers.weights import read_weights

    rows = model._reader.with_response(data, None, None)
    engine = make_engine(model, FitJob(rows), variational=False)
    state = engine.linearise(read_weights(model, engine.start()))
    (chunk,) = engine.store.chunks
    before = chunk.fit(state).copy()
    width = model.get_layer("ahofm_x0_x1_x2").factors[0].shape[1]
    gram = engine.factor_system(state, 0, 1).gram[:width, :width]
    np.testing.assert_allclose(chunk.fit(state), before, atol=1e-10)
    return gram


@pytest.mark.parametrize("solver", ["bcd", "adam"])
def test_every_solver_leaves_a_posterior_and_its_own_weights(solver: str) -> None:
    data = pair_frame(200)
    model = ak.AdditiveModel(PAIRS, data)
    with pytest.warns(ak.AhofmWarning, match="reached its last epoch"):
        fit_quietly(model, data, solver, epochs=4)
    assert model.has_posterior
    means = np.asarray(model.posterior.factor_means[0]).transpose(0, 2, 1)
    np.testing.assert_allclose(model.get_layer("ahofm_x0_x1_x2").coordinates(0), means, atol=1e-6)
    band = model.predict(data, interval=0.9)
    assert np.isfinite(band).all().all()
    assert (band.upper > band.lower).all()


def test_a_variational_fit_does_not_go_on_from_it() -> None:
    data = pair_frame(200)
    model, fresh = (ak.AdditiveModel(PAIRS, data) for _ in range(2))
    with pytest.warns(ak.AhofmWarning, match="reached its last epoch"):
        fit_quietly(model, data, "bcd", epochs=2)
    np.testing.assert_allclose(
        fit_quietly(model, data, "variational")["bound"],
        fit_quietly(fresh, data, "variational")["bound"],
        rtol=1e-8,
    )


def test_a_loss_of_the_user_has_none() -> None:
    data = pair_frame(100)
    model = ak.AdditiveModel("y ~ s(x0)", data)
    model.compile(loss="mae")
    with pytest.warns(ak.AhofmWarning, match="reached its last epoch"):
        model.fit(data, epochs=1, verbose=0)
    assert not model.has_posterior
    with pytest.raises(ak.NotFittedError, match="conformal"):
        model.predict(data, interval=0.9)
