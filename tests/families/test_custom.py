"""Families of a log-probability: slopes, distribution, fits, files that import nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from keras import ops
from scipy import stats

import ahofm_keras as ak
from ahofm_keras.errors import DataError
from ahofm_keras.families import FAMILIES, custom, get_family

LOG_2_PI = float(np.log(2 * np.pi))


def normal(y: Any, loc: Any, scale: Any) -> Any:
    return -(((y - loc) / scale) ** 2) / 2 - ops.log(scale) - LOG_2_PI / 2


def geometric(y: Any, parameters: Any) -> Any:
    mean = parameters["mean"]
    return y * (ops.log(mean) - ops.log1p(mean)) - ops.log1p(mean)


def exponential(y: Any, mean: Any) -> Any:
    return -ops.log(mean) - y / mean


def student(y: Any, loc: Any, scale: Any) -> Any:
    z = (y - loc) / scale
    return -2 * ops.log1p(z**2 / 3) - ops.log(scale) + float(np.log(2 / np.pi / np.sqrt(3)))


def power(y: Any, shape: Any) -> Any:
    return ops.log(shape) + (shape - 1) * ops.log(y)


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    before = dict(FAMILIES)
    yield
    FAMILIES.clear()
    FAMILIES.update(before)


def gaussian() -> Any:
    return custom(normal, {"loc": "identity", "scale": "log"}, name="my normal")


# The family, parameters, and the same by SciPy.
PLACES = {
    "normal": (
        gaussian,
        {"loc": [-3.0, 0.1, 1e4], "scale": [0.01, 2.0, 5.0]},
        lambda p: stats.norm(p["loc"], p["scale"]),
    ),
    "geometric": (
        lambda: custom(geometric, {"mean": "log"}, name="my counts", discrete=True),
        {"mean": [0.02, 1.3, 60.0]},
        lambda p: stats.geom(1 / (1 + p["mean"]), loc=-1),
    ),
    "exponential": (
        lambda: custom(exponential, {"mean": ("log", "inverse")}, name="my times", support=(0, inf)),
        {"mean": [1e-3, 1.0, 700.0]},
        lambda p: stats.expon(scale=p["mean"]),
    ),
    "student": (
        lambda: custom(student, {"loc": "identity", "scale": "log"}, name="my tails"),
        {"loc": [-3.0, 0.1, 50.0], "scale": [0.01, 2.0, 5.0]},
        lambda p: stats.t(3, p["loc"], p["scale"]),
    ),
    "power": (
        lambda: custom(power, {"shape": "log"}, name="my shares", support=(0, 1)),
        {"shape": [0.4, 1.0, 6.0]},
        lambda p: stats.powerlaw(p["shape"]),
    ),
}
every_place = pytest.mark.parametrize("name", PLACES)


@every_place
def test_the_distribution_is_found_from_the_density(name: str) -> None:
    make, parameters, oracle = PLACES[name]
    family, known = make(), {key: np.array(own) for key, own in parameters.items()}
    found, wanted = family.distribution_of(known), oracle(known)
    for chance in (0.01, 0.3, 0.5, 0.9, 0.999):
        y = wanted.ppf(chance)
        np.testing.assert_allclose(found.cdf(y), wanted.cdf(y), atol=2e-4)
        log = wanted.logpmf if family.discrete else wanted.logpdf
        own = found.logpmf if family.discrete else found.logpdf
        np.testing.assert_allclose(own(y), log(y), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(wanted.cdf(found.ppf(chance)), wanted.cdf(y), atol=3e-4)
    np.testing.assert_allclose(found.mean(), wanted.mean(), rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(found.var(), wanted.var(), rtol=1e-2)
    assert found.rvs(size=(5, 3), random_state=1).shape == (5, 3)


@every_place
def test_informations_are_expected_squares(name: str) -> None:
    make, parameters, oracle = PLACES[name]
    family, known = make(), {key: np.array(own) for key, own in parameters.items()}
    chances = (np.arange(20_000) + 0.5) / 20_000
    for row in range(3):
        own = {key: np.full(1, value[row]) for key, value in known.items()}
        y = oracle(own).ppf(chances)
        scores = family.score(y, {key: np.full(len(y), value) for key, value in own.items()})
        found = family.information(y[:1], own)
        for key, score in scores.items():
            assert found[key][0] == pytest.approx(np.mean(score**2), rel=0.05)


def test_it_is_the_built_in_one() -> None:
    own, known = gaussian(), ak.families.GaussianLS()
    rng = np.random.default_rng(0)
    y, parameters = rng.normal(size=50), {"loc": rng.normal(size=50), "scale": rng.uniform(0.1, 3, 50)}
    for part in ("score", "information"):
        found, wanted = getattr(own, part)(y, parameters), getattr(known, part)(y, parameters)
        for key in wanted:
            np.testing.assert_allclose(found[key], wanted[key], rtol=5e-3)
    np.testing.assert_allclose(own.crps(y, parameters), known.crps(y, parameters), rtol=5e-3)
    for key, value in known.start_values(y).items():
        assert own.start_values(y)[key] == pytest.approx(value, rel=1e-2, abs=1e-3)


@pytest.fixture(scope="module")
def data() -> pd.DataFrame:
    rng = np.random.default_rng(2)
    data = pd.DataFrame({"x": rng.uniform(-1, 1, 300)})
    return data.assign(y=np.sin(2 * data.x) + np.exp(data.x - 1) * rng.normal(size=300))


FORMULA = {"loc": "y ~ s(x)", "scale": "~ x"}


def test_a_fit_is_that_of_the_built_in_one_and_is_saved(data: pd.DataFrame, tmp_path: Path) -> None:
    links = {"loc": "identity", "scale": "log"}
    family = custom(
        normal, links, name="my normal", distribution=lambda p: stats.norm(p["loc"], p["scale"])
    )
    model = ak.fit(FORMULA, data, family=family, verbose=0)
    same = ak.fit(FORMULA, data, family="gaussian_ls", verbose=0)
    found, wanted = (own.predict(data, type="parameters") for own in (model, same))
    np.testing.assert_allclose(found, wanted, rtol=0.01, atol=0.01)
    few = data[:20]
    bands = [own.predict(few, interval=0.9) for own in (model, same)]
    np.testing.assert_allclose(bands[0], bands[1], rtol=0.02, atol=0.02)
    model.save(tmp_path / "model.keras")
    again = ak.load_model(tmp_path / "model.keras")
    assert again.family == model.family
    np.testing.assert_array_equal(again.predict(few, type="parameters"), found[:20])
    # A file refers to the function, and makes nothing of it that is not there.
    del FAMILIES["my normal"]
    with pytest.raises(DataError, match=r"`tests.families.test_custom:normal`.*Files import nothing"):
        ak.load_model(tmp_path / "model.keras")
    custom(student, {"loc": "identity", "scale": "log"}, name="my normal")
    with pytest.raises(DataError, match=r"of this process `tests.families.test_custom:student`"):
        ak.load_model(tmp_path / "model.keras")


def test_a_file_imports_nothing() -> None:
    assert "antigravity" not in sys.modules
    config = {"name": "mine", "links": {"loc": "identity"}, "log_prob": "antigravity:fly"}
    with pytest.raises(DataError, match=r"Unknown family 'mine'\. It is a custom one"):
        get_family(config)
    assert "antigravity" not in sys.modules


@pytest.mark.filterwarnings("ignore:The fit reached its last epoch")
def test_adam_trains_it(data: pd.DataFrame) -> None:
    model = ak.AdditiveModel(FORMULA, data, family=gaussian())
    with pytest.raises(DataError, match="`my normal` was made without `distribution`"):
        model.fit(data, solver="variational", verbose=0)
    model.fit(data, epochs=3, verbose=0)
    assert model.fit_result.solver == "adam"
    assert np.isfinite(model.fit_result.deviance)
    assert model.fit_result.deviance < model.fit_result.null_deviance


def test_what_cannot_be_imported_is_told_when_it_is_saved(data: pd.DataFrame, tmp_path: Path) -> None:
    for number, function in enumerate((lambda y, loc, scale: normal(y, loc, scale), at_a_prompt)):
        family = custom(function, {"loc": "identity", "scale": "log"}, name=f"mine {number}")
        model = ak.AdditiveModel(FORMULA, data, family=family)
        with pytest.raises(DataError, match="cannot be imported by the process that loads the model"):
            model.save(tmp_path / "model.keras")


def at_a_prompt(y: Any, loc: Any, scale: Any) -> Any:
    return normal(y, loc, scale)


at_a_prompt.__module__ = "__main__"


def test_bad_arguments_are_told() -> None:
    links = {"loc": "identity", "scale": "log"}
    for given, message in (
        ({"log_prob": "normal"}, "`log_prob` must be a function"),
        ({"name": ""}, "`name` of a family must be a text"),
        ({"name": "gamma"}, "There is a family `gamma` already"),
        ({"parameters": {}}, "`parameters` of a custom family must be links by name"),
        (
            {"parameters": {"loc": "log", "scale": "cosine"}},
            "Unknown link 'cosine' of the parameter `scale`",
        ),
        ({"parameters": {"mu": "log", "scale": "log"}}, r"must take `\(y, mu, scale\)`"),
        ({"support": (1, 0)}, "`support` must be an interval"),
        ({"support": 3}, "`support` must be an interval"),
    ):
        arguments: dict[str, Any] = {"log_prob": normal, "parameters": links, "name": "mine"}
        with pytest.raises(DataError, match=message):
            custom(**{**arguments, **given})


def test_a_density_that_is_none_is_told() -> None:
    def half(y: Any, loc: Any) -> Any:
        return -((y - loc) ** 2) / 2

    family = custom(half, {"loc": "identity"}, name="not normalised")
    with pytest.raises(DataError, match=r"add up to 2\.51, not to 1"):
        family.distribution_of({"loc": np.zeros(2)})


def test_starts_and_support_may_be_functions() -> None:
    family = custom(
        exponential,
        {"mean": "log"},
        name="mine",
        support=lambda y: y > 0,
        start=lambda y: {"mean": y.max()},
    )
    assert family.start_values(np.array([1.0, 4.0])) == {"mean": 4.0}
    with pytest.raises(DataError, match="must be finite, as `support` says"):
        family.check_response(np.array([1.0, 0.0]), "y")
    known = custom(
        exponential, {"mean": "log"}, name="known", distribution=lambda p: stats.expon(scale=p["mean"])
    )
    assert known.distribution_of({"mean": np.ones(2)}).var().tolist() == [1, 1]
