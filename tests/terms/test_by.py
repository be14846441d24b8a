"""Terms that are multiplied: against mgcv, against dense algebra, and from the formula to the file."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

import ahofm_keras as ak
from ahofm_keras.bases import evaluate_basis
from ahofm_keras.decomposition import Parts
from ahofm_keras.decomposition.read_rows import functions_on
from ahofm_keras.terms.by_features import contrasts
from tests.model.careless import with_random_weights
from tests.terms.common import fit

FIXTURES = Path(__file__).parent.parent / "fixtures"
MGCV = {
    "number": "s(x, by=z, {0}, sp={sp[0]})",
    "category": "g + s(x, by=g, {0}, sp={sp[0]})",
    "ordered": "o + s(x, {0}, sp={sp[0]}) + s(x, by=o, {0}, sp={sp[1]})",
    "fs": "s(x, g, bs='fs', {0}, sp=({sp[0]}, {sp[1]}, {sp[2]}))",
    "sz": "s(x, {0}, sp={sp[0]}) + s(g, x, bs='sz', {0}, sp={sp[1]})",
    "slopes": "g + s(g, x, bs='re', sp={sp[0]})",
}


@pytest.fixture(scope="module")
def stored() -> tuple[pd.DataFrame, dict[str, Any]]:
    data = pd.read_csv(FIXTURES / "mgcv_by.csv")
    data["o"] = pd.Categorical(data.g, ordered=True)
    return data, json.loads((FIXTURES / "mgcv_by.json").read_text())


@pytest.mark.parametrize("name", MGCV)
def test_fits_equal_mgcvs(name: str, stored: tuple[pd.DataFrame, dict[str, Any]]) -> None:
    data, known = stored
    result = known["fits"][name]
    basis = f"k={known['k']}, knots=({float(data.x.min())!r}, {float(data.x.max())!r})"
    model = ak.AdditiveModel("y ~ " + MGCV[name].format(basis, sp=result["lambda"]), data)
    model.fit(data, solver="bcd", verbose=0)
    np.testing.assert_allclose(model.predict(data), data[name], rtol=0, atol=1e-5)
    edf = float(np.asarray(model.posterior.linear_edf).sum())
    assert edf == pytest.approx(result["edf"], abs=1e-4)


# From the formula to terms

LEVELS = {
    "g + s(x, by=g)": ["s(x):g[a]", "s(x):g[b]", "s(x):g[c]", "s(x):g[d]"],
    "g + s(x, by=g, reference='b')": ["s(x):g[a]", "s(x):g[c]", "s(x):g[d]"],
    "flag + s(x, by=flag)": ["s(x):flag[False]", "s(x):flag[True]"],
    "flag + s(x, by=flag, reference=False)": ["s(x):flag[True]"],
    "flag + ti(x, z, by=flag, k=4)": ["ti(x, z):flag[False]", "ti(x, z):flag[True]"],
    "C(d3) + s(x, by=C(d3))": ["s(x):C(d3)[0.0]", "s(x):C(d3)[1.0]", "s(x):C(d3)[2.0]"],
    "s(x, by=log(z)) + s(w, by=z)": ["s(x):log(z)", "s(w):z"],
    "s(x, g, bs='fs') + s(g, w, bs='sz')": ["s(x, g)", "s(g, w)"],
    "z + (1 + x | g)": ["s(g)", "s(g, x)"],
}


@pytest.mark.parametrize("formula", LEVELS)
def test_a_term_stands_for_these(formula: str) -> None:
    labels = [term.label for term in fit(formula).terms]
    assert labels[len(labels) - len(LEVELS[formula]) :] == LEVELS[formula]


def test_an_ordered_category_has_differences_to_its_first_level() -> None:
    data = pd.DataFrame({"x": np.linspace(0, 1, 90), "o": ["low", "high", "mid"] * 30, "y": 0.0})
    data["o"] = pd.Categorical(data.o, ["low", "mid", "high"], ordered=True)
    data["y"] = np.random.default_rng(0).normal(size=90)
    found = ak.AdditiveModel("y ~ o + s(x) + s(x, by=o)", data)
    assert [term.label for term in found.design.terms][2:] == ["s(x):o[mid]", "s(x):o[high]"]
    all_levels = ak.AdditiveModel("y ~ o + s(x, by=o, reference=False)", data)
    assert len(all_levels.design.terms) == 4


def test_the_main_effect_of_a_number_stands_once() -> None:
    """A varying coefficient is not centred, unless another term has its mean already."""
    alone, beside = fit("s(x, by=z) + s(w, by=z)"), fit("z + s(x, by=z)")
    assert [term.constant for term in alone.terms] == [True, False]
    assert not beside.terms[1].constant
    assert fit("te(x, w, by=z, k=4)").terms[0].constant
    assert not fit("ti(x, w, by=z, k=4)").terms[0].constant
    assert not fit("s(x, by=z, pc=0.5)").terms[0].constant


def test_degrees_of_freedom_are_those_of_the_rows_that_a_curve_has() -> None:
    """lambda of a level with a fifth of the rows is a fifth of that of all rows, if not given."""
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"x": rng.uniform(size=500), "g": np.repeat(list("abbbb"), 100)})
    data["y"] = rng.normal(size=500)
    model = ak.AdditiveModel("y ~ g + s(x, k=20) + s(x, by=g, k=20)", data)
    smooth, first, second = model.design.terms[1:]
    assert first.smoothing[0] == pytest.approx(smooth.smoothing / 5)
    assert second.smoothing[0] == pytest.approx(smooth.smoothing * 4 / 5)
    given = ak.AdditiveModel("y ~ g + s(x, by=g, sp=2)", data)
    assert [term.smoothing for term in given.design.terms[1:]] == [(2.0,), (2.0,)]


def test_contrasts_are_orthonormal_and_sum_to_zero() -> None:
    for count in (2, 3, 7):
        found = contrasts(count)
        np.testing.assert_allclose(found.T @ found, np.eye(count - 1), atol=1e-12)
        np.testing.assert_allclose(found.sum(axis=0), 0, atol=1e-12)


BAD = {
    "s(x, by=same)": (ak.DataError, "`same` is constant"),
    "s(x, by=Q('same text'))": (ak.FormulaError, "has one level in the data"),
    "s(x, by=z, reference='a')": (ak.FormulaError, "is a level of a category, and `z` holds numbers"),
    "g + s(x, by=g, reference='q')": (ak.FormulaError, r"a level of `g`: 'a', 'b', 'c', 'd'"),
    "s(x, z, bs='fs')": (ak.FormulaError, "needs a number and a category.\n    Received: two numbers"),
    "s(g, two, bs='sz')": (ak.FormulaError, "Received: two categories"),
    "s(x, g, bs='fs', sp=(1, 2))": (ak.FormulaError, "needs one number, or 3"),
    "s(x, id=1) + te(x, z, id=1)": (ak.FormulaError, "has 1 smoothing parameter, .* 2 smoothing par"),
    "s(x, id=1) + s(g, id=1)": (
        ak.FormulaError,
        "1 smoothing parameter, `s.g.` 1 smoothing parameter of",
    ),
    "s(x, id=1) + s(z, id=1, sp=2)": (ak.FormulaError, "`sp` of `s.z.` is not that of `s.x.`"),
    "s(x, id=1, df=4) + s(z, id=1, df=9)": (ak.FormulaError, "`df` of `s.z.` is not that of `s.x.`"),
    "g + s(g, by=g)": (ak.FormulaError, "one of its own features"),
}


@pytest.mark.parametrize("formula", BAD)
def test_what_cannot_be_meant_is_said(formula: str) -> None:
    kind, message = BAD[formula]
    with pytest.raises(kind, match=message):
        fit(formula)


def test_curves_without_means_of_their_levels_are_told() -> None:
    with pytest.warns(
        ak.AhofmWarning, match=r"no term has the means of the levels: add `g` or `s\(g\)`"
    ):
        fit("s(x, by=g)")


# Fits


@pytest.fixture(scope="module")
def data() -> pd.DataFrame:
    rng = np.random.default_rng(7)
    frame = pd.DataFrame({"x": rng.uniform(size=300), "z": rng.normal(1, 1, 300)})
    frame["g"] = rng.choice(["a", "b", "c"], 300, p=[0.5, 0.3, 0.2])
    curve = frame.g.map({"a": 1.0, "b": -1.0, "c": 0.4}).to_numpy()
    frame["y"] = curve * (1 + np.sin(6 * frame.x)) + frame.z * np.cos(3 * frame.x)
    frame["y"] += 0.3 * rng.normal(size=300)
    return frame


FORMULA = "y ~ g + s(x, by=g, k=8) + s(x, by=z, k=7)"


def test_a_level_without_weight_has_no_curve(data: pd.DataFrame) -> None:
    """Nothing is left for its smoothing to be integrated over."""
    weights = (data.g != "a").astype(float)
    model = ak.AdditiveModel("y ~ g + s(x, by=g, k=8)", data)
    model.fit(data, sample_weight=weights, restarts=0, verbose=0)
    terms = ak.summary(model).terms
    assert terms.edf["s(x):g[a]"] < 0.01 < terms.edf["s(x):g[b]"]
    assert np.isfinite(model.predict(data, interval=0.9)).all(axis=None)


@pytest.fixture(scope="module")
def fitted(data: pd.DataFrame) -> ak.AdditiveModel:
    model = ak.AdditiveModel(FORMULA, data)
    model.fit(data, verbose=0)
    return model


@pytest.fixture(scope="module")
def curves(data: pd.DataFrame) -> ak.AdditiveModel:
    model = ak.AdditiveModel("y ~ s(x, g, bs='fs', k=8) + s(g, z, bs='re')", data)
    model.fit(data, verbose=0)
    return model


EVERY = "y ~ z + g + s(x, by=g, k=6) + s(x, g, bs='sz', k=6) + s(z, g, bs='fs', k=5) + s(g, x, bs='re') \
 + te(x, z, by=g, k=4)"


def test_terms_and_parts_sum_to_the_link(data: pd.DataFrame) -> None:
    model = ak.AdditiveModel(EVERY, data)
    with_random_weights(model)
    link = np.asarray(model.predict(data, type="link"))
    terms = model.predict(data, type="terms")
    rest = link - terms.sum(axis=1)
    np.testing.assert_allclose(rest, rest.mean(), atol=1e-5 * link.std())


def test_parts_of_curves_sum_to_the_link(
    fitted: ak.AdditiveModel, curves: ak.AdditiveModel, data: pd.DataFrame
) -> None:
    for model in (fitted, curves):
        parts, link = Parts(model), np.asarray(model.predict(data, type="link"))
        functions = functions_on(parts, model.read_inputs(data))
        np.testing.assert_allclose(parts.link(functions), link, atol=1e-5 * link.std())
        found = ak.explain(model, data.iloc[[5]])
        assert found.link == pytest.approx(link[5], abs=1e-5 * link.std())


def dense(model: ak.AdditiveModel, data: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Of FORMULA by hand: columns, and what a unit of each term's own lambda adds to the precisions."""
    level = {name: (data.g == name).to_numpy(float)[:, None] for name in "abc"}
    columns, penalties = [np.ones((len(data), 1)), level["b"], level["c"]], [np.zeros(3)]
    for term in model.design.terms[1:]:
        feature = model.design.features[term.inner.feature]
        smooth = evaluate_basis(feature.basis, data.x.to_numpy()) @ feature.transform
        precisions = len(data) * term.smoothing[0] * feature.eigenvalues
        if term.label == "s(x):z":
            z = data[["z"]].to_numpy()
            columns += [z, z * smooth]
            penalties.append(np.append(0.0, precisions))
        else:
            columns.append(level[term.label[-2]] * smooth)
            penalties.append(precisions)
    return np.concatenate(columns, axis=1), np.concatenate(penalties)


