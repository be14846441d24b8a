"""Responses of every family whose parameters all depend on a feature: truth and draws."""

from __future__ import annotations

import numpy as np
import pandas as pd

import ahofm_keras as ak
from ahofm_keras.families import FAMILIES, Family, get_family

# Centre and reach of the predictor of a parameter, by its link; of some parameters others.
_ETAS = {
    "identity": (3.0, 1.0),
    "log": (0.7, 0.6),
    "logit": (0.0, 1.0),
    "probit": (0.0, 0.8),
    "log_above_2": (1.0, 0.6),
    "logit_1_2": (0.0, 0.5),
}
_OTHERS = {"scale": (-0.7, 0.4), "dispersion": (-0.7, 0.4), "zero": (-1.0, 0.8), "shape": (0.6, 0.3)}
_OTHERS |= {"precision": (2.3, 0.4), "skewness": (0.0, 0.3), "tail": (0.0, 0.2)}


def _is_simulated(family: Family) -> bool:
    """Whether it has a distribution of one number, and links that a truth is known for."""
    links = [link.name for link in family.parameters.values()]
    own = family.__class__.__module__.startswith("ahofm_keras.") and not family.is_loss
    return own and not family.labelled and set(links) <= set(_ETAS) and _has(family)


def _has(family: Family) -> bool:
    try:
        family.distribution_of(true_parameters(family, np.linspace(-1, 1, 3)))
    except (NotImplementedError, ak.AhofmError):
        return False
    return True


def true_parameters(family: Family, x: np.ndarray) -> dict[str, np.ndarray]:
    """Each parameter, and the dispersion of a family that estimates it, at x in [-1, 1]."""
    found = {}
    for place, (name, link) in enumerate(family.parameters.items()):
        centre, reach = _OTHERS.get(name, _ETAS[link.name]) if place else _ETAS[link.name]
        wave = np.sin(2.5 * x) if place % 2 == 0 else np.cos(2 * x)
        found[name] = np.asarray(link.inverse(centre + reach * wave, np))
    if not family.dispersion_known:
        found["dispersion"] = np.full(len(x), 0.2)
    return found


def simulate(name: str, rows: int, seed: int = 0) -> tuple[pd.DataFrame, dict[str, np.ndarray]]:
    """A feature `x` with a response `y`, and the parameters that it was drawn from."""
    family, rng = get_family(name), np.random.default_rng(seed)
    x = np.r_[-1.0, 1.0, rng.uniform(-1, 1, rows - 2)]
    parameters = true_parameters(family, x)
    y = family.distribution_of(parameters).rvs(size=rows, random_state=rng)
    return pd.DataFrame({"x": x, "y": np.asarray(y, float)}), parameters


SIMULATED = [name for name in FAMILIES if _is_simulated(get_family(name))]
