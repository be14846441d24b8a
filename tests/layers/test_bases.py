"""Places, basis expansions and smooths against SciPy and plain products."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from ahofm_keras.bases import make_levels, make_spline
from ahofm_keras.layers import BasisExpansion, Positions, Smooth
from ahofm_keras.layers.basis import all_functions
from ahofm_keras.layers.coordinates import learned_coordinates
from ahofm_keras.transforms import column
from tests.layers.common import DTYPES, ROWS, coordinates, dense
from tests.reference import integer_splines

# Basis expansion


def test_bases_of_one_kind_are_expanded_together() -> None:
    rng = np.random.default_rng(0)
    places = np.column_stack([rng.uniform(0, 6, ROWS), rng.uniform(0, 2, ROWS), rng.uniform(0, 9, ROWS)])
    layer = BasisExpansion([2, 1], [12, 5], 3, dtype="float64")
    functions, values = layer(ops.convert_to_tensor(places))
    assert functions.shape == values.shape == (2, 4, ROWS)
    for place, where, size in ((0, 2, 12), (1, 1, 5)):
        found = dense(functions[place], values[place], size)
        np.testing.assert_allclose(found, integer_splines(places[:, where], size, 3), rtol=0, atol=1e-12)


def test_circles_of_different_length_are_expanded_together() -> None:
    rng = np.random.default_rng(1)
    sizes = [9, 5]
    values = [rng.uniform(0, 24, ROWS) for _ in sizes]
    bases = [
        make_spline(x, size, cyclic=True, knots=(0, 24)) for x, size in zip(values, sizes, strict=True)
    ]
    pairs = [(column(name), basis) for name, basis in zip("ab", bases, strict=True)]
    places = Positions(pairs, dtype="float64")({"a": ops.array(values[0]), "b": ops.array(values[1])})
    functions, found = BasisExpansion([0, 1], sizes, 3, cyclic=True, dtype="float64")(places)
    for place, (x, size) in enumerate(zip(values, sizes, strict=True)):
        open_ended = integer_splines(x / 24 * size, size + 3, 3)
        joined = open_ended[:, :size].copy()
        joined[:, :3] += open_ended[:, size:]
        own = dense(functions[place], found[place], size)
        np.testing.assert_allclose(own, joined, rtol=0, atol=1e-6)


def test_levels_of_different_number_are_expanded_together() -> None:
    places = np.array([[0.0, 2.0], [1.0, -1.0], [-1.0, 0.0]])
    functions, values = BasisExpansion([0, 1], [2, 3], 0)(ops.convert_to_tensor(places, "float32"))
    assert functions.shape == values.shape == (2, 1, 3)
    np.testing.assert_array_equal(dense(functions[0], values[0], 2), [[1, 0], [0, 1], [0, 0]])
    np.testing.assert_array_equal(dense(functions[1], values[1], 3), [[0, 0, 1], [0, 0, 0], [1, 0, 0]])


def test_places_without_a_degree_stand_as_they_are() -> None:
    places = np.random.default_rng(2).normal(size=(ROWS, 3))
    expansion = BasisExpansion([2, 0], [1, 1], None, dtype="float64")
    functions, values = expansion(ops.convert_to_tensor(places))
    np.testing.assert_array_equal(np.asarray(values), places.T[[2, 0], None, :])
    np.testing.assert_array_equal(np.asarray(functions), np.zeros((2, 1, ROWS)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [{}, {"cyclic": True}, {"straight": True}], ids=str)
@pytest.mark.parametrize("jit", [False, True])
def test_a_missing_place_has_missing_values_of_functions_that_exist(
    axis: dict[str, bool], dtype: str, jit: bool
) -> None:
    layer = BasisExpansion([0], [9], 3, dtype=dtype, **axis)
    places = tf.constant([[np.nan], [4.5], [6.0], [0.0]], dtype)
    functions, values = tf.function(layer, jit_compile=jit)(places)
    assert set(np.asarray(functions).ravel()) <= set(range(9))
    missing = np.isnan(np.asarray(values)[0])
    np.testing.assert_array_equal(missing, [[True, False, False, False]] * 4)


@pytest.mark.parametrize("jit", [False, True])
def test_straight_lines_go_far_beyond_the_ends(jit: bool) -> None:
    """Further than any whole number in 32 bits."""
    layer = BasisExpansion([0], [9], 3, straight=True, dtype="float64")
    far = np.array([-1e12, -3.0, 9.0, 1e12])
    functions, values = tf.function(layer, jit_compile=jit)(tf.constant(far[:, None]))
    line = np.arange(9) - 1.0  # coefficients of the place itself
    found = dense(functions[0], values[0], 9) @ line
    np.testing.assert_allclose(found, far, rtol=1e-12)


def test_all_functions_are_those_that_are_not_zero_and_zeros() -> None:
    places = np.random.default_rng(3).uniform(0, 6, (ROWS, 1))
    (functions, values) = BasisExpansion([0], [9], 3, dtype="float64")(ops.convert_to_tensor(places))
    found = np.asarray(all_functions((functions[0], values[0]), 9))
    np.testing.assert_allclose(found.T, integer_splines(places[:, 0], 9, 3), rtol=0, atol=1e-12)


# Positions


def test_positions_keep_the_digits_of_time_stamps() -> None:
    x = 1.7e9 + np.sort(np.random.default_rng(0).uniform(0, 100, 500))
    basis = make_spline(x, 20, knots="even")
    found = Positions([(column("t"), basis)], dtype="float32")({"t": ops.convert_to_tensor(x)})
    wanted = (x - x[0]) / (x[-1] - x[0]) * 17
    np.testing.assert_allclose(np.asarray(found)[:, 0], wanted, rtol=0, atol=2e-6)


@pytest.mark.parametrize("levels", [("a", "b"), ("", "[UNK]", "a"), ("Zürich", "東京")])
def test_texts_find_the_index_of_their_level(levels: tuple[str, ...]) -> None:
    layer = Positions([(column("g"), make_levels(levels))])
    values = [*reversed(levels), "not seen", levels[0]]
    found = np.asarray(layer({"g": tf.constant(values)}))[:, 0]
    wanted = [levels.index(value) if value in levels else -1 for value in values]
    np.testing.assert_array_equal(found, wanted)


# Smooth


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("feature", [0, 1])
def test_a_smooth_is_basis_times_transform_times_weights(feature: int, dtype: str) -> None:
    rng = np.random.default_rng(feature)
    size = [7, 4][feature]
    x = rng.uniform(size=(ROWS, 2))
    bases = [make_spline(x[:, 0], 7, knots="even"), make_spline(x[:, 1], 4, knots="even")]
    given = coordinates(bases[feature], x[:, feature])
    smooth = Smooth(feature, given.transform, given.eigenvalues, 0.3, dtype=dtype)
    spans = np.ptp(x, axis=0)
    places = (x - x.min(axis=0)) / spans * [4, 1]
    expanded = BasisExpansion([0, 1], [7, 4], 3, dtype=dtype)(ops.convert_to_tensor(places, dtype=dtype))
    assert np.abs(np.asarray(smooth(expanded))).max() == 0  # starts flat
    kernel = rng.normal(size=size - 1)
    smooth.kernel.assign(kernel)
    transform, _ = learned_coordinates(given.transform, given.eigenvalues, 0.3)
    wanted = integer_splines(places[:, feature], size, 3) @ transform @ kernel
    found = np.asarray(smooth(expanded))
    assert found.shape == (ROWS, 1)
    np.testing.assert_allclose(found[:, 0], wanted, rtol=0, atol=1e-4 if dtype == "float32" else 1e-10)
    np.testing.assert_allclose(
        np.asarray(smooth.coefficients()), transform @ kernel, rtol=1e-5, atol=1e-5
    )
