"""BCD against Adam: the penalised objective and the error by time.

    python examples/paper/convergence.py --quick
    python examples/paper/convergence.py --full

The paper's supplement derives block coordinate descent and reports, without figures, that it converged
slowly while Adam did as well or better. Here both minimise the same objective (half the mean squared
error of the scaled response, plus the penalty) on the same rows of the setting of `estimation.py`, from
the same start, at the smoothing that df = 15 asks for. Adam runs at Keras' default rate, 0.001, and at
the library's, 0.01; both take smaller steps when they stand still, and extra rows decide when they stop.
`bcd` solves each block of a feature exactly instead of stepping through single factors. The variational
solver, which chooses the smoothing itself, has another objective: only its error is shown. Time is in
processor seconds, summed over cores, so that other work of the machine does not count.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
import pandas as pd
from rerun.output import Run, Store, execute, save_figure, write_table
from rerun.simulation import draw_rows, draw_truth

import ahofm_keras as ak


@dataclass(frozen=True)
class ConvergenceSize:
    """Rows, features, F, and the most epochs of Adam and sweeps of the other solvers."""

    rows: int = 8000
    features: int = 5
    rank: int = 5
    epochs: int = 1000
    sweeps: int = 200


SIZES = {
    "full": ConvergenceSize(),
    "quick": ConvergenceSize(rows=4000, epochs=300),
    "tiny": ConvergenceSize(rows=200, features=3, rank=2, epochs=3, sweeps=3),
}
LABELS = ("bcd", "adam, rate 0.01", "adam, rate 0.001", "variational")


class Watcher(keras.callbacks.Callback):
    """Processor seconds, objective and error after epochs; the time of looking is taken out.

    After the first ten epochs it looks each time their number has grown by a tenth.

    Args:
        train: rows that the objective is a mean over.
        fresh: rows with the true `mean`.
    """

    def __init__(self, train: pd.DataFrame, fresh: pd.DataFrame) -> None:
        super().__init__()
        self.train, self.fresh = train, fresh
        self.rows: list[dict[str, float]] = []

    def on_train_begin(self, logs: Any = None) -> None:
        self.start, self.looked, self.next = time.process_time(), 0.0, 1

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        if epoch + 1 < self.next:
            return
        self.next = max(epoch + 2, int(1.1 * (epoch + 1)))
        now = time.process_time()
        self.rows.append(
            {
                "epoch": epoch + 1,
                "processor": now - self.start - self.looked,
                "objective": objective(self.model, self.train),
                "error": float(np.mean((predict(self.model, self.fresh) - self.fresh["mean"]) ** 2)),
            }
        )
        self.looked += time.process_time() - now


def predict(model: ak.AdditiveModel, frame: pd.DataFrame) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ak.AhofmWarning)  # rows just outside the training range
        # The link, which is the mean here, leaves Keras' own state of a running fit alone.
        return model.predict(frame, type="link")


def objective(model: ak.AdditiveModel, train: pd.DataFrame) -> float:
    """Half the mean squared error of the scaled response, plus the penalty."""
    residuals = (train["y"].to_numpy() - predict(model, train)) / model.scale
    return float(0.5 * np.mean(residuals**2) + sum(float(loss) for loss in model.losses))


def trace(size: ConvergenceSize, label: str) -> list[dict[str, float]]:
    """Fit once and watch."""
    keras.utils.clear_session(free_memory=True)
    truth = draw_truth(size.features, 0)
    train = draw_rows(truth, size.rows, 0.5, 0)
    held_out = draw_rows(truth, int(0.15 * size.rows), 0.5, 20_000)
    fresh = draw_rows(truth, 2000, 0.5, 10_000)
    fresh["mean"] = truth.mean(fresh)
    names = ", ".join(truth.names)
    model = ak.AdditiveModel(f"y ~ ahofm({names}, D=2, F={size.rank}, df=15)", train)
    watcher = Watcher(train, fresh)
    solver, _, rate = label.partition(", rate ")
    options: dict[str, Any] = {"solver": solver, "epochs": size.sweeps}
    if solver == "adam":
        model.compile(optimizer=keras.optimizers.Adam(learning_rate=float(rate)))
        options |= {"epochs": size.epochs, "validation_data": held_out}
    predict(model, fresh)  # traced before the clock starts
    with warnings.catch_warnings():
        # Held-out rows outside the training range; epochs that did not suffice, which the table shows.
        warnings.simplefilter("ignore", ak.AhofmWarning)
        model.fit(train, verbose=0, callbacks=[watcher], **options)
    return watcher.rows


def run_experiment(run: Run) -> None:
    size: ConvergenceSize = run.size
    store = Store(run)
    frames = []
    for label in LABELS:
        key = {"solver": label, "rows": size.rows, "features": size.features, "rank": size.rank,
               "epochs": size.epochs if label.startswith("adam") else size.sweeps}  # fmt: skip
        figures = store.get(key, lambda label=label: {"trace": trace(size, label)})
        frames.append(pd.DataFrame(figures["trace"]).assign(solver=label))
    traces = pd.concat(frames, ignore_index=True)
    run.out.mkdir(parents=True, exist_ok=True)
    traces.to_csv(run.out / "convergence_traces.csv", index=False, float_format="%.6g")
    table = summarise(traces)
    write_table(
        run, "convergence", table, "processor seconds until the objective is near its lowest value", 5
    )
    save_figure(run, "convergence", draw(traces))


def summarise(traces: pd.DataFrame) -> pd.DataFrame:
    """When each solver is within 1 % and 0.1 % of the lowest objective that any of them reached."""
    shared = traces[traces["solver"] != "variational"]
    lowest = shared["objective"].min()
    rows = []
    for solver, own in traces.groupby("solver", sort=False):
        last = own.iloc[-1]
        row = {"solver": solver, "epochs": int(last["epoch"]), "processor": last["processor"]}
        if solver != "variational":
            row |= {
                "objective": own["objective"].min(),
                "to_1%": _seconds_to(own, 1.01 * lowest),
                "to_0.1%": _seconds_to(own, 1.001 * lowest),
            }
        rows.append({**row, "error": last["error"], "least_error": own["error"].min()})
    return pd.DataFrame(rows)


def _seconds_to(own: pd.DataFrame, value: float) -> float:
    reached = own[own["objective"] <= value]
    return float(reached["processor"].iloc[0]) if len(reached) else float("nan")


def draw(traces: pd.DataFrame) -> Any:
    """Objective above its lowest value and error of the mean, by processor seconds."""
    import matplotlib.pyplot as plt

    from ahofm_keras.plotting.theme import SERIES

    figure, axes = plt.subplots(1, 2, figsize=(9.2, 3.4), layout="constrained")
    lowest = traces.loc[traces["solver"] != "variational", "objective"].min()
    colours = dict(zip(LABELS, SERIES, strict=False))
    for solver, own in traces.groupby("solver", sort=False):
        style = {"color": colours[solver], "label": solver, "linewidth": 1.4}
        if solver != "variational":
            above = own["objective"] / lowest - 1
            axes[0].plot(own["processor"], above.clip(lower=1e-6), **style)
        axes[1].plot(own["processor"], own["error"], **style)
    axes[0].set(
        xscale="log",
        yscale="log",
        xlabel="processor seconds",
        ylabel="objective above its lowest, relative",
    )
    axes[1].set(xscale="log", xlabel="processor seconds", ylabel="error of the mean (variance 1)")
    axes[1].set_ylim(0, 1.1)
    axes[1].legend(frameon=False)
    for panel in axes:
        panel.xaxis.set_major_formatter("{x:g}")
    return figure


if __name__ == "__main__":
    execute("convergence", __doc__, SIZES, run_experiment)
