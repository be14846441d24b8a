"""Tensor products taken apart: exact sums of products, bands of the exact posterior."""

from __future__ import annotations

from functools import reduce
from itertools import combinations
from pathlib import Path

import keras
import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from ahofm_keras.bases import evaluate_basis
from ahofm_keras.decomposition import Parts, effect, effects
from ahofm_keras.decomposition.purify import purify_parts
from ahofm_keras.tensors import split_tensor
from tests.decomposition.conftest import all_subsets, on_rows, random_model
from tests.reference import penalised

RNG = np.random.default_rng(0)


def joined(factors: list[np.ndarray]) -> np.ndarray:
    """The sum over f of outer products, one by one."""
    return sum(
        (reduce(np.multiply.outer, [own[:, f] for own in factors]) for f in range(factors[0].shape[1])),
        start=0.0,
    )


@pytest.mark.parametrize("shape", [(5,), (4, 7), (7, 4), (3, 6, 4), (6, 3, 4), (2, 3, 4, 3), (1, 5)])
def test_an_array_is_a_sum_of_products(shape: tuple[int, ...]) -> None:
    values = RNG.normal(size=shape)
    factors = split_tensor(values)
    np.testing.assert_allclose(joined(factors), values, atol=1e-12)
    assert [len(own) for own in factors] == list(shape)
    assert factors[0].shape[1] == np.prod(shape) // max(shape)


def test_a_small_rank_is_found() -> None:
    first, second = RNG.normal(size=(6, 2)), RNG.normal(size=(9, 2))
    assert split_tensor(first @ second.T)[0].shape == (6, 2)
    triple = np.einsum("af,bf,cf->abc", first, second, RNG.normal(size=(4, 2)))
    factors = split_tensor(triple)
    assert factors[0].shape[1] <= 4
    np.testing.assert_allclose(joined(factors), triple, atol=1e-12)


@pytest.mark.parametrize("shape", [(4,), (4, 3), (2, 3, 4)])
def test_zeros_have_one_product(shape: tuple[int, ...]) -> None:
    """A term that was switched off keeps its place, and the uncertainty of its coefficients."""
    factors = split_tensor(np.zeros(shape))
    assert all(own.shape == (size, 1) for own, size in zip(factors, shape, strict=True))
    assert not joined(factors).any()


def test_a_te_has_parts_of_all_subsets_and_a_ti_one(frame: pd.DataFrame) -> None:
    whole = Parts(random_model("gaussian ~ te(x1, x2, group, k=4)", frame))
    assert all_subsets(whole) == [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]
    assert (np.concatenate([whole.variances(whole.subsets(d)) for d in (1, 2, 3)]) > 0).all()
    pure = Parts(random_model("gaussian ~ ti(x1, x2, group, k=4)", frame))
    assert all_subsets(pure) == [(0, 1, 2)]


def test_the_same_pair_in_several_terms_is_added_up(frame: pd.DataFrame) -> None:
    model = random_model("gaussian ~ x1:x3 + ahofm(x1, x2, x3, F=2) + ti(x1, x3, k=5)", frame)
    alone = []
    for kept in model.design.terms:
        part = random_model("gaussian ~ x1:x3 + ahofm(x1, x2, x3, F=2) + ti(x1, x3, k=5)", frame)
        for term in part.design.terms:
            if term.name != kept.name:
                for weight in part.get_layer(term.name).weights:
                    weight.assign(0 * weight)
        alone.append(effect(part, "x1", "x3", points=5).fit)
    found = effect(model, "x1", "x3", points=5)
    np.testing.assert_allclose(np.sum(alone, axis=0), found.fit, atol=1e-9 * np.abs(found.fit).max())
    table = ak.interactions(model)
    assert list(table["label"]).count("x1:x3") == 1


def test_explained_and_purified_parts_sum_to_the_link(frame: pd.DataFrame) -> None:
    """x1 and x2 are correlated."""
    model = random_model("gaussian ~ s(x3) + te(x1, x2, k=4) + ti(x1, group)", frame)
    row = frame.iloc[[3]]
    link = model.predict(frame, type="link")
    found = ak.explain(model, row)
    assert found.link == pytest.approx(link[3], abs=1e-5 * link.std())
    assert {"x1:x2", "x1:group"} <= set(found.table["part"])
    parts = Parts(model)
    purification = purify_parts(parts)
    functions, _ = on_rows(model, parts, frame)
    total = parts.constant + purification.constant
    for subset in {*all_subsets(parts), *purification.moved}:
        own = [functions[v] for v in subset]
        total = total + parts.evaluate(subset, own) + purification.evaluate(subset, own)
    np.testing.assert_allclose(total, link, atol=1e-5 * link.std())
    assert purification.moved, "correlated features leave something to move"


# Bands

COLUMNS = ["x1", "hour", "x3", "group"]
FORMULA = "gaussian ~ x3 + s(x1, k=6) + te(x3, hour, k=(4, 5)) + ti(group, x1, k=5)"


