"""Main effects, orders, ranks and features that terms share."""

from __future__ import annotations

import numpy as np
import pytest

from ahofm_keras.bases import evaluate_basis
from ahofm_keras.terms import Design
from ahofm_keras.terms.interaction import InteractionTerm
from ahofm_keras.terms.smooth import SmoothTerm
from tests.reference import terms_of
from tests.terms.common import dense_df, fit, labels, smooth

# Main effects and orders


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("ahofm(x, z)", ["s(x)", "s(z)", "ahofm(x, z)"]),
        ("s(x) + ahofm(x, z)", ["s(x)", "s(z)", "ahofm(x, z)"]),
        ("ahofm(x, z) + s(x)", ["s(z)", "ahofm(x, z)", "s(x)"]),
        ("ahofm(x, z) + ahofm(z, w)", ["s(x)", "s(z)", "ahofm(x, z)", "s(w)", "ahofm(z, w)"]),
        ("ahofm(x, z, main=False)", ["ahofm(x, z)"]),
        ("ahofm(x, z, main=False) + ahofm(x, w)", ["ahofm(x, z)", "s(x)", "s(w)", "ahofm(x, w)"]),
        ("x + ahofm(x, z)", ["x", "s(z)", "ahofm(x, z)"]),
        ("x:z + ahofm(x, z)", ["x:z", "s(x)", "s(z)", "ahofm(x, z)"]),
        ("s(log(x)) + ahofm(x, z)", ["s(log(x))", "s(x)", "s(z)", "ahofm(x, z)"]),
        ("afm(x, g)", ["s(x)", "s(g)", "afm(x, g)"]),
        ("hofm(x, z)", ["x", "z", "hofm(x, z)"]),
        ("x + fm(x, g)", ["x", "g", "fm(x, g)"]),
        ("hofm(x, z, main=False)", ["hofm(x, z)"]),
        ("ahofm(x, z, w, orders=(3,))", ["s(x)", "s(z)", "s(w)", "ahofm(x, z, w)"]),
    ],
)
def test_a_main_effect_stands_once(formula: str, expected: list[str]) -> None:
    design = fit(formula)
    assert labels(design) == expected
    names = [term.name for term in design.terms]
    assert len(set(names)) == len(names)
    assert not set(names) & set(design.columns)


def test_a_category_written_in_two_ways_is_one_main_effect() -> None:
    assert labels(fit("C(g) + ahofm(x, g)")) == ["C(g)", "s(x)", "ahofm(x, g)"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", [(2, 5), (3, 5)]),
        ("D=2", [(2, 5)]),
        ("D=4, F=2", [(2, 2), (3, 2), (4, 2)]),
        ("D=3, F=(10, 4)", [(2, 10), (3, 4)]),
        ("orders=(3,)", [(3, 5)]),
        ("orders=3, F=7", [(3, 7)]),
        ("orders=(2, 4), F=(3, 1)", [(2, 3), (4, 1)]),
    ],
)
@pytest.mark.parametrize("call", ["ahofm", "hofm"])
def test_orders_and_ranks(call: str, options: str, expected: list[tuple[int, int]]) -> None:
    term = fit(f"{call}(x, z, w, v{', ' + options if options else ''})").terms[-1]
    assert [(order.order, order.rank) for order in term.orders] == expected
    assert term.column_labels == tuple(f"{call}(x, z, w, v)[{order}]" for order, _ in expected)
    assert all(len(order.smoothing) == len(order.df) == 4 for order in term.orders)


def test_ranks_and_df_stay_beside_their_orders() -> None:
    term = fit("ahofm(x, z, w, orders=(3, 2), F=(10, 4), df=(12, 9, 6))").terms[-1]
    assert {order.order: order.rank for order in term.orders} == {3: 10, 2: 4}
    assert {order.order: round(order.df[0], 4) for order in term.orders} == {3: 9, 2: 6}


def interaction_dfs(design: Design) -> dict[int, tuple[float, ...]]:
    (term,) = terms_of(design, InteractionTerm)
    return {order.order: tuple(round(df, 4) for df in order.df) for order in term.orders}


