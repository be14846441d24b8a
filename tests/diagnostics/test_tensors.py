"""Tensor products in a check: neighbours on surfaces, concurvity of all their functions."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from ahofm_keras.bases import evaluate_basis
from ahofm_keras.diagnostics import check
from ahofm_keras.diagnostics.concurvity import read_blocks
from ahofm_keras.diagnostics.neighbours import find_neighbours, surface_index, surface_test
from tests.diagnostics.conftest import fit
from tests.reference import penalised


@pytest.fixture(scope="module")
def waves() -> pd.DataFrame:
    """A surface with more waves than four functions a margin have, and one that is right."""
    rng = np.random.default_rng(4)
    data = pd.DataFrame({"x": rng.uniform(size=400), "z": rng.uniform(size=400)})
    data["group"] = rng.choice(["a", "b"], 400)
    data["y"] = 2 * np.sin(14 * data.x) * np.sin(10 * data.z) + 0.2 * rng.normal(size=400)
    return data


@pytest.fixture(scope="module")
def variables(waves: pd.DataFrame):
    found = ak.AdditiveModel("y ~ ti(x, z, group, k=4)", waves).design.variables()
    return {variable.label: variable for variable in found}


def test_neighbours_by_brute_force(waves: pd.DataFrame, variables) -> None:
    """Nearest by ranks, within a level, and never the row itself."""
    columns = {name: waves[name].to_numpy() for name in ("x", "z", "group")}
    found = find_neighbours([variables[name] for name in columns], columns)
    ranks = waves[["x", "z"]].rank().to_numpy() / 400
    apart = np.linalg.norm(ranks[:, None] - ranks[None], axis=2)
    apart[columns["group"][:, None] != columns["group"]] = np.inf
    np.fill_diagonal(apart, np.inf)
    # Distances and not rows: ranks have ties.
    wanted = np.sort(apart, axis=1)[:, :3]
    np.testing.assert_allclose(np.take_along_axis(apart, found, axis=1), wanted, atol=1e-12)
    assert all(len(set(row)) == 3 for row in found.tolist())


def test_rows_that_share_a_place_are_neighbours_of_each_other(variables) -> None:
    columns = {"x": np.repeat([0.1, 0.9], 6), "z": np.repeat([0.2, 0.4], 6)}
    found = find_neighbours([variables["x"], variables["z"]], columns)
    assert found.shape == (12, 3)
    assert (found != np.arange(12)[:, None]).all()
    assert ((found < 6) == (np.arange(12) < 6)[:, None]).all()


def test_the_index_of_noise_is_about_one(waves: pd.DataFrame, variables) -> None:
    columns = {name: waves[name].to_numpy() for name in ("x", "z")}
    near = find_neighbours([variables["x"], variables["z"]], columns)
    rng = np.random.default_rng(0)
    noise = rng.normal(size=400)
    by_hand = np.mean([(noise[i] - noise[j]) ** 2 for i in range(400) for j in near[i]]) / 2
    assert surface_index(noise, near) == pytest.approx(by_hand / np.mean(noise**2))
    index, p_value = surface_test(noise, near, rng, 100)
    assert index == pytest.approx(1, abs=0.15)
    assert p_value > 0.05
    assert surface_test(np.sin(9 * columns["x"] * columns["z"]), near, rng, 100)[1] < 0.02


@pytest.mark.parametrize(
    ("size", "verdict"),
    [(4, "k of `x` in `ti(x, z)` may be too small: try k={'x': 8}."), (14, "")],
)
def test_a_surface_with_too_small_a_basis_is_flagged(
    waves: pd.DataFrame, size: int, verdict: str
) -> None:
    found = check(fit(f"y ~ s(x) + s(z) + ti(x, z, k={size}, sp=0)", waves, solver="bcd")).basis
    own = found[found["terms"] == "ti(x, z)"].set_index("basis")
    assert list(own.index) == ["x", "z"]
    assert own["verdict"]["x"] == verdict
    assert (own["ok"] == (not verdict)).all()
    assert own["k_index"]["x"] == own["k_index"]["z"]
    assert found["ok"][found["terms"] == "s(x)"].all(), "a surface has no shape along one feature"


def test_degrees_of_freedom_along_a_margin(waves: pd.DataFrame) -> None:
    """Without a penalty, as many as there are functions; of a `te()` the constant is none of them."""
    model = fit("y ~ te(x, z, k=(5, 6), sp=0) + ti(x, group, k=4)", waves, solver="bcd")
    basis = check(model).basis
    whole = basis[basis["terms"] == "te(x, z)"]
    np.testing.assert_allclose(whole["edf"], [4, 5], rtol=1e-3)
    np.testing.assert_array_equal(whole["k'"], [4, 5])
    level = basis[basis["basis"] == "group"].iloc[0]
    assert np.isnan(level["k_index"])
    assert level["edf"] <= 1.001


def test_blocks_of_tensor_products(waves: pd.DataFrame) -> None:
    model = ak.AdditiveModel("y ~ s(x, k=5) + te(z, group, k=4) + ti(x, z, k=5)", waves)
    model.fit(waves, verbose=0, solver="bcd")
    smooth, whole, pure = read_blocks(model, {n: waves[n].to_numpy() for n in ("x", "z", "group")})
    assert [block.label for block in (smooth, whole, pure)] == ["s(x)", "te(z, group)", "ti(x, z)"]
    assert [block.functions.shape[1] for block in (smooth, whole, pure)] == [4, 3 + 1 + 3, 16]
    own = []
    for place in penalised(model.design)[2].features:
        feature = model.design.features[place]
        basis = evaluate_basis(feature.basis, waves[feature.label].to_numpy())
        own.append(basis - basis.mean(axis=0))
    products = np.array([reduce(np.kron, row) for row in zip(*own, strict=True)])
    # The same functions, whatever the coordinates.
    left = np.linalg.lstsq(products, pure.functions, rcond=None)[0]
    np.testing.assert_allclose(products @ left, pure.functions, atol=1e-9)
    frame = check(model).concurvity.set_index("term")
    assert frame["worst"]["ti(x, z)"] < 1
    assert frame["nearest"]["ti(x, z)"] in ("s(x)", "te(z, group)")
