"""Families of several parameters, all that are registered: densities, moments, scores, starts, CRPS."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import product
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from scipy import special, stats

import ahofm_keras as ak
from ahofm_keras.errors import DataError
from ahofm_keras.families import FAMILIES, Family, get_family
from ahofm_keras.families.suggestions import suggest_family
from tests.families.cases import SEVERAL

every_family = pytest.mark.parametrize("name", SEVERAL)
Values = dict[str, Any]


def zero_inflated(counts: Callable[[Values], Any]) -> Callable[[Any, Values], Any]:
    def log(y: Any, p: Values) -> Any:
        chance = (1 - p["zero"]) * counts(p).pmf(y)
        return np.log(np.where(y == 0, p["zero"] + chance, chance))

    return log


def nbinom(p: Values) -> Any:
    return stats.nbinom(1 / p["dispersion"], 1 / (1 + p["dispersion"] * p["mean"]))


def nbinom_1(p: Values) -> Any:
    return stats.nbinom(p["mean"] / p["dispersion"], 1 / (1 + p["dispersion"]))


def generalized_poisson(y: Any, p: Values) -> Any:
    """Consul and Jain's formula, term by term."""
    share = 1 / np.sqrt(1 + p["dispersion"])
    a, b = p["mean"] * share, 1 - share
    return np.log(a) + (y - 1) * np.log(a + b * y) - a - b * y - special.gammaln(y + 1)


def shash(y: Any, p: Values) -> Any:
    """A normal variable is made of the response, whose slope is that of its density."""
    z = (y - p["loc"]) / (p["scale"] * p["tail"])
    inner = p["tail"] * np.arcsinh(z) - p["skewness"]
    slope = np.cosh(inner) / np.sqrt(1 + z**2) / p["scale"]
    return stats.norm.logpdf(np.sinh(inner)) + np.log(slope)


def hurdle(y: Any, p: Values) -> Any:
    above = (1 - p["zero"]) * stats.poisson.pmf(y, p["mean"]) / stats.poisson.sf(0, p["mean"])
    return np.log(np.where(y == 0, p["zero"], above))


def tweedie(y: Any, p: Values) -> Any:
    """A poisson number of gamma amounts, summed over numbers up to 2,000."""
    mean, dispersion, power = (np.asarray(p[key])[..., None] for key in ("mean", "dispersion", "power"))
    rate = mean ** (2 - power) / dispersion / (2 - power)
    shape, scale = (2 - power) / (power - 1), dispersion * (power - 1) * mean ** (power - 1)
    count, y = np.arange(1.0, 2001), np.asarray(y)[..., None]
    amounts = stats.gamma.logpdf(np.where(y > 0, y, 1.0), count * shape, scale=scale)
    above = special.logsumexp(stats.poisson.logpmf(count, rate) + amounts, axis=-1)
    return np.where(y[..., 0] > 0, above, -rate[..., 0])


