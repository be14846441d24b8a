"""Products of functions of several features, and their penalties, against `numpy.kron`."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest
from keras import ops

from ahofm_keras.tensors import (
    count_products,
    flatten_coordinates,
    margin_penalties,
    row_products,
    shape_coordinates,
    tensor_shape,
)

WIDTHS = [(3,), (3, 4), (2, 3, 4), (1, 5), (2, 2, 2, 2)]
cases = pytest.mark.parametrize("widths", WIDTHS)
kinds = pytest.mark.parametrize("pure", [True, False])


def margins(widths: tuple[int, ...], rows: int = 5) -> list[np.ndarray]:
    rng = np.random.default_rng(len(widths))
    return [rng.normal(size=(width, rows)) for width in widths]


@cases
@kinds
@pytest.mark.parametrize("namespace", [np, ops])
def test_products_of_a_row_are_its_kronecker_product(
    widths: tuple[int, ...], pure: bool, namespace: object
) -> None:
    functions = margins(widths)
    found = np.asarray(row_products(functions, pure, namespace))
    assert found.shape == (count_products(widths, pure), 5)
    for row in range(5):
        values = [own[:, row] if pure else np.append(1.0, own[:, row]) for own in functions]
        wanted = reduce(np.kron, values)
        np.testing.assert_allclose(found[:, row], wanted if pure else wanted[1:], rtol=1e-12)


@cases
@kinds
def test_penalties_are_the_diagonals_of_kronecker_products(widths: tuple[int, ...], pure: bool) -> None:
    rng = np.random.default_rng(1)
    eigenvalues = [rng.uniform(size=width) for width in widths]
    found = margin_penalties(eigenvalues, pure)
    for margin in range(len(widths)):
        matrices = []
        for other, values in enumerate(eigenvalues):
            own = values if pure else np.append(0.0, values)
            matrices.append(np.diag(own) if other == margin else np.eye(len(own)))
        wanted = np.diagonal(reduce(np.kron, matrices))
        np.testing.assert_allclose(found[margin], wanted if pure else wanted[1:], rtol=1e-15)


@cases
@kinds
def test_coefficients_keep_their_order_as_an_array_and_as_a_row(
    widths: tuple[int, ...], pure: bool
) -> None:
    values = np.arange(1.0, 1 + count_products(widths, pure))
    array = shape_coordinates(values, widths, pure)
    assert array.shape == tensor_shape(widths, pure)
    if not pure:
        assert array.flat[0] == 0
    np.testing.assert_array_equal(flatten_coordinates(array, pure), values)
    # The array's axes are the margins: contracting it with each gives the sum of all products.
    functions = margins(widths)
    total = array
    for own in reversed(functions):
        own = own[:, 0] if pure else np.append(1.0, own[:, 0])
        total = total @ own
    assert float(total) == pytest.approx(float(values @ row_products(functions, pure)[:, 0]), rel=1e-12)
