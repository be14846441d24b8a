"""The paper's views: factors of a feature, marginals of subsets; and the interaction map."""

from __future__ import annotations

import warnings
from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np
import pytest

import ahofm_keras as ak
from ahofm_keras.decomposition import Parts, effect, interactions
from ahofm_keras.plotting import (
    factor_data,
    interaction_map_data,
    marginal_data,
    plot,
    plot_factors,
    plot_interaction_map,
    plot_marginals,
    triple_data,
)
from ahofm_keras.plotting.factors import factor_strengths
from ahofm_keras.plotting.maps import seriate
from ahofm_keras.terms.interaction import InteractionTerm
from tests.reference import terms_of


def phi(model: ak.AdditiveModel, feature: str, order: int) -> tuple[np.ndarray, np.ndarray]:
    """Values of a feature, and its factors there `(F, n)`."""
    table = factor_data(model, feature, order).pivot(index="factor", columns="value", values="phi")
    return table.columns.to_numpy(), table.to_numpy()


# Factors ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("subset", [("x1", "x2"), ("x1", "town"), ("x1", "town", "flag")])
def test_products_of_factors_are_the_effect(model, subset):
    values, factors = zip(*(phi(model, name, len(subset)) for name in subset), strict=True)
    letters = "abc"[: len(subset)]
    product = np.einsum(",".join(f"f{k}" for k in letters) + "->" + letters, *factors)
    wanted = effect(model, *subset, at=dict(zip(subset, values, strict=True))).fit
    np.testing.assert_allclose(model.scale * product, wanted, atol=1e-5)


def test_a_panel_an_order_and_a_line_a_factor(model):
    axes = plot_factors(model, "x1")
    assert [ax.get_title("left") for ax in axes] == ["order 2", "order 3"]
    for ax, order in zip(axes, (2, 3), strict=True):
        values, factors = phi(model, "x1", order)
        lines = [line for line in ax.lines if len(line.get_xdata()) > 2][::-1]
        for line, own in zip(lines, factors, strict=True):
            np.testing.assert_allclose(line.get_xydata().T, [values, own])
        assert [text.get_text() for text in ax.get_legend().get_texts()] == ["1", "2", "3"]
    (ax,) = plot_factors(model, "town", order=2)
    names = [label.get_text() for label in ax.get_xticklabels()]
    levels = sorted(set(model.sample.columns["town"]))
    assert [(name[0], name[-1]) for name in names] == [(level[0], level[-1]) for level in levels]


def test_factors_come_by_the_spread_of_their_products(model, frame):
    parts = Parts(model)
    group = next(group for group in parts.groups if group.order == 2)
    squares = []
    for v in group.members:
        values = group.weight_of(v).T @ parts.variables[v].functions(
            frame[parts.variables[v].label].to_numpy()
        )
        squares.append(values.var(axis=1))
    # Products of independent centred factors are uncorrelated, and their variances multiply.
    wanted = model.scale * np.sqrt(sum(a * b for a, b in combinations(squares, 2)))
    np.testing.assert_allclose(factor_strengths(parts, group), wanted, rtol=1e-4)
    strengths = factor_data(model, "x1", 2).groupby("factor")["strength"].first()
    assert strengths.is_monotonic_decreasing


@pytest.mark.parametrize(
    ("feature", "order", "message"),
    [
        ("x3", None, r"`x3` has no factors: it is in no `ahofm\(\)`"),
        ("x1", 4, "no interactions of order 4"),
        ("x1:x2", None, "Factors are those of one feature"),
        ("nothing", None, "no feature `nothing`"),
    ],
)
def test_factors_that_are_not_there(model, feature, order, message):
    with pytest.raises(ak.DataError, match=message):
        plot_factors(model, feature, order)


