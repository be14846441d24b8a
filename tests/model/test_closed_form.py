"""Fits run to convergence against penalised least squares and against mgcv."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import keras
import numpy as np
import pandas as pd
import pytest
from scipy.interpolate import BSpline

import ahofm_keras as ak

FIXTURES = Path(__file__).parent.parent / "fixtures"


def fit_to_convergence(model: ak.AdditiveModel, data: pd.DataFrame) -> ak.AdditiveModel:
    """Full batches. In the coordinates of the layers no curvature exceeds that of a straight line, 1."""
    return fit_full_batches(model, data, keras.optimizers.SGD(0.5, momentum=0.9))


def fit_full_batches(
    model: ak.AdditiveModel, data: pd.DataFrame, optimizer: keras.optimizers.Optimizer, **kwargs: object
) -> ak.AdditiveModel:
    model.compile(optimizer=optimizer)
    with warnings.catch_warnings():
        # Whether the loss stands still for 50 epochs before the last one is a matter of rounding.
        warnings.filterwarnings("ignore", "The fit reached its last epoch", ak.AhofmWarning)
        rate = float(optimizer.learning_rate)
        steady = keras.callbacks.LearningRateScheduler(lambda epoch: rate)
        arguments = {
            "epochs": 800,
            "validation_split": 0.0,
            "verbose": 0,
            "callbacks": [steady],
            **kwargs,
        }
        for _ in range(3):  # the loss stands still, to float32, before the last digits do
            model.fit(data, batch_size=len(data), **arguments)
    return model


def mgcv() -> tuple[pd.DataFrame, dict]:
    return pd.read_csv(FIXTURES / "mgcv_ps.csv"), json.loads((FIXTURES / "mgcv_ps.json").read_text())


@pytest.mark.parametrize("fit", [0, 1, 2])
def test_smooth_equals_mgcv(fit: int) -> None:
    data, stored = mgcv()
    result = stored["fits"][fit]
    low, high = float(data.x.min()), float(data.x.max())
    model = ak.AdditiveModel(
        f"y ~ s(x, bs='ps', k=20, knots=({low!r}, {high!r}), sp={result['lambda']!r})",
        data[["x", "y"]],
        df_kind="H",
    )
    fit_to_convergence(model, data)
    np.testing.assert_allclose(model.predict(data), data[result["column"]], rtol=0, atol=2e-5)
    np.testing.assert_allclose(model.predict({"x": stored["x_new"]}), result["y_new"], rtol=0, atol=2e-5)
    assert model.intercept == pytest.approx(result["intercept"], abs=1e-5)
    assert model.design.terms[0].df == pytest.approx(result["edf"], abs=1e-5)


def test_degrees_of_freedom_of_the_text_equal_mgcvs_edf1() -> None:
    data, stored = mgcv()
    low, high = float(data.x.min()), float(data.x.max())
    for result in stored["fits"]:
        formula = f"y ~ s(x, k=20, knots=({low!r}, {high!r}), sp={result['lambda']!r})"
        term = ak.AdditiveModel(formula, data).design.terms[0]
        assert term.df == pytest.approx(result["edf1"], abs=1e-5)


def penalised_least_squares(data: pd.DataFrame, sizes: dict[str, int], lam: float) -> np.ndarray:
    """Intercept and centred P-splines on even knots, solved densely with SciPy's B-splines."""
    blocks, penalties = [np.ones((len(data), 1))], [np.zeros((1, 1))]
    for name, k in sizes.items():
        x = data[name].to_numpy()
        h = np.ptp(x) / (k - 3)
        knots = x.min() + h * np.arange(-3, k + 1)
        B = BSpline.design_matrix(np.clip(x, x.min(), x.max() - 1e-12), knots, 3).toarray()
        Z = np.linalg.svd(B.mean(axis=0)[None])[2][1:].T
        D = np.diff(np.eye(k), n=2, axis=0)
        blocks.append(B @ Z)
        penalties.append(lam * Z.T @ D.T @ D @ Z)
    X = np.hstack(blocks)
    P = np.zeros((X.shape[1], X.shape[1]))
    start = 0
    for block in penalties:
        stop = start + len(block)
        P[start:stop, start:stop] = block
        start = stop
    return X @ np.linalg.solve(X.T @ X + P, X.T @ data["y"].to_numpy())


