"""Linear models of several families against the maximum likelihood fits of statsmodels.

Rows and fits are those of `fixtures/statsmodels_families.py`, whose dispersions are translated there: of a
generalized Poisson model (1 + alpha)^2 - 1. Cox with Efron's ties is in `tests/model/test_cox.py`.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak

STORED = json.loads(
    (Path(__file__).parent.parent / "fixtures" / "statsmodels_families.json").read_text()
)
DATA, FITS = pd.DataFrame(STORED["data"]), STORED["fits"]
NAMES = [name for name in FITS if not name.startswith("cox")]


@pytest.mark.parametrize("solver", ["bcd", "variational"])
@pytest.mark.parametrize("name", NAMES)
def test_is_the_fit_of_statsmodels(name: str, solver: str) -> None:
    wanted = FITS[name]
    family = ak.families.Ordinal("probit") if name == "ordinal" else name
    vectors = {key: own for key, own in wanted.items() if isinstance(own, list)}
    formulas = dict.fromkeys(vectors, "~ x + z")
    first = next(iter(formulas))
    formulas[first] = f"{wanted['response']} ~ x + z"
    model = ak.AdditiveModel(formulas, DATA, family=family)
    model.fit(DATA, solver=solver, verbose=0)
    columns = np.column_stack([np.ones(len(DATA)), DATA.x, DATA.z])
    for key, coefficients in vectors.items():
        link = model.parameter(key).predict(DATA, type="link")
        found = np.linalg.lstsq(columns, np.asarray(link), rcond=None)[0]
        # Standard errors are 0.04 to 0.3.
        np.testing.assert_allclose(found, coefficients, atol=NEAR[solver])
    constants = model.predict(DATA[:1], type="parameters").iloc[0]
    for key, value in wanted.get("constants", {}).items():
        assert constants[key] == pytest.approx(value, rel=2 * NEAR[solver])
    assert model.fit_result.log_likelihood == pytest.approx(wanted["log_likelihood"], abs=0.05)


# The evidence bound averages each likelihood over the posterior of the other predictors.
NEAR = {"bcd": 0.002, "variational": 0.02}
