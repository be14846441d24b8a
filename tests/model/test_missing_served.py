"""A missing number that reaches an exported model: its prediction is missing too."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

import ahofm_keras as ak
from tests.families.cases import PLAIN

ROWS = 200
CODES = ("k", "j", "m", "v")
NUMBERS = ("x", "z", "h", "u", "e", "p", *CODES)
FORMULA = (
    "{family} ~ x + poly(p, 2) + C(k) + s(C(j)) + s(z) + s(h, bs='cp') + te(u, C(v), k=4) "
    "+ ahofm(z, C(m), D=2, F=2) + offset(log(e))"
)


@pytest.fixture(scope="module")
def numbers() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    data = pd.DataFrame({name: rng.uniform(0.5, 1.5, ROWS) for name in NUMBERS})
    data[list(CODES)] = rng.integers(0, 3, (ROWS, len(CODES))).astype(float)
    mean = np.exp(0.3 * data.x + 0.2 * data.k)
    data["gaussian"] = mean + 0.1 * rng.normal(size=ROWS)
    data["bernoulli"] = (rng.random(ROWS) < mean / (1 + mean)).astype(float)
    data["poisson"] = rng.poisson(mean).astype(float)
    data["gamma"] = mean * rng.gamma(5.0, 0.2, ROWS)
    return data


# Extrapolation is what the inputs do, the family what the response does: neither knows the other.
@pytest.mark.parametrize(
    ("family", "extrapolation"),
    [(family, "clip") for family in PLAIN] + [("gaussian", "linear")],
)
def test_a_missing_number_is_never_predicted_from(
    family: str, extrapolation: str, numbers: pd.DataFrame, tmp_path: Path
) -> None:
    model = ak.AdditiveModel(
        FORMULA.format(family=family), numbers, family=family, extrapolation=extrapolation
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The fit reached its last epoch", ak.AhofmWarning)
        model.fit(numbers, epochs=2, verbose=0)
    model.export(tmp_path / "model")
    served = tf.saved_model.load(str(tmp_path / "model")).signatures
    assert set(served) == {"serving_default", "terms", "uncertainty"}
    # Row i has no value of the i-th column; the last row has all.
    rows = pd.concat([numbers.loc[[0], list(NUMBERS)]] * (len(NUMBERS) + 1), ignore_index=True)
    for row, name in enumerate(NUMBERS):
        rows.loc[row, name] = np.nan
    columns = {name: tf.constant(rows[name].to_numpy()) for name in NUMBERS}
    holes = [True] * len(NUMBERS) + [False]
    found = {name: endpoint(**columns) for name, endpoint in served.items()}
    for values in (*found["serving_default"].values(), found["uncertainty"]["link"]):
        np.testing.assert_array_equal(np.isnan(values), holes)
    no_offset = [name != "e" for name in NUMBERS] + [False]
    np.testing.assert_array_equal(np.isnan(found["uncertainty"]["link_se"]), no_offset)
    for term, name in {"C_k": "k", "s_C_j": "j", "x": "x", "s_h": "h"}.items():
        alone = [other == name for other in NUMBERS] + [False]
        np.testing.assert_array_equal(np.isnan(found["terms"][term]), alone)
    np.testing.assert_allclose(
        found["serving_default"]["response"][-1], model.predict(rows[-1:])[0], rtol=1e-6
    )
