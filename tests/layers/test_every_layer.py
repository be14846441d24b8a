"""One shared check for every layer: config, shapes, precision, graphs, training."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from ahofm_keras import layers
from ahofm_keras.bases import make_distances, make_levels, make_linear, make_spline
from ahofm_keras.layers import (
    BasisExpansion,
    BlockColumns,
    ClassLabel,
    FactorizedInteraction,
    Linear,
    MeanResponse,
    NetInput,
    Offset,
    OrthogonalComplement,
    ParametricColumns,
    Positions,
    Posterior,
    Predictor,
    RadialExpansion,
    RangeLimit,
    Response,
    Scaled,
    ShapedSmooth,
    Smooth,
    SparseLinear,
    TensorProduct,
)
from ahofm_keras.layers.inputs import RawColumns
from ahofm_keras.radial import make_duchon
from ahofm_keras.transforms import Expression, column, point
from tests.layers.common import DTYPES, ROWS, coordinates

# The shared check


@dataclass
class Case:
    """How to make a layer (its dtype given), and what it is called with."""

    make: Callable[..., keras.layers.Layer]
    inputs: Callable[[str], tuple[Any, ...]]
    output: str | None = None  # its dtype where that is not the layer's own
    others: tuple[str, ...] = ()  # dtypes of outputs before that one


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
    return ([_functions(2, 4, 7, dtype), _functions(1, 3, 3, dtype)],)


def _functions(features: int, width: int, size: int, dtype: str) -> tuple[Any, ...]:
    (values,) = _tensor(features, width, ROWS, seed=size)(dtype)
    first = np.random.default_rng(size).integers(0, size - width + 1, (features, 1, ROWS))
    return ops.convert_to_tensor(first + np.arange(width)[:, None], "int32"), values


def _contributions(dtype: str) -> tuple[Any, ...]:
    offset = ops.convert_to_tensor(np.linspace(0, 1, ROWS))
    return [_tensor(ROWS, 1)(dtype)[0], _tensor(ROWS, 2)(dtype)[0]], offset


X = np.random.default_rng(3).uniform(size=200)
CUBIC, PARABOLA = coordinates(make_spline(X, 7), X), coordinates(make_spline(X, 3, degree=2), X)
RADIAL = make_duchon(np.random.default_rng(4).uniform(size=(50, 2)), 9, 2)

CASES = {
    "Positions": Case(
        lambda **options: Positions(
            [
                (column("x"), make_spline(X, 7)),
                (column("g"), make_levels(("a", "b", "c"))),
                (column("flag"), make_levels((False, True))),
                (column("z"), make_linear(X)),
                (Expression("exp", (column("z"),)), make_spline(X, 7, cyclic=True)),
                (point(column("z"), column("x")), make_distances("tp", RADIAL, "clip")),
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
    "NetInput": Case(
        lambda **options: NetInput(
            [
                {
                    "expression": column("x").to_json(),
                    "levels": [],
                    "centre": 0.5,
                    "scale": 0.3,
                    "shape": [],
                },
                {"expression": column("g").to_json(), "levels": ["a", "b", "c"], "shape": []},
                {
                    "expression": column("flag").to_json(),
                    "levels": [],
                    "centre": 0.5,
                    "scale": 2.0,
                    "shape": [],
                },
            ],
            (5,),
            **options,
        ),
        _columns,
    ),
    "BlockColumns": Case(
        lambda **options: BlockColumns(
            [
                {
                    "size": (1 + PARABOLA.transform.shape[1]) * (1 + CUBIC.transform.shape[1]) - 1,
                    "lambdas": 2,
                    "pure": False,
                    "features": [[1, 0], [0, 0]],
                    "transforms": [PARABOLA.transform, CUBIC.transform],
                    "kept": [0, 2, 3],
                }
            ],
            **options,
        ),
        _bases,
        "float64",
    ),
    "OrthogonalComplement": Case(
        lambda **options: OrthogonalComplement(4, **options),
        lambda dtype: (_tensor(ROWS, 1)(dtype)[0], _tensor(ROWS, 4, seed=2)("float64")[0]),
        "float64",
    ),
    "BasisExpansion": Case(
        lambda **options: BasisExpansion([2, 0], [7, 5], 3, straight=True, **options),
        _tensor(ROWS, 3),
        others=("int32",),
    ),
    "RadialExpansion": Case(
        lambda **options: RadialExpansion(1, RADIAL, **options), _tensor(ROWS, 3), others=("int32",)
    ),
    "Smooth": Case(
        lambda **options: Smooth(1, CUBIC.transform, CUBIC.eigenvalues, 2.0, **options),
        lambda dtype: (_functions(2, 4, 7, dtype),),
    ),
    "FactorizedInteraction": Case(
        lambda **options: FactorizedInteraction(
            [(0, 0), (1, 0), (0, 1)],
            [CUBIC.transform, PARABOLA.transform, CUBIC.transform],
            [CUBIC.eigenvalues, PARABOLA.eigenvalues, CUBIC.eigenvalues],
            [
                {"order": 2, "started": 3, "smoothing": [1.0, 2.0, 3.0]},
                {"order": 3, "started": 2, "smoothing": [0.0, 2.0, 9.0]},
            ],
            seed=5,
            **options,
        ),
        _bases,
    ),
    "ShapedSmooth": Case(
        lambda **options: ShapedSmooth(
            1, CUBIC.transform, CUBIC.eigenvalues, 2.5, shape="concave", **options
        ),
        lambda dtype: (_functions(2, 4, 7, dtype),),
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
    "Scaled": Case(
        lambda **options: Scaled(
            {
                "inner": {"pure": True, "features": [[0, 1]], "transforms": [CUBIC.transform]},
                "features": [[1, 0]],
                "transforms": [np.eye(3)],
                "constant": True,
            },
            np.repeat(np.append(0.0, CUBIC.eigenvalues), 3),
            **options,
        ),
        _bases,
    ),
    "Linear": Case(lambda **options: Linear(1, 3, **options), _tensor(ROWS, 4)),
    "SparseLinear": Case(
        lambda **options: SparseLinear(1, (0, 1, 1), (0.1, 0.2), **options), _tensor(ROWS, 5)
    ),
    "Predictor": Case(
        lambda **options: Predictor(1990.5, 3.0, True, **options), _contributions, "float64"
    ),
    "RangeLimit": Case(RangeLimit, lambda dtype: _contributions(dtype)[:1]),
    "Posterior": Case(
        lambda **options: Posterior(
            True,
            [
                {
                    "size": CUBIC.transform.shape[1],
                    "lambdas": 1,
                    "pure": True,
                    "features": [[0, 1]],
                    "transforms": [CUBIC.transform],
                },
                {
                    "size": (1 + PARABOLA.transform.shape[1]) * (1 + CUBIC.transform.shape[1]) - 1,
                    "lambdas": 2,
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
                    "widths": [4, 3, 4],
                    "means": [],
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
    "MeanResponse": Case(
        lambda **options: MeanResponse("gaussian_ls", **options),
        lambda _: _tensor(ROWS, 2)("float64"),
        "float64",
    ),
    "ClassLabel": Case(
        lambda **options: ClassLabel([3, 1, 2], **options),
        lambda _: _tensor(ROWS, 3)("float64"),
        "int32",
    ),
}
# Layers with weights that a fit sets.
LEARNED = (
    "Smooth", "ShapedSmooth", "TensorProduct", "Scaled", "FactorizedInteraction", "Linear",
    "SparseLinear", "Predictor",
)  # fmt: skip
every_layer = pytest.mark.parametrize("name", CASES)


def shapes(inputs: Any) -> Any:
    return tf.nest.map_structure(lambda tensor: tuple(tensor.shape), inputs)


def randomise(layer: keras.layers.Layer) -> None:
    rng = np.random.default_rng(8)
    layer.set_weights([rng.normal(size=weight.shape) for weight in layer.weights])


def assert_equal_outputs(found: Any, wanted: Any) -> None:
    for own, other in zip(tf.nest.flatten(found), tf.nest.flatten(wanted), strict=True):
        np.testing.assert_array_equal(np.asarray(own), np.asarray(other))


def test_every_layer_is_checked() -> None:
    exported = {
        name
        for name, value in vars(layers).items()
        if inspect.isclass(value) and issubclass(value, keras.layers.Layer)
    }
    assert set(CASES) == exported == set(layers.__all__)


READERS = [name for name in CASES if issubclass(getattr(layers, name), RawColumns)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", READERS)
def test_columns_in_memory_are_encoded_as_the_graph_does(name: str, dtype: str) -> None:
    layer = CASES[name].make(dtype=dtype)
    (columns,) = CASES[name].inputs(dtype)
    expected = np.asarray(layer(columns))
    plain = {key: np.asarray(values) for key, values in columns.items()}
    plain["g"] = np.array([text.decode() for text in plain["g"]], object)
    found = layer.encode(plain)
    assert found.dtype == expected.dtype
    tolerance = 1e-13 if expected.dtype == np.float64 else 1e-6
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=1e-14)


def test_all_layers_of_raw_columns_are_checked() -> None:
    assert READERS == ["Positions", "ParametricColumns", "Offset", "NetInput"]


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
    assert_equal_outputs(again(*inputs), layer(*inputs))
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
    assert_equal_outputs(again(*inputs), layer(*inputs))


@every_layer
@pytest.mark.parametrize("dtype", DTYPES)
def test_outputs_and_weights_have_the_shape_and_precision_announced(name: str, dtype: str) -> None:
    case = CASES[name]
    layer = case.make(dtype=dtype)
    inputs = case.inputs(dtype)
    outputs = tf.nest.flatten(layer(*inputs))
    dtypes = [keras.backend.standardize_dtype(output.dtype) for output in outputs]
    assert all(np.isfinite(np.asarray(output)).all() for output in outputs)
    assert dtypes == [*case.others, case.output or dtype]
    kept = "float64" if name == "Posterior" else dtype
    assert {keras.backend.standardize_dtype(w.dtype) for w in layer.trainable_weights} <= {kept}
    fixed = {keras.backend.standardize_dtype(w.dtype) for w in layer.non_trainable_weights}
    assert fixed <= {"float64"}
    announced = tf.nest.flatten(layer.compute_output_spec(*inputs))
    assert [tuple(own.shape) for own in announced] == [tuple(output.shape) for output in outputs]
    assert [keras.backend.standardize_dtype(own.dtype) for own in announced] == dtypes
    if name != "Predictor":  # announces its spec only
        found = tf.nest.flatten(layer.compute_output_shape(*shapes(inputs)))
        assert found == tf.nest.flatten([tuple(output.shape) for output in outputs])


@every_layer
def test_a_graph_of_any_number_of_rows_gives_the_same_outputs(name: str) -> None:
    case = CASES[name]
    inputs = case.inputs("float32")
    layer = case.make(dtype="float32")
    wanted = layer(*inputs)
    rows_last = name in (
        "Smooth", "ShapedSmooth", "TensorProduct", "Scaled", "FactorizedInteraction", "Posterior",
        "BlockColumns",
    )  # fmt: skip

    def placeholder(tensor: Any) -> Any:
        shape = list(tensor.shape)
        shape[-1 if rows_last else 0] = None
        return keras.Input(batch_shape=shape, dtype=keras.backend.standardize_dtype(tensor.dtype))

    symbols = tf.nest.map_structure(placeholder, inputs)
    outputs = tf.nest.flatten(layer(*symbols))
    function = keras.Function(tf.nest.flatten(symbols), outputs)
    found = function(tf.nest.flatten(inputs))
    for output, own, expected in zip(outputs, found, tf.nest.flatten(wanted), strict=True):
        assert list(output.shape) == [None if size == ROWS else size for size in expected.shape]
        np.testing.assert_allclose(np.asarray(own), np.asarray(expected), rtol=1e-6, atol=1e-6)


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
    for old, new in zip(before, map(np.asarray, layer.trainable_weights), strict=True):
        assert np.isfinite(new).all()
        assert not np.array_equal(old, new)