def test_standard_errors_are_those_of_dense_algebra(data: pd.DataFrame) -> None:
    """Of predictions, of the curve of a level, and of a slope."""
    formula = "y ~ g + s(x, by=g, k=8, sp=0.01) + s(x, by=z, k=7, sp=0.02)"
    model = ak.AdditiveModel(formula, data)
    model.fit(data, solver="bcd", verbose=0)
    X, penalty = dense(model, data)
    A = X.T @ X + np.diag(penalty)
    beta = np.linalg.solve(A, X.T @ data.y.to_numpy())
    dispersion = float(model.posterior.dispersion) * model.scale**2
    covariance = dispersion * np.linalg.inv(A)
    link = model.predict(data, type="link", interval=0.9)
    np.testing.assert_allclose(link["link"], X @ beta, atol=1e-5)
    errors = np.sqrt(np.einsum("nq,qr,nr->n", X, covariance, X))
    np.testing.assert_allclose(link["se"], errors, rtol=1e-5)
    x = np.array([0.1, 0.4, 0.8])
    at = pd.DataFrame({"x": np.tile(x, 2), "z": np.repeat([2.0, 1.0], 3), "g": "a"})
    rows = dense(model, at)[0]
    slope = rows[:3] - rows[3:]
    found = ak.effect(model, "x", by="z", at={"x": x})
    np.testing.assert_allclose(found.fit, slope @ beta, atol=1e-5)
    np.testing.assert_allclose(
        found.se, np.sqrt(np.einsum("nq,qr,nr->n", slope, covariance, slope)), rtol=1e-5
    )
    # The curve of a level is that of its term, and what z adds at its mean, less their means.
    own = dense(model, at.assign(z=float(data.z.mean())))[0][:3]
    mean = dense(model, data.assign(z=float(data.z.mean()), g="a"))[0].mean(axis=0)
    curve = own - mean
    found = ak.effect(model, "x", by="g", at={"x": x, "g": ["a"]})
    np.testing.assert_allclose(found.fit[:, 0], curve @ beta, atol=1e-5)
    np.testing.assert_allclose(
        found.se[:, 0], np.sqrt(np.einsum("nq,qr,nr->n", curve, covariance, curve)), rtol=1e-5
    )


