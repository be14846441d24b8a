"""Factorized interactions against the sum over all subsets of features."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from ahofm_keras.bases import center_basis
from ahofm_keras.layers import BasisExpansion, FactorizedInteraction
from ahofm_keras.layers.coordinates import learned_coordinates
from ahofm_keras.penalties import difference_penalty, orthogonalise
from tests.layers.common import DTYPES, ROWS
from tests.reference import integer_splines, interaction

# Factorized interactions


class Mixed:
    """Six features on four kinds of bases of different sizes, in mixed order."""

    def __init__(self, dtype: str) -> None:
        rng = np.random.default_rng(4)
        numbers = rng.uniform(size=(ROWS, 4))
        level = rng.integers(-1, 4, ROWS)  # -1: not seen in training
        column_value = rng.normal(size=ROWS)
        # Oracle: every feature's basis on its own, from SciPy and plain comparisons.
        places = numbers * [6, 3, 1, 1]
        self.bases = [
            integer_splines(places[:, 0], 9, 3),
            (level[:, None] == np.arange(4)).astype(float),
            integer_splines(places[:, 2], 3, 2),
            integer_splines(places[:, 1], 6, 3),
            column_value[:, None],
            integer_splines(places[:, 3], 3, 2),
        ]
        penalties = [difference_penalty(9), np.eye(4), difference_penalty(3), difference_penalty(6)]
        penalties += [np.eye(1), difference_penalty(3)]
        self.orthogonal = [
            orthogonalise(
                basis.T @ basis,
                penalty,
                ROWS,
                None if basis.shape[1] == 1 else center_basis(basis.mean(axis=0)),
            )
            for basis, penalty in zip(self.bases, penalties, strict=True)
        ]
        self.orders = [
            {"order": 2, "started": 3, "smoothing": [0.1, 1.0, 10.0, 0.0, 2.0, 5.0]},
            {"order": 3, "started": 2, "smoothing": [3.0, 0.0, 1.0, 7.0, 1.0, 0.2]},
            {"order": 5, "started": 1, "smoothing": [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]},
        ]
        self.layer = FactorizedInteraction(
            [(0, 0), (1, 0), (2, 0), (0, 1), (3, 0), (2, 1)],
            [each.transform for each in self.orthogonal],
            [each.eigenvalues for each in self.orthogonal],
            self.orders,
            dtype=dtype,
        )
        raw = np.column_stack(
            [places[:, 0], level, places[:, 2], places[:, 1], column_value, places[:, 3]]
        )
        tensor = ops.convert_to_tensor(raw, dtype=dtype)
        self.inputs = [
            BasisExpansion([0, 3], [9, 6], 3, dtype=dtype)(tensor),
            BasisExpansion([1], [4], 0, dtype=dtype)(tensor),
            BasisExpansion([2, 5], [3, 3], 2, dtype=dtype)(tensor),
            BasisExpansion([4], [1], None, dtype=dtype)(tensor),
        ]
        self.layer(self.inputs)
        for weight in self.layer.factors:
            weight.assign(rng.normal(size=weight.shape))

    @property
    def used(self) -> np.ndarray:
        """Which rows of the weights `(p, r)` belong to a coordinate."""
        counts = [len(each.eigenvalues) for each in self.orthogonal]
        return np.arange(max(counts)) < np.array(counts)[:, None]

    def expected(self) -> np.ndarray:
        columns = []
        for order, weight in zip(self.orders, self.layer.get_weights(), strict=True):
            phi = []
            for j, (basis, each) in enumerate(zip(self.bases, self.orthogonal, strict=True)):
                transform, _ = learned_coordinates(
                    each.transform, each.eigenvalues, order["smoothing"][j]
                )
                phi.append(basis @ transform @ weight[j, : len(each.eigenvalues)].astype(float))
            columns.append(interaction(np.array(phi), order["order"]))
        return np.column_stack(columns)


@pytest.mark.parametrize("dtype", DTYPES)
def test_interactions_are_the_sum_over_all_subsets_of_features(dtype: str) -> None:
    mixed = Mixed(dtype)
    found, wanted = np.asarray(mixed.layer(mixed.inputs)), mixed.expected()
    assert found.shape == (ROWS, 3)
    tolerance = 1e-4 if dtype == "float32" else 1e-10
    for place in range(3):
        scale = np.abs(wanted[:, place]).max()
        assert scale > 0.1
        np.testing.assert_allclose(found[:, place], wanted[:, place], rtol=0, atol=tolerance * scale)


def test_an_interaction_may_use_some_features_of_an_expansion_in_any_order() -> None:
    rng = np.random.default_rng(6)
    places = rng.uniform(0, 4, (ROWS, 4))
    tensor = ops.convert_to_tensor(places)
    inputs = [
        BasisExpansion([0, 1, 2], [7, 7, 7], 3, dtype="float64")(tensor),
        BasisExpansion([1, 3], [6, 6], 2, dtype="float64")(tensor),
    ]
    bases = [
        integer_splines(places[:, 2], 7, 3),
        integer_splines(places[:, 3], 6, 2),
        integer_splines(places[:, 0], 7, 3),
    ]
    layer = FactorizedInteraction(
        [(0, 2), (1, 1), (0, 0)],
        [np.eye(7), np.eye(6), np.eye(7)],
        [np.zeros(7), np.zeros(6), np.zeros(7)],
        [{"order": 2, "started": 2, "smoothing": [0.0, 0.0, 0.0]}],
        dtype="float64",
    )
    layer(inputs)
    (weight,) = (rng.normal(size=w.shape) for w in layer.weights)
    layer.set_weights([weight])
    phi = [basis @ weight[j, : basis.shape[1]] for j, basis in enumerate(bases)]
    wanted = interaction(np.array(phi), 2)
    np.testing.assert_allclose(np.asarray(layer(inputs))[:, 0], wanted, rtol=1e-10, atol=1e-10)


def test_padding_has_no_effect_and_no_gradient() -> None:
    mixed = Mixed("float64")
    padding = ~mixed.used
    assert padding.sum() > 10
    before = np.asarray(mixed.layer(mixed.inputs))
    losses = [float(loss) for loss in mixed.layer.losses]
    with tf.GradientTape() as tape:
        total = ops.sum(ops.square(mixed.layer(mixed.inputs)))
        total = total + ops.cast(sum(mixed.layer.losses), "float64")
    gradients = tape.gradient(total, [weight.value for weight in mixed.layer.factors])
    for gradient in gradients:
        assert (gradient.numpy()[padding] == 0).all()
        assert (gradient.numpy()[~padding] != 0).all()
    for weight in mixed.layer.factors:
        changed = weight.numpy().copy()
        changed[padding] = 1e3
        weight.assign(changed)
    np.testing.assert_array_equal(np.asarray(mixed.layer(mixed.inputs)), before)
    assert [float(loss) for loss in mixed.layer.losses] == losses


def test_padding_starts_at_0_and_factors_do_not() -> None:
    mixed = Mixed("float32")
    fresh = FactorizedInteraction.from_config(mixed.layer.get_config())
    fresh(mixed.inputs)
    for weight in fresh.get_weights():
        assert (weight[~mixed.used] == 0).all()
        assert (weight[mixed.used] != 0).all()


def test_the_seed_decides_the_start_and_orders_start_differently() -> None:
    mixed = Mixed("float32")
    config = mixed.layer.get_config()
    config["orders"] = [{**order, "started": 3, "slots": 3} for order in config["orders"]]
    starts = []
    for seed in (1, 1, 2):
        layer = FactorizedInteraction.from_config({**config, "seed": seed})
        layer(mixed.inputs)
        starts.append(layer.get_weights())
    for first, again, other in zip(*starts, strict=True):
        np.testing.assert_array_equal(first, again)
        assert not np.allclose(first, other)
    drawn = [np.sign(weight[mixed.used]).ravel() for weight in starts[0]]
    agreement = np.corrcoef(drawn) - np.eye(3)
    assert np.abs(agreement).max() < 0.5


def test_the_order_of_the_features_does_not_matter() -> None:
    mixed = Mixed("float64")
    config = mixed.layer.get_config()
    turned = [4, 2, 0, 5, 1, 3]
    for key in ("features", "transforms", "eigenvalues"):
        config[key] = [config[key][j] for j in turned]
    config["orders"] = [
        {**order, "smoothing": [order["smoothing"][j] for j in turned]} for order in config["orders"]
    ]
    other = FactorizedInteraction.from_config(config)
    other(mixed.inputs)
    other.set_weights([weight[turned] for weight in mixed.layer.get_weights()])
    np.testing.assert_allclose(
        np.asarray(other(mixed.inputs)), np.asarray(mixed.layer(mixed.inputs)), rtol=1e-9, atol=1e-9
    )
