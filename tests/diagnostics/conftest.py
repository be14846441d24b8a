"""Simulated data whose truth is known, and models fitted to it once."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from ahofm_keras.diagnostics import Check, check

FAMILIES = ("gaussian", "bernoulli", "poisson", "gamma")


def simulate(rows: int = 400, seed: int = 0) -> pd.DataFrame:
    """Two independent features, a category, and responses of all families with one predictor."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"x": rng.uniform(size=rows), "z": rng.uniform(size=rows)})
    frame["group"] = rng.choice(["a", "b", "c"], rows)
    eta = np.sin(6 * frame.x) + frame.z + 0.5 * (frame.group == "b")
    frame["gaussian"] = 10 + 3 * eta + rng.normal(size=rows)
    frame["bernoulli"] = (rng.random(rows) < 1 / (1 + np.exp(-2 * eta))).astype(int)
    frame["poisson"] = rng.poisson(np.exp(eta))
    frame["gamma"] = np.exp(eta) * rng.gamma(4.0, 0.25, rows)
    return frame


def fit(
    formula: str, data: pd.DataFrame, family: str = "gaussian", **kwargs: object
) -> ak.AdditiveModel:
    model = ak.AdditiveModel(formula, data, family=family)
    model.fit(data, verbose=0, **kwargs)
    return model


@pytest.fixture(scope="session")
def frame() -> pd.DataFrame:
    return simulate()


@pytest.fixture(scope="session")
def right(frame: pd.DataFrame) -> Callable[[str], tuple[ak.AdditiveModel, Check]]:
    """A model of the right form, fitted to the responses of a family, and its check."""

    @cache
    def get(family: str) -> tuple[ak.AdditiveModel, Check]:
        model = fit(f"{family} ~ s(x) + s(z) + group", frame, family)
        return model, check(model)

    return get


@pytest.fixture(scope="session")
def interaction(frame: pd.DataFrame) -> tuple[ak.AdditiveModel, Check]:
    model = fit("gaussian ~ ahofm(x, z, D=2, F=1) + group", frame, solver="bcd")
    return model, check(model)