def test_the_penalty_of_the_layer_is_that_of_the_solvers(data: pd.DataFrame) -> None:
    model = ak.AdditiveModel("y ~ s(x, g, bs='fs', k=6) + s(x, by=z, k=6)", data)
    with_random_weights(model)
    for span in model.design.layout.only.penalised:
        layer = model.get_layer(span.term.name)
        precisions = len(data) * np.asarray(span.block.smoothing) @ span.block.penalties
        wanted = 0.5 * precisions @ layer.coordinates() ** 2 / len(data)
        np.testing.assert_allclose(float(sum(layer.losses)), wanted, rtol=1e-4)


def test_variational_fits_find_each_level(fitted: ak.AdditiveModel, data: pd.DataFrame) -> None:
    assert fitted.fit_result.converged
    truth = data.assign(
        f=data.g.map({"a": 1.0, "b": -1.0, "c": 0.4}) * (1 + np.sin(6 * data.x))
        + data.z * np.cos(3 * data.x)
    ).f
    assert np.sqrt(np.mean((fitted.predict(data) - truth) ** 2)) < 0.12  # the noise has 0.3
    table = ak.summary(fitted).terms
    assert list(table.index[1:]) == ["s(x):g[a]", "s(x):g[b]", "s(x):g[c]", "s(x):z"]
    assert (table.p_value[["s(x):g[a]", "s(x):g[b]", "s(x):z"]] < 1e-6).all()


