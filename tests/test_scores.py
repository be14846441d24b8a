"""`log_score` and `crps` against SciPy and sums over responses."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats

import ahofm_keras as ak
from tests.simulated import simulate

FORMULAS = {
    "gaussian": "y ~ x",
    "gamma": "y ~ x",
    "poisson": "y ~ x",
    "gaussian_ls": {"loc": "y ~ x", "scale": "~ x"},
    "negative_binomial": {"mean": "y ~ x", "dispersion": "~ x"},
}
# The distribution in SciPy, from the parameters that `predict` says.
SCIPY: dict[str, Callable[[pd.DataFrame], object]] = {
    "gaussian": lambda p: stats.norm(p["mean"], np.sqrt(p["dispersion"])),
    "gamma": lambda p: stats.gamma(1 / p["dispersion"], scale=p["mean"] * p["dispersion"]),
    "poisson": lambda p: stats.poisson(p["mean"]),
    "gaussian_ls": lambda p: stats.norm(p["loc"], p["scale"]),
    "negative_binomial": lambda p: stats.nbinom(
        1 / p["dispersion"], 1 / (1 + p["dispersion"] * p["mean"])
    ),
}
every = pytest.mark.parametrize("name", FORMULAS)


@cache
def fitted(name: str) -> tuple[ak.AdditiveModel, pd.DataFrame]:
    data, _ = simulate(name, 160, seed=1)
    model = ak.AdditiveModel(FORMULAS[name], data[:120], family=name)
    model.fit(data[:120], solver="variational", verbose=0)
    # Both ends of the axis are among the first rows, so none of these lies outside.
    return model, data[120:]


@every
def test_the_log_score_is_the_mean_log_density(name: str) -> None:
    model, data = fitted(name)
    law = SCIPY[name](model.predict(data, type="parameters"))
    log = (law.logpmf if model.family.discrete else law.logpdf)(data.y)
    np.testing.assert_allclose(ak.log_score(model, data, by_row=True), log, rtol=1e-5)
    assert ak.log_score(model, data) == pytest.approx(log.mean(), rel=1e-5)
    beside = ak.log_score(model, data[["x"]], y=data.y)
    assert beside == pytest.approx(log.mean(), rel=1e-5)


@every
def test_the_crps_is_an_integral_of_squares(name: str) -> None:
    model, data = fitted(name)
    some = data[:6]
    laws = SCIPY[name](model.predict(some, type="parameters"))
    found = ak.crps(model, some, by_row=True)
    for row, y in enumerate(some.y):
        if model.family.discrete:
            t = np.arange(2000.0)
            wanted = np.sum((laws.cdf(t[:, None])[:, row] - (y <= t)) ** 2)
        else:
            low, high = (float(laws.ppf(q)[row]) for q in (1e-12, 1 - 1e-12))
            below = integrate.quad(lambda t, row=row: laws.cdf(t)[row] ** 2, low, y, limit=200)[0]
            wanted = (
                below + integrate.quad(lambda t, row=row: laws.sf(t)[row] ** 2, y, high, limit=200)[0]
            )
        assert found[row] == pytest.approx(wanted, rel=1e-4)
    assert ak.crps(model, some) == pytest.approx(found.mean())


def test_weights_divide_the_dispersion_or_count_rows() -> None:
    model, data = fitted("gaussian")
    weight = np.linspace(0.5, 4, len(data))
    p = model.predict(data, type="parameters")
    log = stats.norm.logpdf(data.y, p["mean"], np.sqrt(p["dispersion"] / weight))
    assert ak.log_score(model, data, sample_weight=weight) == pytest.approx(log.mean(), rel=1e-5)
    model, data = fitted("gaussian_ls")
    rows = ak.log_score(model, data, by_row=True)
    mean = np.average(rows, weights=weight)
    assert ak.log_score(model, data, sample_weight=weight) == pytest.approx(mean)
    rows = ak.crps(model, data, by_row=True)
    assert ak.crps(model, data, sample_weight=weight) == pytest.approx(np.average(rows, weights=weight))


@pytest.mark.parametrize("name", ["gaussian", "gaussian_ls"])
def test_the_posterior_is_averaged_over(name: str) -> None:
    model, data = fitted(name)
    found = ak.log_score(model, data, by_row=True, posterior=True)
    rng, draws = np.random.default_rng(0), 20_000
    if name == "gaussian":
        band = model.predict(data, type="link", interval=0.95)
        p = model.predict(data, type="parameters")
        etas = band["link"].to_numpy() + band["se"].to_numpy() * rng.normal(size=(draws, 1))
        density = stats.norm.pdf(data.y.to_numpy(), etas, np.sqrt(p["dispersion"].to_numpy()))
    else:
        run = model._outputs.run("links", [tuple(model._reader.without_response(data))])
        loc, scale = (run[key][:, 0] + run[key][:, 1] * rng.normal(size=(draws, 1)) for key in run)
        density = stats.norm.pdf(data.y.to_numpy(), loc, np.exp(scale))
    error = density.std(axis=0) / density.mean(axis=0) / np.sqrt(draws)
    assert (np.abs(found - np.log(density.mean(axis=0))) < 5 * error + 2e-3).all()
    assert not np.allclose(found, ak.log_score(model, data, by_row=True), atol=1e-4)


def test_compare_has_the_same_score() -> None:
    model, data = fitted("gaussian")
    other = ak.fit("y ~ 1", simulate("gaussian", 160, seed=1)[0][:120], verbose=0)
    table = ak.compare(model, other, data=data, names=["a", "b"]).frame
    assert table.loc["a", "log_score"] == pytest.approx(ak.log_score(model, data))
    assert table.loc["b", "log_score"] == pytest.approx(ak.log_score(other, data))


def test_what_cannot_be_scored() -> None:
    model, data = fitted("gamma")
    with pytest.raises(ak.DataError, match="Column `y` is missing"):
        ak.log_score(model, data[["x"]])
    with pytest.raises(ak.DataError, match="must be above 0"):
        ak.crps(model, data.assign(y=-1.0))
    with pytest.raises(ak.DataError, match="Received: str"):
        ak.log_score("y ~ x", data)
    unfitted = ak.AdditiveModel("y ~ x", data)
    with pytest.raises(ak.NotFittedError):
        ak.crps(unfitted, data)
    streamed = ak.AdditiveModel("y ~ x", data)
    with pytest.warns(ak.AhofmWarning, match="last epoch"):
        streamed.fit(data, epochs=1, solver="adam", verbose=0)
    streamed.posteriors["mean"].forget()
    with pytest.raises(ak.DataError, match="`posterior=True` needs the posterior that"):
        ak.log_score(streamed, data, posterior=True)


def test_a_loss_has_no_score() -> None:
    data, _ = simulate("gaussian", 120, seed=1)
    model = ak.AdditiveModel("y ~ x", data, family="quantile")
    model.fit(data, solver="variational", verbose=0)
    for function, words in (
        (ak.log_score, "The log score"),
        (ak.crps, "The CRPS"),
    ):
        with pytest.raises(ak.DataError, match=f"{words} needs a predicted distribution"):
            function(model, data)
