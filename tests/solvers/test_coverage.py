"""Credible bands and predictive intervals hold what they say, over a hundred simulations."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ahofm_keras.families import get_family
from ahofm_keras.intervals import band_of_mean
from ahofm_keras.solvers.job import Rows
from ahofm_keras.solvers.variational import ascend
from tests.solvers.conftest import Run, draw_response, encode, make_engine

SIMULATIONS = 100


def draw(rows: int, family: str, rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
    """A wiggly and a bent main effect, one pair, one feature that does nothing."""
    data = pd.DataFrame({name: rng.uniform(size=rows) for name in "abcd"})
    link = np.sin(6 * data.a) + 1.5 * data.b**2 + 4 * (data.b - 0.5) * np.sin(3 * data.c)
    data["y"] = draw_response(family, link.to_numpy(), rng)
    return data, link.to_numpy()


def predict(engine: Run, data: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of the predictor."""
    columns = {name: data[name].to_numpy() for name in "abcd"}
    rows = Rows(encode(engine.design, columns), data["y"].to_numpy())
    (chunk,) = engine.engine.store_rows(rows).chunks
    dense = engine.linear.columns.dense(chunk)
    variance = np.sum(dense * (engine.linear.covariance @ dense), axis=0)
    variance += sum(chunk.moments(group).variance for group in engine.groups)
    return chunk.offset + engine.scale * chunk.fit(engine.state), engine.scale * np.sqrt(variance)


def simulate(family: str, seed: int) -> tuple[float, float]:
    """Share of fresh rows whose true mean, and whose response, lies in its 95 % interval."""
    rng = np.random.default_rng(seed)
    train, _ = draw(400, family, rng)
    fresh, link = draw(400, family, rng)
    for name in "abcd":  # inside the training range
        fresh[name] = fresh[name].clip(train[name].min(), train[name].max())
    link = np.sin(6 * fresh.a) + 1.5 * fresh.b**2 + 4 * (fresh.b - 0.5) * np.sin(3 * fresh.c)
    engine = make_engine("y ~ ahofm(a, b, c, d, D=2, F=2)", train, family=family)
    engine.follow(ascend(engine.engine, seed))
    dispersion = engine.dispersion * engine.scale**2
    band = band_of_mean(get_family(family), *predict(engine, fresh), dispersion, 0.95)
    mean = get_family(family).inverse_link(link.to_numpy(), np)
    covered = (band.lower <= mean) & (mean <= band.upper)
    hit = (band.predictive_lower <= fresh.y) & (fresh.y <= band.predictive_upper)
    return float(covered.mean()), float(hit.mean())


@pytest.mark.parametrize("family", ["gaussian", "poisson"])
def test_coverage(family: str) -> None:
    mean, response = np.mean([simulate(family, seed) for seed in range(SIMULATIONS)], axis=0)
    print(f"{family}: bands of the mean {mean:.3f}, predictive intervals {response:.3f}")
    assert 0.90 < mean < 0.99
    assert 0.90 < response < 0.99
