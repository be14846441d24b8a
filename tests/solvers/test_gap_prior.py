"""Where a feature has a gap, predictions stay in sight of the data."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from ahofm_keras.bases import evaluate_basis
from ahofm_keras.solvers import tasks
from ahofm_keras.solvers.gap_prior import least_smoothing as least
from ahofm_keras.solvers.priors import System
from ahofm_keras.solvers.settings import Settings
from ahofm_keras.terms import Feature
from tests.reference import penalised
from tests.solvers.conftest import fit_quietly, learn_design, make_engine

# The months of the forest fires: some have a few rows, the eleventh has none.
COUNTS = [2, 16, 45, 8, 1, 13, 27, 150, 140, 11, 0, 8]


def least_smoothing(feature: Feature, rows: float) -> float:
    return least(feature, rows, Settings().gap_reach)


def months(seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    month = np.repeat(np.arange(12.0), COUNTS)
    z = rng.uniform(size=len(month))
    y = 1.5 * rng.normal(size=12)[month.astype(int)] + rng.normal(size=len(month))
    return pd.DataFrame({"month": month, "z": z, "y": y})


@pytest.mark.parametrize("seed", [0, 3, 4, 5])
@pytest.mark.parametrize("formula", ["y ~ s(month) + s(z)", "y ~ ahofm(month, z, D=2)"])
def test_a_month_without_rows_is_predicted_in_sight_of_the_others(formula: str, seed: int) -> None:
    data = months(seed)
    model = ak.AdditiveModel(formula, data)
    fit_quietly(model, data, "variational", restarts=0)
    gap = model.predict({"month": np.full(9, 10.0), "z": np.linspace(0.1, 0.9, 9)}, interval=0.95)
    assert np.abs(gap["mean"] - data.y.mean()).max() < 2.5 * data.y.std()
    # Nor is it known well: no row tells.
    near = model.predict({"month": [8.0], "z": [0.5]}, interval=0.95)
    widths = (gap["upper"] - gap["lower"]).min(), float((near["upper"] - near["lower"]).iloc[0])
    assert widths[0] > 2 * widths[1]


def test_the_floor_holds_the_function_of_the_gap_to_three_standard_deviations() -> None:
    data = months()
    design, _ = learn_design("y ~ s(month)", data)
    feature = design.features[0]
    floor = least_smoothing(feature, len(data))
    axis = np.linspace(0, 11, 2000)
    squares = (evaluate_basis(feature.basis, axis) @ feature.transform) ** 2
    unseen = squares.max(axis=0) > len(data)
    assert unseen.sum() == 1
    held = 3**2 * len(data) * floor * feature.eigenvalues[unseen]
    assert held == pytest.approx(squares.max(axis=0)[unseen], rel=0.06)


def test_without_a_gap_there_is_no_floor() -> None:
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"x": rng.uniform(size=300), "g": rng.choice(list("abc"), 300)})
    data["y"] = data.x
    design, _ = learn_design("y ~ s(x) + s(g, bs='re')", data)
    assert [least_smoothing(feature, 300) for feature in design.features] == [0.0, 0.0]


def test_a_lambda_of_the_user_is_kept() -> None:
    engine = make_engine("y ~ s(month, sp=1e-12)", months())
    lambdas = np.exp(engine.linear.prior.parameters[0, 0])
    assert lambdas == pytest.approx(engine.rows * 1e-12)


def test_steps_on_lambda_stop_at_the_floor() -> None:
    data = months()
    engine = make_engine("y ~ s(month)", data)
    floor = np.log(len(data) * least_smoothing(engine.design.features[0], len(data)))
    engine.update_linear()
    for _ in range(30):
        engine.update_dispersion()
        lowest = floor + np.log(engine.dispersion)
        engine.update_linear(newton_steps=1)
        assert engine.linear.prior.parameters[0, 0] >= lowest - 1e-12


def test_the_first_fit_starts_above_the_floor() -> None:
    """Asked for almost as many degrees of freedom as there are months, lambda would start below it."""
    data = months()
    engine = make_engine("y ~ s(month)", data)
    floor = np.log(len(data) * least_smoothing(engine.design.features[0], len(data)))
    assert penalised(engine.design)[0].lambdas[0] * len(data) < np.exp(floor)
    assert engine.linear.prior.parameters[0, 0] == pytest.approx(floor)


def test_a_smaller_dispersion_allows_a_smaller_lambda() -> None:
    """The prior variance counts: with less noise the same variance has a larger lambda."""
    rng = np.random.default_rng(0)
    data = months()
    data["y"] = rng.normal(size=12)[data.month.astype(int)] + 1e-3 * rng.normal(size=len(data))
    engine = make_engine("y ~ s(month)", data)
    floor = np.log(len(data) * least_smoothing(engine.design.features[0], len(data)))
    for _ in range(30):
        engine.update_linear(newton_steps=1)
        engine.update_dispersion()
    assert engine.dispersion < 0.1
    assert engine.linear.prior.parameters[0, 0] < floor - 1


def test_a_dispersion_that_rises_does_not_freeze_the_block() -> None:
    data = months(4)
    engine = make_engine("y ~ s(month) + s(z)", data)
    system = System(engine.linear_gram, engine.engine.store.reduce(tasks.linear_sums, engine.state), 1.0)
    before = engine.linear.prior.parameters.copy()
    before[0, 0] -= 5  # as if the floor had been lower
    after = engine.linear.prior.at(before).newton_steps(system).prior.parameters
    assert (after[1] != before[1]).all()
    assert after[0, 0] >= before[0, 0]


def test_features_are_not_kept_alive() -> None:
    design, _ = learn_design("y ~ s(month)", months())
    feature = design.features[0]
    least_smoothing(feature, 400)
    alive = weakref.ref(feature)
    del feature, design
    gc.collect()
    assert alive() is None


def test_one_row_far_out_does_not_widen_the_band_of_all_others() -> None:
    """Functions that live in the gap before it have no entry in the Gram matrix but rounding."""
    rng = np.random.default_rng(1)
    data = pd.DataFrame(
        {"x": np.r_[rng.gamma(3, 3, size=300).clip(0, 23), 56.1], "z": rng.uniform(size=301)}
    )
    data["y"] = data.z + rng.normal(size=301)
    places = pd.DataFrame({"x": [3.0, 7.0, 12.0], "z": 0.5})
    widths = []
    for rows in (data, data[:-1]):
        model = ak.AdditiveModel("y ~ s(x) + s(z)", rows)
        fit_quietly(model, rows, "variational", restarts=0)
        band = model.predict(places, interval=0.95)
        widths.append((band["upper"] - band["lower"]).to_numpy())
    np.testing.assert_array_less(widths[0], 1.5 * widths[1])
