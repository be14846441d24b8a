"""Arrays in JSON."""

from __future__ import annotations

import json

import numpy as np
import pytest

from ahofm_keras.packing import pack_array, unpack_array


@pytest.mark.parametrize("shape", [(0,), (5,), (0, 3), (4, 3), (2, 3, 4)])
def test_every_digit_comes_back(shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(0).normal(size=shape) ** 51
    found = unpack_array(json.loads(json.dumps(pack_array(values))))
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, values)
    found += 1  # nobody else's


def test_values_that_json_has_no_number_for_come_back() -> None:
    values = np.array([np.inf, -np.inf, np.nan, -0.0, 5e-324])
    found = unpack_array(json.loads(json.dumps(pack_array(values), allow_nan=False)))
    np.testing.assert_array_equal(found.view(np.int64), values.view(np.int64))


def test_views_are_packed_as_they_look() -> None:
    values = np.arange(12.0).reshape(3, 4).T[::-1]
    np.testing.assert_array_equal(unpack_array(pack_array(values)), values)


def test_it_takes_less_room_than_text() -> None:
    values = np.random.default_rng(0).normal(size=(100, 100))
    assert len(json.dumps(pack_array(values))) < 0.6 * len(json.dumps(values.tolist()))
