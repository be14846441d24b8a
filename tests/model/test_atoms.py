"""Fits with values that many rows share: against dense algebra, hand-made columns, and without them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

import ahofm_keras as ak
from ahofm_keras.bases import evaluate_basis
from ahofm_keras.penalties import difference_penalty

ROWS = 2000
HEAPS = np.array([0.0, 40.0])


def draw(seed: int = 0, effects: tuple[float, float] = (1.5, -1.0), rows: int = ROWS) -> pd.DataFrame:
    """A curve, what two heaps of x add, the second of them by z, and noise."""
    rng = np.random.default_rng(seed)
    share, x, z = rng.uniform(size=rows), rng.uniform(-10, 60, rows), rng.uniform(size=rows)
    x = np.where(share < 0.2, 0.0, np.where(share < 0.4, 40.0, x))
    mean = np.sin(x / 12) + effects[0] * (x == 0) + effects[1] * 2 * z * (x == 40) + z**2
    return pd.DataFrame({"x": x, "z": z, "y": mean + 0.3 * rng.normal(size=rows)})


DATA = draw()


def fit(formula: str, data: pd.DataFrame = DATA, solver: str = "variational", **options: Any) -> Any:
    model = ak.AdditiveModel(formula, data, seed=1, starts=1, **options)
    extra = {"restarts": 0} if solver == "variational" else {}
    model.fit(data, solver=solver, verbose=0, **extra)
    return model


@pytest.fixture(scope="module")
def pairs() -> ak.AdditiveModel:
    return fit("y ~ ahofm(x, z)")


@pytest.fixture(scope="module")
def smooths() -> ak.AdditiveModel:
    return fit("y ~ s(x) + s(z)")


# ----------------------------------------------------------------------------------------- oracles


@pytest.mark.parametrize("solver", ["variational", "bcd"])
def test_given_lambdas_are_a_ridge_regression_with_indicators(solver: str) -> None:
    """Splines, a column per atom, lambda P and the atoms' own ridge: dense normal equations."""
    model = fit("y ~ s(x, sp=0.01, k=12, atoms=[0, 40])", solver=solver)
    (feature,) = model.design.features
    x, y = DATA.x.to_numpy(), DATA.y.to_numpy()
    plain = fit("y ~ s(x, sp=0.01, k=12)", solver=solver).design.features[0].basis
    splines = evaluate_basis(plain, x)
    indicators = (x[:, None] == HEAPS).astype(float)
    design = np.column_stack([np.ones(ROWS), splines - splines.mean(axis=0), indicators])
    penalty = np.zeros(2 * (design.shape[1],))
    inner = slice(1, 1 + plain.size)
    penalty[inner, inner] = 0.01 * difference_penalty(plain.size, at=np.asarray(plain.line))
    penalty[-2:, -2:] = ROWS * feature.atom_smoothing * np.eye(2)
    # Less their mean the functions of a spline add up to 0: the smallest of all solutions.
    weights = np.linalg.lstsq(design.T @ design + penalty, design.T @ y, rcond=1e-12)[0]
    np.testing.assert_allclose(model.predict(DATA), design @ weights, atol=2e-5)
    assert feature.atom_smoothing == pytest.approx(30 / ROWS)


def test_one_atom_is_a_hand_made_column() -> None:
    """A category that is the atom or not: the same functions, each with a scale that the data chooses."""
    data = draw(1, (1.5, 0.0))
    own = fit("y ~ s(x, atoms=[0]) + s(z)", data).predict(data)
    made = data.assign(zero=np.where(data.x == 0, "zero", "other"))
    other = fit("y ~ s(x, atoms=False) + s(z) + s(zero)", made).predict(made)
    spread = np.sqrt(np.mean((own - other) ** 2))
    assert spread < 0.01
    without = fit("y ~ s(x, atoms=False) + s(z)", data).predict(data)
    assert np.sqrt(np.mean((own - without) ** 2)) > 10 * spread


@pytest.mark.filterwarnings("ignore:Values outside the training range")
@pytest.mark.parametrize("formula", ["s(x{}) + s(z)", "ahofm(x, z{})"])
def test_atoms_find_what_a_spline_smooths_over(formula: str) -> None:
    fresh = draw(7)
    texts = [f"y ~ {formula.format(own)}" for own in ("", ", atoms=False")]
    errors = [np.mean((fit(text).predict(fresh) - fresh.y) ** 2) for text in texts]
    assert errors[0] < 0.95 * errors[1]


@pytest.mark.parametrize("formula", ["s(x{}) + s(z)", "ahofm(x, z{})"])
def test_heaps_without_an_effect_change_nothing(formula: str) -> None:
    data = draw(3, (0.0, 0.0), rows=3000)
    own = fit(f"y ~ {formula.format('')}", data)
    other = fit(f"y ~ {formula.format(', atoms=False')}", data)
    assert own.design.features[0].basis.atoms == (0.0, 40.0)
    table = own.summary_table().terms
    assert table.loc["s(x)", "atoms_edf"] < 0.5
    difference = own.predict(data) - other.predict(data)
    assert np.sqrt(np.mean(difference**2)) < 0.02