def test_two_smooths_equal_penalised_least_squares() -> None:
    rng = np.random.default_rng(3)
    data = pd.DataFrame({"a": rng.uniform(size=300), "b": rng.normal(size=300)})
    data["y"] = np.sin(6 * data.a) + data.b**2 + 0.3 * rng.normal(size=300)
    model = ak.AdditiveModel(
        "y ~ s(a, k=12, knots='even', sp=0.7) + s(b, k=9, knots='even', sp=0.7)", data
    )
    fit_to_convergence(model, data)
    expected = penalised_least_squares(data, {"a": 12, "b": 9}, 0.7)
    np.testing.assert_allclose(model.predict(data), expected, rtol=0, atol=1e-4)


def test_sample_weights_in_units_of_their_mean_multiply_the_loss() -> None:
    rng = np.random.default_rng(4)
    data = pd.DataFrame({"x": rng.uniform(size=120)})
    data["y"] = np.sin(6 * data.x) + 0.3 * rng.normal(size=120)
    data["w"] = rng.integers(1, 4, 120).astype(float)
    model = ak.AdditiveModel("y ~ s(x, k=10, sp=0.5, knots=(0, 1))", data)
    fit_full_batches(model, data, keras.optimizers.SGD(0.3, momentum=0.9), sample_weight="w")
    weighted = penalised_least_squares_weighted(data, 0.5, (data.w / data.w.mean()).to_numpy())
    unweighted = penalised_least_squares_weighted(data, 0.5, np.ones(len(data)))
    np.testing.assert_allclose(model.predict(data), weighted, rtol=0, atol=2e-4)
    assert np.max(np.abs(weighted - unweighted)) > 1e-2


def penalised_least_squares_weighted(data: pd.DataFrame, lam: float, w: np.ndarray) -> np.ndarray:
    h = 1 / 7
    B = BSpline.design_matrix(data.x.to_numpy(), h * np.arange(-3, 11), 3).toarray()
    D = np.diff(np.eye(10), n=2, axis=0)
    return B @ np.linalg.solve(B.T @ (w[:, None] * B) + lam * D.T @ D, B.T @ (w * data.y))


def test_huge_lambda_gives_a_straight_line() -> None:
    rng = np.random.default_rng(5)
    data = pd.DataFrame({"x": rng.uniform(size=200)})
    data["y"] = np.exp(2 * data.x) + 0.1 * rng.normal(size=200)
    model = ak.AdditiveModel("y ~ s(x, knots='even', sp=1e8)", data)
    fit_to_convergence(model, data)
    line = np.polyval(np.polyfit(data.x, data.y, 1), data.x)
    np.testing.assert_allclose(model.predict(data), line, rtol=0, atol=1e-3)


def test_linear_model_equals_least_squares(frame: pd.DataFrame) -> None:
    import patsy

    formula = "x3 + group*flag + poly(x2, 2) + log(x2)"
    model = ak.AdditiveModel(f"gaussian ~ {formula}", frame)
    schedule = keras.callbacks.LearningRateScheduler(lambda epoch: 0.05 * 0.995**epoch)
    fit_full_batches(model, frame, keras.optimizers.Adam(0.05), epochs=1000, callbacks=[schedule])
    # patsy's own design, with its treatment coding; poly() spelt out as it spans the same space.
    design = np.asarray(patsy.dmatrix("x3 + group*flag + x2 + I(x2**2) + np.log(x2)", frame, env()))
    expected = design @ np.linalg.lstsq(design, frame.gaussian, rcond=None)[0]
    scale = frame.gaussian.std()
    np.testing.assert_allclose(model.predict(frame) / scale, expected / scale, rtol=0, atol=2e-3)


def env() -> object:
    from patsy import EvalEnvironment

    return EvalEnvironment([{"np": np}])
