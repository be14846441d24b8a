"""Between the scale that a model learns on and the response's own units."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ahofm_keras.layers import Predictor, RangeLimit
from ahofm_keras.terms import Design


class Units:
    """What the layer of a model's first predictor knows of its units."""

    _graph: Any
    response: Any
    family: Any
    # The parameter whose predictor this is; None of a model that has one predictor or is whole.
    of_parameter: str | None = None

    def whole(self) -> Any:
        """The model, of which this may be one predictor.

        No property: Keras saves what the attributes of a model hold, and would not come to an end.
        """
        return self

    @property
    def quantity(self) -> str:
        """What the predictor is transformed to, in words: the response."""
        family = self.family
        return str(family.quantity(next(iter(family.parameters), ""), self.response))

    @property
    def dispersion_unit(self) -> float:
        """What the dispersion inside the model is a multiple of."""
        return float(self.predictor.dispersion_unit)

    @property
    def predictors(self) -> dict[str, Predictor]:
        """The layers of intercept, shift and scale, by parameter of the family."""
        return self._graph.predictors

    @property
    def predictor(self) -> Predictor:
        """The layer of intercept, shift and scale."""
        return self._graph.predictor

    @property
    def limits(self) -> dict[str, RangeLimit]:
        """The layers that hold predictors within their training range, by parameter of the family."""
        return {name: layer for name, (layer, _) in self._graph.limits.items()}

    @property
    def held_range(self) -> tuple[float, float]:
        """Between which ends the sum of the terms that are held stays, in units of the link."""
        low, high = next((layer.ends for layer in self.limits.values()), (-np.inf, np.inf))
        return self.scale * low, self.scale * high

    @property
    def shift(self) -> float:
        """Where the intercept starts, in units of the link."""
        return float(self.predictor.shift)

    @property
    def scale(self) -> float:
        """Scale of the response inside the model; 0 until a response was seen."""
        return float(self.predictor.scale)

    @property
    def intercept(self) -> float:
        """The intercept in units of the link: the predictor where every term is 0; 0 without one."""
        bias = self.predictor.bias
        return 0.0 if bias is None else self.shift + self.scale * float(bias)


def read_units(state: Mapping[str, Any], design: Design) -> dict[str, tuple[float, float]]:
    """Shift and scale of each predictor as a model's state has them; 0 where they are not known yet."""
    known = state.get("units") or {}
    found: dict[str, tuple[float, float]] = {}
    for name in design.predictors:
        others = (None, None) if state["scale"] is None else (0.0, 1.0)
        shift, scale = known.get(name, others if found else (state["shift"], state["scale"]))
        found[name] = 0.0 if shift is None else shift, 0.0 if scale is None else scale
    return found
