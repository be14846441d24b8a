"""`deep()`: how features fill a network's inputs, and what cannot be a network or stand in one."""

from __future__ import annotations

import re
from typing import Any

import keras
import numpy as np
import pytest

import ahofm_keras as ak
from ahofm_keras.errors import DataError, FormulaError
from tests.deep_models import frame_of, image_net, simulate, small_net

DATA = simulate(1, 60)
VECTOR = np.random.default_rng(0).normal(size=(60, 3))


def net_of(*shapes: tuple[int | None, ...]) -> keras.Model:
    """A network whose inputs have these shapes."""
    inputs = [keras.Input(shape) for shape in shapes]
    flat = [
        own[:, None] if own.ndim == 1
        else keras.layers.GlobalAveragePooling2D()(own) if own.ndim == 4
        else own
        for own in inputs
    ]  # fmt: skip
    joined = flat[0] if len(flat) == 1 else keras.layers.Concatenate()(flat)
    return keras.Model(inputs if len(inputs) > 1 else inputs[0], keras.layers.Dense(1)(joined))


def make(term: str, net: Any, data: Any = None) -> Any:
    data = {**DATA, "vector": VECTOR, "flag": DATA["x1"] > 0} if data is None else data
    return ak.AdditiveModel(f"y ~ x1 + {term}", data, nets={"net": net})


FILLED = {
    "one number": ("deep(x2, net='net')", [(1,)], [["x2"]]),
    "no axis": ("deep(x2, net='net')", [()], [["x2"]]),
    "numbers": ("deep(x2, x3, net='net')", [(2,)], [["x2", "x3"]]),
    "an expression": ("deep(exp(x2), x3, net='net')", [(2,)], [["exp(x2)", "x3"]]),
    "category": ("deep(g, x2, net='net')", [(4,)], [["g", "x2"]]),
    "truth": ("deep(flag, x2, net='net')", [(2,)], [["flag", "x2"]]),
    "vector and number": ("deep(vector, x2, net='net')", [(4,)], [["vector", "x2"]]),
    "image": ("deep(image, net='net')", [(5, 5, 1)], [["image"]]),
    "image of any size": ("deep(image, net='net')", [(None, None, 1)], [["image"]]),
    "several inputs": (
        "deep(image, x1, x2, vector, net='net')",
        [(5, 5, 1), (2,), (3,)],
        [["image"], ["x1", "x2"], ["vector"]],
    ),
    "name without quotes": ("deep(x2, net=net)", [(1,)], [["x2"]]),
}


@pytest.mark.parametrize("name", FILLED)
def test_features_fill_the_inputs_in_order(name: str) -> None:
    term, shapes, expected = FILLED[name]
    model = make(term, net_of(*shapes))
    found = model.design.terms[-1].inputs
    assert [[str(part.expression) for part in own] for own in found] == expected
    data = {**DATA, "vector": VECTOR, "flag": DATA["x1"] > 0}
    rows = model._reader.without_response(data)
    given = [own for key, own in rows.arrays.items() if key.startswith(model.design.terms[-1].name)]
    assert [own.shape[1:] for own in given] == [
        tuple(5 if size is None else size for size in shape) for shape in shapes
    ]


def test_what_a_network_is_given() -> None:
    """Numbers are standardised, categories are indicators, arrays are as they are."""
    model = make("deep(image, x2, g, net='net')", net_of((5, 5, 1), (4,)))
    rows = model._reader.without_response({**DATA, "vector": VECTOR})
    image, rest = (own for key, own in rows.arrays.items() if key.startswith("deep"))
    np.testing.assert_array_equal(image, DATA["image"])
    x = DATA["x2"]
    np.testing.assert_allclose(rest[:, 0], (x - x.mean()) / x.std(), atol=1e-6)
    np.testing.assert_array_equal(rest[:, 1:], DATA["g"][:, None] == np.array(list("abc")))
    with pytest.warns(ak.AhofmWarning, match=r"`g` in 1 of 1 rows \(first at row 0: 'new'\)"):
        one = model._reader.without_response(
            {"x1": 0.1, "x2": 0.1, "g": "new", "image": DATA["image"][:1]}
        )
    assert not list(one.arrays.values())[-1][:, 1:].any()


