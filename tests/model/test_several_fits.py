"""Every family of several parameters: a fit finds effects in each of them, and what is kept of it agrees."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path

import keras
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

import ahofm_keras as ak
from ahofm_keras.families import get_family
from tests.families.cases import SEVERAL

ROWS = 1500
# Its density, a sum of hundreds of terms, takes long.
SLOW = ("tweedie",)
every_family = pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in SEVERAL],
)
# Where predictors lie, by link; of parameters that tell little elsewhere, by name.
CENTRES = {"log": 0.7, "log_above_2": 0.7, "logit": 0.0}
OWN_CENTRES = {
    ("gaussian_ls", "scale"): -1.0, ("gamma_ls", "scale"): -1.0, ("student_t", "scale"): -1.0,
    ("laplace", "scale"): -1.0, ("logistic", "scale"): -1.0, ("lognormal", "scale"): -1.0,
    ("inverse_gaussian", "scale"): -1.0, ("beta", "precision"): 3.0, ("weibull", "shape"): 0.7,
    ("negative_binomial", "mean"): 2.0, ("negative_binomial", "dispersion"): -0.5,
    ("zero_inflated_poisson", "mean"): 1.5, ("hurdle_poisson", "mean"): 1.5,
    ("zero_inflated_negative_binomial", "mean"): 2.5,
    ("zero_inflated_negative_binomial", "dispersion"): -1.0,
    ("tweedie", "dispersion"): -0.5, ("shash", "scale"): -1.0, ("shash", "tail"): -0.3,
}  # fmt: skip
# Correlation with the truth on the training rows: of the first predictor, and of the others.
FIRST, OTHERS = 0.95, 0.8
# A tail or a dispersion beside zeros is known less than a location: what holds at 1,500 rows.
LEAST = {
    ("student_t", "df"): 0.5,
    ("tweedie", "power"): 0.5,
}


def simulate(name: str) -> tuple[pd.DataFrame, dict[str, np.ndarray]]:
    """Two features, and a response each of whose parameters depends on one of them."""
    family, rng = get_family(name), np.random.default_rng(1)
    data = pd.DataFrame(rng.uniform(-1, 1, (ROWS, 2)), columns=["a", "b"])
    etas = {}
    for place, (parameter, link) in enumerate(family.parameters.items()):
        shape = np.sin(2.5 * data.a) if place % 2 == 0 else data.b**2 * 1.5 + data.b / 2 - 0.5
        centre = OWN_CENTRES.get((name, parameter), CENTRES.get(link.name, 0.0))
        etas[parameter] = (centre + 0.8 * shape).to_numpy()
    data["y"] = np.asarray(
        family.distribution_of(family.inverse_links(etas)).rvs(random_state=rng), float
    )
    return data, etas


@pytest.fixture(scope="module")
def fitted() -> Callable[[str], tuple[ak.AdditiveModel, pd.DataFrame, dict[str, np.ndarray]]]:
    @cache
    def get(name: str) -> tuple[ak.AdditiveModel, pd.DataFrame, dict[str, np.ndarray]]:
        data, etas = simulate(name)
        formulas = {
            parameter: f"{'y ' * (not place)}~ s(a, k=8) + s(b, k=8)"
            for place, parameter in enumerate(etas)
        }
        model = ak.AdditiveModel(formulas, data, family=name)
        model.fit(data, verbose=0)
        return model, data, etas

    return get


@every_family
def test_effects_in_every_parameter_are_found(name: str, fitted) -> None:
    model, data, etas = fitted(name)
    assert model.fit_result.converged
    assert model.fit_result.deviance < model.fit_result.null_deviance
    found = model.predict(data, type="link")
    for place, (parameter, wanted) in enumerate(etas.items()):
        least = LEAST.get((name, parameter), OTHERS if place else FIRST)
        assert np.corrcoef(found[parameter], wanted)[0, 1] > least, parameter


@every_family
def test_the_record_is_that_of_the_distribution(name: str, fitted) -> None:
    model, data, _ = fitted(name)
    likelihood = float(model.predict(data, type="distribution").log_prob(data.y).sum())
    assert model.fit_result.log_likelihood == pytest.approx(likelihood, rel=1e-6, abs=1e-3)
    assert model.fit_result.deviance == pytest.approx(-2 * likelihood, rel=1e-6, abs=1e-3)


@every_family
def test_saved_cloned_and_with_set_weights_it_predicts_the_same(
    name: str, fitted, tmp_path: Path
) -> None:
    model, data, _ = fitted(name)
    rows = data.iloc[:50]
    wanted = model.predict(rows, type="parameters")
    band = model.predict(rows, interval=0.9)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    clone = keras.models.clone_model(model)
    clone.set_weights(model.get_weights())
    for other in (loaded, clone):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The model was never fitted")
            again = other.predict(rows, type="parameters")
        np.testing.assert_allclose(again, wanted, rtol=1e-6)
    np.testing.assert_allclose(loaded.predict(rows, interval=0.9), band, rtol=1e-6)
    assert loaded.fit_result == model.fit_result


@every_family
def test_the_exported_model_serves_what_predict_says(name: str, fitted, tmp_path: Path) -> None:
    model, data, _ = fitted(name)
    rows = data.iloc[:20]
    model.export(tmp_path / "model", verbose=False)
    served = tf.saved_model.load(str(tmp_path / "model"))
    found = served.signatures["serving_default"](
        a=tf.constant(rows.a.to_numpy()), b=tf.constant(rows.b.to_numpy())
    )
    np.testing.assert_allclose(found["response"], model.predict(rows), rtol=1e-5, atol=1e-6)
    for parameter, wanted in model.predict(rows, type="parameters").items():
        np.testing.assert_allclose(found[parameter], wanted, rtol=1e-5, atol=1e-6)
