"""Values that many rows share: which ones, what their functions are, where they are refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from keras import ops

from ahofm_keras.bases import ATOM_PLACE, evaluate_basis, locate, make_spline
from ahofm_keras.cells import basis_cells
from ahofm_keras.errors import DataError, FormulaError
from ahofm_keras.layers import BasisExpansion, Positions
from ahofm_keras.layers.basis import all_functions, one_feature
from ahofm_keras.terms.atoms import MOST_FOUND, find_atoms
from ahofm_keras.transforms import Expression
from tests.terms.common import fit

RNG = np.random.default_rng(0)
ROWS = 3000


def heap(x: np.ndarray, values: dict[float, float]) -> np.ndarray:
    """Some rows of x, shares of them, at other values."""
    for value, share in values.items():
        x = np.where(RNG.uniform(size=len(x)) < share, value, x)
    return x


X = heap(RNG.uniform(-10, 60, ROWS), {0.0: 0.2, 40.0: 0.1})
DATA = pd.DataFrame(
    {
        "x": X,
        "z": RNG.uniform(size=ROWS),
        "hour": RNG.uniform(0, 24, ROWS),
        "positive": np.abs(X) + 1.0,
        "g": RNG.choice(["a", "b"], ROWS),
        "y": RNG.normal(size=ROWS),
    }
)

# ------------------------------------------------------------------------------------ candidates

UNIFORM = RNG.uniform(size=10_000)
FOUND = {
    "no heap": (UNIFORM, ()),
    "one heap": (heap(UNIFORM, {0.5: 0.1}), (0.5,)),
    "at the ends": (heap(UNIFORM, {0.0: 0.03, 1.0: 0.1}), (0.0, 1.0)),
    "far away": (heap(UNIFORM, {-999.0: 0.05}), (-999.0,)),
    "few rows in all": (heap(UNIFORM[:1999], {0.5: 0.1}), ()),
    "enough rows in all": (heap(UNIFORM[:2000], {0.5: 0.1}), (0.5,)),
    "too few rows": (heap(UNIFORM, {0.5: 0.0008}), ()),
    "whole years": (np.floor(RNG.uniform(18, 90, 10_000)), ()),
    "whole years of a bell": (np.round(RNG.normal(50, 12, 10_000)), ()),
    "years, many rounded to tens": (
        np.where(
            RNG.uniform(size=10_000) < 0.5, 10.0 * RNG.integers(2, 9, 10_000),
            np.floor(RNG.uniform(18, 90, 10_000)),
        ),
        tuple(10.0 * np.arange(2, 9)),
    ),
    "few values": (RNG.choice(12, 10_000, p=[0.45, *[0.05] * 11]).astype(float), ()),
}  # fmt: skip


@pytest.mark.parametrize(("x", "wanted"), FOUND.values(), ids=FOUND)
def test_what_stands_out_is_an_atom(x: np.ndarray, wanted: tuple[float, ...]) -> None:
    assert find_atoms(*np.unique(x, return_counts=True)) == wanted


def test_no_more_than_the_most_frequent() -> None:
    heaps = RNG.choice(np.linspace(0, 1, 100), 6000)
    x = np.concatenate([RNG.uniform(size=6000), heaps, np.full(300, 0.123), np.full(200, 0.987)])
    values, counts = np.unique(x, return_counts=True)
    found = find_atoms(values, counts)
    assert len(found) == MOST_FOUND
    assert {0.123, 0.987} <= set(found)
    assert list(found) == sorted(found)
    least = counts[np.isin(values, found)].min()
    assert np.sum(counts > least) < MOST_FOUND


def test_no_heap_no_change() -> None:
    """A feature without heaps is the same to the last digit."""
    for name in ("z", "hour"):
        auto, none = (fit(f"s({name}{own})", DATA).features[0] for own in ("", ", atoms=False"))
        assert auto.to_json() == none.to_json()


# -------------------------------------------------------------------------- functions of a feature


@pytest.mark.parametrize("center", [True, False])
def test_a_function_is_the_spline_and_what_atoms_add(center: bool) -> None:
    """T maps (w, beta) to spline(x) + w_a 1(x = a), less its mean where functions are centred."""
    options = f"orders=(2,), main=False, center={center}"
    plain = fit(f"ahofm(x, z, atoms=False, {options})", DATA).features[0]
    feature = fit(f"ahofm(x, z, atoms={{'x': [40, 0]}}, {options})", DATA).features[0]
    assert feature.basis.atoms == (0.0, 40.0)
    assert feature.basis.splines == plain.basis.size
    w = RNG.normal(size=len(feature.eigenvalues))
    x = np.concatenate([X, np.linspace(-10, 60, 50)])
    found = evaluate_basis(feature.basis, x) @ feature.transform @ w
    indicators = (x[:, None] == [0.0, 40.0]) - center * (X[:, None] == [0.0, 40.0]).mean(axis=0)
    spline = evaluate_basis(plain.basis, x) @ plain.transform
    np.testing.assert_allclose(found, indicators @ w[:2] + spline @ w[2:], atol=1e-10)
    if center:
        assert abs(found[:ROWS].mean()) < 1e-12


def test_a_row_at_an_atom_has_one_function() -> None:
    basis = make_spline(X, 12, atoms=(0.0, 40.0))
    cells, dense = basis_cells(basis, X), evaluate_basis(basis, X)
    rows = np.zeros((len(X), basis.size))
    for column, values in enumerate(cells.values):
        np.add.at(rows, (np.arange(len(X)), cells.functions[cells.cell, column]), values)
    np.testing.assert_allclose(rows, dense, atol=1e-12)
    np.testing.assert_array_equal(dense[X == 40.0], np.eye(basis.size)[[-1] * int((X == 40).sum())])
    assert (dense[X == 0.0, -2] == 1).all()
    np.testing.assert_allclose(dense.sum(axis=1), 1.0)


@pytest.mark.parametrize("atoms", [(0.0,), (0.0, 40.0), tuple(np.arange(-3.0, 97.0))])
@pytest.mark.parametrize("extrapolation", ["clip", "linear"])
def test_places_in_the_graph_are_those_in_numpy(extrapolation: str, atoms: tuple[float, ...]) -> None:
    """Also in single precision, beside atoms, and far beyond the axis."""
    basis = make_spline(X, 12, extrapolation=extrapolation, atoms=atoms)
    near = np.nextafter(atoms[0], 1e300) + 1e-9
    x = np.concatenate([atoms, X[:50], [near, atoms[-1] + 1e-6, -1e30, 1e30]])
    places = locate(basis, x)
    np.testing.assert_array_equal(
        ops.convert_to_numpy(locate(basis, ops.convert_to_tensor(x), ops)), places
    )
    np.testing.assert_array_equal(places[: len(atoms)], ATOM_PLACE * np.arange(1, len(atoms) + 1))
    assert (np.abs(places[-4:]) <= 1e12).all()
    layer = Positions([(Expression("column", ("x",)), basis)])
    columns = {"x": x}
    encoded = layer.encode(columns)
    np.testing.assert_array_equal(np.asarray(layer({"x": ops.convert_to_tensor(x)})), encoded)
    assert encoded.dtype == np.float32
    straight = extrapolation == "linear"
    expansion = BasisExpansion([0], [basis.size], 3, straight=straight, atoms=[len(atoms)])
    inside = np.abs(encoded[:, 0]) < 100
    at = inside | (encoded[:, 0] > 1e12)
    found = np.asarray(all_functions(one_feature([expansion(encoded)], (0, 0)), basis.size)).T
    np.testing.assert_allclose(found[at], evaluate_basis(basis, x)[at], atol=2e-5)


def test_functions_of_a_formula_may_round_differently() -> None:
    """log(40) of NumPy and of the graph are the same atom."""
    feature = fit("s(log(positive))", DATA).features[0]
    assert len(feature.basis.atoms) == 2
    for atom in feature.basis.atoms:
        beside = [np.nextafter(atom, 9.0), np.nextafter(atom, -9.0)]
        if atom:
            assert (locate(feature.basis, np.array(beside)) >= ATOM_PLACE).all()


def test_terms_share_a_feature() -> None:
    design = fit("ahofm(x, z)", DATA)
    assert [feature.atoms for feature in design.features] == [2, 0]
    design = fit("s(x, atoms=[0]) + ahofm(x, z)", DATA)
    assert [feature.basis.atoms for feature in design.features] == [(0.0,), ()]
    assert not fit("te(x, z)", DATA).features[0].atoms
    # A feature without heaps is one feature, whether they were looked for or not.
    assert len(fit("ti(z, hour, k=6, sp=1) + s(z, k=6)", DATA).features) == 2
    assert fit("te(x, z, atoms={'x': 'auto'})", DATA).features[0].atoms == 2
    assert fit("te(x, z, atoms=('auto', False))", DATA).features[0].atoms == 2
    assert not fit("s(x, sp=1)", DATA).features[0].atoms
    assert not fit("s(hour, bs='cp')", DATA).features[0].atoms


def test_features_come_back_from_json() -> None:
    feature = fit("s(x)", DATA).features[0]
    again = type(feature).from_json(feature.to_json())
    assert again.basis == feature.basis
    assert replace(again, transform=feature.transform).to_json() == feature.to_json()


# ----------------------------------------------------------------------------------------- refused

REFUSED = {
    "s(x, atoms=True)": '"auto", False, or a list of values',
    "s(x, atoms=3)": '"auto", False, or a list of values',
    "s(x, atoms=[])": '"auto", False, or a list of values',
    "s(x, atoms=['a'])": '"auto", False, or a list of values',
    "s(x, atoms=[1e999])": '"auto", False, or a list of values',
    f"s(x, atoms={list(range(101))})": "at most 100 values",
    "s(x, atoms=[0, 41])": "names 41, but no row has that value of `x`; the nearest is 41.00",
    "ahofm(x, z, atoms={'x': [7]})": "names 7, but no row has that value of `x`",
    "ahofm(x, z, atoms={'w': [0]})": "names `w`, which is not one of its features",
    "s(g, atoms=[0])": "`atoms` has no meaning for the category `g`",
    "s(C(g), atoms=[0])": "`atoms` has no meaning for the category `C(g)`",
    "s(x, bs='re', atoms=[0])": '`atoms` has no meaning with bs="re"',
    "s(hour, bs='cp', atoms=[0])": "`atoms` cannot stand beside a circle or steps",
    "s(x, bs='step', atoms=[0])": "`atoms` cannot stand beside a circle or steps",
    "s(x, m=(0, 1), atoms=[0])": "`atoms` cannot stand beside a circle or steps",
    "te(x, z, atoms=('auto',))": "needs one value, or one per margin",
}


@pytest.mark.parametrize(("term", "message"), REFUSED.items(), ids=REFUSED)
def test_what_cannot_be_is_refused(term: str, message: str) -> None:
    with pytest.raises(FormulaError) as raised:
        fit(term, DATA)
    assert message in str(raised.value)
    assert "^" in str(raised.value)


def test_a_constant_is_refused_as_before() -> None:
    with pytest.raises(DataError, match="constant"):
        fit("s(x, atoms=[1])", DATA.assign(x=1.0))