@pytest.mark.filterwarnings("ignore:The model was never fitted")
def test_frames_and_dicts_give_the_same() -> None:
    model = make("deep(image, x2, net='net')", image_net())
    again = ak.AdditiveModel(
        "y ~ x1 + deep(image, x2, net='net')", frame_of(DATA), nets={"net": image_net()}
    )
    np.testing.assert_allclose(again.predict(frame_of(DATA)), model.predict(DATA), rtol=1e-6)


def test_a_model_has_a_copy_of_each_network_with_its_weights() -> None:
    net = small_net(2)
    model = ak.AdditiveModel(
        "y ~ deep(x1, x2, net='net') + deep(x2, x3, net='net')", DATA, nets={"net": net}
    )
    copies = [model.get_layer(layer) for term in model.design.terms for layer in term.networks]
    assert len({id(own) for own in (*copies, net)}) == 3
    for copy in copies:
        for own, given in zip(copy.get_weights(), net.get_weights(), strict=True):
            np.testing.assert_array_equal(own, given)


def test_names_that_clash() -> None:
    """Columns, terms, networks and layers inside of these may be called alike."""
    names = ("deep_x1_x2", "deep_x1_x2_net", "deep_x1_x2_input_0", "deep_x1_x2_columns")
    rng = np.random.default_rng(0)
    data = {**DATA, **{name: rng.normal(size=60) for name in names}}
    inner = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1, name="linear_x1")], name="s_x3")
    model = ak.AdditiveModel(
        f"y ~ x1 + s(x3) + {' + '.join(names)} + deep(x1, x2, net='x1')",
        data,
        nets={"x1": inner},
    )
    found = [layer.name for layer in model.network.layers]
    assert len(set(found)) == len(found)


class Unknown(keras.layers.Layer):
    """Of a class that Keras cannot find by its name."""

    def call(self, x: Any) -> Any:
        return x


class Subclassed(keras.Model):
    """Not functional."""


