"""Are there wild predictions where features are in their tails together?

    python examples/benchmarks/wild.py                # 200 designs: twenty minutes
    python examples/benchmarks/wild.py --designs 20

Simulated designs with heavy-tailed features (Student's t, Cauchy, log-normal, outliers; independent or
correlated), 300 to 3,000 rows, 3 to 8 features, interactions up to order 2, 3 or 4, gaussian, Poisson,
gamma and Bernoulli responses. The default model predicts 10,000 fresh rows of each design. A design is
wild where a prediction leaves the range of the training responses by more than the width of that range.
Beside each figure stands what it would be if predictors were not held within their training range.

The error is the root mean squared distance of the predictions from the true mean over the standard
deviation of that mean, both of the fresh rows but for the hundredth where the true mean is furthest from
its median: of some heavy-tailed means the variance is that of a few rows.
"""

from __future__ import annotations

import argparse
import logging
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from scipy import stats

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
logging.getLogger("tensorflow").setLevel(logging.ERROR)  # many models in one process are what is wanted

FRESH_ROWS = 10_000
_FAMILIES = ("gaussian", "gaussian", "gaussian", "gaussian", "poisson", "gamma", "bernoulli")
# Share of rows in which an outlier replaces the value.
_OUTLIERS = 0.005

# Normal scores -> features of a distribution with long tails.
_MARGINS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "t, 3 df": lambda z: stats.t(3).ppf(stats.norm.cdf(z)),
    "t, 2 df": lambda z: stats.t(2).ppf(stats.norm.cdf(z)),
    "Cauchy": lambda z: stats.cauchy.ppf(stats.norm.cdf(z)),
    "log-normal": np.exp,
    "wide log-normal": lambda z: np.exp(1.5 * z),
    "normal": lambda z: z,
}
# Functions of a feature that is in units of its quartiles: with tails, and without.
_SHAPES: tuple[Callable[[np.ndarray], np.ndarray], ...] = (
    lambda x: x,
    np.tanh,
    np.sin,
    lambda x: np.sign(x) * np.log1p(np.abs(x)),
    lambda x: np.exp(-(x**2) / 2),
    lambda x: np.sqrt(1 + x**2),
)


@dataclass(frozen=True, eq=False)
class Design:
    """One simulated design.

    Args:
        train: training rows, with the response `y`.
        fresh: further rows of the same distribution.
        mean: true mean of the response in these.
        family: of the response.
        order: D, the largest order of the interactions that are fitted.
        margins: name of the distribution of the features.
    """

    train: pd.DataFrame
    fresh: pd.DataFrame
    mean: np.ndarray
    family: str
    order: int
    margins: str


def simulate(seed: int) -> Design:
    """The design of a number."""
    rng = np.random.default_rng(seed)
    rows = int(np.exp(rng.uniform(np.log(300), np.log(3000))))
    order = 2 + seed % 3
    count = int(rng.integers(max(order, 3), 9))
    family = _FAMILIES[int(rng.integers(len(_FAMILIES)))]
    margins = list(_MARGINS)[int(rng.integers(len(_MARGINS)))]
    features = _features(rng, rows + FRESH_ROWS, count, _MARGINS[margins])
    signal = _signal(rng, features)
    centre, spread = np.median(signal[:rows]), np.std(_trimmed(signal[:rows]))
    mean, response = _respond(rng, family, (signal - centre) / spread)
    frame = pd.DataFrame(features, columns=[f"x{j}" for j in range(count)])
    train = frame[:rows].assign(y=response[:rows])
    return Design(train, frame[rows:].reset_index(drop=True), mean[rows:], family, order, margins)


