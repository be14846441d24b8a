"""What a model knows beside its weights: facts that its files hold, and rows that they do not."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from ahofm_keras.model.compiled import CompiledModel
from ahofm_keras.model.record import FitRecord, Sample


class RememberingModel(CompiledModel):
    """A Keras model with facts, as JSON, that go into its config; a subclass calls `begin_memory`.

    A record is that of the weights it was kept with: where they change in another way than by a fit,
    there is none. A subclass sets `start_mark` to the mark of the weights that it starts with.
    """

    _memory: Memory
    start_mark: str

    def begin_memory(self, facts: Mapping[str, Any]) -> None:
        """Know these facts, and no rows."""
        self._memory = Memory(facts)

    @property
    def facts(self) -> dict[str, Any]:
        """All that was remembered."""
        return dict(self._memory.facts)

    def remember(self, **facts: Any) -> None:
        """Keep facts, as JSON, with the model and in its files."""
        self._memory.facts |= facts

    def recall(self, fact: str) -> Any:
        """A fact that was kept, or None."""
        return self._memory.facts.get(fact)

    def fitted_layers(self) -> list[keras.Layer]:
        """The layers whose weights a fit sets."""
        raise NotImplementedError

    def weights_mark(self) -> str:
        """A short text that differs where weights do."""
        digest = hashlib.blake2b(digest_size=16)
        for layer in self.fitted_layers():
            for weight in layer.weights:
                digest.update(np.ascontiguousarray(weight).tobytes())
        return digest.hexdigest()

    @property
    def has_fits_weights(self) -> bool:
        """Whether the weights are those at which the last fit of this model ended."""
        mark = self.recall("fit_weights")  # None in a file of an earlier version
        return self.recall("fit") is not None if mark is None else mark == self.weights_mark()

    @property
    def is_fitted(self) -> bool:
        """Whether the weights are others than those that the model starts with."""
        known = self.has_posterior or self.record is not None
        return known or self.weights_mark() != self.start_mark

    @property
    def record(self) -> FitRecord | None:
        """Figures of the fit that set the weights; None where none of this model did, to its end."""
        facts = self.recall("fit")
        return None if facts is None or not self.has_fits_weights else FitRecord.from_json(facts)

    @property
    def sample(self) -> Sample | None:
        """Some of the rows of that fit; None after loading: a file holds no rows."""
        return None if self._memory.sample is None or self.record is None else self._memory.sample

    def keep_record(self, record: FitRecord, sample: Sample | None) -> None:
        """Keep what a fit leaves behind: figures in the model's files, rows in memory only."""
        self.remember(fit=record.to_json(), fit_weights=self.weights_mark())
        self._memory.sample = sample

    def forget_record(self) -> None:
        """What a fit leaves behind that did not come to its end."""
        self.remember(fit=None, fit_weights=self.weights_mark())
        self._memory.sample = None


class Memory:
    """Facts and rows; an object of its own, in which Keras does not look for layers and variables."""

    def __init__(self, facts: Mapping[str, Any]) -> None:
        self.facts = dict(facts)
        self.sample: Sample | None = None
