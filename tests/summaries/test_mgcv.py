"""Coefficients and tests of terms at fixed smoothing against `mgcv_tests.R`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from ahofm_keras.summaries import Summary, summary

HERE = Path(__file__).parent
STORED = json.loads((HERE / "mgcv_tests.json").read_text())


def use_dispersion(model: ak.AdditiveModel, dispersion: float) -> None:
    """mgcv's RSS / (n - edf) in place of ours, which is that of REML."""
    layer: Any = model.posterior
    ratio = dispersion / model.scale**2 / float(layer.dispersion)
    layer.dispersion.assign(ratio * layer.dispersion)
    layer.linear_root.assign(np.sqrt(ratio) * layer.linear_root)


@pytest.fixture(scope="module", params=["gaussian", "poisson", "cyclic"])
def both(request: pytest.FixtureRequest) -> tuple[Summary, dict[str, Any]]:
    data, stored = pd.read_csv(HERE / "mgcv_tests.csv"), STORED[request.param]
    low, high, sp = float(data.x.min()), float(data.x.max()), stored["lambda"]
    if request.param == "cyclic":
        smooths = f"s(hour, bs='cp', k=12, knots=(0, 24), sp={sp[0]!r})"
    else:
        smooths = f"s(x, k=12, knots=({low!r}, {high!r}), sp={sp[0]!r})"
        smooths += f" + s(v, k=12, knots=(0, 1), sp={sp[1]!r})"
    family = "poisson" if request.param == "poisson" else "gaussian"
    response = "count" if family == "poisson" else "y"
    model = ak.AdditiveModel(f"{response} ~ z + g + {smooths}", data, family=family)
    model.fit(data, solver="variational", verbose=0)
    use_dispersion(model, stored["dispersion"][0])
    return summary(model), stored


def test_parametric_coefficients(both: tuple[Summary, dict[str, Any]]) -> None:
    found, stored = both
    for column in ("estimate", "se", "statistic", "p_value"):
        np.testing.assert_allclose(found.coefficients[column], stored[column], rtol=5e-5)


def test_linear_terms(both: tuple[Summary, dict[str, Any]]) -> None:
    found, stored = both
    linear = found.terms[found.terms.kind == "linear"]
    np.testing.assert_allclose(linear.p_value, stored["linear_p"], rtol=5e-5)
    np.testing.assert_allclose(linear.ref_df, [1, 2])


def test_smooth_terms(both: tuple[Summary, dict[str, Any]]) -> None:
    """mgcv computes tail probabilities to 2e-5 and rounds the residual degrees of freedom."""
    found, stored = both
    smooth = found.terms[found.terms.kind == "smooth"]
    np.testing.assert_allclose(smooth.edf, stored["edf"], rtol=1e-5)
    np.testing.assert_allclose(smooth.p_value, stored["smooth_p"], rtol=2e-3, atol=2e-5)
    np.testing.assert_allclose(smooth.lambda_max, stored["lambda"], rtol=1e-9)


def test_figures(both: tuple[Summary, dict[str, Any]]) -> None:
    figures, stored = both[0].figures, both[1]
    assert figures["deviance_explained"] == pytest.approx(stored["deviance_explained"][0], abs=1e-6)
    assert figures["residual_df"] == pytest.approx(stored["residual_df"][0], abs=1e-5)
    if figures["family"] == "poisson":
        assert figures["log_likelihood"] == pytest.approx(stored["log_likelihood"][0], abs=1e-4)
