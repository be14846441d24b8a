"""Fitted models that the tests of this folder read; nobody changes them."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak

FORMULA = "y ~ z + group + s(noise, k=8) + s(site, bs='re') + ahofm(x1, x2, x3, D=3, F=2, k=8)"


@pytest.fixture(scope="session")
def data() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    n = 300
    data = pd.DataFrame(
        {
            "x1": rng.uniform(size=n),
            "x2": rng.normal(size=n),
            "x3": rng.gamma(2.0, size=n),
            "z": rng.normal(50, 5, n),
            "noise": rng.uniform(size=n),
            "group": rng.choice(["a", "b", "c"], n),
            "site": rng.choice(list("pqrstu"), n),
        }
    )
    eta = (
        np.sin(6 * data.x1) + (data.x1 - 0.5) * data.x2 * 1.5 + (data.group == "b") + 0.1 * (data.z - 50)
    )
    data["y"] = 100 + 20 * (eta + 0.3 * data.site.isin(["p", "q"]) + 0.3 * rng.normal(size=n))
    data["count"] = rng.poisson(np.exp(0.5 * eta))
    return data


def fitted(formula: str, data: pd.DataFrame, family: str = "gaussian", **options) -> ak.AdditiveModel:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ak.AhofmWarning)  # few values do not reach every df
        model = ak.AdditiveModel(formula, data, family=family)
        model.fit(data, **{"verbose": 0, "solver": "variational"} | options)
    return model


@pytest.fixture(scope="session")
def model(data: pd.DataFrame) -> ak.AdditiveModel:
    """Every kind of term; one pair interacts, there is no triple."""
    return fitted(FORMULA, data)


@pytest.fixture(scope="session")
def linear_model(data: pd.DataFrame) -> ak.AdditiveModel:
    return fitted("y ~ z + group*x1 + poly(x2, 2)", data)


@pytest.fixture(scope="session")
def unpruned(data: pd.DataFrame) -> ak.AdditiveModel:
    """At fixed smoothing: all factors are in use."""
    return fitted("y ~ ahofm(x1, x2, site, D=3, F=2, k=6, df=4)", data, solver="bcd", epochs=30)
