"""The average of fits from several starts is a model of the same kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

import ahofm_keras as ak
from ahofm_keras.bands import evaluate_band
from ahofm_keras.decomposition.groups import places_by_group
from ahofm_keras.decomposition.parts import Parts
from ahofm_keras.decomposition.uncertainty import Uncertainty
from ahofm_keras.model import starts as room
from ahofm_keras.moments import elementary_symmetric
from ahofm_keras.solvers import FitJob
from ahofm_keras.solvers.averaging import do_agree
from ahofm_keras.solvers.engine import Engine
from ahofm_keras.solvers.groups import make_groups
from ahofm_keras.solvers.kernels import use_kernels
from ahofm_keras.solvers.settings import Settings, use_settings
from ahofm_keras.solvers.state import State
from ahofm_keras.solvers.sweeps import make_engine
from ahofm_keras.solvers.weights import read_weights

FORMULA = "y ~ s(d) + ahofm(a, b, c, D=3, F=2, k=8, df=6)"
K = 3


@pytest.fixture(scope="module")
def data() -> pd.DataFrame:
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(rng.uniform(-1, 1, (160, 4)), columns=list("abcd"))
    mean = np.sin(3 * frame.a) * frame.b + np.cos(2 * frame.c) * frame.b + frame.a * frame.b * frame.c
    return frame.assign(y=mean + 0.5 * rng.normal(size=160))


@pytest.fixture(scope="module")
def singles(data: pd.DataFrame) -> list[ak.AdditiveModel]:
    models = [ak.AdditiveModel(FORMULA, data) for _ in range(K)]
    for seed, model in enumerate(models):
        model.history = model.fit(data, seed=seed, restarts=0, verbose=0)
    return models


@pytest.fixture(scope="module")
def average(data: pd.DataFrame) -> ak.AdditiveModel:
    model = ak.AdditiveModel(FORMULA, data, starts=K + 2)  # more than are used
    with pytest.warns(ak.AhofmWarning, match="never fitted"):
        model.predict(data, type="terms")  # traced with the weights of a single fit
    model.fit(data, restarts=K - 1, verbose=0)
    return model


def links(models: list[ak.AdditiveModel], data: pd.DataFrame) -> np.ndarray:
    return np.array([model.predict(data, type="link") for model in models])


def test_the_link_is_the_mean_of_the_links(
    average: ak.AdditiveModel, singles: list[ak.AdditiveModel], data: pd.DataFrame
) -> None:
    apart = links(singles, data)
    assert np.abs(apart - apart[0]).max() > 1e-3  # or the test could not fail
    np.testing.assert_allclose(average.predict(data, type="link"), apart.mean(axis=0), atol=2e-6)
    terms = sum(model.predict(data, type="terms") for model in singles) / K
    pd.testing.assert_frame_equal(
        average.predict(data, type="terms"), terms, atol=2e-6, check_exact=False
    )


def test_its_variance_is_about_that_of_one_fit(
    average: ak.AdditiveModel, singles: list[ak.AdditiveModel], data: pd.DataFrame
) -> None:
    own = average.predict(data, type="link", interval=0.95).se.to_numpy()
    each = [model.predict(data, type="link", interval=0.95).se.to_numpy() for model in singles]
    mixture = np.sqrt(np.mean(np.square(each), axis=0) + links(singles, data).var(axis=0))
    assert np.median(own / np.sqrt(np.mean(np.square(each), axis=0))) == pytest.approx(1, abs=0.1)
    assert np.median(own / mixture) == pytest.approx(1, abs=0.15)


def test_degrees_of_freedom_and_bound_are_means(
    average: ak.AdditiveModel, singles: list[ak.AdditiveModel]
) -> None:
    def of_order(model: ak.AdditiveModel, place: int) -> float:
        return float(np.sum(np.asarray(model.posterior.factor_edf[place])))

    for place in range(2):
        each = [of_order(model, place) for model in singles]
        assert of_order(average, place) == pytest.approx(np.mean(each), rel=1e-5)
    # Smooths have the degrees of freedom that go with the mean of their prior variances.
    assert average.fit_result.edf == pytest.approx(np.mean([m.fit_result.edf for m in singles]), rel=0.2)
    assert average.starts == K
    layer = average.get_layer(average.design.terms[-1].name)
    for place in range(2):
        used = layer.coordinates(place).any(axis=(0, 1))
        assert used[: 2 * K].any()
        assert not used[2 * K :].any()


def test_it_is_read_as_any_model(average: ak.AdditiveModel, data: pd.DataFrame) -> None:
    assert "/6" in str(ak.summary(average))
    row = data.iloc[[3]]
    explained = ak.explain(average, row)
    assert explained.link == pytest.approx(average.predict(row, type="link")[0], abs=1e-5)
    assert ak.interactions(average, order=2).iloc[0][["feature_1", "feature_2"]].tolist() == ["a", "b"]


def test_files_hold_it(average: ak.AdditiveModel, data: pd.DataFrame, tmp_path: Path) -> None:
    average.save(tmp_path / "m.keras")
    loaded = keras.models.load_model(tmp_path / "m.keras")
    assert loaded.design.terms == average.design.terms
    for kind in ({"type": "link"}, {"interval": 0.9}):
        np.testing.assert_array_equal(loaded.predict(data, **kind), average.predict(data, **kind))
    average.export(tmp_path / "served")
    served = tf.saved_model.load(str(tmp_path / "served")).signatures["serving_default"]
    columns = {name: tf.constant(data[name].to_numpy()) for name in "abcd"}
    np.testing.assert_allclose(served(**columns)["link"], average.predict(data, type="link"), atol=1e-6)


def test_weights_alone_find_room(average: ak.AdditiveModel, data: pd.DataFrame, tmp_path: Path) -> None:
    average.save_weights(tmp_path / "m.weights.h5")
    model = ak.AdditiveModel(FORMULA, data, starts=K + 2)
    model.load_weights(tmp_path / "m.weights.h5")
    assert model.starts == K
    for kind in ({"type": "link"}, {"interval": 0.9}):
        np.testing.assert_array_equal(model.predict(data, **kind), average.predict(data, **kind))
    single = ak.AdditiveModel(FORMULA, data, starts=K + 2)
    single.save_weights(tmp_path / "s.weights.h5")
    model.load_weights(tmp_path / "s.weights.h5")
    assert model.starts == 1
    assert not model.has_posterior
    with pytest.raises(ak.errors.DataError, match=r"the data and the `starts` of the one that"):
        ak.AdditiveModel(FORMULA, data).load_weights(tmp_path / "m.weights.h5")
    with pytest.raises(ak.errors.DataError, match="`starts` must be a whole number of at least 1"):
        ak.AdditiveModel(FORMULA, data, starts=0)


@pytest.mark.filterwarnings("ignore")  # Keras warns of what it looks for beside the layers
def test_weights_of_another_rank_are_no_starts(data: pd.DataFrame, tmp_path: Path) -> None:
    """Six factors of one fit are not two of each of three; a model that they do not fit stays as it was."""
    other = ak.AdditiveModel(FORMULA.replace("F=2", "F=6"), data)
    other.fit(data, restarts=0, verbose=0)
    other.save_weights(tmp_path / "m.weights.h5")
    model = ak.AdditiveModel(FORMULA, data, starts=3)
    before = model.get_weights()
    with pytest.raises(
        ak.errors.DataError, match=r"m\.weights\.h5' have other shapes than those of this"
    ):
        model.load_weights(tmp_path / "m.weights.h5")
    assert model.starts == 1
    for found, expected in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(found, expected)


def refit(average: ak.AdditiveModel, data: pd.DataFrame, **how: Any) -> ak.AdditiveModel:
    model = ak.AdditiveModel(FORMULA, data, starts=2)
    model.fit(data, restarts=1, verbose=0)
    model.fit(data, verbose=0, **how)
    return model


def test_a_single_fit_after_an_average_starts_anew(
    singles: list[ak.AdditiveModel], average: ak.AdditiveModel, data: pd.DataFrame
) -> None:
    model = refit(average, data, restarts=0)
    assert model.starts == 1
    np.testing.assert_allclose(model.predict(data), singles[0].predict(data), atol=1e-6)


@pytest.mark.filterwarnings("ignore:The fit reached its last epoch")
@pytest.mark.parametrize("solver", ["adam", "bcd"])
def test_other_solvers_go_on_from_an_average(
    average: ak.AdditiveModel, data: pd.DataFrame, solver: str
) -> None:
    model = refit(average, data, solver=solver, epochs=2)
    before = ak.AdditiveModel(FORMULA, data, starts=2)
    before.fit(data, restarts=1, verbose=0)
    layers = [own.get_layer(own.design.terms[-1].name) for own in (model, before)]
    for place in range(2):
        after, start = (layer.coordinates(place) for layer in layers)
        moved = np.abs(after - start).max(axis=(0, 1)) > 0
        np.testing.assert_array_equal(moved, start.any(axis=(0, 1)))  # those of both starts
    assert np.corrcoef(model.predict(data), average.predict(data))[0, 1] > 0.8


def test_a_fit_that_ends_before_the_average_keeps_the_last_start(
    singles: list[ak.AdditiveModel], data: pd.DataFrame
) -> None:
    sweeps = sum(len(model.history.epoch) for model in singles[:2])
    model = ak.AdditiveModel(FORMULA, data, starts=2)
    with pytest.warns(ak.AhofmWarning, match=r"before it converged\. Raise `epochs`\.$"):
        model.fit(data, restarts=1, epochs=sweeps, verbose=0)
    for kind in ({"type": "link"}, {"interval": 0.9}):
        np.testing.assert_allclose(
            model.predict(data, **kind), singles[1].predict(data, **kind), atol=1e-5
        )
    before = model.predict(data)
    model.fit(data, epochs=0, verbose=0)
    np.testing.assert_array_equal(model.predict(data), before)


def test_a_callback_may_bring_the_weights_of_a_start_back(
    singles: list[ak.AdditiveModel], data: pd.DataFrame
) -> None:
    model = ak.AdditiveModel(FORMULA, data, starts=2)
    stopping = keras.callbacks.EarlyStopping(
        "bound", mode="max", patience=999, restore_best_weights=True
    )
    history = model.fit(data, restarts=1, verbose=0, callbacks=[stopping])
    best = singles[int(np.argmax([own.history.history["bound"][-1] for own in singles[:2]]))]
    assert stopping.best == max(history.history["bound"])
    np.testing.assert_allclose(model.predict(data), best.predict(data), atol=1e-5)


def test_covariances_are_kept_group_by_group(
    average: ak.AdditiveModel, singles: list[ak.AdditiveModel]
) -> None:
    """Those of each fit, in the proportion of `average_states`: K times the size, not K^2."""
    together = average.posterior
    for place, entry in enumerate(together.interactions):
        size = K ** (-1 / entry["order"])
        scale = size ** (-2 * (entry["order"] - 1)) / K
        for start, single in enumerate(singles):
            for name, weight in single.posterior.orders[place].items():
                whole = np.asarray(together.orders[place][name])
                rows = weight.shape[1] // single.posterior.groups
                own, part = np.asarray(weight)[:, :rows], whole[:, start * rows : (start + 1) * rows]
                assert whole.shape[1] == (K + 2) * rows
                if name in ("bands", "tested_covariances"):
                    np.testing.assert_allclose(part, scale * own, rtol=1e-9, atol=1e-12)
                if name == "reference_df":
                    np.testing.assert_allclose(part, own, rtol=1e-6)
        assert not np.asarray(together.factor_bands[place])[:, K:].any()


def test_standard_errors_are_those_of_independent_groups(average: ak.AdditiveModel) -> None:
    """Against the moments of all factors together, whose covariances between groups are 0."""
    parts = Parts(average)
    uncertainty = Uncertainty(parts)
    (index,) = [i for i, group in enumerate(parts.groups) if group.order == 2 and len(group.kept)]
    group = parts.groups[index]
    places = places_by_group(average, group)
    assert len(places) > 1
    assert sorted(np.concatenate(places)) == list(range(len(group.kept)))
    place = average.design.layout.only.order_index[group.source]
    subset, grid = group.members[:2], 2 * [np.linspace(-0.9, 0.9, 4)]
    functions = [parts.variables[v].functions(at) for v, at in zip(subset, grid, strict=True)]
    means, spread = [], []
    for j, (variable, at) in enumerate(zip(subset, grid, strict=True)):
        means.append(parts.factors(index, variable, functions[j]))
        whole = np.zeros((len(group.kept), len(group.kept), len(at)))
        cells = average.design.features[group.features[j]].cells(at)
        for own in places:
            band = average.posterior.band(place, j, group.kept[own])
            whole[np.ix_(own, own)] = evaluate_band(band, cells.cell, cells.values)
        spread.append(whole)
    (m, k), (C, D) = means, spread
    wanted = np.einsum("fa,fgb,ga->ab", m, D, m) + np.einsum("fb,fga,gb->ab", k, C, k)
    wanted += np.einsum("fga,fgb->ab", C, D)
    found = uncertainty._interaction_variance(index, subset, grid, functions)
    assert found.max() > 0
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-14)


@pytest.mark.filterwarnings("ignore:The fit reached its last epoch")
def test_after_another_solver_each_fit_of_an_average_has_its_share_of_the_variance(
    data: pd.DataFrame, tmp_path: Path
) -> None:
    """The factors of one stand for those of the others: alone each would have all of it."""
    model = ak.AdditiveModel(FORMULA, data, starts=3)
    model.fit(data, restarts=1, verbose=0)
    assert set(model.posterior.in_use) == {2}
    model.fit(data, solver="bcd", epochs=3, verbose=0)
    assert model.starts == 2
    assert set(model.posterior.in_use) == {2}
    assert model.fit_result.posterior == "laplace"
    alone, written = alone_and_written_variances(model, data)
    assert alone.min() > 0
    np.testing.assert_allclose(2 * written, alone, rtol=1e-6)
    model.save(tmp_path / "m.keras")
    loaded = keras.models.load_model(tmp_path / "m.keras")
    pd.testing.assert_frame_equal(
        loaded.predict(data, interval=0.9), model.predict(data, interval=0.9), check_exact=True
    )
    model.fit(data, restarts=1, verbose=0)
    assert set(model.posterior.in_use) == {2}
    assert model.fit_result.posterior == "variational"


def alone_and_written_variances(
    model: ak.AdditiveModel, data: pd.DataFrame
) -> tuple[np.ndarray, np.ndarray]:
    """tr(C H) of each block of factors, C from its curvature H, and as the model has it."""
    job = FitJob(model._reader.with_response(data, None, None))
    engine = make_engine(model, job, variational=False)
    state = engine.linearise(read_weights(model, engine.start()))
    alone, written = [], []
    given = engine.design, engine.total_weight, True, engine.settings
    for index, group in enumerate(make_groups(*given)):
        for j, block in enumerate(group.blocks):
            gram = engine.factor_system(state, index, j).gram
            inverse = np.linalg.inv(gram + np.diag(block.prior.precisions))
            alone.append(float(model.posterior.dispersion) * np.einsum("ij,ij->", inverse, gram))
            written.append(_written_variance(model, engine, state, index, j))
    return np.array(alone), np.array(written)


def _written_variance(
    model: ak.AdditiveModel, engine: Engine, state: State, index: int, j: int
) -> float:
    """The sum over rows of z' C z, z the slopes of all factors and C their covariances at the row."""
    group = state.groups[index]
    block, slots, total = group.blocks[j], np.array(group.kept), 0.0
    place = engine.design.layout.only.order_index[group.factors.key]
    for chunk in engine.store.chunks:
        basis = chunk.bases[block.position]
        values = [chunk.bases[own.position].evaluate(own.posterior.coefficients) for own in group.blocks]
        others = np.delete(np.stack(values), j, axis=0)
        slopes = elementary_symmetric(others, group.order - 1)
        band = model.posterior.band(place, j, slots)
        spread = evaluate_band(band, basis.cells, np.ascontiguousarray(basis.values.T))
        total += float(np.einsum("fn,fgn,gn->", slopes, spread, slopes))
    return total


