"""Which solver `fit` takes, what it says of it, and what each solver refuses."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

import ahofm_keras as ak
from ahofm_keras.solvers import choice
from ahofm_keras.terms import Design, Predictor
from ahofm_keras.terms.linear import LinearTerm
from ahofm_keras.terms.parametric import Factor
from ahofm_keras.transforms import Expression
from tests.model.short_fits import fit, new_model

BLOCK_SOLVERS = ("variational", "bcd")
AUTO = {"solver": "auto", "batch_size": None, "epochs": 1, "verbose": "auto"}


def design_of(formula: str, data: pd.DataFrame) -> Any:
    return ak.AdditiveModel(formula, data).design


def said(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().out.splitlines()[0]


def own_compile(model: ak.AdditiveModel, **options: Any) -> ak.AdditiveModel:
    model.compile(jit_compile=False, **options)
    return model


# What "auto" says -------------------------------------------------------------------------------


def test_auto_is_variational_on_data_in_memory(
    frame: pd.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    model = new_model(frame)
    fit(model, frame, **AUTO)
    assert said(capsys) == (
        "solver: variational (data in memory, no block too large: chooses the smoothing, gives intervals)"
    )
    assert model.has_posterior


@pytest.mark.parametrize("own", [{"optimizer": "sgd"}, {"loss": "mae"}])
def test_auto_with_a_compile_of_the_user(
    frame: pd.DataFrame, capsys: pytest.CaptureFixture[str], own: dict[str, str]
) -> None:
    fit(own_compile(new_model(frame), **own), frame, **AUTO)
    assert said(capsys) == (
        "solver: adam (compile() was given an optimizer or loss of its own, which only mini-batches use)"
    )


def test_metrics_of_the_user_are_no_reason(frame: pd.DataFrame) -> None:
    model = own_compile(new_model(frame), metrics=["mae"])
    fit(model, frame, **AUTO)
    assert model.has_posterior


@pytest.mark.parametrize("argument", ["batch_size", "steps_per_epoch"])
def test_auto_with_an_argument_of_mini_batches(
    frame: pd.DataFrame, capsys: pytest.CaptureFixture[str], argument: str
) -> None:
    fit(new_model(frame), frame, **(AUTO | {argument: 3}))
    assert said(capsys) == f"solver: adam ({argument} was given, which only mini-batches use)"


def test_auto_with_a_frozen_layer(frame: pd.DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
    model = new_model(frame)
    model.get_layer("s_x1").trainable = False
    fit(model, frame, **AUTO)
    assert said(capsys).startswith("solver: adam (layer s_x1 is frozen (trainable=False)")
    assert not np.any(model.get_layer("s_x1").get_weights()[0])


def test_auto_with_a_dataset(frame: pd.DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
    columns = {name: frame[name].to_numpy() for name in ("x1", "x3")}
    dataset = tf.data.Dataset.from_tensor_slices((columns, frame.gaussian.to_numpy())).batch(60)
    fit(new_model(frame), dataset, **AUTO)
    assert said(capsys) == "solver: adam (the data is a dataset, which comes in batches)"


def test_auto_with_a_large_block(
    frame: pd.DataFrame, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choice, "LARGEST_BLOCK", 5)
    fit(new_model(frame), frame, **AUTO)
    assert said(capsys) == (
        "solver: adam (the block of `s(x1)` has 7 coefficients, too many for exact updates)"
    )


def test_a_reason_survives_saving(frame: pd.DataFrame, tmp_path: Any) -> None:
    for own, options in ((True, {"loss": "mae"}), (False, {})):
        own_compile(new_model(frame), **options).save(tmp_path / "model.keras")
        assert keras.models.load_model(tmp_path / "model.keras").own_compile is own


# What a solver refuses --------------------------------------------------------------------------


@pytest.mark.parametrize("solver", BLOCK_SOLVERS)
@pytest.mark.parametrize("argument", ["batch_size", "steps_per_epoch"])
def test_block_solvers_have_no_batches(frame: pd.DataFrame, solver: str, argument: str) -> None:
    with pytest.raises(ak.DataError) as caught:
        new_model(frame).fit(frame, solver=solver, **{argument: 3})
    assert str(caught.value) == (
        f'solver="{solver}" works on all rows at once, but {argument} was given, which only mini-batches '
        'use. Leave that out, or use solver="adam".'
    )


@pytest.mark.parametrize("solver", BLOCK_SOLVERS)
def test_block_solvers_do_not_pass_over_a_loss(frame: pd.DataFrame, solver: str) -> None:
    model = own_compile(new_model(frame), loss="mae")
    with pytest.raises(ak.DataError, match=r"compile\(\) was given an optimizer or loss of its own"):
        model.fit(frame, solver=solver)


@pytest.mark.parametrize("solver", BLOCK_SOLVERS)
def test_block_solvers_do_not_pass_over_a_frozen_layer(frame: pd.DataFrame, solver: str) -> None:
    model = new_model(frame)
    model.get_layer("s_x1").trainable = False
    with pytest.raises(ak.DataError, match=r"layer s_x1 is frozen"):
        model.fit(frame, solver=solver)


@pytest.mark.parametrize("solver", BLOCK_SOLVERS)
def test_block_solvers_refuse_a_dataset(frame: pd.DataFrame, solver: str) -> None:
    dataset = tf.data.Dataset.from_tensor_slices(({"x1": [0.5]}, [1.0])).batch(1)
    with pytest.raises(ak.DataError, match='needs data in memory; a dataset is fitted by "adam"'):
        new_model(frame).fit(dataset, solver=solver)


def test_restarts_of_adam(frame: pd.DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ak.DataError, match=r'^`restarts` has no meaning for solver="adam"\.$'):
        new_model(frame).fit(frame, solver="adam", restarts=1)
    with pytest.raises(ak.DataError, match=r'which "auto" takes here: batch_size was given'):
        new_model(frame).fit(frame, restarts=1, batch_size=50)
    assert capsys.readouterr().out == ""


# Sizes of blocks --------------------------------------------------------------------------------


def levels_frame(levels: int) -> pd.DataFrame:
    names = [f"u{level}" for level in range(levels)]
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"g": names * 3, "x": rng.uniform(size=3 * levels)})
    return data.assign(y=rng.normal(size=3 * levels))


@pytest.mark.parametrize(
    ("formula", "size", "term", "remedy"),
    [
        ("y ~ C(g) + x", 1 + 39 + 1, "C(g)", "Merge rare levels"),
        ("y ~ 0 + C(g)", 40, "C(g)", "Merge rare levels"),
        ("y ~ s(g) + x", 1 + 39 + 1, "s(g)", "Merge rare levels"),
        ("y ~ s(x, k=30) + s(g, df=3)", 1 + 29 + 39, "s(g)", "Merge rare levels"),
        ("y ~ s(x, k=50) + x:C(g)", 1 + 49 + 40, "s(x)", "Choose a smaller k"),
        ("y ~ ahofm(x, g, D=2, F=3)", 3 * 39, "ahofm(x, g), feature g", "Merge rare levels, choose a smaller F"),
        ("y ~ afm(x, z, k=20, F=8)", 8 * 19, "afm(x, z), feature x", "Choose a smaller F or k"),
    ],
)  # fmt: skip
def test_largest_block(formula: str, size: int, term: str, remedy: str) -> None:
    data = levels_frame(40)
    design = design_of(formula, data.assign(z=data.x**2))
    assert choice.largest_block(design) == choice.BlockSize(size, term, remedy)


@pytest.mark.parametrize("solver", BLOCK_SOLVERS)
def test_a_block_above_the_limit_is_refused_by_name(
    solver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choice, "LARGEST_BLOCK", 50)
    data = levels_frame(60)
    model = ak.AdditiveModel("y ~ C(g) + x", data)
    with pytest.raises(ak.DataError) as caught:
        model.fit(data, solver=solver)
    assert str(caught.value) == (
        f'The block of `C(g)` has 61 coefficients, too many for solver="{solver}" (at most 50). '
        'Merge rare levels, or use solver="adam".'
    )


def test_thousands_of_levels_of_a_linear_term_are_counted() -> None:
    """By the design alone: such a model takes its time to build."""
    levels = tuple(f"u{level}" for level in range(5000))
    factor = Factor(Expression("column", ("g",)), levels)
    columns = tuple((level,) for level in range(1, 5000))
    term = LinearTerm("C(g)", "g", (factor,), columns, levels[1:], (0.0,) * 4999, (1.0,) * 4999)
    design = Design({"g": "text"}, (), {"mean": Predictor(True, (term,))}, 5000)
    assert choice.choose_solver(design, False, []) == (
        "adam",
        "the block of `C(g)` has 5,000 coefficients, too many for exact updates",
    )