# The logarithmic density of each family by SciPy, from the definition of its parameters.
ORACLES: dict[str, Callable[[Any, Values], Any]] = {
    "gaussian_ls": lambda y, p: stats.norm.logpdf(y, p["loc"], p["scale"]),
    "gamma_ls": lambda y, p: stats.gamma.logpdf(
        y, p["scale"] ** -2.0, scale=p["mean"] * p["scale"] ** 2
    ),
    "student_t": lambda y, p: stats.t.logpdf((y - p["loc"]) / p["scale"], p["df"]) - np.log(p["scale"]),
    "laplace": lambda y, p: -np.abs(y - p["loc"]) / p["scale"] - np.log(2 * p["scale"]),
    "logistic": lambda y, p: stats.logistic.logpdf(y, p["loc"], p["scale"]),
    "lognormal": lambda y, p: stats.norm.logpdf(np.log(y), p["loc"], p["scale"]) - np.log(y),
    "inverse_gaussian": lambda y, p: (
        -((y - p["mean"]) ** 2) / (2 * p["scale"] ** 2 * p["mean"] ** 2 * y)
        - np.log(2 * np.pi * p["scale"] ** 2 * y**3) / 2
    ),
    "weibull": lambda y, p: stats.weibull_min.logpdf(y, p["shape"], scale=p["scale"]),
    "beta": lambda y, p: stats.beta.logpdf(
        y, p["mean"] * p["precision"], (1 - p["mean"]) * p["precision"]
    ),
    "negative_binomial": lambda y, p: nbinom(p).logpmf(y),
    "negative_binomial_1": lambda y, p: nbinom_1(p).logpmf(y),
    "generalized_poisson": generalized_poisson,
    "shash": shash,
    "zero_inflated_poisson": zero_inflated(lambda p: stats.poisson(p["mean"])),
    "zero_inflated_negative_binomial": zero_inflated(nbinom),
    "hurdle_poisson": hurdle,
    "tweedie": tweedie,
}
# Mean and variance from the definition of the parameters.
VARIANCES: dict[str, Callable[[Values], Any]] = {
    "gaussian_ls": lambda p: p["scale"] ** 2,
    "gamma_ls": lambda p: (p["mean"] * p["scale"]) ** 2,
    "laplace": lambda p: 2 * p["scale"] ** 2,
    "inverse_gaussian": lambda p: p["scale"] ** 2 * p["mean"] ** 3,
    "beta": lambda p: p["mean"] * (1 - p["mean"]) / (1 + p["precision"]),
    "negative_binomial": lambda p: p["mean"] + p["dispersion"] * p["mean"] ** 2,
    "negative_binomial_1": lambda p: p["mean"] * (1 + p["dispersion"]),
    "generalized_poisson": lambda p: p["mean"] * (1 + p["dispersion"]),
    "tweedie": lambda p: p["dispersion"] * p["mean"] ** p["power"],
}
# Families with a closed form of the CRPS.
CLOSED = {
    "gaussian_ls", "gamma_ls", "student_t", "laplace", "logistic", "lognormal", "negative_binomial",
    "zero_inflated_poisson", "zero_inflated_negative_binomial", "hurdle_poisson", "weibull", "beta",
    "negative_binomial_1",
}  # fmt: skip

# Predictors of ordinary parameters, by link; of some parameters others, where moments exist.
ETAS = {
    "identity": (-1.3, 0.4),
    "log": (-0.7, 0.3, 1.2),
    "logit": (-1.1, 0.4),
    "log_above_2": (1.0, 2.5),
    "logit_1_2": (-1.0, 0.6),
}
OTHER_ETAS = {
    ("lognormal", "scale"): (-0.7, 0.1),
    ("beta", "precision"): (1.0, 2.5),
    ("weibull", "shape"): (0.1, 1.1),
    ("shash", "skewness"): (-0.6, 0.4),
    ("shash", "tail"): (-0.3, 0.2),
}
# Probabilities at which panels of a quadrature meet.
TAILS = np.array([1e-14, 1e-12, 1e-10, 1e-8, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.05, 0.15, 0.3, 0.5])
NODES, WEIGHTS = np.polynomial.legendre.leggauss(40)


def cases(name: str) -> list[Values]:
    """Ordinary parameters, each with each."""
    family = get_family(name)
    etas = [OTHER_ETAS.get((name, key), ETAS[link.name]) for key, link in family.parameters.items()]
    return [
        {
            key: float(link.inverse(eta, np))
            for (key, link), eta in zip(family.parameters.items(), at, strict=True)
        }
        for at in product(*etas)
    ]


