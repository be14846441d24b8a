"""What everyone asks of a fitted model, as methods that call the functions of the package."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any


class ReadingMethods:
    """Methods that read a model.

    They are thin. The functions stand in modules that import the model, so they are looked up in the
    package when they are called.
    """

    def summary_table(self, parameter: str | None = None) -> Any:
        """`ak.summary(model)`: coefficients, terms and figures; Keras' own `summary()` prints layers."""
        return _public("summary")(self, parameter)

    def coef(self, term: str | None = None, **options: Any) -> Any:
        """`ak.coef(model, ...)`: coefficients in the units of the data."""
        return _public("coef")(self, term, **options)

    def effects(self, order: int | None = None, top: int | None = None, **options: Any) -> Any:
        """`ak.effects(model, ...)`: curves and surfaces of the features, strongest first."""
        return _public("effects")(self, order, top, **options)

    def explain(self, row: Any, top: int = 5, parameter: str | None = None) -> Any:
        """`ak.explain(model, row)`: one prediction as a sum of contributions."""
        return _public("explain")(self, row, top, parameter)

    def plot(self, *features: str, **options: Any) -> Any:
        """`ak.plot(model, ...)`: a page of all effects, or the effect of up to three features."""
        return _public("plot")(self, *features, **options)

    def check(self, data: Any = None, **options: Any) -> Any:
        """`ak.check(model, ...)`: residuals, size of the bases, concurvity."""
        return _public("check")(self, data, **options)

    def report(self, path: Any = "report.html", data: Any = None, **options: Any) -> Any:
        """`ak.report(model, path, ...)`: one HTML page for people who write no Python."""
        return _public("report")(self, path, data, **options)


def _public(name: str) -> Callable[..., Any]:
    """A public function of the package."""
    function: Callable[..., Any] = getattr(import_module("ahofm_keras"), name)
    return function
