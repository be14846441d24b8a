"""Predictors stay within the range that they have on the training rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

import ahofm_keras as ak
from ahofm_keras.decomposition import Parts
from ahofm_keras.decomposition.explain import HELD
from ahofm_keras.decomposition.read_rows import functions_on
from ahofm_keras.plotting.waterfall import explanation_data
from ahofm_keras.reporting.contents import collect
from tests.reporting import mirror

FORMULA = "y ~ z + ahofm(a, b, c, D=3, F=2) + s(d) + offset(w)"
HELD_TERMS = ("s(", "ahofm(")
LEFT = "leave the range that those of the training rows have"


def heavy_tailed(rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.standard_t(2, (rows, 6)), columns=list("abcdzw"))
    product = np.tanh(frame.a) * np.tanh(frame.b)
    frame["y"] = 10 * product + frame.z + frame.w + rng.normal(size=rows)
    return frame


TRAIN, FRESH = heavy_tailed(300, 0), heavy_tailed(2000, 1)
# All values of single features are those of training rows: only products are new.
for name in "abcd":
    FRESH[name] = np.clip(FRESH[name], TRAIN[name].min(), TRAIN[name].max())


def fit(data: pd.DataFrame = TRAIN, formula: str = FORMULA, **options: Any) -> ak.AdditiveModel:
    model = ak.AdditiveModel(formula, data, extrapolation=options.pop("extrapolation", "clip"))
    model.fit(data, verbose=0, **options)
    return model


def held_sum(model: ak.AdditiveModel, data: pd.DataFrame) -> np.ndarray:
    """The sum of all smooth terms as they are."""
    terms = model.predict(data, type="terms")
    return terms[[name for name in terms if name.startswith(HELD_TERMS)]].sum(axis=1).to_numpy()


@pytest.fixture(scope="module")
def model() -> ak.AdditiveModel:
    return fit()


def widened(total: np.ndarray) -> list[float]:
    """The range, and a tenth of it on either side."""
    spare = 0.1 * np.ptp(total)
    return [total.min() - spare, total.max() + spare]


@pytest.fixture(scope="module")
def terms(model: ak.AdditiveModel) -> pd.DataFrame:
    with pytest.warns(ak.AhofmWarning, match=LEFT):
        return model.predict(FRESH, type="terms")


def test_the_range_is_that_of_the_training_rows_and_a_little_more(model: ak.AdditiveModel) -> None:
    total = held_sum(model, TRAIN)
    np.testing.assert_allclose(model.held_range, widened(total), rtol=1e-5)
    np.testing.assert_allclose(model.predict(TRAIN, type="terms")["(limit)"], 0, atol=1e-5)


def test_terms_and_the_limit_add_up_to_the_link(model: ak.AdditiveModel, terms: pd.DataFrame) -> None:
    own = [name for name in terms if name.startswith(HELD_TERMS)]
    free = terms[own].sum(axis=1).to_numpy()
    limit = np.clip(free, *model.held_range) - free
    held = np.abs(limit) > 1e-3
    assert 0 < held.sum() < len(FRESH) / 4
    np.testing.assert_allclose(terms["(limit)"], limit, atol=1e-4)
    with pytest.warns(ak.AhofmWarning, match=LEFT):
        link = model.predict(FRESH, type="link")
    total = model.intercept + terms.sum(axis=1) + FRESH.w
    np.testing.assert_allclose(link, total, rtol=1e-5, atol=1e-4)
    # Linear terms and offsets go on as far as they are asked to.
    assert link.max() > model.predict(TRAIN, type="link").max()


@pytest.mark.parametrize("arguments", [{}, {"interval": 0.9}, {"type": "link"}])
def test_a_warning_counts_the_rows(
    model: ak.AdditiveModel, terms: pd.DataFrame, arguments: dict[str, Any]
) -> None:
    count = int((terms["(limit)"].abs() > 1e-4).sum())
    with pytest.warns(ak.AhofmWarning, match=f"of {count} of 2,000 rows {LEFT}"):
        model.predict(FRESH, **arguments)


def test_files_and_exports_hold_too(
    model: ak.AdditiveModel, terms: pd.DataFrame, tmp_path: Path
) -> None:
    row = FRESH.iloc[[int(terms["(limit)"].abs().argmax())]]
    with pytest.warns(ak.AhofmWarning, match=LEFT):
        wanted = model.predict(row)
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert again.held_range == model.held_range
    with pytest.warns(ak.AhofmWarning, match=LEFT):
        np.testing.assert_allclose(again.predict(row), wanted, rtol=1e-6)
    copy = ak.AdditiveModel(FORMULA, TRAIN)
    copy.set_weights(model.get_weights())
    assert copy.held_range == model.held_range
    model.export(tmp_path / "served", verbose=False)
    served = tf.saved_model.load(str(tmp_path / "served"))
    columns = {name: tf.constant(row[name]) for name in "abcdzw"}
    np.testing.assert_allclose(
        served.signatures["serving_default"](**columns)["response"], wanted, rtol=1e-6
    )


def test_readers_know_the_limit(model: ak.AdditiveModel, terms: pd.DataFrame) -> None:
    place = int(terms["(limit)"].abs().argmax())
    row, limit = FRESH.iloc[[place]], terms["(limit)"].iloc[place]
    with pytest.warns(ak.AhofmWarning, match=LEFT):
        link = float(model.predict(row, type="link")[0])
    parts = Parts(model)
    functions = functions_on(parts, model.read_inputs(row))
    offset = float(row.w.iloc[0])
    np.testing.assert_allclose(parts.link(functions) + offset, link, rtol=1e-5)
    np.testing.assert_allclose(parts.limit(functions), limit, rtol=1e-4)
    found = ak.explain(model, row)
    assert found.link == pytest.approx(link, rel=1e-5)
    assert found.table["contribution"].sum() == pytest.approx(link, rel=1e-5)
    last = found.table.iloc[-1]
    assert last["part"] == HELD
    assert last["contribution"] == pytest.approx(limit, rel=1e-4)
    bars = explanation_data(found)
    assert bars["part"].tolist()[-2:] == [HELD, "prediction"]
    assert bars["end"].iloc[-2] == pytest.approx(link, rel=1e-5)
    page = collect(model, None, None, 20, 0.95)
    assert mirror.predict(page, row.iloc[0].to_dict()) == pytest.approx(link, rel=1e-5)
    assert HELD not in ak.explain(model, TRAIN.iloc[[0]]).table["part"].tolist()


def test_rows_without_weight_do_not_count() -> None:
    weight = np.where(TRAIN.a.abs() > 3, 0.0, 1.0)
    model = fit(sample_weight=weight)
    total = held_sum(model, TRAIN[weight > 0])
    np.testing.assert_allclose(model.held_range, widened(total), rtol=1e-5)


@pytest.mark.parametrize("solver", ["adam", "bcd"])
@pytest.mark.filterwarnings("ignore::ahofm_keras.AhofmWarning")  # three sweeps are no fit
def test_every_solver_learns_the_range(solver: str) -> None:
    model = fit(solver=solver, epochs=3, validation_split=0.0)
    total = held_sum(model, TRAIN)
    np.testing.assert_allclose(model.held_range, widened(total), rtol=1e-5)


@pytest.mark.filterwarnings("ignore::ahofm_keras.AhofmWarning")
def test_a_dataset_teaches_the_range() -> None:
    model = ak.AdditiveModel(FORMULA, TRAIN)
    columns = {name: TRAIN[name].to_numpy() for name in "abcdzw"}
    batches = tf.data.Dataset.from_tensor_slices((columns, TRAIN.y.to_numpy())).batch(64)
    model.fit(batches, epochs=2, verbose=0)
    total = held_sum(model, TRAIN)
    np.testing.assert_allclose(model.held_range, widened(total), rtol=1e-5)


def test_a_fit_to_other_rows_learns_another_range() -> None:
    some = TRAIN.iloc[:150]
    model = fit()
    model.fit(some, verbose=0)
    total = held_sum(model, some)
    np.testing.assert_allclose(model.held_range, widened(total), rtol=1e-5)


def test_a_fit_that_fails_at_once_leaves_the_range(
    model: ak.AdditiveModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        assert model.held_range == (-np.inf, np.inf)
        raise RuntimeError

    monkeypatch.setitem(ak.model.fitting.SOLVERS, "adam", fail)
    before, result = model.held_range, model.fit_result
    with pytest.raises(RuntimeError):
        model.fit(TRAIN, solver="adam", verbose=0)
    assert model.held_range == before
    assert model.fit_result == result


@pytest.mark.parametrize(
    ("formula", "extrapolation"),
    [("y ~ s(a) + s(b)", "clip"), ("y ~ te(a, b)", "clip"), ("y ~ ahofm(a, b, F=1)", "linear")],
)
def test_other_models_have_no_limit(formula: str, extrapolation: str) -> None:
    model = ak.AdditiveModel(formula, TRAIN, extrapolation=extrapolation)
    assert model.limits == {}
    assert model.held_range == (-np.inf, np.inf)
