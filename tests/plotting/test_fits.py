"""Learning curves of fits, and waterfalls of single predictions."""

from __future__ import annotations

import keras
import matplotlib.pyplot as plt
import numpy as np
import pytest

import ahofm_keras as ak
from ahofm_keras.decomposition import explain
from ahofm_keras.plotting import explanation_data, history_data, plot, plot_explanation, plot_history

ADAM = {
    "loss": [3.0, 2.0, 1.0, 0.9],
    "deviance": [60.0, 40.0, 20.0, 1.0],
    "val_loss": [3.5, 2.5, 1.6, 1.7],
    "val_deviance": [70.0, 50.0, 33.0, 35.0],
}
VARIATIONAL = {"loss": [3.0, 2.0], "bound": [-30.0, -20.0], "edf": [9.0, 7.0], "deviance": [2.0, 1.5]}
BLOCKS = {"loss": [3.0, 2.0, 1.5], "edf": [9.0, 8.0, 8.5], "deviance": [2.0, 1.5, 1.4]}


def as_history(values: dict[str, list[float]]) -> keras.callbacks.History:
    history = keras.callbacks.History()
    history.history, history.epoch = values, list(range(len(values["loss"])))
    return history


@pytest.mark.parametrize(
    ("values", "panels", "step", "best"),
    [
        (ADAM, ["mean deviance", "loss"], "epoch", (0, "best: epoch 3, 33", 3)),
        (VARIATIONAL, ["evidence bound", "mean deviance", "effective df"], "sweep", (0, "best: sweep 2, −20", 2)),
        (BLOCKS, ["mean deviance", "loss", "effective df"], "sweep", (1, "best: sweep 3, 1.5", 3)),
        ({"loss": [1.0], "my_metric": [0.5]}, ["loss", "my_metric"], "epoch", (0, "best: epoch 1, 1", 1)),
    ],
)  # fmt: skip
def test_a_panel_a_quantity_with_the_best_epoch(values, panels, step, best):
    axes = plot_history(as_history(values))
    assert [ax.get_title("left") for ax in axes] == panels
    assert {ax.get_xlabel() for ax in axes} == {step}
    panel, text, epoch = best
    assert axes[panel].get_title("right") == text
    for ax in axes:
        assert any(np.all(np.asarray(line.get_xdata()) == epoch) for line in ax.lines)


def test_curves_are_the_history():
    axes = plot(as_history(ADAM))
    training, validation = axes[0].lines[:2]
    np.testing.assert_allclose(training.get_xydata(), np.c_[1:5, ADAM["deviance"]])
    np.testing.assert_allclose(validation.get_ydata(), ADAM["val_deviance"])
    assert [text.get_text() for text in axes[0].get_legend().get_texts()] == ["training", "validation"]
    assert (axes[0].get_yscale(), axes[1].get_yscale()) == ("log", "linear")
    frame = history_data(ADAM)
    assert frame.index.tolist() == [1, 2, 3, 4]
    assert {name: frame[name].tolist() for name in ADAM} == ADAM


def test_validation_in_some_epochs_only_stands_at_those():
    frame = history_data(as_history({"loss": [4.0, 3.0, 2.0, 1.0, 0.5], "val_loss": [3.0, 2.0]}))
    assert frame["val_loss"].dropna().index.tolist() == [2, 4]
    axes = plot_history(frame)
    np.testing.assert_allclose(axes[0].lines[1].get_xdata(), [2, 4])


def test_a_fit_gives_learning_curves(frame):
    model = ak.AdditiveModel("y ~ s(x1, k=6)", frame)
    history = model.fit(frame, verbose=0)
    axes = plot(history)
    np.testing.assert_allclose(axes[0].lines[0].get_ydata(), history.history["bound"])
    given = plt.subplots(1, len(axes))[1]
    assert list(plot_history(history, axes=given)) == list(given)


@pytest.mark.parametrize("history", [{}, None, 3])
def test_no_history_no_curves(history):
    with pytest.raises(ak.DataError, match="`history` must be what `fit` returned"):
        plot_history(history)


# Waterfalls -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def explanation(model, frame):
    return explain(model, frame.iloc[[3]], top=4)


@pytest.mark.parametrize("most", [1, 3, 50])
def test_bars_lead_from_the_intercept_to_the_link(explanation, most):
    data = explanation_data(explanation, most)
    steps = data[data["kind"] != "total"]
    np.testing.assert_allclose(steps["start"][1:], steps["end"][:-1])
    np.testing.assert_allclose(steps["end"] - steps["start"], steps["contribution"])
    assert steps["contribution"].sum() == pytest.approx(explanation.link)
    assert data["end"].iloc[-1] == explanation.link
    parts = data[data["kind"] == "part"]
    assert parts["contribution"].abs().is_monotonic_decreasing
    assert len(parts) <= max(most, 2)
    assert data["kind"].iloc[0] == "start"


def test_the_waterfall_shows_the_bars(explanation):
    data = explanation_data(explanation)
    ax = plot(explanation)
    steps = data[data["kind"].isin(["part", "rest"])]
    np.testing.assert_allclose([bar.get_width() for bar in ax.patches], steps["contribution"])
    np.testing.assert_allclose([bar.get_x() for bar in ax.patches], steps["start"])
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names[0] == "intercept"
    assert names[-1] == "prediction"
    first = steps.iloc[0]
    assert names[1] == f"{first['part'].replace(':', ' : ')} = {first['value']}"
    texts = [text.get_text() for text in ax.texts]
    assert len(texts) == len(data)
    assert texts[1][0] == ("+" if first["contribution"] > 0 else "−")
    assert ax.get_title("left").startswith("y: predicted")


def test_interactions_that_were_added_up_stand_at_the_end(explanation):
    rest = explanation_data(explanation)
    others = rest[rest["part"].str.contains("other interactions")]
    assert set(others["kind"]) == {"rest"}
    assert others.index.tolist() == list(range(len(rest) - 1 - len(others), len(rest) - 1))


def test_the_link_is_told_where_it_is_not_the_mean(additive, frame):
    ax = plot_explanation(explain(additive, frame.iloc[[0]]))
    assert "(link " in ax.get_title("left").replace("\n", " ")
    assert ax.get_xlabel() == "link of count"


def test_a_waterfall_needs_an_explanation(model, explanation):
    with pytest.raises(ak.DataError, match=r"must come from `explain\(model, row\)`"):
        plot_explanation(model)
    with pytest.raises(ak.DataError, match="`most` must be"):
        plot_explanation(explanation, most=0)
