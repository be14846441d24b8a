"""Families: properties over every entry of `FAMILIES`, deviances from SciPy's distributions."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from scipy import special, stats

from ahofm_keras.errors import DataError
from ahofm_keras.families import FAMILIES, Deviance, HalfDeviance, get_family, names
from tests.families.cases import ONE

LOG_LIKELIHOODS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "gaussian": lambda y, mean: stats.norm.logpdf(y, mean),
    "bernoulli": lambda y, mean: stats.bernoulli.logpmf(y, mean),
    # Of one trial: what the share of several has besides is of the response alone.
    "binomial": lambda y, mean: special.xlogy(y, mean) + special.xlog1py(1 - y, -mean),
    "poisson": lambda y, mean: stats.poisson.logpmf(y, mean),
    "gamma": lambda y, mean: stats.gamma.logpdf(y, 1.0, scale=mean),
}
MEANS = {
    "gaussian": np.array([-1e3, -1.0, 0.0, 0.3, 5e4]),
    "bernoulli": np.array([1e-6, 0.02, 0.5, 0.73, 1 - 1e-6]),
    "binomial": np.array([1e-6, 0.02, 0.5, 0.73, 1 - 1e-6]),
    "poisson": np.array([1e-4, 0.3, 1.0, 7.5, 2e4]),
    "gamma": np.array([1e-4, 0.3, 1.0, 7.5, 2e4]),
}
RESPONSES = {
    "gaussian": np.array([-1e3, -0.7, 0.0, 2.0, 1e4]),
    "bernoulli": np.array([0.0, 1.0]),
    "binomial": np.array([0.0, 0.125, 0.5, 1.0]),
    "poisson": np.array([0.0, 1.0, 2.0, 30.0, 1000.0]),
    "gamma": np.array([1e-3, 0.5, 1.0, 30.0, 1e4]),
}
# Those of several parameters are in test_several_parameters.py.
every_family = pytest.mark.parametrize("name", ONE)


def grid(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Every response beside every mean."""
    y, mean = np.meshgrid(RESPONSES[name], MEANS[name])
    return y.ravel(), mean.ravel()


def wanted_deviance(name: str, y: np.ndarray, mean: np.ndarray) -> np.ndarray:
    likelihood = LOG_LIKELIHOODS[name]
    return 2 * (likelihood(y, y) - likelihood(y, mean))


def sample(name: str, count: int = 200) -> np.ndarray:
    rng = np.random.default_rng(7)
    return {
        "gaussian": rng.normal(3, 2, count),
        "bernoulli": rng.binomial(1, 0.3, count).astype(float),
        "binomial": rng.binomial(8, 0.3, count) / 8.0,
        "poisson": rng.poisson(2.5, count).astype(float),
        "gamma": rng.gamma(2.0, 3.0, count),
    }[name]


def test_every_family_has_an_oracle() -> None:
    assert set(ONE) == set(LOG_LIKELIHOODS) == set(MEANS) == set(RESPONSES)
    assert all(family.name == name for name, family in FAMILIES.items())


# Link and deviance


@every_family
@pytest.mark.parametrize("namespace", [np, keras.ops], ids=["numpy", "keras"])
def test_inverse_link_undoes_the_link(name: str, namespace: Any) -> None:
    family = get_family(name)
    eta = family.link_function(MEANS[name])
    given = eta if namespace is np else keras.ops.convert_to_tensor(eta)
    found = np.asarray(family.inverse_link(given, namespace))
    np.testing.assert_allclose(found, MEANS[name], rtol=1e-9)


@pytest.mark.parametrize(
    ("name", "formula"),
    [
        ("gaussian", lambda eta: eta),
        ("bernoulli", lambda eta: 1 / (1 + np.exp(-eta))),
        ("poisson", np.exp),
        ("gamma", np.exp),
    ],
)
def test_inverse_link_is_the_named_one(name: str, formula: Callable[[np.ndarray], np.ndarray]) -> None:
    eta = np.linspace(-15, 15, 31)
    np.testing.assert_allclose(get_family(name).inverse_link(eta, np), formula(eta), rtol=1e-9)
    links = {"gaussian": "identity", "bernoulli": "logit", "poisson": "log", "gamma": "log"}
    assert get_family(name).link == links[name]


