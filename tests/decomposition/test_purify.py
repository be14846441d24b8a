"""Purification: what is left is orthogonal to smaller subsets on the rows, and nothing is lost."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import keras
import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from ahofm_keras.decomposition import Parts, effect, effects, interactions
from ahofm_keras.decomposition import purify as module
from ahofm_keras.decomposition.purify import Purification, purify_parts
from tests.decomposition.conftest import all_subsets, build, mark_fitted, on_rows, random_model

FORMULA = (
    "gaussian ~ s(x1, k=6, knots='even') + x2:group + ahofm(x1, x2, group, D=3, F=2, knots='even')"
    " + ahofm(x1, x3, F=2, center=False, knots='even')"
)


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "weighted"])
def purified(request: pytest.FixtureRequest, frame: pd.DataFrame) -> tuple[Purification, np.ndarray]:
    data = frame.assign(x3=frame.x1 + 0.1 * frame.x3)
    model = random_model(FORMULA, data, seed=2)
    weight = np.random.default_rng(0).uniform(0.2, 2, len(data)) if request.param else np.ones(len(data))
    mark_fitted(model, data, weight if request.param else None)
    return purify_parts(Parts(model)), weight


def dense_residual(design: np.ndarray, values: np.ndarray, weight: np.ndarray) -> np.ndarray:
    root = np.sqrt(weight)
    solution = np.linalg.lstsq((design * root).T, values * root, rcond=1e-11)[0]
    return values - solution @ design


def single_functions(purification: Purification, subset: tuple[int, ...]) -> np.ndarray:
    """1 and all functions that the model has of each single variable, at the rows."""
    functions = purification.rows.functions
    return np.concatenate([np.ones((1, functions[0].shape[1])), *(functions[v] for v in subset)])


def test_pairs_against_dense_least_squares(purified: tuple[Purification, np.ndarray]) -> None:
    purification, weight = purified
    parts, rows = purification.parts, purification.rows
    triples = [s for s in all_subsets(parts) if len(s) == 3]
    assert triples
    pairs = [s for s in all_subsets(parts) if len(s) == 2]
    assert len(pairs) == 4
    for pair in pairs:
        start = parts.evaluate(pair, [rows.functions[v] for v in pair])
        for triple in (t for t in triples if set(pair) < set(t)):
            tensor = purification.moved[triple][pair]
            own = [purification.functions(v, rows.functions[v]) for v in pair]
            chosen = [f[:size] for f, size in zip(own, tensor.shape, strict=True)]
            # What a part loses, smaller ones gain.
            start = start - np.einsum("ab,an,bn->n", tensor, *chosen)
        expected = dense_residual(single_functions(purification, pair), start, weight)
        found = purification.values(pair)
        np.testing.assert_allclose(found, expected, atol=1e-6 * start.std())
        moments = (single_functions(purification, pair) * weight) @ found
        assert np.abs(moments).max() < 1e-6 * len(weight) * start.std()


def test_triples_against_dense_least_squares(purified: tuple[Purification, np.ndarray]) -> None:
    purification, weight = purified
    parts, rows = purification.parts, purification.rows
    triple = next(s for s in all_subsets(parts) if len(s) == 3)
    own = {v: purification.functions(v, rows.functions[v]) for v in triple}
    # 200 rows tell about ten products apart: one of each pair, of the smoothest functions.
    products = [own[a][:1] * own[b][:1] for a, b in combinations(triple, 2)]
    design = np.concatenate([single_functions(purification, triple), *products])
    before = parts.evaluate(triple, [rows.functions[v] for v in triple])
    found = purification.values(triple)
    np.testing.assert_allclose(found, dense_residual(design, before, weight), atol=1e-6 * before.std())
    assert np.abs((design * weight) @ found).max() < 1e-6 * len(weight) * before.std()


def test_the_sum_of_all_parts_is_unchanged(
    purified: tuple[Purification, np.ndarray], frame: pd.DataFrame
) -> None:
    """At the rows and at others."""
    purification, _ = purified
    parts = purification.parts
    data = frame.assign(x3=frame.x1 + 0.1 * frame.x3)
    others = pd.DataFrame(
        {name: data[name].sample(frac=1, random_state=j).array for j, name in enumerate(data)}
    )
    for rows in (data, others):
        functions, _ = on_rows(parts.model, parts, rows)
        before, after = np.full(len(rows), parts.constant), np.full(len(rows), parts.constant)
        after += purification.constant
        for subset in sorted({*all_subsets(parts), *purification.moved}):
            own = [functions[v] for v in subset]
            before += parts.evaluate(subset, own)
            after += parts.evaluate(subset, own) + purification.evaluate(subset, own)
        np.testing.assert_allclose(after, before, atol=1e-8 * before.std())


def test_single_curves_have_mean_zero_on_the_rows(purified: tuple[Purification, np.ndarray]) -> None:
    purification, weight = purified
    for variable in range(len(purification.parts.variables)):
        values = purification.values((variable,))
        assert abs(np.average(values, weights=weight)) < 1e-9 * max(values.std(), 1)


def test_a_grid_is_evaluated_as_its_rows(purified: tuple[Purification, np.ndarray]) -> None:
    purification, _ = purified
    functions = purification.rows.functions
    for subset in [s[::-1] for s in all_subsets(purification.parts)]:
        axes = [functions[v][:, : 3 + place] for place, v in enumerate(subset)]
        mesh = np.meshgrid(*(np.arange(own.shape[1]) for own in axes), indexing="ij")
        rows = [own[:, place.reshape(-1)] for own, place in zip(axes, mesh, strict=True)]
        found = purification.evaluate_grid(subset, axes)
        expected = purification.evaluate(subset, rows).reshape(found.shape)
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10)


def test_one_wanted_subset_is_what_it_is_among_all(purified: tuple[Purification, np.ndarray]) -> None:
    purification, _ = purified
    parts = purification.parts
    for wanted in [(0,), all_subsets(parts)[-1], next(s for s in all_subsets(parts) if len(s) == 2)]:
        alone = purify_parts(parts, wanted=wanted)
        np.testing.assert_allclose(
            alone.values(wanted), purification.values(wanted), rtol=1e-9, atol=1e-9
        )


def test_functions_are_orthonormal_over_the_margin(purified: tuple[Purification, np.ndarray]) -> None:
    purification, _ = purified
    for basis, covariance in zip(purification.bases, purification.parts.covariances, strict=True):
        np.testing.assert_allclose(basis.T @ covariance @ basis, np.eye(basis.shape[1]), atol=1e-8)
        scale = np.sqrt(covariance.diagonal())
        scale = np.where(scale > 1e-12, scale, np.inf)
        left = covariance - covariance @ basis @ basis.T @ covariance
        assert np.abs(left / scale / scale[:, None]).max() < 1e-6, "they span all functions"


def test_x_is_no_function_of_its_own_beside_a_spline_of_x(frame: pd.DataFrame) -> None:
    """They differ by what the table of the spline's axis misses, which nobody asked to see."""
    model = random_model("gaussian ~ x2:group + ahofm(x1, x2)", frame)
    purification = purify_parts(Parts(model))
    counts = {
        variable.label: basis.shape
        for variable, basis in zip(purification.parts.variables, purification.bases, strict=True)
    }
    assert counts["x2"] == (counts["x1"][0] + 1, counts["x1"][1])


