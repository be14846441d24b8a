"""Responses with a skewness, and tails of any weight: sinh-arcsinh (Jones and Pewsey 2009)."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import Any, ClassVar

import numpy as np
from scipy import special

from ahofm_keras.families.base import Array, Links, Namespace, Parameters
from ahofm_keras.families.distributions import Distribution
from ahofm_keras.families.gridded import gridded
from ahofm_keras.families.links import SCALES
from ahofm_keras.families.location_scale import LocationScale, moments, quantiles
from ahofm_keras.families.registry import register_family
from ahofm_keras.families.special import HALF_LOG_2_PI, log1p_exp

# Between these tails the density is computed, and a fit starts.
_TAILS = (1e-100, 1e100)
_START = (0.5, 2.0)
# Beyond this a hyperbolic sine goes on as a straight line, so that its square is a number.
_LARGEST_SINH = 30.0
# Skewness over tail, and 1 / tail, of which moments are computed.
_LARGEST_SKEW = 300.0
_LARGEST_POWER = 300.0
# Of skewness and of the logarithm of the tail, between places where informations are summed.
_STEP = 0.1
_LEAST_INFORMATION = 1e-290
# Nodes of the expectation over a normal variable.
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(60)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


class _Distribution(Distribution):
    """By what makes a response normal: sinh(tail asinh(z) - skewness)."""

    def __init__(self, loc: Array, scale: Array, skewness: Array, tail: Array) -> None:
        self.loc, self.skewness, self.tail = loc, skewness, np.clip(tail, *_TAILS)
        self.width = scale * self.tail
        self.shape = np.shape(loc + scale + skewness + tail)

    def _standard_moment(self, power: int) -> Array:
        """Of the response with location 0 and width 1, first or second."""
        skew = np.clip(self.skewness / self.tail, -_LARGEST_SKEW, _LARGEST_SKEW)
        weight = _bessel_sum(power / np.maximum(self.tail, 1 / _LARGEST_POWER))
        if power == 1:
            return np.sinh(skew) * weight
        return (np.cosh(2 * skew) * weight - 1) / 2

    def mean(self) -> Array:
        return np.asarray(self.loc + self.width * self._standard_moment(1))

    def var(self) -> Array:
        centred = self._standard_moment(2) - self._standard_moment(1) ** 2
        return np.asarray(self.width**2 * np.maximum(centred, 0.0) + 0 * self.loc)

    def logpdf(self, y: Any) -> Array:
        z = (np.asarray(y, float) - self.loc) / self.width
        scale = self.width / self.tail
        return np.asarray(_log_density(z, self.skewness, self.tail, np) - np.log(scale)) - HALF_LOG_2_PI

    def pdf(self, y: Any) -> Array:
        return np.exp(self.logpdf(y))

    def _normal(self, y: Any) -> Array:
        z = (np.asarray(y, float) - self.loc) / self.width
        return np.sinh(np.clip(self.tail * np.arcsinh(z) - self.skewness, -700.0, 700.0))

    def cdf(self, y: Any) -> Array:
        return np.asarray(special.ndtr(self._normal(y)))

    def sf(self, y: Any) -> Array:
        return np.asarray(special.ndtr(-self._normal(y)))

    def _from_normal(self, score: Array) -> Array:
        inner = np.clip((np.arcsinh(score) + self.skewness) / self.tail, -700.0, 700.0)
        return np.asarray(self.loc + self.width * np.sinh(inner))

    def ppf(self, q: Any) -> Array:
        q = np.asarray(q, float)
        return _with_ends(q, self._from_normal(special.ndtri(q)))

    def isf(self, q: Any) -> Array:
        q = np.asarray(q, float)
        return _with_ends(1 - q, self._from_normal(-special.ndtri(q)))


def _with_ends(q: Array, found: Array) -> Array:
    return np.where(q == 0, -np.inf, np.where(q == 1, np.inf, found))


def _bessel_sum(q: Array) -> Array:
    """Half the mean of (X + sqrt(X^2 + 1))^q plus that of its inverse, X standard normal."""
    orders = special.kve((q + 1) / 2, 0.25) + special.kve(np.abs(q - 1) / 2, 0.25)
    return np.asarray(orders / sqrt(8 * np.pi))


@register_family
class Shash(LocationScale):
    """Responses of a sinh-arcsinh distribution.

    With z = (y - loc) / (scale tail), sinh(tail asinh(z) - skewness) is standard normal: a skewness of 0
    and a tail of 1 is the normal distribution itself, a tail below 1 is heavier.
    """

    name = "shash"
    links: ClassVar[Links] = {
        "loc": ("identity", "log", "softplus"),
        "scale": SCALES,
        "skewness": ("identity",),
        "tail": SCALES,
    }
    variance_text = "what scale, skewness and tail say"
    aliases: ClassVar[Mapping[str, str]] = {
        **{own: name for own, name in LocationScale.aliases.items() if own not in ("sd", "std", "mean")},
        "nu": "skewness",
        "epsilon": "skewness",
        "tau": "tail",
        "delta": "tail",
        "eps": "skewness",
        "phi": "tail",
    }

    def log_density(self, y: Array, parameters: Parameters, xp: Namespace = np) -> Array:
        tail = xp.clip(parameters["tail"], *_TAILS)
        z = self.standardised(y, parameters, xp) / tail
        return _log_density(z, parameters["skewness"], tail, xp) - xp.log(parameters["scale"])

    def log_constant(self, y: np.ndarray) -> np.ndarray:
        return np.full_like(y, -HALF_LOG_2_PI, dtype=float)

    def distribution_of(self, parameters: Parameters) -> Any:
        known = (np.asarray(parameters[name], float) for name in self.links)
        return _Distribution(*known)

    def mean_of(self, parameters: Parameters, xp: Namespace = np) -> Array:
        if xp is np:
            return np.asarray(self.distribution_of(parameters).mean())
        tail = xp.clip(parameters["tail"], *_TAILS)
        inner = [(float(np.arcsinh(node)) + parameters["skewness"]) / tail for node in _NODES]
        every = zip(_WEIGHTS, inner, strict=True)  # there are no Bessel functions of any order
        found = sum(float(w) * xp.sinh(xp.clip(own, -_LARGEST_SKEW, _LARGEST_SKEW)) for w, own in every)
        return parameters["loc"] + parameters["scale"] * tail * found

    def score(self, y: np.ndarray, parameters: Parameters) -> dict[str, np.ndarray]:
        tail = np.clip(parameters["tail"], *_TAILS)
        z = self.standardised(y, parameters) / tail
        return _scores(z, parameters["skewness"], tail, parameters["scale"])

    def information(self, y: np.ndarray, parameters: Parameters) -> dict[str, np.ndarray]:
        tail = np.clip(parameters["tail"], *_TAILS)
        scale, skewness, tail = np.broadcast_arrays(parameters["scale"], parameters["skewness"], tail)
        logs = gridded(_log_information, skewness, np.log(tail), step=_STEP)
        found = {name: np.exp(own) for name, own in zip(self.links, logs, strict=True)}
        return {name: own / scale**2 if name in ("loc", "scale") else own for name, own in found.items()}

    def start_values(self, y: np.ndarray, weight: np.ndarray | None = None) -> dict[str, float]:
        """By five quantiles: their asymmetry is the skewness, how far the outer ones are is the tail."""
        chances = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
        wanted = quantiles(y, tuple(chances), weight)
        _, variance = moments(y, weight)
        outer = wanted[4] - wanted[0]
        if not outer > 0:
            return {"loc": float(wanted[2]), "scale": sqrt(variance), "skewness": 0.0, "tail": 1.0}
        skewness, tail = np.meshgrid(np.linspace(-1.5, 1.5, 61), np.geomspace(*_START, 41))
        scores = np.arcsinh(special.ndtri(chances))
        shape = np.sinh((scores[:, None, None] + skewness) / tail)
        width = shape[4] - shape[0]
        gaps = [(shape[k] - shape[0]) / width - (wanted[k] - wanted[0]) / outer for k in (1, 2, 3)]
        best = np.unravel_index(np.argmin(sum(gap**2 for gap in gaps)), width.shape)
        scale = outer / width[best] / tail[best]
        return {
            "loc": float(wanted[2] - shape[2][best] * outer / width[best]),
            "scale": float(scale),
            "skewness": float(skewness[best]),
            "tail": float(tail[best]),
        }


def _log_density(z: Array, skewness: Array, tail: Array, xp: Namespace) -> Array:
    """Of a response by its place, up to the scale and a constant."""
    inner = tail * xp.arcsinh(z) - skewness
    size = xp.abs(inner)
    cosh = size + log1p_exp(-2 * size, xp)  # its logarithm, up to log 2
    z = xp.abs(z)
    far = log1p_exp(-2 * xp.log(xp.maximum(z, 1.0)), xp) + 2 * xp.log(xp.maximum(z, 1.0))
    near = xp.log1p(xp.minimum(z, 1.0) ** 2)
    tails = xp.where(z > 1, far, near)
    return cosh - np.log(2) - _sinh(size, xp) ** 2 / 2 - tails / 2


def _log_information(skewness: Array, log_tail: Array) -> tuple[Array, ...]:
    """Expected squares of the scores at scale 1, over the normal variable that a response stands for."""
    tail = np.exp(log_tail)
    total = [np.full(np.shape(skewness), _LEAST_INFORMATION) for _ in Shash.links]
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        inner = np.clip((np.arcsinh(node) + skewness) / tail, -100.0, 100.0)
        scores = _scores(np.sinh(inner), skewness, tail, np.ones_like(tail)).values()
        total = [own + weight * score**2 for own, score in zip(total, scores, strict=True)]
    return tuple(np.log(own) for own in total)


def _sinh(size: Array, xp: Namespace) -> Array:
    """A hyperbolic sine that goes on as a straight line far out."""
    near = xp.sinh(xp.minimum(size, _LARGEST_SINH))
    return near * (1 + xp.maximum(size - _LARGEST_SINH, 0.0))


def _scores(z: Array, skewness: Array, tail: Array, scale: Array) -> dict[str, Array]:
    """Derivatives of the log-density by the parameters."""
    angle = np.arcsinh(z)
    inner = tail * angle - skewness
    size = np.abs(inner)
    near = np.minimum(size, _LARGEST_SINH)
    slope = np.cosh(near) * np.where(size < _LARGEST_SINH, 1.0, np.tanh(near))
    by_inner = np.tanh(inner) - np.sign(inner) * _sinh(size, np) * slope
    root = np.hypot(1.0, z)
    by_z = by_inner * tail / root - z / root / root
    pull = -by_z * z
    return {
        "loc": -by_z / scale / tail,
        "scale": (pull - 1) / scale,
        "skewness": -by_inner + 0 * z,
        "tail": by_inner * angle + pull / tail,
    }
