"""Elementary symmetric polynomials against the exact sum over all subsets."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from ahofm_keras.moments import elementary_symmetric
from tests.reference import symmetric_gradient, symmetric_polynomial

ORDERS = [(order, features) for order in range(2, 7) for features in range(order, 10)]
DTYPES = ["float32", "float64"]
ROWS = 3


def draw(order: int, features: int, dtype: str) -> np.ndarray:
    """Factors `(p, rows)` of both signs, from 1e-3 to 1e3; in the last row all are 1e3 in size."""
    rng = np.random.default_rng([order, features])
    size = 10 ** rng.uniform(-3, 3, (features, ROWS))
    size[:, -1] = 1e3
    return (size * rng.choice([-1, 1], (features, ROWS))).astype(dtype)


def tolerance(order: int, dtype: str) -> float:
    """A factor has d - 1 products and, in each of the 4 levels that join 9 features, d sums."""
    return 2 * order * float(np.finfo(dtype).eps)


def newton_identities(phi: np.ndarray, order: int) -> np.ndarray:
    """The paper's form, from power sums."""
    found = [np.ones_like(phi[0])]
    powers = [np.sum(phi**t, axis=0) for t in range(order + 1)]
    for degree in range(1, order + 1):
        signed = [(-1) ** (t + 1) * found[degree - t] * powers[t] for t in range(1, degree + 1)]
        found.append(np.sum(signed, axis=0) / degree)
    return found[order]


def worst_error(found: Any, phi: np.ndarray, order: int) -> float:
    """Largest error over the rows, relative to e_d(|phi|)."""
    found = np.asarray(found)
    assert found.shape == phi.shape[1:]
    assert found.dtype == phi.dtype
    return max(
        float(
            abs(float(value) - symmetric_polynomial(row, order)) / symmetric_polynomial(abs(row), order)
        )
        for value, row in zip(found, phi.T, strict=True)
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("namespace", [np, keras.ops], ids=["numpy", "keras"])
@pytest.mark.parametrize(("order", "features"), ORDERS)
def test_value_is_the_sum_over_all_subsets(
    order: int, features: int, namespace: Any, dtype: str
) -> None:
    phi = draw(order, features, dtype)
    given = phi if namespace is np else keras.ops.convert_to_tensor(phi)
    found = elementary_symmetric(given, order, namespace)
    assert worst_error(found, phi, order) <= tolerance(order, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("order", "features"), ORDERS)
def test_gradient_is_the_polynomial_without_the_feature(order: int, features: int, dtype: str) -> None:
    phi = draw(order, features, dtype)
    variable = tf.Variable(phi)
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(elementary_symmetric(variable, order, keras.ops))
    gradient = tape.gradient(total, variable).numpy()
    for row in range(ROWS):
        exact = symmetric_gradient(phi[:, row], order)
        reach = symmetric_gradient(abs(phi[:, row]), order)
        errors = [
            float(abs(float(value) - wanted) / size)
            for value, wanted, size in zip(gradient[:, row], exact, reach, strict=True)
        ]
        assert max(errors) <= tolerance(order, dtype)


def test_the_tolerance_tells_power_sums_apart() -> None:
    phi = draw(4, 9, "float32")
    assert worst_error(newton_identities(phi, 4), phi, 4) > 10 * tolerance(4, "float32")


@pytest.mark.parametrize("features", [1, 2, 3, 7, 8])
def test_first_order_is_the_sum(features: int) -> None:
    phi = np.random.default_rng(features).normal(size=(features, 4))
    np.testing.assert_allclose(elementary_symmetric(phi, 1), phi.sum(axis=0), rtol=0, atol=1e-14)


@pytest.mark.parametrize("shape", [(), (4,), (4, 3)])
@pytest.mark.parametrize("features", [3, 5])
def test_axes_behind_the_features_are_kept(shape: tuple[int, ...], features: int) -> None:
    phi = np.random.default_rng(0).normal(size=(features, *shape))
    found = elementary_symmetric(phi, 3)
    assert np.shape(found) == shape
    for place in np.ndindex(*shape):
        wanted = float(symmetric_polynomial(phi[(slice(None), *place)], 3))
        assert np.asarray(found)[place] == pytest.approx(wanted, rel=1e-12)


def test_the_compiled_graph_has_no_chain_over_the_features() -> None:
    def operations(features: int) -> int:
        signature = tf.TensorSpec((features, None), tf.float32)
        traced = tf.function(lambda phi: elementary_symmetric(phi, 3, keras.ops))
        return len(traced.get_concrete_function(signature).graph.get_operations())

    assert operations(256) - operations(128) == operations(128) - operations(64)
