"""Linear effects, predictor, response and offset."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from keras import ops

from ahofm_keras.layers import Linear, Offset, Predictor, Response
from ahofm_keras.transforms import Expression, column
from tests.layers.common import ROWS

# Linear, Predictor, Response, Offset


def test_a_linear_effect_takes_its_own_columns() -> None:
    design = np.random.default_rng(0).normal(size=(ROWS, 5))
    layer = Linear(1, 4, dtype="float64")
    layer(ops.convert_to_tensor(design))
    layer.kernel.assign([2.0, -1.0, 0.5])
    wanted = 2 * design[:, 1] - design[:, 2] + design[:, 3] / 2
    np.testing.assert_allclose(np.asarray(layer(ops.convert_to_tensor(design)))[:, 0], wanted)


@pytest.mark.parametrize("with_offset", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_the_predictor_adds_everything_up_in_double_precision(
    intercept: bool, with_offset: bool
) -> None:
    rng = np.random.default_rng(0)
    parts = [rng.normal(size=(ROWS, 1)), rng.normal(size=(ROWS, 3))]
    offset = rng.normal(size=ROWS)
    layer = Predictor(1.7e9, 0.25, intercept, dtype="float32")
    given = [ops.convert_to_tensor(part, dtype="float32") for part in parts]
    added = ops.convert_to_tensor(offset) if with_offset else None
    layer(given, added)
    total = np.hstack(parts).sum(axis=1)
    if intercept:
        layer.bias.assign(0.5)
        total = total + 0.5
    else:
        assert layer.trainable_weights == []
    wanted = 1.7e9 + 0.25 * total + (offset if with_offset else 0)
    np.testing.assert_allclose(np.asarray(layer(given, added)), wanted, rtol=0, atol=2e-6)


@pytest.mark.parametrize(
    ("family", "mean"),
    [
        ("gaussian", lambda eta: eta),
        ("bernoulli", lambda eta: 1 / (1 + np.exp(-eta))),
        ("poisson", np.exp),
        ("gamma", np.exp),
    ],
)
def test_the_response_is_the_inverse_link_in_double_precision(
    family: str, mean: Callable[[np.ndarray], np.ndarray]
) -> None:
    eta = np.linspace(-4, 4, 9) + 1e-9
    found = np.asarray(Response(family, dtype="float32")(ops.convert_to_tensor(eta)))
    np.testing.assert_allclose(found, mean(eta), rtol=1e-12)


def test_offsets_are_added_in_double_precision() -> None:
    x = np.array([1.7e9 + 0.125, 2.0, 3.0])
    layer = Offset([column("x"), Expression("log", (column("x"),))], dtype="float32")
    found = np.asarray(layer({"x": ops.convert_to_tensor(x)}))
    np.testing.assert_allclose(found, x + np.log(x), rtol=1e-15)
