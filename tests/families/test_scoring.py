"""Score, information and working response against derivatives of SciPy's densities and their optima."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from ahofm_keras.families import Deviance, Family, HalfDeviance, get_family
from tests.families.cases import ETAS, draw, every_link, truth

STEP = 1e-5


def log_density(family: Family, y: np.ndarray, eta: np.ndarray) -> np.ndarray:
    """From SciPy, at dispersion 1."""
    distribution = family.distribution(np.asarray(family.inverse_link(eta, np)), 1.0)
    return distribution.logpmf(y) if family.discrete else distribution.logpdf(y)


def slopes(family: Family, y: np.ndarray, eta: np.ndarray) -> np.ndarray:
    """Derivative of the log-density by the predictor."""
    step = STEP * (1 + np.abs(eta))
    high, low = (log_density(family, y, eta + side * step) for side in (1, -1))
    return (high - low) / (2 * step)


def possible(family: Family, eta: float) -> np.ndarray:
    """Many responses that are equally likely, or whole numbers up to an unlikely one."""
    distribution = family.distribution(np.asarray(family.inverse_link(np.array(eta), np)), 1.0)
    if family.discrete:
        return np.arange(distribution.isf(1e-15) + 1)
    return np.asarray(distribution.ppf((np.arange(200_000) + 0.5) / 200_000))


def chances(family: Family, y: np.ndarray, eta: float) -> np.ndarray:
    mean = np.asarray(family.inverse_link(np.array(eta), np))
    return family.distribution(mean, 1.0).pmf(y) if family.discrete else np.full(len(y), 1 / len(y))


@every_link
def test_the_weight_is_the_expected_square_of_the_score(family: Family) -> None:
    for eta in ETAS[family.link]:
        y = possible(family, eta)
        share = chances(family, y, eta)
        squares = slopes(family, y, np.full(len(y), eta)) ** 2
        ((weight, _),) = family.working(y, {"mean": np.full(len(y), eta)}).values()
        np.testing.assert_allclose(weight, share @ squares, rtol=1e-3)
        information = family.information(y, {"mean": family.inverse_link(np.full(len(y), eta), np)})
        slope = family.slope(np.full(len(y), eta))
        np.testing.assert_allclose(information["mean"] * slope**2, weight, rtol=1e-12)


@every_link
def test_the_step_is_the_score_over_the_weight(family: Family) -> None:
    for eta in ETAS[family.link]:
        y = possible(family, eta)[:: 1 if family.discrete else 20_001]
        etas = np.full(len(y), eta)
        ((weight, response),) = family.working(y, {"mean": etas}).values()
        wanted = slopes(family, y, etas)
        np.testing.assert_allclose(weight * (response - etas), wanted, rtol=1e-5, atol=1e-6)
        score = family.score(y, {"mean": family.inverse_link(etas, np)})["mean"]
        np.testing.assert_allclose(score * family.slope(etas), wanted, rtol=1e-5, atol=1e-6)


@every_link
def test_the_variance_is_the_distributions(family: Family) -> None:
    mean = np.asarray(family.inverse_link(ETAS[family.link], np))
    np.testing.assert_allclose(family.distribution(mean, 1.0).mean(), mean, rtol=1e-12)
    for dispersion in (1.0,) if family.dispersion_known else (0.3, 1.0, 7.0):
        wanted = family.distribution(mean, dispersion).var()
        np.testing.assert_allclose(dispersion * family.variance(mean), wanted, rtol=1e-12)


@every_link
def test_the_log_density_is_scipys_up_to_a_term_of_the_response(family: Family) -> None:
    eta = ETAS[family.link]
    for y in draw(family, eta, dispersion=1.0):
        own = family.log_density(np.full(len(eta), y), {"mean": family.inverse_link(eta, np)}, np)
        np.testing.assert_allclose(
            np.ptp(own - log_density(family, np.full(len(eta), y), eta)), 0, atol=1e-9
        )
        loss = family.loss(np.full(len(eta), y), {"mean": family.inverse_link(eta, np)}, np)
        np.testing.assert_allclose(loss, -own, rtol=1e-12)


@every_link
def test_scoring_ends_at_the_maximum_of_the_likelihood(family: Family) -> None:
    """Reweighted least squares from rough means, against SciPy's optimizer on SciPy's density."""
    x = np.linspace(-1, 1, 300)
    X = np.column_stack([np.ones_like(x), x])
    y = draw(family, truth(family, x))
    eta = np.asarray(family.link_function(family.rough_mean(y, y.mean())))
    for _ in range(60):
        ((weight, response),) = family.working(y, {"mean": eta}).values()
        coefficients = np.linalg.solve((X.T * weight) @ X, X.T @ (weight * response))
        eta = X @ coefficients

    def objective(b: np.ndarray) -> float:
        predictor = X @ b
        return -log_density(family, y, predictor).mean() if family.is_valid(predictor).all() else np.inf

    found = minimize(
        objective, coefficients + 0.02, method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-14}
    )
    np.testing.assert_allclose(coefficients, found.x, rtol=0, atol=1e-5)
    assert objective(coefficients) <= found.fun + 1e-12


@pytest.mark.parametrize(
    ("name", "weight"),
    [
        ("gaussian", np.ones_like),
        ("bernoulli", lambda mean: mean * (1 - mean)),
        ("poisson", lambda mean: mean),
        ("gamma", np.ones_like),
    ],
)
def test_weights_of_the_usual_links(name: str, weight: object) -> None:
    family = get_family(name)
    eta = np.linspace(-2, 2, 9)
    mean = np.asarray(family.inverse_link(eta, np))
    ((found, response),) = family.working(mean, {"mean": eta}).values()
    np.testing.assert_allclose(found, weight(mean), rtol=1e-12)  # type: ignore[operator]
    np.testing.assert_allclose(response, eta, rtol=1e-12)


@pytest.mark.parametrize("eta", [-800.0, -40.0, 40.0, 800.0])
@every_link
def test_working_responses_are_finite_everywhere(family: Family, eta: float) -> None:
    y = draw(family, ETAS[family.link])
    for weight, response in family.working(y, {"mean": np.full(len(y), eta)}).values():
        assert np.isfinite(weight).all()
        assert np.isfinite(response).all()
        assert (weight >= 0).all()


class Numerical(Family):
    """The gaussian of mean and log scale by its log-density alone."""

    name = "numerical"
    links = {"loc": ("identity",), "scale": ("log",)}  # noqa: RUF012
    support_text = "finite"

    def log_density(self, y, parameters, xp=np):  # type: ignore[no-untyped-def]
        return -xp.log(parameters["scale"]) - ((y - parameters["loc"]) / parameters["scale"]) ** 2 / 2


def test_a_family_of_two_parameters_needs_only_its_log_density() -> None:
    family = Numerical()
    rng = np.random.default_rng(0)
    y = rng.normal(3.0, 0.5, 4000)
    etas = {"loc": np.full(4000, 2.8), "scale": np.full(4000, np.log(0.6))}
    found = family.working(y, etas)
    assert list(found) == ["loc", "scale"]
    scores = {"loc": (y - 2.8) / 0.36, "scale": (y - 2.8) ** 2 / 0.36 - 1}
    for name, wanted in scores.items():
        weight, response = found[name]
        np.testing.assert_allclose(weight * (response - etas[name]), wanted, rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(weight, wanted**2, rtol=1e-6, atol=1e-9)
    outputs = np.column_stack([etas["loc"], np.exp(etas["scale"])])
    named = family.named(outputs)
    np.testing.assert_allclose(family.loss(y, named), -family.log_density(y, family.inverse_links(etas)))


def test_keras_sees_the_parameters_of_a_family_side_by_side() -> None:
    family, rng = Numerical(), np.random.default_rng(1)
    y, outputs = rng.normal(size=50), np.column_stack([rng.normal(size=50), rng.uniform(0.5, 2, 50)])
    wanted = (np.log(outputs[:, 1]) + ((y - outputs[:, 0]) / outputs[:, 1]) ** 2 / 2).mean()
    assert float(HalfDeviance(family)(y[:, None], outputs)) == pytest.approx(wanted, rel=1e-6)
    metric = Deviance(family)
    metric.update_state(y, outputs)
    assert float(metric.result()) == pytest.approx(2 * wanted, rel=1e-9)
