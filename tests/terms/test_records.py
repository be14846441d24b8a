"""Categories, JSON and names of terms."""

from __future__ import annotations

import json
from typing import Any

import keras
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

from ahofm_keras.data import read_columns
from ahofm_keras.families import get_family
from ahofm_keras.model.graph import build_graph
from ahofm_keras.terms import TERMS, Design, features
from ahofm_keras.terms.deep import DeepTerm
from ahofm_keras.terms.functional import FunctionalTerm
from ahofm_keras.terms.interaction import InteractionTerm, LinearInteractionTerm
from ahofm_keras.terms.linear import LinearTerm
from ahofm_keras.terms.offset import OffsetTerm
from ahofm_keras.terms.scaled import ScaledTerm
from ahofm_keras.terms.shrunken import GroupLassoTerm, LassoTerm, RidgeTerm
from ahofm_keras.terms.smooth import SmoothTerm
from ahofm_keras.terms.tensor import TensorTerm
from ahofm_keras.transforms import evaluate_expression
from tests.reference import terms_of
from tests.terms.common import DATA, ROWS, dense_df, fit

# Categories


@pytest.mark.parametrize("intercept", ["", "0 + "])
@pytest.mark.parametrize(
    ("name", "levels"),
    [
        ("g", ("a", "b", "c", "d")),
        ("flag", (False, True)),
        ("C(d5)", (0.0, 1.0, 2.0, 3.0, 4.0)),
        ("C(g)", ("a", "b", "c", "d")),
    ],
)
def test_categories_stand_inside_an_interaction(
    name: str, levels: tuple[Any, ...], intercept: str
) -> None:
    design = fit(f"{intercept}ahofm(x, {name}, z, D=3)")
    (term,) = terms_of(design, InteractionTerm)
    feature = design.features[term.features[1]]
    assert feature.label == name
    assert (feature.basis.kind, feature.basis.levels) == ("re", levels)
    assert [type(level) for level in feature.basis.levels] == [type(level) for level in levels]
    wanted = 0.9 * (len(levels) - 1)
    assert [order.df[1] for order in term.orders] == pytest.approx([wanted, wanted], abs=1e-6)
    assert dense_df(feature, term.orders[0].smoothing[1]) == pytest.approx(wanted, abs=1e-4)
    mains = [design.features[main.feature].label for main in terms_of(design, SmoothTerm)]
    assert mains == ["x", name, "z"]


def test_linear_categories_leave_their_first_level_out_after_an_intercept() -> None:
    design = fit("g + x:two")
    assert design.only.intercept
    assert [term.coefficients for term in design.terms] == [
        ("g[b]", "g[c]", "g[d]"),
        ("x:two[u]", "x:two[v]"),
    ]
    design = fit("0 + g + two")
    assert not design.only.intercept
    assert [term.coefficients for term in design.terms] == [
        ("g[a]", "g[b]", "g[c]", "g[d]"),
        ("two[v]",),
    ]


# JSON

FORMULAS = {
    "linear": "x + g + x:g + poly(z, 2) + C(d3) + flag + log(w)",
    "smooths": 's(x) + s(skewed, knots="quantile", df=5) + s(d3) + s(d2) + s(scale(z))',
    "cyclic": 's(hour, bs="cp", knots=(0, 24))',
    "levels": 's(g) + s(d5, bs="re") + s(flag) + s(C(d3))',
    "interactions": "ahofm(x, g, d4, w, D=3, F=(3, 2), df={'x': (8, 6, 4)})",
    "penalised": "ridge(x, g, df=3) + lasso(z, poly(w, 2), C(d3)) + grouplasso(v, flag, d5, groups=[[v, flag]])",
    "factorization machine": "hofm(x, g, z, flag, D=3, F=2)",
    "tensors": 'te(x, g, df=(4, 2)) + ti(hour, z, w, bs=("cp", "ps", "ps"), sp=2)',
    "by": "g + s(x, by=g, id=1) + s(x, by=z) + te(x, z, by=flag, k=4) + flag + s(z, g, bs='fs')"
    " + s(two, w, bs='re') + s(w, two, bs='sz', k=5) + s(g, by=w)",
    "shapes and points": "s(x, shape='increasing') + s(w, shape='concave', pc=0.5) + s(hour, bs='cp', pc=3)"
    " + te(z, v, bs=('ps', 'linear'))",
    "offset": "s(x) + offset(log(z)) + offset(w)",
    "no intercept": "0 + g + s(x)",
}