# Marginals --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lower", [False, True])
def test_marginals_are_the_spread_over_the_other_margins(model, frame, lower):
    data = marginal_data(model, subsets=["x1:x2:town"], lower=lower)
    rng = np.random.default_rng(1)
    rows = [rng.integers(0, len(frame), 3000) for _ in range(2)]
    parts = Parts(model)
    place = {variable.label: v for v, variable in enumerate(parts.variables)}
    x2, town = (
        parts.variables[place[name]].functions(frame[name].to_numpy()[own])
        for name, own in zip(("x2", "town"), rows, strict=True)
    )
    own = data[data["feature"] == "x1"]
    for row in own.iloc[::15].itertuples():
        x1 = parts.variables[place["x1"]].functions(np.full(3000, row.value))
        functions = {"x1": x1, "x2": x2, "town": town}
        subsets = [("x1", "x2", "town"), *([("x1",), ("x1", "x2"), ("x1", "town")] if lower else [])]
        values = sum(
            parts.evaluate(tuple(place[n] for n in names), [functions[n] for n in names])
            for names in subsets
        )
        spread = np.quantile(values, [0.05, 0.25, 0.75, 0.95])
        found = [row.low, row.quarter, row.three_quarters, row.high]
        np.testing.assert_allclose(found, spread, atol=0.12 * np.ptp(spread))
        assert lower or row.mean == 0


def test_with_smaller_subsets_the_mean_is_the_main_effect(model):
    data = marginal_data(model, top=1, lower=True)
    for feature in data.attrs["names"][data["subset"].iloc[0]]:
        own = data[data["feature"] == feature]
        main = effect(model, feature, at={feature: own["value"].tolist()}).fit
        np.testing.assert_allclose(own["mean"], main, atol=1e-9)
        assert ((own["low"] <= own["high"]) & (own["low"] <= own["quarter"])).all()


def test_rows_are_subsets_and_columns_features(model):
    axes = plot_marginals(model, top=2)
    data = marginal_data(model, top=2)
    ranked = interactions(model, 3, top=2)
    assert list(dict.fromkeys(data["subset"])) == ranked["label"].tolist()
    columns = list(dict.fromkeys(data["feature"]))
    assert axes.shape == (2, len(columns)) == (2, 4)
    assert [ax.get_title() for ax in axes[0]] == columns
    for i, label in enumerate(ranked["label"]):
        assert f"{100 * ranked['share'][i]:.2g}"[:3] in axes[i, 0].get_ylabel()
        for j, feature in enumerate(columns):
            own = data[(data["subset"] == label) & (data["feature"] == feature)]
            outer, inner = axes[i, j].collections
            ends = np.array([segment[:, 1] for segment in outer.get_segments()])
            np.testing.assert_allclose(ends, own[["low", "high"]])
            assert len(inner.get_segments()) == len(own)
            is_flat = np.ptp(ends) == 0
            assert is_flat == (feature not in label.split(":"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order": 4}, "no interactions of order 4"),
        ({"order": 1}, "`order` is 2 or more"),
        ({"top": 0}, "`top` must be"),
        ({"subsets": []}, "`subsets` is empty"),
        ({"subsets": ["x1:x3"]}, "no interaction of `x1`, `x3`"),
        ({"axes": [1]}, "`axes` must be"),
    ],
)
def test_marginals_that_are_not_there(model, options, message):
    with pytest.raises(ak.DataError, match=message):
        plot_marginals(model, **options)


# The map ----------------------------------------------------------------------------------------------


def test_the_map_holds_all_shares(model):
    frame = interaction_map_data(model)
    ranked = interactions(model, 2, top=None)
    assert np.array_equal(frame, frame.T)
    for row in ranked.itertuples():
        assert frame.loc[row.feature_1, row.feature_2] == pytest.approx(row.share)
    for row in interactions(model, 1, top=None).itertuples():
        assert frame.loc[row.feature_1, row.feature_1] == pytest.approx(row.share)
    assert frame.attrs["shown"] == pytest.approx(1 - interactions(model, 3).attrs["order"])
    assert frame.attrs["left_out"] == pytest.approx(0)