@every_family
def test_deviance_is_twice_the_gap_of_log_likelihoods(name: str) -> None:
    y, mean = grid(name)
    found = get_family(name).unit_deviance(y, mean, np)
    np.testing.assert_allclose(found, wanted_deviance(name, y, mean), rtol=1e-9, atol=1e-8)
    assert (found >= -1e-12).all()


@every_family
def test_deviance_is_0_where_the_mean_is_the_response(name: str) -> None:
    y = RESPONSES[name]
    found = get_family(name).unit_deviance(y, y.copy(), np)
    np.testing.assert_allclose(found, 0, rtol=0, atol=1e-11)


@pytest.mark.parametrize("unit", [1e-18, 1e-30])
def test_gamma_deviance_does_not_depend_on_the_unit(unit: float) -> None:
    y, mean = np.array([1.0, 2.0, 5.0]), np.array([1.5, 2.0, 0.3])
    wanted = wanted_deviance("gamma", y, mean)
    found = get_family("gamma").unit_deviance(unit * y, unit * mean, np)
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)


@every_family
def test_deviance_is_the_same_in_keras(name: str) -> None:
    y, mean = grid(name)
    tensors = keras.ops.convert_to_tensor(y), keras.ops.convert_to_tensor(mean)
    found = get_family(name).unit_deviance(*tensors, keras.ops)
    assert found.dtype == tf.float64
    wanted = get_family(name).unit_deviance(y, mean, np)
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-12, atol=1e-12)


@every_family
def test_gradient_of_the_deviance_is_that_of_the_likelihood(name: str) -> None:
    y, mean = grid(name)
    variable = tf.Variable(mean)
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(get_family(name).unit_deviance(tf.constant(y), variable, keras.ops))
    found = tape.gradient(total, variable).numpy()
    step = 1e-5 * np.minimum(
        np.abs(mean) + (name == "gaussian"), 1 - mean if name in ("bernoulli", "binomial") else np.inf
    )
    high, low = wanted_deviance(name, y, mean + step), wanted_deviance(name, y, mean - step)
    wanted = (high - low) / (2 * step)
    noise = 1e-15 * np.maximum(np.abs(high), np.abs(LOG_LIKELIHOODS[name](y, y))) / step
    assert (np.abs(found - wanted) <= 1e-6 * np.abs(wanted) + 10 * noise + 1e-9).all()


@every_family
def test_slope_by_the_mean_is_the_residual_over_the_variance(name: str) -> None:
    variance = {
        "gaussian": np.ones_like,
        "bernoulli": lambda mean: mean * (1 - mean),
        "binomial": lambda mean: mean * (1 - mean),
        "poisson": lambda mean: mean,
        "gamma": lambda mean: mean**2,
    }[name]
    y, mean = grid(name)
    variable = tf.Variable(mean)
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(get_family(name).unit_deviance(tf.constant(y), variable, keras.ops))
    found = tape.gradient(total, variable).numpy()
    wanted = -2 * (y - mean) / variance(mean)
    np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-10 * np.abs(wanted).max())


# Start


@every_family
@pytest.mark.parametrize("reach", [None, 0.0, 0.4, 5.0, 40.0])
def test_start_solves_its_equation(name: str, reach: float | None) -> None:
    family, y = get_family(name), sample(name)
    if reach is None:
        offset: Any = 0.0
        start = family.start(y)
    else:
        offset = np.random.default_rng(1).uniform(-reach, reach, len(y))
        start = family.start(y, offset)
    found = np.mean(family.inverse_link(start + offset + np.zeros(len(y)), np))
    assert found == pytest.approx(np.mean(y), rel=1e-9)


