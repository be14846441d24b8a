"""Variables and margins: what a model remembers of its training data."""

from __future__ import annotations

import json
from pathlib import Path

import keras
import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from ahofm_keras.terms import Design, Margin, Margins, Variable, cell_of
from ahofm_keras.terms import margins as module
from ahofm_keras.terms.margins import CELLS, QUANTILES, learn_margins
from tests.solvers.conftest import learn_design

FORMULA = "y ~ x + group:x + poly(x, 2) + log(z) + s(x, k=6) + s(w) + ahofm(x, z, group, flag, k=5)"


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"x": rng.normal(5, 2, 90), "z": rng.gamma(2, 1, 90), "w": rng.uniform(size=90)})
    data["group"] = rng.choice(["a", "b", "c"], 90, p=[0.6, 0.3, 0.1])
    data["flag"] = data.x > 6
    return data.assign(y=rng.normal(size=90))


@pytest.fixture(scope="module")
def learned(frame: pd.DataFrame) -> tuple[Design, dict[str, np.ndarray]]:
    return learn_design(FORMULA, frame)


def by_label(design: Design) -> dict[str, tuple[Variable, Margin]]:
    assert design.margins is not None
    pairs = zip(design.variables(), design.margins.single, strict=True)
    return {variable.label: (variable, margin) for variable, margin in pairs}


def test_a_variable_has_all_functions_that_terms_have_of_it(
    learned: tuple[Design, dict[str, np.ndarray]],
) -> None:
    design, columns = learned
    known = by_label(design)
    assert list(known) == ["x", "group", "log(z)", "w", "z", "flag"]
    x, _ = known["x"]
    # Two bases of different k, x itself and two powers; each once, however many terms have it.
    widths = [len(feature.eigenvalues) for feature in x.features]
    assert (len(x.features), x.size) == (2, sum(widths) + 3)
    functions = x.functions(columns["x"])
    assert functions.shape == (x.size, 90)
    for place, feature in zip(x.places, x.features, strict=True):
        own = functions[x.columns_of(place)]
        assert len(own) == len(feature.eigenvalues)
        np.testing.assert_allclose(own @ own.T / 90, np.eye(len(own)), atol=1e-8)
    powers = np.vander(columns["x"], 3)
    for product in x.products:
        own = functions[x.column_of(product)]
        np.testing.assert_allclose(powers @ np.linalg.lstsq(powers, own, rcond=None)[0], own, atol=1e-9)
    group, _ = known["group"]
    assert group.is_category
    levels = group.functions(np.array(["a", "c", "new"], object))
    assert not levels[: len(levels) - len(group.products), 2].any()
    with pytest.raises(KeyError):
        group.columns_of(x.places[0])


def test_moments_are_those_of_the_rows(learned: tuple[Design, dict[str, np.ndarray]]) -> None:
    for label, (variable, margin) in by_label(learned[0]).items():
        values = np.log(learned[1]["z"]) if label == "log(z)" else learned[1][label]
        functions = variable.functions(values)
        if variable.is_category:
            counts = [np.mean(values == level) for level in variable.levels]
            np.testing.assert_allclose(margin.frequencies, counts)
            assert not len(margin.mean)
            continue
        np.testing.assert_allclose(margin.mean, functions.mean(axis=1), atol=1e-10)
        np.testing.assert_allclose(margin.covariance, np.cov(functions, bias=True), atol=1e-8)
        assert len(margin.quantiles) == QUANTILES
        assert (margin.low, margin.high) == (values.min(), values.max())
        assert margin.quantiles[50] == pytest.approx(np.median(values))


def test_rows_in_chunks(
    learned: tuple[Design, dict[str, np.ndarray]], monkeypatch: pytest.MonkeyPatch
) -> None:
    design, columns = learned
    monkeypatch.setattr(module, "_CHUNK", 7)
    found = learn_margins(design.variables(), design.terms, columns)
    for one, other in zip(found.single, design.margins.single, strict=True):
        np.testing.assert_allclose(one.mean, other.mean, atol=1e-10)
        np.testing.assert_allclose(one.covariance, other.covariance, atol=1e-9)