def test_the_map_is_drawn_with_the_triples_beside_it(model):
    axes = plot_interaction_map(model, triples=3)
    frame, bars = interaction_map_data(model), triple_data(model, 3)
    assert [label.get_text() for label in axes[0].get_yticklabels()] == frame.index.tolist()
    cells = axes[0].collections[0].get_array()
    np.testing.assert_allclose(cells.data.reshape(frame.shape), frame)
    assert (cells.mask.reshape(frame.shape) == (frame < 1e-4)).all(axis=None)
    np.testing.assert_allclose([patch.get_width() for patch in axes[1].patches], bars["share"])
    np.testing.assert_allclose(bars["share"], interactions(model, 3, top=3)["share"])
    assert axes[1].get_yticklabels()[0].get_text() == bars["label"][0].replace(":", " : ")
    assert bars.attrs["others"] == 1
    given = plt.subplots(1, 2)[1]
    assert list(plot_interaction_map(model, axes=given)) == list(given)
    assert len(plot_interaction_map(model, triples=0)) == 1


def test_a_map_of_some_features_says_what_it_leaves_out(model):
    frame = interaction_map_data(model, features=3)
    whole = interaction_map_data(model)
    kept = whole.loc[frame.index, frame.columns]
    np.testing.assert_allclose(frame, kept)
    rest = np.triu(whole).sum() - np.triu(kept).sum()
    assert frame.attrs["left_out"] == pytest.approx(rest)
    ax = plot_interaction_map(model, features=3)[0]
    assert any("3 strongest of 5 features" in text.get_text().replace("\n", " ") for text in ax.texts)


@pytest.mark.parametrize("seed", range(5))
def test_features_that_interact_are_neighbours(seed):
    """Blocks of 4, 3 and 2 features, hidden by a permutation, with weak pairs between them."""
    rng = np.random.default_rng(seed)
    block = np.repeat([0, 1, 2, 3, 4], [4, 3, 2, 1, 1])
    shares = np.where(np.equal.outer(block, block), rng.uniform(0.02, 0.2, (11, 11)), 2e-4)
    shares[block > 2] = shares[:, block > 2] = 0.0
    shares = np.maximum(shares, shares.T)
    np.fill_diagonal(shares, 0.01)
    shares[10, 10] = 0.02
    hidden = rng.permutation(11)
    order = seriate(shares[np.ix_(hidden, hidden)])
    found = block[hidden[order]]
    assert sorted(order) == list(range(11))
    assert np.count_nonzero(np.diff(found)) == 4
    assert found[-2:].tolist() == [4, 3]  # those that stand alone, by their main effects


def test_models_without_pairs_have_no_map(additive):
    with pytest.raises(ak.DataError, match="no pairs to map: its formula has main effects only"):
        plot_interaction_map(additive)
    with pytest.raises(ak.DataError, match="no interactions of order 3"):
        plot_marginals(additive)
    with pytest.raises(ak.DataError, match="in no `ahofm"):
        plot_factors(additive, "x1")


def test_pairs_that_a_fit_switched_off(frame):
    model = ak.AdditiveModel("y ~ ahofm(x1, x3, F=1, k=5)", frame)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ak.AhofmWarning)
        model.fit(frame, verbose=0, solver="bcd", epochs=1)
    for variable in model.get_layer(terms_of(model.design, InteractionTerm)[0].name).trainable_variables:
        variable.assign(0 * variable)
    with pytest.raises(ak.DataError, match="no pairs to map: the fit switched them off"):
        plot_interaction_map(model)
    with pytest.raises(ak.DataError, match="of order 2 are 0: the fit switched them off"):
        plot_marginals(model, order=2)
    with pytest.raises(ak.DataError, match="the fit switched its factors off"):
        plot_factors(model, "x1")
    assert set(plot(model)) == {"x1", "x3"}
    assert any("0 everywhere" in text.get_text() for text in plot(model, "x1", "x3").texts)
