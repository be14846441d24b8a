"""Component-wise boosting of penalised splines: GAMBoost, and GA2MBoost with all pairs.

As in mboost: start at the mean; in each step fit every base learner to the residuals by penalised least
squares, take the one that leaves the smallest residual sum of squares, and add a tenth of it. All base
learners have the same degrees of freedom, so that those of pairs are not chosen for being more flexible.
The best number of steps is that with the smallest error on validation rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np
import pandas as pd

from ahofm_keras.bases import Basis, evaluate_basis, make_spline
from ahofm_keras.penalties import difference_penalty, orthogonalise, solve_smoothing

FUNCTIONS = 20
PAIR_FUNCTIONS = 8


@dataclass(frozen=True, eq=False)
class Learner:
    """A base learner: splines of one feature, or their products for two, with its hat matrix' inside.

    Args:
        features: one or two names.
        bases: of each of them.
        solution: coefficients are `solution @ (B'r)`, with r the residuals.
        gram: B'B.
    """

    features: tuple[str, ...]
    bases: tuple[Basis, ...]
    solution: np.ndarray
    gram: np.ndarray

    def design(self, frame: pd.DataFrame) -> np.ndarray:
        return products([evaluate_basis(b, frame[f].to_numpy(float)) for f, b in zip(
            self.features, self.bases, strict=True)])  # fmt: skip


def products(bases: Sequence[np.ndarray]) -> np.ndarray:
    """Row-wise Kronecker product, `(n, M1 M2)`."""
    found = bases[0]
    for basis in bases[1:]:
        found = (found[:, :, None] * basis[:, None, :]).reshape(len(found), -1)
    return found


def make_learner(features: tuple[str, ...], train: pd.DataFrame, df: float) -> Learner:
    """P-splines on even knots with difference penalty, at the lambda that df = tr(2H - H'H) asks for."""
    size = FUNCTIONS if len(features) == 1 else PAIR_FUNCTIONS
    bases = tuple(make_spline(train[name].to_numpy(float), size, knots="even") for name in features)
    design = products(
        [evaluate_basis(b, train[f].to_numpy(float)) for f, b in zip(features, bases, strict=True)]
    )
    single = difference_penalty(size)
    if len(features) == 1:
        penalty = single
    else:
        penalty = np.kron(single, np.eye(size)) + np.kron(np.eye(size), single)
    gram = design.T @ design
    # Where a feature has few values its functions are not all seen: a tiny ridge keeps them at zero.
    penalty = penalty + 1e-6 * np.eye(len(penalty))
    form = orthogonalise(gram, penalty, len(train))
    shrink = 1.0 if df >= form.rank else 1 / (1 + solve_smoothing(df, form) * form.eigenvalues)
    scaled = form.transform * np.where(form.supported, shrink, 0.0)
    return Learner(features, bases, scaled @ form.transform.T / len(train), gram)


@dataclass(frozen=True, eq=False)
class Boosted:
    """The path of a fit.

    Args:
        intercept: the mean of the training response.
        steps: learner and coefficients of each step, already shrunken.
        best: number of steps with the smallest validation error.
    """

    intercept: float
    steps: list[tuple[Learner, np.ndarray]]
    best: int

    def predict(self, frame: pd.DataFrame, steps: int | None = None) -> np.ndarray:
        """With the best number of steps, or another."""
        sums: dict[tuple[str, ...], tuple[Learner, np.ndarray]] = {}
        for learner, coefficients in self.steps[: self.best if steps is None else steps]:
            before = sums.get(learner.features, (learner, 0.0))[1]
            sums[learner.features] = (learner, before + coefficients)
        total = np.full(len(frame), self.intercept)
        for learner, coefficients in sums.values():
            total += learner.design(frame) @ coefficients
        return total


def boost(
    train: pd.DataFrame, y: np.ndarray, validation: pd.DataFrame, y_validation: np.ndarray, *,
    pairs: bool = False, df: float = 4.0, rate: float = 0.1, steps: int = 2000, patience: int = 200,
) -> Boosted:  # fmt: skip
    """Boost.

    Args:
        train: numeric features.
        y: response.
        validation: rows that decide when to stop.
        y_validation: their response.
        pairs: with a learner for each pair too (GA2MBoost).
        df: degrees of freedom of a learner.
        rate: share of a fitted learner that is added.
        steps: at most.
        patience: steps without a smaller validation error after which it stops.
    """
    subsets = [(name,) for name in train] + (list(combinations(train, 2)) if pairs else [])
    learners = [make_learner(subset, train, df) for subset in subsets]
    designs = [learner.design(train) for learner in learners]
    stacked = np.concatenate(designs, axis=1)
    ends = np.cumsum([0, *(design.shape[1] for design in designs)])
    intercept = float(np.mean(y))
    residuals, held = y - intercept, y_validation - intercept
    path: list[tuple[Learner, np.ndarray]] = []
    best, least = 0, float(np.mean(held**2))
    for step in range(1, steps + 1):
        scores = stacked.T @ residuals
        chosen, coefficients = choose(learners, [scores[a:b] for a, b in pairwise(ends)])
        path.append((learners[chosen], rate * coefficients))
        residuals = residuals - designs[chosen] @ path[-1][1]
        held = held - learners[chosen].design(validation) @ path[-1][1]
        error = float(np.mean(held**2))
        if error < least:
            best, least = step, error
        elif step - best >= patience:
            break
    return Boosted(intercept, path, best)


def choose(learners: list[Learner], scores: list[np.ndarray]) -> tuple[int, np.ndarray]:
    """The learner whose fit leaves the smallest residual sum of squares, and its coefficients.

    With g = B'r and c the coefficients, the residual sum of squares falls by 2 c'g - c'B'B c.
    """
    fits = [learner.solution @ g for learner, g in zip(learners, scores, strict=True)]
    gains = [
        2 * c @ g - c @ learner.gram @ c for learner, c, g in zip(learners, fits, scores, strict=True)
    ]
    chosen = int(np.argmax(gains))
    return chosen, fits[chosen]
