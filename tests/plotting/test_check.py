"""Pictures of a check, by the data behind their axes."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from ahofm_keras.diagnostics import Check, check
from ahofm_keras.diagnostics.curves import qq_frame, trend_frame
from ahofm_keras.plotting.check import (
    plot_bases,
    plot_check,
    plot_concurvity,
    plot_observed,
    plot_quantiles,
    plot_residuals,
    plot_verdicts,
)

mpl.use("Agg")
PANELS = (plot_residuals, plot_quantiles, plot_observed, plot_bases, plot_concurvity, plot_verdicts)


@pytest.fixture(autouse=True)
def _closed_figures():
    yield
    mpl.pyplot.close("all")


@cache
def checked(family: str) -> Check:
    """Of a model whose first smooth is too small for the gaussian response."""
    rng = np.random.default_rng(7)
    data = pd.DataFrame({"x": rng.uniform(size=250), "z": rng.uniform(size=250)})
    eta = np.sin(12 * data.x) + data.z
    data["gaussian"] = eta + 0.3 * rng.normal(size=250)
    data["bernoulli"] = (rng.random(250) < 1 / (1 + np.exp(-eta))).astype(int)
    data["gamma"] = np.exp(eta) * rng.gamma(4.0, 0.25, 250)
    model = ak.AdditiveModel(f"{family} ~ s(x, k=5) + s(z, k=6)", data, family=family)
    model.fit(data, verbose=0, solver="bcd")
    return check(model)


def points(ax, marker: str) -> np.ndarray:
    """Places of all markers of a kind, `(n, 2)`."""
    lines = [line.get_xydata() for line in ax.lines if line.get_marker() == marker]
    return np.concatenate([np.zeros((0, 2)), *lines])


def texts(ax) -> str:
    found = [ax.get_title(loc) for loc in ("left", "right")] + [text.get_text() for text in ax.texts]
    return " ".join(found).replace("\n", " ")


def repeated(found: Check, times: int) -> Check:
    """The same check with many times its rows."""
    many = pd.concat([found.residuals] * times, ignore_index=True)
    many.attrs |= found.residuals.attrs
    return replace(found, residuals=many)


@pytest.mark.parametrize("family", ["gaussian", "bernoulli", "gamma"])
def test_the_page_has_nine_panels(family: str) -> None:
    axes = plot_check(checked(family))
    assert axes.shape == (3, 3)
    axes[0, 0].figure.canvas.draw()
    third = "Calibration" if family == "bernoulli" else "Observed and fitted"
    titles = [
        "Residuals and fitted",
        "Quantiles of residuals",
        "Probabilities of responses",
        "Spread and fitted",
        third,
        "Frequencies",
        "Is k large enough?",
        "Concurvity",
        "Verdict",
    ]
    assert [ax.get_title("left") for ax in axes.flat] == titles
    scales = ["log", "linear", "linear", "log", "log", "linear"]
    assert [ax.get_xscale() for ax in axes[:2].flat] == (scales if family == "gamma" else ["linear"] * 6)


def test_axes_of_the_user_are_drawn_into() -> None:
    figure, axes = mpl.pyplot.subplots(3, 3)
    assert (plot_check(checked("gaussian"), axes) == axes).all()
    assert mpl.pyplot.get_fignums() == [figure.number]
    for panel in PANELS:
        assert panel(checked("gaussian"), axes[0, 0]) is axes[0, 0]
    with pytest.raises(ak.DataError, match="`axes` must be 9"):
        plot_check(checked("gaussian"), axes[0])


@pytest.mark.parametrize("panel", [plot_check, *PANELS])
def test_only_a_check_is_drawn(panel) -> None:
    with pytest.raises(ak.DataError, match=r"A `Check` is needed.*Received: str"):
        panel("model")


def test_residuals_are_points_with_their_trend() -> None:
    found = checked("gaussian")
    ax = plot_residuals(found)
    np.testing.assert_allclose(ax.collections[0].get_offsets(), found.residuals[["fitted", "quantile"]])
    trend = trend_frame(found.residuals["fitted"].to_numpy(), found.residuals["quantile"].to_numpy())
    np.testing.assert_allclose(ax.lines[-1].get_ydata(), trend["trend"])
    np.testing.assert_allclose(ax.lines[-2].get_ydata(), -trend["reach"])


def test_many_rows_are_a_density_that_counts_them_all() -> None:
    found = repeated(checked("gaussian"), 10)
    for panel in (plot_residuals, plot_observed):
        hexagons = panel(found).collections[0]
        assert len(hexagons.get_offsets()) < 700
        assert hexagons.get_array().sum() == len(found.residuals)


def test_far_residuals_lie_at_the_edge_and_are_counted() -> None:
    found = checked("gaussian")
    residuals = found.residuals.copy()
    residuals.loc[[3, 4], "quantile"] = [30.0, -37.0]
    residuals.attrs["clipped"] = 1
    found = replace(found, residuals=residuals)
    ax = plot_residuals(found)
    np.testing.assert_allclose(points(ax, "D")[:, 1], [7, -7])
    assert "2 beyond ±7 at the edge" in texts(ax)
    assert "1 residuals clipped" in texts(plot_quantiles(found))


@pytest.mark.parametrize("times", [1, 20])
def test_quantiles_outside_the_band_are_marked(times: int) -> None:
    found = repeated(checked("gaussian"), times)
    frame = qq_frame(found.residuals["quantile"].to_numpy() / found.residuals.attrs["spread"])
    inside = frame["sample"].between(frame["lower"], frame["upper"])
    ax = plot_quantiles(found)
    drawn = {marker: points(ax, marker) for marker in ("o", "D")}
    assert f"{1 - inside.mean():.0%} of the rows" in texts(ax)
    known = {
        tuple(row): ok
        for row, ok in zip(frame[["theoretical", "sample"]].to_numpy(), inside, strict=True)
    }
    assert all(known[tuple(row)] for row in drawn["o"])
    assert not any(known[tuple(row)] for row in drawn["D"])
    count = sum(map(len, drawn.values()))
    assert count == len(frame) if times == 1 else count < 1000
    # The ends are all there, however many rows lie between.
    assert {tuple(row) for row in frame[["theoretical", "sample"]].to_numpy()[:50]} <= {
        tuple(row) for rows in drawn.values() for row in rows
    }


@pytest.mark.parametrize("family", ["gaussian", "bernoulli"])
def test_bins_stand_with_the_range_they_should_have(family: str) -> None:
    found = checked(family)
    ax = plot_observed(found)
    np.testing.assert_allclose(points(ax, "o"), found.calibration[["fitted", "observed"]])
    bars = next(c for c in ax.collections if type(c).__name__ == "LineCollection").get_segments()
    low, high = found.calibration["lower"], found.calibration["upper"]
    if family == "bernoulli":
        low, high = low.clip(0, 1), high.clip(0, 1)
    np.testing.assert_allclose([bar[:, 1] for bar in bars], np.column_stack([low, high]))


def test_a_basis_that_is_too_small_is_a_diamond_left_of_the_range() -> None:
    found = checked("gaussian")
    ax = plot_bases(found)
    np.testing.assert_allclose(points(ax, "D"), [[found.basis["k_index"][0], 0]])
    np.testing.assert_allclose(points(ax, "o"), [[found.basis["k_index"][1], 1]])
    assert points(ax, "D")[0, 0] < found.basis.attrs["random_orders"][0]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["s(x)", "s(z)"]
    assert f"{found.basis['edf'][0]:.1f} of 4" in texts(ax)


def test_concurvity_is_bars_with_two_marks() -> None:
    found = checked("gaussian")
    ax = plot_concurvity(found)
    np.testing.assert_allclose([bar.get_width() for bar in ax.patches], found.concurvity["observed"])
    np.testing.assert_allclose(
        points(ax, "|")[:, 0], [*found.concurvity["estimate"], *found.concurvity["worst"]]
    )


def test_verdicts_are_written_as_far_as_there_is_room() -> None:
    found = checked("gaussian")
    assert "k of `s(x)` may be too small: try k=10." in texts(plot_verdicts(found)).replace("  ", "")
    many = found.tests.assign(
        verdict=[f"Sentence {i} that is long enough to fill lines." * 3 for i in range(len(found.tests))]
    )
    assert "more: print the check" in texts(plot_verdicts(replace(found, tests=many)))
    fine = replace(found, basis=found.basis.assign(verdict=""), tests=found.tests.assign(verdict=""))
    assert "Nothing found that speaks against the model." in texts(plot_verdicts(fine))


def test_many_long_names_are_cut_and_counted() -> None:
    found = checked("gaussian")
    lines = np.arange(40) % 2
    names = [f"average_household_income_of_district_{i}" for i in range(40)]
    basis = (
        found.basis.iloc[lines]
        .reset_index(drop=True)
        .assign(basis=names, terms=[f"s({n})" for n in names])
    )
    basis.attrs |= found.basis.attrs
    concurvity = found.concurvity.iloc[lines].reset_index(drop=True).assign(term=names)
    axes = plot_check(replace(found, basis=basis, concurvity=concurvity))
    axes[0, 0].figure.canvas.draw()
    for ax in axes[2, :2]:
        labels = [label.get_text() for label in ax.get_yticklabels()]
        assert len(labels) == len(set(labels)) == 12
        assert max(map(len, labels)) <= 16
        assert "12 most telling of 40" in texts(ax)


@pytest.mark.parametrize("rows", [1, 3])
def test_few_rows_and_no_bases_are_drawn(rows: int) -> None:
    found = checked("gamma")
    few = found.residuals.iloc[:rows]
    small = replace(
        found,
        residuals=few,
        calibration=found.calibration.iloc[:1],
        basis=found.basis.iloc[:0],
        concurvity=found.concurvity.iloc[:1],
    )
    axes = plot_check(small)
    axes[0, 0].figure.canvas.draw()
    assert "no basis of a number" in texts(axes[2, 0])
    assert "one term only" in texts(axes[2, 1])
