"""Make docs/paper.md from what the experiments wrote.

python examples/paper/page.py
python examples/paper/page.py --out examples/paper/results --docs docs
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from rerun import sections
from rerun.markdown import Results, wrap
from rerun.output import DEFAULT_FOLDER

EXPERIMENTS = (
    "estimation",
    "prediction",
    "scalability",
    "benchmark",
    "interpretability",
    "convergence",
    "sparsity",
)

HEAD = """# The paper, re-run

D. Rügamer, *Scalable Higher-Order Tensor Product Spline Models*, AISTATS 2024: each experiment, with the
figures as they come out. This page is made by `python examples/paper/page.py` from what these commands
wrote (Python {python}, TensorFlow {tensorflow}, Keras {keras}). Each has a form `--quick`, which takes
minutes, and a form `--full`, which has the paper's size; which of them the figures below come from is in
the table. `--with` changes a size. Seconds are those of one run on {cores} of a machine that had
other work to do: compare them with each other, not with yours, and by their order of magnitude.

| experiment | command | form |
|---|---|---|
{commands}

The figures of all these fits are kept in `examples/paper/results`: with `--out` and that folder a
command takes what is there and computes the rest, so that a larger form goes on from a smaller one.

Seeds are 0, 1, ... everywhere. Section 4 needs the data sets: `ahofm_keras.datasets.load` fetches them,
or reads them from the folder `AHOFM_DATA`.
"""


def read_records(folder: Path) -> dict[str, dict[str, Any]]:
    """The records of all experiments that were run."""
    paths = {name: folder / f"{name}.json" for name in EXPERIMENTS}
    missing = [name for name, path in paths.items() if not path.exists()]
    if missing:
        print("not in the page, because they have not been run:")
        print(
            "\n".join(f"    python examples/paper/{name}.py --quick --out {folder}" for name in missing)
        )
    return {name: json.loads(path.read_text()) for name, path in paths.items() if path.exists()}


def make_page(results: Results) -> str:
    records = read_records(results.folder)
    if not records:
        raise SystemExit(f"{results.folder} holds no results.")
    commands = "\n".join(
        f"| {name} | `{record['command']}` | {record['form']} |" for name, record in records.items()
    )
    machine = next(iter(records.values()))["machine"]
    cores = "one core" if machine["cores"] == 1 else f"{machine['cores']} cores"
    parts = [HEAD.format(commands=commands, **{**machine, "cores": cores})]
    parts += [getattr(sections, name)(results, record["size"]) for name, record in records.items()]
    return wrap("\n\n".join(parts))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=DEFAULT_FOLDER, help="folder of the experiments")
    parser.add_argument("--docs", type=Path, default=Path("docs"), help="folder of the page (docs)")
    given = parser.parse_args()
    results = Results(given.out, given.docs / "images" / "paper", "images/paper")
    given.docs.mkdir(parents=True, exist_ok=True)
    (given.docs / "paper.md").write_text(make_page(results))
    print(f"wrote {given.docs / 'paper.md'}")


if __name__ == "__main__":
    main()
