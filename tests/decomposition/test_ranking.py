"""`interactions` and `shares`: the ranking against brute force, and all that sums to 1."""

from __future__ import annotations

from itertools import combinations
from math import comb
from pathlib import Path

import keras
import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from ahofm_keras.decomposition import Parts, interactions, shares
from tests.decomposition.conftest import all_subsets, brute_force, mark_fitted, on_rows, random_model

FORMULA = "gaussian ~ group:x3 + ahofm(x1, x2, x3, group, D=3, F=2, center=False) + ahofm(x1, hour, F=2)"


@pytest.fixture(scope="module")
def model(frame: pd.DataFrame) -> ak.AdditiveModel:
    return random_model(FORMULA, frame)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_the_ranking_is_that_of_brute_force(
    small: tuple[ak.AdditiveModel, pd.DataFrame, np.ndarray], order: int
) -> None:
    model, _, link = small
    names = [variable.label for variable in Parts(model).variables]
    expected = {s: v.var() / link.var() for s, v in brute_force(link).items() if len(s) == order}
    ranked = sorted((s for s in expected if expected[s] > 1e-9), key=lambda s: -expected[s])
    table = interactions(model, order, top=None)
    table = table[table.share > 0]
    assert table.label.tolist() == [":".join(names[v] for v in s) for s in ranked]
    np.testing.assert_allclose(table.share, [expected[s] for s in ranked], rtol=1e-3, atol=1e-7)
    np.testing.assert_allclose(table.sd**2, table.share * table.attrs["total"], rtol=1e-9)
    assert table.attrs["order"] == pytest.approx(sum(expected.values()), rel=1e-4)


def test_shares_of_all_orders_sum_to_one(model: ak.AdditiveModel) -> None:
    tables = [interactions(model, order, top=None) for order in (1, 2, 3)]
    assert sum(table.share.sum() for table in tables) == pytest.approx(1, abs=1e-8)
    assert sum(table.attrs["order"] for table in tables) == pytest.approx(1, abs=1e-12)
    best = interactions(model, 2, top=3)
    pd.testing.assert_frame_equal(best, tables[1][:3], check_exact=False)
    assert best.share.sum() + best.attrs["rest"] == pytest.approx(best.attrs["order"])
    assert list(best) == ["label", "feature_1", "feature_2", "share", "sd", "share_rows"]


@pytest.mark.parametrize("weighted", [False, True])
def test_shares_over_rows(frame: pd.DataFrame, weighted: bool) -> None:
    """Variances of parts and their covariances over rows, by NumPy from the parts' values."""
    model = random_model(FORMULA, frame)
    weight = (
        np.random.default_rng(0).integers(0, 3, len(frame)) if weighted else np.ones(len(frame), int)
    )
    mark_fitted(model, frame, weight.astype(float) if weighted else None)
    parts = Parts(model)
    functions, _ = on_rows(model, parts, frame)
    subsets = all_subsets(parts)
    values = {s: parts.evaluate(s, [functions[v] for v in s]).repeat(weight) for s in subsets}
    whole = sum(values.values()).var()
    for order in (1, 2, 3):
        table = interactions(model, order, top=None).set_index("label").share_rows
        for subset in (s for s in subsets if len(s) == order):
            assert table[parts.label(subset)] == pytest.approx(values[subset].var() / whole, rel=1e-8)
    within = sum(
        2 * np.mean((values[a] - values[a].mean()) * (values[b] - values[b].mean()))
        for a, b in combinations(subsets, 2)
        if len(a) == len(b)
    )
    table = shares(model)
    assert table.part.tolist() == [
        "order 1", "order 2", "order 3", "covariances within orders", "covariances between orders",
    ]  # fmt: skip
    own = [sum(v.var() for s, v in values.items() if len(s) == order) for order in (1, 2, 3)]
    np.testing.assert_allclose(table.share_rows[:4], np.array([*own, within]) / whole, rtol=1e-6)
    assert table.share_rows.sum() == pytest.approx(1)
    assert table.share.sum() == pytest.approx(1)
    assert table.share[3:].tolist() == [0, 0]
    assert abs(table.share_rows[4]) > 1e-3, "correlated features: orders covary"


