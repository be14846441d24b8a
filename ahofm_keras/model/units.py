"""Between the scale that a model learns on and the response's own units."""

from __future__ import annotations

from typing import Any

import numpy as np

from ahofm_keras.layers import Predictor, RangeLimit


class Units:
    """What the layer of a model's first predictor knows of its units."""

    _graph: Any

    @property
    def dispersion_unit(self) -> float:
        """What the dispersion inside the model is a multiple of."""
        return float(self.predictor.dispersion_unit)

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