def _features(
    rng: np.random.Generator, rows: int, count: int, margin: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    """Features with one margin, correlated by a common part of their normal scores."""
    common = rng.choice([0.0, 0.5, 0.9])
    scores = np.sqrt(common) * rng.standard_normal((rows, 1))
    scores = scores + np.sqrt(1 - common) * rng.standard_normal((rows, count))
    features = margin(scores)
    if rng.uniform() < 0.3:
        outlying = rng.uniform(size=features.shape) < _OUTLIERS
        features = np.where(outlying, features * rng.uniform(5, 50, features.shape), features)
    return features


def _signal(rng: np.random.Generator, features: np.ndarray) -> np.ndarray:
    """Main effects of all features, some pairs and perhaps a triple."""
    low, middle, high = np.quantile(features, [0.25, 0.5, 0.75], axis=0)
    scaled = 1.35 * (features - middle) / (high - low)
    draw = lambda j: _SHAPES[int(rng.integers(len(_SHAPES)))](scaled[:, j])  # noqa: E731
    total = sum(rng.normal() * _unit(draw(j)) for j in range(features.shape[1]))
    pairs = list(combinations(range(features.shape[1]), 2))
    for place in rng.permutation(len(pairs))[: int(rng.integers(0, 4))]:
        i, j = pairs[place]
        total = total + rng.normal() * _unit(draw(i)) * _unit(draw(j))
    if rng.uniform() < 0.3:
        i, j, k = rng.permutation(features.shape[1])[:3]
        total = total + rng.normal() * _unit(draw(i)) * _unit(draw(j)) * _unit(draw(k))
    return np.asarray(total)


def _unit(values: np.ndarray) -> np.ndarray:
    """Centred, in units of the spread of most rows."""
    centred = values - np.median(values)
    return np.asarray(centred / np.std(_trimmed(centred)))


def _trimmed(values: np.ndarray) -> np.ndarray:
    """Without the hundredth furthest from the median."""
    return values[_is_usual(values)]


def _is_usual(values: np.ndarray) -> np.ndarray:
    far = np.abs(values - np.median(values))
    return np.asarray(far <= np.quantile(far, 0.99))


def _respond(rng: np.random.Generator, family: str, signal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """True means and responses; the predictor of those with a logarithm is bounded."""
    if family == "gaussian":
        noise = rng.choice([0.1, 0.5, 1.0])
        return signal, signal + noise * rng.standard_t(5, len(signal))
    if family == "bernoulli":
        mean = 1 / (1 + np.exp(-np.clip(2 * signal, -30, 30)))
        return mean, rng.binomial(1, mean).astype(float)
    mean = np.exp(3 * np.tanh(signal / 3) + 1)
    if family == "poisson":
        return mean, rng.poisson(mean).astype(float)
    return mean, mean * rng.gamma(4.0, 0.25, len(mean))


def beyond(predicted: np.ndarray, response: np.ndarray) -> float:
    """How far predictions leave the range of a response, in widths of that range."""
    if not np.isfinite(predicted).all():
        return np.inf
    low, high = response.min(), response.max()
    return float(max(0.0, low - predicted.min(), predicted.max() - high) / (high - low))


def error(predicted: np.ndarray, mean: np.ndarray) -> float:
    """Root mean squared error over the standard deviation of the true mean, of usual rows."""
    usual = _is_usual(mean)
    return float(np.sqrt(np.mean((predicted - mean)[usual] ** 2)) / np.std(mean[usual]))


def fit_design(design: Design, seed: int, **arguments: object) -> tuple[np.ndarray, np.ndarray]:
    """Predictions of the default model for the fresh rows, and what they would be without its limit."""
    import keras

    import ahofm_keras as ak
    from ahofm_keras.decomposition import Parts
    from ahofm_keras.decomposition.read_rows import functions_on

    keras.utils.clear_session(free_memory=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ak.AhofmWarning)  # fresh rows outside the training range
        formula = f"y ~ ahofm(., D={design.order})"
        model = ak.AdditiveModel(formula, design.train, family=design.family, seed=seed)
        model.fit(design.train, verbose=0, **arguments)
        link, parts = model.predict(design.fresh, type="link"), Parts(model)
        free = link - parts.limit(functions_on(parts, model.read_inputs(design.fresh)))
        return tuple(np.asarray(model.family.inverse_link(own, np)) for own in (link, free))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--designs", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="number of the first design")
    parser.add_argument("--restarts", type=int, default=None, help="further starts, default as in `fit`")
    options = parser.parse_args()
    arguments = {} if options.restarts is None else {"restarts": options.restarts}
    results = []
    for seed in range(options.first, options.first + options.designs):
        design = simulate(seed)
        y, both = design.train["y"].to_numpy(), fit_design(design, seed, **arguments)
        left, errors = [beyond(own, y) for own in both], [error(own, design.mean) for own in both]
        results.append((design.order, *left, *errors))
        print(
            f"{seed:4d}  D={design.order} p={design.fresh.shape[1]} n={len(design.train):4d} "
            f"{design.family:9s} {design.margins:15s} beyond {left[0]:.3g} ({left[1]:.3g})  "
            f"error {errors[0]:.3f} ({errors[1]:.3f}){'  wild' if left[0] > 1 else ''}",
            flush=True,
        )
    print(summarise(results))


def summarise(results: list[tuple[int, float, float, float, float]]) -> str:
    """A line per order and one for all, from order, widths beyond the range and errors of designs."""
    table = pd.DataFrame(results, columns=["D", "beyond", "free_beyond", "error", "free_error"])
    groups = [(f"D={order}", own) for order, own in table.groupby("D")] + [("all", table)]
    lines = []
    for name, own in groups:
        wild, free = int((own.beyond > 1).sum()), int((own.free_beyond > 1).sum())
        tame = own[own.free_beyond <= 1]
        ratio = np.exp(np.log(tame.error / tame.free_error).mean())
        lines.append(
            f"{name}: {wild} of {len(own)} designs wild ({free}), furthest {own.beyond.max():.3g} "
            f"widths beyond the range ({own.free_beyond.max():.3g}), median error "
            f"{own.error.median():.4f} ({own.free_error.median():.4f}), mean ratio of "
            f"errors where none is wild {ratio:.4f}"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