def test_shared_smoothing_is_the_same(data: pd.DataFrame, tmp_path: Path) -> None:
    model = ak.AdditiveModel("y ~ g + s(x, by=g, k=8, id=1) + s(z, k=8)", data)
    model.fit(data, verbose=0)
    found = ak.summary(model).terms["lambda_max"]
    assert found["s(x):g[a]"] == found["s(x):g[b]"] == found["s(x):g[c]"] != found["s(z)"]
    # Coming back to its posterior ends where it was.
    before = np.asarray(model.predict(data))
    model.fit(data, verbose=0)
    np.testing.assert_allclose(model.predict(data), before, atol=2e-2)
    model.save(tmp_path / "tied.keras")
    loaded = ak.load_model(tmp_path / "tied.keras")
    assert loaded.design.only.ties == (("s_x_g_a", "s_x_g_b", "s_x_g_c"),)


def test_one_smoothing_of_equal_curves_is_that_of_each() -> None:
    """Three copies of the same rows: what each level asks for alone, all ask for together."""
    rng = np.random.default_rng(0)
    x = rng.uniform(size=100)
    y = np.sin(6 * x) + 0.3 * rng.normal(size=100)
    data = pd.DataFrame({"x": np.tile(x, 3), "y": np.tile(y, 3), "g": np.repeat(list("abc"), 100)})
    reached = []
    for option in ("", ", id='all'"):
        model = ak.AdditiveModel(f"y ~ g + s(x, by=g, k=10{option})", data)
        model.fit(data, verbose=0)
        reached.append(ak.summary(model).terms["lambda_max"].dropna())
    np.testing.assert_allclose(reached[0], reached[0].iloc[0], rtol=1e-2)
    np.testing.assert_allclose(reached[1], reached[0], rtol=2e-2)


