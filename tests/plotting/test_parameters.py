"""Pictures of models with several predictors."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pytest

import ahofm_keras as ak
from tests.several import several_frame, several_model


def test_a_page_has_strips_of_all_parameters() -> None:
    axes = ak.plot(several_model())
    assert list(axes) == ["loc", "scale", "df"]
    assert {"x", "z", "x:z"} <= set(axes["loc"])
    assert set(axes["scale"]) == {"x", "z", "group"}
    assert axes["df"] == {}
    figure = axes["loc"]["x"].get_figure(root=True)
    titles = [strip.get_suptitle() for strip in figure.subfigs]
    assert [title.split("   ")[0] for title in titles[1:-1]] == [
        "loc: Main effects",
        "loc: Pairs",
        "scale: Main effects",
    ]
    texts = [text.get_text() for strip in figure.subfigs for text in strip.texts]
    head, foot = texts[0], texts[-1]
    assert all(text in head for text in ("loc: y ~ group", "scale: ~ s(z", "df: ~ 1"))
    assert "df: constant, " in foot
    plt.close("all")


def test_a_page_of_one_parameter() -> None:
    axes = ak.plot(several_model(), parameter="sigma")
    assert set(axes) == {"x", "z", "group"}
    plt.close("all")


def test_the_data_behind_a_page() -> None:
    found = ak.plotting.plot_data(several_model())
    assert list(found) == ["loc", "scale", "df"]
    own = ak.plotting.plot_data(several_model(), parameter="scale")
    assert found["scale"]["z"].equals(own["z"])
    assert own["z"].attrs["parameter"] == "scale"


@pytest.mark.parametrize(
    ("parameter", "label"), [(None, "effect on loc of y"), ("scale", "effect on\nlog(scale of y)")]
)
def test_an_axis_says_what_it_is_an_effect_on(parameter: str | None, label: str) -> None:
    ax = ak.plot(several_model(), "z", parameter=parameter)
    assert ax.get_ylabel().replace("\n", " ") == label.replace("\n", " ")
    effect = ak.plot(ak.effect(several_model(), "z", parameter=parameter))
    assert effect.get_ylabel().replace("\n", " ") == f"effect on the link of {parameter or 'loc'}"
    with pytest.raises(ak.DataError, match="An effect is that of one parameter"):
        ak.plot(ak.effect(several_model(), "z"), parameter="scale")
    plt.close("all")


def test_other_pictures_take_a_parameter() -> None:
    model, frame = several_model(), several_frame()
    ak.plot(model, "z", parameter="scale", residuals=True, rug=True)
    ak.plotting.plot_factors(model, "x", parameter="loc")
    ak.plotting.plot_marginals(model, order=2, parameter="loc")
    ak.plotting.plot_interaction_map(model, parameter="loc")
    with pytest.raises(ak.DataError, match="no pairs to map"):
        ak.plotting.plot_interaction_map(model, parameter="scale")
    ax = ak.plot(ak.explain(model, frame.iloc[[0]], parameter="scale"))
    assert "scale of y" in ax.get_title(loc="left") + ax.get_xlabel()
    plt.close("all")
