"""Concurvity against mgcv's and against dense projections."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from ahofm_keras.diagnostics import check
from ahofm_keras.diagnostics.concurvity import Block, measure_concurvity, read_blocks

FOLDER = Path(__file__).parent


@pytest.fixture(scope="module")
def mgcv() -> tuple[pd.DataFrame, dict]:
    return pd.read_csv(FOLDER / "mgcv_check.csv"), json.loads((FOLDER / "mgcv_check.json").read_text())


def test_measures_equal_mgcvs(mgcv) -> None:
    data, stored = mgcv
    terms = []
    for name, smoothing in zip(("x1", "x2", "x3"), stored["lambda"], strict=True):
        ends = (float(data[name].min()), float(data[name].max()))
        terms.append(f"s({name}, k={stored['k']}, knots={ends!r}, sp={smoothing!r})")
    model = ak.AdditiveModel(f"y ~ {' + '.join(terms)}", data)
    model.fit(data, verbose=0, solver="bcd")
    found = check(model)
    for measure, tolerance in (("worst", 1e-6), ("estimate", 1e-6), ("observed", 1e-4)):
        np.testing.assert_allclose(found.concurvity[measure], stored[measure], rtol=0, atol=tolerance)
    assert list(found.concurvity["nearest"][:2]) == ["s(x2)", "s(x1)"]
    shares = found.concurvity["nearest_share"][:2]
    np.testing.assert_allclose(shares, stored["observed_by_the_other"], rtol=0, atol=1e-4)
    # The fit is mgcv's too, so its residuals and their index are.
    np.testing.assert_allclose(found.residuals["response"], data["residual"], rtol=0, atol=1e-4)
    np.testing.assert_allclose(found.basis["k_index"], stored["k_index"], rtol=0, atol=1e-4)
    np.testing.assert_array_equal(found.basis["k'"], stored["k_prime"])


def projected(values: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Least squares onto the others and a constant."""
    design = np.column_stack([np.ones(len(others)), others])
    return design @ np.linalg.lstsq(design, values, rcond=None)[0]


def centred(values: np.ndarray) -> np.ndarray:
    return values - values.mean(axis=0)


def test_measures_equal_dense_projections() -> None:
    rng = np.random.default_rng(0)
    shared = rng.normal(size=(150, 2))
    functions = [rng.normal(size=(150, width)) + 2.0 for width in (4, 3, 1)]
    functions[0][:, :2] += shared
    functions[1][:, 0] += shared[:, 0]
    # A column that is the sum of two others, and one that is constant, change nothing.
    functions[0] = np.column_stack([functions[0], functions[0][:, 0] + functions[0][:, 1], np.ones(150)])
    weights = [rng.normal(size=own.shape[1]) for own in functions]
    blocks = [
        Block(f"t{i}", own, own @ w) for i, (own, w) in enumerate(zip(functions, weights, strict=True))
    ]
    blocks[2] = Block("order", blocks[2].functions, blocks[2].fitted, is_space=False)
    found = measure_concurvity(blocks)
    for i, own in enumerate(functions):
        others = np.column_stack([other for j, other in enumerate(functions) if j != i])
        fitted = centred(blocks[i].fitted)
        share = np.sum(projected(fitted, others) ** 2) / np.sum(fitted**2)
        assert found["observed"][i] == pytest.approx(share, abs=1e-7)
        alone = [
            np.sum(projected(fitted, other) ** 2) / np.sum(fitted**2)
            for j, other in enumerate(functions)
            if j != i
        ]
        assert found["nearest_share"][i] == pytest.approx(max(alone), abs=1e-7)
        if i == 2:
            assert found[["worst", "estimate"]].iloc[i].isna().all()
            continue
        estimate = np.sum(projected(centred(own), others) ** 2) / np.sum(centred(own) ** 2)
        assert found["estimate"][i] == pytest.approx(estimate, abs=1e-7)
        basis = np.linalg.svd(centred(own), full_matrices=False)[0][
            :, : np.linalg.matrix_rank(centred(own))
        ]
        worst = np.linalg.svd(projected(basis, others), compute_uv=False)[0] ** 2
        assert found["worst"][i] == pytest.approx(worst, abs=1e-7)


@pytest.fixture(scope="module")
def doubled() -> ak.AdditiveModel:
    rng = np.random.default_rng(2)
    data = pd.DataFrame({"x": rng.uniform(size=300), "z": rng.uniform(size=300)})
    data["same"] = 3 * data.x - 1
    data["y"] = np.sin(5 * data.x) + data.z + 0.2 * rng.normal(size=300)
    options = "k=6, knots='even'"
    model = ak.AdditiveModel(f"y ~ s(x, {options}) + s(same, {options}) + s(z, k=5)", data)
    model.fit(data, verbose=0, solver="bcd")
    return model


def test_the_same_information_twice_is_1_and_independent_ones_are_near_0(doubled) -> None:
    found = check(doubled)
    table = found.concurvity.set_index("term")
    for term, other in (("s(x)", "s(same)"), ("s(same)", "s(x)")):
        np.testing.assert_allclose(
            table.loc[term, ["worst", "observed", "estimate"]].astype(float), 1, atol=1e-6
        )
        assert table["nearest"][term] == other
        assert (
            f"100% of `{term}` can be written by the other terms, 100% by `{other}` alone"
            in " ".join(found.verdicts)
        )
    assert (table.loc["s(z)", ["observed", "estimate"]].astype(float) < 0.1).all()
    assert table["ok"].tolist() == [False, False, True]


def test_an_order_of_an_interaction_is_its_fitted_function(interaction, frame) -> None:
    model, checked = interaction
    blocks = read_blocks(
        model,
        {name: frame[name].to_numpy() for name in ("x", "z")}
        | {"group": frame["group"].to_numpy(object)},
    )
    labels = [block.label for block in blocks]
    assert labels == ["s(x)", "s(z)", "ahofm(x, z)[2]", "group"]
    found = checked.concurvity.set_index("term")
    assert found.loc["ahofm(x, z)[2]", ["worst", "estimate"]].isna().all()
    others = np.column_stack([block.functions for block in blocks if block.label != "ahofm(x, z)[2]"])
    fitted = centred(model.predict(frame, type="terms")["ahofm(x, z)[2]"].to_numpy())
    share = np.sum(projected(fitted, others) ** 2) / np.sum(fitted**2)
    assert found["observed"]["ahofm(x, z)[2]"] == pytest.approx(share, abs=1e-5)


def test_a_term_that_is_nothing_has_no_observed_share() -> None:
    rng = np.random.default_rng(0)
    functions = rng.normal(size=(50, 3))
    found = measure_concurvity(
        [Block("a", functions, functions[:, 0]), Block("b", functions[:, 1:], np.zeros(50))]
    )
    assert np.isnan(found["observed"][1])
    assert found["worst"][1] == pytest.approx(1)
    assert found["ok"][1]


def test_shares_that_noise_would_give_are_no_reason_to_worry() -> None:
    rng = np.random.default_rng(1)
    functions = [rng.normal(size=(60, 26)) for _ in range(3)]
    found = measure_concurvity([Block(f"t{i}", own, own[:, 0]) for i, own in enumerate(functions)])
    assert (found["observed"] > 0.8).all()
    assert found["ok"].all()
    assert (found["verdict"] == "").all()
