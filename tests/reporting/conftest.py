"""Models whose pages are read, and a browser to read them in."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from ahofm_keras.model.fit_result import FitResult, Sample
from tests.decomposition.conftest import build
from tests.decomposition.conftest import random_model as with_random_weights
from tests.model.conftest import mixed_frame
from tests.reporting.browser import Browser, find_chromium
from tests.reporting.node import Node

FORMULAS = {
    "gaussian": "gaussian ~ group + group:x3 + poly(x3, 2) + s(hour, bs='cp', knots=(0, 24))"
    " + ahofm(x1, x2, group, flag, D=3, F=2) + offset(log(exposure)) + s(x2, by=x3, k=5)"
    " + s(x1, group, bs='fs', k=5)",
    "bernoulli": "bernoulli ~ C(digit):flag + ahofm(x1, x2, group, D=3, F=2, center=False) + center(x1):x3",
    "poisson": "poisson ~ hofm(x1, x2, group, D=3, F=2) + s(digit, k=3) + offset(log(exposure))"
    " + te(x1, hour, k=4, m=((0, 1), (1, 1))) + ti(x2, group) + ti(x1, x3, flag, k=4)"
    " + te(x2, x3, by=flag, k=4) + s(x1, by=group, k=5) + s(exposure, pc=1.2, k=6)"
    " + ti(x2, x3, bs=('ps', 'linear'))",
    "gamma": "gamma ~ s(log(x2), k=8, shape='concave') + s(scale(x3), knots='even', m=(0, 1)) + I(x1 ** 2 / (1 + exposure)):flag"
    " + ahofm(x1, x2, hour, x3, D=4, F=2) + abs(x3) + expm1(x1) + tanh(-x2)",
}


@pytest.fixture(scope="module", autouse=True)
def _forget_graphs() -> Iterator[None]:
    yield
    keras.backend.clear_session()


@pytest.fixture(scope="session")
def frame() -> pd.DataFrame:
    data = mixed_frame(200)
    data["digit"] = np.random.default_rng(1).integers(0, 4, len(data)).astype(float)
    return data


@pytest.fixture(scope="session")
def random_models(frame: pd.DataFrame) -> dict[str, ak.AdditiveModel]:
    """A model of each family with all kinds of terms, and weights that leave no term out."""
    models = {}
    for seed, (family, formula) in enumerate(FORMULAS.items()):
        extrapolation = "linear" if family == "gamma" else "clip"
        model = with_random_weights(formula, frame, family, seed, extrapolation=extrapolation)
        if family != "gaussian":  # keep means where they can be told apart
            for layer in model.fitted_layers():
                for weight in layer.trainable_weights:
                    weight.assign(0.1 * weight)
        sample = Sample(model.read_inputs(frame), frame[family].to_numpy(float), None)
        model.keep_fit(FitResult("adam", 1, 0.0, True, ()), sample)
        models[family] = model
    return models


@pytest.fixture(scope="session", params=FORMULAS)
def random_model(
    request: pytest.FixtureRequest, random_models: dict[str, ak.AdditiveModel]
) -> ak.AdditiveModel:
    return random_models[request.param]


@pytest.fixture(scope="session")
def fitted(frame: pd.DataFrame) -> ak.AdditiveModel:
    """A model with a posterior, a pair that matters, and rows in memory."""
    formula = "gaussian ~ x3 + group:x3 + s(hour, bs='cp', knots=(0, 24)) + ahofm(x1, x2, group, flag, D=3, F=2)"
    model = build(formula, frame)
    model.fit(frame, verbose=0)
    return model


@pytest.fixture(scope="session")
def run_script() -> Callable[[dict[str, Any], str], Any]:
    """Value of an expression of `model` and `posterior`, made by the page's own scripts."""
    program = shutil.which("node")
    if program is None:
        pytest.skip("node is not installed: the page's arithmetic runs in the browser's tests only")
    return Node(program).run


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    program = find_chromium()
    if program is None:
        pytest.skip("no Chromium is installed: pages are not opened")
    try:
        subprocess.run([program, "--version"], capture_output=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"Chromium does not run here: {error}")
    own = Browser(program)
    yield own
    own.close()


@pytest.fixture(scope="session")
def fitted_page(fitted: ak.AdditiveModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ak.report(fitted, tmp_path_factory.mktemp("page") / "fitted.html")
