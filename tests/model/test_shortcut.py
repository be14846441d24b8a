"""One line from data to a fitted model, and methods that call the functions of the package."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from ahofm_keras.model.methods import ReadingMethods


@pytest.fixture(scope="module")
def data() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.uniform(size=(150, 2)), columns=["x", "z"])
    frame["weight"] = rng.uniform(0.5, 1.5, 150)
    return frame.assign(y=np.sin(6 * frame.x) + frame.x * frame.z + 0.1 * rng.normal(size=150))


@pytest.fixture(scope="module")
def model(data: pd.DataFrame) -> ak.AdditiveModel:
    return ak.fit("y ~ ahofm(x, z, F=2, k=8, df=6)", data, verbose=0)


def test_it_is_the_model_that_the_two_steps_make(data: pd.DataFrame) -> None:
    formula = "y ~ s(x) + ahofm(x, z, F=2, k=8, df=6)"
    fitted = ak.fit(
        formula, data, df_kind="H", seed=5, name="mine",
        solver="bcd", sample_weight="weight", verbose=0,
    )  # fmt: skip
    model = ak.AdditiveModel(formula, data, df_kind="H", seed=5, name="mine")
    model.fit(data, solver="bcd", sample_weight="weight", verbose=0)
    assert isinstance(fitted, ak.AdditiveModel)
    assert (fitted.name, fitted.df_kind, fitted.seed, fitted.fit_result.weighted) == (
        "mine",
        "H",
        5,
        True,
    )
    for one, other in zip(fitted.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_family_stands_third_or_by_name(data: pd.DataFrame) -> None:
    counts = data.assign(y=np.round(10 * data.x))
    assert ak.fit("y ~ x", counts, "poisson", verbose=0).family.name == "poisson"
    assert ak.fit("y ~ x", counts, family="poisson", verbose=0).family.name == "poisson"


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("solvr", "Unknown argument `solvr` of `fit\\(\\)`. Did you mean `solver`?"),
        ("extrapolaton", "Did you mean `extrapolation`?"),
        ("state", "Unknown argument `state`"),
        ("x", "Unknown argument `x`"),
        ("kwargs", "Unknown argument `kwargs`"),
    ],
)
def test_unknown_arguments_are_told_before_anything_is_fitted(argument: str, message: str) -> None:
    with pytest.raises(ak.DataError, match=message):
        ak.fit("y ~ x", None, **{argument: 1})


def test_arguments_of_a_call_in_the_wrong_order_are_told(data: pd.DataFrame) -> None:
    with pytest.raises(ak.DataError, match="The formula comes first"):
        ak.fit(data, "y ~ x")  # type: ignore[arg-type]


def test_methods_are_the_functions(model: ak.AdditiveModel, data: pd.DataFrame, tmp_path: Path) -> None:
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("Agg")
    assert str(model.summary_table()) == str(ak.summary(model))
    pd.testing.assert_series_equal(model.coef("s(x)"), ak.coef(model, "s(x)"))
    assert [e.label for e in model.effects(order=2)] == [e.label for e in ak.effects(model, order=2)]
    assert model.explain(data.iloc[[3]]).headline == ak.explain(model, data.iloc[[3]]).headline
    assert str(model.check(data[:100], seed=2)) == str(ak.check(model, data[:100], seed=2))
    drawn, expected = model.plot("x", level=0.8), ak.plot(model, "x", level=0.8)
    np.testing.assert_array_equal(drawn.lines[0].get_xydata(), expected.lines[0].get_xydata())
    plt.close("all")
    pytest.importorskip("bokeh")
    assert model.report(tmp_path / "page.html", rows=0).exists()


def test_methods_hide_nothing_of_keras() -> None:
    own = {name for name in vars(ReadingMethods) if not name.startswith("_")}
    assert own
    assert not {name for name in own if hasattr(keras.Model, name)}


def test_a_method_takes_what_its_function_takes() -> None:
    for name, method in vars(ReadingMethods).items():
        if name.startswith("_"):
            continue
        function: Any = getattr(ak, {"summary_table": "summary"}.get(name, name))
        known = inspect.signature(function).parameters
        given = [p for p in inspect.signature(method).parameters.values() if p.name != "self"]
        for parameter in given:
            if parameter.kind is not parameter.VAR_KEYWORD:
                assert parameter.name in known, f"{name}({parameter.name})"
                assert parameter.default == known[parameter.name].default, f"{name}({parameter.name})"