@pytest.mark.parametrize(
    ("options", "main", "interactions"),
    [
        ("D=3, df=7", (7, 7, 7), {2: (7, 7, 7), 3: (7, 7, 7)}),
        ("D=3, df=(15, 8, 5)", (15, 15, 15), {2: (8, 8, 8), 3: (5, 5, 5)}),
        ('D=3, df={"x": 10}', (10, 15, 15), {2: (10, 15, 15), 3: (10, 15, 15)}),
        ('D=3, df={"x": 4, "z": (9, 6, 3)}', (4, 9, 15), {2: (4, 6, 15), 3: (4, 3, 15)}),
        ("orders=(3,), df=(6, 2.5)", (6, 6, 6), {3: (2.5, 2.5, 2.5)}),
        ("D=3, main=False, df=(8, 5)", (), {2: (8, 8, 8), 3: (5, 5, 5)}),
        ("D=3", (15, 15, 15), {2: (15, 15, 15), 3: (15, 15, 15)}),
    ],
)
def test_df_per_order_and_per_feature(
    options: str, main: tuple[float, ...], interactions: dict[int, tuple[float, ...]]
) -> None:
    design = fit(f"ahofm(x, z, w, {options})")
    assert tuple(round(term.df, 4) for term in terms_of(design, SmoothTerm)) == main
    assert interaction_dfs(design) == interactions
    (term,) = terms_of(design, InteractionTerm)
    for order in term.orders:
        for place, smoothing, df in zip(term.features, order.smoothing, order.df, strict=True):
            assert dense_df(design.features[place], smoothing) == pytest.approx(df, abs=2e-3)


def test_k_and_knots_per_feature() -> None:
    design = fit('ahofm(x, hour, z, k={"x": 8, "z": 6}, knots={"hour": (0, 24), "z": "even"}, df=4)')
    (term,) = terms_of(design, InteractionTerm)
    bases = [design.features[place].basis for place in term.features]
    assert [basis.size for basis in bases] == [8, 12, 6]
    assert [len(basis.axis) for basis in bases] == [16 * bases[0].intervals + 1, 2, 2]
    assert bases[1].axis == (0.0, 24.0)
    assert [term.feature for term in terms_of(design, SmoothTerm)] == list(term.features)


def test_a_cyclic_smooth_is_joined_at_the_given_ends() -> None:
    term, feature = smooth('s(hour, bs="cp", knots=(0, 24), df=6)')
    assert (feature.basis.kind, feature.basis.axis) == ("cp", (0.0, 24.0))
    assert feature.null_dimension == 0
    ends = evaluate_basis(feature.basis, np.array([0.0, 24.0, 48.0]))
    np.testing.assert_allclose(ends, ends[[0, 0, 0]], rtol=0, atol=1e-12)
    assert term.df == pytest.approx(6, abs=1e-6)


def test_a_linear_factor_has_a_ridge() -> None:
    design = fit("hofm(x, g, sp=3, F=2)")
    term = design.terms[-1]
    assert isinstance(term, InteractionTerm)
    assert [design.features[place].basis.kind for place in term.features] == ["linear", "re"]
    assert [order.smoothing for order in term.orders] == [(3.0, 3.0)]
    assert fit("hofm(x, z)").terms[-1].orders[0].smoothing == (1.0, 1.0)


# Shared features


@pytest.mark.parametrize(
    ("formula", "count"),
    [
        ("ahofm(x, z)", 2),
        ("s(x) + s(z) + ahofm(x, z, D=2)", 2),
        ("ahofm(x, z) + ahofm(x, w)", 3),
        ("ahofm(x, z, w, D=3, df=(15, 8, 5))", 3),
        ("ahofm(x, z, df=15) + s(x, df=6)", 2),
        ("s(x, k=8) + ahofm(x, z)", 2),  # another size is another basis
        ("s(x, k=8, df=4) + ahofm(x, z, k=8, df=4)", 2),
        ('s(x, knots="even") + ahofm(x, z)', 2),
        ("s(log(x)) + ahofm(log(x), z)", 2),
        ("s(g) + ahofm(x, g)", 2),
        ("hofm(x, z) + hofm(x, w)", 3),
        ("x + z + g", 0),
    ],
)
def test_a_basis_that_several_terms_use_is_there_once(formula: str, count: int) -> None:
    design = fit(formula)
    assert len(design.features) == count
    used = {place for term in terms_of(design, InteractionTerm) for place in term.features}
    used |= {term.feature for term in terms_of(design, SmoothTerm)}
    assert used == set(range(count))
