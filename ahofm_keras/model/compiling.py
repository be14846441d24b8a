"""What a model is compiled with unless the user says otherwise, and how that is read from a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras

from ahofm_keras.families import Deviance, HalfDeviance
from ahofm_keras.solvers.adam import make_optimizer


def compile_arguments(
    model: Any, optimizer: Any, loss: Any, weighted_metrics: Any
) -> tuple[dict[str, Any], str]:
    """Arguments of `keras.Model.compile`, and the metric that early stopping watches."""
    weighted_metrics = weighted_metrics or [Deviance(model.family)]
    watched = any(isinstance(metric, Deviance) for metric in weighted_metrics)
    arguments = {
        "optimizer": optimizer or make_optimizer(),
        "loss": loss or HalfDeviance(model.family, model.predictor.dispersion_unit),
        "weighted_metrics": weighted_metrics,
    }
    return arguments, "deviance" if watched else "loss"


def read_compile_config(config: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """Arguments of `AdditiveModel.compile` from a file, and whether some of them were the user's."""
    rest = {key: value for key, value in config.items() if key != "own_compile"}
    arguments = keras.saving.deserialize_keras_object(rest)
    if isinstance(arguments.get("loss"), HalfDeviance):
        arguments["loss"] = None  # the model's own, which has the scale that the model has
    return arguments, bool(config.get("own_compile"))