def test_known_moments_are_not_computed_again(learned: tuple[Design, dict[str, np.ndarray]]) -> None:
    """Of a variable with one basis only: they follow from the means of B and from B'B."""
    design, columns = learned
    variable = by_label(design)["w"][0]
    basis = np.linalg.lstsq(
        variable.features[0].transform.T, variable.functions(columns["w"]), rcond=None
    )[0]
    moments = {variable.places[0]: (basis.mean(axis=1), basis @ basis.T / 90)}
    found = learn_margins(design.variables(), design.terms, columns, moments)
    for one, other in zip(found.single, design.margins.single, strict=True):
        np.testing.assert_allclose(one.mean, other.mean, atol=1e-9)
        np.testing.assert_allclose(one.covariance, other.covariance, atol=1e-8)


def test_occupied_cells(learned: tuple[Design, dict[str, np.ndarray]]) -> None:
    design, columns = learned
    margins, known = design.margins, by_label(design)
    assert margins is not None
    assert margins.occupancy("w", "x") is None, "they never interact"
    assert len(margins.occupied) == 6
    for first, second in margins.occupied:
        found = margins.occupancy(first, second)
        expected = np.zeros_like(found)
        for a, b in zip(columns[first], columns[second], strict=True):
            cells = [_cell(known[label][0], value) for label, value in ((first, a), (second, b))]
            expected[tuple(cells)] = True
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(margins.occupancy(second, first), expected.T)


def _cell(variable: Variable, value: object) -> int:
    if variable.is_category:
        return variable.levels.index(value)
    low, high = variable.features[0].basis.axis[0], variable.features[0].basis.axis[-1]
    return min(int((value - low) / (high - low) * CELLS), CELLS - 1)


def test_cells_of_values(learned: tuple[Design, dict[str, np.ndarray]]) -> None:
    variable, margin = by_label(learned[0])["w"]
    step = (margin.high - margin.low) / CELLS
    values = np.array(
        [margin.low, margin.high, margin.low - 1, margin.high + 1, margin.low + 2.5 * step, 1e300]
    )
    assert cell_of(variable, margin, values).tolist() == [0, CELLS - 1, -1, -1, 2, -1]
    group = by_label(learned[0])["group"]
    assert cell_of(*group, np.array(["c", "z"], object)).tolist() == [2, -1]


def test_a_category_of_many_levels_has_no_cells() -> None:
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"x": rng.normal(size=300), "g": [f"level {j % 70}" for j in range(300)]})
    design, _ = learn_design("y ~ ahofm(x, g)", data.assign(y=0.5))
    assert design.margins.occupancy("x", "g") is None


def test_a_constant_variable(frame: pd.DataFrame) -> None:
    design, _ = learn_design("y ~ 0 + one + x:one", frame.assign(one=1.0))
    variable, margin = by_label(design)["one"]
    assert cell_of(variable, margin, np.array([1.0, 1.5])).tolist() == [0, -1]
    assert margin.covariance.tolist() == [[0.0]]
    assert design.margins.occupancy("one", "x").any(axis=1).sum() == 1


def assert_same(one: Margins, other: Margins) -> None:
    for a, b in zip(one.single, other.single, strict=True):
        assert a.label == b.label
        for name in ("quantiles", "frequencies", "mean", "covariance"):
            np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    assert one.occupied.keys() == other.occupied.keys()
    for key in one.occupied:
        np.testing.assert_array_equal(one.occupied[key], other.occupied[key])


def test_json_and_back(learned: tuple[Design, dict[str, np.ndarray]]) -> None:
    margins = learned[0].margins
    assert margins is not None
    assert_same(margins, Margins.from_json(json.loads(json.dumps(margins.to_json()))))
    again = Design.from_json(json.loads(json.dumps(learned[0].to_json())))
    assert_same(margins, again.margins)
    without = Design.from_json({**learned[0].to_json(), "margins": None})
    assert without.margins is None
    assert (
        Design.from_json({k: v for k, v in learned[0].to_json().items() if k != "margins"}).margins
        is None
    )


@pytest.mark.filterwarnings("ignore::ahofm_keras.AhofmWarning")
def test_a_saved_model_keeps_them(frame: pd.DataFrame, tmp_path: Path) -> None:
    model = ak.AdditiveModel(FORMULA, frame)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert_same(model.design.margins, loaded.design.margins)
