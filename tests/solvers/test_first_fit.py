"""A fit of several predictors finds what a fit of the first alone finds, where the others are constant."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from ahofm_keras.families import FAMILIES, get_family

# Family of several parameters -> the one of its first parameter, with a dispersion on the side.
PAIRS = {"gaussian_ls": "gaussian", "gamma_ls": "gamma"}


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """Little noise, and interactions that are most of the signal."""
    rng = np.random.default_rng(3)
    data = pd.DataFrame(rng.uniform(-1, 1, (250, 3)), columns=["a", "b", "c"])
    data["eta"] = 2 * data.a * data.b + np.sin(3 * data.b) * data.c
    data["gaussian"] = data.eta + 0.05 * rng.normal(size=250)
    data["gamma"] = np.exp(data.eta) * rng.gamma(400, 1 / 400, 250)
    return data


@pytest.mark.parametrize("name", PAIRS)
def test_interactions_are_found_beside_a_scale(name: str, frame: pd.DataFrame) -> None:
    formula, errors = f"{PAIRS[name]} ~ ahofm(a, b, c, D=2, k=8)", []
    for family in (PAIRS[name], name):
        model = ak.AdditiveModel(formula, frame, family=family, starts=1)
        model.fit(frame, restarts=0, verbose=0)
        link = model.predict(frame, type="link")
        eta = link if link.ndim == 1 else link.iloc[:, 0]
        errors.append(np.sqrt(np.mean((eta - frame.eta) ** 2)))
    assert errors[1] < 1.1 * errors[0]


@pytest.mark.parametrize("name", [name for name in FAMILIES if len(FAMILIES[name].links) > 1])
def test_the_first_fit_is_of_the_first_parameter(name: str) -> None:
    family = get_family(name)
    begun = family.first_fit(np.full(20, 0.5 if family.bounds == (0, 1) else 2.0))
    if begun is None:
        return
    own, response = begun
    assert not own.dispersion_known
    assert own.link == family.link
    assert own.support(response).all()