def test_rows_given_count_and_those_of_the_fit_by_default(
    model: ak.AdditiveModel, frame: pd.DataFrame
) -> None:
    by_default, given = interactions(model), interactions(model, data=frame)
    pd.testing.assert_frame_equal(by_default, given)
    other = interactions(model, data=frame[:50])
    assert (other.share == given.share).all()
    assert not np.allclose(other.share_rows, given.share_rows)


def test_a_loaded_model_knows_shares_but_no_rows(
    model: ak.AdditiveModel, frame: pd.DataFrame, tmp_path: Path
) -> None:
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    table, known = interactions(loaded, 3), interactions(model, 3)
    assert table.share_rows.isna().all()
    columns = ["label", "share", "sd"]
    pd.testing.assert_frame_equal(table[columns], known[columns], check_exact=False, rtol=1e-12)
    pd.testing.assert_frame_equal(interactions(loaded, 3, data=frame), known, check_exact=False)
    assert shares(loaded).share_rows.isna().all()
    pd.testing.assert_frame_equal(shares(loaded, frame), shares(model), check_exact=False)


def test_a_hundred_features_of_order_three() -> None:
    rng = np.random.default_rng(0)
    data = pd.DataFrame(rng.normal(size=(60, 100)), columns=[f"x{j}" for j in range(100)])
    data["y"] = rng.normal(size=60)
    features = ", ".join(f"x{j}" for j in range(100))
    model = random_model(f"y ~ hofm({features}, D=3, F=4, main=False)", data)
    table = interactions(model, 3, top=5)
    parts = Parts(model)
    assert len(parts.subsets(3)) == comb(100, 3) == 161_700
    layer = model.get_layer(model.design.terms[-1].name)
    # One function a feature, of variance 1: a part is a product of weights, summed over the factors.
    pairs, triples = (np.array([*combinations(range(100), order)]) for order in (2, 3))
    two = np.prod(layer.coordinates(0)[:, 0][pairs], axis=1).sum(axis=1) ** 2
    three = np.prod(layer.coordinates(1)[:, 0][triples], axis=1).sum(axis=1) ** 2
    best = np.argsort(-three)[:5]
    assert table.label.tolist() == [":".join(f"x{j}" for j in s) for s in triples[best]]
    np.testing.assert_allclose(table.share, three[best] / (two.sum() + three.sum()), rtol=1e-6)
    assert table.attrs["order"] + interactions(model, 2).attrs["order"] == pytest.approx(1)


def test_a_model_of_zeros_has_shares_of_zero(frame: pd.DataFrame) -> None:
    model = random_model("gaussian ~ x3 + ahofm(x1, x2, group, F=2)", frame)
    record, sample = model.fit_result, model.sample
    for layer in model.fitted_layers():
        for weight in layer.trainable_weights:
            weight.assign(np.zeros(weight.shape))
    model.keep_fit(record, sample)  # as if a fit had found them
    for order in (1, 2):
        table = interactions(model, order)
        assert len(table) == {1: 4, 2: 3}[order]
        assert not table[["share", "sd", "share_rows"]].to_numpy().any()
    assert not shares(model)[["subsets", "share", "share_rows"]].to_numpy().any()


@pytest.mark.parametrize("order", [0, -1, 2.0, True, "2", None])
def test_orders_that_are_none(model: ak.AdditiveModel, order: object) -> None:
    with pytest.raises(ak.DataError, match="`order` must be a whole number from 1 on"):
        interactions(model, order)


@pytest.mark.parametrize("top", [0, -3, 1.5, True, "all"])
def test_tops_that_are_none(model: ak.AdditiveModel, top: object) -> None:
    with pytest.raises(ak.DataError, match="`top` must be a whole number from 1 on, or None"):
        interactions(model, top=top)


def test_an_order_above_the_models(model: ak.AdditiveModel, frame: pd.DataFrame) -> None:
    with pytest.raises(ak.DataError, match="no interactions of order 4: its highest order is 3"):
        interactions(model, 4)
    with pytest.raises(ak.DataError, match="Column `x2` is missing"):
        interactions(model, data=frame.drop(columns="x2"))
