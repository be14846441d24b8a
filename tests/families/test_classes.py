"""Families of classes: probabilities by brute force, scores, labels, starts."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import keras
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from scipy import special, stats

from ahofm_keras.errors import AhofmWarning, DataError
from ahofm_keras.families import Bernoulli, Categorical, Family, Ordinal, get_family

LABELS = ["a", "b", "c", "d"]
FAMILIES = {
    **{f"categorical {k}": Categorical(classes=LABELS[:k]) for k in (2, 3, 4)},
    **{f"ordinal {k}": Ordinal(classes=LABELS[:k]) for k in (2, 3, 4)},
    **{f"probit {k}": Ordinal("probit", classes=LABELS[:k]) for k in (2, 3, 4)},
    **{f"cloglog {k}": Ordinal("cloglog", classes=LABELS[:k]) for k in (2, 4)},
}
every_family = pytest.mark.parametrize("name", FAMILIES)


def brute_force(family: Family, p: dict[str, float]) -> np.ndarray:
    """The probability of each class, from the definition."""
    if isinstance(family, Categorical):
        return special.softmax([0.0, *p.values()])
    own = {"logit": stats.logistic, "probit": stats.norm, "cloglog": stats.gumbel_l}[family.link]
    loc, *widths = p.values()
    at = np.cumsum([0.0, *widths]) - loc
    below, above = np.array([0.0, *own.cdf(at), 1.0]), np.array([1.0, *own.sf(at), 0.0])
    return np.where(below[1:] < 0.5, np.diff(below), -np.diff(above))  # the tail that has more digits


def cases(family: Family) -> list[dict[str, float]]:
    etas = [(-1.3, 0.4, 2.1) if link.is_identity else (0.2, 1.7) for link in family.parameters.values()]
    return [dict(zip(family.parameters, at, strict=True)) for at in product(*etas)]


def full(p: dict[str, float], rows: int) -> dict[str, np.ndarray]:
    return {key: np.full(rows, value) for key, value in p.items()}


@every_family
def test_probabilities_are_those_of_the_definition(name: str) -> None:
    family = FAMILIES[name]
    y = np.arange(len(family.classes), dtype=float)
    for p in cases(family):
        wanted = brute_force(family, p)
        np.testing.assert_allclose(family.probabilities(full(p, 2)), [wanted] * 2, rtol=1e-12)
        np.testing.assert_allclose(family.log_density(y, full(p, len(y))), np.log(wanted), rtol=1e-10)
        distribution = family.distribution_of(full(p, len(y)))
        np.testing.assert_allclose(distribution.pmf(y), wanted, rtol=1e-12)
        np.testing.assert_allclose(distribution.cdf(y), np.cumsum(wanted), rtol=1e-12)
        known = wanted > 1e-9  # others are lost in the rounding of a sum of 1
        np.testing.assert_array_equal(distribution.ppf(distribution.cdf(y))[known], y[known])
        assert distribution.mean()[0] == pytest.approx(wanted @ y)
        assert distribution.var()[0] == pytest.approx(wanted @ (y - wanted @ y) ** 2)


@every_family
def test_scores_are_slopes_and_informations_expected_squares(name: str) -> None:
    family = FAMILIES[name]
    y, step = np.arange(len(family.classes), dtype=float), 1e-5
    for p in cases(family):
        score, information = family.score(y, full(p, len(y))), family.information(y, full(p, len(y)))
        chance = brute_force(family, p)
        assert list(score) == list(information) == list(family.parameters)
        for key in p:
            ends = [family.log_density(y, full({**p, key: p[key] + s}, len(y))) for s in (step, -step)]
            np.testing.assert_allclose(score[key], (ends[0] - ends[1]) / (2 * step), atol=1e-8)
            assert chance @ score[key] == pytest.approx(0, abs=1e-12)
            np.testing.assert_allclose(information[key], chance @ score[key] ** 2, rtol=1e-9)


@every_family
def test_parameters_may_come_in_any_order(name: str) -> None:
    family = FAMILIES[name]
    y = np.arange(len(family.classes), dtype=float)
    p = full(cases(family)[1], len(y))
    turned = dict(reversed(p.items()))
    np.testing.assert_array_equal(family.log_density(y, turned), family.log_density(y, p))
    np.testing.assert_array_equal(family.probabilities(turned), family.probabilities(p))
    for key in p:
        np.testing.assert_array_equal(family.score(y, turned)[key], family.score(y, p)[key])
        np.testing.assert_array_equal(family.information(y, turned)[key], family.information(y, p)[key])


@every_family
@pytest.mark.parametrize("size", [3.0, 40.0, 300.0, 800.0])
def test_extreme_predictors_in_numpy_and_keras(name: str, size: float) -> None:
    family = FAMILIES[name]
    ends = [(-size, -1.0, size)] * len(family.parameters)
    grid = np.array(list(product(range(len(family.classes)), *ends)), float)
    y, etas = grid[:, 0], dict(zip(family.parameters, grid[:, 1:].T, strict=True))
    wanted = family.log_density(y, family.inverse_links(etas))
    assert np.isfinite(wanted).all()
    variables = {key: tf.Variable(eta) for key, eta in etas.items()}
    with tf.GradientTape() as tape:
        parameters = family.inverse_links(variables, keras.ops)
        found = family.log_density(tf.constant(y), parameters, keras.ops)
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-10, atol=1e-12)
    for key, slope in tape.gradient(found, variables).items():
        assert np.isfinite(slope.numpy()).all(), key
    chances = family.probabilities(family.inverse_links(variables, keras.ops), keras.ops).numpy()
    np.testing.assert_allclose(chances.sum(axis=-1), 1, rtol=1e-9)
    if size <= 40:
        for weight, response in family.working(y, etas).values():
            assert np.isfinite(weight).all()
            assert np.isfinite(response).all()
            assert (weight >= 0).all()


@every_family
def test_the_gradient_in_keras_is_the_score(name: str) -> None:
    family = FAMILIES[name]
    for p in cases(family)[::2]:
        y = np.arange(len(family.classes), dtype=float)
        variables = {key: tf.Variable(value) for key, value in full(p, len(y)).items()}
        with tf.GradientTape() as tape:
            total = tf.reduce_sum(family.log_density(tf.constant(y), variables, keras.ops))
        for key, slope in tape.gradient(total, variables).items():
            np.testing.assert_allclose(slope.numpy(), family.score(y, full(p, len(y)))[key], atol=1e-9)


@pytest.mark.parametrize("place", [-30.0, -6.0, 0.0, 0.4, 6.0, 30.0])
@pytest.mark.parametrize("width", [1e-12, 1e-4, 0.02, 0.06, 0.5, 5.0, 80.0])
def test_a_normal_variable_between_thresholds_keeps_its_digits(place: float, width: float) -> None:
    """Against an integral of the density over the class, divided by its largest value there."""
    family = Ordinal("probit", classes=LABELS[:3])
    low, high = place, place + width
    top = min(max(low, 0.0), high)
    nodes, weights = np.polynomial.legendre.leggauss(60)
    # All that counts lies near the largest density.
    low, high = max(low, top - 12.0), min(high, top + 12.0)
    span = min(high - low, width) if width > 0.01 else width  # a difference has lost digits
    at = low + span / 2 * (1 + nodes)
    inside = weights @ np.exp((top**2 - at**2) / 2) * span / 2
    wanted = np.log(inside) - top**2 / 2 - np.log(2 * np.pi) / 2
    parameters = {"loc": np.array([-place]), "width_b": np.array([width])}
    found = family.log_density(np.array([1.0]), parameters)[0]
    assert found == pytest.approx(wanted, rel=1e-9, abs=1e-9)
    score = family.score(np.array([1.0]), parameters)["width_b"][0]
    density = np.exp(-((place + width) ** 2) / 2 - wanted) / np.sqrt(2 * np.pi)
    assert score == pytest.approx(density, rel=1e-5, abs=1e-9)


@every_family
def test_the_start_has_the_shares_of_the_classes(name: str) -> None:
    family = FAMILIES[name]
    counts = np.array([7, 3, 12, 5])[: len(family.classes)]
    y = np.repeat(np.arange(len(counts)), counts).astype(float)
    start = family.start_values(y)
    np.testing.assert_allclose(brute_force(family, start), counts / counts.sum(), rtol=1e-9)
    weight = np.linspace(1, 2, len(y))
    weighted = np.bincount(y.astype(int), weights=weight)
    found = brute_force(family, family.start_values(y, weight))
    np.testing.assert_allclose(found, weighted / weighted.sum(), rtol=1e-9)
    assert all(np.isfinite(v) for v in family.start_values(np.zeros(4)).values())


def test_two_classes_are_a_bernoulli_response() -> None:
    eta, y = np.linspace(-3, 3, 8), np.tile([0.0, 1.0], 4)
    bernoulli = Bernoulli()
    mean = bernoulli.inverse_link(eta)
    weight, response = bernoulli.working(y, {"mean": eta})["mean"]
    for family in (Categorical(classes=["no", "yes"]), Ordinal(classes=["no", "yes"])):
        (own,) = family.parameters
        np.testing.assert_allclose(family.unit_deviance(y, eta), bernoulli.unit_deviance(y, mean))
        found_weight, found_response = family.working(y, {own: eta})[own]
        np.testing.assert_allclose(found_weight, weight, rtol=1e-9)
        np.testing.assert_allclose(found_response, response, rtol=1e-9)
        offset = np.linspace(-1, 1, 8)
        wanted = bernoulli.link_function(bernoulli.null_mean(y, offset))
        np.testing.assert_allclose(family.null_mean(y, offset), wanted, atol=1e-6)


def test_the_ranked_probability_score_is_its_sum() -> None:
    family = FAMILIES["ordinal 4"]
    for p in cases(family)[::3]:
        below = np.cumsum(brute_force(family, p))
        for y in range(4):
            wanted = sum((below[k] - (y <= k)) ** 2 for k in range(3))
            assert family.crps(np.array([float(y)]), full(p, 1))[0] == pytest.approx(wanted)


# Labels


def learned(family: Family, values: Any) -> tuple[Any, ...]:
    return family.learn(pd.Series(values), "y").classes


@pytest.mark.parametrize(
    ("values", "classes"),
    [
        (["b", "a", "c", "a"], ("a", "b", "c")),
        ([3, 1, 2], (1, 2, 3)),
        ([2.5, 0.5], (0.5, 2.5)),
        ([True, False], (False, True)),
        ([b"x", b"y"], ("x", "y")),
        (pd.Categorical(["lo", "hi"], ["lo", "mid", "hi"]), ("lo", "hi")),
        (pd.Categorical([1, 3, 2], [3, 1, 2]), (3, 1, 2)),
        (pd.array([1, 2], dtype="Int64"), (1, 2)),
    ],
)
def test_classes_are_learned_in_their_type_and_order(values: Any, classes: tuple[Any, ...]) -> None:
    family = Categorical().learn(pd.Series(values), "y")
    assert family.classes == classes
    assert [type(own) for own in family.classes] == [type(own) for own in classes]
    codes = family.encode(pd.Series(values), "y")
    assert codes.dtype == float
    assert list(family.decode(codes)) == [
        own.decode() if isinstance(own, bytes) else own for own in values
    ]
    again = get_family(json.loads(json.dumps(family.to_json())))
    assert again == family
    assert [type(own) for own in again.classes] == [type(own) for own in classes]


def test_the_order_of_ordered_classes() -> None:
    assert learned(Ordinal(), [3, 1, 2]) == (1, 2, 3)
    assert learned(Ordinal(), [True, False]) == (False, True)
    assert learned(Ordinal(), pd.Categorical([1, 3, 2], [3, 1, 2])) == (1, 2, 3)
    ordered = pd.Categorical(["hi", "lo", "mid"], ["lo", "mid", "hi"], ordered=True)
    assert learned(Ordinal(), ordered) == ("lo", "mid", "hi")
    assert list(Ordinal(classes=["lo", "mid", "hi"]).parameters) == ["loc", "width_mid"]
    assert Ordinal("cloglog", classes=[1, 2]) == get_family(Ordinal("cloglog", classes=[1, 2]).to_json())


REFUSED: dict[str, tuple[Any, Any, str]] = {
    "one class": (Categorical(), ["a"] * 5, "The response `y` has one class only, 'a', in all 5 rows: nothing to learn."),
    "unordered texts": (Ordinal(), ["lo", "hi"], "The classes of the response `y` are texts without an order: 'hi', 'lo'. Give it, lowest first: `family=ak.families.Ordinal(classes=['hi', 'lo'])`, or make the column an ordered pandas Categorical."),
    "an unordered Categorical": (Ordinal(), pd.Categorical(["lo", "hi"]), "The classes of the response `y` are texts without an order: 'hi', 'lo'. Give it, lowest first: `family=ak.families.Ordinal(classes=['hi', 'lo'])`, or make the column an ordered pandas Categorical."),
    "many numbers": (Categorical(), range(300), "The response `y` has 300 distinct values in 300 rows. Numbers of this kind are hardly classes: take a family of numbers, such as \"gaussian\", or cut them into classes with `pandas.cut`; if all are classes, say so with `classes=` of the family."),
    "fractions": (Ordinal(), np.linspace(0, 1, 30), "The response `y` has 30 distinct values in 30 rows. Numbers of this kind are hardly classes: take a family of numbers, such as \"gaussian\", or cut them into classes with `pandas.cut`; if all are classes, say so with `classes=` of the family."),
    "names": (Categorical(), [f"n{i}" for i in range(101)], "The response `y` has 101 distinct values in 101 rows. Texts of this kind are hardly classes: join rare ones; if all are classes, say so with `classes=` of the family."),
    "a new class": (Categorical(classes=["cat", "dog"]), ["cat", "dgo", "dgo", "emu"], "The response `y` has 3 of 4 values that are none of the classes: 'dgo' (2, first at row 1), 'emu' (1, first at row 3). Did you mean `dog`? Classes: 'cat', 'dog'."),
    "numbers for texts": (Categorical(classes=["1", "2"]), [1, 2], "The response `y` has 2 of 2 values that are none of the classes: 1 (1, first at row 0), 2 (1, first at row 1). Did you mean `1`? Classes: '1', '2'."),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_responses_that_are_refused(case: str) -> None:
    family, values, message = REFUSED[case]
    with pytest.raises(DataError) as caught:
        family.learn(pd.Series(values), "y")
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        ("abc", r"must be a list of labels in their order.*Received: 'abc'"),
        (["a"], r"at least two. Received: \['a'\]"),
        (["a", "b", "a"], "'a' stands twice"),
        (["a", 1], "all texts, or all numbers"),
        ([1.0, float("nan")], "texts, numbers or booleans. Received: nan"),
        ([None, 1], "Received: None"),
    ],
)
def test_classes_that_are_refused(classes: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Categorical(classes=classes)


def test_a_link_that_there_is_not() -> None:
    with pytest.raises(
        DataError, match=r"cannot have the link 'cauchit'.* `logit`, `probit`, `cloglog`"
    ):
        Ordinal("cauchit")


def test_few_training_rows_of_a_class() -> None:
    family = Categorical(classes=["a", "b", "c", "d"])
    with pytest.warns(AhofmWarning) as caught:
        family.check_training(np.array([0.0, 0, 1, 2, 2]), "y")
    told = [str(own.message) for own in caught]
    assert told[0].startswith("The response `y` has no training row of that class: 'd'.")
    assert told[1].startswith("The response `y` has one training row of that class: 'b'.")
    with pytest.raises(DataError, match="one class only, 'b', in all 4 training rows"):
        family.check_training(np.ones(4), "y")


def test_the_class_that_others_are_compared_with_has_no_parameter() -> None:
    family = Categorical(classes=[1, 2, 3])
    assert family.own_parameter(2) == "2"
    with pytest.raises(DataError, match="1 is the class that others are compared with"):
        family.own_parameter(1)


@pytest.mark.parametrize(
    ("other", "own"),
    [("multinom", "categorical"), ("softmax", "categorical"), ("multiclass", "categorical"),
     ("ocat", "ordinal"), ("cumulative", "ordinal"), ("ordered", "ordinal")],
)  # fmt: skip
def test_other_names(other: str, own: str) -> None:
    with pytest.raises(DataError, match=f"Here it is called `{own}`"):
        get_family(other)
