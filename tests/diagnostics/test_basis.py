"""The k-index against mgcv's, and whether small bases are found."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from ahofm_keras.diagnostics import check
from ahofm_keras.diagnostics.basis import k_index, permuted_indices

FOLDER = Path(__file__).parent


@pytest.fixture(scope="module")
def mgcv() -> tuple[pd.DataFrame, dict]:
    return pd.read_csv(FOLDER / "mgcv_check.csv"), json.loads((FOLDER / "mgcv_check.json").read_text())


def test_index_equals_mgcvs_on_the_same_residuals(mgcv) -> None:
    data, stored = mgcv
    residuals = data["residual"].to_numpy()
    found = [k_index(residuals, data[name].to_numpy()) for name in ("x1", "x2", "x3")]
    np.testing.assert_allclose(found, stored["k_index"], rtol=0, atol=1e-12)
    permuted = permuted_indices(residuals, np.random.default_rng(0))
    p_values = [np.mean(permuted < index) for index in found]
    np.testing.assert_allclose(p_values, stored["p_value"], rtol=0, atol=0.07)


@pytest.fixture(scope="module")
def wave() -> pd.DataFrame:
    rng = np.random.default_rng(4)
    data = pd.DataFrame({"x": rng.uniform(size=300), "z": rng.uniform(size=300)})
    data["y"] = np.sin(12 * data.x) + 0.3 * rng.normal(size=300)
    data["group"] = rng.choice(["a", "b"], 300)
    return data


@pytest.mark.parametrize(
    ("formula", "solver", "verdict"),
    [
        ("y ~ s(x, k=4) + s(z)", "variational", "k of `s(x)` may be too small: try k=8."),
        ("y ~ ahofm(x, z, main=False, k=4, F=1)", "bcd", "Residuals still have shape along `x`, which only interacts: give it a smooth too."),
        ("y ~ x + s(z)", "variational", "Residuals still have shape along `x`, which is linear: try a smooth of it."),
        ("y ~ s(x, k=20) + s(z) + s(group)", "variational", ""),
        ("y ~ s(x, k=20, sp=1e7)", "bcd", "Residuals still have shape along `x`, though only 1.0 of 19 degrees of freedom are used: the smoothing was given. Let `solver="),
        ("y ~ s(x, k=20, sp=1e7)", "variational", "Residuals still have shape along `x`, though only 1.0 of 19 degrees of freedom are used: the smoothing was given. Let `solver="),
    ],
)  # fmt: skip
def test_too_small_a_basis_is_flagged(wave, formula: str, solver: str, verdict: str) -> None:
    model = ak.AdditiveModel(formula, wave)
    model.fit(wave, verbose=0, solver=solver)
    basis = check(model).basis.set_index("basis")
    found = basis["verdict"]["x"]
    assert found.startswith(verdict) if verdict else found == ""
    assert basis["ok"]["x"] == (not verdict)
    assert (basis["k_index"]["x"] < 0.8) == bool(verdict)
    if "z" in basis.index:
        assert basis["ok"]["z"]
    if "group" in basis.index:
        assert np.isnan(basis["k_index"]["group"])
        assert basis["ok"]["group"]


def test_few_distinct_values_bound_the_advice(wave) -> None:
    data = wave.assign(x=np.round(wave.x * 6) / 6)
    data["y"] = 3.0 * (np.round(6 * data.x) % 2) + wave.z
    model = ak.AdditiveModel("y ~ s(x, k=4)", data)
    model.fit(data, verbose=0, solver="bcd")
    basis = check(model).basis
    assert basis["verdict"][0] == "k of `s(x)` may be too small: try k=6."


def test_degrees_of_freedom_are_those_that_the_fit_reached(right) -> None:
    model, found = right("gaussian")
    assert list(found.basis["terms"]) == ["s(x)", "s(z)"]
    # The rest are the intercept and two levels.
    assert found.basis["edf"].sum() + 3 == pytest.approx(model.fit_result.edf, rel=0.01)
    assert (found.basis["k'"] == found.basis["k"] - 1).all()


def test_a_basis_of_an_interaction_counts_its_largest_use(interaction, monkeypatch) -> None:
    model, found = interaction
    assert list(found.basis["basis"]) == ["x", "z"]
    assert found.basis["terms"][0] == "s(x), ahofm(x, z)"
    # Of the linear block: the intercept, two levels, the smooths of x and z.
    smooth = np.asarray(model.posterior.linear_edf)[3:].reshape(2, -1).sum(axis=1)
    factors = np.asarray(model.posterior.factor_edf[0]).max(axis=1)
    np.testing.assert_allclose(found.basis["edf"], np.maximum(smooth, factors))
    monkeypatch.setattr(ak.AdditiveModel, "has_posterior", property(lambda self: False))
    without = check(model)
    terms = {term.label: term for term in model.design.terms}
    asked = max(terms["s(x)"].df, terms["ahofm(x, z)"].orders[0].df[0])
    assert without.basis["edf"][0] == pytest.approx(asked)
    assert without.residuals["leverage"].isna().all()
    assert "rows of high leverage" not in list(without.tests["check"])


def test_both_bases_of_a_feature_are_judged(wave) -> None:
    model = ak.AdditiveModel("y ~ s(x, k=4) + ahofm(x, z, k=5, main=False, F=1)", wave)
    model.fit(wave, verbose=0, solver="bcd")
    verdicts = check(model).verdicts
    assert "k of `s(x)` may be too small: try k=8." in verdicts
    assert "k of `x` in `ahofm(x, z)` may be too small: try k={'x': 10}." in verdicts


def test_more_than_5000_rows_are_sampled_with_the_seed(right, frame) -> None:
    data = pd.concat([frame] * 14, ignore_index=True)
    first, again, other = (check(right("gaussian")[0], data, seed).basis for seed in (0, 0, 1))
    pd.testing.assert_frame_equal(first, again)
    assert (first["k_index"] != other["k_index"]).all()


def test_what_is_finer_than_the_knots_asks_for_a_larger_k_first() -> None:
    """To the evidence it is noise, so that hardly any degrees of freedom are used."""
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"x": rng.uniform(size=1000), "z": rng.uniform(size=1000)})
    data["y"] = np.sin(120 * data.x) + data.z + 0.2 * rng.normal(size=1000)
    model = ak.AdditiveModel("y ~ s(x, k=12) + s(z)", data)
    model.fit(data, verbose=0)
    found = check(model)
    basis = found.basis.set_index("basis")
    assert basis["edf"]["x"] < 5
    assert found.verdicts[0].startswith(
        "k of `s(x)` may be too small: try k=24. If that changes nothing (only "
    )
    assert found.verdicts[0].endswith(" may be missing, or rows depend on each other.")
    assert len(found.verdicts) > 1  # what follows from it stands after it