@every_family
def test_a_constant_offset_moves_the_start_by_itself(name: str) -> None:
    family, y = get_family(name), sample(name)
    start = family.start(y)
    assert family.start(y, 1.25) == pytest.approx(start - 1.25, abs=1e-12)
    assert family.start(y, np.full(len(y), 1.25)) == pytest.approx(start - 1.25, abs=1e-9)


# Support

NEGATIVE = ' `family="gaussian"` takes negative values.'
ZEROS = ' `family="tweedie"` takes zeros beside amounts above 0.'
RECODE = " Recode two classes: 1 where it is 1, 0 where it is -1."
UNSUPPORTED = [
    ("gaussian", [0.0, np.nan, 1.0], "finite", 1, 1, "nan", ""),
    ("gaussian", [0.0, 1.0, -np.inf], "finite", 1, 2, "-inf", ""),
    ("bernoulli", [0.0, 1.0, 2.0, 0.5], "0 or 1", 2, 2, "2", ZEROS),
    ("bernoulli", [-1.0, 1.0], "0 or 1", 1, 0, "-1", RECODE),
    ("poisson", [0.0, 3.0, -1.0], "whole numbers from 0 on", 1, 2, "-1", NEGATIVE),
    ("poisson", [0.5, 3.0, np.nan], "whole numbers from 0 on", 2, 0, "0.5", ""),
    ("gamma", [1.0, 0.0, -2.0], "above 0", 2, 1, "0", NEGATIVE),
    ("gamma", [1.0, 0.0, 2.5], "above 0", 1, 1, "0", ZEROS),
    ("gamma", [np.nan, 1.0], "above 0", 1, 0, "nan", ""),
]
INFINITE = [
    ("poisson", [1.0, np.inf], "whole numbers from 0 on", 1, 1, "inf", ""),
    ("gamma", [1.0, np.inf], "above 0", 1, 1, "inf", ""),
]


@pytest.mark.parametrize(
    ("name", "y", "text", "count", "row", "value", "advice"),
    [*UNSUPPORTED, *INFINITE],
)
def test_a_response_outside_the_support_is_named(
    name: str, y: list[float], text: str, count: int, row: int, value: str, advice: str
) -> None:
    with pytest.raises(DataError) as caught:
        get_family(name).check_response(np.array(y), "log(y)")
    assert str(caught.value) == (
        f"The response `log(y)` of the {name} family must be {text}, but {count} of {len(y)} values "
        f"are not; first at row {row}: {value}.{advice}"
    )


def test_counts_in_messages_have_separators() -> None:
    with pytest.raises(DataError) as caught:
        get_family("gamma").check_response(np.zeros(12_345), "y")
    assert str(caught.value) == (
        "The response `y` of the gamma family must be above 0, but 12,345 of 12,345 values are not; "
        'first at row 0: 0. `family="poisson"` and `family="negative_binomial"` are for counts.'
    )


@every_family
def test_a_response_of_the_family_is_accepted(name: str) -> None:
    get_family(name).check_response(sample(name), "y")
    get_family(name).check_response(RESPONSES[name], "y")


def test_an_unknown_family_is_named_beside_the_known_ones() -> None:
    with pytest.raises(DataError) as caught:
        get_family("normal")
    listed = ", ".join(f"`{name}`" for name in FAMILIES)
    assert str(caught.value) == (
        f"Unknown family 'normal'. Here it is called `gaussian`, of responses that are finite. Known families: {listed}."
    )
    assert listed.startswith("`gaussian`, `bernoulli`, `poisson`, `gamma`, ")


# Loss and metric


def pairs(name: str) -> tuple[np.ndarray, np.ndarray]:
    y = sample(name, 40)
    spread = np.random.default_rng(3).uniform(0.5, 1.5, 40)
    return y, np.clip(np.mean(y) * spread, None, 0.9 if name == "bernoulli" else None)


