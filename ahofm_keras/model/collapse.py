"""A predicted spread of as good as 0: the fit follows some responses exactly."""

from __future__ import annotations

from typing import Any

import numpy as np

from ahofm_keras.errors import warn
from ahofm_keras.families import Family
from ahofm_keras.solvers.job import Rows
from ahofm_keras.solvers.predictors import links_and_errors

# Below this share of the response's size, where single precision ends, a spread is one of roundings.
_LEAST_SHARE = 1e-5
# Rows that are looked at, at most.
_ROWS = 20_000


def warn_of_collapse(model: Any, rows: Rows) -> bool:
    """Whether the spread collapsed anywhere; says where, and how often.

    The likelihood of a response that is predicted exactly grows without end as its spread falls to 0.
    Only models whose spread has a predictor can follow it: counts stop at that of a poisson.
    """
    family: Family = model.family
    if len(family.parameters) < 2 or family.discrete or family.is_loss:
        return False
    places = np.arange(0, len(rows), -(-len(rows) // _ROWS))
    some = rows.take(places)
    links = {name: link for name, (link, _) in links_and_errors(model, some).items()}
    collapsed = find_collapsed(family, family.inverse_links(links), some.y)
    if not collapsed.any():
        return False
    first = int(places[np.argmax(collapsed)])
    warn(
        f"The predicted spread of `{model.response}` is as good as 0 in {int(collapsed.sum()):,} of "
        f"{len(places):,} rows, first at row {first}: the fit follows these responses exactly, and its "
        "likelihood has no maximum. Look for a feature that tells the response, for repeated values, or "
        "for too few rows; a spread without features is safer."
    )
    return True


def find_collapsed(family: Family, parameters: dict[str, np.ndarray], y: np.ndarray) -> np.ndarray:
    """Rows whose predicted standard deviation is a rounding beside the response's own size."""
    try:
        distribution = family.distribution_of(parameters)
        with np.errstate(all="ignore"):
            deviation, mean = np.asarray(distribution.std()), np.asarray(family.mean_of(parameters))
    except NotImplementedError:
        return np.zeros(len(y), bool)
    low, high = family.bounds
    if np.isfinite(low):
        # Amounts may differ by orders of magnitude, so each is measured by itself.
        size = np.minimum(mean - low, high - mean)
    else:
        size = np.full(len(y), np.std(y))
    return np.asarray(deviation < _LEAST_SHARE * size)
