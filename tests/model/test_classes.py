"""Models of classes: fits, labels in and out, files, exports, what is refused."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

import ahofm_keras as ak
from ahofm_keras.errors import AhofmWarning, DataError

LABELS = np.array(["ant", "bee/x", "été"], dtype=object)


def linear_data(rows: int = 300) -> pd.DataFrame:
    """Two linear effects on every class `k` and on ratings `r`."""
    rng = np.random.default_rng(4)
    x, z = rng.normal(size=(2, rows))
    eta = np.stack([0 * x, 0.5 + x, -0.3 - 0.8 * x + 1.2 * z], axis=1)
    u = rng.uniform(size=rows)
    p = np.exp(eta)
    p /= p.sum(1, keepdims=True)
    k = (u[:, None] > p.cumsum(1)).sum(1)
    logit = rng.logistic(size=rows)
    r = ((0.4 + 0.9 * x - 0.6 * z + logit)[:, None] > np.array([0.0, 1.0, 2.5])).sum(1)
    return pd.DataFrame(
        {"x": x, "z": z, "y": LABELS[k], "r": r + 1, **dict(zip("abc", p.T, strict=True))}
    )


@pytest.fixture(scope="module")
def data() -> pd.DataFrame:
    return linear_data()


@pytest.fixture(scope="module")
def model(data: pd.DataFrame) -> ak.AdditiveModel:
    model = ak.AdditiveModel("y ~ x + z", data, family="categorical")
    model.fit(data, solver="bcd", verbose=0)
    return model


@pytest.fixture(scope="module")
def ratings(data: pd.DataFrame) -> ak.AdditiveModel:
    model = ak.AdditiveModel("r ~ x + z", data, family="ordinal")
    model.fit(data, solver="bcd", verbose=0)
    return model


# statsmodels 0.14, `const` being a column of ones:
# fit = sm.MNLogit(y, [const, x, z]).fit(method="newton"); fit.params.T, fit.llf
MNLOGIT = {"bee/x": [0.551512, 1.071895, -0.010177], "été": [-0.135906, -0.400948, 1.009565]}
MNLOGIT_LIKELIHOOD = -255.906084
# OrderedModel(r, [x, z], distr="logit").fit(method="bfgs", gtol=1e-9); its first threshold is -0.419456
ORDERED = {"loc": [0.419456, 0.924237, -0.606995], "width_2": 1.026864, "width_3": 1.541981}
ORDERED_LIKELIHOOD = -357.245647


@pytest.mark.parametrize("solver", ["bcd", "variational", "adam"])
def test_multinomial_coefficients_are_those_of_statsmodels(solver: str, data: pd.DataFrame) -> None:
    model = fitted("y ~ x + z", data, "categorical", solver)
    for name, wanted in MNLOGIT.items():
        np.testing.assert_allclose(coefficients(model, name), wanted, atol=NEAR[solver])
    assert model.fit_result.log_likelihood == pytest.approx(MNLOGIT_LIKELIHOOD, rel=1e-3)


@pytest.mark.parametrize("solver", ["bcd", "variational", "adam"])
def test_ordinal_coefficients_are_those_of_statsmodels(solver: str, data: pd.DataFrame) -> None:
    model = fitted("r ~ x + z", data, "ordinal", solver)
    np.testing.assert_allclose(coefficients(model, "loc"), ORDERED["loc"], atol=NEAR[solver])
    widths = model.predict(data[:1], type="parameters").iloc[0]
    for name in ("width_2", "width_3"):
        assert widths[name] == pytest.approx(ORDERED[name], abs=NEAR[solver])
    assert model.fit_result.log_likelihood == pytest.approx(ORDERED_LIKELIHOOD, rel=1e-3)


# Of a coefficient, whose standard errors are 0.13 to 0.2. Rounds over predictors end at 1e-5 per row, 0.003
# in all, a tenth of a standard error; mini-batches wander by more.
NEAR = {"bcd": 0.02, "variational": 0.05, "adam": 0.05}


def fitted(formula: str, data: pd.DataFrame, family: str, solver: str) -> ak.AdditiveModel:
    model = ak.AdditiveModel(formula, data, family=family)
    more = {"epochs": 250, "batch_size": 60, "validation_split": 0.0} if solver == "adam" else {}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The fit reached its last epoch")
        model.fit(data, solver=solver, verbose=0, **more)
    return model


def test_smooth_effects_of_every_class_are_found() -> None:
    rng = np.random.default_rng(2)
    data = pd.DataFrame({"x": rng.uniform(-1, 1, 1500)})
    eta = np.stack([0 * data.x, 2 * np.sin(3 * data.x), 2 - 4 * data.x**2], axis=1)
    truth = np.exp(eta) / np.exp(eta).sum(axis=1, keepdims=True)
    data["y"] = LABELS[(rng.uniform(size=1500)[:, None] > truth.cumsum(axis=1)).sum(axis=1)]
    model = ak.AdditiveModel("y ~ s(x)", data, family="categorical")
    model.fit(data, verbose=0)
    assert model.fit_result.solver == "variational"
    assert np.abs(model.predict(data).to_numpy() - truth).mean() < 0.03
    band = model.predict(data, interval=0.95)
    inside = [
        ((band[f"{own}_lower"] < truth[:, k]) & (truth[:, k] < band[f"{own}_upper"])).mean()
        for k, own in enumerate(LABELS)
    ]
    assert min(inside) > 0.7


def coefficients(model: Any, name: str) -> np.ndarray:
    """Intercept and slopes of a predictor, from three of its values."""
    at = pd.DataFrame({"x": [0.0, 1.0, 0.0], "z": [0.0, 0.0, 1.0]})
    eta = model.predict(at, type="link")[name].to_numpy()
    return np.array([eta[0], eta[1] - eta[0], eta[2] - eta[0]])


def test_probabilities_are_a_frame_of_the_classes(model: Any, data: pd.DataFrame) -> None:
    rows = data.iloc[5:9].set_index(pd.Index(list("wxyz")))
    found = model.predict(rows)
    assert list(found.columns) == list(LABELS)
    assert list(found.index) == list("wxyz")
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-12)
    eta = model.predict(rows, type="parameters")
    assert list(eta.columns) == ["bee/x", "été"]
    odds = np.exp(np.column_stack([np.zeros(4), eta]))
    np.testing.assert_allclose(found, odds / odds.sum(axis=1, keepdims=True), rtol=1e-12)
    labels = model.predict(rows, type="class")
    assert list(labels) == list(LABELS[found.to_numpy().argmax(axis=1)])
    band = model.predict(rows, interval=0.9)
    assert list(band.columns[:3]) == ["ant", "ant_lower", "ant_upper"]
    assert list(band.index) == list("wxyz")
    for own in LABELS:
        np.testing.assert_allclose(band[own], found[own], rtol=1e-12)
        assert (band[f"{own}_lower"] < band[own]).all()
        assert (band[own] < band[f"{own}_upper"]).all()


def test_the_distribution_takes_and_gives_labels(model: Any, ratings: Any, data: pd.DataFrame) -> None:
    predicted = model.predict(data[:3], type="distribution")
    chances = model.predict(data[:3])
    pd.testing.assert_frame_equal(predicted.probabilities(), chances)
    np.testing.assert_allclose(predicted.log_prob(["ant", "été", "ant"]),
                               np.log([chances.iat[0, 0], chances.iat[1, 2], chances.iat[2, 0]]))  # fmt: skip
    assert predicted.log_prob("ant").shape == (3,)
    assert set(predicted.sample(40, seed=0).ravel()) <= set(LABELS)
    for what in (
        lambda: predicted.cdf("ant"),
        lambda: predicted.quantile(0.5),
        lambda: predicted.crps("ant"),
    ):
        with pytest.raises(DataError, match="have no order"):
            what()
    with pytest.raises(DataError, match="Classes have no mean"):
        predicted.mean()
    with pytest.raises(DataError, match="have no order"):
        model.predict(data[:3], type="quantile", q=0.5)
    rated = ratings.predict(data[:3], type="distribution")
    below = ratings.predict(data[:3]).to_numpy().cumsum(axis=1)
    np.testing.assert_allclose(rated.cdf(2), below[:, 1], rtol=1e-12)
    assert rated.quantile(0.5).dtype.kind == "i"
    np.testing.assert_array_equal(rated.quantile(0.5), 1 + (below < 0.5).sum(axis=1))
    found = ratings.predict(data[:3], type="quantile", q=[0.01, 0.99])
    assert found.shape == (3, 2)
    assert (found[:, 0] <= rated.quantile(0.5)).all()
    assert (rated.quantile(0.5) <= found[:, 1]).all()


def test_labels_of_every_type_are_evaluated(model: Any, ratings: Any, data: pd.DataFrame) -> None:
    wanted = -np.log(model.predict(data).to_numpy()[np.arange(300), pd.factorize(data.y, sort=True)[0]])
    found = model.evaluate(data, return_dict=True)["deviance"]
    assert found == pytest.approx(2 * wanted.mean(), rel=1e-5)
    for y in (data.y.to_numpy(), list(data.y), data.y.astype("category")):
        assert model.evaluate(data.drop(columns="y"), y, return_dict=True)["deviance"] == pytest.approx(
            found
        )
    columns = {"x": data.x.to_numpy(), "z": data.z.to_numpy()}
    batches = tf.data.Dataset.from_tensor_slices((columns, list(data.y))).batch(100)
    assert model.evaluate(batches, return_dict=True)["deviance"] == pytest.approx(found, rel=1e-5)
    assert ratings.predict(data[:5], type="class").dtype.kind == "i"
    assert model.test_on_batch(columns, data.y, return_dict=True)["deviance"] == pytest.approx(
        found, rel=1e-5
    )


@pytest.mark.parametrize("which", ["model", "ratings"])
def test_files_clones_and_exports_know_the_classes(
    which: str, request: pytest.FixtureRequest, data: pd.DataFrame, tmp_path: Path
) -> None:
    model = request.getfixturevalue(which)
    wanted = model.predict(data)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.family == model.family
    pd.testing.assert_frame_equal(loaded.predict(data), wanted)
    assert list(loaded.predict(data, type="class")) == list(model.predict(data, type="class"))
    assert keras.models.clone_model(model).family == model.family
    model.export(tmp_path / "served")
    served = tf.saved_model.load(str(tmp_path / "served"))
    columns = {"x": tf.constant(data.x), "z": tf.constant(data.z)}
    found = {key: own.numpy() for key, own in served.signatures["serving_default"](**columns).items()}
    np.testing.assert_allclose(found["response"], wanted, rtol=1e-6)
    np.testing.assert_allclose(np.asarray(model(columns)), wanted, rtol=1e-5)
    labels = [own.decode() if isinstance(own, bytes) else own for own in found["class"]]
    assert labels == list(model.predict(data, type="class"))
    names = {"model": ["probability_ant", "bee_x"], "ratings": ["probability_1", "loc", "width_2"]}
    assert set(names[which]) <= set(found)
    np.testing.assert_allclose(found[names[which][0]], wanted.iloc[:, 0], rtol=1e-6)
    if which == "model":
        np.testing.assert_allclose(found["bee_x"], model.predict(data, type="link")["bee/x"], rtol=1e-6)


def test_a_class_may_be_called_as_an_output_is(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.uniform(size=120)})
    frame["y"] = rng.choice(["class", "grün", "grun", "link", "response", "年"], 120)
    model = ak.fit("y ~ x", frame, family="categorical", verbose=0)
    model.export(tmp_path / "served")
    signature = tf.saved_model.load(str(tmp_path / "served")).signatures["serving_default"]
    found = {key: own.numpy() for key, own in signature(x=tf.constant(frame.x)).items()}
    assert found["response"].shape == (120, 6)
    links, chances = model.predict(frame, type="link"), model.predict(frame)
    assert len(found) == 3 + len(chances.columns) + len(links.columns)
    np.testing.assert_allclose(found["parameter_response"], links["response"], rtol=1e-5)
    np.testing.assert_allclose(found["probability_u5e74"], chances["年"], rtol=1e-5)
    np.testing.assert_allclose(found["grun"], links["grun"], rtol=1e-5)


def test_what_predictors_of_classes_are_is_said(model: Any, ratings: Any, data: pd.DataFrame) -> None:
    assert "classes ant, bee/x, été" in str(ak.summary(model))
    assert "--- été (log-odds against ant) ---" in str(ak.summary(model))
    assert " < " in str(ak.summary(ratings)).splitlines()[0]
    found = ak.explain(model, data[:1], parameter="été")
    assert found.headline.startswith("log-odds of été against ant: predicted")


def test_formulas_by_class(data: pd.DataFrame) -> None:
    given = {"logit": "y ~ x + z", "été": "~ z"}
    model = ak.AdditiveModel(given, data, family="categorical")
    terms = {name: [t.label for t in own.terms] for name, own in model.design.predictors.items()}
    assert terms == {"bee/x": ["x", "z"], "été": ["z"]}
    alone = ak.AdditiveModel({"été": "y ~ z"}, data, family="categorical")
    assert [len(own.terms) for own in alone.design.predictors.values()] == [0, 1]
    with pytest.raises(DataError, match=r"no parameter 'ete'.*It has: `bee/x`, `été`"):
        ak.AdditiveModel({"logit": "y ~ x", "ete": "~ z"}, data, family="categorical")
    with pytest.raises(DataError, match="Did you mean `bee/x`"):
        ak.AdditiveModel({"logit": "y ~ x", "bee x": "~ z"}, data, family="categorical")
    with pytest.raises(DataError, match="'ant' is the class that others are compared with"):
        ak.AdditiveModel({"logit": "y ~ x", "ant": "~ z"}, data, family="categorical")


def test_one_class_of_a_model_is_read(model: Any) -> None:
    view = model.parameter("bee/x")
    assert [own.label for own in view.effects()] == ["x", "z"]
    assert "x" in str(view.coef())


@pytest.mark.filterwarnings("ignore:The model was never fitted")
def test_names_of_classes_need_not_differ_as_names_of_layers(data: pd.DataFrame) -> None:
    y = np.array(["a", "b c", "b_c", "", "ü", "/"], dtype=object)[np.arange(300) % 6]
    model = ak.AdditiveModel("y ~ x", data.assign(y=y), family="categorical")
    assert model.predict(data[:2]).shape == (2, 6)
    assert [layer.name for layer in model.network.layers if layer.name.startswith("predictor")]


@pytest.mark.parametrize(("family", "wanted"), [("bernoulli", [0, 1]), ("categorical", [False, True])])
def test_two_classes(family: str, wanted: list[Any], data: pd.DataFrame) -> None:
    data = data.assign(b=data.r > 2)
    model = ak.AdditiveModel("b ~ x", data, family=family)
    model.fit(data, solver="bcd", verbose=0)
    labels = model.predict(data, type="class")
    assert sorted(set(labels.tolist())) == wanted
    mean = model.predict(data)
    mean = mean if family == "bernoulli" else mean[True]
    np.testing.assert_array_equal(labels.astype(bool), mean > 0.5)


def test_what_is_refused(model: Any, data: pd.DataFrame) -> None:
    new = data.assign(y=["emu", *data.y[1:]])
    for ask in (lambda: model.evaluate(new), lambda: model.fit(new, verbose=0)):
        with pytest.raises(DataError, match=r"1 of 300 values .* none of the classes: 'emu' \(1, first"):
            ask()
    columns = {"x": data.x.to_numpy(), "z": data.z.to_numpy()}
    batches = tf.data.Dataset.from_tensor_slices((columns, list(new.y))).batch(100)
    with pytest.raises(DataError, match="none of the classes: 'emu'"):
        model.evaluate(batches)
    missing = data.assign(y=[None, *data.y[1:]])
    with pytest.raises(DataError, match="Column `y` has 1 missing value, first at row 0"):
        ak.AdditiveModel("y ~ x", missing, family="categorical")
    with pytest.raises(DataError, match=r"two classes as 0 and 1; or take `family=.categorical."):
        ak.AdditiveModel("y ~ x", data, family="bernoulli")
    with pytest.raises(DataError, match="texts without an order"):
        ak.AdditiveModel("y ~ x", data, family="ordinal")
    with pytest.raises(DataError, match="hardly classes"):
        ak.AdditiveModel("x ~ z", data, family="categorical")
    with pytest.raises(DataError, match="learns its classes from the response, and the data has no `y`"):
        ak.AdditiveModel("y ~ x", data.drop(columns="y"), family="categorical")
    gaussian = ak.AdditiveModel("x ~ z", data)
    with pytest.raises(DataError, match=r'This model is gaussian; type="response" is its mean'):
        gaussian.predict(data, type="class")


def test_a_class_without_training_rows_is_told(data: pd.DataFrame) -> None:
    family = ak.families.Categorical(classes=["ant", "bee/x", "été", "emu"])
    model = ak.AdditiveModel("y ~ x", data, family=family)
    with pytest.warns(AhofmWarning, match="no training row of that class: 'emu'"):
        model.fit(data, solver="bcd", verbose=0)
    assert model.predict(data)["emu"].max() < 0.01
    with pytest.raises(DataError, match="one class only, 'ant'"):
        model.fit(data[data.y == "ant"], verbose=0)
