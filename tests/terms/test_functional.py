"""Terms of arrays: against mgcv, against dense algebra, and from the formula to the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

import ahofm_keras as ak
from ahofm_keras.bases import evaluate_basis
from ahofm_keras.layers.weighted_sums import WeightedSums
from tests.model.careless import with_random_weights

FIXTURE = Path(__file__).parent.parent / "fixtures" / "mgcv_functional.json"
MGCV = {
    "weighted": "s(T, by=W, {T}, sp={sp[0]})",
    "centred": "s(T, {T}, sp={sp[0]})",
    "beside": "s(x, {x}, sp={sp[0]}) + s(T, by=W, {T}, sp={sp[1]})",
    "alone": "0 + s(T, by=W, {T}, sp={sp[0]})",
}


@pytest.fixture(scope="module")
def stored() -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    known = json.loads(FIXTURE.read_text())
    return {name: np.array(known[name]) for name in ("T", "W", "x", "y")}, known


@pytest.mark.parametrize("name", MGCV)
def test_fits_curves_and_bands_equal_mgcvs(
    name: str, stored: tuple[dict[str, np.ndarray], dict[str, Any]]
) -> None:
    data, known = stored
    result = known["fits"][name]
    bases = {
        axis: f"k={known['k']}, knots=({float(data[axis].min())!r}, {float(data[axis].max())!r})"
        for axis in "Tx"
    }
    model = ak.AdditiveModel("y ~ " + MGCV[name].format(sp=result["lambda"], **bases), data)
    model.fit(data, solver="bcd", verbose=0)
    np.testing.assert_allclose(model.predict(data), result["fitted"], rtol=0, atol=1e-4)
    assert np.sum(model.posterior.linear_edf) == pytest.approx(result["edf"], abs=1e-4)
    found = ak.effect(model, "T", at={"T": known["grid"]})
    np.testing.assert_allclose(found.fit, result["curve"], rtol=0, atol=1e-4)
    np.testing.assert_allclose(found.se, result["se"], rtol=1e-3)


def make_data(seed: int = 0, rows: int = 120, width: int = 15) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    t = np.tile(np.linspace(0, 1, width), (rows, 1))
    data = {"t": t, "w": rng.normal(size=(rows, width)), "x": rng.uniform(size=rows)}
    signal = (data["w"] * np.cos(3 * t)).sum(axis=1)
    return {**data, "y": signal + np.sin(6 * data["x"]) + 0.2 * rng.normal(size=rows)}


DATA = make_data()


def model_of(formula: str = "y ~ s(x, k=8) + s(t, by=w, k=8)", **options: Any) -> ak.AdditiveModel:
    return ak.AdditiveModel(formula, DATA, **options)


@pytest.fixture(scope="module")
def fitted() -> ak.AdditiveModel:
    model = model_of()
    model.fit(DATA, verbose=0)
    return model


@pytest.mark.parametrize("options", ["", ", bs='cp'", ", m=(1, 1)", ", bs='step', k=5"])
@pytest.mark.parametrize("extrapolation", ["clip", "linear"])
def test_columns_are_sums_of_basis_functions(options: str, extrapolation: str) -> None:
    """In NumPy, also in pieces, and in the graph."""
    formula = f"y ~ s(t, by=w{options})"
    (term,) = model_of(formula, extrapolation=extrapolation).design.terms
    sums = term.weight_function
    assert isinstance(sums, WeightedSums)
    rng = np.random.default_rng(1)
    columns = {"t": rng.uniform(-0.2, 1.3, (7, 15)), "w": rng.normal(size=(7, 15))}
    functions = evaluate_basis(sums.basis, columns["t"].ravel()).reshape(7, 15, -1)
    wanted = np.einsum("ij,ijk->ik", columns["w"], functions) @ sums.transform - sums.centre
    np.testing.assert_allclose(sums.compute(columns), wanted, rtol=1e-10, atol=1e-10)
    found = sums.compute({k: keras.ops.convert_to_tensor(v) for k, v in columns.items()}, keras.ops)
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10)


def test_pieces_of_rows_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    (term,) = model_of("y ~ s(t, by=w)").design.terms
    whole = term.weight_function.compute(DATA)
    monkeypatch.setattr("ahofm_keras.layers.weighted_sums._VALUES", 2000)
    np.testing.assert_array_equal(term.weight_function.compute(DATA), whole)


def test_a_fit_is_the_penalised_least_squares_fit() -> None:
    """Without the model's coordinates: B-splines summed, an intercept, differences of order 2."""
    model = model_of("y ~ s(t, by=w, k=9, knots='even', sp=3)")
    model.fit(DATA, solver="bcd", verbose=0)
    basis = model.design.terms[0].weight_function.basis
    functions = evaluate_basis(basis, DATA["t"].ravel()).reshape(120, 15, -1)
    rows = np.column_stack([np.ones(120), np.einsum("ij,ijk->ik", DATA["w"], functions)])
    root = np.sqrt(3.0) * np.diff(np.eye(9), 2, axis=0)
    penalised = np.concatenate([rows, np.pad(root, ((0, 0), (1, 0)))])
    beta = np.linalg.lstsq(penalised, np.append(DATA["y"], np.zeros(7)), rcond=None)[0]
    np.testing.assert_allclose(model.predict(DATA), rows @ beta, atol=1e-6)
    named = ak.coef(model)
    assert named.iloc[0] == pytest.approx(beta[0], abs=1e-6)


