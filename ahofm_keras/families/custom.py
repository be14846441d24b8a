"""A family of nothing but a log-probability that the user has written in `keras.ops`."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any, ClassVar

import keras
import numpy as np
from scipy import special
from scipy.optimize import minimize

from ahofm_keras.errors import DataError
from ahofm_keras.families.base import Array, Family, Links, Namespace, Parameters
from ahofm_keras.families.links import LINKS
from ahofm_keras.families.numeric import NumericDistribution
from ahofm_keras.families.registry import register_family

# Rows that the model without terms is fitted to, and steps of that fit.
_START_ROWS = 500
_START_STEPS = 400
# Rows of which scores are averaged together.
_ROWS = 4096
# Quantiles at which the square of a score is averaged, those of the nodes of a normal variable.
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(14)
_CHANCES, _WEIGHTS = special.ndtr(_NODES), _WEIGHTS / _WEIGHTS.sum()
# Counts, if there are no more of them, at which it is summed instead.
_COUNTS = 2000


class CustomFamily(Family):
    """What `custom` makes a family of; scores by automatic differentiation.

    Args:
        link: of the first parameter, or by parameter.
        log_prob: where the function stands that a file was written with, as `module:name`.
    """

    log_prob: ClassVar[Callable[..., Any]]
    makes_distribution: ClassVar[Callable[[dict[str, Array]], Any] | None] = None
    starts: ClassVar[Any] = None
    allowed: ClassVar[Callable[[np.ndarray], np.ndarray] | None] = None
    by_name: ClassVar[bool] = False
    least_slope = 1e-150

    def __init__(self, link: str | Mapping[str, str] | None = None, log_prob: str | None = None) -> None:
        own = _place(type(self).log_prob)
        if log_prob not in (None, own):
            raise DataError(
                f"The family `{self.name}` of the file has the log-probability `{log_prob}`, that of "
                f"this process `{own}`: make it with `ak.families.custom` from the same function."
            )
        super().__init__(link)

    def options(self) -> dict[str, Any]:
        return {"log_prob": _place(type(self).log_prob)}

    def __repr__(self) -> str:
        return f"<custom family {self.name}({', '.join(self.parameters)})>"

    @property
    def only_for_mini_batches(self) -> str | None:
        if type(self).makes_distribution is not None:
            return None
        return f"the family `{self.name}` was made without `distribution`, which exact updates rest on"

    def check_saved(self) -> None:
        """Raise a `DataError` where another process could not have the function."""
        function = type(self).log_prob
        module, _, name = _place(function).partition(":")
        found: Any = sys.modules.get(module)
        for part in name.split("."):
            found = getattr(found, part, None)
        if module == "__main__" or found is not function:
            raise DataError(
                f"The log-probability of the family `{self.name}`, `{_place(function)}`, cannot be "
                "imported by the process that loads the model. Write it with `def` at the top of a "
                "module, make the family there by `ak.families.custom(...)`, and import that module "
                "here and before loading."
            )

    # Likelihood ---------------------------------------------------------------------------------

    def log_density(self, y: Array, parameters: Parameters, xp: Namespace = np) -> Array:
        if xp is not np:
            return self._call(y, parameters)
        tensors = {name: _tensor(own) for name, own in parameters.items()}
        found = np.asarray(self._call(_tensor(y), tensors), float)
        return found + np.zeros(np.broadcast_shapes(found.shape, np.shape(y)))

    def _call(self, y: Array, parameters: Parameters) -> Array:
        function = type(self).log_prob
        own = {name: parameters[name] for name in self.links}
        return function(y, **own) if self.by_name else function(y, own)

    def score(self, y: np.ndarray, parameters: Parameters) -> dict[str, np.ndarray]:
        """By automatic differentiation."""
        import tensorflow as tf

        shape = np.broadcast_shapes(np.shape(y), *(np.shape(own) for own in parameters.values()))
        tensors = {name: _tensor(np.broadcast_to(own, shape)) for name, own in parameters.items()}
        with tf.GradientTape() as tape:
            for tensor in tensors.values():
                tape.watch(tensor)
            total = keras.ops.sum(self._call(_tensor(np.broadcast_to(y, shape)), tensors))
        slopes = tape.gradient(total, tensors, unconnected_gradients=tf.UnconnectedGradients.ZERO)
        return {name: np.asarray(slope) for name, slope in slopes.items()}

    def information(self, y: np.ndarray, parameters: Parameters) -> dict[str, np.ndarray]:
        """Expected squares of the score over quantiles of the distribution."""
        shape = np.broadcast_shapes(np.shape(y), *(np.shape(own) for own in parameters.values()))
        known = {name: np.broadcast_to(own, shape).ravel() for name, own in parameters.items()}
        rows = len(next(iter(known.values())))
        total = {name: np.zeros(rows) for name in known}
        for part in (slice(start, start + _ROWS) for start in range(0, rows, _ROWS)):
            some = {name: own[part] for name, own in known.items()}
            likely, weights = self._likely(self.distribution_of(some))
            for name, score in self.score(likely, some).items():
                total[name][part] = np.sum(weights * np.nan_to_num(score) ** 2, axis=0)
        return {name: own.reshape(shape) for name, own in total.items()}

    def _likely(self, distribution: Any) -> tuple[np.ndarray, np.ndarray]:
        """Responses `(m, n)` and weights that stand for a distribution: few counts, or quantiles."""
        quantiles = np.asarray(distribution.ppf(_CHANCES[:, None]), float)
        most = np.max(quantiles[-1], initial=0.0)
        if not self.discrete or most > _COUNTS:
            return quantiles, np.broadcast_to(_WEIGHTS[:, None], quantiles.shape)
        counts = np.arange(most + 1)[:, None] + np.zeros(quantiles.shape[1])
        return counts, np.exp(distribution.logpmf(counts))

    # Distribution -------------------------------------------------------------------------------

    def distribution_of(self, parameters: Parameters) -> Any:
        own = {name: parameters[name] for name in self.links}
        made = type(self).makes_distribution
        if made is not None:
            return made(own)
        return NumericDistribution(self.log_density, own, self.bounds, self.discrete, self.name)

    def support(self, y: np.ndarray) -> np.ndarray:
        inside = super().support(y)
        if self.discrete:
            inside &= y == np.floor(y)
        allowed = type(self).allowed
        if allowed is not None:
            inside &= np.asarray(allowed(y), bool)
        return inside

    def start_values(self, y: np.ndarray, weight: np.ndarray | None = None) -> dict[str, float]:
        """Those that were given, else the likeliest constants."""
        given = type(self).starts
        if given is None:
            return self._likeliest(y, weight)
        found = given(y) if callable(given) else given
        missing = [name for name in self.links if name not in found]
        if missing:
            raise DataError(f"`start` of the family `{self.name}` lacks the parameter `{missing[0]}`.")
        return {name: float(found[name]) for name in self.links}

    def _likeliest(self, y: np.ndarray, weight: np.ndarray | None) -> dict[str, float]:
        counted = np.ones(len(y)) if weight is None else np.asarray(weight, float)
        if len(y) > _START_ROWS:
            order = np.argsort(y, kind="stable")
            share = np.cumsum(counted[order]) / counted.sum()
            middles = (np.arange(_START_ROWS) + 0.5) / _START_ROWS
            y = y[order][np.searchsorted(share, middles)]
            counted = np.ones(len(y))
        first = np.array([_rough(link.name, y) for link in self.parameters.values()])

        def loss(etas: np.ndarray) -> float:
            known = dict(zip(self.parameters, etas, strict=True))
            with np.errstate(all="ignore"):
                values = {name: np.full(len(y), own) for name, own in self.inverse_links(known).items()}
                found = float(np.average(-self.log_density(y, values), weights=counted))
            return found if np.isfinite(found) else 1e300

        found = minimize(loss, first, method="Nelder-Mead", options={"maxiter": _START_STEPS})
        if found.fun >= 1e300:
            raise DataError(
                f"The log-probability of the family `{self.name}` is not finite at any parameters "
                "that were tried: give `start={...}`, a value of each parameter."
            )
        etas = dict(zip(self.parameters, found.x, strict=True))
        return {name: float(own) for name, own in self.inverse_links(etas).items()}


def custom(
    log_prob: Callable[..., Any],
    parameters: Mapping[str, str | Sequence[str]],
    *,
    name: str,
    support: tuple[float, float] | Callable[[np.ndarray], np.ndarray] = (-inf, inf),
    discrete: bool = False,
    start: Mapping[str, float] | Callable[[np.ndarray], Mapping[str, float]] | None = None,
    distribution: Callable[[dict[str, Any]], Any] | None = None,
) -> Family:
    """A family of a log-probability of one's own, registered under its name.

    Adam takes the log-probability as it is. Block solvers, which choose the smoothing and give
    intervals, average squares of its slopes over quantiles of `distribution`, and need one. Without it
    moments and quantiles of predictions are found from the log-probability by sums and integrals.

    Args:
        log_prob: log-density of each row, of a discrete response log-probability, with all constants,
            written in `keras.ops`: `log_prob(y, loc, scale)` by the names of the parameters, or
            `log_prob(y, parameters)` of a dict.
        parameters: by name the link, or links that may be chosen, the usual one first.
        name: what the family is called, in models and in files.
        support: closed interval of the responses, or a function of responses `(n,)` that says which of
            them are possible.
        discrete: whether the response is a whole number from 0 on.
        start: values of the parameters of the model without terms, or a function of the responses that
            gives them; by default the likeliest constants.
        distribution: of the parameters `(n,)` by name, with SciPy's methods.

    Returns:
        The family. A file of a model refers to the function by module and name, and loads where this
        was called before with the same one; nothing is imported.

    Raises:
        DataError: no function, parameters without links, a name that is taken.

    Example:
        >>> from keras import ops
        >>> def log_prob(y, loc, scale):
        ...     z = (y - loc) / scale
        ...     return -z - ops.exp(-z) - ops.log(scale)
        >>> custom(log_prob, {"loc": "identity", "scale": "log"}, name="gumbel")
        <custom family gumbel(loc, scale)>
    """
    if not callable(log_prob) or not hasattr(log_prob, "__qualname__"):
        raise DataError(f"`log_prob` must be a function of `(y, parameters)`. Received: {log_prob!r}.")
    if not isinstance(name, str) or not name:
        raise DataError(f"`name` of a family must be a text. Received: {name!r}.")
    links = _links(parameters)
    interval = (-inf, inf) if callable(support) else _interval(support)
    if discrete:
        interval = max(interval[0], 0.0), interval[1]
    own = {
        "name": name,
        "links": links,
        "bounds": interval,
        "support_text": _in_words(interval, discrete)
        + (", as `support` says" if callable(support) else ""),
        "discrete": discrete,
        "log_prob": staticmethod(log_prob),
        "makes_distribution": None if distribution is None else staticmethod(distribution),
        "starts": staticmethod(start) if callable(start) else start,
        "allowed": staticmethod(support) if callable(support) else None,
        "by_name": _takes_names(log_prob, links),
        "__doc__": log_prob.__doc__,
        "__module__": log_prob.__module__,
        "__qualname__": log_prob.__qualname__,
    }
    return register_family(type("".join(name.title().split()), (CustomFamily,), own))()


def _links(parameters: Any) -> dict[str, tuple[str, ...]]:
    if not isinstance(parameters, Mapping) or not parameters:
        raise DataError(
            '`parameters` of a custom family must be links by name, e.g. {"loc": "identity", "scale": '
            f'"log"}}. Received: {parameters!r}.'
        )
    found = {}
    for parameter, given in parameters.items():
        allowed = (given,) if isinstance(given, str) else tuple(given)
        unknown = [link for link in allowed if link not in LINKS]
        if unknown or not allowed:
            listed = ", ".join(f"`{link}`" for link in LINKS)
            raise DataError(
                f"Unknown link {unknown[0] if unknown else given!r} of the parameter `{parameter}`. "
                f"Known links: {listed}."
            )
        found[str(parameter)] = allowed
    return found


def _interval(support: Any) -> tuple[float, float]:
    try:
        low, high = (float(end) for end in support)
    except (TypeError, ValueError):
        low, high = inf, -inf
    if not low < high:
        raise DataError(
            f"`support` must be an interval `(low, high)`, or a function. Received: {support!r}."
        )
    return low, high


def _in_words(interval: tuple[float, float], discrete: bool) -> str:
    low, high = interval
    kind = "whole numbers " if discrete else ""
    if np.isfinite(low) and np.isfinite(high):
        return f"{kind}between {low:g} and {high:g}"
    if np.isfinite(low):
        return f"{kind}from {low:g} on"
    return f"at most {high:g}" if np.isfinite(high) else "finite"


def _takes_names(log_prob: Callable[..., Any], links: Links) -> bool:
    """Whether a function takes the parameters by their names, not in a dict."""
    taken = list(inspect.signature(log_prob).parameters)[1:]
    if set(links) <= set(taken):
        return True
    if len(taken) == 1:
        return False
    listed = ", ".join(links)
    raise DataError(
        f"`log_prob` must take `(y, {listed})`, or `(y, parameters)` with a dict of these. It takes: "
        f"{inspect.signature(log_prob)}."
    )


def _place(function: Callable[..., Any]) -> str:
    """Where a function can be imported from."""
    return f"{function.__module__}:{function.__qualname__}"


def _tensor(values: Any) -> Any:
    return keras.ops.convert_to_tensor(np.asarray(values, float))


def _rough(link: str, y: np.ndarray) -> float:
    """A predictor to start from: a location in the middle, a scale as wide as the responses."""
    if link == "identity":
        return float(np.median(y))
    size = max(float(np.std(y)), 1e-6 * max(float(np.max(np.abs(y))), 1e-6))
    if LINKS[link].range == (0, inf):
        return float(LINKS[link].function(np.asarray(size), np))
    return 0.0
