"""`refine`: what becomes exact, what is carried over, and whether it comes nearer to the truth."""

from __future__ import annotations

import warnings
from pathlib import Path

import keras
import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from ahofm_keras.model import fit_result
from ahofm_keras.terms.tensor import TensorTerm
from tests.reference import terms_of

FORMULA = "y ~ z + ahofm(x1, x2, x3, x4, D=3, F=1, k=8) + offset(known)"


def surface(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Two hills, which one product of functions is not."""
    return 3 * np.exp(-((a - 0.3) ** 2 + (b - 0.3) ** 2) / 0.04) - 3 * np.exp(
        -((a - 0.7) ** 2 + (b - 0.6) ** 2) / 0.03
    )


@pytest.fixture(scope="module")
def data() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    data = pd.DataFrame(rng.uniform(size=(400, 6)), columns=["x1", "x2", "x3", "x4", "z", "known"])
    signal = np.sin(5 * data.x1) + 0.5 * data.z + surface(data.x2.to_numpy(), data.x3.to_numpy())
    data["y"] = 10 + signal + data.known + 0.3 * rng.normal(size=400)
    return data


@pytest.fixture(scope="module")
def screened(data: pd.DataFrame) -> ak.AdditiveModel:
    model = ak.AdditiveModel(FORMULA, data, extrapolation="linear", df_kind="H", seed=3, name="first")
    model.fit(data, verbose=0)
    return model


@pytest.fixture(scope="module")
def refined(screened: ak.AdditiveModel) -> ak.AdditiveModel:
    return ak.refine(screened, top=1, verbose=0)


def distance(model: ak.AdditiveModel) -> float:
    """From the true surface, less what single features explain of it."""
    found = ak.effect(model, "x2", "x3", points=30)
    true = surface(*np.meshgrid(*found.grid, indexing="ij"))
    both = [v - v.mean(0) - v.mean(1, keepdims=True) + v.mean() for v in (found.fit, true)]
    return float(np.sqrt(np.mean((both[0] - both[1]) ** 2)))


def test_the_true_pair_becomes_exact_and_comes_nearer_to_the_truth(
    screened: ak.AdditiveModel, refined: ak.AdditiveModel
) -> None:
    assert refined.formula == f"{FORMULA} + ti(x2, x3)"
    assert refined.is_fitted
    assert distance(refined) < 0.8 * distance(screened)
    terms = ak.summary(refined).terms
    assert terms.loc["ti(x2, x3)", "share"] > 0.1
    assert terms.loc[terms.kind == "interaction", "share"].sum() < 0.01, "nothing is there twice"


def test_settings_and_terms_are_carried_over(
    screened: ak.AdditiveModel, refined: ak.AdditiveModel
) -> None:
    for setting in ("family", "df_kind", "extrapolation", "seed", "name"):
        assert getattr(refined, setting) == getattr(screened, setting)
    assert [t.label for t in refined.design.terms[:-1]] == [t.label for t in screened.design.terms]
    assert refined.fit_result.solver == screened.fit_result.solver
    assert refined.fit_result.rows == 400


def test_effects_add_up_what_both_terms_have(refined: ak.AdditiveModel, data: pd.DataFrame) -> None:
    assert ak.interactions(refined)["label"][0] == "x2:x3"
    explained = ak.explain(refined, data.iloc[[0]])
    assert explained.link == pytest.approx(refined.predict(data[:1], type="link")[0], abs=1e-4)


def test_main_effects_of_functions_that_are_not_centred(data: pd.DataFrame) -> None:
    model = ak.AdditiveModel("y ~ ahofm(x1, x2, x3, D=2, F=2, center=False)", data)
    model.fit(data, restarts=0, verbose=0)
    alone = ak.refine(model, top=1, keep=False, fit=False)
    assert alone.formula.startswith("y ~ s(x1) + s(x2) + s(x3) + ti(")


def test_without_the_rest(screened: ak.AdditiveModel) -> None:
    alone = ak.refine(screened, top=1, keep=False, fit=False, k=5, df=9)
    mains = " + ".join(f"s(x{j}, k=8)" for j in (1, 2, 3, 4))
    assert alone.formula == f"y ~ z + {mains} + offset(known) + ti(x2, x3, k=5, df=9)"
    assert not alone.is_fitted
    [term] = terms_of(alone.design, TensorTerm)
    assert [alone.design.features[place].basis.size for place in term.features] == [5, 5]


def test_an_exact_interaction_is_not_refined_again(
    refined: ak.AdditiveModel, data: pd.DataFrame
) -> None:
    with pytest.raises(
        ak.DataError, match=r"no interaction to refine: of 6 interactions .*1 exact already"
    ):
        ak.refine(refined)


def random_weights(model: ak.AdditiveModel, data: pd.DataFrame) -> ak.AdditiveModel:
    rng = np.random.default_rng(0)
    for layer in model.fitted_layers():
        for weight in layer.trainable_weights:
            weight.assign(rng.normal(size=weight.shape))
    sample = fit_result.take_sample(model.read_inputs(data), data.y.to_numpy(), None, 0)
    model.keep_fit(fit_result.FitResult("bcd", 1, 0.0, True, (), rows=len(data)), sample)
    return model


@pytest.fixture(scope="module")
def odd(data: pd.DataFrame) -> ak.AdditiveModel:
    """Names that need quotes, an expression, categories, options of single features."""
    rng = np.random.default_rng(1)
    frame = data[["x1", "x2", "y"]].assign(
        **{"a b": data.x3, "w": data.x4, "site": rng.choice(list("abcdefghijkl"), 400)}
    )
    frame["digit"] = rng.integers(0, 12, 400).astype(float)
    formula = (
        "y ~ 0 + x1 + ahofm(Q('a b'), log(x2), site, C(digit), x1, D=3, F=2, df=(9, 6, 4), k={'a b': 12},"
        " knots={'a b': 'even'}) + te(x2, w)"
    )
    return random_weights(ak.AdditiveModel(formula, frame), frame)


def test_features_of_all_kinds(odd: ak.AdditiveModel) -> None:
    with pytest.warns(ak.AhofmWarning, match="20 interactions are refined, not 30"):
        found = ak.refine(odd, top=30, order=(3, 2), least=0, fit=False)
    exact = [t for t in terms_of(found.design, TensorTerm) if t.pure]
    assert len(exact) == 20
    labels = [term.label for term in exact]
    assert any('Q("a b")' in label and "C(digit)" in label for label in labels)
    ranking = pd.concat([ak.interactions(odd, order=d, top=None) for d in (2, 3)])
    best = ranking.sort_values("share", ascending=False)["label"].iloc[0]
    assert set(exact[0].label[3:-1].split(", ")) == {
        n if n != "digit" else "C(digit)" for n in best.split(":")
    }
    alone = ak.refine(odd, top=1, keep=False, fit=False)
    assert alone.formula.startswith(
        "y ~ 0 + x1 + s(Q(\"a b\"), k=12, knots='even', df=9) + s(log(x2), df=9) + s(site, df=9)"
        " + s(C(digit), df=9) + te(x2, w) + ti("
    )


def test_no_main_effects_are_made_up(data: pd.DataFrame) -> None:
    model = random_weights(ak.AdditiveModel("y ~ ahofm(x1, x2, main=False)", data), data)
    assert ak.refine(model, top=1, keep=False, fit=False).formula == "y ~ ti(x1, x2)"
    machine = random_weights(ak.AdditiveModel("y ~ x2 + fm(x1, x2, x3)", data), data)
    assert ak.refine(machine, top=1, keep=False, fit=False).formula.startswith("y ~ x2 + x1 + x3 + ti(")


def test_weights_and_compilation_are_carried_over(data: pd.DataFrame) -> None:
    model = ak.AdditiveModel("y ~ ahofm(x1, x2, x3, F=2, k=5)", data)
    model.compile(optimizer=keras.optimizers.Adam(0.03))
    weight = np.linspace(0.5, 1.5, len(data))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ak.AhofmWarning)  # few epochs
        model.fit(data, sample_weight=weight, epochs=2, verbose=0)
        found = ak.refine(model, top=1, epochs=2, verbose=0)
        assert found.fit_result.weighted
        np.testing.assert_allclose(found.sample.weight, weight)
        assert found.fit_result.solver == "adam"
        assert float(found.optimizer.learning_rate) == pytest.approx(0.03)
    with pytest.warns(ak.AhofmWarning, match="pass `sample_weight=`"):
        ak.refine(model, data, top=1, fit=False)


def test_weights_of_classes_are_carried_over(data: pd.DataFrame, tmp_path: Path) -> None:
    labels = data.assign(y=(data.y > data.y.mean()).astype(float))
    model = ak.AdditiveModel("y ~ afm(x2, x3, F=1, k=5)", labels, "bernoulli")
    weights = {0: 1.0, 1: 4.0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ak.AhofmWarning)  # few sweeps
        model.fit(labels, class_weight=weights, epochs=3, verbose=0)
        model.save(tmp_path / "m.keras")
        own = ak.refine(model, top=1, epochs=3, verbose=0)
        loaded = ak.refine(keras.models.load_model(tmp_path / "m.keras"), labels, 1, epochs=3, verbose=0)
        given = ak.AdditiveModel(own.formula, labels, "bernoulli")
        given.fit(labels, class_weight=weights, epochs=3, verbose=0)
    for found in (own, loaded):
        assert found.fit_result.class_weight == (1.0, 4.0)
        np.testing.assert_allclose(found.predict(labels), given.predict(labels), atol=1e-6)


# Errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"top": 0}, "`top` must be a whole number from 1 on"),
        ({"top": None}, "`top` must be"),
        ({"order": 4}, "one of those of the `ahofm\\(\\)`: 2, 3. Received: 4"),
        ({"order": "2"}, "Received: '2'"),
        ({"order": ()}, "`order` is empty"),
        ({"least": 1.5}, "`least` must lie in"),
        ({"orders": 2}, "Unknown argument `orders` of `refine\\(\\)`. Did you mean `order`"),
        ({"fit": False, "epochs": 3}, "`epochs` is an argument of the fit"),
    ],
)
def test_bad_arguments(screened: ak.AdditiveModel, arguments: dict, message: str) -> None:
    with pytest.raises(ak.DataError, match=message):
        ak.refine(screened, **arguments)


def test_models_that_cannot_be_refined(data: pd.DataFrame) -> None:
    with pytest.raises(ak.DataError, match="An `AdditiveModel` is needed"):
        ak.refine("model")
    with pytest.raises(ak.NotFittedError):
        ak.refine(ak.AdditiveModel("y ~ ahofm(x1, x2)", data))
    additive = random_weights(ak.AdditiveModel("y ~ s(x1) + ti(x1, x2)", data), data)
    with pytest.raises(ak.DataError, match="its formula has no `ahofm\\(\\)`"):
        ak.refine(additive)
    pruned = random_weights(ak.AdditiveModel("y ~ ahofm(x1, x2, x3)", data), data)
    layer = pruned.get_layer(pruned.design.terms[-1].name)
    for factors in layer.factors:
        factors.assign(0 * factors)
    with pytest.raises(ak.DataError, match="of 3 interactions 3 switched off by the fit"):
        ak.refine(pruned)


def test_numbers_of_numpy_are_numbers(screened: ak.AdditiveModel) -> None:
    refined = ak.refine(
        screened, top=np.int64(1), order=np.array([2]), k=np.int64(6), df=(np.float64(3.5), 4), fit=False
    )
    assert refined.formula == f"{FORMULA} + ti(x2, x3, k=6, df=(3.5, 4))"


def test_training_rows(
    screened: ak.AdditiveModel, data: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sample is not enough, and no rows are none."""
    screened.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    with pytest.raises(ak.DataError, match=r"it was loaded, or fitted to a dataset\): pass `data=`"):
        ak.refine(loaded, top=1)
    assert ak.refine(loaded, data, top=1, fit=False).formula == f"{FORMULA} + ti(x2, x3)"
    with monkeypatch.context() as patched:
        patched.setattr(fit_result, "SAMPLE_ROWS", 300)
        sample = fit_result.take_sample(screened.sample.columns, screened.sample.y, None, seed=0)
    loaded.keep_fit(screened.fit_result, sample)
    with pytest.raises(ak.DataError, match="remembers 300 of them only"):
        ak.refine(loaded, top=1)
    logged = random_weights(ak.AdditiveModel("log(y) ~ ahofm(x1, x2)", data), data)
    with pytest.raises(ak.DataError, match=r"columns of the response `log\(y\)`"):
        ak.refine(logged, top=1)
    assert ak.refine(logged, data, top=1, fit=False).formula.endswith("ti(x1, x2)")
