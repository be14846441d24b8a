"""Small models whose pictures are looked at by the data behind their axes."""

from __future__ import annotations

import warnings
from pathlib import Path

import keras
import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak

mpl.use("Agg")

TOWNS = ("Ulm", "Oslo", "Bad Neuenahr-Ahrweiler", "Saint-Remy-en-Bouzemont", "Rio")
FORMULA = "y ~ ahofm(x1, x2, town, flag, D=3, F=3) + s(x3)"


@pytest.fixture(autouse=True)
def _no_figure_stays():
    import matplotlib.pyplot as plt

    plt.close("all")
    yield
    plt.close("all")


@pytest.fixture(scope="session")
def frame() -> pd.DataFrame:
    """Numbers, one of them with a heavy tail, a category with long names, a boolean."""
    rng = np.random.default_rng(4)
    rows = 260
    frame = pd.DataFrame(
        {
            "x1": rng.uniform(-1, 1, rows),
            "x2": rng.lognormal(0.0, 1.3, rows),
            "x3": rng.normal(50, 10, rows),
            "town": rng.choice(TOWNS, rows),
            "flag": rng.random(rows) < 0.4,
        }
    )
    place = frame["town"].map({town: k for k, town in enumerate(TOWNS)})
    eta = np.sin(3 * frame["x1"]) * np.log(frame["x2"]) + 0.5 * place * (frame["flag"] - 0.5)
    frame["y"] = eta + 0.3 * rng.normal(size=rows)
    frame["count"] = rng.poisson(np.exp(0.3 * eta))
    return frame


@pytest.fixture(scope="session")
def model(frame: pd.DataFrame) -> ak.AdditiveModel:
    """Main effects, pairs and triples, none of them 0."""
    model = ak.AdditiveModel(FORMULA, frame)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ak.AhofmWarning)
        model.fit(frame, verbose=0, solver="bcd", epochs=10)
    return model


@pytest.fixture(scope="session")
def additive(frame: pd.DataFrame) -> ak.AdditiveModel:
    """Counts, main effects only."""
    model = ak.AdditiveModel("count ~ s(x1) + town", frame, family="poisson")
    model.fit(frame, verbose=0)
    return model


@pytest.fixture(scope="session")
def loaded(model: ak.AdditiveModel, tmp_path_factory: pytest.TempPathFactory) -> ak.AdditiveModel:
    """The model from its file: without rows."""
    path: Path = tmp_path_factory.mktemp("plotting") / "model.keras"
    model.save(path)
    return keras.models.load_model(path)
