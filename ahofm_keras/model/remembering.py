"""What a model knows beside its weights: facts that its files hold, and rows that they do not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ahofm_keras.model.compiled import CompiledModel
from ahofm_keras.model.record import FitRecord, Sample


class RememberingModel(CompiledModel):
    """A Keras model with facts, as JSON, that go into its config; a subclass calls `begin_memory`."""

    _memory: Memory

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

    @property
    def is_fitted(self) -> bool:
        """Whether a fit has set the weights."""
        return self.recall("fit") is not None

    @property
    def record(self) -> FitRecord | None:
        """Figures of the last fit; None before the first."""
        facts = self.recall("fit")
        return None if facts is None else FitRecord.from_json(facts)

    @property
    def sample(self) -> Sample | None:
        """Some of the rows of the last fit; None after loading: a file holds no rows."""
        return self._memory.sample

    def keep_record(self, record: FitRecord, sample: Sample | None) -> None:
        """Keep what a fit leaves behind: figures in the model's files, rows in memory only."""
        self.remember(fit=record.to_json())
        self._memory.sample = sample


class Memory:
    """Facts and rows; an object of its own, in which Keras does not look for layers and variables."""

    def __init__(self, facts: Mapping[str, Any]) -> None:
        self.facts = dict(facts)
        self.sample: Sample | None = None
