"""Standard errors of effects: exact for what is linear, against draws for products of factors."""

from __future__ import annotations

from itertools import combinations, pairwise
from pathlib import Path

import keras
import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from ahofm_keras.bands import evaluate_band
from ahofm_keras.bases import evaluate_basis
from ahofm_keras.decomposition import Parts, effect, effects
from ahofm_keras.decomposition.uncertainty import Uncertainty
from ahofm_keras.terms.interaction import InteractionTerm
from tests.decomposition.conftest import random_model
from tests.posteriors import keep_covariance
from tests.reference import terms_of

COLUMNS = ["x1", "hour", "x3", "group"]


@pytest.fixture(scope="module")
def rows(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[[*COLUMNS, "gaussian"]][:60]


@pytest.fixture(scope="module")
def fitted(rows: pd.DataFrame) -> ak.AdditiveModel:
    model = ak.AdditiveModel(
        "gaussian ~ x3 * group + s(x1, k=6) + s(hour, bs='cp', knots=(0, 24))", rows
    )
    model.fit(rows, verbose=0)
    return model


def dense_design(model: ak.AdditiveModel, data: pd.DataFrame) -> np.ndarray:
    """Columns of the linear block: 1, standardised columns, functions of the smooths."""
    columns = [np.ones(len(data))]
    for term in model.design.terms:
        if term.kind != "linear":
            continue
        for place, chosen in enumerate(term.columns):
            value = np.ones(len(data))
            for factor, component in zip(term.factors, chosen, strict=True):
                own = data[str(factor.expression)].to_numpy()
                value = value * (own == factor.levels[component] if factor.levels else own)
            columns.append((value - term.centre[place]) / term.scale[place])
    smooths = [model.design.features[t.feature] for t in model.design.terms if t.kind == "s"]
    functions = [evaluate_basis(f.basis, data[f.label].to_numpy()) @ f.transform for f in smooths]
    return np.column_stack([*columns, *functions])


def exact_posterior(model: ak.AdditiveModel, data: pd.DataFrame) -> np.ndarray:
    """Covariance s^2 (X'X + P)^-1 of the linear model, P = lambda S + tau as the fit chose them."""
    X = dense_design(model, data)
    smooths = [model.design.features[t.feature] for t in model.design.terms if t.kind == "s"]
    parameters = np.exp(np.asarray(model.posterior.linear_smoothing))
    penalty = [lam * f.eigenvalues + tau for f, (lam, tau) in zip(smooths, parameters, strict=True)]
    flat = X.shape[1] - sum(map(len, penalty))
    precision = np.diag(np.concatenate([np.zeros(flat), *penalty]))
    return float(model.posterior.dispersion) * np.linalg.inv(X.T @ X + precision)


def averaged_design(
    model: ak.AdditiveModel, rows: pd.DataFrame, point: dict[str, object], over: tuple[str, ...]
) -> np.ndarray:
    """The design at a point, averaged over the product of the margins of some columns."""
    mesh = np.meshgrid(*(np.arange(len(rows)) for _ in over), indexing="ij")
    count = max(mesh[0].size, 1) if mesh else 1
    data = pd.DataFrame({name: [rows[name].iloc[0]] * count for name in COLUMNS}).assign(**point)
    data = data.assign(**{n: rows[n].to_numpy()[m.reshape(-1)] for n, m in zip(over, mesh, strict=True)})
    return dense_design(model, data).mean(axis=0)


@pytest.mark.parametrize("features", ["x1", "hour", "x3", "group", "group:x3"])
def test_bands_are_those_of_the_exact_posterior(
    fitted: ak.AdditiveModel, rows: pd.DataFrame, features: str
) -> None:
    """Of curves, levels and a product: the part is linear in the coefficients, by the definition."""
    chosen = np.asarray(fitted.posterior.smoothing_root)
    V = exact_posterior(fitted, rows) + chosen @ chosen.T
    names = features.split(":")
    # The other variables of their products; those of other terms cancel.
    others = tuple(n for n in ("x3", "group") if {"x3", "group"} & set(names) and n not in names)
    found = effect(fitted, *names, points=3)
    design = []
    for point in found.frame()[names].to_dict("records"):
        subsets = [s for size in range(len(names) + 1) for s in combinations(names, size)]
        signed = [(-1) ** len(s) * averaged_design(fitted, rows, point, (*s, *others)) for s in subsets]
        design.append(np.sum(signed, axis=0))
    expected = fitted.scale * np.sqrt(np.einsum("nq,qr,nr->n", design, V, design))
    assert found.se is not None
    np.testing.assert_allclose(found.se.reshape(-1), expected, rtol=1e-5, atol=1e-9)


def test_bands_around_the_fit(fitted: ak.AdditiveModel) -> None:
    curve = effect(fitted, "x1")
    lower, upper = curve.band(0.9)
    np.testing.assert_allclose(upper - curve.fit, 1.644853627 * curve.se)
    np.testing.assert_allclose(curve.fit - lower, upper - curve.fit)
    table = curve.frame(0.9)
    assert list(table) == ["x1", "fit", "se", "lower", "upper"]
    np.testing.assert_array_equal(table.upper, upper)
    with pytest.raises(ak.DataError, match="between 0 and 1"):
        curve.band(95)


# Against draws of all coefficients


FORMULA = "gaussian ~ s(x1, k=6) + ahofm(x1, x2, group, D=3, F=2, center=False) + ahofm(x1, x3, F=2)"


# Of the covariances of all orders, from which draws come; the model keeps bands.
ROOTS: dict[int, np.ndarray] = {}


@pytest.fixture(scope="module")
def drawn(frame: pd.DataFrame) -> ak.AdditiveModel:
    """A model with a posterior of random covariances."""
    model = random_model(FORMULA, frame)
    layer, rng = model.posterior, np.random.default_rng(0)
    layer.announce(0.3, groups=1)
    size = layer.linear_root.shape[0]
    layer.linear_root.assign(0.3 * rng.normal(size=(size, size)) / np.sqrt(size))
    layer.smoothing_root.assign(0.2 * rng.normal(size=(size, size)) / np.sqrt(size))
    keys = [
        (t, place) for t in terms_of(model.design, InteractionTerm) for place in range(len(t.orders))
    ]
    for place, (term, order) in enumerate(keys):
        means = model.get_layer(term.name).coordinates(order).transpose(0, 2, 1)
        count, rank, width = layer.factor_means[place].shape
        roots = 0.5 * rng.normal(size=(count, rank, width, rank * width)) / np.sqrt(rank * width)
        layer.factor_means[place].assign(means)
        for j, feature in enumerate(term.features):
            own = len(model.design.features[feature].eigenvalues)
            roots[j, :, own:] = 0.0
            root = roots[j, :, :own].reshape(rank * own, -1)
            keep_covariance(layer, place, j, 0, root @ root.T)
        ROOTS[place] = roots.reshape(count, rank * width, rank * width)
    return model


def draw_parts(model: ak.AdditiveModel, subset: tuple[int, ...], points: list[np.ndarray], draws: int):
    """The part of a subset at points, from draws of all coefficients, `(draws, n)`."""
    rng, parts, layer = np.random.default_rng(1), Parts(model), model.posterior
    total, place = 0.0, -1
    root = layer.linear_roots
    coefficients = rng.normal(size=(draws, root.shape[1])) @ root.T
    spans = model.design.layout.only.by_name
    for term in model.design.terms:
        if term.kind == "s" and subset == (parts.variables.index(_of(parts, term.feature)),):
            own, mean = _functions(parts, term.feature, points[0])
            start = spans[term.name].where.start
            total = total + coefficients[:, start : start + len(own)] @ (own - mean)
        for order in getattr(term, "orders", ()):
            place += 1
            places = [parts.variables.index(_of(parts, feature)) for feature in term.features]
            count, rank, width = layer.factor_means[place].shape
            noise = ROOTS[place] @ rng.normal(size=(count, rank * width, draws))
            weights = np.asarray(layer.factor_means[place])[..., None] + noise.reshape(
                count, rank, width, draws
            )
            if not set(subset) <= set(places) or len(subset) > order.order:
                continue
            product, rest = (
                1.0,
                [np.ones((rank, draws)), *np.zeros((order.order - len(subset), rank, draws))],
            )
            for j, (feature, variable) in enumerate(zip(term.features, places, strict=True)):
                at = points[subset.index(variable)] if variable in subset else points[0][:0]
                own, mean = _functions(parts, feature, at)
                drawn = weights[j][:, : len(own)]
                if variable in subset:
                    product = product * np.einsum("frd,rn->fdn", drawn, own - mean)
                else:
                    averages = np.einsum("frd,r->fd", drawn, mean[:, 0])
                    rest = [rest[0], *(b + averages * a for a, b in pairwise(rest))]
            total = total + (product * rest[-1][:, :, None]).sum(axis=0)
    return model.scale * total


def _of(parts: Parts, feature: int):
    return next(v for v in parts.variables if feature in v.places)


def _functions(parts: Parts, feature: int, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    variable = _of(parts, feature)
    own = variable.columns_of(feature)
    mean = parts.means[parts.variables.index(variable)][own]
    return (variable.functions(values)[own] if len(values) else np.zeros((len(mean), 0))), mean[:, None]


@pytest.mark.parametrize("features", ["x1", "x2", "group", "x1:x2", "group:x1", "x1:x3", "x1:x2:group"])
def test_standard_errors_against_draws(drawn: ak.AdditiveModel, features: str) -> None:
    found = effect(drawn, *features.split(":"), points=3)
    parts = Parts(drawn)
    labels = [v.label for v in parts.variables]
    subset = tuple(labels.index(name) for name in features.split(":"))
    rows = found.frame()
    draws = draw_parts(drawn, subset, [rows[name].to_numpy() for name in found.features], 20_000)
    assert found.se is not None
    np.testing.assert_allclose(found.se.reshape(-1), draws.std(axis=0), rtol=0.04)


def test_a_pair_in_no_smooth_by_hand(drawn: ak.AdditiveModel) -> None:
    """x1:x3 of rank 2: sum_fg of m m' C2 + m2 m2' C1 + C1 C2."""
    parts = Parts(drawn)
    place = {v.label: i for i, v in enumerate(parts.variables)}
    index = next(i for i, g in enumerate(parts.groups) if set(g.members) == {place["x1"], place["x3"]})
    group, uncertainty = parts.groups[index], Uncertainty(parts)
    values = [np.array([0.3]), np.array([55.0])]
    means, spread = [], []
    for v, at in zip((place["x1"], place["x3"]), values, strict=True):
        functions = parts.variables[v].functions(at)
        means.append(parts.factors(index, v, functions)[:, 0])
        feature = next(f for f in _interaction(drawn).features if f in parts.variables[v].places)
        own, mean = _functions(parts, feature, at)
        root = ROOTS[_last_order(drawn)][group.members.index(v)]
        root = root.reshape(2, -1, root.shape[1])[:, : len(own)]
        at_values = np.einsum("frk,rn->fk", root, own - mean)
        spread.append(at_values @ at_values.T)
    (m, k), (C, D) = means, spread
    expected = m @ D @ m + k @ C @ k + np.sum(C * D)
    found = uncertainty.standard_errors((place["x1"], place["x3"]), values)
    assert found[0, 0] == pytest.approx(drawn.scale * np.sqrt(expected), rel=1e-6)


def test_functions_that_have_a_mean(drawn: ak.AdditiveModel) -> None:
    """Covariances of factors less their means, and of these, are those of the whole covariance."""
    parts = Parts(drawn)
    index = next(i for i, g in enumerate(parts.groups) if g.order == 3)
    group, uncertainty = parts.groups[index], Uncertainty(parts)
    place = drawn.design.layout.only.order_index[group.source]
    assert not drawn.posterior.is_centred(place)
    assert drawn.posterior.is_centred(_last_order(drawn))
    for j, (variable, feature) in enumerate(zip(group.members, group.features, strict=True)):
        margin = parts.margins.single[variable]
        category = parts.variables[variable].is_category
        values = np.array(["a", "b", "a"], object) if category else margin.quantiles[[0, 40, -1]]
        own, mean = _functions(parts, feature, values)
        root = ROOTS[place][j].reshape(2, -1, ROOTS[place].shape[2])[:, : len(own)]
        for found, at in (
            (uncertainty._factor_covariances(group, variable, values), own - mean),
            (drawn.posterior.band(place, j, group.kept), None),
            (drawn.posterior.mean_covariance(place, j, group.kept)[:, :, None], mean),
        ):
            if at is None:
                cells = drawn.design.features[feature].cells(values)
                found, at = evaluate_band(found, cells.cell, cells.values), own
            spread = np.einsum("frk,rn->fkn", root, at)
            wanted = np.einsum("fkn,gkn->fgn", spread, spread)
            np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)


def _last_order(model: ak.AdditiveModel) -> int:
    return len(model.design.orders) - 1


def _interaction(model: ak.AdditiveModel) -> InteractionTerm:
    return terms_of(model.design, InteractionTerm)[-1]


def test_without_a_posterior_there_are_no_bands(
    frame: pd.DataFrame, fitted: ak.AdditiveModel, tmp_path: Path
) -> None:
    model = random_model("gaussian ~ s(x1)", frame)
    curve = effect(model, "x1")
    assert curve.se is None
    assert list(curve.frame()) == ["x1", "fit"]
    with pytest.raises(ak.DataError, match="`x1` has no band: the model has no posterior"):
        curve.band()
    fitted.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    for before, after in zip(effects(fitted), effects(loaded), strict=True):
        np.testing.assert_allclose(after.se, before.se, rtol=1e-9)