def typical(name: str) -> Values:
    return cases(name)[len(cases(name)) // 2]


def full(values: Values, like: np.ndarray) -> dict[str, np.ndarray]:
    return {key: np.full(np.shape(like), value) for key, value in values.items()}


def breaks(distribution: Any) -> np.ndarray:
    ends = np.concatenate([distribution.ppf(TAILS), distribution.isf(TAILS)])
    return np.unique(ends[np.isfinite(ends)])


def places(family: Family, values: Values) -> tuple[np.ndarray, np.ndarray]:
    """Where a sum over all responses is taken, and with which weights."""
    distribution = family.distribution_of(values)
    if family.discrete:
        y = np.arange(float(distribution.isf(1e-14)) + 2)
        return y, np.ones_like(y)
    ends, logarithmic = breaks(distribution), family.bounds[0] == 0
    atom = float(distribution.cdf(0.0)) if logarithmic else 0.0
    if atom > 0:
        ends = np.unique(
            np.concatenate([ends[ends > 0], ends[ends > 0].min() * 0.5 ** np.arange(1, 60)])
        )
    if logarithmic:
        ends = np.log(ends)
    half = (np.diff(ends) / 2)[:, None]
    at = (ends[:-1, None] + half * (1 + NODES)).ravel()
    weight = (half * WEIGHTS).ravel()
    y, weight = (np.exp(at), weight * np.exp(at)) if logarithmic else (at, weight)
    return (np.append(0.0, y), np.append(1.0, weight)) if atom > 0 else (y, weight)


def density(family: Family, y: np.ndarray, values: Values) -> np.ndarray:
    """Of the family itself."""
    return np.exp(family.log_density(y, full(values, y)) + family.log_constant(y))


def some_responses(family: Family, values: Values) -> np.ndarray:
    quantiles = family.distribution_of(values).ppf([0.001, 0.07, 0.31, 0.55, 0.83, 0.97, 0.9999])
    return np.unique(quantiles)


def test_every_family_has_an_oracle() -> None:
    assert set(SEVERAL) == set(ORACLES) & set(FAMILIES)
    assert set(SEVERAL) >= {"gaussian_ls", "gamma_ls", "student_t", "negative_binomial", "beta"}


@every_family
def test_what_a_family_says_of_itself(name: str) -> None:
    family = get_family(name)
    assert family.name == name
    assert family.dispersion_known
    assert set(family.aliases.values()) <= set(family.links)
    assert not set(family.aliases) & set(family.links)
    assert {"mu", "sigma"} <= set(family.aliases) | set(family.links)


# Density and distribution


@every_family
def test_density_and_constant_are_the_oracles(name: str) -> None:
    family = get_family(name)
    for values in cases(name):
        y = some_responses(family, values)
        found = family.log_density(y, full(values, y)) + family.log_constant(y)
        wanted = ORACLES[name](y, full(values, y))
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)
        distribution = family.distribution_of(full(values, y))
        log = distribution.logpmf if family.discrete else distribution.logpdf
        np.testing.assert_allclose(log(y), wanted, rtol=1e-9, atol=1e-9)
        given = (distribution.pmf if family.discrete else distribution.pdf)(y)
        np.testing.assert_allclose(given, np.exp(wanted), rtol=1e-7)


@every_family
def test_moments_are_those_of_the_density(name: str) -> None:
    family = get_family(name)
    for values in cases(name):
        y, weight = places(family, values)
        chance = weight * density(family, y, values)
        assert chance.sum() == pytest.approx(1, abs=1e-8)
        distribution = family.distribution_of(values)
        mean = chance @ y
        spread = float(distribution.std())
        assert mean == pytest.approx(float(family.mean_of(values)), abs=1e-5 * spread, rel=1e-5)
        assert mean == pytest.approx(float(distribution.mean()), abs=1e-5 * spread, rel=1e-5)
        variance = chance @ (y - mean) ** 2
        # Of heavy tails a little lies beyond the places.
        assert variance == pytest.approx(spread**2, rel=1e-3)
        if name in VARIANCES:
            assert spread**2 == pytest.approx(float(VARIANCES[name](values)), rel=1e-9)


@every_family
def test_cumulative_probabilities_are_sums_of_the_density(name: str) -> None:
    family = get_family(name)
    for values in cases(name)[::3]:
        distribution = family.distribution_of(values)
        y, weight = places(family, values)
        chance = weight * density(family, y, values)
        ends = np.arange(6.0) if family.discrete else breaks(distribution)[[8, 10, 12, 14]]
        for end in ends:
            assert float(distribution.cdf(end)) == pytest.approx(chance[y <= end].sum(), abs=1e-8)
            assert float(distribution.sf(end)) == pytest.approx(chance[y > end].sum(), abs=1e-8)


@every_family
def test_quantiles_undo_cumulative_probabilities(name: str) -> None:
    family = get_family(name)
    for values in cases(name)[::2]:
        distribution = family.distribution_of(values)
        if family.discrete:
            y = np.arange(12.0)
            np.testing.assert_array_equal(distribution.ppf(distribution.cdf(y)), y)
            np.testing.assert_array_equal(distribution.isf(distribution.sf(y) * (1 + 1e-9)), y)
            continue
        chances = np.array([1e-6, 0.02, 0.3, 0.5, 0.9, 0.999])
        chances = chances[chances > float(distribution.cdf(family.bounds[0]))]
        np.testing.assert_allclose(distribution.cdf(distribution.ppf(chances)), chances, rtol=1e-6)
        upper = chances[chances < 1 - float(distribution.cdf(family.bounds[0]))]
        np.testing.assert_allclose(distribution.sf(distribution.isf(upper)), upper, rtol=1e-6)
        low, high = distribution.interval(0.8)
        np.testing.assert_allclose([low, high], distribution.ppf([0.1, 0.9]), rtol=1e-9)


