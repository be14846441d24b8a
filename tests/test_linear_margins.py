"""`te(x, z, bs=("ps", "linear"))`: slopes that vary, against dense algebra."""

from __future__ import annotations

from pathlib import Path

import keras
import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from ahofm_keras.bases import evaluate_basis
from ahofm_keras.errors import FormulaError

ROWS = 300
RNG = np.random.default_rng(4)
DATA = pd.DataFrame({"x": RNG.uniform(size=ROWS), "z": RNG.normal(3, 2, ROWS)})
DATA["g"] = RNG.choice(["a", "b"], ROWS)
DATA["y"] = np.cos(4 * DATA.x) + np.sin(5 * DATA.x) * DATA.z + 0.2 * RNG.normal(size=ROWS)
GRID = pd.DataFrame({"x": np.repeat([0.2, 0.5, 0.8], 3), "z": np.tile([0.0, 2.0, 4.0], 3)})


def is_straight_in_z(model: ak.AdditiveModel) -> bool:
    values = model.predict(GRID, type="link").reshape(3, 3)
    bent = np.abs(np.diff(values, 2, axis=1)).max()
    return bool(bent < 1e-5 * np.ptp(values))


def test_a_fit_is_penalised_least_squares() -> None:
    """f0(x) + f1(x) z with one lambda for both, and a slope that is free."""
    smoothing = 0.02
    formula = f"y ~ te(x, z, bs=('ps', 'linear'), k=(9, None), atoms=False, sp=({smoothing}, 0))"
    model = ak.AdditiveModel(formula, DATA)
    model.fit(DATA, solver="bcd", verbose=0)
    smooth, line = (model.design.features[place] for place in model.design.terms[0].margins)
    functions = evaluate_basis(smooth.basis, DATA.x.to_numpy()) @ smooth.transform
    slope = (evaluate_basis(line.basis, DATA.z.to_numpy()) @ line.transform)[:, 0]
    np.testing.assert_allclose(np.corrcoef(slope, DATA.z)[0, 1], 1)
    design = np.column_stack([np.ones(ROWS), functions, slope, functions * slope[:, None]])
    own = ROWS * smoothing * smooth.eigenvalues
    penalty = np.diag(np.concatenate([[0.0], own, [0.0], own]))
    wanted = design @ np.linalg.solve(design.T @ design + penalty, design.T @ DATA.y)
    np.testing.assert_allclose(model.predict(DATA), wanted, rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    "call", ["te(x, z, bs=('ps', 'linear'))", "s(x) + z + ti(x, z, bs={'z': 'linear'})"]
)
def test_slopes_vary_and_nothing_else(call: str, tmp_path: Path) -> None:
    model = ak.fit(f"y ~ {call}", DATA, verbose=0)
    assert is_straight_in_z(model)
    truth = np.cos(4 * GRID.x) + np.sin(5 * GRID.x) * GRID.z
    assert np.sqrt(np.mean((model.predict(GRID) - truth) ** 2)) < 0.1
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded.predict(GRID, interval=0.9), model.predict(GRID, interval=0.9))
    parts = model.predict(GRID, type="terms").sum(axis=1)
    np.testing.assert_allclose(parts + model.intercept, model.predict(GRID), atol=1e-5)
    surface = ak.effect(model, "x", "z", at={"z": [0.0, 2.0, 4.0]})
    assert np.abs(np.diff(surface.fit, 2, axis=1)).max() < 1e-6 * np.ptp(surface.fit)
    assert "z" in str(ak.summary(model))
    ak.report(model, tmp_path / "page.html")


def test_a_line_of_a_category_varies_too() -> None:
    data = DATA.assign(y=np.where(DATA.g == "a", 1.0, -0.5) * DATA.z + 0.1 * RNG.normal(size=ROWS))
    model = ak.fit("y ~ te(g, z, bs=('re', 'linear'))", data, verbose=0)
    values = model.predict({"g": ["a", "a", "b", "b"], "z": [1.0, 2.0, 1.0, 2.0]})
    np.testing.assert_allclose(np.diff(values)[[0, 2]], [1.0, -0.5], atol=0.05)


@pytest.mark.parametrize(
    ("term", "message"),
    [
        ("te(x, z, bs='linear')", "`te()` of straight lines alone is written `x * z`."),
        ("ti(x, z, bs=('linear', 'linear'))", "`ti()` of straight lines alone is written `x:z`."),
        ("te(x, z, bs=('ps', 'linear'), k=(5, 5))", '`k` has no meaning with bs="linear".'),
        ("te(x, g, bs=('ps', 'linear'))", "Column `g` holds categories"),
        ("te(x, z, bs=('ps', 'lin'))", "'linear', a tuple with"),
        ("s(x, bs='linear')", "`bs` of `s()` must be one of"),
    ],
)
def test_what_cannot_be_a_line(term: str, message: str) -> None:
    with pytest.raises(FormulaError) as raised:
        ak.AdditiveModel(f"y ~ {term}", DATA)
    assert message in str(raised.value)
