"""`m=(degree, difference)` and `bs="step"`: functions against SciPy, fits against dense algebra."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from scipy.interpolate import BSpline

import ahofm_keras as ak
from ahofm_keras.bases import Basis, evaluate_basis, locate, make_spline
from ahofm_keras.errors import FormulaError
from ahofm_keras.terms import Feature

RNG = np.random.default_rng(0)
ROWS = 400
DATA = pd.DataFrame({"x": RNG.uniform(0, 10, ROWS), "z": RNG.normal(size=ROWS)})
DATA["hour"] = RNG.uniform(0, 24, ROWS)
DATA["g"] = RNG.choice(list("abc"), ROWS)
DATA["y"] = np.floor(DATA.x / 3) + (DATA.z > 0) * (DATA.x > 5) + 0.3 * RNG.normal(size=ROWS)
FORMS = [(degree, difference) for degree in (0, 1, 2, 3) for difference in (1, 2, 3)]


def feature_of(formula: str) -> Feature:
    return ak.AdditiveModel(f"y ~ {formula}", DATA).design.features[0]


def steps(x: np.ndarray, size: int, **axis: Any) -> Basis:
    return make_spline(x, size, degree=0, **axis)


# Functions


@pytest.mark.parametrize("size", [1, 2, 7, 40])
@pytest.mark.parametrize("knots", ["even", "adaptive", "quantile"])
def test_steps_are_scipys_splines_of_degree_0(size: int, knots: str) -> None:
    x = RNG.exponential(size=300)
    basis = steps(x, size, knots=knots)
    # Ends are kept; between two knots of the map places are never whole numbers.
    place = np.interp(x, basis.axis, basis.warped) * size
    wanted = BSpline.design_matrix(place, np.arange(size + 1.0), 0).toarray()
    np.testing.assert_array_equal(evaluate_basis(basis, x), wanted)


def test_steps_of_a_circle_are_those_of_a_line_that_goes_round() -> None:
    basis = steps(np.array([0.0, 24.0]), 6, knots=(0, 24), cyclic=True)
    hours = np.array([0.0, 3.9, 4.1, 23.9, 24.1, -0.1, 47.9])
    np.testing.assert_array_equal(evaluate_basis(basis, hours).argmax(axis=1), [0, 0, 1, 5, 0, 5, 5])


@pytest.mark.parametrize("extrapolation", ["clip", "linear"])
@pytest.mark.parametrize("namespace", [np, keras.ops], ids=["numpy", "keras"])
def test_steps_stay_at_their_ends_and_missing_values_missing(namespace: Any, extrapolation: str) -> None:
    basis = steps(np.array([0.0, 10.0]), 5, knots="even", extrapolation=extrapolation)
    x: Any = np.array([-1e9, 0.0, 1.9, 2.1, 10.0, 1e9, np.nan])
    given = x if namespace is np else keras.ops.convert_to_tensor(x)
    found = np.asarray(locate(basis, given, namespace))
    np.testing.assert_array_equal(found, [0, 0, 0, 1, 4, 4, np.nan])


def test_jumps_are_where_functions_change() -> None:
    basis = steps(RNG.exponential(size=300), 8)
    for jump in basis.jumps:
        left, right = evaluate_basis(basis, np.array([jump - 1e-9, jump + 1e-9])).argmax(axis=1)
        assert right == left + 1
    assert len(basis.jumps) == 7
    assert not len(make_spline(DATA.x.to_numpy(), 8, degree=1).jumps)


# Penalties


@pytest.mark.parametrize("form", FORMS)
def test_polynomials_below_the_order_are_free(form: tuple[int, int]) -> None:
    degree, difference = form
    feature = feature_of(f"s(x, k=9, m={form}, knots='even')")
    assert feature.basis.degree == degree
    assert feature.null_dimension == difference - 1  # less the constant, which is the intercept's
    assert np.count_nonzero(feature.eigenvalues) == len(feature.eigenvalues) - difference + 1
    # With even knots polynomials have polynomials as coefficients.
    free = feature.transform[:, feature.eigenvalues == 0]
    powers = np.vander(np.arange(9.0), difference)
    assert np.linalg.matrix_rank(np.hstack([powers, free]), tol=1e-6) == difference


@pytest.mark.parametrize("form", [(0, 1), (1, 1), (2, 3), (1, 2)])
@pytest.mark.parametrize("solver", ["bcd", "variational"])
@pytest.mark.parametrize("knots", ["even", "adaptive"])
def test_a_fixed_lambda_gives_the_ridge_of_dense_algebra(
    form: tuple[int, int], solver: str, knots: str
) -> None:
    model = ak.AdditiveModel(f"y ~ s(x, k=8, m={form}, sp=3, knots='{knots}')", DATA)
    model.fit(DATA, solver=solver, verbose=0)
    (feature,) = model.design.features
    basis = feature.basis
    B = evaluate_basis(basis, DATA.x.to_numpy())
    at = np.arange(8.0) if knots == "even" else np.asarray(basis.line)
    D = np.eye(8)
    for order in range(1, form[1] + 1):
        D = np.diff(D, axis=0) / (at[order:] - at[:-order])[:, None]
    D *= 2 ** form[1] / np.abs(D).sum(axis=1, keepdims=True)
    fitted = B @ np.linalg.solve(B.T @ B + 3 * D.T @ D, B.T @ DATA.y)
    np.testing.assert_allclose(model.predict(DATA), fitted, rtol=0, atol=2e-5)


def test_a_line_beside_steps_is_no_line_that_is_there_twice() -> None:
    ak.AdditiveModel("y ~ x + s(x, bs='step')", DATA)  # warnings are errors
    with pytest.warns(ak.AhofmWarning, match="cannot be told apart"):
        ak.AdditiveModel("y ~ x + s(x, m=(1, 2))", DATA)


# Formulas


def test_steps_are_a_form_with_a_name() -> None:
    named, written = feature_of("s(x, bs='step')"), feature_of("s(x, m=(0, 1))")
    assert named.basis == written.basis
    assert named.basis.degree == 0
    assert named.basis.difference == 1
    assert feature_of("s(x)").basis == feature_of("s(x, m=(3, 2))").basis


def test_each_value_may_have_a_step() -> None:
    digits = DATA.assign(x=np.round(DATA.x))
    model = ak.AdditiveModel("y ~ s(x, bs='step')", digits)
    functions = evaluate_basis(model.design.features[0].basis, np.arange(11.0))
    assert len(np.unique(functions.argmax(axis=1))) == 11


def degrees(formula: str) -> dict[str, tuple[int, int]]:
    features = ak.AdditiveModel(f"y ~ {formula}", DATA).design.features
    return {f.label: (f.basis.degree, f.basis.difference) for f in features if f.basis.is_spline}


@pytest.mark.parametrize(
    ("formula", "wanted"),
    [
        ("afm(x, z, m=(1, 1))", {"x": (1, 1), "z": (1, 1)}),
        ("afm(x, z, g, m={'x': (1, 1)}, bs={'z': 'step'})", {"x": (1, 1), "z": (0, 1)}),
        ("s(x, bs='step') + afm(x, z)", {"x": (0, 1), "z": (3, 2)}),
        ("s(hour, bs='cp', m=(1, 2)) + afm(x, hour)", {"hour": (1, 2), "x": (3, 2)}),
        ("te(x, z, m=(2, 1))", {"x": (2, 1), "z": (2, 1)}),
        ("te(x, z, m=((0, 1), (1, 1)))", {"x": (0, 1), "z": (1, 1)}),
        ("te(x, z, m={'z': (1, 1)})", {"x": (3, 2), "z": (1, 1)}),
        ("ti(x, g, bs=('step', 're'))", {"x": (0, 1)}),
        ("s(x, m=(1, 1)) + s(z) + ti(x, z)", {"x": (1, 1), "z": (3, 2)}),
    ],
)
def test_who_gets_which_form(formula: str, wanted: dict[str, tuple[int, int]]) -> None:
    assert degrees(formula) == wanted


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("s(x, m=(4, 1))", r"`m` of `s\(\)` must be a degree from 0 to 3 and an order of differences"),
        ("s(x, m=(1, 0))", "an order of differences from 1 to 3, e.g. "),
        ("s(x, m=2)", r"Received: m=2"),
        ("afm(x, z, m={'x': 1})", "`m` of `afm.*a dict from feature to a degree from 0 to 3"),
        ("te(x, z, m=((0, 1), 1))", "`m` of `te"),
        ("te(x, z, m=((0, 1), (1, 1), (1, 1)))", "`m` of `te.*` needs one value, or one per margin"),
        ("s(x, bs='step', m=(1, 1))", r'bs="step" is m=\(0, 1\): leave one of the two out'),
        ("afm(x, z, bs='step', m={'z': (1, 1)})", r'bs="step" is m=\(0, 1\)'),
        ("s(x, k=3, m=(3, 2))", "Pieces of degree 3 need `k` of at least 4"),
        ("s(g, m=(0, 1))", "`m` has no meaning for the category `g`"),
        ("s(x, bs='re', m=(0, 1))", '`m` has no meaning with bs="re"'),
    ],
)
def test_what_cannot_be(formula: str, message: str) -> None:
    with pytest.raises(FormulaError, match=message):
        ak.AdditiveModel(f"y ~ {formula}", DATA)


# Models


@pytest.fixture(scope="module")
def model() -> ak.AdditiveModel:
    formula = "y ~ afm(x, z, F=2, bs='step', k=12) + ti(x, hour, k=5, m=((0, 1), (1, 1)))"
    made = ak.AdditiveModel(formula, DATA, extrapolation="linear")
    made.fit(DATA, verbose=0, restarts=0)
    return made


def far() -> pd.DataFrame:
    return pd.concat([DATA, DATA.assign(x=DATA.x + 20), DATA.assign(z=DATA.z - 30)])


def test_saved_and_exported_models_predict_the_same(model: ak.AdditiveModel, tmp_path: Path) -> None:
    rows = far()
    wanted = model.predict(rows, interval=0.9)
    model.save(tmp_path / "model.keras")
    again = ak.load_model(tmp_path / "model.keras").predict(rows, interval=0.9)
    pd.testing.assert_frame_equal(again, wanted)
    model.export(tmp_path / "served", verbose=False)
    served = tf.saved_model.load(str(tmp_path / "served")).signatures["serving_default"]
    found = served(**{name: tf.constant(rows[name].to_numpy()) for name in ("x", "z", "hour")})
    np.testing.assert_allclose(found["response"].numpy(), wanted["mean"], rtol=1e-5, atol=1e-6)


def test_steps_follow_jumps_more_closely_than_splines() -> None:
    rng = np.random.default_rng(1)
    data = pd.DataFrame({"x": rng.uniform(0, 10, 1000)})
    data["y"] = np.floor(data.x / 3) + 0.1 * rng.normal(size=1000)
    x = np.linspace(0.1, 9.9, 990)
    errors = {}
    for bs in ("step", "ps"):
        fitted = ak.fit(f"y ~ s(x, bs='{bs}', k=50)", data, verbose=0)
        errors[bs] = np.sqrt(np.mean((fitted.predict({"x": x}) - np.floor(x / 3)) ** 2))
    assert errors["step"] < 0.9 * errors["ps"]


@pytest.mark.filterwarnings("ignore:The fit reached its last epoch")
def test_adam_comes_near_the_exact_fit() -> None:
    found = {}
    for solver, options in (("bcd", {}), ("adam", {"epochs": 300, "validation_split": 0.0})):
        fitted = ak.AdditiveModel("y ~ s(x, bs='step', k=8, df=6)", DATA)
        fitted.fit(DATA, solver=solver, verbose=0, **options)
        found[solver] = fitted.predict(DATA)
    np.testing.assert_allclose(found["adam"], found["bcd"], atol=0.02)


def test_curves_are_drawn_as_steps() -> None:
    """Points on either side of each jump: between them alone the effect changes."""
    fitted = ak.fit("y ~ s(x, bs='step', k=12) + s(z)", DATA, verbose=0)
    effect = ak.effect(fitted, "x")
    (axis,) = effect.grid
    (jumps,) = (f.basis.jumps for f in fitted.design.features if f.label == "x")
    changes = np.abs(np.diff(effect.fit)) > 1e-9
    assert changes.sum() > 5
    assert np.diff(axis)[changes].max() < 1e-4
    for low, high in zip(axis[:-1][changes], axis[1:][changes], strict=True):
        assert ((jumps > low) & (jumps < high)).sum() == 1
    assert len(ak.effect(fitted, "z").grid[0]) < len(axis)
