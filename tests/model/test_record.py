"""What a fit leaves behind: figures that are saved, rows that are not."""

from __future__ import annotations

from pathlib import Path

import keras
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from scipy import stats

import ahofm_keras as ak
from ahofm_keras.model.fit_result import SAMPLE_ROWS
from tests.families.cases import PLAIN

FORMULA = "{family} ~ s(x1) + offset(log(exposure))"


@pytest.fixture(scope="module", params=PLAIN)
def model(request: pytest.FixtureRequest, frame: pd.DataFrame) -> ak.AdditiveModel:
    model = ak.AdditiveModel(FORMULA.format(family=request.param), frame, family=request.param)
    assert not model.is_fitted
    assert model.fit_result is None
    model.fit(frame, verbose=0)
    return model


def test_figures(model: ak.AdditiveModel, frame: pd.DataFrame) -> None:
    record, family = model.fit_result, model.family
    y, mean = frame[family.name].to_numpy(float), model.predict(frame)
    assert model.is_fitted
    assert (record.solver, record.rows, record.converged, record.warnings) == (
        "variational",
        240,
        True,
        (),
    )
    assert record.epochs > 0
    assert record.seconds > 0
    assert record.deviance == pytest.approx(float(family.unit_deviance(y, mean, np).sum()), rel=1e-5)
    assert record.deviance < record.null_deviance
    sd = np.sqrt(record.dispersion)
    wanted = {
        "gaussian": lambda: stats.norm.logpdf(y, mean, sd),
        "bernoulli": lambda: np.log(np.where(y == 1, mean, 1 - mean)),
        "poisson": lambda: stats.poisson.logpmf(y, mean),
        "gamma": lambda: stats.gamma.logpdf(y, 1 / sd**2, scale=mean * sd**2),
    }[family.name]()
    assert record.log_likelihood == pytest.approx(float(wanted.sum()), rel=1e-6)


def test_the_null_deviance_is_the_smallest_without_terms(
    model: ak.AdditiveModel, frame: pd.DataFrame
) -> None:
    family, y = model.family, frame[model.family.name].to_numpy(float)
    centre = y.mean() if family.is_linear else 0.0
    intercepts = centre + np.linspace(-3, 3, 12_001)
    links = intercepts[:, None] + np.log(frame.exposure.to_numpy())
    deviances = family.unit_deviance(y, family.inverse_link(links, np), np).sum(axis=1)
    assert model.fit_result.null_deviance == pytest.approx(deviances.min(), rel=1e-6)
    assert model.fit_result.null_deviance <= deviances.min() * (1 + 1e-12)


def test_it_is_saved_and_rows_are_not(model: ak.AdditiveModel, tmp_path: Path) -> None:
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.is_fitted
    assert loaded.fit_result == model.fit_result
    assert loaded.sample is None
    assert len(model.sample.y) == 240


def test_weights_enter_as_rows_would(frame: pd.DataFrame) -> None:
    weight = np.random.default_rng(0).integers(0, 3, len(frame)).astype(float)
    model = ak.AdditiveModel("poisson ~ s(x1)", frame, family="poisson")
    model.fit(frame, sample_weight=weight, verbose=0)
    repeated = frame.loc[frame.index.repeat(weight.astype(int))]
    y, mean = repeated["poisson"], model.predict(repeated)
    assert model.fit_result.weighted
    assert model.fit_result.log_likelihood == pytest.approx(
        stats.poisson.logpmf(y, mean).sum(), rel=1e-6
    )
    null = model.family.unit_deviance(y.to_numpy(), np.full(len(y), y.mean()), np).sum()
    assert model.fit_result.null_deviance == pytest.approx(null, rel=1e-9)
    np.testing.assert_array_equal(model.sample.weight, weight)


def test_what_was_not_converged_says_so(frame: pd.DataFrame) -> None:
    model = ak.AdditiveModel("gaussian ~ s(x1)", frame)
    with pytest.warns(ak.AhofmWarning, match="reached its last epoch"):
        model.fit(frame, solver="adam", epochs=2, verbose=0)
    assert model.fit_result.solver == "adam"
    assert model.fit_result.epochs == 2
    assert not model.fit_result.converged
    assert "reached its last epoch" in model.fit_result.warnings[0]


def test_a_dataset_leaves_few_figures(frame: pd.DataFrame) -> None:
    model = ak.AdditiveModel("gaussian ~ s(x1)", frame)
    batches = tf.data.Dataset.from_tensor_slices(({"x1": frame.x1}, frame.gaussian)).batch(60)
    with pytest.warns(ak.AhofmWarning, match="reached its last epoch"):
        model.fit(batches, epochs=1, verbose=0)
    assert model.fit_result.rows is None
    assert model.fit_result.deviance is None
    assert model.sample is None


def test_no_epoch_leaves_nothing(frame: pd.DataFrame) -> None:
    model = ak.AdditiveModel("gaussian ~ s(x1)", frame)
    model.fit(frame, epochs=0, verbose=0)
    assert not model.is_fitted


def test_a_large_set_is_sampled() -> None:
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"x": rng.uniform(size=SAMPLE_ROWS + 500)})
    data["y"] = data.x + rng.normal(size=len(data))
    model = ak.AdditiveModel("y ~ x", data)
    model.fit(data, verbose=0)
    assert len(model.sample.y) == SAMPLE_ROWS
    known = pd.Series(data.y.to_numpy(), data.x.to_numpy())
    np.testing.assert_array_equal(known[model.sample.columns["x"]], model.sample.y)
