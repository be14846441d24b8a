"""How do price and noise move the ratings of a hotel, from one star to five?

Ratings have an order and no distances: two stars are not twice one. An ordinal model has one predictor
for how content guests are, and thresholds between the stars. It says how likely each rating is, also
where a mean of stars with a normal spread would put guests above five. The guests are simulated, so
the true chances are known.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit
from scipy.stats import norm
from telling import BLUE, GREY, INK, VERMILLION, picture, read_arguments

import ahofm_keras as ak

THRESHOLDS = np.array([-2.2, -1.0, 0.4, 2.0])
STARS = np.arange(1, 6)
TERMS = "ahofm(price, noise, D=2) + breakfast"
COLOURS = (VERMILLION, "#E69F00", "#DDDDDD", "#56B4E9", BLUE)


def content(data: pd.DataFrame) -> np.ndarray:
    """How content guests are: noise is worse the more they paid."""
    dear, loud = (data["price"] - 120) / 60, (data["noise"] - 45) / 12
    return np.asarray(
        1 - 0.3 * dear - 1.1 * loud - 0.7 * dear * loud + 0.8 * (data["breakfast"] == "good")
    )


def chances(data: pd.DataFrame) -> np.ndarray:
    """The true chance of each number of stars."""
    below = expit(THRESHOLDS - content(data)[:, None])
    return np.diff(below, prepend=0, append=1, axis=1)


def simulate_guests(rows: int, seed: int = 5) -> pd.DataFrame:
    """Ratings of guests."""
    rng = np.random.default_rng(seed)
    data = pd.DataFrame({"price": rng.uniform(50, 250, rows), "noise": rng.uniform(28, 70, rows)})
    data["breakfast"] = rng.choice(["good", "plain"], rows, p=[0.4, 0.6])
    data["stars"] = 1 + (content(data) + rng.logistic(size=rows) > THRESHOLDS[:, None]).sum(axis=0)
    return data


def rounded_normal(mean: np.ndarray, spread: float) -> np.ndarray:
    """Chances of stars where a normal response is rounded to the nearest star."""
    below = norm.cdf((STARS[:-1] + 0.5 - mean[:, None]) / spread)
    return np.diff(below, prepend=0, append=1, axis=1)


def ranked_score(found: np.ndarray, stars: pd.Series) -> float:
    """Mean ranked probability score: squared gaps of cumulative chances."""
    reached = stars.to_numpy()[:, None] <= STARS
    return float(np.mean(np.sum((found.cumsum(axis=1) - reached)[:, :-1] ** 2, axis=1)))


def main() -> dict[str, float]:
    telling = read_arguments(__doc__)
    rows = 900 if telling.quick else 3000
    data, test = simulate_guests(rows), simulate_guests(4000, seed=6)
    model = ak.AdditiveModel(f"stars ~ {TERMS}", data, family="ordinal")
    model.fit(data, restarts=0, verbose=0)
    numbers = ak.AdditiveModel(f"stars ~ {TERMS}", data)
    numbers.fit(data, restarts=0, verbose=0)
    spread = float(np.std(data["stars"] - numbers.predict(data)))
    print(f"{rows:,} guests to learn from, {len(test):,} to test on\n")

    found = {
        "ordinal": model.predict(test).to_numpy(),
        "mean and normal spread": rounded_normal(numbers.predict(test), spread),
        "truth": chances(test),
    }
    print("Ranked probability score of new guests, and mean error of the chances")
    scores = {name: ranked_score(own, test["stars"]) for name, own in found.items()}
    errors = {name: float(np.abs(own - found["truth"]).mean()) for name, own in found.items()}
    for name in found:
        print(f"    {name:24s} {scores[name]:.4f}   {errors[name]:.3f}")

    noise = np.linspace(30, 68, 100)
    rooms = pd.DataFrame({"price": 200.0, "noise": noise, "breakfast": "plain"})
    band = model.predict(rooms, interval=0.95)
    true = chances(rooms)
    inside = float(((band["1_lower"] <= true[:, 0]) & (true[:, 0] <= band["1_upper"])).mean())
    print(f"\nThe 95 % band of the chance of one star holds the truth at {inside:.0%} of the noises")
    draw(noise, model.predict(rooms).to_numpy(), true, band, telling.out / "ratings.png")
    return {**{f"error of {name}": own for name, own in errors.items()}, **scores, "inside": inside}


def draw(noise: np.ndarray, found: np.ndarray, true: np.ndarray, band: pd.DataFrame, path: Path) -> None:
    title = "What guests of a room at 200 euros will say, by its noise at night"
    with picture(path, title, (11, 4.6), ncols=2) as (left, right):
        left.stackplot(noise, found.T, colors=COLOURS, alpha=0.8)
        left.plot(noise, true.cumsum(axis=1)[:, :-1], color=INK, linewidth=1, linestyle="--")
        for place, star in enumerate(STARS):
            best = int(np.clip(found[:, place].argmax(), 6, len(noise) - 8))
            middle = found[best, :place].sum() + found[best, place] / 2
            left.text(noise[best], middle, f"{star}", ha="center", va="center", fontweight="bold")
        left.set(title="chance of 1 to 5 stars; dashed: truth", xlabel="noise in dB", ylabel="chance")
        left.set(xlim=(noise[0], noise[-1]), ylim=(0, 1))
        for star, colour in ((1, VERMILLION), (5, BLUE)):
            right.fill_between(
                noise, band[f"{star}_lower"], band[f"{star}_upper"], color=colour, alpha=0.2
            )
            right.plot(noise, band[star], color=colour, label=f"{star} star{'s' if star > 1 else ''}")
            right.plot(noise, true[:, star - 1], color=INK, linewidth=1, linestyle="--")
        right.plot([], [], color=GREY, linestyle="--", label="truth")
        right.set(title="the worst and the best, with 95 % bands", xlabel="noise in dB", ylabel="chance")
        right.set(xlim=(noise[0], noise[-1]), ylim=(0, None))
        right.legend()


if __name__ == "__main__":
    main()
