"""The benchmark of heavy-tailed features: its designs and figures, and the property on some of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ahofm_keras as ak

BENCHMARKS = Path(__file__).parents[2] / "examples" / "benchmarks"


@pytest.fixture
def wild(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(BENCHMARKS)
    import wild

    return wild


def test_designs_are_of_all_orders_and_families(wild: Any) -> None:
    designs = [wild.simulate(seed) for seed in range(12)]
    assert {design.order for design in designs} == {2, 3, 4}
    assert len({design.family for design in designs}) > 2
    for design in designs:
        assert 300 <= len(design.train) <= 3000
        assert max(3, design.order) <= design.fresh.shape[1] <= 8
        assert len(design.fresh) == len(design.mean) == wild.FRESH_ROWS
        assert np.isfinite(design.fresh.to_numpy()).all()
        again = ak.families.get_family(design.family)
        assert again.support(design.train["y"].to_numpy()).all()


def test_how_far_predictions_leave_a_range(wild: Any) -> None:
    response = np.array([2.0, 6.0, 4.0])
    assert wild.beyond(np.array([2.0, 5.0]), response) == 0
    assert wild.beyond(np.array([0.0, 7.0]), response) == 0.5
    assert wild.beyond(np.array([3.0, 18.0]), response) == 3
    assert wild.beyond(np.array([3.0, np.nan]), response) == np.inf


def test_errors_are_shares_of_usual_rows(wild: Any) -> None:
    mean = np.append(np.linspace(-1, 1, 999), 1e9)
    assert wild.error(mean, mean) == 0
    assert wild.error(np.full(1000, mean[:-1].mean()), mean) == pytest.approx(1.0, rel=0.01)


@pytest.mark.parametrize("seed", [5, 1008, 1027, 1036])
@pytest.mark.filterwarnings("ignore::ahofm_keras.AhofmWarning")  # what is clipped and what is held
def test_no_prediction_is_wild(wild: Any, seed: int) -> None:
    design = wild.simulate(seed)
    y = design.train["y"].to_numpy()
    formula = f"y ~ ahofm(., D={design.order})"
    model = ak.AdditiveModel(formula, design.train, family=design.family, seed=seed)
    with np.errstate(all="ignore"):  # trials of the solver that overflow are refused
        model.fit(design.train, verbose=0)
    assert wild.beyond(model.predict(design.fresh), y) <= 1
    terms = model.predict(design.fresh, type="terms")
    free = model.intercept + terms.drop(columns="(limit)").sum(axis=1)
    assert wild.beyond(np.asarray(model.family.inverse_link(free.to_numpy(), np)), y) > 1
