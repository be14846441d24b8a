"""The layer that holds a sum within the range of the training rows."""

from __future__ import annotations

import numpy as np
import pytest
from keras import ops

from ahofm_keras.layers import RangeLimit
from tests.layers.common import DTYPES, ROWS


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_sum_is_clipped_and_the_change_is_told(dtype: str) -> None:
    rng = np.random.default_rng(0)
    parts = [rng.normal(size=(ROWS, 1)), rng.normal(size=(ROWS, 3))]
    given = [ops.convert_to_tensor(part, dtype=dtype) for part in parts]
    layer, total = RangeLimit(dtype=dtype), np.hstack(parts).sum(axis=1)
    np.testing.assert_allclose(np.asarray(layer(given)), np.stack([total, 0 * total], 1), atol=1e-5)
    layer.set_ends(-0.5, 1.25)
    assert layer.ends == (-0.5, 1.25)
    held = np.clip(total, -0.5, 1.25)
    assert (held != total).any()
    np.testing.assert_allclose(np.asarray(layer(given)), np.stack([held, held - total], 1), atol=1e-5)
    layer.set_ends()
    np.testing.assert_allclose(np.asarray(layer(given))[:, 0], total, atol=1e-5)


def test_missing_values_stay_missing() -> None:
    layer = RangeLimit()
    given = [ops.convert_to_tensor(np.array([[np.nan], [9.0]]), dtype="float32")]
    layer(given)
    layer.set_ends(-1.0, 1.0)
    np.testing.assert_array_equal(np.asarray(layer(given))[:, 0], [np.nan, 1.0])