def test_atoms_need_no_spline() -> None:
    """tau, which switches the spline off, does not reach them."""
    rng = np.random.default_rng(5)
    data = draw(rows=1500)
    data = data.assign(y=2.0 * (data.x == 0) + 0.3 * rng.normal(size=len(data)))
    model = fit("y ~ s(x, atoms=[0, 40])", data)
    table = model.summary_table().terms
    assert table.loc["s(x)", "atoms_edf"] == pytest.approx(2, abs=0.1)
    assert table.loc["s(x)", "edf"] - table.loc["s(x)", "atoms_edf"] < 1.5
    effect = ak.effect(model, "x")
    assert np.ptp(effect.fit) < 0.15
    np.testing.assert_allclose(effect.atoms.fit[0] - effect.fit.mean(), 2.0, atol=0.1)


# ------------------------------------------------------------------------- everything that reads it


def test_effects_have_points_beside_the_curve(smooths: ak.AdditiveModel) -> None:
    effect = ak.effect(smooths, "x")
    assert not np.isin(effect.grid[0], HEAPS).any()
    assert effect.atoms is not None
    np.testing.assert_array_equal(effect.atoms.grid[0], HEAPS)
    at = ak.effect(smooths, "x", at={"x": HEAPS})
    np.testing.assert_array_equal(at.fit, effect.atoms.fit)
    beside = ak.effect(smooths, "x", at={"x": HEAPS + 1e-9})
    np.testing.assert_allclose((at.fit - beside.fit)[0], 1.5, atol=0.15)
    assert (effect.atoms.se > 0).all()
    assert ak.effect(smooths, "z").atoms is None


@pytest.mark.parametrize("name", ["smooths", "pairs"])
def test_parts_add_up(name: str, request: pytest.FixtureRequest) -> None:
    """Contributions of rows, atoms and others, sum to the link; effects have mean zero."""
    model = request.getfixturevalue(name)
    rows = DATA.iloc[:40]
    assert np.isin(rows.x, HEAPS).any()
    terms = model.predict(rows, type="terms")
    link = model.intercept + terms.sum(axis=1)
    np.testing.assert_allclose(link, model.predict(rows, type="link"), atol=1e-5)
    for number in (0, int(np.flatnonzero(rows.x == 40)[0])):
        explained = ak.explain(model, rows.iloc[[number]])
        total = explained.table["contribution"].sum()
        assert total == pytest.approx(model.predict(rows, type="link")[number], abs=1e-5)
    mains = ak.effect(model, "x", at={"x": DATA.x.to_numpy()})
    assert abs(mains.fit.mean()) < 1e-6 * np.abs(mains.fit).max() + 1e-9


@pytest.mark.parametrize("name", ["smooths", "pairs"])
def test_models_come_back(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """Files, clones and exports predict the same, at atoms, beside them and beyond the range."""
    model = request.getfixturevalue(name)
    rows = pd.concat([DATA.iloc[:30], DATA.iloc[:2].assign(x=[1e-9, 40.0 - 1e-9])])
    wanted = model.predict(rows, interval=0.9)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    pd.testing.assert_frame_equal(loaded.predict(rows, interval=0.9), wanted)
    model.export(tmp_path / "served")
    served = tf.saved_model.load(str(tmp_path / "served"))
    columns = {column: tf.constant(rows[column].to_numpy()) for column in model.design.columns}
    found = served.signatures["uncertainty"](**columns)
    link = model.predict(rows, type="link", interval=0.9)
    np.testing.assert_allclose(found["link"], link.link, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found["link_se"], link.se, rtol=1e-4)


def test_the_summary_says_how_many(smooths: ak.AdditiveModel, pairs: ak.AdditiveModel) -> None:
    table = smooths.summary_table().terms
    assert table["atoms"].tolist() == [2, 0]
    assert table.loc["s(x)", "k_max"] == smooths.design.features[0].basis.size - 2
    assert 1.5 < table.loc["s(x)", "atoms_edf"] < 2.01
    text = " ".join(str(smooths.summary_table()).split())
    assert "values that many rows share have functions of their own: s(x) 2 (2.0 edf)." in text
    assert pairs.summary_table().terms["atoms"].tolist() == [2, 0, 2]


def test_mini_batches_learn_them() -> None:
    model = fit("y ~ s(x) + s(z)", solver="adam")
    effect = ak.effect(model, "x")
    beside = ak.effect(model, "x", at={"x": HEAPS + 1e-9})
    assert (effect.atoms.fit - beside.fit)[0] > 0.5


@pytest.mark.parametrize("formula", ["y ~ ahofm(x, z)", "y ~ ahofm(x, z, atoms=False)"])
def test_a_fit_goes_on_from_its_posterior(formula: str) -> None:
    """Also where most functions of a factor are not in use."""
    model = fit(formula)
    before = model.predict(DATA)
    model.fit(DATA, verbose=0)
    np.testing.assert_allclose(model.predict(DATA), before, atol=0.02)