def test_the_mean_is_free_unless_all_weights_have_one_sum() -> None:
    rng = np.random.default_rng(5)
    shares = rng.dirichlet(np.ones(15), 120)
    contrasts = shares - 1 / 15
    sizes = {}
    for name, weights in {"free": DATA["w"], "shares": shares, "contrasts": contrasts}.items():
        model = ak.AdditiveModel("y ~ s(t, by=w, k=8)", {**DATA, "w": weights})
        sizes[name] = len(model.design.terms[0].weight_function)
    assert sizes == {"free": 8, "shares": 7, "contrasts": 7}


@pytest.mark.parametrize("solver", ["variational", "bcd", "adam"])
def test_solvers_find_the_function(solver: str) -> None:
    model = model_of()
    model.fit(DATA, solver=solver, verbose=0)
    found = ak.effect(model, "t", points=30)
    np.testing.assert_allclose(found.fit, np.cos(3 * found.grid[0]), atol=0.2)
    lower, upper = found.band(0.999)
    assert np.mean((lower < np.cos(3 * found.grid[0])) & (np.cos(3 * found.grid[0]) < upper)) > 0.8


def test_adam_finds_what_exact_updates_find() -> None:
    exact, trained = (model_of("y ~ s(t, by=w, k=8, sp=1)") for _ in range(2))
    exact.fit(DATA, solver="bcd", verbose=0)
    options = {"epochs": 400, "validation_split": 0.0, "verbose": 0}
    trained.fit(DATA, solver="adam", **options)
    np.testing.assert_allclose(trained.predict(DATA), exact.predict(DATA), atol=0.02)


def test_terms_sum_to_the_link_and_explain_each_row(fitted: ak.AdditiveModel) -> None:
    terms = fitted.predict(DATA, type="terms")
    assert list(terms) == ["s(x)", "s(t):w"]
    total = fitted.intercept + terms.sum(axis=1)
    np.testing.assert_allclose(total, fitted.predict(DATA, type="link"), atol=1e-5)
    assert terms["s(t):w"].mean() == pytest.approx(0, abs=1e-5)
    shares = ak.effects(fitted)
    variance = terms["s(t):w"].var(ddof=0)
    assert shares[-1].share == pytest.approx(variance / (variance + terms["s(x)"].var(ddof=0)), rel=1e-3)
    text = str(ak.explain(fitted, {name: own[:1] for name, own in DATA.items()}))
    assert "s(t):w" in text


def test_the_summary_has_a_row(fitted: ak.AdditiveModel) -> None:
    row = ak.summary(fitted).terms.loc["s(t):w"]
    assert (row.kind, row.k_max, row.order) == ("functional", 8, 1)
    assert 2 < row.edf < 8
    assert row.p_value < 1e-6
    assert row["share"] == pytest.approx(ak.effect(fitted, "t").share)


def test_without_an_intercept_shares_have_a_mean() -> None:
    shifted = {**DATA, "w": DATA["w"] + 1}
    model = ak.AdditiveModel("y ~ 0 + s(t, by=w, k=8)", shifted)
    model.fit(shifted, verbose=0)
    terms = model.predict(shifted, type="terms")["s(t):w"]
    np.testing.assert_allclose(terms, model.predict(shifted), atol=1e-5)
    parts = ak.decomposition.Parts(model)
    (own,) = parts.opaque
    assert own.mean == pytest.approx(terms.mean(), rel=1e-4)
    assert own.variance == pytest.approx(terms.var(ddof=0), rel=1e-4)


def test_intervals_have_the_variance_of_the_dense_columns() -> None:
    model = model_of("y ~ s(t, by=w, k=8)")
    model.fit(DATA, verbose=0)
    found = model.predict(DATA, type="link", interval=0.95)
    (span,) = model.design.layout.only.spans
    columns = np.column_stack([np.ones(120), span.block.on_columns(DATA)])
    rows = columns @ np.asarray(model.posterior.linear_roots)
    wanted = 1.959964 * model.scale * np.sqrt((rows**2).sum(axis=1))
    half = (found["upper"] - found["lower"]) / 2
    np.testing.assert_allclose(half, wanted, rtol=1e-3)