@pytest.mark.parametrize(
    ("how", "starts"),
    [
        ({}, 2),
        ({"restarts": 0}, 1),
        ({"epochs": 400}, 1),
        ({"callbacks": [keras.callbacks.Callback()]}, 1),
    ],
    ids=["default", "no restarts", "epochs", "callbacks"],
)
def test_few_rows_are_averaged_unless_the_user_follows_the_fit(
    data: pd.DataFrame, monkeypatch: pytest.MonkeyPatch, how: dict[str, Any], starts: int
) -> None:
    monkeypatch.setattr(room, "ROWS_OF_STARTS", 40_000)
    model = ak.AdditiveModel("y ~ afm(a, b, F=1)", data)  # one pair, one product: all starts agree
    model.fit(data, verbose=0, **how)
    assert model.starts == starts


def test_starts_are_added_until_they_agree(data: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "ROWS_OF_STARTS", 40_000)
    monkeypatch.setattr(room, "MOST_STARTS", 9)
    found = {}  # the first two starts of seed 0 agree by chance
    for agreement in (1e9, 0.0007, 0.0):
        model = ak.AdditiveModel(FORMULA, data, seed=1)
        with use_settings(agreement=agreement):
            model.fit(data, verbose=0)
        found[agreement] = model.starts
        if agreement == 0.0007:
            fixed = ak.AdditiveModel(FORMULA, data, seed=1, starts=9)
            # Up to nine starts pay for compiled loops, three do not: their sums round differently.
            with use_kernels("numpy"), use_settings(agreement=agreement):
                model = ak.AdditiveModel(FORMULA, data, seed=1)
                model.fit(data, verbose=0)
                fixed.fit(data, restarts=model.starts - 1, verbose=0)
            for kind in ({"type": "link"}, {"interval": 0.9}):
                np.testing.assert_array_equal(model.predict(data, **kind), fixed.predict(data, **kind))
    assert found[1e9] == 2
    assert 2 < found[0.0007] < 9
    assert found[0.0] == 9


