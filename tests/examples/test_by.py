"""The benchmark of terms that are multiplied, beside mgcv: its formulas, its table."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak

BENCHMARKS = Path(__file__).parents[2] / "examples" / "benchmarks"


@pytest.fixture
def by(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(BENCHMARKS)
    import by

    return by


def test_each_term_of_mgcv_stands_beside_one_of_ours(by: Any) -> None:
    forms = by.SCRIPT[by.SCRIPT.index("forms <-") :]
    for kind, terms in by.FORMULAS.items():
        assert all(ak.parse_formula(formula).terms for formula in terms.values())
        own = forms[forms.index(f"{kind} = list(") :].split("list(")[1]
        for term in terms:
            quoted = f"`{term}` =" if not term.isidentifier() else f"{term} ="
            assert (quoted in own) == (term not in ("s + ti", "afm"))


def test_a_line_has_errors_and_their_ratio(by: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """R is not asked: the rows that it would have written are there already."""

    def write(command: list[str], check: bool) -> None:
        rng = np.random.default_rng(0)
        x2, x1 = rng.uniform(size=(2, 80))
        data = pd.DataFrame({"x2": x2, "x1": x1, "f": x1 * np.sin(5 * x2)})
        data["y"] = data.f + 0.1 * rng.normal(size=80)
        data["by= GCV.Cp"], data["by= REML"] = data.f + 0.2, data.f + 0.1
        data.to_csv(Path(command[-1]) / "number_1.csv", index=False)

    monkeypatch.setattr(subprocess, "run", write)
    monkeypatch.setitem(by.FORMULAS, "number", {"by=": "y ~ s(x2, by=x1, k=6)"})
    line = by.compare(1, ["number"]).loc[("number", "by=")]
    assert line["GCV.Cp"] == pytest.approx(0.2)
    assert line["ours / REML"] == pytest.approx(line["ours"] / 0.1)
    assert line["ours"] < 0.05