@every_family
@pytest.mark.parametrize("unit", [1.0, 62_500.0])
def test_loss_is_half_the_mean_deviance_in_units_of_the_dispersion(name: str, unit: float) -> None:
    y, mean = pairs(name)
    found = HalfDeviance(name, unit)(y, mean)
    assert keras.backend.standardize_dtype(found.dtype) == keras.config.floatx()
    wanted = wanted_deviance(name, y, mean).mean() / 2 / unit
    assert float(found) == pytest.approx(wanted, rel=1e-6)


@every_family
def test_loss_weights_its_rows(name: str) -> None:
    y, mean = pairs(name)
    weight = np.random.default_rng(4).uniform(0, 3, len(y))
    rows = wanted_deviance(name, y, mean) / 2
    found = HalfDeviance(name)(y, mean, sample_weight=weight)
    assert float(found) == pytest.approx(np.sum(weight * rows) / len(y), rel=1e-6)
    summed = HalfDeviance(name, reduction="sum")(y, mean, sample_weight=weight)
    assert float(summed) == pytest.approx(np.sum(weight * rows), rel=1e-6)
    left_out = np.where(np.arange(len(y)) < 10, 0.0, 1.0)
    some = HalfDeviance(name)(y, mean, sample_weight=left_out)
    assert float(some) == pytest.approx(rows[10:].sum() / len(y), rel=1e-6)


@every_family
def test_loss_comes_back_from_its_config(name: str) -> None:
    loss = HalfDeviance(name, 2.5, name="my_loss", reduction="sum")
    config = json.loads(json.dumps(keras.saving.serialize_keras_object(loss)))
    assert config["registered_name"] == "ahofm_keras>HalfDeviance"
    again = keras.saving.deserialize_keras_object(config)
    assert isinstance(again, HalfDeviance)
    assert (again.name, again.reduction, again.unit) == ("my_loss", "sum", 2.5)
    assert again.family == get_family(name)
    assert again.get_config() == loss.get_config()
    y, mean = pairs(name)
    assert float(again(y, mean)) == float(loss(y, mean))


@every_family
def test_metric_is_the_weighted_mean_deviance_over_all_batches(name: str) -> None:
    y, mean = pairs(name)
    weight = np.random.default_rng(5).uniform(0, 3, len(y))
    metric = Deviance(name)
    assert float(metric.result()) == 0
    for batch in np.array_split(np.arange(len(y)), [7, 20]):
        metric.update_state(y[batch], mean[batch], sample_weight=weight[batch])
    wanted = np.average(wanted_deviance(name, y, mean), weights=weight)
    assert float(metric.result()) == pytest.approx(wanted, rel=1e-12)
    metric.reset_state()
    metric.update_state(y, mean)
    assert float(metric.result()) == pytest.approx(wanted_deviance(name, y, mean).mean(), rel=1e-12)


@every_family
def test_metric_takes_weights_as_a_column(name: str) -> None:
    y, mean = pairs(name)
    weight = np.random.default_rng(6).uniform(0, 3, len(y))
    metric = Deviance(name)
    metric.update_state(y, mean, sample_weight=weight[:, None])
    wanted = np.average(wanted_deviance(name, y, mean), weights=weight)
    assert float(metric.result()) == pytest.approx(wanted, rel=1e-12)


@every_family
def test_metric_comes_back_from_its_config(name: str) -> None:
    metric = Deviance(name, name="dev")
    config = json.loads(json.dumps(keras.saving.serialize_keras_object(metric)))
    assert config["registered_name"] == "ahofm_keras>Deviance"
    again = keras.saving.deserialize_keras_object(config)
    assert again.name == "dev"
    assert again.family == get_family(name)
    assert again.get_config() == metric.get_config()
    y, mean = pairs(name)
    for each in (metric, again):
        each.update_state(y, mean)
    assert float(again.result()) == float(metric.result())


def test_a_response_as_a_column_is_compared_row_by_row() -> None:
    y = np.arange(5.0)
    assert float(HalfDeviance("gaussian")(y[:, None], y)) == 0


