"""What networks and structured terms can both say becomes the structured terms' (METHOD: deep terms).

Post-hoc orthogonalization (Ruegamer 2023): U = constant + X b + rest on the training rows, by least
squares. The coefficients b move into the structured terms, whose columns X has, and the network's layer
takes X b out of its output from then on. The prediction of every row stays as it is.

Of a smooth X has the functions that the degrees of freedom asked for leave, the smoothest ones: with
hundreds of basis functions, as there are for many rows, least squares would follow every row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ahofm_keras.solvers.job import FitJob, Rows
from ahofm_keras.terms import Span

_BATCH_ROWS = 8192
# Directions of X that vary less than this share of the one that varies most, in variance, are hardly
# seen by the rows: functions in gaps and tails, and columns that depend on each other. Coefficients
# along them follow from the smoothness of the others: least squares would be far off at new rows.
_WEAK = 1e-3
# Beside the penalties: holds what these leave free, such as lines that two terms both have.
_RIDGE = 1e-6
# Regressions, each of what the one before left: the second takes out what rounding of sums left in.
_PASSES = 2


def orthogonalise(model: Any, job: FitJob) -> None:
    """Give structured terms their share of all networks; learn mean and variance of what is left.

    Args:
        model: of any number of predictors.
        job: of the fit, on rows in memory or a dataset.
    """
    for name, layout in model.design.layout.items():
        for term in (term for term in layout.opaque if term.name in model._graph.complements):
            shared = [s for s in layout.spans if term.takes_out(s, model.design.features)]
            _Projection(model, job, name, term.name, shared).run()


class _Projection:
    """The regression of one network on the structured terms that it shares features with.

    Args:
        model: of the network.
        job: with the training rows.
        parameter: of the predictor.
        name: of the term, whose layer is an `OrthogonalComplement`.
        spans: of the structured terms, in the order of its blocks.
    """

    def __init__(
        self, model: Any, job: FitJob, parameter: str, name: str, spans: Sequence[Span]
    ) -> None:
        self.model, self.job, self.name, self.spans = model, job, name, spans
        self.layer, _ = model._graph.complements[name]
        self.predictor = model.predictors[parameter]

    def run(self) -> None:
        """Project, move, and write what the rest is like."""
        layer = self.layer
        before = float(layer.constant), np.asarray(layer.coefficients).copy()
        for _ in range(_PASSES if layer.takes_out else 0):
            solution = self._regress()
            if layer.centred:
                layer.constant.assign(float(layer.constant) + solution[0])
            layer.coefficients.assign(np.asarray(layer.coefficients) + solution[int(layer.centred) :])
        if layer.centred:
            bias = self.predictor.bias
            bias.assign(np.asarray(bias) + float(layer.constant) - before[0])
        self._move(np.asarray(layer.coefficients) - before[1])
        total = sums = squares = 0.0
        for rest, _, weight in self._batches():
            total, sums = total + weight.sum(), sums + float(weight @ rest)
            squares += float(weight @ rest**2)
        mean = sums / total
        layer.mean.assign(mean)
        layer.variance.assign(max(squares / total - mean**2, 0.0))

    def _move(self, change: np.ndarray) -> None:
        """Add coefficients to those of the structured terms."""
        start = 0
        for span in self.spans:
            kept = span.block.leading
            layer = self.model.get_layer(span.term.name)
            known = span.block.flatten(layer.coordinates()).astype(float)
            known[kept] += change[start : start + len(kept)]
            start += len(kept)
            layer.assign_coordinates(span.block.shaped(known))

    def _regress(self) -> np.ndarray:
        """Of the rest on the columns of X, after a constant where there is one.

        With the eigenvectors of X'X, strong ones V and weak ones W, the coefficients are V a + W c: a of
        least squares, and c such that the penalty of the whole is least. X V and X W are orthogonal, so
        what is left is orthogonal to X V whatever c is.
        """
        gram: Any = 0.0
        sums: Any = 0.0
        for rest, X, weight in self._batches():
            weighted = X * weight
            gram, sums = gram + weighted @ X.T, sums + weighted @ rest
        variances, directions = np.linalg.eigh(gram)
        strong = variances > _WEAK * variances[-1]
        own, weak = directions[:, strong], directions[:, ~strong]
        found: np.ndarray = own @ ((own.T @ sums) / variances[strong])
        if weak.shape[1]:
            penalised = self._penalty[:, None] * weak
            found = found - weak @ np.linalg.solve(weak.T @ penalised, penalised.T @ found)
        return found

    @property
    def _penalty(self) -> np.ndarray:
        """Diagonal of the penalty at the smoothing that was asked for; a ridge where there is none."""
        parts = [np.zeros(int(self.layer.centred))]
        for block in (span.block for span in self.spans):
            asked = np.asarray(block.smoothing, float)[: len(block.penalties)]
            own = asked @ block.penalties if len(asked) else np.zeros(block.size)
            parts.append(own[block.leading])
        return np.concatenate(parts) + _RIDGE

    def _batches(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """The rest, X transposed, and weights of all training rows."""
        for encoded, weight in _training_batches(self.job):
            found = self.model._outputs.run("complement", [encoded], self.name)
            rest = found["rest"]
            X = found["X"].T if self.layer.size else np.zeros((0, len(rest)))
            if self.layer.centred:
                X = np.concatenate([np.ones((1, len(rest))), X])
            yield rest, X, np.ones(len(rest)) if weight is None else weight


def _training_batches(job: FitJob) -> Iterator[tuple[list[Any], np.ndarray | None]]:
    """Encoded training rows and their weights; of a dataset those of one epoch."""
    if isinstance(job.training, Rows):
        rows = job.weighted_training()
        for start in range(0, len(rows), _BATCH_ROWS):
            part = slice(start, start + _BATCH_ROWS)
            yield list(rows.encoded.take(part)), None if rows.weight is None else rows.weight[part]
        return
    for encoded, _, *weight in job.training.take(job.steps_per_epoch or -1):
        yield list(encoded), np.asarray(weight[0], float).reshape(-1) if weight else None
