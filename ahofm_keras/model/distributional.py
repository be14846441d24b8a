"""The predicted distribution of the response: parameters, moments, quantiles, intervals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy import special

from ahofm_keras.errors import DataError
from ahofm_keras.families import Family
from ahofm_keras.intervals import band_of_link
from ahofm_keras.model.arguments import check_level

# Draws of the predictors that the band of a mean rests on, and rows that are drawn together.
_DRAWS = 1000
_ROWS = 2048

Spread = tuple[np.ndarray, np.ndarray]


class ResponseDistribution:
    """What a model says of the response of each row, at the posterior means of its predictors.

    Args:
        family: of the response.
        parameters: of each row, by name.

    Example:
        >>> import numpy as np
        >>> from ahofm_keras.families import get_family
        >>> known = {"loc": np.array([0.0, 1.0]), "scale": np.array([1.0, 2.0])}
        >>> ResponseDistribution(get_family("gaussian_ls"), known).quantile(0.5)
        array([0., 1.])
    """

    def __init__(self, family: Family, parameters: Mapping[str, np.ndarray]) -> None:
        self.family = family
        self.parameters = dict(parameters)
        self.scipy: Any = family.distribution_of(parameters)

    def __len__(self) -> int:
        return len(next(iter(self.parameters.values())))

    def __repr__(self) -> str:
        names = ", ".join(self.parameters)
        return f"<ResponseDistribution {self.family.name}({names}) of {len(self):,} rows>"

    def mean(self) -> np.ndarray:
        if self.family.nuisance:  # whose parameters alone do not say what the mean is
            return np.asarray(self.scipy.mean())
        return np.asarray(self.family.mean_of(self.parameters))

    def var(self) -> np.ndarray:
        return np.asarray(self.scipy.var())

    def std(self) -> np.ndarray:
        return np.sqrt(self.var())

    def cdf(self, y: Any) -> np.ndarray:
        """P(Y <= y) of each row."""
        return np.asarray(self.scipy.cdf(np.asarray(y, float)))

    def log_prob(self, y: Any) -> np.ndarray:
        """Log-density, of a discrete response log-probability."""
        self._check_density("density")
        y = np.asarray(y, float)
        log = self.scipy.logpmf if self.family.discrete else self.scipy.logpdf
        return np.asarray(log(y))

    def quantile(self, q: Any) -> np.ndarray:
        """Of each row; `(n,)` for one probability, `(n, len(q))` for several."""
        levels = [np.asarray(self.scipy.ppf(level)) for level in check_quantiles(q)]
        return levels[0] if np.ndim(q) == 0 else np.stack(levels, axis=-1)

    def interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """The central interval of a new response, as if the predictors were known exactly."""
        check_level("level", level)
        return self.quantile((1 - level) / 2), self.quantile((1 + level) / 2)

    def sample(self, size: int = 1, seed: Any = None) -> np.ndarray:
        """Responses `(size, n)`."""
        return np.asarray(self.scipy.rvs(size=(size, len(self)), random_state=seed))

    def crps(self, y: Any) -> np.ndarray:
        """Continuous ranked probability score of each response; less is better."""
        self._check_density("CRPS")
        return self.family.crps(np.asarray(y, float), self.parameters)

    def _check_density(self, what: str) -> None:
        if self.family.nuisance:
            raise DataError(
                "Survival curves have steps at the times of events and end where observation did, so "
                f"there is no {what}. They have `cdf`, `quantile`, `interval`, `sample`, and up to that "
                "end `mean` and `var`."
            )


def with_dispersion(
    family: Family, parameters: Mapping[str, np.ndarray], dispersion: Any
) -> dict[str, np.ndarray]:
    """Parameters with the dispersion of a family that estimates it beside them."""
    if family.dispersion_known:
        return dict(parameters)
    shape = np.shape(next(iter(parameters.values())))
    return {**parameters, "dispersion": np.broadcast_to(dispersion, shape)}


def check_quantiles(q: Any) -> list[float]:
    """Probabilities between 0 and 1."""
    levels = np.atleast_1d(np.asarray(q, dtype=object))
    numbers = all(isinstance(own, int | float | np.number) for own in levels)
    if not len(levels) or not numbers or any(not 0 < own < 1 for own in levels):
        raise DataError(f"`q` must be probabilities between 0 and 1, e.g. [0.1, 0.9]. Received: {q!r}.")
    return [float(own) for own in levels]


def row_slices(rows: int) -> Iterator[slice]:
    """Rows that are computed together."""
    return (slice(start, start + _ROWS) for start in range(0, rows, _ROWS))


def band_of_links(links: Mapping[str, Spread], level: float) -> pd.DataFrame:
    """Each predictor with standard error and credible band: `scale`, `scale_se`, `scale_lower`, ..."""
    columns: dict[str, Any] = {}
    for name, (mean, error) in links.items():
        band = band_of_link(mean, error, level)
        columns |= {name if own == "link" else f"{name}_{own}": band[own] for own in band}
    return pd.DataFrame(columns)


def band_of_each(family: Family, links: Mapping[str, Spread], level: float) -> dict[str, np.ndarray]:
    """Each parameter with its credible band, the band of its predictor: `scale`, `scale_lower`, ..."""
    columns: dict[str, np.ndarray] = {}
    for name, (mean, error) in links.items():
        link, band = family.parameters[name], band_of_link(mean, error, level)
        ends = [link.limit(band[own].to_numpy()) for own in ("lower", "upper")]
        lower, upper = ends if link.increasing else ends[::-1]
        own = np.asarray(link.inverse(mean, np))
        columns |= {name: own, f"{name}_lower": lower, f"{name}_upper": upper}
    return columns


def mean_band(
    family: Family, links: Mapping[str, Spread], tails: Iterable[float]
) -> tuple[np.ndarray, np.ndarray]:
    """Quantiles of the mean over draws of all predictors, the same draws for every row."""
    scores = special.ndtri((np.arange(_DRAWS) + 0.5) / _DRAWS)
    random = np.random.default_rng(0)
    draws = {name: random.permutation(scores)[:, None] for name in links}
    parts = []
    for rows in row_slices(len(next(iter(links.values()))[0])):
        etas = {name: m[rows] + draws[name] * s[rows] for name, (m, s) in links.items()}
        means = family.mean_of(family.inverse_links(etas))
        parts.append(np.quantile(means, list(tails), axis=0))
    lower, upper = np.concatenate([np.zeros((2, 0)), *parts], axis=1)
    return lower, upper
