"""The package's classes in Keras' register before they are imported, which takes as long as Keras.

`keras.models.load_model` finds a class by the name that it is registered under, and imports no modules
but Keras' own. So from the import of Keras on each name has a stand-in, which imports the class when a
file asks for it. Importing the class puts it in the stand-in's place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

PACKAGE = "ahofm_keras"
CLASSES = (
    "AdditiveModel", "BasisExpansion", "BlockColumns", "ClassLabel", "Deviance", "FactorStart",
    "FactorizedInteraction", "HalfDeviance", "Linear", "MeanResponse", "NetInput", "NonNegative",
    "Offset", "OrthogonalComplement", "ParametricColumns", "Positions", "Posterior", "Predictor",
    "QuadraticPenalty", "RadialExpansion", "RangeLimit", "Response", "Scaled", "ShapedSmooth",
    "Smooth", "SparseLinear", "TensorProduct",
)  # fmt: skip


@contextmanager
def registering() -> Iterator[None]:
    """Keras is imported inside; afterwards it knows the names of all classes."""
    yield
    register_names()


def register_names() -> None:
    """Put a stand-in for each class that is not imported yet into Keras' register."""
    known = import_module("keras").saving.get_custom_objects()
    for name in CLASSES:
        known.setdefault(f"{PACKAGE}>{name}", _StandIn(f"{PACKAGE}>{name}"))


class _StandIn:
    """What Keras asks of a class when it reads a file: to be made from its config."""

    def __init__(self, registered_name: str) -> None:
        self._registered_name = registered_name

    def from_config(self, config: Mapping[str, Any]) -> Any:
        import_module("ahofm_keras.model")
        # Not `get_registered_object`, which while a file is read has the register as it was before.
        real = import_module("keras").saving.get_custom_objects()[self._registered_name]
        return real.from_config(config)