@pytest.mark.parametrize(("rows", "starts"), [(160 * 2, 3), (160, 2), (160 - 1, 1)])
def test_the_more_rows_the_fewer_starts(
    data: pd.DataFrame, monkeypatch: pytest.MonkeyPatch, rows: int, starts: int
) -> None:
    monkeypatch.setattr(room, "ROWS_OF_STARTS", rows)
    model = ak.AdditiveModel(FORMULA, data)
    with use_settings(agreement=0.0):
        model.fit(data, verbose=0)
    assert model.starts == starts


def test_enough_starts_are_within_one_percent_of_infinitely_many() -> None:
    rng, rows = np.random.default_rng(0), 20_000
    limit = rng.normal(size=rows)
    weight = rng.uniform(0.5, 2, rows)
    target = limit + rng.normal(size=rows)  # m = 1
    for variance, least in ((0.0, 2), (0.05, 3), (0.3, 15)):
        fits = [limit + np.sqrt(variance) * rng.normal(size=rows) for _ in range(2)]
        while not do_agree(
            weight @ np.var(fits, axis=0, ddof=1), weight @ (target - np.mean(fits, axis=0)) ** 2,
            len(fits), Settings().agreement,
        ):  # fmt: skip
            fits.append(limit + np.sqrt(variance) * rng.normal(size=rows))
        assert least <= len(fits) <= least + 2
        missed = [weight @ (target - own) ** 2 for own in (np.mean(fits, axis=0), limit)]
        assert np.sqrt(missed[0] / missed[1]) - 1 < 0.0105


