"""One line that renews itself while a model is fitted."""

from __future__ import annotations

import sys
import time
from typing import Any

import keras


class _Line(keras.callbacks.Callback):
    """In a terminal the line renews itself; elsewhere (a file, a log) only the last one is written."""

    _SECONDS_BETWEEN = 0.2

    def __init__(self) -> None:
        super().__init__()
        self._text = ""
        self._shown = 0.0

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        self._started = time.perf_counter()

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        now = time.perf_counter()
        self._text = f"{self._compose(epoch + 1, logs or {})}  {now - self._started:.1f} s"
        if sys.stdout.isatty() and now - self._shown > self._SECONDS_BETWEEN:
            self._shown = now
            print(f"\r{self._text}", end="", flush=True)

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        lead = "\r" if sys.stdout.isatty() else ""
        print(f"{lead}{self._text}", flush=True)

    def _compose(self, epoch: int, logs: dict[str, Any]) -> str:
        raise NotImplementedError


class ProgressLine(_Line):
    """Shows epoch, training and validation deviance, the best so far, and seconds.

    Args:
        monitor: the entry of the logs that decides which epoch is best.
    """

    def __init__(self, monitor: str) -> None:
        super().__init__()
        self.monitor = monitor
        self.best = float("inf")
        self.best_epoch = 0

    def _compose(self, epoch: int, logs: dict[str, Any]) -> str:
        value = logs.get(self.monitor, float("nan"))
        if value < self.best:
            self.best, self.best_epoch = value, epoch
        shown = ("loss",) if self.monitor == "loss" else ("deviance", "val_deviance")
        parts = [f"epoch {epoch:>4}"]
        for key in shown:
            if key in logs:
                label = "validation" if key.startswith("val_") else key
                parts.append(f"{label} {logs[key]:<9.5g}")
        kept = ", kept" if self.monitor.startswith("val_") else ""
        parts.append(f"best {self.best:.5g} (epoch {self.best_epoch}{kept})")
        return "  ".join(parts)


class SweepLine(_Line):
    """Shows sweep, bound, deviances, effective degrees of freedom and seconds, as far as there are.

    Args:
        name: of what is counted.
    """

    def __init__(self, name: str = "sweep") -> None:
        super().__init__()
        self.name = name

    def _compose(self, epoch: int, logs: dict[str, Any]) -> str:
        labels = {"bound": "bound", "deviance": "deviance", "val_deviance": "validation", "edf": "edf"}
        digits = {"bound": ".1f", "edf": ".1f"}
        parts = [f"{self.name} {epoch:>4}"]
        for key, label in labels.items():
            if key in logs:
                parts.append(f"{label} {logs[key]:<9{digits.get(key, '.5g')}}")
        return "  ".join(parts)
