"""What factors cost: a price per feature, less what is the same in other scales and signs."""

from __future__ import annotations

from math import log

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import multivariate_normal, norm

from ahofm_keras.solvers.groups import factor_prices
from ahofm_keras.solvers.settings import Settings

from .conftest import make_engine
from .test_groups import surfaces

ODDS = Settings().log_prior_odds


@pytest.mark.parametrize(
    ("active", "order", "price"),
    [
        (0, 2, 0.0),
        (1, 2, 0.0),
        (2, 2, 2 * ODDS - 1 - log(2)),
        (3, 2, 3 * ODDS),
        (7, 2, 7 * ODDS),
        (2, 3, 0.0),
        (3, 3, 3 * ODDS - 2 * (1 + log(2))),
        (4, 3, 4 * ODDS),
    ],
)
def test_a_product_of_its_own_features_alone_is_cheaper(active: int, order: int, price: float) -> None:
    assert float(factor_prices(np.array(active), order, Settings())) == pytest.approx(price)


def evidence(y: np.ndarray, x: np.ndarray, one: float, other: float) -> float:
    """log p(y) of y = a b x + noise, a and b normal with these standard deviations, by quadrature."""

    def given(a: float) -> float:
        covariance = np.eye(len(y)) + (a * other) ** 2 * np.outer(x, x)
        return float(multivariate_normal(np.zeros(len(y)), covariance).pdf(y) * norm(0, one).pdf(a))

    return log(quad(given, -12 * one, 12 * one, points=[0.0], epsabs=0, epsrel=1e-10)[0])


def test_only_the_product_of_the_scales_is_known() -> None:
    """The oracle: the evidence of a product, integrated over both functions, has one scale less."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=6)
    y = 1.5 * x + rng.normal(size=6)
    first = evidence(y, x, 1.0, 2.0)
    assert evidence(y, x, 4.0, 0.5) == pytest.approx(first, abs=1e-8)
    assert abs(evidence(y, x, 4.0, 2.0) - first) > 0.05


def test_the_score_pays_for_what_is_active() -> None:
    engine = make_engine("y ~ ahofm(a, b, c, d, D=2, F=2, k=7)", surfaces(400, 2))
    for _ in range(3):
        engine.state = engine.engine.sweep(engine.state, newton_steps=1)
    (group,) = engine.groups
    active = group.is_active.sum(axis=0)
    assert (active > 0).any()
    expected = factor_prices(active, 2, Settings()).sum()
    assert engine.engine.bound(engine.state) - engine.engine.score(engine.state) == pytest.approx(
        expected
    )
    for feature in range(4):
        without = group.is_active
        without[feature] = False
        after = factor_prices(without.sum(axis=0), 2, Settings())
        with_it = without.copy()
        with_it[feature] = True
        before = factor_prices(with_it.sum(axis=0), 2, Settings())
        np.testing.assert_allclose(group.feature_prices(feature, Settings()), before - after)
