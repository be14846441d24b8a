"""Which columns matter? `lasso()` and `ridge()` by the evidence, beside a lasso by cross-validation.

    python examples/benchmarks/lasso.py                  # both questions; ten minutes
    python examples/benchmarks/lasso.py --seeds 3        # fewer simulations
    python examples/benchmarks/lasso.py --only linear    # or `interactions`

`linear`: 50 columns, neighbours of correlation 0.7, noise of variance 1, of which none, 5, 10 (normal),
25 (normal) or all 50 (small) have an effect. Shown are the mean excess error (b - beta)' C (b - beta) of
a prediction, and how many coefficients are not 0. The peers are least squares and a lasso whose lambda
five-fold cross-validation chooses among 20, on the same standardised columns.

`interactions`: `ahofm()` of 20 features, of which 4 have an effect, beside `ahofm()` of these 4 alone. A
lasso that selected features without any mistake would reach the second, so their ratio is the most that
selecting them by a penalty could gain over what the evidence does already.
"""

from __future__ import annotations

import argparse
import os
import warnings

import numpy as np
import pandas as pd

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

FIRST_SEED = 100
COLUMNS = 50
EFFECTS = {"none": 0, "5 of 1": 5, "10 normal": 10, "25 normal": 25, "50 small": 50}
FOLDS, LAMBDAS = 5, 20


def simulate(name: str, rows: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Columns, response, effects, covariance of the columns."""
    rng = np.random.default_rng(seed)
    covariance = 0.7 ** np.abs(np.subtract.outer(range(COLUMNS), range(COLUMNS)))
    slopes, count = np.zeros(COLUMNS), EFFECTS[name]
    own = rng.choice(COLUMNS, count, replace=False)
    if name == "5 of 1":
        slopes[own] = rng.choice([-1.0, 1.0], count)
    else:
        slopes[own] = rng.normal(size=count) * (0.3 if name == "50 small" else 1.0)
    X = rng.normal(size=(rows, COLUMNS)) @ np.linalg.cholesky(covariance).T
    return X, X @ slopes + rng.normal(size=rows), slopes, covariance


def by_cross_validation(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The lasso whose lambda has the least error on rows that were left out."""
    from ahofm_keras.solvers.norms import descend

    scale = X.std(axis=0)
    Z, z = (X - X.mean(axis=0)) / scale, y - y.mean()
    largest = np.abs(Z.T @ z).max() / len(z)
    lambdas = largest * np.logspace(0, -2.5, LAMBDAS)
    groups = [slice(k, k + 1) for k in range(COLUMNS)]

    def solve(rows: np.ndarray, smoothing: float) -> np.ndarray:
        own, response = Z[rows], z[rows]
        strengths = np.full(COLUMNS, len(own) * smoothing)
        return descend(own.T @ own, own.T @ response, groups, strengths)

    fold, errors = np.arange(len(z)) % FOLDS, np.zeros(LAMBDAS)
    for left_out in range(FOLDS):
        test = fold == left_out
        found = [solve(~test, smoothing) for smoothing in lambdas]
        errors += [np.sum((z[test] - Z[test] @ slopes) ** 2) for slopes in found]
    return solve(np.ones(len(z), bool), lambdas[errors.argmin()]) / scale


def by_evidence(X: np.ndarray, y: np.ndarray, term: str) -> np.ndarray:
    """The coefficients of a model with one term of all columns."""
    import ahofm_keras as ak

    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(COLUMNS)]).assign(y=y)
    model = ak.AdditiveModel(f"y ~ {term}", frame)
    model.fit(frame, verbose=0)
    return ak.coef(model).to_numpy()[1:]


def linear(seeds: int) -> pd.DataFrame:
    """Excess errors and numbers of coefficients, a row per simulation."""
    found = []
    for rows in (100, 400):
        for name in EFFECTS:
            for seed in range(FIRST_SEED, FIRST_SEED + seeds):
                X, y, slopes, covariance = simulate(name, rows, seed)
                fits = {
                    "least squares": by_evidence(X, y, "."),
                    "ridge()": by_evidence(X, y, "ridge(.)"),
                    "lasso()": by_evidence(X, y, "lasso(.)"),
                    "lasso, cv": by_cross_validation(X, y),
                }
                for method, own in fits.items():
                    error = (own - slopes) @ covariance @ (own - slopes)
                    kept = np.count_nonzero(own)
                    found.append((rows, name, method, error, kept))
    frame = pd.DataFrame(found, columns=["rows", "effects", "method", "excess error", "not 0"])
    return frame.groupby(["rows", "effects", "method"], sort=False).mean().unstack()


def interactions(seeds: int) -> pd.DataFrame:
    """Errors against the true mean of `ahofm()` of all features and of those with an effect."""
    import ahofm_keras as ak

    found = []
    for seed in range(FIRST_SEED, FIRST_SEED + seeds):
        rng = np.random.default_rng(seed)
        names = [f"x{k}" for k in range(20)]
        train, test = (pd.DataFrame(rng.uniform(size=(n, 20)), columns=names) for n in (500, 2000))
        mean = {
            id(part): np.sin(5 * part.x0) + 2 * part.x1 * part.x2 + (part.x3 - 0.5) ** 2 * 3 * part.x0
            for part in (train, test)
        }
        train = train.assign(y=mean[id(train)] + 0.5 * rng.normal(size=len(train)))
        row = []
        for features in (names, names[:4]):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ak.AhofmWarning)
                model = ak.AdditiveModel(f"y ~ ahofm({', '.join(features)})", train, seed=seed)
                model.fit(train, verbose=0)
                predicted = model.predict(test)
            row.append(float(np.sqrt(np.mean((predicted - mean[id(test)]) ** 2))))
        found.append((*row, row[0] / row[1]))
    columns = ["all 20 features", "the 4 with an effect", "ratio"]
    return pd.DataFrame(found, columns=columns, index=range(FIRST_SEED, FIRST_SEED + seeds))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--only", choices=("linear", "interactions"))
    given = parser.parse_args()
    if given.only != "interactions":
        print(linear(given.seeds).round(3).to_string())
    if given.only != "linear":
        frame = interactions(min(given.seeds, 5))
        print(frame.round(3).to_string())
        print("mean ratio", round(float(frame["ratio"].mean()), 3))


if __name__ == "__main__":
    main()
