"""Link functions: each once, for NumPy and `keras.ops`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, pi, sqrt
from typing import Any

import numpy as np
from scipy import special

from ahofm_keras.families.special import log1p_exp

Array = Any
Namespace = Any

# exp() of more overflows before sums over rows do.
LARGEST_LOG = 300.0
# Where a reciprocal of the predictor is taken, it stays above this: beyond it there is no mean.
_LEAST_PREDICTOR = 1e-70
# Links that a parameter above 0 may have, that of a scale and that of a mean; those of a probability.
SCALES = ("log", "softplus")
MEANS = ("log", "softplus", "sqrt")
PROBABILITIES = ("logit", "probit", "cloglog", "cauchit")
# The normal density is 0 in float64 a little further out.
_LARGEST_PROBIT = 38.0
# Between these are powers between 1 and 2: at 1 and 2 themselves there is another distribution.
_POWERS = (1.01, 1.99)


@dataclass(frozen=True)
class Link:
    """A monotone function g between a parameter of a distribution and its predictor.

    All functions take `numpy` or `keras.ops` as their last argument. Outside `domain`, where there is no
    parameter, they are finite all the same, so that an optimizer survives one step too far.

    Args:
        name: key in `LINKS`.
        function: g, from the parameter to the predictor.
        inverse: g^-1.
        derivative: of the parameter by the predictor, as a function of the predictor.
        domain: open interval of the predictors that belong to a parameter.
        range: open interval of the parameters.
        increasing: whether a larger predictor is a larger parameter.
        sentence: what the sum of effects is, for readers of a report.
        sum_label: what the sum is called in a table.
        scale: what effects are measured on, `{response}` being the response.
        ratio: what exp(effect) multiplies, None where it has no such meaning.
    """

    name: str
    function: Callable[[Array, Namespace], Array]
    inverse: Callable[[Array, Namespace], Array]
    derivative: Callable[[Array, Namespace], Array]
    domain: tuple[float, float] = (-inf, inf)
    range: tuple[float, float] = (-inf, inf)
    increasing: bool = True
    sentence: str = ""
    sum_label: str = "Sum"
    scale: str = "{response}"
    ratio: str | None = None

    @property
    def is_identity(self) -> bool:
        """Whether parameter and predictor are the same."""
        return self.name == "identity"

    def holds(self, eta: np.ndarray) -> np.ndarray:
        """Which predictors belong to a parameter."""
        return (eta > self.domain[0]) & (eta < self.domain[1])

    def limit(self, eta: np.ndarray) -> np.ndarray:
        """The inverse, with the end of the range where predictors have left the domain."""
        low, high = self.range if self.increasing else self.range[::-1]
        mean = np.asarray(self.inverse(eta, np))
        return np.where(eta <= self.domain[0], low, np.where(eta >= self.domain[1], high, mean))


def _exp(eta: Array, xp: Namespace) -> Array:
    return xp.exp(xp.clip(eta, -LARGEST_LOG, LARGEST_LOG))


def _logistic(eta: Array, xp: Namespace) -> Array:
    return (1 + xp.tanh(eta / 2)) / 2  # exp(-eta) would overflow


def _softplus(eta: Array, xp: Namespace) -> Array:
    return log1p_exp(xp.maximum(eta, -LARGEST_LOG), xp)


def _softplus_derivative(eta: Array, xp: Namespace) -> Array:
    small = xp.exp(-xp.minimum(xp.abs(eta), LARGEST_LOG))  # the logistic loses small values
    return xp.where(eta < 0, small, xp.ones_like(small)) / (1 + small)


def _logistic_derivative(eta: Array, xp: Namespace) -> Array:
    mean = _logistic(eta, xp)
    return mean * (1 - mean)


def _special(xp: Namespace) -> Any:
    """Where the error function is: not in NumPy itself."""
    return special if xp is np else xp


def _normal_density(eta: Array, xp: Namespace) -> Array:
    return xp.exp(-(xp.clip(eta, -_LARGEST_PROBIT, _LARGEST_PROBIT) ** 2) / 2) / sqrt(2 * pi)


def _cloglog_derivative(eta: Array, xp: Namespace) -> Array:
    eta = xp.clip(eta, -LARGEST_LOG, LARGEST_LOG)
    return xp.exp(eta - xp.exp(eta))


LINKS: dict[str, Link] = {
    link.name: link
    for link in (
        Link(
            "identity",
            lambda mean, xp: mean,
            lambda eta, xp: eta,
            lambda eta, xp: xp.ones_like(eta),
            sentence="The parts add up to the prediction itself.",
        ),
        Link(
            "log",
            lambda mean, xp: xp.log(mean),
            _exp,
            _exp,
            range=(0, inf),
            sentence=(
                "The parts add up to a logarithm, so each of them multiplies the prediction: +0.1 means "
                "about 10 % more, +0.7 twice as much."
            ),
            sum_label="Sum (log scale)",
            scale="log {response}",
            ratio="",
        ),
        Link(
            "logit",
            lambda mean, xp: xp.log(mean / (1 - mean)),
            _logistic,
            _logistic_derivative,
            range=(0, 1),
            sentence=(
                "The parts add up to log-odds, which become a probability: +0.7 doubles the odds, -0.7 "
                "halves them."
            ),
            sum_label="Sum (log-odds)",
            scale="the log-odds of {response}",
            ratio="odds ",
        ),
        Link(
            "probit",
            lambda mean, xp: sqrt(2) * _special(xp).erfinv(2 * mean - 1),
            lambda eta, xp: (1 + _special(xp).erf(eta / sqrt(2))) / 2,
            _normal_density,
            range=(0, 1),
            sentence=(
                "The parts add up to a quantile of the normal distribution, which becomes a "
                "probability: 0 is 50 %, +1 is 84 %, -1 is 16 %."
            ),
            sum_label="Sum (normal quantile)",
            scale="the normal quantile of {response}",
        ),
        Link(
            "cloglog",
            lambda mean, xp: xp.log(-xp.log1p(-mean)),
            lambda eta, xp: -xp.expm1(-_exp(eta, xp)),
            _cloglog_derivative,
            range=(0, 1),
            sentence=(
                "The parts add up to the logarithm of a hazard, which becomes a probability: +0.7 "
                "doubles the hazard, -0.7 halves it."
            ),
            sum_label="Sum (log hazard)",
            scale="the log hazard of {response}",
            ratio="hazard ",
        ),
        Link(
            "inverse",
            lambda mean, xp: 1 / mean,
            lambda eta, xp: 1 / xp.maximum(eta, _LEAST_PREDICTOR),
            lambda eta, xp: -1 / xp.maximum(eta, _LEAST_PREDICTOR) ** 2,
            domain=(0, inf),
            range=(0, inf),
            increasing=False,
            sentence=(
                "The parts add up to 1 / the prediction: what raises the sum lowers the prediction."
            ),
            sum_label="Sum (1 / prediction)",
            scale="1 / {response}",
        ),
        Link(
            "sqrt",
            lambda mean, xp: xp.sqrt(mean),
            lambda eta, xp: xp.maximum(eta, 0.0) ** 2,
            lambda eta, xp: 2 * xp.maximum(eta, 0.0),
            domain=(0, inf),
            range=(0, inf),
            sentence="The parts add up to the square root of the prediction.",
            sum_label="Sum (square root)",
            scale="the square root of {response}",
        ),
        Link(
            "softplus",
            lambda mean, xp: mean + xp.log(-xp.expm1(-mean)),
            _softplus,
            _softplus_derivative,
            range=(0, inf),
            sentence=(
                "The parts add up to a number that large predictions are equal to; small ones are its "
                "exponential: +0.7 doubles them."
            ),
            sum_label="Sum (softplus scale)",
            scale="{response} on the softplus scale",
        ),
        Link(
            "inverse_square",
            lambda mean, xp: 1 / mean**2,
            lambda eta, xp: xp.maximum(eta, _LEAST_PREDICTOR) ** -0.5,
            lambda eta, xp: -0.5 * xp.maximum(eta, _LEAST_PREDICTOR) ** -1.5,
            domain=(0, inf),
            range=(0, inf),
            increasing=False,
            sentence=(
                "The parts add up to 1 / the square of the prediction: what raises the sum lowers the "
                "prediction."
            ),
            sum_label="Sum (1 / prediction squared)",
            scale="1 / the square of {response}",
        ),
        Link(
            "cauchit",
            lambda mean, xp: xp.tan(pi * (mean - 0.5)),
            lambda eta, xp: 0.5 + xp.arctan(eta) / pi,
            lambda eta, xp: 1 / (pi * (1 + eta**2)),
            range=(0, 1),
            sentence=(
                "The parts add up to a quantile of the Cauchy distribution, which becomes a "
                "probability: 0 is 50 %, +1 is 75 %, +6.3 is 95 %."
            ),
            sum_label="Sum (Cauchy quantile)",
            scale="the Cauchy quantile of {response}",
        ),
        Link(
            "log_above_2",
            lambda mean, xp: xp.log(mean - 2),
            lambda eta, xp: 2 + _exp(eta, xp),
            _exp,
            range=(2, inf),
            sentence=(
                "The parts add up to the logarithm of what a parameter has above 2, so each of them "
                "multiplies that."
            ),
            sum_label="Sum (log of what is above 2)",
            scale="log ({response} - 2)",
        ),
        Link(
            "logit_1_2",
            lambda mean, xp: xp.log((mean - _POWERS[0]) / (_POWERS[1] - mean)),
            lambda eta, xp: _POWERS[0] + (_POWERS[1] - _POWERS[0]) * _logistic(eta, xp),
            lambda eta, xp: (_POWERS[1] - _POWERS[0]) * _logistic_derivative(eta, xp),
            range=(1.01, 1.99),
            sentence=(
                "The parts add up to log-odds, which become a number between 1 and 2: 0 is 1.5, what is "
                "above it is nearer to 2."
            ),
            sum_label="Sum (log-odds between 1 and 2)",
            scale="the log-odds of {response} between 1 and 2",
        ),
    )
}
