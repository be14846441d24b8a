"""Responses with heavy tails, whose weight is a parameter."""

from __future__ import annotations

from collections.abc import Mapping
from math import log, pi
from typing import Any, ClassVar

import numpy as np
from scipy import special, stats
from scipy.optimize import brentq

from ahofm_keras.families.base import Array, Links, Namespace, Parameters
from ahofm_keras.families.links import SCALES
from ahofm_keras.families.location_scale import LocationScale, least_scale, quantiles
from ahofm_keras.families.registry import register_family
from ahofm_keras.families.special import gamma_rest, gamma_rest_slope

# Between these degrees of freedom a fit starts.
_START = (2.5, 50.0)
# From here on the information of the degrees of freedom is the first terms of its series.
_MANY = 400.0


@register_family
class StudentT(LocationScale):
    """Responses of a t distribution: far values count little for the location."""

    name = "student_t"
    links: ClassVar[Links] = {
        "loc": ("identity", "log", "softplus"),
        "scale": SCALES,
        "df": ("log_above_2",),
    }
    remedies: ClassVar[Mapping[str, str]] = {}
    variance_text = "df / (df - 2) times the square of the scale"
    aliases: ClassVar[Mapping[str, str]] = {
        **{
            other: own
            for other, own in LocationScale.aliases.items()
            if other not in ("sd", "std", "tau")
        },
        "nu": "df",
        "degrees_of_freedom": "df",
    }

    def log_density(self, y: Array, parameters: Parameters, xp: Namespace = np) -> Array:
        df, half = parameters["df"], parameters["df"] / 2
        z = self.standardised(y, parameters, xp)
        # log Gamma(half + 1/2) - log Gamma(half) - log(half) / 2
        ratio = half * xp.log1p(0.5 / half) - 0.5 + gamma_rest(half + 0.5, xp) - gamma_rest(half, xp)
        return ratio - (df + 1) / 2 * xp.log1p(z**2 / df) - xp.log(parameters["scale"])

    def log_constant(self, y: np.ndarray) -> np.ndarray:
        return np.full_like(y, -log(2 * pi) / 2, dtype=float)

    def distribution_of(self, parameters: Parameters) -> Any:
        return stats.t(parameters["df"], parameters["loc"], parameters["scale"])

    def score(self, y: np.ndarray, parameters: Parameters) -> dict[str, np.ndarray]:
        df, half, scale = parameters["df"], parameters["df"] / 2, parameters["scale"]
        z = self.standardised(y, parameters)
        share = z**2 / (df + z**2)
        pull = (df + 1) / (df + z**2) * z
        ratio = np.log1p(0.5 / half) - 0.5 / (half + 0.5)
        ratio += gamma_rest_slope(half + 0.5) - gamma_rest_slope(half)
        tail = -np.log1p(z**2 / df) + (df + 1) / df * share
        return {"loc": pull / scale, "scale": (pull * z - 1) / scale, "df": (ratio + tail) / 2}

    def information(self, y: np.ndarray, parameters: Parameters) -> dict[str, np.ndarray]:
        df, once = parameters["df"], 1 / parameters["scale"] ** 2
        few = np.minimum(df, _MANY)
        direct = (special.zeta(2, few / 2) - special.zeta(2, (few + 1) / 2)) / 4
        direct -= (few + 5) / (2 * few * (few + 1) * (few + 3))
        many = np.maximum(df, _MANY)
        series = (3.5 - 13 / many) / many**2 / many**2
        return {
            "loc": (df + 1) / (df + 3) * once,
            "scale": 2 * df / (df + 3) * once,
            "df": np.where(df < _MANY, direct, series) + 0 * once,
        }

    def start_values(self, y: np.ndarray, weight: np.ndarray | None = None) -> dict[str, float]:
        """By the quartiles, and by how much wider the middle 95 % are than the middle half."""
        far_low, low, middle, high, far_high = quantiles(y, (0.025, 0.25, 0.5, 0.75, 0.975), weight)
        half = max(float(high - low) / 2, least_scale(y))
        wanted = float(far_high - far_low) / 2 / half

        def excess(df: float) -> float:
            return float(special.stdtrit(df, 0.975) / special.stdtrit(df, 0.75)) - wanted

        ends = [excess(df) for df in _START]
        df = _START[0] if ends[0] <= 0 else _START[1] if ends[1] >= 0 else float(brentq(excess, *_START))
        return {"loc": float(middle), "scale": half / float(special.stdtrit(df, 0.75)), "df": df}

    def crps(self, y: np.ndarray, parameters: Parameters) -> np.ndarray:
        df, z = parameters["df"], self.standardised(y, parameters)
        spread = 2 * np.sqrt(df) / (df - 1)
        spread = spread * np.exp(special.betaln(0.5, df - 0.5) - 2 * special.betaln(0.5, df / 2))
        density, below = stats.t.pdf(z, df), special.stdtr(df, z)
        inside = z * (2 * below - 1) + 2 * density * (df + z**2) / (df - 1) - spread
        return np.asarray(parameters["scale"] * inside)
