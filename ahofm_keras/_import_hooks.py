"""What is done when TensorFlow or Keras is imported after this package, whoever imports it.

They take seconds to import, so the package does not do it before they are needed. But it has something
to do then: keep TensorFlow's log back, tell Keras the names of its classes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


def import_within(name: str, context: Callable[[], AbstractContextManager[None]]) -> None:
    """Run the import of a module within a context, when it comes; none of one that is there already."""
    if name not in sys.modules:
        sys.meta_path.insert(0, _Within(name, context))


class _Within(MetaPathFinder):
    """Finds one module as the other finders do, and runs it within a context, once."""

    def __init__(self, name: str, context: Callable[[], AbstractContextManager[None]]) -> None:
        self._name = name
        self._context = context

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._name:
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        specs = (finder.find_spec(fullname, path, target) for finder in others)
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is not None and spec.loader is not None:
            self._wrap(spec.loader)
        return spec

    def _wrap(self, loader: object) -> None:
        run = loader.exec_module  # type: ignore[attr-defined]

        def run_within(module: ModuleType) -> None:
            if self in sys.meta_path:
                sys.meta_path.remove(self)
            with self._context():
                run(module)

        loader.exec_module = run_within  # type: ignore[attr-defined]