def test_files_exports_frames_and_datasets_say_the_same(
    fitted: ak.AdditiveModel, tmp_path: Path
) -> None:
    wanted = fitted.predict(DATA)
    fitted.save(tmp_path / "m.keras")
    again = keras.models.load_model(tmp_path / "m.keras")
    np.testing.assert_array_equal(again.predict(DATA), wanted)
    before, after = (ak.effect(own, "t") for own in (fitted, again))
    np.testing.assert_array_equal(after.band(), before.band())
    frame = pd.DataFrame({"x": DATA["x"], "t": list(DATA["t"]), "w": list(map(list, DATA["w"]))})
    np.testing.assert_array_equal(again.predict(frame), wanted)
    columns = {name: DATA[name] for name in ("x", "t", "w")}
    stream = tf.data.Dataset.from_tensor_slices(columns).batch(50)
    np.testing.assert_allclose(again.predict(stream), wanted, atol=1e-5)
    fitted.export(tmp_path / "served")
    served = tf.saved_model.load(tmp_path / "served")
    given = {name: tf.constant(own) for name, own in columns.items()}
    found = served.signatures["serving_default"](**given)
    np.testing.assert_allclose(np.ravel(found["response"]), wanted, atol=1e-5)


def test_a_clone_with_other_weights_is_read_with_them() -> None:
    model = with_random_weights(keras.models.clone_model(model_of()))
    (_, curve) = ak.effects(model)
    sums, layer = model.design.terms[1].weight_function, model.get_layer("s_t_w")
    wanted = model.scale * sums.functions(curve.grid[0]) @ layer.coordinates()
    np.testing.assert_allclose(curve.fit, wanted, rtol=1e-5)
    assert np.abs(curve.fit).max() > 0


def test_points_of_weight_0_do_not_count() -> None:
    """Rows of different lengths are filled up with any number."""
    padded = {**DATA, "t": DATA["t"].copy(), "w": DATA["w"].copy()}
    padded["w"][:40, 10:] = 0.0
    filled = {**padded, "t": padded["t"].copy()}
    filled["t"][:40, 10:] = -1e6
    first, second = (ak.AdditiveModel("y ~ s(t, by=w, k=8)", own) for own in (padded, filled))
    np.testing.assert_allclose(
        first.design.terms[0].weight_function.basis.axis,
        second.design.terms[0].weight_function.basis.axis,
        atol=0.05,
    )
    second.fit(filled, verbose=0)
    second.predict(filled)  # warns of nothing


def test_points_outside_are_clipped_with_a_warning(fitted: ak.AdditiveModel) -> None:
    far = {**DATA, "t": DATA["t"] + 0.5}
    with pytest.warns(ak.AhofmWarning, match=r"`t` in 120 of 120 rows \(\[0, 1\]\)"):
        found = fitted.predict(far)
    np.testing.assert_allclose(found, fitted.predict({**DATA, "t": np.minimum(far["t"], 1)}), atol=1e-5)
    strict = model_of("y ~ x + s(t, by=w, sp=1)", extrapolation="error")
    strict.fit(DATA, solver="bcd", verbose=0)
    with pytest.raises(ak.DataError, match="Values outside the training range: `t`"):
        strict.predict(far)
    stream = tf.data.Dataset.from_tensor_slices({name: far[name] for name in ("x", "t", "w")}).batch(50)
    with pytest.raises(ak.DataError, match=r"outside the training range: `t` \(\[0, 1\]\)"):
        strict.predict(stream)


def test_two_terms_of_one_axis_are_told_apart_by_their_weights() -> None:
    data = {**DATA, "v": DATA["w"][::-1]}
    model = ak.AdditiveModel("y ~ s(t, by=w, k=6, id=1) + s(t, by=v, k=6, id=1)", data)
    model.fit(data, verbose=0)
    with pytest.raises(ak.DataError, match="`t` has the weights `w`, `v`: choose one by `by=`"):
        ak.effect(model, "t")
    assert ak.effect(model, "t", by="v").label == "s(t):v"
    with pytest.raises(ak.DataError, match="Received: by='x'"):
        ak.effect(model, "t", by="x")
    with pytest.raises(ak.DataError, match="`t` holds arrays, whose effect stands alone"):
        ak.effect(model, "t", "w")
    with pytest.raises(ak.DataError, match="no feature `q`"):
        ak.effect(model, "q")
    lambdas = ak.summary(model).terms["lambda_max"]
    assert lambdas.iloc[0] == pytest.approx(lambdas.iloc[1])


