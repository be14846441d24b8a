"""What the choice of the smoothing adds to a covariance, against dense algebra on the same grid."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from ahofm_keras.solvers import smoothing_uncertainty as module
from ahofm_keras.solvers.blocks import LinearBlock
from tests.solvers.conftest import make_engine


def frame(rows: int = 120, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    data = pd.DataFrame({"a": rng.uniform(size=rows), "g": rng.choice(list("pqrs"), rows)})
    data["b"] = 0.6 * data.a + 0.4 * rng.uniform(size=rows)
    data["y"] = np.sin(5 * data.a) + data.b + (data.g == "p") + 0.8 * rng.normal(size=rows)
    return data


def fitted_block(formula: str, data: pd.DataFrame, **settings: float) -> LinearBlock:
    engine = make_engine(formula, data, **settings)
    for _ in range(8):
        engine.update_linear(newton_steps=1)
        engine.update_dispersion()
    engine.update_linear()
    return engine.linear


def dense(
    block: LinearBlock, gram: np.ndarray, rhs: np.ndarray, parameters: np.ndarray, dispersion: float
) -> tuple[np.ndarray, np.ndarray, float]:
    """Mean, covariance and evidence of the whole block at some smoothing."""
    prior = block.prior.at(parameters)
    own = prior.precisions
    inverse = np.linalg.inv(gram + np.diag(own))
    mean = inverse @ rhs
    evidence = np.linalg.slogdet(inverse)[1] + np.log(own[own > 0]).sum() + rhs @ mean / dispersion
    price = prior.shape.penalties @ (gram.diagonal() / (gram.diagonal() + own))
    return mean, dispersion * inverse, evidence / 2 - price


@pytest.mark.parametrize(
    "formula", ["y ~ s(a, k=7)", "y ~ b + s(a, k=7)", "y ~ s(a, k=7) + s(b, k=6) + s(g)"]
)
def test_it_is_the_mixture_over_the_grid(formula: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Directions that the mixture knows better than the chosen smoothing are left as they were.
    monkeypatch.setattr(module, "_root", _signed_root)
    block = fitted_block(formula, frame(), least_grid_weight=0.0)
    solution, dispersion, gram = block.spread.solution, block.spread.dispersion, block.spread.gram
    rhs = gram @ block.mean + block.prior.precisions * block.mean
    mean, covariance, _ = dense(block, gram, rhs, block.prior.parameters, dispersion)
    expected = np.zeros_like(gram)
    for group in np.flatnonzero(block.prior.free[:, -1]):
        points = []
        for part in module._grid(block.prior.only(int(group)), dispersion):
            parameters = block.prior.parameters.copy()
            parameters[group] = part[0]
            points.append(dense(block, gram, rhs, parameters, dispersion))
        weights = np.exp([p[2] for p in points] - np.max([p[2] for p in points]))
        for weight, (other, spread, _) in zip(weights / weights.sum(), points, strict=True):
            expected += weight * (spread + np.outer(other - mean, other - mean))
        expected -= covariance
    found = module.smoothing_covariance(solution, gram, dispersion)
    np.testing.assert_allclose(found.real, expected, rtol=1e-5, atol=1e-7 * np.abs(expected).max())
    assert np.trace(expected) > 0.01 * np.trace(covariance)


def _signed_root(covariance: np.ndarray) -> np.ndarray:
    """L with L L' = V, imaginary where V is negative."""
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    return np.asarray(vectors * np.sqrt(values.astype(complex)))


def test_a_given_smoothing_adds_nothing() -> None:
    block = fitted_block("y ~ s(a, k=7, sp=0.3) + b", frame())
    assert not block.smoothing_covariance.any()


def test_bands_are_wider_where_the_smoothing_is_not_known() -> None:
    """With many rows it is, with few it is not."""
    shares = []
    for rows in (80, 20_000):
        block = fitted_block("y ~ s(a, k=10)", frame(rows))
        shares.append(np.trace(block.smoothing_covariance) / np.trace(block.covariance))
    assert shares[0] > 0.1
    assert shares[1] < 0.02


def test_it_stays_with_the_model(tmp_path: object) -> None:
    data = frame(80)
    model = ak.AdditiveModel("y ~ s(a) + s(b)", data)
    model.fit(data, verbose=0)
    assert model.posterior is not None
    both = model.predict(data, type="link", interval=0.95).se
    root = np.asarray(model.posterior.smoothing_root)
    model.save(f"{tmp_path}/m.keras")
    again = ak.load_model(f"{tmp_path}/m.keras")
    np.testing.assert_allclose(again.predict(data, type="link", interval=0.95).se, both, rtol=1e-6)
    model.posterior.smoothing_root.assign(np.zeros_like(root))
    assert (model.predict(data, type="link", interval=0.95).se < both).all()


@pytest.mark.parametrize("spread", [1.0, 10.0, 100.0])
def test_strong_random_effects_know_their_own_size(spread: float) -> None:
    """What the grid begins with was far more shrinkage than they have; it has to reach the optimum."""
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"g": np.repeat(list("abcdefghijkl"), 40)})
    effects = dict(zip("abcdefghijkl", spread * rng.normal(size=12), strict=True))
    data["y"] = data.g.map(effects) + rng.normal(size=len(data))
    block = fitted_block("y ~ s(g)", data)
    assert np.trace(block.smoothing_covariance[1:, 1:]) < 0.05 * np.trace(block.covariance[1:, 1:])