@every_family
def test_draws_have_the_moments(name: str) -> None:
    family = get_family(name)
    values = typical(name)
    distribution = family.distribution_of(values)
    rng = np.random.default_rng(1)
    y = np.asarray(distribution.rvs(size=20_000, random_state=rng), float)
    assert y.shape == (20_000,)
    assert family.support(y).all()
    error = float(distribution.std()) / np.sqrt(len(y))
    assert abs(y.mean() - float(distribution.mean())) < 4 * error
    assert np.var(y) == pytest.approx(float(distribution.var()), rel=0.15)
    rows = family.distribution_of(full(values, np.zeros(3)))
    assert np.shape(rows.rvs(random_state=rng)) == (3,)
    assert np.shape(rows.mean()) == np.shape(rows.ppf(0.5)) == (3,)


# Score and information


@every_family
def test_the_score_is_the_slope_of_the_log_density(name: str) -> None:
    family = get_family(name)
    for values in cases(name):
        y = some_responses(family, values)
        score = family.score(y, full(values, y))
        assert list(score) == list(family.links)
        for key, value in values.items():
            step = 1e-4 * min(abs(value), 1 - value if key == "zero" else np.inf)
            at = [
                family.log_density(y, full({**values, key: value + side * step}, y))
                for side in (-2, -1, 1, 2)
            ]
            wanted = (at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * step)
            np.testing.assert_allclose(score[key], wanted, rtol=1e-6, atol=1e-8 / step * 1e-3)


@every_family
def test_the_information_is_the_expected_square_of_the_score(name: str) -> None:
    family = get_family(name)
    for values in cases(name):
        y, weight = places(family, values)
        chance = weight * density(family, y, values)
        score = family.score(y, full(values, y))
        found = family.information(y[:2], full(values, y[:2]))
        assert list(found) == list(family.links)
        for key in values:
            assert abs(chance @ score[key]) < 1e-4 * np.sqrt(chance @ score[key] ** 2)
            wanted = chance @ score[key] ** 2
            np.testing.assert_allclose(found[key], wanted, rtol=0.03 if name == "tweedie" else 1e-4)


@every_family
def test_the_information_of_many_rows_is_that_of_each(name: str) -> None:
    family = get_family(name)
    rng = np.random.default_rng(0)
    etas = {
        key: rng.uniform(*np.sort(ETAS[link.name])[[0, -1]], 3000)
        for key, link in family.parameters.items()
    }
    parameters = family.inverse_links(etas)
    y = np.asarray(family.distribution_of(parameters).ppf(0.6), float)
    every = family.information(y, parameters)
    for row in (0, 7, 1234, 2999):
        one = family.information(y[row : row + 1], {k: v[row : row + 1] for k, v in parameters.items()})
        for key in parameters:
            np.testing.assert_allclose(
                every[key][row], one[key][0], rtol=0.01 if name == "tweedie" else 1e-5
            )


# Extremes and Keras