def test_responses_far_from_0_keep_their_digits() -> None:
    y = 1e9 + np.array([0.25, 0.5, 3.0])
    mean = y + np.array([0.125, -0.25, 0.5])
    wanted = np.mean([0.125**2, 0.25**2, 0.5**2])
    assert float(HalfDeviance("gaussian")(y, mean)) == pytest.approx(wanted / 2, rel=1e-6)
    metric = Deviance("gaussian")
    metric.update_state(y, mean)
    assert float(metric.result()) == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize(
    ("name", "eta"),
    [(name, eta) for name in ONE for eta in (-800.0, -40.0, 40.0, 800.0)],
)
def test_extreme_predictors_have_finite_deviances_and_slopes(name: str, eta: float) -> None:
    y = tf.constant(RESPONSES[name])
    variable = tf.Variable(np.full(len(y), eta))
    with tf.GradientTape() as tape:
        loss = HalfDeviance(name)(y, get_family(name).inverse_link(variable, keras.ops))
    slopes = tape.gradient(loss, variable).numpy()
    assert np.isfinite(float(loss))
    assert np.isfinite(slopes).all()
    metric = Deviance(name)
    metric.update_state(y, get_family(name).inverse_link(variable, keras.ops))
    assert np.isfinite(float(metric.result()))


def test_a_wrong_class_costs_more_the_surer_the_model_was() -> None:
    family = get_family("bernoulli")
    eta = np.array([-34.0, -20.0, -5.0, 0.0])
    found = family.unit_deviance(np.ones(4), family.inverse_link(eta, np), np)
    np.testing.assert_allclose(found, 2 * np.logaddexp(0, -eta), rtol=1e-2)


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("binomial_prob", "binomial"), ("bernoulli_prob", "bernoulli"), ("binary:logistic", "bernoulli"),
        ("log_loss", "bernoulli"), ("BI", "binomial"), ("normal", "gaussian"), ("NO", "gaussian"),
        ("reg:squarederror", "gaussian"), ("regression", "gaussian"), ("squared_error", "gaussian"),
        ("count:poisson", "poisson"), ("reg:gamma", "gamma"), ("nb", "negative_binomial"),
        ("quasipoisson", "negative_binomial_1"), ("NegativeBinomial", "negative_binomial"), ("NBI", "negative_binomial"), ("negbin", "negative_binomial"),
        ("betar", "beta"), ("BE", "beta"), ("ziP", "zero_inflated_poisson"), ("ZINB", "zero_inflated_negative_binomial"),
        ("scat", "student_t"), ("TF", "student_t"), ("gaulss", "gaussian_ls"), ("gammals", "gamma_ls"),
        ("inverse.gaussian", "inverse_gaussian"), ("InverseGaussian", "inverse_gaussian"), ("LOGNO", "lognormal"),
        ("WEI", "weibull"), ("cox.ph", "cox"), ("survival:cox", "cox"), ("coxph", "cox"), ("absolute_error", "laplace"), ("hurdle", "hurdle_poisson"), ("ziplss", "hurdle_poisson"), ("tw", "tweedie"), ("reg:tweedie", "tweedie"),
    ],
)  # fmt: skip
def test_a_family_by_the_name_that_others_have_for_it(name: str, family: str) -> None:
    with pytest.raises(DataError, match=f"Here it is called `{family}`"):
        get_family(name)


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("compoisson", "negative_binomial"), ("pig", "negative_binomial"), ("quasibinomial", "binomial"),
        ("betabinomial", "binomial"), ("huber", "student_t"), ("cauchy", "student_t"),
        ("gevlss", "shash"), ("skewnormal", "shash"), ("ZAGA", "tweedie"),
    ],
)  # fmt: skip
def test_a_family_that_is_not_here_has_a_nearest_one(name: str, nearest: str) -> None:
    with pytest.raises(DataError, match=f"not here yet; nearest is `{nearest}`.* assumes") as caught:
        get_family(name)
    assert "Did you mean" not in str(caught.value)