NOT_BUILT = keras.Sequential([keras.layers.Dense(1)])
_INPUT = keras.Input((2,))
NOT_NETWORKS: dict[str, tuple[Any, str]] = {
    "a function": (len, "must be a Keras model. Received: builtin_function_or_method"),
    "a layer": (keras.layers.Dense(1), "must be a Keras model. Received: Dense"),
    "not built": (NOT_BUILT, r"is not built: begin it with the shape of its input, e.g. `keras.Sequential"),
    "subclassed": (Subclassed(), "must be functional or sequential"),
    "two outputs": (
        keras.Model(_INPUT, [keras.layers.Dense(1)(_INPUT), keras.layers.Dense(1)(_INPUT)]),
        r"an output of the shape \(None, 1\).*Received: \(None, 1\), \(None, 1\)",
    ),
    "a wide output": (small_net().layers[0] and keras.Model(_INPUT, keras.layers.Dense(3)(_INPUT)), r"Received: \(None, 3\)"),
    "an unknown layer": (
        keras.Model(_INPUT, keras.layers.Dense(1)(Unknown()(_INPUT))),
        r"cannot be made again from its config.*register_keras_serializable",
    ),
    "a lambda": (
        keras.Model(_INPUT, keras.layers.Dense(1)(keras.layers.Lambda(lambda x: x + 1)(_INPUT))),
        "cannot be made again.*a `Lambda` becomes such a layer",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NOT_NETWORKS)
def test_what_is_no_network(name: str) -> None:
    net, message = NOT_NETWORKS[name]
    with pytest.raises(DataError, match=message) as caught:
        make("deep(x1, x2, net='net')", net)
    assert "`net`" in str(caught.value)


SMALL = small_net()
MISFITS: dict[str, tuple[str, Any, type[Exception], str]] = {
    "unknown": ("deep(x1, x2, net='ten')", {"net": SMALL}, FormulaError, "has no network `ten`. Given beside the data: `net`"),
    "nearly known": ("deep(x1, x2, net='nett')", {"net": SMALL}, FormulaError, "Did you mean `net`"),
    "none given": ("deep(x1, x2, net='net')", None, FormulaError, r"Given beside the data: none; write .*nets="),
    "not used": ("s(x2)", {"net": SMALL}, DataError, "No term uses the network `net`"),
    "one not used": ("deep(x1, x2, net='net')", {"net": SMALL, "b": SMALL}, DataError, "No term uses the network `b`"),
    "not a dict": ("deep(x1, x2, net='net')", SMALL, DataError, "`nets` must be a dict"),
    "name of another type": ("deep(x1, x2, net='net')", {1: SMALL}, DataError, "names of `nets` must be texts"),
    "too few columns": ("deep(x2, net='net')", {"net": SMALL}, FormulaError, r"rows of the shape \(2,\).*its input cannot be filled.*\n    Received: `x2` 1"),
    "too many columns": ("deep(x1, x2, x3, net='net')", {"net": SMALL}, FormulaError, "features are left over"),
    "levels": ("deep(g, net='net')", {"net": SMALL}, FormulaError, "Received: `g` 3"),
    "another image": ("deep(image, x1, net='net')", {"net": image_net((4, 4, 1))}, FormulaError, r"input 1 cannot be filled.*\n    Received: `image` arrays of the shape \(5, 5, 1\), `x1` 1"),
    "image and columns in a vector": ("deep(image, x1, net='net')", {"net": SMALL}, FormulaError, "its input cannot be filled"),
    "a constant": ("deep(one, x1, net='net')", {"net": SMALL}, DataError, "`one` is constant"),
    "a function of arrays": ("deep(log(image), x1, net='net')", {"net": SMALL}, DataError, "`image` must have one dimension"),
    "arrays elsewhere too": ("deep(image, x1, net='net') + s(image)", {"net": image_net()}, DataError, "takes a vector per row, but the arrays of `image`"),
    "no name": ("deep(x1, x2)", {"net": SMALL}, FormulaError, r"`deep\(\)` needs a network: `deep\(x1, x2, net=\"net\"\)`"),
    "a number as name": ("deep(x1, x2, net=3)", {"net": SMALL}, FormulaError, "`net` of `deep\\(\\)` must be the name of a network"),
    "another option": ("deep(x1, x2, net='net', k=3)", {"net": SMALL}, FormulaError, "Unknown argument `k` of `deep\\(\\)`. Known: `net`, `orthogonalize`"),
    "another way": ("deep(x1, x2, net='net', orthogonalize='some')", {"net": SMALL}, FormulaError, "must be one of True, False, 'all'"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISFITS)
def test_what_does_not_fit_is_said(name: str) -> None:
    term, nets, kind, message = MISFITS[name]
    data = {**DATA, "one": np.ones(60)}
    with pytest.raises(kind, match=re.compile(message, re.DOTALL)):
        ak.AdditiveModel(f"y ~ x3 + {term}", data, nets=nets)


NEW_ROWS: dict[str, tuple[dict[str, Any], str]] = {
    "missing": ({"image": None}, "Column `image` is missing"),
    "another shape": ({"image": DATA["image"][:, :4]}, r"`image` must have the shape \(5, 5, 1\), as in training. Received: \(4, 5, 1\)"),
    "another number of axes": ({"image": DATA["image"][..., 0]}, r"Received: \(5, 5\)"),
    "other rows": ({"image": DATA["image"][:9]}, "`x1` has 60 rows, `image` has 9"),
    "numbers": ({"image": DATA["x1"]}, "Column `image` must hold an array per row"),
    "arrays for numbers": ({"x2": DATA["image"]}, "Column `x2` must have one dimension, has 4"),
}  # fmt: skip


@pytest.fixture(scope="module")
def model() -> Any:
    return make("deep(image, x2, net='net')", image_net())


@pytest.mark.parametrize("name", NEW_ROWS)
def test_new_rows_that_do_not_fit(model: Any, name: str) -> None:
    change, message = NEW_ROWS[name]
    data = {key: own for key, own in {**DATA, **change}.items() if own is not None}
    with pytest.raises(DataError, match=message):
        model.predict(data)