# Levels that were not seen


def test_an_unseen_level_has_no_curve(fitted: ak.AdditiveModel, data: pd.DataFrame) -> None:
    with pytest.warns(ak.AhofmWarning, match="curve"):
        found = fitted.predict(data.assign(g="new")[:5], type="terms")
    assert not found[["s(x):g[a]", "s(x):g[b]", "s(x):g[c]"]].to_numpy().any()


def test_a_new_curve_has_the_variance_of_its_prior(curves: ak.AdditiveModel, data: pd.DataFrame) -> None:
    at = data.iloc[:4].assign(g="new")
    with pytest.warns(ak.AhofmWarning, match="not seen"):
        found = curves.predict(at, type="link", interval=0.9)
    smooth, _ = curves.design.layout.only.penalised
    smoothing = np.exp(np.asarray(curves.posterior.linear_smoothing))
    dispersion = float(curves.posterior.dispersion)
    feature = curves.design.features[smooth.term.inner.feature]
    u = evaluate_basis(feature.basis, at.x.to_numpy()) @ feature.transform
    curve = np.column_stack([np.ones(len(at)), u])
    unit = 3.0  # a level's share of the squares of three
    ridge = np.zeros((3, curve.shape[1]))
    ridge[0, 1:] = feature.eigenvalues
    (line,) = np.flatnonzero(feature.eigenvalues == 0)
    ridge[1, 0] = ridge[2, 1 + line] = 1 / len(data)
    precisions = unit * smoothing[0, :3] @ ridge + smoothing[0, -1]
    wanted = dispersion * unit * (curve**2 / precisions).sum(axis=1)
    size = float(np.mean(data.z**2))
    slope = unit * smoothing[1, 0] / (len(data) * size) + smoothing[1, -1]
    wanted += dispersion * unit * at.z.to_numpy() ** 2 / size / slope
    intercept = np.asarray(curves.posterior.linear_roots)[0]
    total = curves.scale**2 * (wanted + intercept @ intercept)
    np.testing.assert_allclose(found["se"] ** 2, total, rtol=1e-5)


# Files and readers


