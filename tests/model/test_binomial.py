"""Successes among trials: `cbind(k, m - k)`, shares with weights, and rows of 0 and 1 are the same."""

from __future__ import annotations

import warnings
from typing import Any

import keras
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from scipy import special, stats

import ahofm_keras as ak

FORMULA = "cbind(k, m - k) ~ s(x) + z"


def make_trials(rows: int = 150, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    data = pd.DataFrame({"x": rng.uniform(size=rows), "z": rng.normal(size=rows)})
    data["m"] = rng.integers(1, 12, rows)
    data["k"] = rng.binomial(data.m, 1 / (1 + np.exp(-np.sin(6 * data.x) - 0.5 * data.z)))
    data["share"] = data.k / data.m
    return data


DATA = make_trials()


def fitted(formula: str = FORMULA, solver: str = "bcd", **kwargs: Any) -> ak.AdditiveModel:
    model = ak.AdditiveModel(formula, DATA, family=kwargs.pop("family", "binomial"))
    model.fit(DATA, verbose=0, solver=solver, **kwargs)
    return model


@pytest.fixture(scope="module")
def model() -> ak.AdditiveModel:
    return fitted(solver="variational")


@pytest.mark.parametrize("link", ["logit", "probit", "cloglog"])
def test_is_bernoulli_on_a_row_for_each_trial(link: str) -> None:
    model = fitted(family=ak.families.Binomial(link))
    rows = [DATA.loc[DATA.index.repeat(DATA.k)], DATA.loc[DATA.index.repeat(DATA.m - DATA.k)]]
    expanded = pd.concat([rows[0].assign(y=1.0), rows[1].assign(y=0.0)])
    # The bases are those of the same rows; what is fitted is every trial.
    other = ak.AdditiveModel(
        "y ~ s(x) + z", DATA.assign(y=DATA.k > 0), family=ak.families.Bernoulli(link)
    )
    other.fit(expanded, verbose=0, solver="bcd")
    for one in (model, other):  # each stops within its tolerance: a few sweeps more
        for _ in range(3):
            one.fit(DATA if one is model else expanded, verbose=0, solver="bcd")
    # Weights of layers are float32, of which the seventh digit is rounding.
    np.testing.assert_allclose(model.predict(DATA), other.predict(DATA), rtol=1e-6)
    assert model.fit_result.edf == pytest.approx(other.fit_result.edf, rel=1e-7)
    assert model.fit_result.null_deviance - model.fit_result.deviance == pytest.approx(
        other.fit_result.null_deviance - other.fit_result.deviance, rel=1e-7
    )


@pytest.mark.parametrize("solver", ["bcd", "variational"])
def test_a_share_with_its_trials_as_weight_is_the_same(solver: str) -> None:
    one = fitted(solver=solver)
    other = fitted("share ~ s(x) + z", solver=solver, sample_weight="m")
    np.testing.assert_array_equal(one.predict(DATA), other.predict(DATA))
    assert one.fit_result.log_likelihood == other.fit_result.log_likelihood


def test_the_log_likelihood_is_that_of_counts(model: ak.AdditiveModel) -> None:
    wanted = stats.binom.logpmf(DATA.k, DATA.m, model.predict(DATA)).sum()
    assert model.fit_result.log_likelihood == pytest.approx(wanted, rel=1e-7)


@pytest.mark.parametrize("form", ["array", "frame", "turned frame", "dataset"])
def test_the_response_may_stand_beside_the_data(form: str) -> None:
    columns = np.stack([DATA.k, DATA.m - DATA.k], axis=1).astype(float)
    frame = pd.DataFrame({"k": DATA.k, "m - k": DATA.m - DATA.k})
    model = fitted()
    wanted = model.evaluate(DATA)
    if form == "dataset":
        inputs = {name: DATA[name].to_numpy(float) for name in ("x", "z")}
        batches = tf.data.Dataset.from_tensor_slices((inputs, columns)).batch(len(DATA))
        np.testing.assert_allclose(model.evaluate(batches)[1], wanted[1], rtol=1e-6)
        return
    beside = {"array": columns, "frame": frame, "turned frame": frame.iloc[:, ::-1]}[form]
    np.testing.assert_allclose(model.evaluate(DATA[["x", "z"]], beside), wanted)


def test_predictive_intervals_are_of_counts_where_trials_are_known(model: ak.AdditiveModel) -> None:
    band = model.predict(DATA, interval=0.8, trials="m")
    links = model.predict(DATA, type="link", interval=0.8)
    draws = links["link"].to_numpy() + links["se"].to_numpy() * special.ndtri(
        (np.arange(4000)[:, None] + 0.5) / 4000
    )
    for row in (0, 7, 31):
        mean = special.expit(draws[:, row])
        chance = stats.binom.cdf(np.arange(DATA.m[row] + 1)[:, None], DATA.m[row], mean).mean(axis=1)
        for column, tail in (("predictive_lower", 0.1), ("predictive_upper", 0.9)):
            assert band[column][row] == np.argmax(chance >= tail)
    counts = model.predict(DATA, type="distribution", trials="m")
    np.testing.assert_allclose(counts.mean(), DATA.m * model.predict(DATA))
    assert set(model.predict(DATA, interval=0.8)["predictive_upper"]) <= {0.0, 1.0}
    with pytest.raises(ak.DataError, match="whole numbers from 1"):
        model.predict(DATA, interval=0.8, trials=0)


def test_adam_agrees() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = fitted("cbind(k, m - k) ~ x + z", solver="adam", epochs=200, validation_split=0.0)
    wanted = fitted("cbind(k, m - k) ~ x + z").predict(DATA)
    np.testing.assert_allclose(model.predict(DATA), wanted, atol=0.01)


def test_survives_its_file(model: ak.AdditiveModel, tmp_path: Any) -> None:
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert str(again.response) == "cbind(k, m - k)"
    assert again.evaluate(DATA) == model.evaluate(DATA)


def test_readers_take_the_share(model: ak.AdditiveModel) -> None:
    check = ak.check(model)
    np.testing.assert_allclose(check.residuals["observed"], DATA.share)
    given = ak.check(model, DATA)
    np.testing.assert_allclose(given.residuals["deviance"], check.residuals["deviance"])


BAD = {
    "successes beyond trials": ({"k": 30}, "more successes than trials"),
    "negative": ({"k": -1}, "negative"),
    "fractions": ({"k": 0.5}, "not whole"),
    "no trials": ({"k": 0, "m": 0}, "no trials"),
    "missing": ({"k": np.nan}, "missing"),
    "texts": ({"k": "three"}, "`k`"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_counts_are_refused_with_their_row(case: str) -> None:
    values, message = BAD[case]
    data = DATA.astype({"k": object if case == "texts" else float})
    for name, value in values.items():
        data.loc[3, name] = value
    with pytest.raises(ak.DataError, match=message):
        ak.AdditiveModel(FORMULA, data, family="binomial")


def test_successes_without_trials_are_refused() -> None:
    with pytest.raises(ak.DataError, match=r"cbind\(k, trials - k\)"):
        ak.AdditiveModel("k ~ x", DATA, family="binomial")


def test_shares_that_are_no_counts_are_told() -> None:
    with pytest.warns(ak.AhofmWarning, match="whole numbers of successes"):
        fitted("share ~ x")


@pytest.mark.parametrize(
    ("formula", "family", "message"),
    [
        (FORMULA, "poisson", r"one column\. Received: `cbind\(k, .*Families of .*: `binomial`"),
        ("Surv(m, k) ~ x", "binomial", r"`cbind\(successes, failures\)` or one column"),
    ],
)
def test_a_family_says_what_response_it_takes(formula: str, family: str, message: str) -> None:
    with pytest.raises(ak.DataError, match=message):
        ak.AdditiveModel(formula, DATA, family=family)


@pytest.mark.parametrize("shape", [(150,), (150, 3)])
def test_a_response_beside_the_data_needs_its_columns(shape: tuple[int, ...]) -> None:
    with pytest.raises(ak.DataError, match="must have 2 columns"):
        fitted().evaluate(DATA[["x", "z"]], np.ones(shape))
