"""A family that a user writes passes through everything that is done with a model."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from pathlib import Path
from typing import Any

import keras
import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from scipy import stats

import ahofm_keras as ak
from ahofm_keras.families import FAMILIES, ExponentialFamily
from tests.families.cases import draw

matplotlib.use("Agg")


class InverseGaussian(ExponentialFamily):
    """Amounts whose variance is the cube of their mean."""

    name = "own inverse gaussian"
    links = {"mean": ("log", "inverse")}  # noqa: RUF012
    support_text = "above 0"
    bounds = (0, inf)
    dispersion_known = False

    def unit_deviance(self, y: Any, mean: Any, xp: Any = np) -> Any:
        return (y - mean) ** 2 / (y * mean**2)

    def variance(self, mean: np.ndarray) -> np.ndarray:
        return mean**3

    def distribution(self, mean: np.ndarray, dispersion: Any = 1.0) -> Any:
        return stats.invgauss(mean * dispersion, scale=1 / dispersion)

    def support(self, y: np.ndarray) -> np.ndarray:
        return super().support(y) & (y > 0)


class Geometric(ExponentialFamily):
    """Failures before a success: counts that vary more than their mean, with nothing to estimate."""

    name = "geometric"
    links = {"mean": ("log",)}  # noqa: RUF012
    support_text = "whole numbers from 0 on"
    bounds = (0, inf)
    discrete = True

    def log_density(self, y: Any, parameters: Any, xp: Any = np) -> Any:
        mean = parameters["mean"]
        ratio = xp.where(y > 0, mean / (1 + mean), xp.ones_like(mean))
        return y * xp.log(ratio) - xp.log(1 + mean)

    def distribution(self, mean: np.ndarray, dispersion: Any = 1.0) -> Any:
        return stats.geom(1 / (1 + mean), loc=-1)


@pytest.fixture(scope="module", autouse=True)
def _registered() -> Iterator[None]:
    for family in (InverseGaussian, Geometric):
        ak.register_family(family)
    yield
    for family in (InverseGaussian, Geometric):
        del FAMILIES[family.name]


def frame(family: ExponentialFamily) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    data = pd.DataFrame({"x": rng.uniform(-1, 1, 400), "z": rng.uniform(-1, 1, 400)})
    data["group"] = rng.choice(["a", "b", "c"], 400)
    centre = 2.5 if family.link == "inverse" else 0.5
    eta = centre + np.sin(3 * data.x) + 0.8 * data.x * data.z + 0.3 * (data.group == "b")
    data["eta"] = eta
    data["y"] = draw(family, eta.to_numpy())
    return data


CASES = [InverseGaussian(), InverseGaussian("inverse"), Geometric()]
every_case = pytest.mark.parametrize("family", CASES, ids=repr)


@every_case
def test_scipy_agrees_with_its_deviance_and_variance(family: ExponentialFamily) -> None:
    mean, y = np.array([0.5, 1.0, 2.0]), np.array([1.0, 1.0, 3.0])
    np.testing.assert_allclose(family.variance(mean), family.distribution(mean, 1.0).var(), rtol=1e-9)
    log = "logpmf" if family.discrete else "logpdf"
    best, own = (getattr(family.distribution(m, 1.0), log)(y) for m in (y, mean))
    np.testing.assert_allclose(family.unit_deviance(y, mean), 2 * (best - own), rtol=1e-9, atol=1e-12)


@every_case
@pytest.mark.parametrize("solver", ["variational", "bcd", "adam"])
def test_every_solver_fits_it(family: ExponentialFamily, solver: str) -> None:
    data = frame(family)
    model = ak.AdditiveModel("y ~ te(x, z, k=6) + group", data, family=family)
    model.fit(data, verbose=0, solver=solver)
    assert np.corrcoef(model.predict(data, type="link"), data.eta)[0, 1] > (
        0.8 if solver == "adam" else 0.9
    )
    assert model.fit_result is not None
    assert model.fit_result.log_likelihood is not None
    dispersion = 1.0 if family.dispersion_known else 0.1
    assert model.fit_result.dispersion == pytest.approx(dispersion, rel=0.25)
    interval = model.predict(data, interval=0.9)
    inside = (interval.predictive_lower <= data.y) & (data.y <= interval.predictive_upper)
    assert 0.85 < inside.mean() < 0.99
    conformal = model.predict(data, interval=0.9, method="conformal", calibration=data)
    assert (conformal.predictive_lower >= 0).all()


@pytest.fixture(scope="module", params=CASES, ids=repr)
def fitted(request: pytest.FixtureRequest, _registered: None) -> tuple[ak.AdditiveModel, pd.DataFrame]:
    data = frame(request.param)
    formula = "y ~ group + ahofm(x, z, D=2, F=1)"
    model = ak.AdditiveModel(formula, data, family=request.param)
    model.fit(data, verbose=0, restarts=0)
    return model, data


Fitted = tuple[ak.AdditiveModel, pd.DataFrame]


def test_it_is_summarised_and_checked(fitted: Fitted) -> None:
    model, data = fitted
    assert f"{model.family.name}({model.family.link})" in str(ak.summary(model))
    check = ak.check(model)
    assert f"{model.family.name} ({model.family.link})" in str(check)
    assert abs(check.residuals["quantile"].std() - 1) < 0.15
    assert ("Pearson chi2 / df" in set(check.tests["check"])) == model.family.dispersion_known
    assert np.isfinite(ak.vcov(model).to_numpy()).all()
    assert ak.check(model, data).family == model.family.name


def test_it_is_drawn_reported_and_explained(fitted: Fitted, tmp_path: Path) -> None:
    model, data = fitted
    ak.plot(model)
    ak.plot(model, "x", residuals=True)
    ak.plot(ak.check(model))
    path = ak.report(model, tmp_path / "page.html")
    text = Path(path).read_text("utf-8")
    assert f"{model.family.name}, {model.family.link} link" in text
    assert "It predicts the average of y as the sum of" in text
    assert ak.explain(model, data.iloc[:1]) is not None
    assert ak.refine(model, data, top=1, fit=False).family == model.family
    plt.close("all")


def test_it_is_saved_loaded_cloned_and_exported(fitted: Fitted, tmp_path: Path) -> None:
    model, data = fitted
    wanted = model.predict(data)
    model.save(tmp_path / "model.keras")
    for load in (ak.load_model, keras.models.load_model):
        again = load(tmp_path / "model.keras")
        assert again.family == model.family
        assert again.loss.family == model.family
        np.testing.assert_allclose(again.predict(data), wanted, rtol=1e-6)
        np.testing.assert_allclose(
            again.predict(data, interval=0.9), model.predict(data, interval=0.9), rtol=1e-5
        )
        assert again.evaluate(data) == pytest.approx(model.evaluate(data), rel=1e-5)
    model.export(tmp_path / "served")
    served = tf.saved_model.load(str(tmp_path / "served")).signatures["serving_default"]
    columns = {name: tf.constant(data[name].to_numpy()) for name in ("x", "z", "group")}
    np.testing.assert_allclose(served(**columns)["response"], wanted, rtol=1e-6)


def test_without_its_class_a_file_says_what_to_do(fitted: Fitted, tmp_path: Path) -> None:
    model, _ = fitted
    model.save(tmp_path / "model.keras")
    before = FAMILIES.pop(model.family.name)
    try:
        with pytest.raises(ak.DataError, match="Import the module that registers it"):
            ak.load_model(tmp_path / "model.keras")
    finally:
        FAMILIES[model.family.name] = before


def test_a_family_may_be_a_class_or_a_name() -> None:
    data = frame(InverseGaussian())
    for family in (InverseGaussian, "own inverse gaussian", InverseGaussian("inverse")):
        model = ak.AdditiveModel("y ~ x", data, family=family)
        assert isinstance(model.family, InverseGaussian)
        config = model.get_config()
        assert config["family"] == {"name": "own inverse gaussian", "links": {"mean": model.family.link}}
    with pytest.raises(
        ak.DataError, match="of the own inverse gaussian family must be above 0, but 1 of 400"
    ):
        ak.AdditiveModel(
            "y ~ x", data.assign(y=data.y.where(data.index > 0, 0.0)), family=InverseGaussian
        )
