"""Features with values far from all others: what the penalty leaves free, and what is left of the fit."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from ahofm_keras.bases import evaluate_basis
from tests.terms.common import fit, smooth

ROWS = 600


def bulk_and(*far: float, seed: int = 0) -> np.ndarray:
    """Standard normal values, the last ones replaced."""
    x = np.random.default_rng(seed).normal(size=ROWS)
    x[ROWS - len(far) :] = far
    return x


@pytest.mark.filterwarnings("ignore:`x` goes to")
@pytest.mark.parametrize("far", [(1e4,), (-1e9,), (-1e6, 1e6), (-1e12, 1e12)])
@pytest.mark.parametrize("df", [1.05, 4.0])
def test_only_the_straight_line_is_free(far: tuple[float, ...], df: float) -> None:
    x = bulk_and(*far)
    _, feature = smooth(f"s(x, df={df})", data=pd.DataFrame({"x": x, "y": 0.0}))
    assert feature.null_dimension == 1
    assert (feature.eigenvalues[1:] > 0).all()
    assert feature.eigenvalues[0] == 0
    rows = evaluate_basis(feature.basis, x) @ feature.transform
    assert np.isfinite(rows).all()


def test_penalties_do_not_depend_on_units() -> None:
    x = np.random.default_rng(1).gamma(1.0, size=ROWS)
    found = []
    for unit in (1.0, 1e-160, 1e140):
        design = fit("s(x, df=4)", pd.DataFrame({"x": unit * x, "y": 0.0}))
        found.append(design.features[0].eigenvalues)
    np.testing.assert_allclose(found[1], found[0], rtol=1e-6)
    np.testing.assert_allclose(found[2], found[0], rtol=1e-6)


@pytest.mark.parametrize("far", [(1e4,), (-100.0, 1e4), (-9999.0,) * 60])
def test_far_values_leave_a_curve_of_the_others(far: tuple[float, ...]) -> None:
    x = bulk_and(*far)
    near = np.abs(x) < 50
    truth = np.where(near, np.sin(2 * np.clip(x, -6, 6)), 0.0)
    data = pd.DataFrame({"x": x, "y": truth + 0.3 * np.random.default_rng(2).normal(size=ROWS)})
    model = ak.AdditiveModel("y ~ s(x, k=20)", data)
    model.fit(data, verbose=0)
    error = np.sqrt(np.mean((model.predict(data) - truth) ** 2))
    assert error < 0.12, "without far values it is 0.06, without a curve 0.7"
