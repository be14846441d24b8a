"""Simulated data of the kinds that real tables are of, each with a known mean."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit

from comparison.problems import SIMULATED_FEATURES, Split, steps

sys.path.append(str(Path(__file__).parents[2] / "paper"))
from rerun.simulation import PairTruth, draw_rows, draw_truth

FRESH_ROWS = 20_000
SIGNAL_TO_NOISE = 0.5

Frame = pd.DataFrame


@dataclass(frozen=True)
class Kind:
    """What is simulated.

    Args:
        rows: training rows, by default.
        full: training rows of a full run.
        draw: features of so many rows.
        predictor: of features, on the scale of the link: identity, logit or log.
        family: of the response.
        noise: standard deviation of a gaussian response.
        stepped: whether the truth jumps, which splines are not made for.
    """

    rows: int
    full: int
    draw: Callable[[np.random.Generator, int], Frame]
    predictor: Callable[[Frame], np.ndarray]
    family: str = "gaussian"
    noise: float = 1.0
    stepped: bool = False

    def mean(self, data: Frame) -> np.ndarray:
        eta = self.predictor(data)
        return {"gaussian": eta, "bernoulli": expit(eta), "poisson": np.exp(eta)}[self.family]

    def respond(self, mean: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        if self.family == "bernoulli":
            return rng.binomial(1, mean)
        return rng.poisson(mean) if self.family == "poisson" else rng.normal(mean, self.noise)


def simulate_kind(name: str, rows: int, seed: int) -> Split:
    """So many training rows, and fresh rows with their true means."""
    kind, rng = KINDS[name], np.random.default_rng([seed, rows])
    train, fresh = kind.draw(rng, rows), kind.draw(rng, FRESH_ROWS)
    truth = kind.mean(fresh)
    train["y"], fresh["y"] = kind.respond(kind.mean(train), rng), kind.respond(truth, rng)
    return Split(train, fresh, "y", seed, kind.family, truth)


def simulate_pairs(features: int, rows: int, seed: int) -> Split:
    """The paper's section 5.1: a surface of full rank for each pair, half as much signal as noise."""
    truth = draw_truth(features, seed)
    train = draw_rows(truth, rows, SIGNAL_TO_NOISE, seed)
    fresh = draw_rows(truth, FRESH_ROWS, SIGNAL_TO_NOISE, seed + 10_000)
    return Split(train, fresh, "y", seed, truth=truth.mean(fresh))


def uniform(features: int) -> Callable[[np.random.Generator, int], Frame]:
    names = [f"x{j + 1}" for j in range(features)]
    return lambda rng, rows: pd.DataFrame(rng.uniform(size=(rows, features)), columns=names)


# ------------------------------------------------------------------------------------- heavy tails


def draw_heavy(rng: np.random.Generator, rows: int) -> Frame:
    """Amounts over several powers of ten, two of them correlated, and changes with two tails."""
    income = rng.lognormal(0, 1.2, size=rows)
    return pd.DataFrame(
        {
            "income": income,
            "wealth": income**0.7 * rng.lognormal(0, 1, size=rows),
            "loss": 1 + rng.pareto(1.5, size=rows),
            "change": rng.standard_t(2, size=rows),
            "drift": rng.standard_t(3, size=rows),
            "size": np.exp(rng.standard_t(4, size=rows)),
        }
    )


def heavy(x: Frame) -> np.ndarray:
    """Effects that level off in the tails; two pairs and a triple."""
    income, wealth, change = np.log(x.income), np.log(x.wealth), np.arctan(x.change)
    loss = np.log(x.loss) / (1 + np.log(x.loss))
    mains = np.sin(1.5 * income) + 0.8 * change + 0.5 * np.tanh(wealth)
    pairs = 1.2 * loss * change + 0.7 * np.tanh(income) * np.tanh(wealth)
    return (mains + pairs + 0.7 * np.tanh(income) * change * np.tanh(x.drift)).to_numpy()