def test_a_fit_begins_at_another_only_where_the_functions_are_the_same(fitted: ak.AdditiveModel) -> None:
    same = model_of("y ~ s(t, by=w, k=8)")
    same.fit(DATA, init_from=fitted, verbose=0)
    fresh = model_of("y ~ s(t, by=w, k=8)")
    fresh.fit(DATA, verbose=0)
    np.testing.assert_allclose(same.predict(DATA), fresh.predict(DATA), atol=0.02)
    other = make_data(seed=1)
    model = ak.AdditiveModel("y ~ s(t, by=w, k=8)", other)
    with pytest.warns(ak.AhofmWarning, match="`s.t.:w` starts as it would without it: its functions"):
        model.fit(other, init_from=fitted, verbose=0)


def test_every_parameter_may_have_one() -> None:
    model = ak.AdditiveModel({"loc": "y ~ s(t, by=w, k=6)", "scale": "~ s(t, k=6) + s(x, k=6)"}, {
        **DATA, "t": np.random.default_rng(0).uniform(size=(120, 15)),
    })  # fmt: skip
    labels = [[t.label for t in own.terms] for own in model.design.predictors.values()]
    assert labels == [["s(t):w"], ["s(t)", "s(x)"]]


def test_pictures_show_the_function_with_its_band(fitted: ak.AdditiveModel) -> None:
    axes = ak.plot(fitted)
    assert set(axes) == {"x", "s(t):w"}
    ak.plot(fitted, "t")
    with pytest.raises(ak.DataError, match="one value per row"):
        ak.plot(fitted, "t", residuals=True)


def test_a_report_holds_it_at_its_average(fitted: ak.AdditiveModel, tmp_path: Path) -> None:
    ak.report(fitted, tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text()
    assert "the functional s(t):w adds, which this page holds at its average" in text


def test_a_report_of_nothing_else_has_nothing_to_show(tmp_path: Path) -> None:
    model = model_of("y ~ s(t, by=w, sp=1)")
    model.fit(DATA, solver="bcd", verbose=0)
    with pytest.raises(ak.DataError, match=r"no terms of features, only some .* at their average"):
        ak.report(model, tmp_path / "r.html")


def changed(**columns: Any) -> dict[str, Any]:
    return {**DATA, **columns}


SHORT, MISSING = DATA["w"][:, :9], np.where(DATA["w"] > 2.5, np.nan, DATA["w"])
BAD = {
    "other shapes": ("s(t, by=w)", changed(w=SHORT), "a weight for each point: .* `t` .* .15,., .* .9,.",
                     ak.DataError),
    "missing": ("s(t, by=w)", changed(w=MISSING), "`w` have missing or infinite values in", ak.DataError),
    "ragged": ("s(t, by=w)", changed(w=[*DATA["w"][1:], SHORT[0]]), "`w` must have one shape: .* row 119",
               ak.DataError),
    "weights alone": ("s(x, by=w)", DATA, "`w` holds arrays of weights, but `x` one value", ak.FormulaError),
    "points alone": ("s(t, by=x)", DATA, "`t` holds arrays of points, but `x` one value", ak.FormulaError),
    "images": ("s(t, by=w)", changed(t=np.ones((120, 5, 3)), w=np.ones((120, 5, 3))), "a vector per row",
               ak.DataError),
    "no weight": ("s(t, by=w)", changed(w=np.zeros((120, 15))), "All weights of `w` are 0", ak.DataError),
    "one point": ("s(t, by=w)", changed(t=np.ones((120, 15))), "`t` is constant", ak.DataError),
    "equal rows": ("s(t, by=w)", changed(w=np.ones((120, 15))), "the same in all rows", ak.DataError),
    "shape": ("s(t, shape='increasing')", DATA, "`shape` has no meaning for the arrays", ak.FormulaError),
    "basis": ("s(t, bs='tp')", DATA, "`bs` of a smooth of arrays is one of", ak.FormulaError),
    "category": ("s(t, x, bs='fs')", DATA, "`t` holds arrays, which stand alone", ak.FormulaError),
    "df": ("s(t, by=w, df=50)", DATA, "`df` of `s.t.:w` must lie above 2", ak.FormulaError),
    "surface": ("te(t, x)", DATA, "`t` must have one dimension, has 2", ak.DataError),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_meant_is_said(name: str) -> None:
    formula, data, message, kind = BAD[name]
    with pytest.raises(kind, match=message):
        ak.AdditiveModel(f"y ~ {formula}", data)


def test_new_rows_have_as_many_points(fitted: ak.AdditiveModel) -> None:
    with pytest.raises(ak.DataError, match=r"`t` must have the shape \(15,\), as in training"):
        fitted.predict(changed(t=DATA["t"][:, :9], w=SHORT))
    with pytest.raises(ak.DataError, match="Column `w` is missing"):
        fitted.predict({"t": DATA["t"], "x": DATA["x"]})
