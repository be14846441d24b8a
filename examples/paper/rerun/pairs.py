"""Fits to the surfaces of all pairs: the exact model, mgcv and additive factorization machines."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from rerun import mgcv
from rerun.output import Run, Store
from rerun.simulation import Pair, PairTruth, draw_rows, draw_truth, pure

GRID = 30
FRESH_ROWS = 10_000
EXACT, MGCV = "exact ti", "mgcv bam"
# Enough for the true surfaces; the same number of functions for both exact models.
MARGIN = 7

Surfaces = dict[Pair, np.ndarray]


@dataclass(frozen=True)
class PairSize:
    """Of the experiments on estimation and prediction.

    Args:
        features: p.
        rows: numbers of training rows.
        ranks: values of F.
        seeds: number of simulations, from seed 0.
        solvers: for the factorization machines.
        signal_to_noise: variance of the mean over that of the noise.
    """

    features: int = 5
    rows: tuple[int, ...] = (2000, 4000, 8000)
    ranks: tuple[int, ...] = (1, 5, 15)
    seeds: int = 10
    solvers: tuple[str, ...] = ("variational", "adam")
    signal_to_noise: float = 0.5


SIZES = {
    "full": PairSize(),
    "quick": PairSize(rows=(2000, 4000), seeds=2),
    "tiny": PairSize(features=3, rows=(150,), ranks=(1, 2), seeds=1, solvers=("variational",)),
}


@dataclass(frozen=True)
class Method:
    """A way to fit. `rank` and `solver` are None for the exact models."""

    label: str
    rank: int | str | None = None
    solver: str | None = None


def methods(size: PairSize) -> list[Method]:
    """All methods of a run; mgcv and `ti` as far as they are there."""
    exact = [Method(EXACT)] if has_ti() else []
    exact += [Method(MGCV)] if mgcv.is_present() else []
    if not exact:
        raise SystemExit("Neither `ti` nor mgcv is there: nothing to hold the surfaces against.")
    machines = [Method(f"AFM F={f}, {s}", f, s) for s in size.solvers for f in size.ranks]
    return exact + machines


def has_ti() -> bool:
    """Whether this version of the library knows exact tensor products."""
    import ahofm_keras as ak
    import ahofm_keras.model  # with TensorFlow, before time is taken

    try:
        ak.parse_formula("y ~ ti(x1, x2)")
    except ak.FormulaError:
        return False
    return True


def measure(
    truth: PairTruth, train: pd.DataFrame, fresh: pd.DataFrame, method: Method
) -> dict[str, Any]:
    """Fit and compare with the truth.

    Returns:
        `mse` of each surface on the grid, `prediction` (mean squared distance of the predicted from the
        true mean of fresh rows), `seconds`, and the estimated `surfaces`.
    """
    fit = _fit_mgcv if method.label == MGCV else _fit_keras
    seconds, predicted, surfaces = fit(truth, train, fresh, method)
    axis = grid_axis()
    errors = {
        ":".join(pair): float(np.mean((surfaces[pair] - pure(truth.surface(pair, axis, axis))) ** 2))
        for pair in truth.pairs
    }
    return {
        "mse": errors,
        "prediction": float(np.mean((predicted - truth.mean(fresh)) ** 2)),
        "seconds": seconds,
        "surfaces": {":".join(pair): np.round(own, 4).tolist() for pair, own in surfaces.items()},
    }


def grid_axis() -> np.ndarray:
    """Midpoints of cells: means over them are means under the uniform distribution."""
    return (np.arange(GRID) + 0.5) / GRID


def formula_of(truth: PairTruth, method: Method) -> str:
    names = ", ".join(truth.names)
    if method.rank is not None:
        return f"y ~ ahofm({names}, D=2, F={method.rank!r})"
    mains = " + ".join(f"s({name})" for name in truth.names)
    return f"y ~ {mains} + " + " + ".join(f"ti({a}, {b}, k={MARGIN})" for a, b in truth.pairs)


def bam_formula(truth: PairTruth) -> str:
    mains = " + ".join(f"s({name}, bs = 'ps', k = 10)" for name in truth.names)
    pairs = " + ".join(f"ti({a}, {b}, bs = 'ps', k = {MARGIN})" for a, b in truth.pairs)
    return f"y ~ {mains} + {pairs}"


def _fit_keras(
    truth: PairTruth, train: pd.DataFrame, fresh: pd.DataFrame, method: Method
) -> tuple[float, np.ndarray, Surfaces]:
    import keras

    import ahofm_keras as ak
    import ahofm_keras.model  # with TensorFlow, before time is taken

    keras.utils.clear_session(free_memory=True)
    model = ak.AdditiveModel(formula_of(truth, method), train)
    start = time.perf_counter()
    model.fit(train, solver=method.solver or "variational", restarts=0, verbose=0)
    seconds = time.perf_counter() - start
    axis = grid_axis()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ak.AhofmWarning)  # rows just outside the training range
        predicted = model.predict(fresh)
        surfaces = {
            pair: pure(ak.effect(model, *pair, at=dict.fromkeys(pair, axis)).fit) for pair in truth.pairs
        }
    return seconds, predicted, surfaces


def _fit_mgcv(
    truth: PairTruth, train: pd.DataFrame, fresh: pd.DataFrame, method: Method
) -> tuple[float, np.ndarray, Surfaces]:
    x, z = (values.ravel() for values in np.meshgrid(grid_axis(), grid_axis(), indexing="ij"))
    # The terms of a pair need only its own columns: one grid of two columns serves all.
    grid = pd.DataFrame({name: np.full(len(x), 0.5) for name in truth.names})
    found: Surfaces = {}
    grids = pd.concat([grid.assign(**{a: x, b: z}) for a, b in truth.pairs], ignore_index=True)
    figures = mgcv.fit_bam(bam_formula(truth), train, fresh[list(truth.names)], grids)
    for place, (a, b) in enumerate(truth.pairs):
        own = slice(place * len(x), (place + 1) * len(x))
        term = figures["terms"][f"ti({a},{b})"].to_numpy()[own]
        found[a, b] = pure(term.reshape(GRID, GRID))
    return figures["seconds"], figures["mean"], found


def collect(run: Run) -> pd.DataFrame:
    """Figures of all fits of a run, a row a fit. Surfaces are kept of the first simulation only."""
    size: PairSize = run.size
    store = Store(run, "pairs")
    rows = []
    for seed in range(size.seeds):
        for count in size.rows:
            setting = replace(size, seeds=1, rows=(count,))
            for method in methods(size):
                key = {"features": size.features, "snr": size.signal_to_noise, "n": count, "seed": seed,
                       "method": method.label}  # fmt: skip
                figures = store.get(
                    key, _fitter(setting, seed, method, seed == 0 and count == size.rows[0])
                )
                rows.append({**key, "F": method.rank, "solver": method.solver, **figures})
    return pd.DataFrame(rows)


def _fitter(size: PairSize, seed: int, method: Method, keep: bool) -> Callable[[], dict[str, Any]]:
    def compute() -> dict[str, Any]:
        truth = draw_truth(size.features, seed)
        train = draw_rows(truth, size.rows[0], size.signal_to_noise, seed)
        fresh = draw_rows(truth, FRESH_ROWS, size.signal_to_noise, seed + 10_000)
        figures = measure(truth, train, fresh, method)
        return figures if keep else {**figures, "surfaces": None}

    return compute
