"""A model of thirty features with names of thirty letters and more, as real tables have them."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd

import ahofm_keras as ak

WORDS = ("average", "household", "quarterly", "temperature", "population", "concentration", "distance")
RESPONSE = "yearly_energy_consumption_in_kilowatt_hours"
REGIONS = ("northern district", "southern county", "eastern islands", "western range", "central region")
PLACES = [f"municipality of the {region} of {part}" for region in REGIONS for part in ("upper", "lower", "outer", "inner")]  # fmt: skip


def names_of(count: int) -> list[str]:
    """Names that begin and end differently."""
    rng = np.random.default_rng(7)
    return [f"{'_'.join(rng.permutation(WORDS)[:3])}_of_station_{k}" for k in range(count)]


def crowded_frame(rows: int = 300) -> pd.DataFrame:
    """Numbers, some of them tiny, huge or skewed, and categories; the last column is the response."""
    rng = np.random.default_rng(3)
    names = names_of(30)
    frame = pd.DataFrame({name: rng.normal(size=rows) for name in names})
    frame[names[3]] = rng.lognormal(0, 1.4, rows) * 1000
    frame[names[4]] = rng.uniform(1e-5, 4e-5, rows)
    frame[names[5]] = rng.uniform(2.1e6, 2.9e6, rows)
    frame[names[28]] = rng.choice(PLACES, rows)
    frame[names[29]] = rng.choice(["agriculture, forestry and fishing", "public administration"], rows)
    place = frame[names[28]].map({own: k / 10 - 1 for k, own in enumerate(PLACES)})
    eta = np.sin(2 * frame[names[0]]) + frame[names[1]] * frame[names[2]] + place * frame[names[6]]
    frame[RESPONSE] = 1000 + 100 * (eta + 0.5 * rng.normal(size=rows))
    return frame


def crowded_model(frame: pd.DataFrame, formula: str | None = None) -> ak.AdditiveModel:
    model = ak.AdditiveModel(formula or f"{RESPONSE} ~ ahofm(., D=3, F=2, k=6)", frame)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ak.AhofmWarning)
        model.fit(frame, verbose=0, solver="bcd", epochs=4)
    return model
