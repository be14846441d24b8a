"""What a model knows of its fits beside its weights, and whether that is still true of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import keras

from ahofm_keras.layers import Posterior
from ahofm_keras.model.fit_result import FitResult, Sample, hash_weights


class FitState:
    """The last fit of a model, some of its rows, and how many factors are in use.

    A plain object, in which Keras does not look for layers and variables.

    Args:
        fitted: the layers whose weights a fit sets.
        interactions: those of them that have room for further factors.
        posteriors: of the model's predictors.
        last: the fit that a file tells of, or None.
    """

    def __init__(
        self,
        fitted: list[keras.Layer],
        interactions: list[Any],
        posteriors: list[Posterior],
        last: FitResult | None,
    ) -> None:
        self.fitted = fitted
        self._interactions = interactions
        self._posteriors = posteriors
        self._last = last
        self._sample: Sample | None = None
        self._traced: dict[str, tuple[int, ...]] = {}
        self.mark_start()

    def mark_start(self) -> None:
        """Know the weights as those that the model starts with."""
        self._start = self.weights_hash()

    @property
    def is_fitted(self) -> bool:
        """Whether the weights are others than these; a posterior comes with weights of a fit only."""
        return any(own.is_known for own in self._posteriors) or self.weights_hash() != self._start

    def weights_hash(self) -> str:
        """A short text that differs where weights do."""
        return hash_weights(self.fitted)

    @property
    def last(self) -> FitResult | None:
        """The last fit, finished or not, if the weights are still those of its end."""
        last = self._last
        return last if last is not None and last.weights_hash == self.weights_hash() else None

    @property
    def result(self) -> FitResult | None:
        """The same, of a fit that came to its end."""
        last = self.last
        return last if last is not None and last.finished else None

    @property
    def sample(self) -> Sample | None:
        """Some of the rows of that fit."""
        return None if self._sample is None or self.result is None else self._sample

    def keep(self, result: FitResult, sample: Sample | None) -> None:
        """Keep what a fit leaves behind, as that of the weights there are."""
        self._last, self._sample = replace(result, weights_hash=self.weights_hash()), sample

    def to_json(self) -> dict[str, Any] | None:
        """The last fit, for a file: whether it is that of the weights is asked when it is read."""
        return None if self._last is None else self._last.to_json()

    @property
    def starts(self) -> int:
        """Number of fits whose factors the model has, side by side."""
        return max((int(own.fits) for own in self._posteriors if own.is_known), default=1)

    def in_use(self) -> tuple[Any, ...]:
        """Of each layer that has room for more factors: it leaves others out of what it computes."""
        return tuple(layer.in_use for layer in self._with_room())

    def refresh(self) -> None:
        """Let the layers look at their weights, after others have set them."""
        for layer in self._with_room():
            layer.refresh()

    def _with_room(self) -> list[Any]:
        return self._interactions + self._posteriors

    def is_traced_anew(self, function: str) -> bool:
        """Whether other factors are in use than when a function was traced last; it is traced now."""
        used = self.in_use()
        before, self._traced[function] = self._traced.get(function), used
        return before != used
