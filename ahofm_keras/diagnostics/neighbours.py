"""Rows that are near each other along several features at once: are their residuals alike?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.spatial import cKDTree
from scipy.stats import rankdata

from ahofm_keras.bases import locate_levels
from ahofm_keras.terms import Variable
from ahofm_keras.transforms import evaluate_expression

# That of mgcv's `k.check`.
_NEIGHBOURS = 3
# Numbers lie in [0, 1], so rows of different levels are no neighbours.
_APART = 1e3


def find_neighbours(variables: Sequence[Variable], columns: dict[str, np.ndarray]) -> np.ndarray:
    """The nearest rows of each row `(n, 3)`, by the ranks of numbers and within levels of categories."""
    places = []
    for variable in variables:
        values = np.asarray(evaluate_expression(variable.expression, columns))
        if variable.is_category:
            places.append(_APART * locate_levels(variable.levels, values))
        elif variable.is_point:  # distances are what its smooth knows
            spread = np.sqrt(values.var(axis=0).sum())
            places += list((values / spread).T)
        else:
            places.append(rankdata(values) / len(values))
    points = np.stack(places, axis=1)
    rows = np.arange(len(points))
    near = np.asarray(cKDTree(points).query(points, min(_NEIGHBOURS + 1, len(points)))[1])
    # A row is its own neighbour; where several share a place it need not be listed.
    own = near == rows[:, None]
    own[~own.any(axis=1), -1] = True
    return near[~own].reshape(len(rows), -1)


def surface_index(residuals: np.ndarray, neighbours: np.ndarray) -> float:
    """mgcv's k-index of a surface: residuals' variance by differences of neighbours, over their own."""
    differences = residuals[:, None] - residuals[neighbours]
    return float(np.mean(differences**2) / 2 / np.mean(residuals**2))


def surface_test(
    residuals: np.ndarray, neighbours: np.ndarray, rng: np.random.Generator, permutations: int
) -> tuple[float, float]:
    """The k-index of a surface, and how rarely random orders of the residuals have a smaller one."""
    index = surface_index(residuals, neighbours)
    random = [surface_index(rng.permutation(residuals), neighbours) for _ in range(permutations)]
    return index, float((1 + np.sum(np.array(random) <= index)) / (1 + permutations))
