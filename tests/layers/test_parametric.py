"""Parametric columns against patsy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import patsy
import pytest
import tensorflow as tf

from ahofm_keras.data import kind_of, read_columns
from ahofm_keras.formula import parse_formula
from ahofm_keras.layers import Linear, ParametricColumns
from ahofm_keras.terms import fit_terms
from ahofm_keras.terms.linear import LinearTerm
from tests.reference import terms_of

# Parametric columns against patsy


def frame(count: int = 300, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "y": rng.normal(size=count),
            "x": rng.normal(5, 2, size=count),
            "z": rng.uniform(1, 3, size=count),
            "a": rng.choice(["p", "q", "r"], count),
            "b": rng.choice(["u", "v"], count),
            "g": rng.choice(["k", "l", "m", "n"], count),
            "num": rng.choice([1.0, 2.0, 7.5], count),
            "flag": rng.uniform(size=count) < 0.4,
        }
    )


def poly_of(train: pd.DataFrame) -> Callable[[Any, int], np.ndarray]:
    """Orthonormal polynomials on the training values of `x`, from a QR decomposition."""

    def poly(values: Any, degree: int) -> np.ndarray:
        centre, spread = train["x"].mean(), train["x"].std()
        vandermonde = np.vander((train["x"] - centre) / spread, degree + 1, increasing=True)
        _, triangle = np.linalg.qr(vandermonde)
        triangle *= np.sign(np.diag(triangle))[:, None]
        new = np.vander((np.asarray(values) - centre) / spread, degree + 1, increasing=True)
        return np.linalg.solve(triangle.T, new.T).T[:, 1:]

    return poly


def fitted(formula: str, train: pd.DataFrame) -> tuple[list[LinearTerm], ParametricColumns]:
    parsed = parse_formula(f"y ~ {formula}")
    columns = read_columns(train, parsed.columns())
    design = fit_terms(parsed, columns, {name: kind_of(values) for name, values in columns.items()})
    terms = terms_of(design, LinearTerm)
    config = [
        {
            "factors": [(factor.expression, factor.levels) for factor in term.factors],
            "columns": term.columns,
            "centre": term.centre,
            "scale": term.scale,
        }
        for term in terms
    ]
    return terms, ParametricColumns(config, dtype="float64")


def arrays(data: pd.DataFrame) -> dict[str, np.ndarray]:
    return read_columns(data, [c for c in data if c != "y"])


def tensors(data: pd.DataFrame) -> dict[str, Any]:
    return {
        name: tf.constant(values.tolist() if values.dtype == object else values)
        for name, values in arrays(data).items()
    }


FORMULAS = [
    "x",
    "a",
    "0 + a",
    "0 + x",
    "a*b",
    "a:b",
    "b + a:b",
    "0 + a:b",
    "0 + a*b",
    "x:g",
    "x*g",
    "g + x:g",
    "x:z",
    "a*b*g",
    "a:b:x",
    "a*x*z",
    "poly(x, 3)",
    "poly(x, 2)*b",
    "poly(x, 2):a",
    "C(num)",
    "C(num)*a",
    "C(num):x",
    "flag",
    "flag*x",
    "flag:a",
    "0 + flag",
    "log(z) + I(x / z):b",
]


@pytest.mark.parametrize("formula", FORMULAS)
def test_design_columns_are_patsys(formula: str) -> None:
    train, new = frame(), frame(count=30, seed=1)
    terms, layer = fitted(formula, train)
    scope = {"poly": poly_of(train), "log": np.log}
    info = patsy.dmatrix(formula, train, eval_env=patsy.EvalEnvironment([scope])).design_info
    names = [name for term in terms for name in term.coefficients]
    centre = np.concatenate([term.centre for term in terms])
    scale = np.concatenate([term.scale for term in terms])
    for data in (train, new):
        (matrix,) = patsy.build_design_matrices([info], data)
        wanted = {
            # patsy: `a[T.q]`, `poly(x, 2)[0]`, `flag[True]`; here `a[q]`, `poly(x, 2)[1]`.
            _rename(name): np.asarray(matrix)[:, place]
            for place, name in enumerate(info.column_names)
            if name != "Intercept"
        }
        assert sorted(names) == sorted(wanted)
        found = np.asarray(layer(tensors(data)))
        assert found.shape == (len(data), len(names))
        np.testing.assert_allclose(layer.encode(arrays(data)), found, rtol=1e-12, atol=1e-12)
        for place, name in enumerate(names):
            raw = found[:, place] * scale[place] + centre[place]
            np.testing.assert_allclose(raw, wanted[name], rtol=0, atol=1e-9, err_msg=name)
    if not formula.startswith("0"):
        trained = np.asarray(layer(tensors(train)))
        np.testing.assert_allclose(trained.mean(axis=0), 0, rtol=0, atol=1e-9)
        np.testing.assert_allclose(trained.std(axis=0), 1, rtol=0, atol=1e-9)


def _rename(name: str) -> str:
    name = name.replace("[T.", "[")
    if "poly" in name:
        for component in (2, 1, 0):
            name = name.replace(f")[{component}]", f")[{component + 1}]")
    return name


@pytest.mark.parametrize(
    ("formula", "unseen"),
    [
        ("a", {"a": "new"}),
        ("0 + a", {"a": "new"}),
        ("a*b", {"a": "new"}),
        ("a:b", {"b": "new"}),
        ("b + a:b", {"a": "new", "b": "new"}),
        ("x:g", {"g": "new"}),
        ("C(num)", {"num": 3.0}),
        ("C(num)*a", {"num": 1.0000001}),
        ("poly(x, 2):a", {"a": ""}),
    ],
)
def test_an_unseen_level_contributes_exactly_0(formula: str, unseen: dict[str, Any]) -> None:
    train = frame()
    terms, layer = fitted(formula, train)
    new = train.head(6).copy()
    for name, value in unseen.items():
        new.loc[new.index[:3], name] = value
    found = layer(tensors(new))
    np.testing.assert_allclose(layer.encode(arrays(new)), found, rtol=1e-12, atol=1e-12)
    start = 0
    for term in terms:
        stop = start + len(term.columns)
        linear = Linear(start, stop, dtype="float64")
        linear(found)
        linear.kernel.assign(np.random.default_rng(0).normal(size=stop - start))
        effect = np.asarray(linear(found))[:, 0]
        used = {name for factor in term.factors for name in factor.expression.columns()}
        if used & set(unseen):
            np.testing.assert_array_equal(effect[:3], np.zeros(3))
            assert (effect[3:] != 0).all()
        else:
            assert (effect != 0).all()
        start = stop
