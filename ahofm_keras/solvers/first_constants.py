"""Constants of all predictors but the first, where that has been fitted alone."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.optimize import minimize

from ahofm_keras.families import Family

# Rows that are enough for a handful of constants, and how far these may move, in units of predictors.
_ROWS = 20_000
_REACH = 4.0
# Of the mean log-density, in which the search ends.
_TOLERANCE = 1e-6


def best_constants(
    family: Family,
    y: np.ndarray,
    weight: np.ndarray | None,
    links: Mapping[str, np.ndarray],
    units: Mapping[str, float],
) -> dict[str, float]:
    """What to add to each of some predictors so that the response is likeliest, the others as they are.

    Moments of the response take for noise what the first predictor explains since, and a distribution of
    several shapes that starts there may end at another optimum.

    Args:
        family: of several parameters.
        y: response of all rows.
        weight: of each row, or None.
        links: all predictors on the rows.
        units: of the predictors that move, by parameter.
    """
    chosen = slice(None)
    if len(y) > _ROWS:
        chosen = np.sort(np.random.default_rng(0).permutation(len(y))[:_ROWS])  # type: ignore[assignment]
    y, weight = y[chosen], None if weight is None else weight[chosen]
    etas = {name: np.asarray(eta)[chosen] for name, eta in links.items()}

    def moved(steps: np.ndarray) -> dict[str, np.ndarray]:
        own = dict(zip(units, steps, strict=True))
        return {name: eta + own.get(name, 0.0) * units.get(name, 1.0) for name, eta in etas.items()}

    def loss(steps: np.ndarray) -> tuple[float, np.ndarray]:
        at = moved(steps)
        parameters = family.inverse_links(at, np)
        with np.errstate(all="ignore"):
            density = float(np.average(family.log_density(y, parameters, np), weights=weight))
            score = family.score(y, parameters)
            slopes = [
                np.average(
                    score[name] * family.parameters[name].derivative(at[name], np), weights=weight
                )
                for name in units
            ]
        gradient = -np.array(slopes, float) * np.array(list(units.values()))
        if not (np.isfinite(density) and np.isfinite(gradient).all()):
            return np.inf, np.zeros(len(units))
        return -density, gradient

    start = np.zeros(len(units))
    before, _ = loss(start)
    found = minimize(
        loss, start, jac=True, method="L-BFGS-B", bounds=[(-_REACH, _REACH)] * len(units),
        options={"ftol": _TOLERANCE, "maxiter": 50},
    )  # fmt: skip
    if not found.fun < before:
        return dict.fromkeys(units, 0.0)
    return {name: float(step) * units[name] for name, step in zip(units, found.x, strict=True)}
