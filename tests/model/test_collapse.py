"""A scale that falls to 0 is found, said and not called converged; what may be 0 is no alarm."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from ahofm_keras.families import get_family
from ahofm_keras.model.collapse import find_collapsed

RNG = np.random.default_rng(0)
X = RNG.uniform(size=120)
NOISE = RNG.normal(size=120)
COLLAPSING: dict[str, tuple[str, Any, np.ndarray]] = {
    "gaussian_ls": ("gaussian_ls", {"loc": "y ~ s(x, k=6)", "scale": "~ x"}, np.exp(X)),
    "student_t": ("student_t", "y ~ x", 2 + X),
    "gamma_ls": ("gamma_ls", "y ~ x", np.exp(X)),
    "beta": ("beta", "y ~ x", 1 / (1 + np.exp(-X))),
    "a corner": (
        "gaussian_ls",
        {"loc": "y ~ s(x)", "scale": "~ s(x)"},
        np.where(X < 0.4, 2.0, 2 + NOISE),
    ),
}
ALLOWED: dict[str, tuple[str, Any, np.ndarray]] = {
    "underdispersed counts": ("negative_binomial", "y ~ x", RNG.binomial(10, 0.3 + 0.4 * X) * 1.0),
    "no further zeros": ("zero_inflated_poisson", "y ~ x", RNG.poisson(5 + X) * 1.0),
    "ordinary noise": ("gaussian_ls", {"loc": "y ~ x", "scale": "~ x"}, X + 0.1 * NOISE),
    "amounts of all sizes": ("gamma_ls", "y ~ x", np.exp(20 * X) * RNG.gamma(4.0, 0.25, 120)),
}


def fit(family: str, formula: Any, y: np.ndarray) -> tuple[ak.AdditiveModel, list[str]]:
    data = pd.DataFrame({"x": X, "y": y})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ak.AhofmWarning)
        model = ak.AdditiveModel(formula, data, family=family)
        model.fit(data, solver="variational", verbose=0)
    return model, [str(own.message) for own in caught]


@pytest.mark.parametrize("case", COLLAPSING)
def test_a_scale_that_collapses_is_said(case: str) -> None:
    model, said = fit(*COLLAPSING[case])
    assert not model.fit_result.converged
    (text,) = [own for own in said if own.startswith("The predicted spread of `y` is as good as 0 in")]
    assert text in model.fit_result.warnings
    assert "of 120 rows, first at row" in text
    band = model.predict(pd.DataFrame({"x": X}), interval=0.9)
    assert np.isfinite(band.to_numpy()).all()
    parameters = model.predict(pd.DataFrame({"x": X}), type="parameters")
    assert np.isfinite(parameters.to_numpy()).all()
    if case == "a corner":
        count = int(text.split(" in ")[1].split()[0])
        assert 30 <= count <= int((X < 0.45).sum())


@pytest.mark.parametrize("case", ALLOWED)
def test_no_false_alarm(case: str) -> None:
    model, said = fit(*ALLOWED[case])
    assert not [own for own in said if "as good as 0" in own]
    assert model.fit_result.converged


HALF = np.where(RNG.uniform(size=len(X)) < 0.5, 0.0, np.exp(X))


@pytest.mark.parametrize(
    ("family", "formula", "y", "told"),
    [
        ("gaussian_ls", {"loc": "y ~ x", "scale": "~ x"}, HALF, r"is 0 exactly in \d+ of \d+ rows.*a scale.*`family=\"tweedie\"`"),
        ("student_t", {"loc": "y ~ x", "df": "~ x"}, HALF - 1, "is -1 exactly"),
        ("gaussian_ls", {"loc": "y ~ x", "scale": "~ 1"}, HALF, None),
        ("gaussian_ls", {"loc": "y ~ x", "scale": "~ x"}, np.round(X + RNG.normal(size=len(X))), None),
        ("tweedie", {"mean": "y ~ x", "dispersion": "~ x"}, HALF, None),
    ],
)  # fmt: skip
def test_a_value_that_many_rows_share_is_said_before_the_fit(
    family: str, formula: Any, y: np.ndarray, told: str | None
) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ak.AdditiveModel(formula, pd.DataFrame({"x": X, "y": y}), family=family)
    messages = [str(own.message) for own in caught]
    if told is None:
        assert not messages
    else:
        (message,) = messages
        assert re.search(told, message)


def test_rows_are_measured_by_their_own_size_or_by_the_spread_of_all() -> None:
    mean = np.array([1e-3, 1.0, 1e6])
    own = find_collapsed(
        get_family("gamma_ls"), {"mean": mean, "scale": np.array([1e-2, 1e-7, 1e-2])}, mean
    )
    assert own.tolist() == [False, True, False]
    y = np.array([-1.0, 0.0, 1.0])
    scale = np.array([1e-3, 1e-7, 1.0])
    assert find_collapsed(get_family("gaussian_ls"), {"loc": y, "scale": scale}, y).tolist() == [
        False,
        True,
        False,
    ]
