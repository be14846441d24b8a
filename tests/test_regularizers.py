"""The penalty in the layers' coordinates against lambda gamma' P gamma / (2 n) written out."""

from __future__ import annotations

import json
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from ahofm_keras.bases import center_basis, evaluate_basis, make_levels, make_spline
from ahofm_keras.layers import FactorizedInteraction, Smooth
from ahofm_keras.layers.coordinates import learned_coordinates
from ahofm_keras.penalties import DemmlerReinsch, difference_penalty, orthogonalise
from ahofm_keras.regularizers import QuadraticPenalty

ROWS = 250


class Smoothed:
    """A basis on data with its penalty, and its Demmler-Reinsch coordinates."""

    def __init__(self, size: int, kind: str = "ps", seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        if kind == "re":
            x = rng.integers(0, size, ROWS).astype(float)
            basis, self.penalty = make_levels(tuple(np.arange(float(size)))), np.eye(size)
        else:
            x = rng.uniform(size=ROWS)
            basis = make_spline(x, size, degree=min(3, size - 1), cyclic=kind == "cp")
            self.penalty = difference_penalty(size, cyclic=kind == "cp")
        self.basis = evaluate_basis(basis, x)
        self.orthogonal: DemmlerReinsch = orthogonalise(
            self.basis.T @ self.basis, self.penalty, ROWS, center_basis(self.basis.mean(axis=0))
        )


CASES = {
    "ps": Smoothed(12),
    "parabola": Smoothed(3),
    "line": Smoothed(2),
    "cp": Smoothed(8, "cp"),
    "re": Smoothed(5, "re"),
}


def built_smooth(case: Smoothed, smoothing: float, dtype: str = "float64") -> tuple[Smooth, np.ndarray]:
    layer = Smooth(0, case.orthogonal.transform, case.orthogonal.eigenvalues, smoothing, dtype=dtype)
    layer.build((1, None, len(case.penalty)))
    kernel = np.random.default_rng(1).normal(size=layer.kernel.shape)
    layer.kernel.assign(kernel)
    return layer, kernel


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("smoothing", [0.0, 1e-3, 1.0, 1e5])
@pytest.mark.parametrize("name", CASES)
def test_a_smooths_loss_is_its_penalty_over_2n(name: str, smoothing: float, dtype: str) -> None:
    case = CASES[name]
    layer, _ = built_smooth(case, smoothing, dtype)
    gamma = np.asarray(layer.coefficients(), float)
    (loss,) = layer.losses
    # Keras adds it to a loss of the default precision, whatever that of the weights.
    assert keras.backend.standardize_dtype(loss.dtype) == keras.config.floatx()
    wanted = smoothing * gamma @ case.penalty @ gamma / (2 * ROWS)
    assert float(loss) == pytest.approx(wanted, rel=1e-3 if dtype == "float32" else 1e-6, abs=1e-12)
    assert (float(loss) > 1e-8) == (smoothing > 0 and name != "line")


@pytest.mark.parametrize("name", CASES)
def test_the_gradient_is_that_of_the_penalty(name: str) -> None:
    case, smoothing = CASES[name], 3.0
    layer, kernel = built_smooth(case, smoothing)
    with tf.GradientTape() as tape:
        loss = layer.losses[0]
    found = tape.gradient(loss, layer.kernel.value).numpy()
    transform, _ = learned_coordinates(case.orthogonal.transform, case.orthogonal.eigenvalues, smoothing)
    wanted = smoothing * transform.T @ case.penalty @ transform @ kernel / ROWS
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-6)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 40.0])
@pytest.mark.parametrize("name", CASES)
def test_coordinates_are_only_scaled_and_the_penalty_with_them(name: str, smoothing: float) -> None:
    case = CASES[name]
    transform, weights = learned_coordinates(
        case.orthogonal.transform, case.orthogonal.eigenvalues, smoothing
    )
    before = np.linalg.norm(case.orthogonal.transform, axis=0)
    scale = np.linalg.norm(transform, axis=0) / before
    assert (scale > 0).all()
    np.testing.assert_allclose(transform, case.orthogonal.transform * scale, rtol=0, atol=1e-10)
    wanted = smoothing * transform.T @ case.penalty @ transform / ROWS
    np.testing.assert_allclose(np.diag(weights), wanted, rtol=0, atol=1e-6)
    # Wigglier functions are learned no faster than smoother ones, and none faster than the loss allows.
    assert (np.diff(scale) < 1e-12).all()
    assert scale.max() <= 1 + 1e-12


def test_an_interactions_loss_sums_orders_features_and_factors() -> None:
    cases = [CASES["ps"], CASES["re"], CASES["parabola"]]
    orders = [
        {"order": 2, "started": 4, "smoothing": [0.5, 2.0, 30.0]},
        {"order": 3, "started": 2, "smoothing": [7.0, 0.0, 1.0]},
    ]
    layer = FactorizedInteraction(
        [(0, 0), (1, 0), (2, 0)],
        [case.orthogonal.transform for case in cases],
        [case.orthogonal.eigenvalues for case in cases],
        orders,
        dtype="float64",
    )
    layer.build([(1, None, 12), (1, None, 5), (1, None, 3)])
    rng = np.random.default_rng(2)
    for weight in layer.factors:
        weight.assign(rng.normal(size=weight.shape))
    losses = [float(loss) for loss in layer.losses]
    assert len(losses) == 2
    for place, order in enumerate(orders):
        gamma = np.asarray(layer.coefficients(place))
        wanted = 0.0
        for j, case in enumerate(cases):
            for f in range(order["started"]):
                own = gamma[j, : len(case.penalty), f]
                wanted += order["smoothing"][j] * own @ case.penalty @ own / (2 * ROWS)
        assert losses[place] == pytest.approx(wanted, rel=1e-6)


def test_weights_of_leading_axes_are_shared_behind_them() -> None:
    weights = np.array([[1.0, 2.0, 0.0], [3.0, 4.0, 5.0]])
    x = np.random.default_rng(3).normal(size=(2, 3, 4))
    wanted = sum(
        weights[i, j] * x[i, j, f] ** 2 / 2 for i in range(2) for j in range(3) for f in range(4)
    )
    assert float(QuadraticPenalty(weights)(keras.ops.array(x))) == pytest.approx(wanted, rel=1e-6)


def test_config_brings_back_the_same_penalty() -> None:
    penalty = QuadraticPenalty([[0.1, 2.0], [0.0, 1 / 3]])
    config = json.loads(json.dumps(keras.saving.serialize_keras_object(penalty)))
    assert config["registered_name"] == "ahofm_keras>QuadraticPenalty"
    again = keras.saving.deserialize_keras_object(config)
    np.testing.assert_array_equal(again.weights, penalty.weights)
    x = keras.ops.array(np.random.default_rng(4).normal(size=(2, 2, 3)))
    assert float(again(x)) == float(penalty(x))


@pytest.mark.parametrize(
    ("weights", "received"),
    [
        ([1.0, -1e-9], "[1.0, -1e-09]"),
        ([[1.0], [float("nan")]], "[[1.0], [nan]]"),
        (float("inf"), "inf"),
        ((-1,), "(-1,)"),
    ],
)
def test_bad_weights_are_shown(weights: Any, received: str) -> None:
    with pytest.raises(ValueError, match="Penalty weights") as caught:
        QuadraticPenalty(weights)
    assert str(caught.value) == f"Penalty weights must be finite and not negative. Received: {received}"
