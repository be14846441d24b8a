"""Moments of interactions of random factors against the enumeration of all outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations, product
from math import comb

import numpy as np
import pytest

from ahofm_keras.moments import FactorMoments
from tests.reference import interaction

ORDERS = [2, 3, 4]
RANKS = [1, 2, 3, 4]
FEATURES = 5
ROWS = 3
SIGNS = 2  # independent signs behind the factors of one feature

every_order = pytest.mark.parametrize("order", ORDERS)
every_rank = pytest.mark.parametrize("rank", RANKS)

Readings = dict[str, np.ndarray]


class Feature:
    """Factors phi = m + L z of one feature, z signs or gaussian; `sizes` multiplies each row."""

    def __init__(
        self, rng: np.random.Generator, rank: int, rows: int = ROWS, signs: int = SIGNS
    ) -> None:
        self.means = rng.choice([-1, 1], (rank, rows)) * rng.uniform(0.3, 1.5, (rank, rows))
        self.roots = rng.uniform(-0.8, 0.8, (rank, signs, rows))

    @property
    def covariances(self) -> np.ndarray:
        return np.einsum("fqn,gqn->fgn", self.roots, self.roots)

    def at(self, z: np.ndarray) -> np.ndarray:
        """Factors of outcomes z `(outcomes, signs)`: `(outcomes, n, F)`."""
        return (self.means + np.einsum("fqn,oq->ofn", self.roots, z)).swapaxes(1, 2)

    def scale(self, sizes: Sequence[float] | np.ndarray) -> Feature:
        scaled = object.__new__(Feature)
        scaled.means, scaled.roots = self.means * np.asarray(sizes), self.roots * np.asarray(sizes)
        return scaled

    def take(self, rows: np.ndarray) -> Feature:
        taken = object.__new__(Feature)
        taken.means, taken.roots = self.means[:, rows], self.roots[..., rows]
        return taken


def draw(rank: int, count: int = FEATURES, rows: int = ROWS, seed: int = 0) -> list[Feature]:
    rng = np.random.default_rng([rank, count, rows, seed])
    return [Feature(rng, rank, rows) for _ in range(count)]


def build(order: int, features: Sequence[Feature], random: bool = True) -> FactorMoments:
    state = FactorMoments(order, *features[0].means.shape, random=random)
    for feature in features:
        state.add(feature.means, feature.covariances if random else None)
    return state


def read(state: FactorMoments) -> Readings:
    """A copy of all that can be read."""
    readings = {
        "total": state.total,
        "variance": state.variance,
        "slopes": state.slopes,
        "slope_products": state.slope_products(),
        "slope_covariance": np.broadcast_to(state.slope_covariance(), state.slopes.shape),
    }
    return {name: np.array(values) for name, values in readings.items()}


def average(order: int, phi: np.ndarray) -> Readings:
    """The definitions, over equally likely outcomes `(p, outcomes, n, F)`."""
    features, outcomes, rows, rank = phi.shape
    flat = phi.reshape(features, -1, rank)
    e_d = interaction(flat, order).reshape(outcomes, rows)
    lower = [interaction(flat[..., [f]], order - 1).reshape(outcomes, rows) for f in range(rank)]
    from_mean = e_d - e_d.mean(axis=0)
    return {
        "total": e_d.mean(axis=0),
        "variance": (from_mean**2).mean(axis=0),
        "slopes": np.array([e.mean(axis=0) for e in lower]),
        "slope_products": np.array(
            [(lower[f] * lower[g]).mean(axis=0) for f in range(rank) for g in range(f, rank)]
        ),
        "slope_covariance": np.array([((e - e.mean(axis=0)) * from_mean).mean(axis=0) for e in lower]),
    }


def enumerate_signs(order: int, features: Sequence[Feature]) -> Readings:
    """Exact moments: signs of different features are independent, so all outcomes are equally likely."""
    signs = np.array(list(product([-1.0, 1.0], repeat=SIGNS * len(features))))
    parts = np.split(signs, len(features), axis=1)
    phi = np.array([feature.at(z) for feature, z in zip(features, parts, strict=True)])
    return average(order, phi)


def assert_equal(
    found: Readings,
    wanted: Readings,
    rtol: float = 1e-10,
    atol: float = 1e-13,
    rows: object = slice(None),
) -> None:
    assert found.keys() == wanted.keys()
    for name, values in wanted.items():
        assert found[name].shape == values.shape, name
        np.testing.assert_allclose(
            found[name][..., rows], values[..., rows], rtol=rtol, atol=atol, err_msg=name
        )


# Against the definitions


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
@every_rank
@every_order
def test_moments_are_those_of_all_outcomes(order: int, rank: int, count: int) -> None:
    features = draw(rank, count)
    assert_equal(read(build(order, features)), enumerate_signs(order, features))


@pytest.mark.parametrize("order", [2, 3])
def test_moments_of_gaussian_factors_are_those_of_a_simulation(order: int) -> None:
    rng = np.random.default_rng(order)
    features = draw(2, 4, rows=2)
    phi = np.array([feature.at(rng.normal(size=(150_000, SIGNS))) for feature in features])
    found, simulated = read(build(order, features)), average(order, phi)
    for name, values in found.items():
        error = np.abs(values - simulated[name]).max()
        assert error < 0.03 * np.abs(values).max(), name


@every_rank
@every_order
def test_without_variances_only_means_are_left(order: int, rank: int) -> None:
    features = draw(rank)
    random, fixed = read(build(order, features)), read(build(order, features, random=False))
    for name in ("total", "slopes"):
        np.testing.assert_array_equal(fixed[name], random[name])
    first, second = np.triu_indices(rank)
    np.testing.assert_array_equal(
        fixed["slope_products"], fixed["slopes"][first] * fixed["slopes"][second]
    )
    assert not fixed["variance"].any()
    assert not fixed["slope_covariance"].any()
    assert (random["variance"] > 0).all()


@every_order
def test_without_variances_covariances_are_not_used(order: int) -> None:
    features = draw(2)
    state = FactorMoments(order, 2, ROWS, random=False)
    for feature in features:
        state.add(feature.means, feature.covariances)
    assert_equal(read(state), read(build(order, features, random=False)), rtol=0, atol=0)


@every_order
def test_factors_without_spread_have_no_variance(order: int) -> None:
    features = draw(3)
    for feature in features:
        feature.roots[:] = 0
    fixed = read(build(order, features, random=False))
    assert_equal(read(build(order, features)), fixed, rtol=0, atol=0)


# In and out


@pytest.mark.parametrize("random", [True, False], ids=["random", "fixed"])
@every_rank
@every_order
def test_taking_a_feature_out_restores_what_was(order: int, rank: int, random: bool) -> None:
    *features, last = draw(rank)
    state = build(order, features, random)
    before = read(state)
    covariances = last.covariances if random else None
    state.add(last.means, covariances)
    assert all(
        np.abs(values - before[name]).max() > 0.01
        for name, values in read(state).items()
        if before[name].any()
    )
    state.remove(last.means, covariances)
    assert_equal(read(state), before, atol=1e-12)


@pytest.mark.parametrize("out", range(FEATURES))
@every_order
def test_any_feature_can_be_taken_out(order: int, out: int) -> None:
    features = draw(3)
    state = build(order, features)
    state.remove(features[out].means, features[out].covariances)
    assert_equal(read(state), enumerate_signs(order, features[:out] + features[out + 1 :]), atol=1e-12)


@every_order
def test_nothing_is_left_when_all_are_out(order: int) -> None:
    features = draw(2)
    state = build(order, features)
    for feature in features:
        state.remove(feature.means, feature.covariances)
    assert all(np.abs(values).max() < 1e-11 for values in read(state).values())


@every_order
def test_the_order_of_features_does_not_matter(order: int) -> None:
    features = draw(2, 4)
    wanted = read(build(order, features))
    for shuffled in permutations(features):
        assert_equal(read(build(order, shuffled)), wanted, atol=1e-12)


@every_order
def test_arguments_are_left_as_they_are(order: int) -> None:
    feature = draw(2)[0]
    means, covariances = feature.means.copy(), feature.covariances
    state = build(order, draw(2))
    state.add(means, covariances)
    state.remove(means, covariances)
    state.lossy_rows(means, covariances)
    np.testing.assert_array_equal(means, feature.means)
    np.testing.assert_array_equal(covariances, feature.covariances)


# Lost digits

DOMINATED = [1, 4]
SIZES = np.where(np.isin(np.arange(6), DOMINATED), 1e6, 1.0)


def remove_large(
    order: int, rank: int, sizes: np.ndarray
) -> tuple[FactorMoments, Feature, list[Feature]]:
    """A state that a feature of given sizes was taken out of, that feature, and the others."""
    large, *others = draw(rank, rows=len(sizes))
    large = large.scale(sizes)
    state = build(order, [others[0], large, *others[1:]])
    state.remove(large.means, large.covariances)
    return state, large, others


@every_rank
@every_order
def test_rows_that_a_feature_dominated_are_lossy(order: int, rank: int) -> None:
    state, large, _ = remove_large(order, rank, SIZES)
    np.testing.assert_array_equal(state.lossy_rows(large.means, large.covariances), DOMINATED)


@every_order
def test_rows_are_lossy_for_means_alone(order: int) -> None:
    large, *others = draw(2, rows=6)
    large = large.scale(SIZES)
    large.means = -np.abs(large.means)
    state = build(order, [large, *others], random=False)
    state.remove(large.means, None)
    np.testing.assert_array_equal(state.lossy_rows(large.means, None), DOMINATED)


@pytest.mark.parametrize("part", ["means", "roots"])
@every_order
def test_one_factor_that_dominates_is_enough(order: int, part: str) -> None:
    large, *others = draw(3, rows=4)
    getattr(large, part)[1, ..., 2] *= 1e6
    state = build(order, [large, *others])
    state.remove(large.means, large.covariances)
    np.testing.assert_array_equal(state.lossy_rows(large.means, large.covariances), [2])


@every_rank
@every_order
def test_ordinary_rows_are_not_lossy(order: int, rank: int) -> None:
    features = draw(rank, rows=50)
    for out, feature in enumerate(features):
        state = build(order, features)
        state.remove(feature.means, feature.covariances)
        assert not len(state.lossy_rows(feature.means, feature.covariances))
        others = features[:out] + features[out + 1 :]
        assert_equal(read(state), read(build(order, others)), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(("order", "size"), [(2, 50.0), (3, 15.0), (4, 8.0)])
def test_a_feature_that_is_only_larger_is_not_lossy(order: int, size: float) -> None:
    state, large, others = remove_large(order, 2, np.full(50, size))
    assert not len(state.lossy_rows(large.means, large.covariances))
    found, wanted = read(state), read(build(order, others))
    for name in ("slopes", "slope_products"):
        np.testing.assert_allclose(found[name], wanted[name], rtol=1e-6, atol=1e-8, err_msg=name)


@every_order
def test_a_feature_that_is_small_or_zero_loses_nothing(order: int) -> None:
    for size in (0.0, 1e-6):
        state, small, _ = remove_large(order, 2, np.full(4, size))
        assert not len(state.lossy_rows(small.means, small.covariances))


@every_order
def test_a_feature_that_was_alone_is_lossy(order: int) -> None:
    alone = draw(2)[0]
    state = build(order, [alone])
    state.remove(alone.means, alone.covariances)
    np.testing.assert_array_equal(state.lossy_rows(alone.means, alone.covariances), range(ROWS))


@every_order
def test_slopes_keep_their_digits_in_rows_that_are_not_lossy(order: int) -> None:
    sizes = 10 ** np.linspace(0, 8, 200)
    state, large, others = remove_large(order, 2, sizes)
    lossy = state.lossy_rows(large.means, large.covariances)
    kept = np.setdiff1d(np.arange(200), lossy)
    assert len(lossy) > 50
    assert sizes[kept].max() > 10
    found, wanted = read(state), read(build(order, others))
    # Of factors that do not cancel; all have about this size.
    reach = comb(len(others), order - 1)
    for name, scale in {"slopes": reach, "slope_products": reach**2}.items():
        assert np.abs(found[name] - wanted[name])[:, kept].max() < 2e-6 * scale, name


# Rows from another state


@every_order
def test_replaced_rows_are_those_of_the_other_state(order: int) -> None:
    rows = np.array([3, 0])
    state, other = build(order, draw(3, rows=5)), build(order, draw(3, rows=2, seed=1))
    before, new = read(state), read(other)
    state.replace(rows, other)
    found = read(state)
    for name, values in found.items():
        np.testing.assert_array_equal(values[..., rows], new[name])
        np.testing.assert_array_equal(values[..., [1, 2, 4]], before[name][..., [1, 2, 4]])


@every_order
def test_replaced_rows_go_on_as_those_of_the_other_state(order: int) -> None:
    rows, further = np.array([3, 0]), draw(3, rows=5, seed=2)[0]
    state, other = build(order, draw(3, rows=5)), build(order, draw(3, rows=2, seed=1))
    state.replace(rows, other)
    kept = read(other)
    state.add(further.means, further.covariances)
    assert_equal(read(other), kept, rtol=0, atol=0)
    part = further.take(rows)
    other.add(part.means, part.covariances)
    found = read(state)
    assert_equal({name: values[..., rows] for name, values in found.items()}, read(other), rtol=1e-12)


@every_order
def test_replaced_rows_are_lossy_where_those_of_the_other_state_are(order: int) -> None:
    ordinary, tiny = draw(2, rows=4), [feature.scale([1e-6] * 2) for feature in draw(2, rows=2)]
    state = build(order, ordinary)
    further = draw(2, rows=4, seed=1)[0]
    assert not len(state.lossy_rows(further.means, further.covariances))
    state.replace(np.array([1, 3]), build(order, tiny))
    np.testing.assert_array_equal(state.lossy_rows(further.means, further.covariances), [1, 3])


@pytest.mark.parametrize("rank", [1, 3])
@every_order
def test_replacing_lossy_rows_brings_the_digits_back(order: int, rank: int) -> None:
    state, large, others = remove_large(order, rank, SIZES)
    exact = enumerate_signs(order, others)
    lossy = state.lossy_rows(large.means, large.covariances)
    lost = read(state)["slope_products"][:, lossy] / exact["slope_products"][:, lossy] - 1
    assert np.abs(lost).min(axis=0).max() > 1e-8
    state.replace(lossy, build(order, [feature.take(lossy) for feature in others]))
    assert_equal(read(state), exact, rtol=1e-8, atol=0)
    state.add(large.means, large.covariances)
    assert_equal(read(state), enumerate_signs(order, [*others, large]), rtol=1e-8, atol=0)
