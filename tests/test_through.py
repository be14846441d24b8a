"""`s(x, pc=...)`: a smooth through a point, against mgcv and against the same smooth without it."""

from __future__ import annotations

import json
from pathlib import Path

import keras
import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from ahofm_keras.errors import FormulaError

FIXTURES = Path(__file__).parent / "fixtures"
RNG = np.random.default_rng(2)
ROWS = 250
DATA = pd.DataFrame({"x": RNG.uniform(0, 3, ROWS), "z": RNG.uniform(size=ROWS)})
DATA["hour"] = RNG.uniform(0, 24, ROWS)
DATA["g"] = RNG.choice(["a", "b"], ROWS)
DATA["y"] = 5 + np.sin(2 * DATA.x) + DATA.z**2 + 0.2 * RNG.normal(size=ROWS)


@pytest.mark.parametrize("case", range(4))
def test_a_fit_is_mgcvs(case: int) -> None:
    data = pd.read_csv(FIXTURES / "mgcv_ps.csv")
    stored = json.loads((FIXTURES / "mgcv_through.json").read_text())
    result, ends = stored["fits"][case], (float(data.x.min()), float(data.x.max()))
    model = ak.AdditiveModel(
        f"y ~ s(x, k=20, knots={ends!r}, sp={result['lambda']!r}, pc={result['pc']!r})", data
    )
    model.fit(data, solver="bcd", verbose=0)
    terms = model.predict({"x": stored["x_new"]}, type="terms")["s(x)"]
    np.testing.assert_allclose(terms, result["term"], rtol=0, atol=2e-5)
    assert model.intercept == pytest.approx(result["intercept"], abs=1e-5)
    effect = ak.effect(model, "x", at={"x": stored["x_new"]})
    np.testing.assert_allclose(effect.fit, result["term"], rtol=0, atol=2e-5)
    np.testing.assert_allclose(effect.se, result["se"], rtol=1e-4)
    error = np.sqrt(ak.vcov(model).iloc[0, 0])
    assert error == pytest.approx(result["intercept_se"], rel=1e-4)


@pytest.mark.parametrize(
    "options", ["pc=1", "pc=3.5, knots=(0, 4)", "pc=1, shape='concave'", "pc=1, m=(1, 1), k=9"]
)
def test_fitted_values_are_those_without_the_point(options: str, tmp_path: Path) -> None:
    point, _, others = options.partition(", ")
    free = ak.AdditiveModel(f"y ~ s(x, atoms=False{', ' * bool(others)}{others}) + s(z)", DATA)
    through = ak.AdditiveModel(f"y ~ s(x, atoms=False, {options}) + s(z)", DATA)
    for model in (free, through):
        model.fit(DATA, solver="bcd", verbose=0)
    np.testing.assert_allclose(through.predict(DATA), free.predict(DATA), rtol=0, atol=5e-6)
    there = {"x": [float(point.removeprefix("pc="))], "z": [0.3]}
    effect = ak.effect(through, "x", at={"x": there["x"]})
    assert abs(effect.fit[0]) < 1e-10
    assert effect.se[0] < 1e-6
    value = through.predict(there, type="terms")
    assert abs(value["s(x)"].item()) < 1e-5
    assert through.intercept + value["s(z)"].item() == pytest.approx(
        through.predict(there).item(), abs=1e-5
    )
    through.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    pd.testing.assert_frame_equal(
        loaded.predict(DATA, interval=0.9), through.predict(DATA, interval=0.9)
    )
    assert ak.effect(loaded, "x", at={"x": there["x"]}).se[0] < 1e-6


def test_the_variational_fit_goes_through_the_point_and_interactions_stay_apart(tmp_path: Path) -> None:
    data = DATA.assign(y=DATA.y + DATA.x * DATA.z)
    model = ak.fit("y ~ s(x, pc=0.5) + s(z) + ahofm(x, z, D=2, F=1)", data, verbose=0)
    assert abs(ak.effect(model, "x", at={"x": [0.5]}).fit[0]) < 1e-10
    at = {"x": [2.0], "z": [0.25]}
    parts = sum(
        ak.effect(model, *names, at={name: at[name] for name in names}).fit.item()
        for names in (["x"], ["z"], ["x", "z"])
    )
    told = ak.explain(model, {"x": 2.0, "z": 0.25}).table.set_index("part")
    predicted = model.predict({"x": [2.0], "z": [0.25]}).item()
    assert told.loc["intercept", "contribution"] + parts == pytest.approx(predicted, abs=1e-4)
    ak.report(model, tmp_path / "page.html")


def test_without_an_intercept_the_curve_itself_goes_through_the_point() -> None:
    data = DATA.assign(y=DATA.x * 2 + 0.1 * RNG.normal(size=ROWS))
    model = ak.fit("y ~ 0 + s(x, pc=0, knots=(0, 3))", data, verbose=0)
    assert abs(model.predict({"x": [0.0]}).item()) < 1e-5
    assert model.predict({"x": [2.0]}).item() == pytest.approx(4, abs=0.1)


def test_circles_go_through_points_too() -> None:
    model = ak.fit("y ~ s(hour, bs='cp', knots=(0, 24), pc=24)", DATA, verbose=0)
    np.testing.assert_allclose(model.predict({"hour": [0.0, 24.0]}, type="terms"), 0, atol=1e-6)


def test_an_atom_may_be_the_point() -> None:
    rng = np.random.default_rng(5)
    x = np.where(rng.uniform(size=400) < 0.3, 1.0, rng.uniform(0, 3, 400))
    data = pd.DataFrame({"x": x, "y": x + (x == 1) + 0.1 * rng.normal(size=400)})
    free, through = (
        ak.AdditiveModel(f"y ~ s(x, atoms=[1], df=6{option})", data) for option in ("", ", pc=1")
    )
    for model in (free, through):
        model.fit(data, solver="bcd", verbose=0)
    np.testing.assert_allclose(through.predict(data), free.predict(data), rtol=0, atol=1e-2)
    assert abs(through.predict({"x": [1.0]}, type="terms").to_numpy().item()) < 1e-6
    assert through.intercept == pytest.approx(through.predict({"x": [1.0]}).item(), abs=1e-6)


@pytest.mark.parametrize(
    ("term", "message"),
    [
        ("s(x, pc='low')", "`pc` of `s()` must be a finite number"),
        ("s(g, pc=1)", "`pc` has no meaning for the category `g`"),
        ("s(x, bs='re', pc=1)", "`pc` has no meaning for the levels of `x`"),
        ("s(x, pc=9)", "`pc` of `s(x)` must lie within the training values, from"),
        ("s(x, by=z, pc=1)", "`pc` is that of one function: it cannot stand beside `by` or levels."),
        ("te(x, z, pc=1)", "Unknown argument `pc` of `te()`"),
    ],
)
def test_what_is_no_point(term: str, message: str) -> None:
    with pytest.raises(FormulaError) as raised:
        ak.AdditiveModel(f"y ~ {term}", DATA)
    assert message in str(raised.value)
