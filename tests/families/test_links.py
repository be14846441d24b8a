"""Links: inverse, derivative, ends; the same in NumPy and in Keras."""

from __future__ import annotations

from collections.abc import Callable

import keras
import numpy as np
import pytest
import tensorflow as tf
from scipy import special, stats

from ahofm_keras.families import LINKS
from tests.families.cases import ETAS

every_link = pytest.mark.parametrize("name", LINKS)
INVERSES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "identity": lambda eta: eta,
    "log": np.exp,
    "logit": special.expit,
    "probit": stats.norm.cdf,
    "cloglog": lambda eta: 1 - np.exp(-np.exp(eta)),
    "log_above_2": lambda eta: 2 + np.exp(eta),
    "logit_1_2": lambda eta: 1.01 + 0.98 * special.expit(eta),
    "inverse": np.reciprocal,
    "softplus": lambda eta: np.log(1 + np.exp(eta)),
    "inverse_square": lambda eta: eta**-0.5,
    "cauchit": stats.cauchy.cdf,
    "sqrt": np.square,
}
FAR = np.array([-1e4, -400.0, -40.0, -1e-3, 0.0, 1e-3, 40.0, 400.0, 1e4])


def test_every_link_has_an_oracle() -> None:
    assert set(LINKS) == set(INVERSES) == set(ETAS)
    assert all(link.name == name for name, link in LINKS.items())


@every_link
def test_the_inverse_is_the_named_one(name: str) -> None:
    np.testing.assert_allclose(
        LINKS[name].inverse(ETAS[name], np), INVERSES[name](ETAS[name]), rtol=1e-12
    )


@every_link
def test_there_and_back(name: str) -> None:
    link, eta = LINKS[name], ETAS[name]
    mean = link.inverse(eta, np)
    assert ((mean > link.range[0]) & (mean < link.range[1])).all()
    assert link.holds(eta).all()
    np.testing.assert_allclose(link.function(mean, np), eta, rtol=1e-9, atol=1e-12)


@every_link
def test_the_derivative_is_that_of_the_inverse(name: str) -> None:
    link, eta = LINKS[name], ETAS[name]
    step = 1e-6
    wanted = (link.inverse(eta + step, np) - link.inverse(eta - step, np)) / (2 * step)
    np.testing.assert_allclose(link.derivative(eta, np), wanted, rtol=1e-7)
    assert (np.sign(wanted) == (1 if link.increasing else -1)).all()


@every_link
@pytest.mark.parametrize("part", ["function", "inverse", "derivative"])
def test_keras_computes_the_same(name: str, part: str) -> None:
    link = LINKS[name]
    given = link.inverse(ETAS[name], np) if part == "function" else ETAS[name]
    found = getattr(link, part)(keras.ops.convert_to_tensor(given), keras.ops)
    assert found.dtype == tf.float64
    np.testing.assert_allclose(np.asarray(found), getattr(link, part)(given, np), rtol=1e-12, atol=1e-15)


@every_link
def test_an_optimizer_sees_the_derivative(name: str) -> None:
    variable = tf.Variable(ETAS[name])
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(LINKS[name].inverse(variable, keras.ops))
    found = tape.gradient(total, variable).numpy()
    np.testing.assert_allclose(found, LINKS[name].derivative(ETAS[name], np), rtol=1e-9)


@every_link
def test_far_out_and_outside_everything_is_finite(name: str) -> None:
    link = LINKS[name]
    for part in (link.inverse, link.derivative):
        assert np.isfinite(part(FAR, np)).all()
    variable = tf.Variable(FAR)
    with tf.GradientTape() as tape:
        mean = link.inverse(variable, keras.ops)
    assert np.isfinite(tape.gradient(mean, variable).numpy()).all()


@pytest.mark.parametrize(
    ("name", "end"), [("inverse", np.inf), ("inverse_square", np.inf), ("sqrt", 0.0)]
)
def test_outside_the_domain_the_limit_is_the_end_of_the_range(name: str, end: float) -> None:
    link = LINKS[name]
    eta = np.array([-2.0, 0.0, 0.5])
    np.testing.assert_array_equal(link.holds(eta), [False, False, True])
    found = link.limit(eta)
    np.testing.assert_array_equal(found[:2], end)
    assert found[2] == link.inverse(eta, np)[2]


@every_link
def test_every_link_has_words(name: str) -> None:
    link = LINKS[name]
    assert link.sentence.startswith("The parts add up to")
    assert link.sum_label.startswith("Sum")
    assert "{response}" in link.scale
