"""Families of several parameters against `fixtures/mgcv_families.R`: smoothing estimated, and smoothing given.

Data, fits and calls are those of the script. Compared with estimated smoothing (REML there, the evidence
bound here), on 60 new rows:

- `negative_binomial` with `nb`, `tweedie` with `tw`, `beta` with `betar`, `student_t` with `scat`,
  `inverse_gaussian` with `inverse.gaussian`: means, and the constants that mgcv estimates beside them.
- `gaussian_ls` with `gaulss`, `gamma_ls` with `gammals`: means and scales, which have a smooth. There mgcv
  maximises over all coefficients at once, and what the mean takes is not given back to the scale: its
  scales are multiplied by the root of n / (n - edf of the mean).
- `ordinal` with `ocat`, `categorical` with `multinom`: probabilities of the classes, and widths. Here the
  bound's price of a degree of freedom shows (`edf_penalty`, which mgcv has not): curves are a little
  flatter, probabilities a little less extreme.
- `hurdle_poisson` with `ziplss`, whose zeros are of a hurdle as well: means, and the probability of a
  zero. It has no smooth, because there a complementary log-log is of presence, here of a zero.
- `negative_binomial_1` with `quasipoisson`: means only. The variance is the same, the likelihood is not.
"""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from ahofm_keras.solvers import predictors

STORED = json.loads((Path(__file__).parent.parent / "fixtures" / "mgcv_families.json").read_text())
FAMILIES = {
    "nb": "negative_binomial",
    "tw": "tweedie",
    "betar": "beta",
    "gaulss": "gaussian_ls",
    "gammals": "gamma_ls",
    "scat": "student_t",
    "ig": "inverse_gaussian",
    "quasi": "negative_binomial_1",
    "ocat": "ordinal",
    "multinom": "categorical",
    "ziplss": "hurdle_poisson",
}
CLASSES = ("ocat", "multinom")
# Parameters with a predictor of their own; others have one for the first alone.
SMOOTHED = {"gaulss": ("loc", "scale"), "gammals": ("mean", "scale"), "multinom": ("1", "2")}
# mgcv smooths the logarithm of the variance, which is twice that of our scale.
SQUARED = {("gammals", "scale"): 4.0}


