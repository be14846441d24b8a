"""One shared check for every layer; each layer's arithmetic against SciPy, patsy and plain loops."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
import pandas as pd
import patsy
import pytest
import tensorflow as tf
from keras import ops

from ahofm_keras import layers
from ahofm_keras.bases import (
    Basis,
    center_basis,
    evaluate_basis,
    make_levels,
    make_linear,
    make_spline,
)
from ahofm_keras.data import kind_of, read_columns
from ahofm_keras.formula import parse_formula
from ahofm_keras.layers import (
    BasisExpansion,
    FactorizedInteraction,
    Linear,
    Offset,
    ParametricColumns,
    Positions,
    Posterior,
    Predictor,
    Response,
    Smooth,
    TensorProduct,
)
from ahofm_keras.layers.coordinates import learned_coordinates
from ahofm_keras.penalties import DemmlerReinsch, difference_penalty, orthogonalise
from ahofm_keras.terms import LinearTerm, fit_terms
from ahofm_keras.transforms import Expression, column
from tests.reference import integer_splines, interaction

ROWS = 60
DTYPES = ["float32", "float64"]


def coordinates(basis: Basis, x: np.ndarray) -> DemmlerReinsch:
    rows = evaluate_basis(basis, x)
    spline = basis.kind in ("ps", "cp")
    penalty = difference_penalty(basis.size, cyclic=basis.kind == "cp") if spline else np.eye(basis.size)
    constraint = None if basis.kind == "linear" else center_basis(rows.mean(axis=0))
    return orthogonalise(rows.T @ rows, penalty, len(x), constraint)


# The shared check


@dataclass
class Case:
    """How to make a layer (its dtype given), and what it is called with."""

    make: Callable[..., keras.layers.Layer]
    inputs: Callable[[str], tuple[Any, ...]]
    output: str | None = None  # its dtype where that is not the layer's own


def _columns(_: str) -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    return (
        {
            "x": ops.convert_to_tensor(rng.uniform(size=ROWS)),
            "z": ops.convert_to_tensor(rng.normal(size=ROWS)),
            "g": tf.constant(rng.choice(["a", "b", "c", "new"], ROWS)),
            "flag": tf.constant(rng.uniform(size=ROWS) < 0.5),
        },
    )


def _tensor(*shape: int, seed: int = 1) -> Callable[[str], tuple[Any, ...]]:
    return lambda dtype: (
        ops.convert_to_tensor(np.random.default_rng(seed).uniform(0, 4, shape), dtype=dtype),
    )


def _bases(dtype: str) -> tuple[Any, ...]:
    return ([_tensor(2, 7, ROWS)(dtype)[0], _tensor(1, 3, ROWS, seed=2)(dtype)[0]],)


def _contributions(dtype: str) -> tuple[Any, ...]:
    offset = ops.convert_to_tensor(np.linspace(0, 1, ROWS))
    return [_tensor(ROWS, 1)(dtype)[0], _tensor(ROWS, 2)(dtype)[0]], offset


X = np.random.default_rng(3).uniform(size=200)
CUBIC, PARABOLA = coordinates(make_spline(X, 7), X), coordinates(make_spline(X, 3, degree=2), X)

CASES = {
    "Positions": Case(
        lambda **options: Positions(
            [
                (column("x"), make_spline(X, 7)),
                (column("g"), make_levels(("a", "b", "c"))),
                (column("flag"), make_levels((False, True))),
                (column("z"), make_linear(X)),
                (Expression("exp", (column("z"),)), make_spline(X, 7, cyclic=True)),
            ],
            **options,
        ),
        _columns,
    ),
    "ParametricColumns": Case(
        lambda **options: ParametricColumns(
            [
                {
                    "factors": [(column("x"), ()), (column("g"), ("a", "b", "c"))],
                    "columns": [(0, 1), (0, 2), (0, -1)],
                    "centre": [0.1, 0.2, 0.5],
                    "scale": [1.5, 2.5, 3.0],
                }
            ],
            **options,
        ),
        _columns,
    ),
    "Offset": Case(
        lambda **options: Offset([column("x"), Expression("exp", (column("z"),))], **options),
        _columns,
        "float64",
    ),
    "BasisExpansion": Case(
        lambda **options: BasisExpansion([2, 0], [7, 5], 3, straight_beyond=[4.0, 2.0], **options),
        _tensor(ROWS, 3),
    ),
    "Smooth": Case(
        lambda **options: Smooth(1, CUBIC.transform, CUBIC.eigenvalues, 2.0, **options),
        _tensor(2, 7, ROWS),
    ),
    "FactorizedInteraction": Case(
        lambda **options: FactorizedInteraction(
            [(0, 0), (1, 0), (0, 1)],
            [CUBIC.transform, PARABOLA.transform, CUBIC.transform],
            [CUBIC.eigenvalues, PARABOLA.eigenvalues, CUBIC.eigenvalues],
            [
                {"order": 2, "rank": 3, "smoothing": [1.0, 2.0, 3.0]},
                {"order": 3, "rank": 2, "smoothing": [0.0, 2.0, 9.0]},
            ],
            seed=5,
            **options,
        ),
        _bases,
    ),
    "TensorProduct": Case(
        lambda **options: TensorProduct(
            [(0, 1), (1, 0), (0, 0)],
            [CUBIC.transform, PARABOLA.transform, CUBIC.transform],
            [CUBIC.eigenvalues, PARABOLA.eigenvalues, CUBIC.eigenvalues],
            [1.0, 0.0, 3.0],
            False,
            **options,
        ),
        _bases,
    ),
    "Linear": Case(lambda **options: Linear(1, 3, **options), _tensor(ROWS, 4)),
    "Predictor": Case(
        lambda **options: Predictor(1990.5, 3.0, True, **options), _contributions, "float64"
    ),
    "Posterior": Case(
        lambda **options: Posterior(
            True,
            0,
            [
                {"pure": True, "features": [[0, 1]], "transforms": [CUBIC.transform]},
                {
                    "pure": False,
                    "features": [[1, 0], [0, 0]],
                    "transforms": [PARABOLA.transform, CUBIC.transform],
                },
            ],
            [
                {
                    "order": 2,
                    "rank": 3,
                    "features": [[0, 0], [1, 0], [0, 1]],
                    "transforms": [CUBIC.transform, PARABOLA.transform, CUBIC.transform],
                }
            ],
            **options,
        ),
        _bases,
        "float64",
    ),
    "Response": Case(
        lambda **options: Response("poisson", **options), lambda _: _tensor(ROWS)("float64"), "float64"
    ),
}
# Layers with weights that a fit sets.
LEARNED = ("Smooth", "TensorProduct", "FactorizedInteraction", "Linear", "Predictor")
every_layer = pytest.mark.parametrize("name", CASES)


def shapes(inputs: Any) -> Any:
    return tf.nest.map_structure(lambda tensor: tuple(tensor.shape), inputs)


def randomise(layer: keras.layers.Layer) -> None:
    rng = np.random.default_rng(8)
    layer.set_weights([rng.normal(size=weight.shape) for weight in layer.weights])


def test_every_layer_is_checked() -> None:
    exported = {
        name
        for name, value in vars(layers).items()
        if inspect.isclass(value) and issubclass(value, keras.layers.Layer)
    }
    assert set(CASES) == exported == set(layers.__all__)


@every_layer
@pytest.mark.parametrize("dtype", DTYPES)
def test_config_brings_back_a_layer_of_equal_outputs(name: str, dtype: str) -> None:
    case = CASES[name]
    layer = case.make(dtype=dtype, name="mine")
    inputs = case.inputs(dtype)
    layer(*inputs)
    start = layer.get_weights()
    randomise(layer)
    again = type(layer).from_config(json.loads(json.dumps(layer.get_config())))
    assert again.name == "mine"
    again(*inputs)
    for found, wanted in zip(again.get_weights(), start, strict=True):
        np.testing.assert_array_equal(found, wanted)
    again.set_weights(layer.get_weights())
    np.testing.assert_array_equal(np.asarray(again(*inputs)), np.asarray(layer(*inputs)))
    assert again.get_config() == layer.get_config()
    assert [float(loss) for loss in again.losses] == [float(loss) for loss in layer.losses]


@pytest.mark.parametrize("name", CASES)
def test_keras_brings_back_a_layer_that_was_built(name: str) -> None:
    case = CASES[name]
    layer = case.make(name="mine")
    inputs = case.inputs("float32")
    layer(*inputs)
    config = json.loads(json.dumps(keras.saving.serialize_keras_object(layer)))
    assert config["registered_name"] == f"ahofm_keras>{name}"
    again = keras.saving.deserialize_keras_object(config)
    assert type(again) is type(layer)
    assert [w.shape for w in again.weights] == [w.shape for w in layer.weights]
    again.set_weights(layer.get_weights())
    np.testing.assert_array_equal(np.asarray(again(*inputs)), np.asarray(layer(*inputs)))


@every_layer
@pytest.mark.parametrize("dtype", DTYPES)
def test_outputs_and_weights_have_the_shape_and_precision_announced(name: str, dtype: str) -> None:
    case = CASES[name]
    layer = case.make(dtype=dtype)
    inputs = case.inputs(dtype)
    output = layer(*inputs)
    assert np.isfinite(np.asarray(output)).all()
    assert keras.backend.standardize_dtype(output.dtype) == (case.output or dtype)
    kept = "float64" if name == "Posterior" else dtype
    assert {keras.backend.standardize_dtype(w.dtype) for w in layer.weights} <= {kept}
    announced = layer.compute_output_spec(*inputs)
    assert tuple(announced.shape) == tuple(output.shape)
    assert keras.backend.standardize_dtype(announced.dtype) == (case.output or dtype)
    if name != "Predictor":  # announces its spec only
        assert tuple(layer.compute_output_shape(*shapes(inputs))) == tuple(output.shape)


@every_layer
def test_a_graph_of_any_number_of_rows_gives_the_same_outputs(name: str) -> None:
    case = CASES[name]
    inputs = case.inputs("float32")
    layer = case.make(dtype="float32")
    wanted = layer(*inputs)
    rows_last = name in ("Smooth", "TensorProduct", "FactorizedInteraction", "Posterior")

    def placeholder(tensor: Any) -> Any:
        shape = list(tensor.shape)
        shape[-1 if rows_last else 0] = None
        return keras.Input(batch_shape=shape, dtype=keras.backend.standardize_dtype(tensor.dtype))

    symbols = tf.nest.map_structure(placeholder, inputs)
    output = layer(*symbols)
    expected = [None if size == ROWS else size for size in wanted.shape]
    assert list(output.shape) == expected
    function = keras.Function(tf.nest.flatten(symbols), output)
    found = function(tf.nest.flatten(inputs))
    np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=1e-6, atol=1e-6)


@every_layer
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_training_step_moves_every_weight(name: str, dtype: str) -> None:
    case = CASES[name]
    layer = case.make(dtype=dtype)
    inputs = case.inputs(dtype)
    layer(*inputs)
    before = [np.asarray(weight) for weight in layer.trainable_weights]
    assert bool(before) == (name in LEARNED)
    if not before:
        return
    optimizer = keras.optimizers.SGD(1e-3)
    with tf.GradientTape() as tape:
        error = ops.mean(ops.square(ops.cast(layer(*inputs), "float64") - 1.0))
        loss = error + sum(ops.cast(part, "float64") for part in layer.losses)
    optimizer.apply(
        tape.gradient(loss, [w.value for w in layer.trainable_weights]), layer.trainable_weights
    )
    for old, new in zip(before, layer.get_weights(), strict=True):
        assert np.isfinite(new).all()
        assert not np.array_equal(old, new)


# Basis expansion


def test_bases_of_one_kind_are_expanded_together_and_padded() -> None:
    rng = np.random.default_rng(0)
    places = np.column_stack([rng.uniform(0, 6, ROWS), rng.uniform(0, 2, ROWS), rng.uniform(0, 9, ROWS)])
    layer = BasisExpansion([2, 1], [12, 5], 3, dtype="float64")
    found = np.asarray(layer(ops.convert_to_tensor(places)))
    assert found.shape == (2, 12, ROWS)
    np.testing.assert_allclose(found[0].T, integer_splines(places[:, 2], 12, 3), rtol=0, atol=1e-12)
    np.testing.assert_allclose(found[1, :5].T, integer_splines(places[:, 1], 5, 3), rtol=0, atol=1e-12)


def test_circles_of_different_length_are_expanded_together() -> None:
    rng = np.random.default_rng(1)
    sizes = [9, 5]
    values = [rng.uniform(0, 24, ROWS) for _ in sizes]
    bases = [
        make_spline(x, size, cyclic=True, knots=(0, 24)) for x, size in zip(values, sizes, strict=True)
    ]
    pairs = [(column(name), basis) for name, basis in zip("ab", bases, strict=True)]
    places = Positions(pairs, dtype="float64")({"a": ops.array(values[0]), "b": ops.array(values[1])})
    found = np.asarray(BasisExpansion([0, 1], sizes, 3, cyclic=True, dtype="float64")(places))
    for place, (x, size) in enumerate(zip(values, sizes, strict=True)):
        open_ended = integer_splines(x / 24 * size, size + 3, 3)
        joined = open_ended[:, :size].copy()
        joined[:, :3] += open_ended[:, size:]
        np.testing.assert_allclose(found[place, :size].T, joined, rtol=0, atol=1e-6)


def test_levels_of_different_number_are_expanded_together() -> None:
    places = np.array([[0.0, 2.0], [1.0, -1.0], [-1.0, 0.0]])
    found = np.asarray(BasisExpansion([0, 1], [2, 3], 0)(ops.convert_to_tensor(places, "float32")))
    np.testing.assert_array_equal(found[0].T, [[1, 0, 0], [0, 1, 0], [0, 0, 0]])
    np.testing.assert_array_equal(found[1].T, [[0, 0, 1], [0, 0, 0], [1, 0, 0]])


def test_places_without_a_degree_stand_as_they_are() -> None:
    places = np.random.default_rng(2).normal(size=(ROWS, 3))
    found = BasisExpansion([2, 0], [1, 1], None, dtype="float64")(ops.convert_to_tensor(places))
    np.testing.assert_array_equal(np.asarray(found), places.T[[2, 0], None, :])


# Positions


def test_positions_keep_the_digits_of_time_stamps() -> None:
    x = 1.7e9 + np.sort(np.random.default_rng(0).uniform(0, 100, 500))
    basis = make_spline(x, 20, knots="even")
    found = Positions([(column("t"), basis)], dtype="float32")({"t": ops.convert_to_tensor(x)})
    wanted = (x - x[0]) / (x[-1] - x[0]) * 17
    np.testing.assert_allclose(np.asarray(found)[:, 0], wanted, rtol=0, atol=2e-6)


@pytest.mark.parametrize("levels", [("a", "b"), ("", "[UNK]", "a"), ("Zürich", "東京")])
def test_texts_find_the_index_of_their_level(levels: tuple[str, ...]) -> None:
    layer = Positions([(column("g"), make_levels(levels))])
    values = [*reversed(levels), "not seen", levels[0]]
    found = np.asarray(layer({"g": tf.constant(values)}))[:, 0]
    wanted = [levels.index(value) if value in levels else -1 for value in values]
    np.testing.assert_array_equal(found, wanted)


# Smooth


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("feature", [0, 1])
def test_a_smooth_is_basis_times_transform_times_weights(feature: int, dtype: str) -> None:
    rng = np.random.default_rng(feature)
    size = [7, 4][feature]
    x = rng.uniform(size=(ROWS, 2))
    bases = [make_spline(x[:, 0], 7, knots="even"), make_spline(x[:, 1], 4, knots="even")]
    given = coordinates(bases[feature], x[:, feature])
    smooth = Smooth(feature, given.transform, given.eigenvalues, 0.3, dtype=dtype)
    spans = np.ptp(x, axis=0)
    places = (x - x.min(axis=0)) / spans * [4, 1]
    expanded = BasisExpansion([0, 1], [7, 4], 3, dtype=dtype)(ops.convert_to_tensor(places, dtype=dtype))
    assert np.abs(np.asarray(smooth(expanded))).max() == 0  # starts flat
    kernel = rng.normal(size=size - 1)
    smooth.kernel.assign(kernel)
    transform, _ = learned_coordinates(given.transform, given.eigenvalues, 0.3)
    wanted = integer_splines(places[:, feature], size, 3) @ transform @ kernel
    found = np.asarray(smooth(expanded))
    assert found.shape == (ROWS, 1)
    np.testing.assert_allclose(found[:, 0], wanted, rtol=0, atol=1e-4 if dtype == "float32" else 1e-10)
    np.testing.assert_allclose(
        np.asarray(smooth.coefficients()), transform @ kernel, rtol=1e-5, atol=1e-5
    )


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
            {"order": 2, "rank": 3, "smoothing": [0.1, 1.0, 10.0, 0.0, 2.0, 5.0]},
            {"order": 3, "rank": 2, "smoothing": [3.0, 0.0, 1.0, 7.0, 1.0, 0.2]},
            {"order": 5, "rank": 1, "smoothing": [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]},
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
        [{"order": 2, "rank": 2, "smoothing": [0.0, 0.0, 0.0]}],
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
    config["orders"] = [{**order, "rank": 3} for order in config["orders"]]
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


# Linear, Predictor, Response, Offset


def test_a_linear_effect_takes_its_own_columns() -> None:
    design = np.random.default_rng(0).normal(size=(ROWS, 5))
    layer = Linear(1, 4, dtype="float64")
    layer(ops.convert_to_tensor(design))
    layer.kernel.assign([2.0, -1.0, 0.5])
    wanted = 2 * design[:, 1] - design[:, 2] + design[:, 3] / 2
    np.testing.assert_allclose(np.asarray(layer(ops.convert_to_tensor(design)))[:, 0], wanted)


@pytest.mark.parametrize("with_offset", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_the_predictor_adds_everything_up_in_double_precision(
    intercept: bool, with_offset: bool
) -> None:
    rng = np.random.default_rng(0)
    parts = [rng.normal(size=(ROWS, 1)), rng.normal(size=(ROWS, 3))]
    offset = rng.normal(size=ROWS)
    layer = Predictor(1.7e9, 0.25, intercept, dtype="float32")
    given = [ops.convert_to_tensor(part, dtype="float32") for part in parts]
    added = ops.convert_to_tensor(offset) if with_offset else None
    layer(given, added)
    total = np.hstack(parts).sum(axis=1)
    if intercept:
        layer.bias.assign(0.5)
        total = total + 0.5
    else:
        assert layer.weights == []
    wanted = 1.7e9 + 0.25 * total + (offset if with_offset else 0)
    np.testing.assert_allclose(np.asarray(layer(given, added)), wanted, rtol=0, atol=2e-6)


@pytest.mark.parametrize(
    ("family", "mean"),
    [
        ("gaussian", lambda eta: eta),
        ("bernoulli", lambda eta: 1 / (1 + np.exp(-eta))),
        ("poisson", np.exp),
        ("gamma", np.exp),
    ],
)
def test_the_response_is_the_inverse_link_in_double_precision(
    family: str, mean: Callable[[np.ndarray], np.ndarray]
) -> None:
    eta = np.linspace(-4, 4, 9) + 1e-9
    found = np.asarray(Response(family, dtype="float32")(ops.convert_to_tensor(eta)))
    np.testing.assert_allclose(found, mean(eta), rtol=1e-12)


def test_offsets_are_added_in_double_precision() -> None:
    x = np.array([1.7e9 + 0.125, 2.0, 3.0])
    layer = Offset([column("x"), Expression("log", (column("x"),))], dtype="float32")
    found = np.asarray(layer({"x": ops.convert_to_tensor(x)}))
    np.testing.assert_allclose(found, x + np.log(x), rtol=1e-15)


# Parametric columns against patsy


def frame(count: int = 300, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "y": rng.normal(size=count),
            "x": rng.normal(5, 2, size=count),
            "z": rng.uniform(1, 3, size=count),
            "a": rng.choice(["p", "q", "r"], count),
            "b": rng.choice(["u", "v"], count),
            "g": rng.choice(["k", "l", "m", "n"], count),
            "num": rng.choice([1.0, 2.0, 7.5], count),
            "flag": rng.uniform(size=count) < 0.4,
        }
    )


def poly_of(train: pd.DataFrame) -> Callable[[Any, int], np.ndarray]:
    """Orthonormal polynomials on the training values of `x`, from a QR decomposition."""

    def poly(values: Any, degree: int) -> np.ndarray:
        centre, spread = train["x"].mean(), train["x"].std()
        vandermonde = np.vander((train["x"] - centre) / spread, degree + 1, increasing=True)
        _, triangle = np.linalg.qr(vandermonde)
        triangle *= np.sign(np.diag(triangle))[:, None]
        new = np.vander((np.asarray(values) - centre) / spread, degree + 1, increasing=True)
        return np.linalg.solve(triangle.T, new.T).T[:, 1:]

    return poly


def fitted(formula: str, train: pd.DataFrame) -> tuple[list[LinearTerm], ParametricColumns]:
    parsed = parse_formula(f"y ~ {formula}")
    columns = read_columns(train, parsed.columns())
    design = fit_terms(parsed, columns, {name: kind_of(values) for name, values in columns.items()})
    terms = design.of_kind(LinearTerm)
    config = [
        {
            "factors": [(factor.expression, factor.levels) for factor in term.factors],
            "columns": term.columns,
            "centre": term.centre,
            "scale": term.scale,
        }
        for term in terms
    ]
    return terms, ParametricColumns(config, dtype="float64")


def tensors(data: pd.DataFrame) -> dict[str, Any]:
    return {
        name: tf.constant(values.tolist() if values.dtype == object else values)
        for name, values in read_columns(data, [c for c in data if c != "y"]).items()
    }


FORMULAS = [
    "x",
    "a",
    "0 + a",
    "0 + x",
    "a*b",
    "a:b",
    "b + a:b",
    "0 + a:b",
    "0 + a*b",
    "x:g",
    "x*g",
    "g + x:g",
    "x:z",
    "a*b*g",
    "a:b:x",
    "a*x*z",
    "poly(x, 3)",
    "poly(x, 2)*b",
    "poly(x, 2):a",
    "C(num)",
    "C(num)*a",
    "C(num):x",
    "flag",
    "flag*x",
    "flag:a",
    "0 + flag",
    "log(z) + I(x / z):b",
]


@pytest.mark.parametrize("formula", FORMULAS)
def test_design_columns_are_patsys(formula: str) -> None:
    train, new = frame(), frame(count=30, seed=1)
    terms, layer = fitted(formula, train)
    scope = {"poly": poly_of(train), "log": np.log}
    info = patsy.dmatrix(formula, train, eval_env=patsy.EvalEnvironment([scope])).design_info
    names = [name for term in terms for name in term.coefficients]
    centre = np.concatenate([term.centre for term in terms])
    scale = np.concatenate([term.scale for term in terms])
    for data in (train, new):
        (matrix,) = patsy.build_design_matrices([info], data)
        wanted = {
            # patsy: `a[T.q]`, `poly(x, 2)[0]`, `flag[True]`; here `a[q]`, `poly(x, 2)[1]`.
            _rename(name): np.asarray(matrix)[:, place]
            for place, name in enumerate(info.column_names)
            if name != "Intercept"
        }
        assert sorted(names) == sorted(wanted)
        found = np.asarray(layer(tensors(data)))
        assert found.shape == (len(data), len(names))
        for place, name in enumerate(names):
            raw = found[:, place] * scale[place] + centre[place]
            np.testing.assert_allclose(raw, wanted[name], rtol=0, atol=1e-9, err_msg=name)
    if not formula.startswith("0"):
        trained = np.asarray(layer(tensors(train)))
        np.testing.assert_allclose(trained.mean(axis=0), 0, rtol=0, atol=1e-9)
        np.testing.assert_allclose(trained.std(axis=0), 1, rtol=0, atol=1e-9)


def _rename(name: str) -> str:
    name = name.replace("[T.", "[")
    if "poly" in name:
        for component in (2, 1, 0):
            name = name.replace(f")[{component}]", f")[{component + 1}]")
    return name


@pytest.mark.parametrize(
    ("formula", "unseen"),
    [
        ("a", {"a": "new"}),
        ("0 + a", {"a": "new"}),
        ("a*b", {"a": "new"}),
        ("a:b", {"b": "new"}),
        ("b + a:b", {"a": "new", "b": "new"}),
        ("x:g", {"g": "new"}),
        ("C(num)", {"num": 3.0}),
        ("C(num)*a", {"num": 1.0000001}),
        ("poly(x, 2):a", {"a": ""}),
    ],
)
def test_an_unseen_level_contributes_exactly_0(formula: str, unseen: dict[str, Any]) -> None:
    train = frame()
    terms, layer = fitted(formula, train)
    new = train.head(6).copy()
    for name, value in unseen.items():
        new.loc[new.index[:3], name] = value
    found = layer(tensors(new))
    start = 0
    for term in terms:
        stop = start + len(term.columns)
        linear = Linear(start, stop, dtype="float64")
        linear(found)
        linear.kernel.assign(np.random.default_rng(0).normal(size=stop - start))
        effect = np.asarray(linear(found))[:, 0]
        used = {name for factor in term.factors for name in factor.expression.columns()}
        if used & set(unseen):
            np.testing.assert_array_equal(effect[:3], np.zeros(3))
            assert (effect[3:] != 0).all()
        else:
            assert (effect != 0).all()
        start = stop
