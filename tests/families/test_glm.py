"""Links of every family in whole fits: generalised linear models, smooths, and what is read from them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

import ahofm_keras as ak
from ahofm_keras.families import Bernoulli, Family, Gamma, Gaussian, Poisson
from tests.families.cases import draw

LINKS = [
    Gamma(link="inverse"),
    Poisson(link="sqrt"),
    Bernoulli(link="probit"),
    Bernoulli(link="cloglog"),
    Gaussian(link="log"),
    Gaussian(link="inverse"),
]
every_case = pytest.mark.parametrize("family", LINKS, ids=repr)


def frame(family: Family, rows: int = 600, unit: float = 1.0, smooth: bool = False) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    data = pd.DataFrame({"x": rng.uniform(-1, 1, rows), "z": rng.uniform(-1, 1, rows)})
    effect = np.sin(3 * data.x) if smooth else data.x
    centre = {"log": 1.0, "inverse": 1.0, "sqrt": 2.0}.get(family.link, -0.2)
    slope = 0.5 if family.link == "inverse" else 1.0
    data["eta"] = centre + slope * effect
    data["y"] = unit * draw(family, data.eta.to_numpy())
    return data


def maximum_likelihood(family: Family, data: pd.DataFrame) -> np.ndarray:
    """Coefficients of `y ~ x` by SciPy's optimizer on SciPy's densities, in units of the start."""
    y, scale = data.y.to_numpy(), float(data.y.mean()) if not family.dispersion_known else 1.0
    X = np.column_stack([np.ones(len(data)), data.x])

    def objective(b: np.ndarray) -> float:
        eta = X @ b
        if not family.is_valid(eta).all():
            return np.inf
        distribution = family.distribution(np.asarray(family.inverse_link(eta, np)), 1.0)
        log = distribution.logpmf if family.discrete else distribution.logpdf
        return float(-log(y / scale).mean())

    start = np.array([float(family.start(y / scale)), 0.0])
    options = {"xatol": 1e-10, "fatol": 1e-15, "maxiter": 5000}
    found = minimize(objective, start, method="Nelder-Mead", options=options).x
    unit = {"inverse": 1 / scale}.get(family.link, 1.0)
    return found * unit + np.array([np.log(scale) if family.link == "log" else 0.0, 0.0])


@every_case
@pytest.mark.parametrize("solver", ["variational", "bcd"])
def test_a_line_has_its_maximum_likelihood(family: Family, solver: str) -> None:
    data = frame(family)
    model = ak.AdditiveModel("y ~ x", data, family=family)
    model.fit(data, verbose=0, solver=solver)
    assert model.fit_result is not None
    assert model.fit_result.converged
    intercept, slope = maximum_likelihood(family, data)
    wanted = intercept + slope * data.x
    found = model.predict(data, type="link")
    assert np.abs(found - wanted).max() < 1e-4 * np.ptp(wanted)
    np.testing.assert_allclose(ak.coef(model)["x"], slope, rtol=1e-4)


@pytest.mark.parametrize("family", [f for f in LINKS if not f.dispersion_known], ids=repr)
@pytest.mark.parametrize("unit", [1e-5, 1e4])
def test_the_unit_of_the_response_changes_nothing(family: Family, unit: float) -> None:
    fits = []
    for own in (1.0, unit):
        data = frame(family, 300, own, smooth=True)
        model = ak.AdditiveModel("y ~ s(x) + s(z)", data, family=family)
        for solver in ("variational", "bcd"):
            model.fit(data, verbose=0, solver=solver)
            interval = model.predict(data, interval=0.9)
            fits.append(interval.to_numpy() / own)
    np.testing.assert_allclose(fits[2], fits[0], rtol=1e-4)
    np.testing.assert_allclose(fits[3], fits[1], rtol=1e-4)


@every_case
def test_a_smooth_is_found_and_read(family: Family, tmp_path: Path) -> None:
    data = frame(family, smooth=True)
    model = ak.AdditiveModel("y ~ s(x) + s(z)", data, family=family)
    model.fit(data, verbose=0)
    assert model.fit_result is not None
    assert model.fit_result.converged
    assert model.fit_result.log_likelihood is not None
    found = model.predict(data, type="link")
    assert np.corrcoef(found, data.eta)[0, 1] > 0.97
    # The truth lies within 3 standard errors, nearly everywhere.
    band = model.predict(data, type="link", interval=0.9)
    assert (np.abs(band["link"] - data.eta) < 3.5 * band["se"]).mean() > 0.95
    interval = model.predict(data, interval=0.9)
    assert (interval.lower <= interval["mean"]).all()
    assert (interval["mean"] <= interval.upper).all()
    inside = (interval.predictive_lower <= data.y) & (data.y <= interval.predictive_upper)
    assert inside.mean() > 0.85
    if not family.discrete:
        assert inside.mean() < 0.95
    assert f"{family.name}({family.link})" in str(ak.summary(model))
    assert f"{family.name} ({family.link})" in str(ak.check(model))
    path = tmp_path / "model.keras"
    model.save(path)
    again = ak.load_model(path)
    assert again.family == family
    np.testing.assert_allclose(again.predict(data), model.predict(data), rtol=1e-6)


@pytest.mark.parametrize(
    ("family", "formula", "low"),
    [
        (Gamma(link="inverse"), "y ~ ahofm(x, z, D=2, F=2)", 0.02),
        (Poisson(link="sqrt"), "y ~ ahofm(x, z, D=2, F=2)", 0.02),
        (Poisson(link="sqrt"), "y ~ s(x) + z", 0.02),
        (Gaussian(link="inverse"), "y ~ ahofm(x, z, D=2, F=2)", 0.1),
    ],
    ids=repr,
)
def test_steps_that_lead_out_of_the_domain_are_taken_back(
    family: Family, formula: str, low: float
) -> None:
    """Predictors near the end of their domain, some of them beyond it in a first straight step."""
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"x": rng.uniform(0, 1, 500), "z": rng.uniform(0, 1, 500)})
    eta = low + 2 * data.x**2 + data.z * data.x
    data["y"] = draw(family, eta.to_numpy(), dispersion=0.05)
    model = ak.AdditiveModel(formula, data, family=family)
    model.fit(data, verbose=0, restarts=0)
    assert model.fit_result is not None
    assert model.fit_result.converged
    found = model.predict(data, type="link")
    assert np.isfinite(found).all()
    assert family.is_valid(found).all()
    assert model.fit_result.deviance is not None
    assert model.fit_result.null_deviance is not None
    assert model.fit_result.deviance < 0.5 * model.fit_result.null_deviance
