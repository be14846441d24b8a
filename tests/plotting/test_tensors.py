"""Pictures of a model of exact tensor products."""

from __future__ import annotations

import numpy as np
import pytest

import ahofm_keras as ak
from ahofm_keras.plotting import plot, plot_check, plot_data, plot_factors, plot_marginals


@pytest.fixture(scope="module")
def surfaces(frame):
    model = ak.AdditiveModel(
        "y ~ s(x3, k=5) + te(x1, x2, k=5) + ti(x1, town) + ti(flag, x2) + ti(x1, x2, x3, k=4)", frame
    )
    model.fit(frame, verbose=0, solver="bcd")
    return model


def test_a_page_shows_all_parts(surfaces):
    axes = plot(surfaces)
    assert {"x1", "x2", "x3", "x1:x2", "x1:town", "map", "triples"} <= set(axes)
    data = plot_data(surfaces)
    assert list(axes) == list(data)
    assert data["map"].loc["x1", "x2"] == pytest.approx(ak.effect(surfaces, "x1", "x2").share)
    assert data["triples"]["label"].tolist() == ["x3:x1:x2"]


def test_surfaces_have_bands(surfaces):
    data = plot_data(surfaces, "x1", "x2")
    assert (data["upper"] > data["fit"]).all()
    assert np.ndim(plot(surfaces, "x1", "x2", "x3")) == 1, "slices"


def test_marginals_of_a_triple(surfaces):
    axes = plot_marginals(surfaces, order=3)
    assert axes.shape[0] == 1


def test_factors_are_those_of_an_ahofm(surfaces):
    with pytest.raises(ak.DataError, match=r"`x1` has no factors: it is in no `ahofm\(\)`"):
        plot_factors(surfaces, "x1")


def test_a_check_says_which_basis(surfaces):
    axes = plot_check(ak.check(surfaces))
    names = [label.get_text() for ax in np.ravel(axes) for label in ax.get_yticklabels()]
    assert "x1 in te(x1, x2)" in names
