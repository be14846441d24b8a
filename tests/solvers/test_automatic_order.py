"""`D="auto"`: pairs are fitted, higher orders only where the residuals show them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import keras
import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from ahofm_keras.formula import parse_formula
from ahofm_keras.formula.orders import interaction_orders
from ahofm_keras.solvers.job import FitJob
from ahofm_keras.solvers.moves.grow import is_next
from ahofm_keras.solvers.settings import use_settings
from ahofm_keras.solvers.sweeps import make_engine

NAMES = ("a", "b", "c", "d")
FORMULA = 'y ~ ahofm(a, b, c, d, D="auto", k=12)'
NOISE = 0.5


def draw(subsets: tuple[str, ...], rows: int = 500) -> pd.DataFrame:
    """Products of cosines of these features: `mean`, and `y` with noise."""
    rng = np.random.default_rng(8)
    data = pd.DataFrame(rng.uniform(-1, 1, size=(rows, 4)), columns=list(NAMES))
    waves = np.sqrt(2) * np.cos(np.pi * data)
    data["mean"] = sum(waves[list(subset)].prod(axis=1) for subset in subsets)
    return data.assign(y=data["mean"] + NOISE * rng.normal(size=rows))


def fit(data: pd.DataFrame, formula: str = FORMULA, **options: object) -> ak.AdditiveModel:
    model = ak.AdditiveModel(formula, data, starts=1)
    model.fit(data, verbose=0, **options)
    return model


@pytest.mark.parametrize(
    ("subsets", "reached", "used"),
    [
        (("a", "b"), 1, (0, 0)),
        (("ab", "cd"), 2, (0, 0)),
        (("abc",), 3, (1, 0)),
        (("ab", "bcd"), 3, (1, 0)),
    ],
)
def test_orders_are_those_of_the_data(
    subsets: tuple[str, ...], reached: int, used: tuple[int, ...]
) -> None:
    data = draw(subsets)
    model = fit(data, restarts=0)
    assert model.posterior.in_use[1:] == used
    summary = model.summary_table()
    assert summary.figures["orders"] == {"ahofm(a, b, c, d)": reached}
    words = "no interactions" if reached == 1 else f"there are interactions up to order {reached}"
    assert f"ahofm(a, b, c, d): {words}" in " ".join(str(summary).split())
    error = np.sqrt(np.mean((model.predict(data) - data["mean"]) ** 2))
    assert error < 0.4 * NOISE


@pytest.mark.filterwarnings("ignore:The fit reached its last epoch")
def test_a_formula_that_says_D_has_no_line_on_it() -> None:
    data = draw(("ab",), rows=200)
    model = ak.AdditiveModel("y ~ ahofm(a, b, c, D=3, k=8)", data, starts=1)
    model.fit(data, epochs=2, solver="bcd", verbose=0)
    assert model.summary_table().figures["orders"] == {}


@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_orders_end_at_four(count: int) -> None:
    (term,) = parse_formula(f'y ~ ahofm({", ".join("abcde"[:count])}, D="auto")').terms
    assert interaction_orders(term.options, count) == tuple(range(2, min(count, 4) + 1))


def test_what_lies_beyond_the_next_order_is_not_looked_for() -> None:
    data = draw(("ab",), rows=100)
    model = ak.AdditiveModel(FORMULA, data, starts=1)
    engine = make_engine(model, FitJob(model._reader.with_response(data, None, None)), variational=True)
    two, three, four = engine.design.layout.only.orders
    state = engine.start()
    nothing, pairs = (
        [own for own in state.groups if own.factors in orders and not own.number]
        for orders in ((), (two,))
    )
    triples = [own for own in state.groups if own.factors is three and not own.number]
    found = []
    for groups in (nothing, pairs, triples):
        own = replace(state, groups=tuple(groups))
        found.append([is_next(own, order) for order in (two, three, four)])
    assert found == [[True, True, False], [True, True, False], [True, True, True]]


@pytest.mark.filterwarnings("ignore:The fit reached its last epoch")
@pytest.mark.parametrize("solver", ["adam", "bcd"])
def test_other_solvers_fit_pairs(solver: str, tmp_path: Path) -> None:
    data = draw(("ab", "abc"), rows=200)
    models = [
        ak.AdditiveModel(f"y ~ ahofm(a, b, c, d, D={D}, F=3, k=8)", data, starts=1)
        for D in ('"auto"', "2")
    ]
    for model in models:
        model.fit(data, solver=solver, epochs=3, verbose=0)
    auto, two = models
    np.testing.assert_allclose(auto.predict(data), two.predict(data), rtol=1e-5, atol=1e-5)
    parts = auto.predict(data, type="terms")
    assert (parts[["ahofm(a, b, c, d)[3]", "ahofm(a, b, c, d)[4]"]] == 0).all(axis=None)
    auto.save(tmp_path / "m.keras")
    loaded = keras.models.load_model(tmp_path / "m.keras")
    pd.testing.assert_frame_equal(
        loaded.predict(data, interval=0.9), auto.predict(data, interval=0.9), check_exact=True
    )


def test_files_clones_and_further_fits(tmp_path: Path) -> None:
    """A triple that was found is there afterwards, whoever has the weights; "bcd" goes on from it."""
    data = draw(("abc",))
    model = fit(data, restarts=0)
    wanted = model.predict(data, interval=0.9)
    model.save(tmp_path / "m.keras")
    loaded = keras.models.load_model(tmp_path / "m.keras")
    assert loaded.posterior.in_use[1:] == model.posterior.in_use[1:] == (1, 0)
    pd.testing.assert_frame_equal(loaded.predict(data, interval=0.9), wanted, check_exact=True)
    clone = keras.models.clone_model(model)
    clone.set_weights(model.get_weights())
    pd.testing.assert_frame_equal(clone.predict(data, interval=0.9), wanted)
    model.export(tmp_path / "served")
    model.fit(data, solver="bcd", verbose=0)
    triples = model.predict(data, type="terms")["ahofm(a, b, c, d)[3]"]
    assert np.corrcoef(triples, data["mean"])[0, 1] > 0.95


def test_starts_that_found_an_order_are_averaged() -> None:
    data = draw(("abc",))
    model = ak.AdditiveModel(FORMULA, data, starts=2)
    with use_settings(moves_off=("grow group",)):
        model.fit(data, restarts=1, verbose=0)
    assert model.starts == 2
    assert model.posterior.in_use[1:] == (2, 0)
    error = np.sqrt(np.mean((model.predict(data) - data["mean"]) ** 2))
    assert error < 0.4 * NOISE


def test_linear_interactions_have_it_too() -> None:
    rng = np.random.default_rng(0)
    data = pd.DataFrame(rng.normal(size=(400, 4)), columns=list(NAMES))
    data["y"] = data.a * data.b * data.c + 0.3 * rng.normal(size=400)
    model = ak.AdditiveModel('y ~ hofm(a, b, c, d, D="auto")', data, starts=1)
    model.fit(data, restarts=0, verbose=0)
    assert model.posterior.in_use[1:] == (1, 0)
