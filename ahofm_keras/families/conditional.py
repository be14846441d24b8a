"""One parameter of a family, given what is known of the others: what block solvers fit at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from ahofm_keras.families.base import Array, Family, Namespace, Parameters
from ahofm_keras.families.constant import best_constant, constant_mean

# The three-point Gauss-Hermite rule, exact for polynomials up to degree 5 in a gaussian variable: nodes
# in standard deviations on both sides of the mean, with this weight each.
_NODE = np.sqrt(3.0)
_WEIGHT = 1 / 6
# Of a standard deviation: below this a predictor counts as known.
_LEAST_SPREAD = 1e-6
# How far around its start the intercept of a model without terms is looked for.
_REACH = 1.0


class Conditional(Family):
    """A family of one parameter, whose response has what is known of the other predictors beside it.

    Rows of the response are `(y, mean, sd, mean, sd, ...)`: the response, then mean and standard
    deviation of each other predictor. Likelihood, scores and informations are expectations over these,
    taken as independent and gaussian, one after the other: f(means) + sum_j (E_j f - f(means)).

    Args:
        family: of several parameters.
        parameter: the one that is free.
        start: its value in the model without terms.
        unit: by what its predictor is standardised.
    """

    name = "conditional"
    links = {"mean": ("identity",)}  # noqa: RUF012

    def __init__(self, family: Family, parameter: str, start: float, unit: float) -> None:
        self.family = family
        self.parameter = parameter
        self.start_value = start
        self.unit = unit
        self.name = family.name  # type: ignore[misc]
        self.links = {parameter: family.links[parameter]}  # type: ignore[misc]
        self.parameters = {parameter: family.parameters[parameter]}
        self.support_text = family.support_text  # type: ignore[misc]
        self.least_slope = family.least_slope  # type: ignore[misc]
        self.predicts = f"the {parameter}"  # type: ignore[misc]
        self.result_label = f"{parameter[0].upper()}{parameter[1:]} of"  # type: ignore[misc]
        self.others = [name for name in family.parameters if name != parameter]

    def beside(self, y: np.ndarray, others: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
        """The response with mean and standard deviation of each other predictor beside it."""
        known = [column for name in self.others for column in others[name]]
        return np.column_stack([y, *known])

    def _nodes(self, y: np.ndarray) -> Iterator[tuple[float | np.ndarray, dict[str, np.ndarray]]]:
        """Weights, and the other parameters that they belong to."""
        links = self.family.parameters
        means = {name: y[..., 1 + 2 * place] for place, name in enumerate(self.others)}
        centre = {name: links[name].inverse(eta, np) for name, eta in means.items()}
        spreads = {name: y[..., 2 + 2 * place] for place, name in enumerate(self.others)}
        uncertain = [name for name, spread in spreads.items() if np.any(spread > _LEAST_SPREAD)]
        yield 1 - 2 * _WEIGHT * len(uncertain), centre
        for name in uncertain:
            for side in (-_NODE, _NODE):
                eta = means[name] + side * spreads[name]
                yield _WEIGHT, {**centre, name: links[name].inverse(eta, np)}

    def log_density(self, y: Array, parameters: Parameters, xp: Namespace = np) -> Array:
        return sum(
            weight * self.family.log_density(y[..., 0], {**others, **parameters}, np)
            for weight, others in self._nodes(y)
        )

    def unit_deviance(self, y: Array, mean: Array, xp: Namespace = np) -> Array:
        """Minus twice the log-density: there is no best value of one parameter alone."""
        return -2 * self.log_density(y, {self.parameter: mean}, xp)

    def score(self, y: np.ndarray, parameters: Parameters) -> dict[str, np.ndarray]:
        return {self.parameter: self._expected("score", y, parameters)}

    def information(self, y: np.ndarray, parameters: Parameters) -> dict[str, np.ndarray]:
        return {self.parameter: self._expected("information", y, parameters)}

    def _expected(self, what: str, y: np.ndarray, parameters: Parameters) -> np.ndarray:
        function = getattr(self.family, what)
        total = sum(
            weight * function(y[..., 0], self._complete(others, parameters))[self.parameter]
            for weight, others in self._nodes(y)
        )
        return np.asarray(total)

    def _complete(self, others: Parameters, parameters: Parameters) -> dict[str, np.ndarray]:
        """All parameters, in the family's order."""
        known = {**others, **parameters}
        return {name: known[name] for name in self.family.parameters}

    # What a response alone says of one parameter is little: the start of all rows is the same.

    def average(self, y: np.ndarray) -> float:
        return self.start_value

    def rough_mean(self, y: np.ndarray, average: float) -> np.ndarray:
        return np.full(len(y), self.start_value)

    def residual(self, y: np.ndarray, mean: np.ndarray) -> np.ndarray:
        return np.zeros(len(y))

    def null_mean(
        self,
        y: np.ndarray,
        offset: np.ndarray | float = 0.0,
        weight: np.ndarray | None = None,
        intercept: bool = True,
    ) -> np.ndarray:
        start = float(self.link_function(np.asarray(self.start_value)))
        reach = _REACH * self.unit
        constant = best_constant(self, y, offset, weight, start, reach) if intercept else 0.0
        return constant_mean(self, y, offset, constant)
