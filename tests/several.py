"""A model whose parameters all have predictors of their own, which readers read."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pandas as pd

import ahofm_keras as ak

FORMULAS = {"loc": "y ~ group + ahofm(x, z, D=2, F=1, k=8)", "scale": "~ s(z, k=8) + group + x"}
PARAMETERS = ("loc", "scale", "df")


@lru_cache
def several_frame(rows: int = 400, seed: int = 0) -> pd.DataFrame:
    """Rows whose middle and spread both depend on the features."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"x": rng.uniform(-1, 1, rows), "z": rng.uniform(-1, 1, rows)})
    frame["group"] = rng.choice(["a", "b", "c"], rows)
    scale = np.exp(-1 + 0.7 * frame.z + 0.5 * (frame.group == "c"))
    noise = rng.standard_t(6, rows)
    frame["y"] = 3 + np.sin(3 * frame.x) + 2 * frame.x * frame.z + scale * noise
    return frame


@lru_cache
def several_model() -> ak.AdditiveModel:
    """Fitted; the third parameter is constant."""
    model = ak.AdditiveModel(FORMULAS, several_frame(), family="student_t")
    model.fit(several_frame(), verbose=0, restarts=0)
    return model
