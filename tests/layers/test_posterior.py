"""The variance of a predictor from bands of covariances: that of the whole covariances."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from keras import ops

from ahofm_keras.bases import Basis, evaluate_basis, locate_raw, make_levels, make_linear, make_spline
from ahofm_keras.layers import BasisExpansion, Posterior
from tests.layers.common import coordinates
from tests.posteriors import keep_covariance

RNG = np.random.default_rng(0)
X = RNG.uniform(0, 1, 300)
BASES = {
    "spline": make_spline(X, 12),
    "small": make_spline(X, 5),
    "one interval": make_spline(X, 4),
    "straight pieces": make_spline(X, 6, degree=1),
    "straight beyond": make_spline(X, 7, extrapolation="linear"),
    "straight pieces beyond": make_spline(X, 5, degree=1, extrapolation="linear"),
    "atoms": make_spline(X, 9, atoms=(0.31, 0.5)),
    "atoms straight beyond": make_spline(X, 7, extrapolation="linear", atoms=(-0.5, 0.77)),
    "circle": make_spline(X, 9, cyclic=True),
    "circle of 6": make_spline(X, 6, cyclic=True),
    "circle of 5": make_spline(X, 5, cyclic=True),
    "circle of 4": make_spline(X, 4, cyclic=True),
    "levels": make_levels((0.0, 1.0, 2.0)),
    "line": make_linear(X),
}


def values_of(basis: Basis) -> np.ndarray:
    """Also beyond the training range, knots, and levels that are not known."""
    if basis.kind == "re":
        return np.array([0.0, 1.0, 2.0, 7.0, 1.0, 0.0, 2.0, 2.0])
    return np.array([-0.5, 0.0, 0.31, 0.5, 0.77, 1.0, 1.4, 0.02])


def expand(*bases: Basis) -> Any:
    """The expansion of bases of one kind at the values above, by the layer."""
    basis = bases[0]
    degree = None if basis.kind == "linear" else basis.degree
    layer = BasisExpansion(
        range(len(bases)),
        [own.size for own in bases],
        degree,
        basis.kind == "cp",
        basis.is_straight_beyond,
        [len(own.atoms) for own in bases],
        dtype="float64",
    )
    places = [np.asarray(locate_raw(own, values_of(own)), float) for own in bases]
    return layer(ops.convert_to_tensor(np.stack(places, axis=1)))


def variance_of_order(means: np.ndarray, covariances: np.ndarray, order: int) -> float:
    """Var(sum_f e_d) of factors with means `(p, F)` and covariances `(p, F, F)`, by the definition."""
    features, rank = means.shape
    total = 0.0
    subsets = list(combinations(range(features), order))
    for a in subsets:
        for b in subsets:
            for f in range(rank):
                for g in range(rank):
                    both, apart = 1.0, 1.0
                    for j in range(features):
                        first = means[j, f] if j in a else 1.0
                        second = means[j, g] if j in b else 1.0
                        shared = covariances[j, f, g] if j in a and j in b else 0.0
                        both, apart = both * (first * second + shared), apart * first * second
                    total += both - apart
    return total


@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("kind", BASES)
def test_bands_are_enough(kind: str, groups: int) -> None:
    basis, other, rank = BASES[kind], BASES["spline"], 3
    rng = np.random.default_rng(1)
    heaped = np.concatenate([X, np.repeat(basis.atoms, 30)])
    sample = [rng.integers(0, 3, 300).astype(float) if basis.kind == "re" else heaped, X]
    transforms = [coordinates(own, x).transform for own, x in zip((basis, other), sample, strict=True)]
    entry = {
        "lambdas": 1,
        "order": 2,
        "rank": rank,
        "features": [[0, 0], [1, 0]],
        "transforms": transforms,
    }
    layer = Posterior(
        False, [], [{**entry, "widths": [basis.width, other.width], "means": []}], groups + 1
    )
    layer.build()
    layer.announce(1.0, groups)
    rows = [evaluate_basis(own, values_of(own)) for own in (basis, other)]
    functions = [own @ transform for own, transform in zip(rows, transforms, strict=True)]
    means = np.zeros(layer.factor_means[0].shape)
    wanted = np.zeros(len(rows[0]))
    for group in range(groups):
        found = []
        for j, transform in enumerate(transforms):
            size = transform.shape[1]
            own = rng.normal(size=(rank, size))
            root = rng.normal(size=(rank * size, rank * size)) / rank
            means[j, group * rank : (group + 1) * rank, :size] = own
            covariance = root @ root.T
            keep_covariance(layer, 0, j, group, covariance)
            blocks = covariance.reshape(rank, size, rank, size)
            spread = np.einsum("nr,frgs,ns->nfg", functions[j], blocks, functions[j])
            found.append((functions[j] @ own.T, spread))
        for row in range(len(wanted)):
            m, C = (np.stack([own[part][row] for own in found]) for part in (0, 1))
            wanted[row] += variance_of_order(m, C, 2)
    layer.factor_means[0].assign(means)
    variance = np.asarray(layer([expand(basis), expand(other)]))
    np.testing.assert_allclose(variance[:, 0], wanted, rtol=1e-9)


def test_a_feature_in_several_orders() -> None:
    """Each order has covariances of its own at the same products of functions."""
    rng = np.random.default_rng(2)
    transform = coordinates(BASES["small"], X).transform
    entries = [
        {
            "order": order,
            "rank": 2,
            "features": [[0, j] for j in range(3)],
            "transforms": 3 * [transform],
            "widths": 3 * [4],
            "means": [],
        }
        for order in (2, 3)
    ]
    layer = Posterior(False, [], entries)
    layer.build()
    rows = np.stack(3 * [evaluate_basis(BASES["small"], values_of(BASES["small"]))])
    wanted = np.zeros(8)
    for place, entry in enumerate(entries):
        means = rng.normal(size=layer.factor_means[place].shape)
        layer.factor_means[place].assign(means)
        spread = []
        for j in range(3):
            root = rng.normal(size=(2 * transform.shape[1], 4))
            keep_covariance(layer, place, j, 0, root @ root.T)
            blocks = (root @ root.T).reshape(2, transform.shape[1], 2, -1)
            u = rows[j] @ transform
            spread.append((u @ means[j].T, np.einsum("nr,frgs,ns->nfg", u, blocks, u)))
        for row in range(8):
            m, C = (np.stack([own[part][row] for own in spread]) for part in (0, 1))
            wanted[row] += variance_of_order(m, C, entry["order"])
    found = np.asarray(layer([expand(*3 * [BASES["small"]])]))[:, 0]
    np.testing.assert_allclose(found, wanted, rtol=1e-9)


def test_room_is_linear_in_functions_and_groups() -> None:
    def numbers(functions: int, groups: int) -> int:
        entry = {
            "order": 2,
            "rank": 4,
            "features": [[0, 0], [0, 1]],
            "transforms": 2 * [np.eye(functions)],
            "widths": [4, 4],
            "means": [],
        }
        layer = Posterior(False, [], [entry], groups)
        layer.build()
        return sum(int(np.prod(weight.shape)) for weight in layer.orders[0].values())

    assert numbers(100, 6) == 3 * numbers(100, 2)
    small, middle, large = numbers(100, 1), numbers(200, 1), numbers(300, 1)
    assert large - middle == middle - small
    # Bands of ten pairs of factors, and four means, for each function of two features.
    assert middle - small == 2 * 100 * (4 * 10 + 4)


def test_variances_that_cancel_are_not_below_0() -> None:
    """Two factors of the first feature move against each other, so their sum of products stands still."""
    rng = np.random.default_rng(0)
    bases = rng.normal(size=(2, 1, 1000))
    entry = {"order": 2, "rank": 2, "features": [[0, 0], [0, 1]], "transforms": 2 * [np.ones((1, 1))]}
    layer = Posterior(False, [], [{**entry, "widths": [1, 1], "means": []}])
    layer.build()
    ratio = 0.7
    means = np.zeros((2, 2, 1))
    means[1, :, 0] = 1, ratio
    layer.factor_means[0].assign(means)
    root = np.array([1, -1 / ratio])
    keep_covariance(layer, 0, 0, 0, np.outer(root, root))
    variance = np.asarray(layer([(np.zeros(bases.shape, "int32"), bases)]))
    assert (variance >= 0).all()
    assert variance.max() < 1e-12