@pytest.mark.parametrize("extrapolation", ["clip", "linear"])
@pytest.mark.parametrize("case", FORMULAS)
def test_json_brings_back_a_design_of_equal_predictions(case: str, extrapolation: str) -> None:
    design = fit(FORMULAS[case], extrapolation=extrapolation)
    again = Design.from_json(json.loads(json.dumps(design.to_json())))
    assert again.terms == design.terms
    assert (again.columns, again.only.intercept, again.rows) == (
        design.columns,
        design.only.intercept,
        ROWS,
    )
    assert len(again.features) == len(design.features)
    for found, wanted in zip(again.features, design.features, strict=True):
        assert (found.expression, found.basis) == (wanted.expression, wanted.basis)
        np.testing.assert_array_equal(found.transform, wanted.transform)
        np.testing.assert_array_equal(found.eigenvalues, wanted.eigenvalues)
        assert (found.null_dimension, found.distinct, found.rank) == (
            wanted.null_dimension, wanted.distinct, wanted.rank,
        )  # fmt: skip
    new = DATA.assign(x=DATA["x"] * 1.3 - 0.2)  # leaves the range on both sides
    np.testing.assert_array_equal(predictions(again, new), predictions(design, new))


def predictions(design: Design, data: pd.DataFrame) -> np.ndarray:
    """Of a model with random weights, the same for equal designs."""
    graph = build_graph(design, get_family("gaussian"), {"mean": (1.0, 2.0)}, seed=0)
    model = keras.Model(graph.inputs, graph.response)
    rng = np.random.default_rng(0)
    for weight in model.trainable_weights:
        weight.assign(rng.normal(size=weight.shape))
    columns = read_columns(data, design.columns, design.columns)
    tensors = {
        name: tf.constant(values.tolist() if values.dtype == object else values)
        for name, values in columns.items()
    }
    found = np.asarray(model(tensors))
    assert np.isfinite(found).all()
    assert found.std() > 0
    return found


def test_json_is_tested_for_every_kind_of_term() -> None:
    kinds = {type(term) for formula in FORMULAS.values() for term in fit(formula).terms}
    # Networks are given beside the formula and arrays beside columns: `test_deep.py`, `test_functional.py`.
    assert kinds == set(TERMS.values()) - {DeepTerm, FunctionalTerm}
    assert kinds == {
        LinearTerm, SmoothTerm, TensorTerm, InteractionTerm, LinearInteractionTerm, OffsetTerm,
        RidgeTerm, LassoTerm, GroupLassoTerm, ScaledTerm,
    }  # fmt: skip


def test_an_offset_is_its_expression() -> None:
    design = fit("s(x) + offset(log(z))")
    (term,) = terms_of(design, OffsetTerm)
    columns = read_columns(DATA, design.columns)
    np.testing.assert_allclose(evaluate_expression(term.offset, columns), np.log(DATA["z"]))


def test_layer_names_are_ones_that_tensorflow_takes() -> None:
    data = DATA.rename(columns={"x": "größe", "z": "数"})
    design = fit("s(größe) + ahofm(größe, 数)", data)
    for term in design.terms:
        with tf.Graph().as_default(), tf.name_scope(term.name):
            pass


def test_rows_may_be_read_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    formula = 's(skewed, df=6) + s(g) + s(hour, bs="cp")'
    whole = fit(formula)
    monkeypatch.setattr(features, "_CHUNK", 37)
    chunked = fit(formula)
    for found, wanted in zip(chunked.features, whole.features, strict=True):
        gap = np.abs(found.eigenvalues - wanted.eigenvalues).max()
        assert gap <= 1e-8 * wanted.eigenvalues.max()
        assert found.rank == pytest.approx(wanted.rank, abs=1e-6)
