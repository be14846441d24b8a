"""What a page says of new observations: intervals of `predict`, quantiles, survival curves."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from ahofm_keras.families import get_family
from ahofm_keras.reporting.contents import collect
from ahofm_keras.reporting.encoding import unpack
from ahofm_keras.reporting.responses import response_table
from tests.reporting.browser import Browser

LEVEL = 0.9
FORMULAS: dict[str, Any] = {
    "poisson": "y ~ s(x, k=6)",
    "gamma": "y ~ s(x, k=6)",
    "binomial": "cbind(y, trials - y) ~ s(x, k=6)",
    "negative_binomial": {"mean": "y ~ s(x, k=6)", "dispersion": "~ x"},
    "zero_inflated_poisson": {"mean": "y ~ s(x, k=6)", "zero": "~ x"},
    "gaussian_ls": {"loc": "y ~ s(x, k=6)", "scale": "~ x"},
    "gamma_ls": {"mean": "y ~ s(x, k=6)", "scale": "~ x"},
    "quantile": "y ~ x",
    "expectile": "y ~ x",
    "cox": "Surv(y, seen) ~ s(x, k=6)",
}


def draw(family: str, rng: np.random.Generator, rows: int) -> pd.DataFrame:
    frame = pd.DataFrame({"x": rng.uniform(-1, 1, rows), "trials": 12.0, "seen": 1.0})
    mean = np.exp(1 + np.sin(2 * frame.x))
    if family == "cox":
        frame["y"], end = rng.exponential(1 / mean), rng.exponential(1.0, rows)
        frame["seen"] = (frame.y <= end).astype(float)
        frame["y"] = np.minimum(frame.y, end)
    elif family == "binomial":
        frame["y"] = rng.binomial(12, mean / (2 + mean)).astype(float)
    elif get_family(family).discrete:
        frame["y"] = rng.poisson(mean * rng.gamma(2, 0.5, rows)) * (rng.uniform(size=rows) > 0.2)
    else:
        frame["y"] = rng.gamma(4, mean / 4)
    return frame


@lru_cache
def model_of(family: str) -> tuple[ak.AdditiveModel, pd.DataFrame]:
    frame = draw(family, np.random.default_rng(3), 250)
    chosen = ak.families.Quantile(levels=[0.1, 0.5, 0.75]) if family == "quantile" else family
    model = ak.AdditiveModel(FORMULAS[family], frame, family=chosen)
    model.fit(frame, verbose=0)
    return model, frame


def links_and_errors(model: ak.AdditiveModel, rows: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    band, names = model.predict(rows, type="link", interval=LEVEL), list(model.design.predictors)
    if len(names) == 1:
        return band[["link"]].to_numpy(), band[["se"]].to_numpy()
    return band[names].to_numpy(), band[[f"{name}_se" for name in names]].to_numpy()


def ends_in_page(model: ak.AdditiveModel, rows: pd.DataFrame, run_script: Any) -> np.ndarray:
    contents = collect(model, None, None, 20, LEVEL)
    pairs = [
        list(map(np.ndarray.tolist, pair)) for pair in zip(*links_and_errors(model, rows), strict=True)
    ]
    script = f"{pairs}.map(([at, se]) => new Outcome(contents.outcome).spread.interval(at, se, contents.level_reach))"
    return np.array(run_script(contents, script), float)


@pytest.mark.parametrize("family", ["gamma", "gaussian_ls", "gamma_ls"])
def test_intervals_of_numbers(family: str, run_script: Any) -> None:
    """Those of `predict`, within a hundredth of their width."""
    model, frame = model_of(family)
    rows = frame.iloc[:40]
    band = model.predict(rows, interval=LEVEL)
    found = ends_in_page(model, rows, run_script)
    width = band.predictive_upper - band.predictive_lower
    assert np.max(np.abs(found[:, 0] - band.predictive_lower) / width) < 0.01
    assert np.max(np.abs(found[:, 1] - band.predictive_upper) / width) < 0.01


@pytest.mark.parametrize("family", ["poisson", "negative_binomial", "zero_inflated_poisson"])
def test_intervals_of_counts(family: str, run_script: Any) -> None:
    """Whole numbers, and but for a few rows near a step those of `predict`."""
    model, frame = model_of(family)
    rows = frame.iloc[:60]
    band = model.predict(rows, interval=LEVEL)
    expected = band[["predictive_lower", "predictive_upper"]].to_numpy()
    found = ends_in_page(model, rows, run_script)
    np.testing.assert_array_equal(found, np.round(found))
    assert np.abs(found - expected).max() <= 1
    assert np.mean(found == expected) >= 0.98


def test_intervals_of_successes(run_script: Any) -> None:
    """In the number of trials that rows have."""
    model, frame = model_of("binomial")
    rows = frame.iloc[:60]
    contents = collect(model, None, None, 20, LEVEL)
    assert contents["outcome"]["trials"] == 12
    assert contents["title"] == "How the share of y depends on x"
    band = model.predict(rows, interval=LEVEL, trials="trials")
    expected = band[["predictive_lower", "predictive_upper"]].to_numpy()
    found = ends_in_page(model, rows, run_script)
    assert np.abs(found - expected).max() <= 1
    assert np.mean(found == expected) >= 0.98


@pytest.mark.parametrize("family", ["tweedie", "hurdle_poisson"])
def test_tables_of_heaps_at_zero(family: str, run_script: Any) -> None:
    """Where the predictors are known, quantiles are those of the distribution, 0 in the heap."""
    own, ends = get_family(family), [(-1.0, 1.5), (0.3, 0.3), (-0.2, -0.2)]
    names = list(own.parameters)
    table = response_table(own, ends[: len(names)], names, LEVEL, None)
    etas = np.linspace(-0.9, 1.4, 25)
    others = [end[0] for end in ends[1 : len(names)]]
    constants = {name: np.full(25, other) for name, other in zip(names[1:], others, strict=True)}
    distribution = own.distribution_of(own.inverse_links({names[0]: etas, **constants}))
    points = [[eta, *others] for eta in etas.tolist()]
    zeros = [0.0] * len(names)
    script = f"{points}.map((at) => new Spread(contents.table).interval(at, {zeros}, contents.reach))"
    found = np.array(run_script({**_bare(), "table": table, "reach": 1.6448536269514722}, script), float)
    for place, probability in enumerate(((1 - LEVEL) / 2, (1 + LEVEL) / 2)):
        expected = distribution.ppf(probability)
        if own.discrete:
            np.testing.assert_array_equal(found[:, place], expected)
        else:
            np.testing.assert_allclose(found[:, place], expected, rtol=2e-3, atol=2e-3)
    assert (found[:, 0] == 0).any()


def _bare() -> dict[str, Any]:
    """The contents of a page with nothing of a model but its arithmetic."""
    contents = collect(model_of("gamma")[0], None, None, 0, LEVEL)
    return {"arithmetic": contents["arithmetic"], "family": contents["family"], "posterior": None}


def test_fitted_quantiles(run_script: Any) -> None:
    """Sums of the parameters; figures are the shares below them, and no likelihood."""
    model, frame = model_of("quantile")
    contents = collect(model, None, None, 20, LEVEL)
    parameters = model.predict(frame.iloc[:5], type="parameters").to_numpy().tolist()
    script = f"{parameters}.map((own) => new Outcome(contents.outcome).levels(own))"
    found = run_script(contents, script)
    assert [own["name"] for own in found[0]] == ["10 % quantile", "median", "75 % quantile"]
    assert [own["middle"] for own in found[0]] == [False, True, False]
    values = [[own["value"] for own in row] for row in found]
    np.testing.assert_allclose(values, model.predict(frame.iloc[:5]), rtol=1e-6)
    figures = {own["label"]: own["value"] for own in contents["quality"]["figures"]}
    below = {name: np.mean(frame.y <= own) for name, own in model.predict(frame).items()}
    assert list(figures.values()) == pytest.approx(list(below.values()))
    assert list(figures) == [
        "Below the 10 % quantile", "Below the median", "Below the 75 % quantile"
    ]  # fmt: skip
    assert "10 % quantile, median and 75 % quantile of y" in contents["about"]["lead"]


def test_an_expectile_has_no_likelihood_nor_intervals() -> None:
    contents = collect(model_of("expectile")[0], None, None, 20, LEVEL)
    assert [own["label"] for own in contents["quality"]["figures"]] == ["Deviance explained"]
    assert contents["outcome"] is None
    assert contents["family"]["band_label"] == "expectile"


# Survival ----------------------------------------------------------------------------------------------


def test_survival_curves_are_in_the_page() -> None:
    model, frame = model_of("cox")
    contents = collect(model, frame, None, 20, LEVEL)
    own = contents["survival"]
    times, hazard = unpack(own["times"]), unpack(own["hazard"])
    row = {"x": 0.3}
    curve = ak.survival(model, row, times=times[times <= own["last"]])
    expected = np.exp(-float(model.predict(row)[0]) * hazard[: len(curve)])
    np.testing.assert_allclose(curve.survival, expected, atol=1e-6)
    figures = {figure["label"]: figure["value"] for figure in contents["quality"]["figures"]}
    assert figures == {
        "Concordance": pytest.approx(ak.concordance(model, frame)),
        "Events": frame.seen.sum(),
    }
    assert sum(group["events"] for group in own["groups"]) == frame.seen.sum()
    assert contents["words"]["what"].startswith("It predicts the hazard ratio as the sum of")
    # Of groups by risk observed and predicted curves agree, and are apart.
    predicted = [unpack(group["predicted"]) for group in own["groups"]]
    for group, curve in zip(own["groups"], predicted, strict=True):
        observed = unpack(group["observed"])
        assert np.max(np.abs(observed - curve[: len(observed)])) < 0.2
    assert (np.diff(predicted, axis=0) <= 0).all()


def test_no_time_of_an_event_enters_a_page_without_rows() -> None:
    model, frame = model_of("cox")
    own = collect(model, frame, None, 0, LEVEL)
    inner = unpack(own["survival"]["times"])[1:-1]
    assert not np.isin(inner, frame.y).any()
    assert own["sample"] is None


def test_survival_in_a_browser(browser: Browser, tmp_path: Path) -> None:
    model, _ = model_of("cox")
    browser.open(ak.report(model, tmp_path / "cox.html", level=LEVEL))
    browser.run("fields[0].put(0.25); changed(true)")
    browser.settle()
    expected = float(model.predict({"x": 0.25})[0])
    browser.wait(f"Math.abs(byId('result').dataset.value - {expected}) < 1e-3")
    median = float(model.predict({"x": 0.25}, type="quantile", q=0.5)[0])
    assert float(browser.run("byId('survival').dataset.median")) == pytest.approx(median)
    assert browser.run("byId('observed-title').textContent") == "Observed and predicted survival"
    browser.run("document.getElementById('random-row').click()")
    told = browser.run("byId('result-row').textContent")
    assert re.fullmatch(
        r"In this row y was [\d.]+, (with the event|the event not seen until then)\.", told
    )
    browser.open(tmp_path / "cox.html", 390, 844)
    browser.settle()
    assert browser.run("document.documentElement.scrollWidth") == 390
    assert browser.problems == []


def test_counts_in_a_browser(browser: Browser, tmp_path: Path) -> None:
    """One predictor, with its band and whole numbers; several, with the ends of `predict`."""
    for family in ("poisson", "negative_binomial"):
        model, _ = model_of(family)
        browser.open(ak.report(model, tmp_path / "counts.html", level=LEVEL))
        browser.run("fields[0].put(-0.5); changed(true)")
        band = model.predict({"x": -0.5}, interval=LEVEL).iloc[0]
        ends = f"{band.predictive_lower:.0f} to {band.predictive_upper:.0f}"
        browser.wait(f"byId('result-band').textContent.endsWith(': {ends}')")
        assert browser.problems == []