@pytest.fixture(scope="module")
def rows(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[[*COLUMNS, "gaussian"]][:60]


@pytest.fixture(scope="module")
def fitted(rows: pd.DataFrame) -> ak.AdditiveModel:
    with pytest.warns(ak.AhofmWarning, match="`x3` stands"):
        model = ak.AdditiveModel(FORMULA, rows)
    model.fit(rows, verbose=0, solver="bcd")
    return model


def functions_of(model: ak.AdditiveModel, place: int, data: pd.DataFrame) -> np.ndarray:
    feature = model.design.features[place]
    return evaluate_basis(feature.basis, data[feature.label].to_numpy()) @ feature.transform


def dense(model: ak.AdditiveModel, data: pd.DataFrame) -> np.ndarray:
    """1, the standardised x3, and for each penalised term the Kronecker product row by row."""
    [line] = [t for t in model.design.terms if t.kind == "linear"]
    columns = [np.ones((len(data), 1)), (data[["x3"]].to_numpy() - line.centre) / line.scale]
    for term in penalised(model.design):
        margins = [functions_of(model, place, data) for place in term.features]
        if not term.pure:
            margins = [np.column_stack([np.ones(len(data)), own]) for own in margins]
        products = np.array([reduce(np.kron, row) for row in zip(*margins, strict=True)])
        columns.append(products if term.pure else products[:, 1:])
    return np.concatenate(columns, axis=1)


def exact_covariance(model: ak.AdditiveModel, data: pd.DataFrame) -> np.ndarray:
    """s^2 (X'X + P)^-1, P the Kronecker sum of the margins' penalties.

    x3 is a straight line in two terms, of which only the sum is known: hence the pseudoinverse.
    """
    X, penalties = dense(model, data), [np.zeros(2)]
    for term, logs in zip(
        penalised(model.design), np.asarray(model.posterior.linear_smoothing), strict=True
    ):
        own = [model.design.features[place].eigenvalues for place in term.features]
        own = own if term.pure else [np.append(0.0, values) for values in own]
        total = np.exp(logs[-1])
        for j in range(len(own)):
            ones = [np.exp(logs[j]) * s if i == j else np.ones(len(s)) for i, s in enumerate(own)]
            total = total + reduce(np.kron, ones)
        penalties.append(total if term.pure else total[1:])
    precision = X.T @ X + np.diag(np.concatenate(penalties))
    return float(model.posterior.dispersion) * np.linalg.pinv(precision, rcond=1e-12, hermitian=True)


def averaged(model: ak.AdditiveModel, rows: pd.DataFrame, point: dict, over: tuple[str, ...]):
    """The design at a point, averaged over the product of the margins of some columns."""
    mesh = np.meshgrid(*(np.arange(len(rows)) for _ in over), indexing="ij")
    count = mesh[0].size if mesh else 1
    data = pd.DataFrame({name: [rows[name].iloc[0]] * count for name in COLUMNS}).assign(**point)
    data = data.assign(**{n: rows[n].to_numpy()[m.reshape(-1)] for n, m in zip(over, mesh, strict=True)})
    return dense(model, data).mean(axis=0)


@pytest.mark.parametrize("features", ["x1", "x3", "hour", "hour:x3", "x3:hour", "x1:group"])
def test_bands_are_those_of_the_exact_posterior(
    fitted: ak.AdditiveModel, rows: pd.DataFrame, features: str
) -> None:
    """Of curves and surfaces: a part is linear in the coefficients, by its definition."""
    V = exact_covariance(fitted, rows)
    names = features.split(":")
    together = ("x3", "hour") if {"x3", "hour"} & set(names) else ("x1", "group")
    others = tuple(name for name in together if name not in names)
    found = effect(fitted, *names, points=3)
    design = []
    for point in found.frame()[names].to_dict("records"):
        subsets = [s for size in range(len(names) + 1) for s in combinations(names, size)]
        signed = [(-1) ** len(s) * averaged(fitted, rows, point, (*s, *others)) for s in subsets]
        design.append(np.sum(signed, axis=0))
    expected = fitted.scale * np.sqrt(np.einsum("nq,qr,nr->n", design, V, design))
    np.testing.assert_allclose(found.se.reshape(-1), expected, rtol=1e-4, atol=1e-9)


def test_a_file_holds_all_that_effects_need(fitted: ak.AdditiveModel, tmp_path: Path) -> None:
    fitted.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    for before, after in zip(effects(fitted), effects(loaded), strict=True):
        np.testing.assert_allclose(after.fit, before.fit, rtol=1e-9)
        np.testing.assert_allclose(after.se, before.se, rtol=1e-9)
        assert after.near_data is not None, "where rows are is known of the pairs of tensor products"
        np.testing.assert_array_equal(after.near_data, before.near_data)
