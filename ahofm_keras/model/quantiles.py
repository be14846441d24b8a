"""What a model of quantiles predicts: a column of each level, with bands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy import special

from ahofm_keras.errors import DataError
from ahofm_keras.families import Quantile
from ahofm_keras.model.distributional import check_quantiles

# Draws of the predictors that bands rest on, and rows that are drawn together.
_DRAWS = 1000
_ROWS = 2048

Spread = tuple[np.ndarray, np.ndarray]


def predict_quantiles(
    family: Quantile, links: Mapping[str, Spread], q: Any, level: float | None, plain: bool
) -> Any:
    """The quantiles of each row.

    Args:
        family: of the model.
        links: mean and standard deviation of each predictor.
        q: levels that are asked for, which the family must have; None for all.
        level: of a credible band of each quantile; None for none.
        plain: whether a family of one level gives an array.

    Returns:
        A frame with a column `q10` of each level, and with bands `q10_lower` and `q10_upper`; for given
        levels, or of one level, an array.
    """
    if level is not None:
        return _band(family, links, level)
    means = {name: mean for name, (mean, _) in links.items()}
    found = family.quantiles_of(family.inverse_links(means))
    if q is not None:
        chosen = np.stack([found[_column(family, own)] for own in check_quantiles(q)], axis=-1)
        return chosen[:, 0] if np.ndim(q) == 0 else chosen
    return found[family.columns[0]] if plain and len(found) == 1 else pd.DataFrame(found)


def _column(family: Quantile, level: float) -> str:
    places = np.flatnonzero(np.isclose(family.levels, level, rtol=0, atol=1e-9))
    if not len(places):
        listed = ", ".join(f"{own:g}" for own in family.levels)
        raise DataError(
            f"The model has the quantiles of the levels {listed}, and no others. Received: {level:g}. "
            f"Fit it with `ak.families.Quantile(levels=[..., {level:g}])`."
        )
    return family.columns[int(places[0])]


def _band(family: Quantile, links: Mapping[str, Spread], level: float) -> pd.DataFrame:
    """Each quantile with its band over draws of all predictors, the same for every row."""
    scores = special.ndtri((np.arange(_DRAWS) + 0.5) / _DRAWS)
    random = np.random.default_rng(0)
    draws = {name: random.permutation(scores)[:, None] for name in links}
    tails = (1 - level) / 2, (1 + level) / 2
    rows = len(next(iter(links.values()))[0])
    parts: dict[str, list[np.ndarray]] = {name: [np.zeros((2, 0))] for name in family.columns}
    for part in (slice(start, start + _ROWS) for start in range(0, rows, _ROWS)):
        etas = {name: m[part] + draws[name] * s[part] for name, (m, s) in links.items()}
        for name, drawn in family.quantiles_of(family.inverse_links(etas)).items():
            parts[name].append(np.quantile(drawn, tails, axis=0))
    means = {name: mean for name, (mean, _) in links.items()}
    columns: dict[str, np.ndarray] = {}
    for name, own in family.quantiles_of(family.inverse_links(means)).items():
        lower, upper = np.concatenate(parts[name], axis=1)
        columns |= {name: own, f"{name}_lower": lower, f"{name}_upper": upper}
    return pd.DataFrame(columns)
