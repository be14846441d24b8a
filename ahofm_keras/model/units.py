"""Between the scale that a model learns on and the response's own units."""

from __future__ import annotations

from typing import Any

from ahofm_keras.layers import Predictor


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
