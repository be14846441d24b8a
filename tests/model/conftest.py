"""Small data and models that several tests read; nobody changes them."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from tests.model.careless import DATA, with_random_weights
from tests.model.short_fits import fit, new_model


def mixed_frame(rows: int = 240, seed: int = 0) -> pd.DataFrame:
    """Numbers, a category, a boolean, an exposure, and responses for all four families."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "x1": rng.uniform(0, 1, rows),
            "x2": rng.gamma(2.0, 1.0, rows),
            "x3": rng.normal(50, 10, rows),
            "hour": rng.uniform(0, 24, rows),
            "group": rng.choice(["a", "b", "c"], rows),
            "flag": rng.random(rows) < 0.4,
            "exposure": rng.uniform(0.5, 2.0, rows),
        }
    )
    eta = np.sin(5 * frame.x1) * (frame.x2 - 2) / 2 + (frame.group == "b") + 0.5 * frame.flag
    frame["gaussian"] = 100 + 20 * eta + 3 * rng.normal(size=rows)
    frame["bernoulli"] = (rng.random(rows) < 1 / (1 + np.exp(-eta))).astype(int)
    frame["poisson"] = rng.poisson(frame.exposure * np.exp(0.5 * eta))
    frame["gamma"] = np.exp(0.5 * eta) * rng.gamma(5.0, 0.2, rows)
    return frame


FORMULA = (
    "{family} ~ group + x3 + s(hour, bs='cp', knots=(0, 24)) "
    "+ ahofm(x1, x2, group, flag, D=3, F=2) + offset(log(exposure))"
)


@pytest.fixture(scope="session")
def frame() -> pd.DataFrame:
    return mixed_frame()


@pytest.fixture(scope="session", params=["gaussian", "bernoulli", "poisson", "gamma"])
def fitted(request: pytest.FixtureRequest, frame: pd.DataFrame) -> ak.AdditiveModel:
    """A model of every kind of term, a few epochs old, for each family."""
    model = ak.AdditiveModel(FORMULA.format(family=request.param), frame, family=request.param)
    with pytest.warns(ak.AhofmWarning, match="reached its last epoch"):
        model.fit(frame, epochs=3, verbose=0)
    return model


@pytest.fixture(scope="session")
def plain(frame: pd.DataFrame) -> ak.AdditiveModel:
    """The short fit that others are held against."""
    model = new_model(frame)
    fit(model, frame)
    return model


@pytest.fixture(scope="session")
def models() -> SimpleNamespace:
    """Models with weights drawn at random; nothing here needs them fitted."""
    return SimpleNamespace(
        mixed=with_random_weights(ak.AdditiveModel("y ~ s(x1, k=6) + g + f + x2", DATA)),
        counts=with_random_weights(
            ak.AdditiveModel("c ~ s(x1, k=6) + log(e) + offset(log(e))", DATA, family="poisson")
        ),
        labels=with_random_weights(ak.AdditiveModel("b ~ x1", DATA, family="bernoulli")),
        straight=with_random_weights(ak.AdditiveModel("y ~ s(x1, k=6)", DATA, extrapolation="linear")),
        strict=with_random_weights(ak.AdditiveModel("y ~ s(x1, k=6)", DATA, extrapolation="error")),
    )