# ------------------------------------------------------------------------------------------ heaps

# Values that many rows share: their shares of all rows, and what they add to the log-odds.
HOURS = {
    40: (0.47, 0.5),
    50: (0.10, 0.7),
    45: (0.06, 0.2),
    60: (0.05, 0.6),
    35: (0.04, -0.3),
    20: (0.04, -0.8),
}
GAINS = {
    0: (0.91, 0.0), 7298: (0.012, 3.0), 15024: (0.012, 4.0), 7688: (0.010, 3.0), 3103: (0.006, 2.5),
    5178: (0.006, 3.0), 3325: (0.005, -2.0), 2174: (0.005, -2.5), 4064: (0.004, -2.0),
}  # fmt: skip


def heap(
    rng: np.random.Generator, others: np.ndarray, heaps: dict[int, tuple[float, float]]
) -> np.ndarray:
    """Numbers, of which shares are replaced by the shared values."""
    shares = [share for share, _ in heaps.values()]
    choice = rng.choice(len(heaps) + 1, size=len(others), p=[*shares, 1 - sum(shares)])
    return np.where(choice < len(heaps), np.array([*heaps, 0])[choice], others)


def draw_heaped(rng: np.random.Generator, rows: int) -> Frame:
    """A survey: hours of work, most of them 40; gains, most of them 0; ages in whole years."""
    hours = np.clip(np.round(rng.normal(40, 14, size=rows)), 1, 99)
    gains = np.round(rng.lognormal(8, 1, size=rows))
    return pd.DataFrame(
        {
            "age": np.floor(17 + 73 * rng.beta(1.4, 2.8, size=rows)),
            "schooling": rng.binomial(15, 0.62, size=rows) + 1.0,
            "hours": heap(rng, hours, HOURS).astype(float),
            "gain": heap(rng, gains, GAINS).astype(float),
            "weight": rng.lognormal(12, 0.5, size=rows),
        }
    )


def heaped(x: Frame) -> np.ndarray:
    """Smooth effects, a pair, and what the shared values add."""
    age = (x.age - 48) / 15
    smooth = -1.8 - 0.8 * age**2 + 0.3 * (x.schooling - 10) + np.tanh((x.hours - 40) / 20)
    pair = 0.15 * (x.schooling - 10) * np.tanh(age)
    shared = sum(x[name].map({value: effect for value, (_, effect) in heaps.items()}).fillna(0)
                 for name, heaps in (("hours", HOURS), ("gain", GAINS)))  # fmt: skip
    return (smooth + pair + shared).to_numpy()


# --------------------------------------------------------------------------------------- counts


def draw_counts(rng: np.random.Generator, rows: int) -> Frame:
    """Insured cars: whole years and powers, a bonus of 50 in most rows, densities with a long tail."""
    bonus = np.where(rng.uniform(size=rows) < 0.55, 50, np.round(50 + rng.gamma(1.2, 20, size=rows)))
    return pd.DataFrame(
        {
            "driver_age": np.floor(18 + 70 * rng.beta(1.8, 3, size=rows)),
            "car_age": np.floor(rng.gamma(1.6, 4.4, size=rows)),
            "power": 4.0 + rng.binomial(11, 0.22, size=rows),
            "bonus": np.minimum(bonus, 230).astype(float),
            "density": np.round(rng.lognormal(6, 1.8, size=rows)) + 1,
            "premium": rng.uniform(size=rows),
        }
    )


