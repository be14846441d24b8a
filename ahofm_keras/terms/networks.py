"""Keras networks that a user gives beside a formula, as a design keeps them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import keras

from ahofm_keras.errors import DataError

Shape = tuple[int | None, ...]


@dataclass(frozen=True)
class Network:
    """What is kept of a network: how it is made again, and what it takes.

    Args:
        config: as Keras serializes it, in JSON; without weights.
        inputs: shape of a row of each input, None where any size will do.
        weights: those that it has when it is given.
    """

    config: str
    inputs: tuple[Shape, ...]
    weights: tuple[Any, ...] = ()


def read_networks(nets: Any) -> dict[str, Network]:
    """The networks that a model is given, by name.

    Raises:
        DataError: naming a network that cannot be a term, and saying why.
    """
    if nets is None:
        return {}
    if not isinstance(nets, Mapping):
        raise DataError(
            '`nets` must be a dict from name to network, `nets={"net": keras_model}`. Received: '
            f"{type(nets).__name__}."
        )
    return {_name(name): _read(name, net) for name, net in nets.items()}


def _name(name: Any) -> str:
    if not isinstance(name, str) or not name:
        raise DataError(f"The names of `nets` must be texts. Received: {name!r}.")
    return name


def _read(name: str, net: Any) -> Network:
    if not isinstance(net, keras.Model):
        raise DataError(f"The network `{name}` must be a Keras model. Received: {type(net).__name__}.")
    if not isinstance(net, keras.Sequential) and not hasattr(net, "inputs"):
        raise DataError(
            f"The network `{name}` must be functional or sequential, so that its config says how it is "
            f"made: `keras.Model(inputs, outputs)`. Received: {type(net).__name__}."
        )
    if not net.built or not net.inputs:
        raise DataError(
            f"The network `{name}` is not built: begin it with the shape of its input, e.g. "
            "`keras.Sequential([keras.Input((2,)), ...])`."
        )
    shapes = [tuple(tensor.shape) for tensor in net.outputs]
    if len(shapes) != 1 or shapes[0] not in ((None, 1), (None,)):
        raise DataError(
            f"The network `{name}` must give one number per row, an output of the shape (None, 1): end "
            f"it with `keras.layers.Dense(1)`. Received: {', '.join(map(str, shapes))}."
        )
    config = keras.saving.serialize_keras_object(net)
    config.pop("compile_config", None)
    network = Network(
        json.dumps(config),
        tuple(tuple(tensor.shape[1:]) for tensor in net.inputs),
        tuple(net.get_weights()),
    )
    try:
        again = make_network(network.config, f"{net.name}_again")
    except (TypeError, ValueError, AttributeError) as error:
        said = str(error).strip().partition("\n")[0]
        raise DataError(
            f"The network `{name}` cannot be made again from its config, as a saved model has to be "
            f"({said[:150]}). Register layers and functions of your own with "
            "`@keras.saving.register_keras_serializable()`; a `Lambda` becomes such a layer."
        ) from error
    if [w.shape for w in again.get_weights()] != [w.shape for w in network.weights]:
        raise DataError(f"The network `{name}` has other weights when it is made again from its config.")
    return network


def make_network(config: str, name: str) -> Any:
    """A network from its config, with weights of its own.

    Args:
        config: see `Network`.
        name: that it gets as a layer.
    """
    found = json.loads(config)
    found["config"]["name"] = name
    return keras.saving.deserialize_keras_object(found)