def extreme(name: str, size: float) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Every response beside every corner of the predictors."""
    family = get_family(name)
    y = {
        (-np.inf, np.inf): (-1e6, -1.0, 0.0, 0.3, 1e6),
        (0, np.inf): (0.0, 1.0, 7.0, 1e5) if family.support(np.zeros(1))[0] else (1e-8, 1.0, 7.0, 1e8),
        (0, 1): (1e-8, 0.5, 1 - 1e-8),
    }[family.bounds]
    grid = np.array(list(product(y, *[(-size, -1.0, size)] * len(family.links))))
    return grid[:, 0], {key: grid[:, place + 1] for place, key in enumerate(family.links)}


@every_family
@pytest.mark.parametrize("size", [3.0, 40.0, 300.0, 800.0])
def test_extreme_predictors_have_finite_densities_and_gradients(name: str, size: float) -> None:
    family = get_family(name)
    y, etas = extreme(name, size)
    wanted = family.log_density(y, family.inverse_links(etas))
    assert np.isfinite(wanted).all()
    variables = {key: tf.Variable(eta) for key, eta in etas.items()}
    with tf.GradientTape() as tape:
        found = family.log_density(tf.constant(y), family.inverse_links(variables, keras.ops), keras.ops)
    assert found.dtype == tf.float64
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-10, atol=1e-10)
    for key, slope in tape.gradient(found, variables).items():
        assert slope is not None
        assert np.isfinite(slope.numpy()).all(), key


@every_family
def test_the_gradient_in_keras_is_the_score(name: str) -> None:
    family = get_family(name)
    y, etas = extreme(name, 3.0)
    parameters = family.inverse_links(etas)
    variables = {key: tf.Variable(value) for key, value in parameters.items()}
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(family.log_density(tf.constant(y), variables, keras.ops))
    found, score = tape.gradient(total, variables), family.score(y, parameters)
    for key in parameters:
        wanted = score[key]
        noise = 1e-5 if name == "tweedie" else 1e-8
        gap = np.abs(found[key].numpy() - wanted)
        assert (gap <= noise * (1 + np.abs(wanted) + np.abs(y))).all(), key


@every_family
@pytest.mark.parametrize("size", [3.0, 40.0])
def test_steps_from_extreme_predictors_are_finite(name: str, size: float) -> None:
    y, etas = extreme(name, size)
    for weight, response in get_family(name).working(y, etas).values():
        assert np.isfinite(weight).all()
        assert np.isfinite(response).all()
        assert (weight >= 0).all()


@every_family
def test_shapes_are_broadcast(name: str) -> None:
    family = get_family(name)
    values = typical(name)
    y = some_responses(family, values)
    column = {key: np.full((4, 1), value) for key, value in values.items()}
    found = family.log_density(y, column)
    assert found.shape == (4, len(y))
    np.testing.assert_allclose(found[2], family.log_density(y, full(values, y)), rtol=1e-12)


# JSON, links, support, start


@every_family
def test_every_link_of_every_parameter_is_inside_its_range(name: str) -> None:
    cls = FAMILIES[name]
    for parameter, links in cls.links.items():
        known = cls().parameters[parameter].range
        for link in links:
            family = cls({parameter: link})
            assert family.parameters[parameter].name == link
            # A location on the whole line may be held above 0; of others the range is what it is.
            assert parameter in ("loc", "mean") or family.parameters[parameter].range == known


@every_family
def test_the_names_of_others_are_heard_in_links(name: str) -> None:
    cls = FAMILIES[name]
    for other, own in cls.aliases.items():
        link = cls.links[own][-1]
        assert cls({other: link}).parameters[own].name == link


def test_a_link_that_does_not_fit_is_told() -> None:
    with pytest.raises(DataError) as caught:
        ak.families.GaussianLS({"sd": "identity"})
    assert str(caught.value) == (
        "The gaussian_ls family cannot have the link 'identity' for its scale. It can have: `log`, "
        "`softplus`."
    )
    with pytest.raises(DataError, match="The parameter `scale` of the gaussian_ls family has two links"):
        ak.families.GaussianLS({"sd": "log", "scale": "softplus"})
    with pytest.raises(DataError, match=r"no parameter 'scal'. Did you mean `scale`\?"):
        ak.families.GaussianLS({"scal": "log"})
    with pytest.raises(
        DataError, match=r"Did you mean `sigma`, which is `scale` here\? It has: `loc`, `scale`"
    ):
        ak.families.GaussianLS({"sgima": "log"})


@every_family
def test_json_and_back(name: str) -> None:
    cls = FAMILIES[name]
    for parameter, links in cls.links.items():
        for link in links:
            family = cls({parameter: link})
            again = get_family(json.loads(json.dumps(family.to_json())))
            assert again == family
            assert again.parameters[parameter].name == link
            assert eval(repr(family), vars(ak.families)) == family


@every_family
def test_a_response_outside_is_told(name: str) -> None:
    family = get_family(name)
    inside = np.full(6, 0.5 if family.bounds == (0, 1) else 1.0)
    family.check_response(inside, "y")
    outside = [np.nan, np.inf, -np.inf]
    outside += [-1.0] if family.bounds[0] == 0 else []
    outside += [1.0, 1.5, 0.0] if family.bounds == (0, 1) else []
    outside += [0.5] if family.discrete else []
    for value in outside:
        y = inside.copy()
        y[[3, 4]] = value
        with pytest.raises(DataError) as caught:
            family.check_response(y, "y")
        assert str(caught.value) == (
            f"The response `y` of the {name} family must be {family.support_text}, but 2 of 6 values "
            f"are not; first at row 3: {value:g}.{suggest_family(y)}"
        )


@every_family
def test_starts_are_near_the_truth(name: str) -> None:
    family = get_family(name)
    for values in cases(name)[:: max(len(cases(name)) // 3, 1)]:
        rng = np.random.default_rng(5)
        y = np.asarray(family.distribution_of(values).rvs(size=40_000, random_state=rng), float)
        found = family.start_values(y)
        assert list(found) == list(family.links)
        spread = float(family.distribution_of(values).std())
        for key, value in values.items():
            near = 0.05 * spread if key == "loc" else 0.25 * abs(value)
            assert abs(found[key] - value) < near, (key, found, values)


@every_family
def test_a_weight_of_2_is_a_row_twice(name: str) -> None:
    family = get_family(name)
    rng = np.random.default_rng(2)
    y = np.asarray(family.distribution_of(typical(name)).rvs(size=2000, random_state=rng), float)
    weight = rng.integers(1, 3, len(y)).astype(float)
    found = family.start_values(y, weight)
    wanted = family.start_values(np.repeat(y, weight.astype(int)))
    for key in found:
        assert found[key] == pytest.approx(wanted[key], rel=2e-2)


@every_family
@pytest.mark.parametrize("rows", [1, 50])
def test_starts_of_odd_responses_are_inside(name: str, rows: int) -> None:
    family = get_family(name)
    values = [0.5, 1e-9, 1 - 1e-9] if family.bounds == (0, 1) else [0.0, 1.0, 3.0, 1e6, 1e-9, -4.0, 1e12]
    for value in values:
        y = np.full(rows, value)
        if not family.support(y).all():
            continue
        for key, start in family.start_values(y).items():
            link = family.parameters[key]
            assert link.range[0] < start < link.range[1]
            assert np.isfinite(link.function(np.asarray(start), np))


# Scores


@every_family
def test_the_crps_is_its_integral(name: str) -> None:
    family = get_family(name)
    assert (FAMILIES[name].crps is not Family.crps) == (name in CLOSED)
    for values in cases(name)[:: 2 if name in CLOSED else 7]:
        distribution = family.distribution_of(values)
        x, weight = places(family, values)
        ends = breaks(distribution)
        chosen = ends[(np.array([0.3, 0.4, 0.55, 0.7]) * len(ends)).astype(int)]
        if family.discrete:
            chosen = np.array([0.0, 1, 3, 9])
        elif x[0] == 0:
            weight = np.append(0.0, weight[1:])  # the atom has a chance, but no length
        found = family.crps(chosen, full(values, chosen))
        for y, score in zip(chosen, found, strict=True):
            below = np.asarray(distribution.cdf(x))
            square = np.where(x >= y, np.asarray(distribution.sf(x)) ** 2, below**2)
            beyond = max(0.0, y - x[-1]) if family.discrete else 0.0
            assert score == pytest.approx(weight @ square + beyond, rel=1e-5)


@pytest.mark.parametrize("name", sorted(CLOSED))
def test_the_crps_by_cumulative_probabilities_is_the_closed_form(name: str) -> None:
    family = get_family(name)
    for values in cases(name)[::3]:
        y = np.append(some_responses(family, values), 40.0 if family.bounds[1] > 1 else 0.999)
        parameters = full(values, y)
        found = Family.crps(family, y, parameters)
        np.testing.assert_allclose(found, family.crps(y, parameters), rtol=1e-5)
        assert (found > 0).all()


def test_the_crps_of_many_counts_is_a_sum_or_an_integral() -> None:
    family = get_family("negative_binomial")
    y = np.array([10.0, 3000.0, 9000.0])
    for mean, close in ((700.0, 1e-6), (8000.0, 1e-4)):
        parameters = full({"mean": mean, "dispersion": 0.05}, y)
        np.testing.assert_allclose(
            Family.crps(family, y, parameters), family.crps(y, parameters), rtol=close
        )
