"""The picture of many coefficients, with names of thirty letters and more."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy import stats

import ahofm_keras as ak
from ahofm_keras.errors import DataError
from ahofm_keras.plotting import coefficient_data, plot_coefficients
from tests.plotting.crowded import names_of

NAMES = names_of(50)
FORMULA = f"y ~ lasso({', '.join(NAMES)}, place, sp=0.02) + other"


@pytest.fixture(scope="module")
def model() -> Any:
    rng = np.random.default_rng(0)
    data = pd.DataFrame(rng.normal(size=(200, 50)) * np.arange(1, 51), columns=NAMES)
    data["place"], data["other"] = rng.choice(["north", "south", "west"], 200), rng.normal(size=200)
    strong = data[NAMES[:20]] / np.arange(1, 21)
    data["y"] = strong.sum(axis=1) + (data.place == "north") + data.other + rng.normal(size=200)
    found = ak.AdditiveModel(FORMULA, data)
    found.fit(data, solver="bcd", verbose=0)
    return found


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_the_data_are_coefficients_per_standard_deviation(model: Any) -> None:
    frame = coefficient_data(model, level=0.8)
    assert (np.diff(frame["estimate"].abs()) <= 0).all()
    assert set(frame["term"]) == {model.design.terms[0].label, "other"}
    assert len(frame) == 54
    row = frame[frame["coefficient"] == NAMES[2]].iloc[0]
    (term, _) = model.design.terms
    name, scale = f"{term.label}.{NAMES[2]}", term.scale[2]
    assert row.estimate == pytest.approx(ak.coef(model)[name] * scale)
    error = np.sqrt(ak.vcov(model).loc[name, name]) * scale
    assert row.se == pytest.approx(error)
    assert row.upper - row.estimate == pytest.approx(stats.norm.ppf(0.9) * error)
    plain = coefficient_data(model, term.label, scaled=False).set_index("coefficient")
    assert plain.loc[NAMES[2], "estimate"] == pytest.approx(ak.coef(model)[name])


def test_names_can_be_read_and_zeros_are_counted(model: Any) -> None:
    ax = plot_coefficients(model)
    ax.figure.canvas.draw()
    frame = coefficient_data(model)
    nonzero = int((frame["estimate"] != 0).sum())
    assert 20 <= nonzero < 54
    labels = ax.get_yticklabels()
    texts = [label.get_text() for label in labels]
    assert len(set(texts)) == len(texts) == nonzero
    boxes = sorted((label.get_window_extent() for label in labels), key=lambda box: box.y0)
    assert all(low.y1 <= high.y0 + 0.5 for low, high in pairwise(boxes))
    assert min(box.x0 for box in boxes) >= 0
    notes = [text.get_text() for text in ax.texts]
    assert f"{54 - nonzero} more are 0" in notes
    assert ax.get_xlabel() == "effect of one standard deviation on y"
    # Two terms, told apart in a legend.
    assert len(ax.get_legend().get_texts()) == 2


def test_the_largest_are_shown(model: Any) -> None:
    _, ax = plt.subplots()
    assert plot_coefficients(model, model.design.terms[0].label, ax, most=5) is ax
    assert len(ax.get_yticklabels()) == 5
    assert any("smaller ones are not shown" in text.get_text() for text in ax.texts)
    assert ax.get_legend() is None


def test_what_cannot_be_drawn(model: Any) -> None:
    with pytest.raises(
        DataError, match=r"no design columns of a term `s\(x\)`. Terms that have some: `other`, `lasso"
    ):
        plot_coefficients(model, "s(x)")
    with pytest.raises(DataError, match="`level` must lie between 0 and 1"):
        coefficient_data(model, level=95)
    with pytest.raises(DataError, match="`most` must be"):
        plot_coefficients(model, most=0)
    data = pd.DataFrame({"x": np.linspace(0, 1, 50)}).assign(y=lambda own: np.sin(own.x))
    smooth = ak.AdditiveModel("y ~ s(x)", data)
    smooth.fit(data, solver="bcd", verbose=0)
    with pytest.raises(DataError, match="has no design columns"):
        plot_coefficients(smooth)