# All families of mgcv 1.9, of gamlss.dist 6.1 (without those of mixtures and truncations), glmmTMB 1.1.
ELSEWHERE = {
    "mgcv": (
        "Tweedie tw negbin nb betar scat ocat ziP cox.ph cnorm cpois clog bcg gaulss gammals gumbls gevlss "
        "gfam mvn multinom shash twlss ziplss quasi quasipoisson quasibinomial inverse.gaussian Gamma"
    ),
    "gamlss": (
        "NO NO2 NOF LO GU RG TF TF2 PE PE2 SN1 SN2 exGAUS NET SHASH SHASHo SHASHo2 JSU JSUo SEP SEP1 SEP2 "
        "SEP3 SEP4 ST1 ST2 ST3 ST4 ST5 SST GT EGB2 LNO LOGNO LOGNO2 GA IG WEI WEI2 WEI3 EXP PARETO PARETO2 "
        "GG GIG IGAMMA BCCG BCCGo BCPE BCPEo BCT BCTo GB2 GP ZAGA ZAIG BE BEo BEINF BEINF0 BEINF1 BEOI BEZI "
        "LOGITNO SIMPLEX PO NBI NBII NBF GEOM GEOMo GPO DPO PIG PIG2 DEL SI SICHEL WARING YULE ZIP ZIP2 ZIPF "
        "ZAP ZINBI ZANBI ZINBF ZAZIPF ZIPIG ZASICHEL ZISICHEL LG ZALG DBURR12 BI BB DBI ZIBI ZABI ZIBB ZABB "
        "MN3 MN4 MN5 MULTIN"
    ),
    "glmmTMB": (
        "genpois compois nbinom1 nbinom2 truncated_poisson truncated_nbinom1 truncated_nbinom2 betabinomial "
        "beta_family ordbeta t_family tweedie lognormal skewnormal ziGamma"
    ),
}


@pytest.mark.parametrize("package", ELSEWHERE)
def test_every_family_of_others_is_answered(package: str) -> None:
    left = {"ziGamma"}  # a gamma distribution that an argument adds zeros to
    for name in ELSEWHERE[package].split():
        if name.lower() in FAMILIES or name in left:
            continue
        with pytest.raises(DataError, match=r"Here it is called|not here") as caught:
            get_family(name)
        for own in re.findall("`([a-z_0-9]+)`", str(caught.value).partition(" Known families")[0]):
            assert own in FAMILIES, (name, own)


def test_no_name_of_others_is_told_two_things() -> None:
    told = [*names._SAME, *names._ADVICE]
    written = [*names._OTHER_NAMES.values(), *names._NOT_HERE.values()]
    assert len(told) == len(set(told)) == sum(len(own.split()) for own in written)
    assert all(name == names._spoken(name) and name not in FAMILIES for name in told)


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("ocat(R=4)", "Here it is called `ordinal`"),
        ("genpois", "Here it is called `generalized_poisson`"),
        ("quasi", "`negative_binomial_1` for counts and of `tweedie`"),
        ("qasipoisson", r"Did you mean `quasipoisson`\? Here it is called `negative_binomial_1`"),
        ("gumbels", r"Did you mean `gumbls`\? This distribution is not here yet; nearest is `shash`"),
    ],
)
def test_names_of_others_may_be_calls_or_misspelt(name: str, answer: str) -> None:
    with pytest.raises(DataError, match=answer):
        get_family(name)


@pytest.mark.parametrize(
    ("name", "meant"),
    [("gausian", "gaussian"), ("Gaussian", "gaussian"), ("poison", "poisson"), ("bernouli", "bernoulli"),
     ("gama", "gamma")],
)  # fmt: skip
def test_a_typing_error_is_told(name: str, meant: str) -> None:
    with pytest.raises(DataError, match=rf"Did you mean `{meant}`\?"):
        get_family(name)


class Poisson:
    """As other packages have it: a family is an object."""


@pytest.mark.parametrize("family", [Poisson(), Poisson])
def test_an_object_for_a_family(family: object) -> None:
    with pytest.raises(DataError, match=r"Did you mean `poisson`\?"):
        get_family(family)  # type: ignore[arg-type]