def test_files_and_exports_predict_the_same(
    fitted: ak.AdditiveModel, curves: ak.AdditiveModel, data: pd.DataFrame, tmp_path: Path
) -> None:
    for name, model in {"by": fitted, "fs": curves}.items():
        model.save(tmp_path / f"{name}.keras")
        loaded = keras.models.load_model(tmp_path / f"{name}.keras")
        pd.testing.assert_frame_equal(
            loaded.predict(data, interval=0.9), model.predict(data, interval=0.9)
        )
        model.export(tmp_path / name)
        served = tf.saved_model.load(str(tmp_path / name))
        inputs = {
            column: tf.constant(data[column].tolist(), "string" if kind == "text" else "float64")
            for column, kind in model.design.columns.items()
        }
        spread = served.signatures["uncertainty"](**inputs)
        wanted = model.predict(data, type="link", interval=0.9)
        np.testing.assert_allclose(spread["link"], wanted["link"], rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(spread["link_se"], wanted["se"], rtol=1e-4)


def test_adam_learns_the_same_curves(data: pd.DataFrame) -> None:
    formula = "y ~ g + s(x, by=g, k=6, sp=0.05) + s(x, by=z, k=6, sp=0.05)"
    exact, learned = ak.AdditiveModel(formula, data), ak.AdditiveModel(formula, data)
    exact.fit(data, solver="bcd", verbose=0)
    learned.compile(optimizer=keras.optimizers.SGD(0.5, momentum=0.9))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The fit reached its last epoch", ak.AhofmWarning)
        learned.fit(
            data, solver="adam", epochs=300, batch_size=len(data), validation_split=0.0, verbose=0,
            callbacks=[keras.callbacks.LearningRateScheduler(lambda epoch: 0.5)],
        )  # fmt: skip
    gap = np.abs(np.asarray(learned.predict(data)) - np.asarray(exact.predict(data))).max()
    assert gap < 1e-2 * float(data.y.std())


def test_effects_by_a_category_are_differences_of_predictions(
    curves: ak.AdditiveModel, data: pd.DataFrame
) -> None:
    x = np.linspace(data.x.min(), data.x.max(), 7)
    found = ak.effect(curves, "x", by="g", at={"x": x})
    assert (found.features, found.label) == (("x", "g"), "x by g")
    for place, level in enumerate("abc"):
        at = pd.DataFrame({"x": x, "z": 0.3, "g": level})
        link = np.asarray(curves.predict(at, type="link"))
        np.testing.assert_allclose(np.diff(found.fit[:, place]), np.diff(link), atol=1e-5)
    with pytest.raises(ak.DataError, match="is not linear in the model"):
        ak.effect(curves, "g", by="x")
    with pytest.raises(ak.DataError, match="Name the features"):
        ak.effect(curves, by="g")
    with pytest.raises(ak.DataError, match="use one of the two"):
        ak.effect(curves, "x", by="g", purify=True)


def test_a_slope_without_a_mean_of_its_own_goes_through_its_point(data: pd.DataFrame) -> None:
    model = ak.AdditiveModel("y ~ g + s(x, by=z, k=7, pc=0.5)", data)
    model.fit(data, verbose=0)
    found = ak.effect(model, "x", by="z", at={"x": [0.5, 0.9]})
    assert abs(found.fit[0]) < 1e-6 < abs(found.fit[1])
    np.testing.assert_allclose(found.se[0], 0, atol=1e-6)


def test_checks_and_pictures_know_the_curves(fitted: ak.AdditiveModel, data: pd.DataFrame) -> None:
    axes = ak.plot(fitted, "x", by="g")
    assert axes.get_legend().get_title().get_text() == "g"
    assert "per unit of z" in ak.plot(fitted, "x", by="z").get_ylabel()
    frame = ak.check(fitted).basis
    assert list(frame.basis) == ["x"] * len(frame)
    assert not frame.verdict.str.contains("only interacts").any()
    assert len(ak.summary(fitted).terms) == 5
    assert set(ak.coef(fitted).index) >= {"s(x):z.constant", "s(x):g[a].1"}