@pytest.fixture(autouse=True)
def to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds that go on until nothing is to gain, as mgcv's iterations do.

    Those of a fit end earlier: widths of `ocat` are then 3 % below mgcv's, and a probability of `multinom`
    0.07 off.
    """
    monkeypatch.setattr(predictors, "_TO_COME", 0.0)
    monkeypatch.setattr(predictors, "_TOLERANCE", 1e-8)
    monkeypatch.setattr(predictors, "_TO_COME_EXACT", 0.0)
    monkeypatch.setattr(predictors, "_TOLERANCE_EXACT", 1e-9)


def frame(name: str) -> pd.DataFrame:
    y = np.asarray(STORED["y"][name])
    return pd.DataFrame({**STORED["x"], "y": y.astype(int) if name in CLASSES else y})


def formulas(name: str, lambdas: list[float] | None = None) -> Any:
    """Two smooths for each parameter that has a predictor, one for a scale."""
    left = [""] * 4 if lambdas is None else [f", sp={own!r}" for own in lambdas]

    def smooths(*features: str) -> str:
        return " + ".join(f"s({own}, k=10, knots=(0, 1){left.pop(0)})" for own in features)

    first = f"y ~ {smooths('x1', 'x2')}"
    if name not in SMOOTHED:
        return first
    parameter, other = SMOOTHED[name]
    rest = smooths("x1") if other == "scale" else smooths("x1", "x2")
    return {parameter: first, other: f"~ {rest}"}


@lru_cache
def fitted(name: str) -> ak.AdditiveModel:
    """With smoothing that is estimated."""
    model = ak.AdditiveModel(formulas(name), frame(name), family=FAMILIES[name])
    model.fit(frame(name), verbose=0)
    return model


def values(model: ak.AdditiveModel, name: str) -> dict[str, np.ndarray]:
    """Of parameters, or probabilities by class, on the new rows."""
    new = pd.DataFrame(STORED["new"])
    if name in CLASSES:
        labels = STORED["fits"][name]["values"]
        return dict(zip(labels, np.asarray(model.predict(new)).T, strict=True))
    found = model.predict(new, type="parameters")
    return {own: found[own].to_numpy() for own in found}


def constants(model: ak.AdditiveModel) -> dict[str, float]:
    """Parameters on the first of the new rows."""
    first = model.predict(pd.DataFrame(STORED["new"]), type="parameters").iloc[0]
    return {str(own): float(first[own]) for own in first.index}


def rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values**2)))


@pytest.mark.parametrize("name", [own for own in FAMILIES if own not in CLASSES])
def test_means_are_those_of_mgcv(name: str) -> None:
    """Within 2 % of their spread (root mean square), and nowhere further off than 2 % of their range."""
    expected = np.array(next(iter(STORED["fits"][name]["values"].values())))
    found = next(iter(values(fitted(name), name).values()))
    assert rms(found - expected) < 0.02 * expected.std()
    assert np.abs(found - expected).max() < 0.02 * np.ptp(expected)


@pytest.mark.parametrize("name", CLASSES)
def test_probabilities_are_those_of_mgcv(name: str) -> None:
    """Within a percentage point (root mean square), and nowhere further off than three.

    Of the spread of one class that is up to 2.5 % (`ocat`) and 3.8 % (`multinom`).
    """
    found = values(fitted(name), name)
    for own, expected in STORED["fits"][name]["values"].items():
        assert rms(found[own] - np.array(expected)) < 0.01
        assert np.abs(found[own] - np.array(expected)).max() < 0.03


@pytest.mark.parametrize("name", ["gaulss", "gammals"])
def test_scales_are_those_of_mgcv(name: str) -> None:
    """Each row within 2 %; without what mgcv leaves out, they would not be."""
    stored = STORED["fits"][name]
    left_out = 1 + sum(stored["smooths"]["edf"][:2])
    ratio = values(fitted(name), name)["scale"] / np.array(stored["values"]["scale"])
    assert ratio.mean() == pytest.approx(np.sqrt(400 / (400 - left_out)), abs=0.002)
    np.testing.assert_allclose(ratio / np.sqrt(400 / (400 - left_out)), 1.0, atol=0.02)


@pytest.mark.parametrize("name", ["nb", "tw", "betar", "scat", "ig", "ocat", "ziplss"])
def test_constants_are_those_of_mgcv(name: str) -> None:
    """Within 2 %."""
    stored, found = STORED["fits"][name], constants(fitted(name))
    expected = stored["constants"] or {"zero": stored["values"]["zero"]}
    assert {own: found[own] for own in expected} == pytest.approx(
        {own: value[0] for own, value in expected.items()}, rel=0.02
    )


@pytest.mark.parametrize("name", FAMILIES)
def test_degrees_of_freedom_are_those_of_mgcv(name: str) -> None:
    """Of each smooth, within 15 %."""
    edf = ak.summary(fitted(name)).terms["edf"].dropna()
    np.testing.assert_allclose(edf, STORED["fits"][name]["smooths"]["edf"], rtol=0.15)


@pytest.mark.parametrize("name", ["gaulss", "gammals", "multinom"])
def test_at_given_smoothing_they_are_the_same(name: str) -> None:
    """Penalised likelihood of both predictors, to 1e-4. A lambda belongs to the unit of its predictor."""
    stored = STORED["fits"][f"{name}_sp"]
    unfitted = ak.AdditiveModel(formulas(name), frame(name), family=FAMILIES[name])
    parameters = SMOOTHED[name]
    of = [parameters[0]] * 2 + [parameters[1]] * (len(stored["smooths"]["lambda"]) - 2)
    lambdas = [
        own * unfitted.parameter(parameter).scale ** 2 * SQUARED.get((name, parameter), 1.0)
        for own, parameter in zip(stored["smooths"]["lambda"], of, strict=True)
    ]
    model = ak.AdditiveModel(formulas(name, lambdas), frame(name), family=FAMILIES[name])
    model.fit(frame(name), solver="bcd", verbose=0)
    for own, found in values(model, name).items():
        np.testing.assert_allclose(found, stored["values"][own], rtol=0, atol=1e-4)
