"""Without penalties the block solvers of several predictors end where SciPy's optimizer does."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

import ahofm_keras as ak
from ahofm_keras.families import get_family
from tests.families.cases import SEVERAL
from tests.simulated import SIMULATED, simulate

ROWS = 300


@pytest.mark.parametrize("name", [name for name in SIMULATED if name in SEVERAL])
@pytest.mark.parametrize("solver", ["bcd", "variational"])
def test_it_is_the_maximum_of_the_likelihood(name: str, solver: str) -> None:
    data, _ = simulate(name, ROWS, seed=4)
    family = get_family(name)
    names = list(family.parameters)
    x, y = data.x.to_numpy(), data.y.to_numpy()
    center, spread = x.mean(), x.std()

    def loss(coefficients: np.ndarray) -> float:
        pairs = coefficients.reshape(-1, 2)
        etas = {own: a + b * (x - center) / spread for own, (a, b) in zip(names, pairs, strict=True)}
        with np.errstate(all="ignore"):
            density = family.log_density(y, family.inverse_links(etas)) + family.log_constant(y)
        total = float(-2 * np.mean(density))
        return total if np.isfinite(total) else 1e6

    values = family.start_values(y)
    start = [
        (float(link.function(np.asarray(values[own]), np)), 0.0)
        for own, link in family.parameters.items()
    ]
    best = min(
        minimize(loss, np.ravel(start), method=method, options={"maxiter": 500}).fun
        for method in ("BFGS", "Nelder-Mead")
    )
    formulas = {own: f"{'' if place else 'y '}~ x" for place, own in enumerate(names)}
    model = ak.AdditiveModel(formulas, data, family=family)
    model.fit(data, solver=solver, verbose=0)
    assert model.fit_result is not None
    assert model.fit_result.deviance is not None
    assert model.fit_result.deviance / ROWS < best + 1e-3
