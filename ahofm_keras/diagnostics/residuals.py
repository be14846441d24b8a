"""Residuals: of the response, of the deviance, and randomised quantile residuals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd
from scipy import stats

from ahofm_keras.diagnostics.checked_rows import CheckedRows
from ahofm_keras.draws import generator
from ahofm_keras.families import Family
from ahofm_keras.families.base import Parameters

# Standard deviations; the gaussian distribution function is 0 in float64 a little further out.
REACH = 37.0
# The column of the deviance's residuals.
DEVIANCE = "deviance"


def residual_frame(rows: CheckedRows, seed: int) -> pd.DataFrame:
    """All residuals of all rows.

    Args:
        rows: with predictions.
        seed: of the randomisation.
    """
    quantile, clipped = np.full(len(rows), np.nan), 0
    if rows.has_chances:
        quantile, clipped = quantile_residuals(rows.drawn, rows.drawn_y, rows.parameters, seed)
    frame = pd.DataFrame(
        {
            "row": rows.index,
            "fitted": rows.mean,
            "observed": rows.observed,
            "link": rows.link,
            "quantile": quantile,
            **parameter_residuals(rows),
            "response": rows.residual,
            "leverage": np.nan if rows.errors is None else _leverage(rows, rows.errors),
        }
    )
    if not rows.has_chances:
        frame["pull"] = rows.conditions[0].pull
    frame.attrs["clipped"] = clipped
    return frame


def quantile_residuals(
    family: Family, y: np.ndarray, parameters: Parameters, seed: int
) -> tuple[np.ndarray, int]:
    """Randomised quantile residuals (Dunn & Smyth 1996): gaussian where the model is right.

    r = Phi^-1(u), u = F(y); where F jumps, at a whole number or an end of the support, u is drawn evenly
    between the two sides of the jump, and of a censored time between F and 1. Above the median the
    upper tail is computed, whose digits 1 - F would lose.

    Args:
        family: of the response.
        y: response `(n,)`.
        parameters: of its distribution `(n,)`, by name, the dispersion too.
        seed: of the draws.

    Returns:
        `(n,)`, and how many of them were clipped to +-`REACH`.
    """
    chances = family.chances(y, parameters)
    share = np.zeros(len(y))
    if not chances.is_exact:
        share = generator(seed, "residuals").uniform(size=len(y))
    below, above = chances.drawn(share)
    with np.errstate(divide="ignore"):
        residuals = np.where(below < 0.5, stats.norm.ppf(below), -stats.norm.ppf(above))
    clipped = int(np.sum(np.abs(residuals) > REACH))
    return np.clip(residuals, -REACH, REACH), clipped


def parameter_residuals(rows: CheckedRows) -> dict[str, np.ndarray]:
    """What each predictor should have explained, by the column that holds it.

    Of the only predictor the residuals of the deviance; of several the score of each parameter in
    standard deviations, (d log p / d parameter) / sqrt(information): mean 0 and variance 1 where the
    model is right. That of a scale is large where responses are further from their mean than it says.
    """
    family = rows.family
    if list(residual_columns(family, rows.links).values()) == [DEVIANCE]:
        return {DEVIANCE: deviance_residuals(family, rows.y, rows.mean, rows.weight)}
    score, information = (
        method(rows.y, rows.parameters) for method in (family.score, family.information)
    )
    return {
        column: score[name] / np.sqrt(np.maximum(information[name], np.finfo(float).tiny))
        for name, column in residual_columns(family, rows.links).items()
    }


def residual_columns(family: Family, parameters: Iterable[str]) -> dict[str, str]:
    """The column that holds the residuals of each predictor, by parameter."""
    names = list(parameters)
    if len(names) == 1 and not family.labelled:
        return {names[0]: DEVIANCE}
    return {name: f"score_{name}" for name in names}


def deviance_residuals(
    family: Family, y: np.ndarray, mean: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    """Roots of the rows' deviances with the sign of the residual; their squares sum to the deviance."""
    deviance = np.maximum(family.unit_deviance(y, mean, np) * weight, 0.0)
    return np.sign(family.residual(y, mean)) * np.sqrt(deviance)


def _leverage(rows: CheckedRows, errors: Mapping[str, np.ndarray]) -> np.ndarray:
    """Derivative of a row's own prediction by its response: Var(eta) times the row's information.

    Of several predictors the largest.
    """
    information = rows.family.information(rows.y, rows.parameters)
    found = [
        errors[name] ** 2
        * rows.weight
        / rows.dispersion
        * information[name]
        * rows.family.parameters[name].derivative(rows.links[name], np) ** 2
        for name in rows.links
    ]
    return np.max(found, axis=0)
