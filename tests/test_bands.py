"""Bands against the dense matrices that they stand for."""

from __future__ import annotations

import numpy as np
import pytest

from ahofm_keras.bands import (
    evaluate_band,
    product_band,
    quadratic_weights,
    read_band,
    transform_band,
)

WIDTHS = [1, 2, 4]


def symmetric(rng: np.random.Generator, size: int) -> np.ndarray:
    matrix = rng.normal(size=(size, size))
    return matrix + matrix.T


@pytest.mark.parametrize("width", WIDTHS)
def test_the_band_of_a_product(width: int) -> None:
    rng = np.random.default_rng(width)
    transform, forms = rng.normal(size=(9, 5)), np.stack([symmetric(rng, 5) for _ in range(3)])
    band = product_band(transform @ forms, transform, width)
    np.testing.assert_allclose(band, read_band(transform @ forms @ transform.T, width))


@pytest.mark.parametrize("size", [4, 5, 9])
@pytest.mark.parametrize("width", WIDTHS)
def test_sums_in_a_band_go_round(width: int, size: int) -> None:
    """Rows of a cyclic basis, of which few functions may meet twice."""
    rng = np.random.default_rng(size)
    values, cells = rng.normal(size=(30, width)), rng.integers(0, size, 30)
    dense, band = np.zeros((size, size)), np.zeros((size, width))
    for row, cell in zip(values, cells, strict=True):
        functions = (cell + np.arange(width)) % size
        dense[np.ix_(functions, functions)] += np.outer(row, row)
        for k in range(width):
            for m in range(k, width):
                band[functions[k], m - k] += row[k] * row[m]
    right = rng.normal(size=(size, 3))
    np.testing.assert_allclose(transform_band(band, right), right.T @ dense @ right)


@pytest.mark.parametrize("width", WIDTHS)
def test_quadratic_forms_of_neighbours(width: int) -> None:
    rng = np.random.default_rng(width)
    form, row, cell = symmetric(rng, 9), rng.normal(size=width), 3
    band, weights = read_band(form, width), quadratic_weights(width)
    total = sum(
        weights[m - k] * row[k] * row[m] * band[cell + k, m - k]
        for k in range(width)
        for m in range(k, width)
    )
    whole = np.zeros(9)
    whole[cell : cell + width] = row
    np.testing.assert_allclose(total, whole @ form @ whole)


@pytest.mark.parametrize("size", [4, 5, 6, 7, 9])
@pytest.mark.parametrize("width", WIDTHS)
def test_quadratic_forms_on_rows(width: int, size: int) -> None:
    """Of the neighbours of each cell; on a circle, too."""
    rng = np.random.default_rng(size)
    forms = np.stack([symmetric(rng, size) for _ in range(2)])
    cells, values = np.arange(size), rng.normal(size=(width, size))
    whole = np.zeros((size, size))
    for row, cell in enumerate(cells):
        whole[row, (cell + np.arange(width)) % size] = values[:, row]
    wanted = np.einsum("na,pab,nb->pn", whole, forms, whole)
    band = read_band(forms, width)
    np.testing.assert_allclose(evaluate_band(band, cells, values), wanted)
