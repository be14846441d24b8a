"""Careless and hostile arguments: every refusal is worded by us and names the thing."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import keras
import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from ahofm_keras.families import FAMILIES
from ahofm_keras.solvers import SOLVERS
from tests.model.careless import (
    DATA,
    KNOWN,
    ROWS,
    at,
    build,
    evaluate,
    fit,
    predict,
    with_random_weights,
    without,
)

ARRAY = " Pass `pandas.DataFrame(array, columns=[...])`, with the names that the formula has."
FIRST = "The formula comes first, then the data with the response among its columns: "
TABLE = "Data must be a pandas data frame or a dict of columns. Received: {}."
DROP = "Drop them, or impute them."
OUTSIDE = "Values outside the training range: `x1` in {} rows ([0, 1])."

REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    # columns
    "construct: missing": (build("y ~ x1 + other"), f"Column `other` is missing. {KNOWN}"),
    "construct: near name": (build("y ~ x11"), f"Column `x11` is missing. Did you mean `x1`? {KNOWN}"),
    "fit: unknown response": (lambda models: ak.AdditiveModel("zz ~ x1", DATA).fit(DATA), f"Column `zz` is missing. {KNOWN}"),
    "construct: no data": (build("y ~ x1", None), "`AdditiveModel` needs data to learn its bases from: pass `data=`."),
    "construct: array": (build("y ~ x1", DATA[["x1", "y"]].to_numpy()), TABLE.format("numpy.ndarray") + ARRAY),
    "construct: formula and data swapped": (build(DATA, "y ~ x1"), f"{FIRST}`AdditiveModel('y ~ x1', data)`. Received: pandas.DataFrame in the place of the formula."),  # type: ignore[arg-type]
    "construct: X, y": (build(without("y"), DATA.y), f'{FIRST}`AdditiveModel("y ~ ahofm(.)", data)`, where `data = X.assign(y=y)`. Received: pandas.DataFrame in the place of the formula.'),  # type: ignore[arg-type]
    "construct: arrays": (build(DATA[["x1"]].to_numpy(), DATA.y.to_numpy()), f'{FIRST}`AdditiveModel("y ~ ahofm(.)", data)`, where `data = X.assign(y=y)`. Received: numpy.ndarray in the place of the formula.'),  # type: ignore[arg-type]
    "construct: names": (build(["x1"], DATA), f'{FIRST}`AdditiveModel("y ~ ahofm(.)", data)`. Received: list in the place of the formula.'),  # type: ignore[arg-type]
    "construct: data alone": (build(DATA, None), f'{FIRST}`AdditiveModel("y ~ ahofm(.)", data)`. Received: pandas.DataFrame in the place of the formula.'),  # type: ignore[arg-type]
    "construct: formula, X, y": (build("y ~ x1", without("y"), family=DATA.y), "The response is a column of the data, which the formula names: `AdditiveModel(formula, X.assign(y=y))`. Received: pandas.Series in the place of `family`."),
    "gam: X, y": (lambda models: ak.gam(without("y"), DATA.y), '`response` must be the name of a column. Received: pandas.Series. Where the response is no column yet: `ak.gam(X.assign(y=y), "y")`.'),  # type: ignore[arg-type]
    "ahofm: arrays": (lambda models: ak.ahofm(DATA[["x1"]].to_numpy(), DATA.y.to_numpy()), '`response` must be the name of a column. Received: numpy.ndarray. Where the response is no column yet: `ak.ahofm(X.assign(y=y), "y")`.'),  # type: ignore[arg-type]
    "gam: formula": (lambda models: ak.gam(DATA, "y ~ s(x1)"), '`gam()` writes the formula itself: `ak.gam(data, "y")`. With a formula of your own it is `ak.AdditiveModel(formula, data)`.'),
    "gam: formula first": (lambda models: ak.gam("y ~ s(x1)", DATA), '`gam()` writes the formula itself: `ak.gam(data, "y")`. With a formula of your own it is `ak.AdditiveModel(formula, data)`.'),  # type: ignore[arg-type]
    "construct: twice": (build("y ~ x1", pd.concat([DATA, DATA[["x1"]]], axis=1)), "Column `x1` stands more than once in the data. Rename one of them."),
    "construct: response twice": (build("y ~ x1", pd.concat([DATA, DATA[["y"]]], axis=1)), "Column `y` stands more than once in the data. Rename one of them."),
    "construct: one column": (build("y ~ x1", DATA[["y"]]), "Column `x1` is missing. The data has: `y`."),
    "fit: missing": (fit(without("g")), "Column `g` is missing. The data has: `x1`, `x2`, `f`, `e`, `y`, `b`, `c`."),
    "fit: missing response": (fit(without("y")), "Column `y` is missing. The data has: `x1`, `x2`, `g`, `f`, `e`, `b`, `c`."),
    "fit: array": (fit(np.ones((3, 2))), TABLE.format("numpy.ndarray") + ARRAY),
    "fit: generator": (fit(DATA for _ in range(2)), TABLE.format("generator")),
    "fit: nothing": (fit(None), TABLE.format("NoneType")),
    "predict: missing": (predict(without("x1")), "Column `x1` is missing. The data has: `x2`, `g`, `f`, `e`, `y`, `b`, `c`."),
    "predict: near name": (predict(DATA.rename(columns={"x1": "x1_"})), "Column `x1` is missing. Did you mean `x1_`? The data has: `x1_`, `x2`, `g`, `f`, `e`, `y`, `b`, `c`."),
    "predict: series": (predict(DATA.x1), TABLE.format("pandas.Series") + " Pass a frame of one column, `series.to_frame()`; one row of a frame is `frame.iloc[[0]]`."),
    "predict: offset missing": (predict(without("e"), "counts"), "Column `e` is missing. The data has: `x1`, `x2`, `g`, `f`, `y`, `b`, `c`."),
    "evaluate: missing response": (evaluate(without("c")), "Column `c` is missing. The data has: `x1`, `x2`, `g`, `f`, `e`, `y`, `b`."),
    # values
    "construct: nan": (build("y ~ s(x1)", at("x1", 3, np.nan)), f"Column `x1` has 1 missing value, first at row 3. {DROP}"),
    "construct: None": (build("y ~ g", at("g", 4, None)), f"Column `g` has 1 missing value, first at row 4. {DROP}"),
    "construct: pd.NA": (build("y ~ x1", DATA.assign(x1=DATA.x1.astype("Float64").where(DATA.index > 1))), f"Column `x1` has 2 missing values, first at row 0. {DROP}"),
    "construct: nan in the response": (build("y ~ x1", at("y", 7, np.nan)), f"Column `y` has 1 missing value, first at row 7. {DROP}"),
    "construct: infinite": (build("y ~ x1", at("x1", 5, -np.inf)), "Column `x1` has 1 infinite value, first at row 5. Drop them, or replace them."),
    "construct: infinite response": (build("y ~ x1", at("y", 5, np.inf)), "Column `y` has 1 infinite value, first at row 5. Drop them, or replace them."),
    "construct: complex": (build("y ~ x1", DATA.assign(x1=1j)), "Column `x1` holds complex numbers. Split it into real columns."),
    "construct: mixed": (build("y ~ g", at("g", 2, 5)), "Column `g` mixes texts with other values, first at row 2 (5). Make them all numbers, or all texts."),
    "construct: text in a function": (build("y ~ log(g)"), "`log(g)` needs numbers, but column `g` holds texts."),
    "construct: boolean in a function": (build("y ~ log(f)"), "`log(f)` needs numbers, but column `f` holds booleans."),
    "construct: offset of texts": (build("y ~ x1 + offset(g)"), "`offset(g)` needs numbers."),
    "construct: log of 0": (build("y ~ log(c)"), "`log(c)` is not finite in 15 of 60 rows, first at row 1 (c = 0)."),
    "construct: smooth of log of 0": (build("y ~ s(log(x1))"), "`log(x1)` is not finite in 1 of 60 rows, first at row 0 (x1 = 0)."),
    "construct: log of a response 0": (build("log(c) ~ x1"), "`log(c)` is not finite in 15 of 60 rows, first at row 1 (c = 0)."),
    "construct: division by 0": (build("y ~ I(e / c)"), "`I(e / c)` is not finite in 15 of 60 rows, first at row 1 (e = 0.525424, c = 0)."),
    "predict: nan": (predict(at("x1", 9, np.nan)), f"Column `x1` has 1 missing value, first at row 9. {DROP}"),
    "predict: infinite": (predict(at("x2", 9, np.inf)), "Column `x2` has 1 infinite value, first at row 9. Drop them, or replace them."),
    "predict: text for a number": (predict(at("x1", 2, "abc").assign(x1=lambda d: d.x1.astype(str))), "Column `x1` must be numeric, but row 2 holds 'abc'. Convert it with `pandas.to_numeric`."),
    "predict: two for a boolean": (predict(DATA.assign(f=2)), "Column `f` must be boolean (True or False, 1 or 0), as in training."),
    "predict: missing boolean": (predict(at("f", 1, None)), f"Column `f` has 1 missing value, first at row 1. {DROP}"),
    "predict: log of 0": (predict(at("e", 6, 0.0), "counts"), "`log(e)` is not finite in 1 of 60 rows, first at row 6 (e = 0)."),
    "fit: log of 0": (fit(at("e", 6, 0.0), model="counts"), "`log(e)` is not finite in 1 of 60 rows, first at row 6 (e = 0)."),
    "predict: above the range": (predict({"x1": [0.5, 1.5]}, "strict"), OUTSIDE.format("1 of 2")),
    "predict: below the range": (predict({"x1": [-0.5, -1e300]}, "strict"), OUTSIDE.format("2 of 2")),
    "fit: outside the range": (fit(DATA.assign(x1=DATA.x1 + 0.5), model="strict"), OUTSIDE.format("30 of 60")),
    # rows
    "construct: no rows": (build("y ~ x1", DATA.iloc[:0]), "The data has no rows."),
    "construct: one row": (build("y ~ x1", DATA.iloc[:1]), f"The response `y` is constant ({DATA.y[0]:g}): nothing to learn."),
    "construct: two rows": (build("y ~ s(x1)", DATA.iloc[:2]), "The formula needs at least 3 rows (0 linear coefficients), the data has 2."),
    "construct: few rows": (build("y ~ x1 + x2 + g + e", DATA.iloc[:6]), "The formula needs at least 7 rows (5 linear coefficients), the data has 6."),
    "construct: ids": (build("y ~ id", DATA.assign(id=[f"u{i}" for i in range(ROWS)])), "The formula needs at least 61 rows (59 linear coefficients), the data has 60."),
    "predict: no rows": (predict(DATA.iloc[:0]), "The data has no rows."),
    "predict: lengths": (predict({"x1": [0.5, 0.4], "g": ["a"] * 3, "f": True, "x2": 0.0}), "Columns must have one length: `x1` has 2 rows, `g` has 3."),
    "predict: two dimensions": (predict({"x1": [[0.5], [0.4]], "g": "a", "f": True, "x2": 0.0}), "Column `x1` must have one dimension, has 2. Arrays stand in `s()` and `deep()`, by their bare name."),
    # constants
    "construct: constant smooth": (build("y ~ s(k)", DATA.assign(k=2.0)), "`k` is constant, so `s(k)` cannot learn anything from it. Leave it out."),
    "construct: constant line": (build("y ~ k", DATA.assign(k=2.0)), "`k` is constant, so `k` cannot learn anything from it. Leave it out."),
    "construct: constant in a product": (build("y ~ k:x1", DATA.assign(k=2.0)), "`k` is constant, so `k:x1` cannot learn anything from it. Leave it out."),
    "construct: one level": (build("y ~ k", DATA.assign(k="a")), "`k` is constant, so `k` cannot learn anything from it. Leave it out."),
    "construct: one level of a smooth": (build("y ~ s(k)", DATA.assign(k="a")), "`k` is constant, so `s(k)` cannot learn anything from it. Leave it out."),
    "construct: constant boolean": (build("y ~ k", DATA.assign(k=True)), "`k` is constant, so `k` cannot learn anything from it. Leave it out."),
    "construct: constant response": (build("y ~ x1", DATA.assign(y=1.0)), "The response `y` is constant (1): nothing to learn."),
    # responses
    "construct: texts as response": (build("y ~ x1", DATA.assign(y="yes")), "The response `y` holds texts (first: 'yes'). Recode it as numbers, two classes as 0 and 1; or take `family=\"categorical\"`, of texts in an order `\"ordinal\"`, which have a probability of each text."),
    "construct: fractions as counts": (build("e ~ x1", family="poisson"), "The response `e` of the poisson family must be whole numbers from 0 on, but 59 of 60 values are not; first at row 0: 0.5. `family=\"gamma\"` is for amounts above 0."),
    "construct: negative counts": (build("c ~ x1", at("c", 8, -1), family="poisson"), "The response `c` of the poisson family must be whole numbers from 0 on, but 1 of 60 values are not; first at row 8: -1. `family=\"gaussian\"` takes negative values."),
    "construct: labels 1 and 2": (build("b ~ x1", DATA.assign(b=DATA.b + 1), family="bernoulli"), "The response `b` of the bernoulli family must be 0 or 1, but 40 of 60 values are not; first at row 1: 2. Recode two classes: 1 where it is 2, 0 where it is 1."),
    "construct: zeros of gamma": (build("c ~ x1", family="gamma"), "The response `c` of the gamma family must be above 0, but 15 of 60 values are not; first at row 1: 0. `family=\"poisson\"` and `family=\"negative_binomial\"` are for counts."),
    "fit: constant response": (fit(DATA.assign(y=1.0)), "The response `y` is constant (1): nothing to learn."),
    "fit: one row": (fit(DATA.iloc[:1]), f"The response `y` is constant ({DATA.y[0]:g}): nothing to learn."),
    "fit: one class": (fit(DATA.assign(b=0), model="labels"), "The response `b` is constant (0): nothing to learn."),
    "fit: no counts": (fit(DATA.assign(c=0), model="counts"), "The response `c` is constant (0): nothing to learn."),
    "fit: labels": (fit(DATA.assign(b=7), model="labels"), "The response `b` of the bernoulli family must be 0 or 1, but 60 of 60 values are not; first at row 0: 7. `family=\"poisson\"` and `family=\"negative_binomial\"` are for counts."),
    "fit: short response": (fit(DATA, [1.0, 2.0]), "The response has 2 values, the data 60 rows."),
    "evaluate: negative counts": (evaluate(DATA.assign(c=-1)), "The response `c` of the poisson family must be whole numbers from 0 on, but 60 of 60 values are not; first at row 0: -1. `family=\"gaussian\"` takes negative values."),
    "evaluate: texts": (evaluate(DATA, ["u"] * ROWS), "The response `c` holds texts (first: 'u'). Recode it as numbers, two classes as 0 and 1; or take `family=\"categorical\"`, of texts in an order `\"ordinal\"`, which have a probability of each text."),
    # options
    "construct: family": (build("y ~ x1", family="logit"), f"Unknown family 'logit'. Here it is called `bernoulli`, of responses that are 0 or 1. Known families: {', '.join(f'`{name}`' for name in FAMILIES)}."),
    "construct: df_kind": (build("y ~ x1", df_kind="HH"), "`df_kind` must be one of '2H-HH', 'H'. Received: 'HH'."),
    "construct: extrapolation": (build("y ~ x1", extrapolation="cubic"), "`extrapolation` must be one of 'clip', 'linear', 'error'. Received: 'cubic'."),
    "predict: type": (predict(DATA, type="classes"), "`type` must be one of 'response', 'link', 'terms', 'class', 'parameters', 'distribution', 'quantile'. Received: 'classes'."),
    "fit: solver": (fit(solver="variatonal"), "`solver` must be one of 'auto', 'adam', 'bcd', 'hybrid', 'variational'. Received: 'variatonal'."),
    "fit: restarts below 0": (fit(restarts=-1), "`restarts` must be a whole number of at least 0. Received: -1."),
    "fit: no restarts": (fit(restarts=None), "`restarts` must be a whole number of at least 0. Received: None."),
    "fit: verbose of 3": (fit(verbose=3), "`verbose` must be 'auto', 0, 1 or 2. Received: 3."),
    "fit: verbose as text": (fit(verbose="yes"), "`verbose` must be 'auto', 0, 1 or 2. Received: 'yes'."),
    "fit: no verbose": (fit(verbose=None), "`verbose` must be 'auto', 0, 1 or 2. Received: None."),
    "predict: verbose as text": (predict(DATA, verbose="loud"), "`verbose` must be 'auto', 0, 1 or 2. Received: 'loud'."),
    "evaluate: verbose of 3": (evaluate(DATA, verbose=3), "`verbose` must be 'auto', 0, 1 or 2. Received: 3."),
    "evaluate: unknown argument": (evaluate(DATA, return_dct=True), "Unknown argument `return_dct` of `evaluate()`. Did you mean `return_dict`?"),
    "fit: validation_split of 1": (fit(validation_split=1.0), "`validation_split` must lie in [0, 1). Received: 1.0."),
    "fit: validation_split below 0": (fit(validation_split=-0.1), "`validation_split` must lie in [0, 1). Received: -0.1."),
    "fit: short weights": (fit(sample_weight=[1.0, 2.0]), "`sample_weight` has 2 values, the data 60 rows."),
    "fit: negative weights": (fit(sample_weight=-np.ones(ROWS)), "`sample_weight` must not be negative and not all 0."),
    "fit: weights of 0": (fit(sample_weight=np.zeros(ROWS)), "`sample_weight` must not be negative and not all 0."),
    "fit: nan weights": (fit(sample_weight=np.full(ROWS, np.nan)), f"Column `sample_weight` has 60 missing values, first at row 0. {DROP}"),
    "fit: weights of an unknown column": (fit(sample_weight="w"), f"Column `w` is missing. {KNOWN}"),
    "fit: weights of a text column": (fit(sample_weight="g"), "Column `g` must be numeric, but row 0 holds 'a'. Convert it with `pandas.to_numeric`."),
    "evaluate: weights of an unknown column": (evaluate(DATA, sample_weight="w"), f"Column `w` is missing. {KNOWN}"),
    "fit: validation data without rows": (fit(validation_data=DATA.iloc[:0]), "The data has no rows."),
    "fit: validation data without response": (fit(validation_data=DATA[["x1", "x2", "g", "f"]]), "Column `y` is missing. The data has: `x1`, `x2`, `g`, `f`."),
    "fit: validation data of two lengths": (fit(validation_data=(DATA, [1.0])), "The response has 1 values, the data 60 rows."),
    "save: no .keras": (lambda models: models.mixed.save("model.h5"), "A model is saved as a `.keras` file. Received: 'model.h5'."),
    "export: format": (lambda models: models.mixed.export("model", format="onnx"), "Only the format 'tf_saved_model' is exported. Received: {'format': 'onnx'}."),
    # ready-made models
    "gam: missing response": (lambda models: ak.gam(DATA, "zz"), f"Column `zz` is missing. {KNOWN}"),
    "gam: no features": (lambda models: ak.gam(DATA[["y"]], "y"), "The data has no column besides the response `y`."),
    "fm: array": (lambda models: ak.fm(DATA.to_numpy(), "y"), TABLE.format("numpy.ndarray") + ARRAY),
    "hofm: no rows": (lambda models: ak.hofm(DATA[["x1", "x2", "e", "y"]].iloc[:0], "y"), "The data has no rows."),
    "ahofm: near name": (lambda models: ak.ahofm(DATA, "y", ["x1", "x2", "x22"]), f"Column `x22` is missing. Did you mean `x2`? {KNOWN}"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str, models: SimpleNamespace) -> None:
    action, message = REFUSED[case]
    with pytest.raises(ak.DataError) as caught:
        action(models)
    assert str(caught.value) == message


# The wording is open, but it is ours and names the thing.
NAMED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "construct: unknown argument": (build("y ~ x1", famly="poisson"), "famly"),
    "construct: family in a list": (build("y ~ x1", family=["gaussian"]), "family"),
    "construct: seed below 0": (build("y ~ ahofm(x1, x2)", seed=-1), "seed"),
    "construct: no seed": (build("y ~ ahofm(x1, x2)", seed=None), "seed"),
    "construct: numbers beyond squares": (build("y ~ x1", DATA.assign(x1=DATA.x1 * 1e300)), "x1"),
    "construct: a range beyond floats": (build("y ~ s(x1)", DATA.assign(x1=DATA.x2 * 5e307)), "x1"),
    "construct: response beyond squares": (build("y ~ x1", DATA.assign(y=DATA.y * 1e300)), "`y`"),
    "construct: response below squares": (build("y ~ x1", DATA.assign(y=DATA.y * 1e-300)), "`y`"),
    "construct: level that is no UTF-8": (build("y ~ g", DATA.assign(g=DATA.g.replace("b", "\udc80"))), "`g`"),
    "fit: validation_split as text": (fit(validation_split="0.2"), "validation_split"),
    "fit: nothing left to train on": (fit(DATA.iloc[:3], validation_split=0.9), "validation_split"),
    "fit: empty validation_data": (fit(validation_data=()), "validation_data"),
    "fit: validation_data of four": (fit(validation_data=(DATA, DATA.y, np.ones(ROWS), 1)), "validation_data"),
    "fit: epochs as text": (fit(epochs="3"), "epochs"),
    "fit: epochs below 0": (fit(epochs=-1), "epochs"),
    "fit: batch_size of 0": (fit(batch_size=0), "batch_size"),
    "fit: batch_size below 0": (fit(batch_size=-5), "batch_size"),
    "fit: batch_size as text": (fit(batch_size="3"), "batch_size"),
    "fit: one callback, no list": (fit(callbacks=keras.callbacks.History()), "callbacks"),
    "fit: no callbacks": (fit(callbacks=[3]), "callbacks"),
    "fit: class of a callback": (fit(callbacks=[keras.callbacks.EarlyStopping]), "callbacks"),
    "fit: class_weight as text": (fit(model="labels", class_weight="balanced"), "class_weight"),
    "fit: class_weight of a gaussian": (fit(class_weight={0: 1.0, 1: 2.0}), "class_weight"),
    "fit: class_weight and sample_weight": (fit(model="labels", class_weight={0: 1.0, 1: 2.0}, sample_weight=np.ones(ROWS)), "class_weight"),
    "fit: negative class_weight": (fit(model="labels", class_weight={0: -1.0, 1: 2.0}), "class_weight"),
    "fit: seed below 0": (fit(seed=-1), "seed"),
    "fit: validation_freq of 0": (fit(validation_freq=0), "validation_freq"),
    "predict: callbacks": (predict(DATA, callbacks=[3]), "callbacks"),
    "predict: callbacks of terms": (predict(DATA, type="terms", callbacks=[keras.callbacks.History()]), "callbacks"),
    "evaluate: callbacks": (evaluate(DATA, callbacks=[3]), "callbacks"),
    "evaluate: no steps": (evaluate(DATA, steps=0), "steps"),
    "call: data frame": (lambda models: models.mixed(DATA), "dict of tensors"),
    "predict: batch_size below 0": (predict(DATA, batch_size=-1), "batch_size"),
    "predict: batch_size as text": (predict(DATA, batch_size="3"), "batch_size"),
    "evaluate: batch_size below 0": (evaluate(DATA, batch_size=-1), "batch_size"),
    "predict: no steps": (predict(DATA, steps=0, type="link"), "steps"),
    "gam: no response": (lambda models: ak.gam(DATA, None), "response"),  # type: ignore[arg-type]
    "gam: columns as one text": (lambda models: ak.gam(DATA, "y", "x1"), "`columns`"),
    "gam: a column twice": (lambda models: ak.gam(DATA, "y", ["x1", "x1"]), "`x1`"),
    "gam: no columns asked for": (lambda models: ak.gam(DATA, "y", []), "`columns`"),
    "save: nothing before .keras": (lambda models: models.mixed.save(".keras"), "keras"),
}  # fmt: skip


@pytest.mark.parametrize("case", NAMED)
def test_refused_by_name(case: str, models: SimpleNamespace) -> None:
    action, name = NAMED[case]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises((ak.DataError, ak.FormulaError), match=re.escape(name)):
            action(models)


def test_steps_below_zero_are_refused(models: SimpleNamespace) -> None:
    """Keras would train for ever; a callback ends it after a hundred batches."""
    model = with_random_weights(ak.AdditiveModel("y ~ x1", DATA))
    seen: list[int] = []

    class Stop(keras.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            seen.append(batch)
            if len(seen) > 100:
                raise TimeoutError

    with pytest.raises(ak.DataError, match="steps_per_epoch"):
        model.fit(DATA, epochs=1, verbose=0, steps_per_epoch=-1, callbacks=[Stop()])


def test_hint_ignores_case() -> None:
    with pytest.raises(ak.DataError, match="Did you mean `X1`"):
        ak.AdditiveModel("y ~ x1", DATA.rename(columns={"x1": "X1"}))


def test_numbers_as_names_in_ready_made_models() -> None:
    data = DATA[["x1", "x2", "y"]].set_axis([0, 1, 2], axis=1)
    for model in (ak.fm(data, 2), ak.fm(data, 2, [0, 1])):  # type: ignore[arg-type, list-item]
        assert model.formula == 'Q("2") ~ fm(Q("0"), Q("1"))'


def test_equations_without_a_solution_are_said_as_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(model: Any, job: Any) -> None:
        raise np.linalg.LinAlgError("Eigenvalues did not converge")

    monkeypatch.setitem(SOLVERS, "variational", fails)
    data = pd.DataFrame({"x": np.linspace(0, 1, 50), "y": np.sin(np.arange(50.0))})
    model = ak.AdditiveModel("y ~ s(x)", data)
    with pytest.raises(ak.DataError, match=r"cannot solve \(Eigenvalues did not converge\).*adam"):
        model.fit(data, solver="variational", verbose=0)