def test_models_without_interactions_have_one_start(
    data: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "ROWS_OF_STARTS", 40_000)
    model = ak.AdditiveModel("y ~ s(a) + b", data)
    once = len(model.fit(data, verbose=0).epoch)
    assert len(ak.AdditiveModel("y ~ s(a) + b", data).fit(data, verbose=0, restarts=0).epoch) == once


@pytest.mark.parametrize("order", [2, 3])
def test_tests_of_interactions_do_not_depend_on_the_number_of_starts(
    data: pd.DataFrame, order: int
) -> None:
    rng = np.random.default_rng(2)
    truth = 3 * data.a * data.b * (data.c if order == 3 else 1)
    frame = data.assign(z=truth + rng.normal(size=len(data)))
    formula = (
        "z ~ ahofm(a, b, c, D=3, F=1, k=8, df=6)" if order == 3 else "z ~ afm(a, b, F=1, k=8, df=6)"
    )
    found, needed = [], []
    for starts in (1, 4):
        model = ak.AdditiveModel(formula, frame, starts=starts)
        model.fit(frame, restarts=starts - 1, verbose=0)
        assert float(model.posterior.fits) == starts
        found.append(ak.summary(model).terms.iloc[-1])
        needed.append(ak.check(model).basis.edf.max())
    one, several = found
    assert several.edf == pytest.approx(one.edf, rel=0.02)  # all starts find the same
    assert several.ref_df == pytest.approx(one.ref_df, rel=0.02)
    assert several.statistic == pytest.approx(one.statistic, rel=0.05)
    assert needed[1] == pytest.approx(needed[0], rel=0.1)