@pytest.fixture(scope="module")
def pair_models() -> dict[float, ak.AdditiveModel]:
    """The product of two normal features, of correlation 0 and 0.8."""
    models = {}
    for correlation in (0.0, 0.8):
        rng = np.random.default_rng(5)
        a, b, y = rng.normal(size=(3, 500))
        data = pd.DataFrame({"a": a, "b": correlation * a + np.sqrt(1 - correlation**2) * b, "y": y})
        model = build("y ~ ahofm(a, b, F=1, k=8, knots='even')", data)
        layer = model.get_layer(model.design.terms[-1].name)
        values = np.zeros(layer.coordinates(0).shape)
        # The smoothest function of each: a straight line.
        values[:, 0] = 1.0
        layer.assign_coordinates(0, values)
        mark_fitted(model, data)
        models[correlation] = model
    return models


def test_a_pair_of_correlated_features_gives_curves_up(
    pair_models: dict[float, ak.AdditiveModel],
) -> None:
    """On normal rows c (a^2 + b^2) with c = r / (1 + r^2) is the best sum of curves for the product a b.

    Of its variance 1 + r^2 it leaves (1 - r^2)^2 / (1 + r^2), and each curve has 2 c^2.
    """
    before, after = {}, {}
    for correlation, model in pair_models.items():
        assert interactions(model).share[0] == pytest.approx(1)
        assert effect(model, "a").share == pytest.approx(0, abs=1e-12)
        before[correlation] = interactions(model).share_rows[0]
        after[correlation] = effect(model, "a", "b", purify=True).share
    assert before == {0.0: pytest.approx(1), 0.8: pytest.approx(1)}
    assert after[0.0] > 0.85, "independent features: what chance explains"
    assert after[0.8] == pytest.approx(((1 - 0.64) / 1.64) ** 2, abs=0.03)
    curve = effect(pair_models[0.8], "a", purify=True)
    assert curve.share == pytest.approx(2 * (0.8 / 1.64) ** 2 / 1.64, abs=0.08)
    assert curve.purified
    assert curve.se is None
    middle = np.abs(curve.grid[0]) < 2
    parabola = curve.grid[0] ** 2
    assert abs(np.corrcoef(curve.fit[middle], parabola[middle])[0, 1]) > 0.95


def test_effects_are_ranked_by_what_is_left(pair_models: dict[float, ak.AdditiveModel]) -> None:
    found = effects(pair_models[0.8], purify=True)
    assert [e.label for e in found] == ["a", "b", "a:b"]
    assert all(e.purified for e in found)
    pair = effect(pair_models[0.8], "b", "a", purify=True)
    np.testing.assert_allclose(pair.fit.T, found[2].fit, rtol=1e-9, atol=1e-9)
    assert pair.share == pytest.approx(found[2].share)


def test_many_rows_tell_more_products_apart() -> None:
    rows = type("Rows", (), {})()
    for count, order, size, expected in [
        (200, 3, 2, 1),
        (4000, 3, 2, 7),
        (4000, 4, 3, 3),
        (40, 3, 2, 1),
    ]:
        rows.weight = np.full(count, 1 / count)
        assert module._most(rows, order, size) == expected
    assert module._most(rows, 3, 1) is None


def test_purification_needs_rows(pair_models: dict[float, ak.AdditiveModel], tmp_path: Path) -> None:
    model = pair_models[0.8]
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    with pytest.raises(ak.DataError, match="Purification needs rows, and a model that was loaded"):
        effect(loaded, "a", purify=True)
    assert model.sample is not None
    given = effect(loaded, "a", purify=True, data=model.sample.columns)
    np.testing.assert_allclose(given.fit, effect(model, "a", purify=True).fit, rtol=1e-8, atol=1e-10)