def counts(x: Frame) -> np.ndarray:
    """A tenth of an event a row; effects of a third of that, pairs weaker still, and a triple."""
    youth, bonus = np.exp(-(x.driver_age - 18) / 8), np.log(x.bonus / 50)
    density, car = (np.log(x.density) - 6) / 1.8, np.exp(-x.car_age / 3)
    mains = 0.5 * youth + 0.6 * bonus + 0.12 * density + 0.25 * car - 0.1 * np.cos(0.09 * x.driver_age)
    pairs = 0.15 * np.tanh(density) * (x.power - 6.4) / 1.4 + 0.5 * youth * (x.power - 6.4) / 1.4
    return (
        -2.5 + mains + pairs + 0.2 * np.sin(3 * x.premium) * np.tanh(density) * (car - 0.3)
    ).to_numpy()


# -------------------------------------------------------------------------- many rows, pairs, map


def waves(x: Frame) -> np.ndarray:
    """Smooth, but with more turns than twenty functions can follow."""
    mains = np.sin(25 * x.x1 + 12 * x.x1**2) + 2 * x.x2**2
    pairs = np.sin(9 * x.x3) * np.cos(7 * x.x4) + np.sin(6 * x.x1 * x.x2)
    return (mains + pairs + 2 * np.sin(4 * x.x5) * np.cos(5 * x.x6) * (x.x7 - 0.5)).to_numpy()


@cache
def pair_truth() -> PairTruth:
    """The surfaces of all pairs of the paper's section 5.1, each of full rank."""
    return draw_truth(8, seed=0)


TOWNS = 40


@cache
def towns() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Places `(TOWNS, 2)` along a coast, their widths and their heights."""
    rng = np.random.default_rng(1990)
    along = rng.uniform(size=TOWNS)
    inland = 0.12 * rng.exponential(size=TOWNS)
    places = np.column_stack([-124 + 8 * along + 2 * inland, 41.5 - 8 * along + 3 * inland])
    return (
        places,
        np.exp(rng.uniform(np.log(0.06), np.log(0.8), size=TOWNS)),
        rng.gamma(2, 0.5, size=TOWNS),
    )


def draw_map(rng: np.random.Generator, rows: int) -> Frame:
    """Houses in and around towns, with coordinates of two decimals; ages end in a heap."""
    places = towns()[0]
    at = places[rng.integers(TOWNS, size=rows)]
    spread = rng.choice([0.1, 0.4], size=rows)[:, np.newaxis] * rng.normal(size=(rows, 2))
    where = np.round(at + spread, 2)
    return pd.DataFrame(
        {
            "longitude": where[:, 0],
            "latitude": where[:, 1],
            "age": np.minimum(np.floor(rng.gamma(5, 6, size=rows)), 52),
            "rooms": rng.lognormal(7.5, 0.7, size=rows),
            "income": rng.gamma(4, 1, size=rows),
        }
    )


def on_map(x: Frame) -> np.ndarray:
    """A bump of its own width for each town, cut off by the coast's direction, and income."""
    places, widths, heights = towns()
    where = x[["longitude", "latitude"]].to_numpy()
    surface = np.zeros(len(x))
    for place, width, height in zip(places, widths, heights, strict=True):
        surface += height * np.exp(-np.sum((where - place) ** 2, axis=1) / (2 * width**2))
    income = np.log1p(x.income.to_numpy())
    return surface + income * (1 + 0.3 * np.tanh(surface - 1)) + 0.1 * np.log(x.rooms.to_numpy() / 1800)


KINDS = {
    "heavy-tails": Kind(8_000, 20_000, draw_heavy, heavy, noise=0.7),
    "heaps": Kind(16_000, 40_000, draw_heaped, heaped, family="bernoulli"),
    "weak-counts": Kind(60_000, 540_000, draw_counts, counts, family="poisson"),
    "many-rows": Kind(40_000, 400_000, uniform(8), waves),
    "full-rank": Kind(10_000, 20_000, uniform(8), lambda x: pair_truth().mean(x)),
    "map": Kind(12_000, 16_500, draw_map, on_map, noise=0.4),
    "stepped": Kind(
        10_000, 20_000, uniform(SIMULATED_FEATURES), lambda x: steps(x.to_numpy()), stepped=True
    ),
}
