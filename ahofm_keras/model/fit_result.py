"""What a fit leaves behind: its result, which stays with the model, and rows, which do not."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import keras
import numpy as np

from ahofm_keras.families import Family
from ahofm_keras.solvers.job import Rows

# Training rows that a model remembers while it is in memory, at most.
SAMPLE_ROWS = 10_000
_BATCH_ROWS = 65_536


@dataclass(frozen=True)
class FitResult:
    """How a fit went, saved with the model.

    Args:
        solver: its name.
        epochs: sweeps or epochs that it took.
        seconds: wall time.
        converged: whether it stopped by itself, not at the last epoch, at something that can be used.
        warnings: what it warned of.
        rows: number of training rows n; None after a fit from a dataset, as what follows.
        weighted: whether rows had weights.
        class_weight: weights of the labels 0 and 1, where they were given.
        deviance: sum over training rows.
        null_deviance: of the model without terms.
        dispersion: of the response, in its own units.
        log_likelihood: at the fitted means and that dispersion.
        edf: effective degrees of freedom.
        posterior: source of the weights' posterior, `"variational"` or `"laplace"`; None without one.
        rows_hash: differs where training rows do; None of a dataset.
        weights_hash: differs where the weights do that the fit ended at.
        nuisance: what the family learned from all rows together, as JSON; None of most families.
        finished: whether the fit came to its end; an interrupted one has no figures.
    """

    solver: str
    epochs: int
    seconds: float
    converged: bool
    warnings: tuple[str, ...]
    rows: int | None = None
    weighted: bool = False
    class_weight: tuple[float, float] | None = None
    deviance: float | None = None
    null_deviance: float | None = None
    dispersion: float | None = None
    log_likelihood: float | None = None
    edf: float | None = None
    posterior: str | None = None
    rows_hash: str | None = None
    weights_hash: str | None = None
    nuisance: Mapping[str, Any] | None = None
    finished: bool = True

    def to_json(self) -> dict[str, Any]:
        classes = None if self.class_weight is None else list(self.class_weight)
        facts = {own.name: getattr(self, own.name) for own in fields(self)}
        return {**facts, "warnings": list(self.warnings), "class_weight": classes}

    @classmethod
    def from_json(cls, config: Mapping[str, Any]) -> FitResult:
        classes = config["class_weight"]
        return cls(
            **{
                **config,
                "warnings": tuple(config["warnings"]),
                "class_weight": None if classes is None else (classes[0], classes[1]),
            }
        )


def hash_weights(layers: Iterable[keras.Layer]) -> str:
    """A short text that differs where weights do."""
    digest = hashlib.blake2b(digest_size=16)
    for layer in layers:
        for weight in layer.weights:
            digest.update(np.ascontiguousarray(weight).tobytes())
    return digest.hexdigest()


def hash_rows(rows: Rows, class_weight: Any) -> str:
    """A short text that differs where rows do."""
    digest = hashlib.blake2b(repr(class_weight).encode(), digest_size=16)
    for array in (*rows.encoded, rows.y, *([] if rows.weight is None else [rows.weight])):
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


@dataclass(frozen=True, eq=False)
class Sample:
    """Some of the training rows, for rugs, residuals and variances over rows.

    Args:
        columns: raw columns of the model.
        y: response.
        weight: of each row, or None.
        complete: whether these are all of them.
    """

    columns: dict[str, np.ndarray]
    y: np.ndarray
    weight: np.ndarray | None
    complete: bool = True


def take_sample(
    columns: Mapping[str, np.ndarray], y: np.ndarray, weight: np.ndarray | None, seed: int
) -> Sample:
    """At most `SAMPLE_ROWS` of the training rows."""
    chosen = np.arange(len(y))
    if len(y) > SAMPLE_ROWS:
        chosen = np.sort(np.random.default_rng(seed).choice(len(y), SAMPLE_ROWS, replace=False))
    return Sample(
        {name: values[chosen] for name, values in columns.items()},
        y[chosen],
        None if weight is None else weight[chosen],
        complete=len(chosen) == len(y),
    )


def measure_fit(model: Any, rows: Rows) -> dict[str, Any]:
    """Deviance, dispersion, likelihood and degrees of freedom on the training rows."""
    family: Family = model.family
    weighted = {"rows": len(rows), "weighted": rows.weight is not None}
    if len(model.design.predictors) > 1:
        return weighted | _measure_several(model, rows)
    mean = _means(model, rows)
    weight = np.ones(len(rows)) if rows.weight is None else rows.weight
    deviance = float(family.unit_deviance(rows.y, mean, np) @ weight)
    null_mean = null_means(model, rows)
    edf = degrees_of_freedom(model)
    dispersion = _dispersion(model, deviance, int(np.count_nonzero(weight)), edf)
    return {
        **weighted,
        "deviance": deviance,
        "null_deviance": float(family.unit_deviance(rows.y, null_mean, np) @ weight),
        "dispersion": dispersion,
        "log_likelihood": None
        if family.is_loss
        else family.log_likelihood(rows.y, mean, dispersion, weight),
        "edf": edf,
    }


def _measure_several(model: Any, rows: Rows) -> dict[str, Any]:
    """The same of several predictors, whose deviance is minus twice the log-likelihood."""
    family: Family = model.family
    weight = np.ones(len(rows)) if rows.weight is None else rows.weight
    constant = family.log_constant(rows.y)
    start = {name: np.full(len(rows), value) for name, value in family.start_values(rows.y).items()}
    fitted = family.named(_means(model, rows))
    likelihood, null = (
        float((family.log_density(rows.y, own, np) + constant) @ weight) for own in (fitted, start)
    )
    return {
        "deviance": -2 * likelihood,
        "null_deviance": -2 * null,
        "dispersion": 1.0,
        "log_likelihood": None if family.is_loss else likelihood,
        "edf": degrees_of_freedom(model),
    }


def _means(model: Any, rows: Rows) -> np.ndarray:
    """Mean response of encoded rows."""
    parts = []
    for start in range(0, len(rows), _BATCH_ROWS):
        batch = rows.encoded.take(slice(start, start + _BATCH_ROWS))
        parts.append(keras.ops.convert_to_numpy(model(tuple(batch))))
    return np.concatenate(parts)


def null_means(model: Any, rows: Rows) -> np.ndarray:
    """Means of the model that has an intercept and the offset only."""
    family: Family = model.family
    offset = rows.encoded.offset if rows.encoded.has_offset else 0.0
    return family.null_mean(rows.y, offset, rows.weight, model.design.only.intercept)


def degrees_of_freedom(model: Any) -> float | None:
    """Effective degrees of freedom of all blocks, where the model has a posterior."""
    if not model.has_posterior:
        return None
    layers = model.posteriors.values()
    parts = [np.asarray(own) for layer in layers for own in (layer.linear_edf, *layer.factor_edf)]
    return float(sum(part.sum() for part in parts))


def _dispersion(model: Any, deviance: float, rows: int, edf: float | None) -> float:
    """The posterior's, else the deviance over the rows that are left."""
    if model.has_posterior:
        return float(model.posterior.dispersion) * model.dispersion_unit
    return float(model.family.estimate_dispersion(deviance, max(rows - (edf or 0.0), 1.0)))
