"""What one waits for before and after a fit: imports, the constructor, predictions, an epoch of Adam.

    python examples/benchmarks/startup.py                         # a minute
    python examples/benchmarks/startup.py --against ../earlier    # beside another checkout, as a ratio

Each figure is the least CPU time in a few processes of their own, so that other work on the machine does
not count: of the main thread, and of all threads where many rows are predicted.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROWS = (10_000, 100_000, 1_000_000)
FORMULA = (
    "y ~ s(x0) + s(hour, bs='cp') + s(group) + flag + ti(x2, x3) + ahofm(x0, x1, x2, x3, x4, group, D=3)"
)


def seconds(work: Callable[[], object], times: int = 1) -> float:
    from time import thread_time

    start = thread_time()
    for _ in range(times):
        work()
    return (thread_time() - start) / times


def table(rows: int):
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(0)
    data = pd.DataFrame({f"x{i}": rng.normal(size=rows) for i in range(5)})
    data["hour"] = rng.uniform(0, 24, rows).round(1)
    data["group"] = rng.choice(np.array([f"group {i}" for i in range(20)], object), rows)
    data["flag"] = rng.uniform(size=rows) < 0.5
    return data.assign(y=data.x0 + rng.normal(size=rows))


def import_for_a_table() -> dict[str, float]:
    import numpy  # noqa: F401
    import pandas  # noqa: F401

    def work() -> None:
        import ahofm_keras.datasets as datasets

        datasets.simulate_toy(100)

    return {"import, a table": seconds(work)}


def import_for_a_model() -> dict[str, float]:
    import numpy  # noqa: F401
    import pandas  # noqa: F401

    def work() -> None:
        from ahofm_keras import AdditiveModel  # noqa: F401

    return {"import, a model": seconds(work)}


def construct() -> dict[str, float]:
    from ahofm_keras import AdditiveModel

    found = {}
    AdditiveModel(FORMULA, table(300))  # what TensorFlow does once
    many = table(300)[["x0", "y"]].assign(**{f"z{i}": table(300).x1 * (i + 1) for i in range(30)})
    smooths = "y ~ ahofm(" + ", ".join(f"z{i}" for i in range(30)) + ", D=3)"
    found["constructor, 300 rows, 30 features"] = seconds(lambda: AdditiveModel(smooths, many), 3)
    for rows in ROWS:
        data = table(rows)
        found[f"constructor, {rows:,} rows"] = seconds(lambda data=data: AdditiveModel(FORMULA, data))
    return found


def predict_one_row() -> dict[str, float]:
    from ahofm_keras import AdditiveModel

    data = table(300)
    model = AdditiveModel(FORMULA, data)
    model.fit(data, verbose=0, solver="bcd", epochs=2)
    frame = data.iloc[[0]]
    found = {}
    for name, row in (("frame", frame), ("dict", frame.iloc[0].to_dict())):
        model.predict(row)
        found[f"predict, one row of a {name}"] = seconds(lambda row=row: model.predict(row), 300)
    return found


def by_basis_size() -> dict[str, float]:
    """Predictions and epochs with k functions a feature, of which a row has four."""
    from time import process_time

    import ahofm_keras as ak

    def seconds(work: Callable[[], object], times: int = 3) -> float:
        work()  # traced, compiled
        start = process_time()
        for _ in range(times):
            work()
        return (process_time() - start) / times

    found = {}
    few, many = table(2000), table(20_000)
    for k in (20, 80, 320):
        formula = f"y ~ ahofm(x0, x1, x2, x3, x4, D=3, F=5, k={k})"
        model = ak.AdditiveModel(formula, few)
        model.fit(few, verbose=0, solver="bcd", epochs=1)
        row = many.iloc[[0]]
        for what, work, times in (
            ("predict, 20,000 rows", lambda model=model: model.predict(many), 3),
            ("... with intervals", lambda model=model: model.predict(many, interval=0.9), 1),
            ("predict, one row", lambda model=model, row=row: model.predict(row), 100),
            (
                "... with an interval",
                lambda model=model, row=row: model.predict(row, interval=0.9),
                20,
            ),
        ):
            found[f"{what}, k = {k}"] = seconds(work, times)
        for word, jit in (("compiled", True), ("not compiled", False)):
            model = ak.AdditiveModel(formula, few)
            model.compile(jit_compile=jit)
            fit = partial(
                model.fit, many, solver="adam", validation_split=0.0, verbose=0, batch_size=1024
            )
            fit(epochs=1)
            start = process_time()
            fit(epochs=2)
            middle = process_time()
            fit(epochs=12)
            found[f"Adam, an epoch, {word}, k = {k}"] = (process_time() - 2 * middle + start) / 10
    return found


PARTS = {
    part.__name__: part
    for part in (import_for_a_table, import_for_a_model, construct, predict_one_row, by_basis_size)
}


def measure(part: str, folder: Path) -> dict[str, float]:
    """The figures of a part, in a process that imports the package from a folder."""
    quiet = {
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "PYTHONWARNINGS": "ignore",
        "PYTHONPATH": str(folder.resolve()),
    }
    command = [sys.executable, __file__, "--part", part]
    done = subprocess.run(command, env=os.environ | quiet, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--against", type=Path, help="folder of another version of the package")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--parts", choices=PARTS, nargs="+", default=list(PARTS))
    parser.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.part:
        print(json.dumps(PARTS[arguments.part]()))
        return
    folders = [ROOT] + ([arguments.against] if arguments.against else [])
    for part in arguments.parts:
        least: list[dict[str, float]] = [{} for _ in folders]
        for _ in range(arguments.repeats):
            for found, folder in zip(least, folders, strict=True):
                for name, value in measure(part, folder).items():
                    found[name] = min(value, found.get(name, value))
        for name, value in least[0].items():
            others = "".join(
                f"  {other[name]:9.4f} s  x{other[name] / value:.1f}" for other in least[1:]
            )
            print(f"{name:36}{value:9.4f} s{others}", flush=True)


if __name__ == "__main__":
    main()
