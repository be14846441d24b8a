"""Models with networks, from the fit to files, exports, tables and pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

import ahofm_keras as ak
from ahofm_keras.errors import DataError
from ahofm_keras.reporting.known_rows import find_known_rows
from tests.deep_models import frame_of, image_net, simulate, small_net

FORMULA = 'y ~ x1 + s(x3) + deep(x1, x2, net="net") + deep(image, g, x2, net="image")'
IMAGE, LAST = keras.Input((5, 5, 1)), keras.Input((4,))
NETS = {
    "net": small_net(),
    "image": keras.Model(
        [IMAGE, LAST],
        keras.layers.Dense(1)(
            keras.layers.Concatenate()([keras.layers.Dropout(0.2)(keras.layers.Flatten()(IMAGE)), LAST])
        ),
    ),
}
DATA, NEW = simulate(1, 240), simulate(2, 60)
for _name in ("x1", "x2", "x3"):
    NEW[_name] = np.clip(NEW[_name], DATA[_name].min(), DATA[_name].max())
LABELS = ["deep(x1, x2)", "deep(image, g, x2)"]


@pytest.fixture(scope="module")
def model() -> Any:
    model = ak.AdditiveModel(FORMULA, DATA, nets=NETS)
    with pytest.warns(ak.AhofmWarning, match=r"its last epoch of the networks \(12\)"):
        model.fit(DATA, epochs=12, verbose=0)
    return model


def test_networks_and_exact_updates_take_turns(model: Any) -> None:
    result = model.fit_result
    assert (result.solver, result.posterior, result.epochs) == ("hybrid", "variational", 12)
    assert not result.converged
    assert result.rows == 204  # 15 % are held out to stop the networks early
    assert model.has_posterior
    assert model.predict(NEW, interval=0.9).columns[0] == "mean"


def test_terms_sum_to_the_link(model: Any) -> None:
    terms = model.predict(NEW, type="terms")
    assert list(terms) == ["x1", "s(x3)", *LABELS]
    np.testing.assert_allclose(
        terms.sum(axis=1) + model.intercept, model.predict(NEW, type="link"), atol=1e-6
    )


def test_tables_name_networks_and_their_shares(model: Any) -> None:
    summary = ak.summary(model)
    own = summary.terms.loc[LABELS]
    assert own.kind.tolist() == ["network", "network"]
    assert own.order.tolist() == [2, 3]
    assert (own.share > 0).all()
    assert own.edf.isna().all()
    assert own.p_value.isna().all()
    assert "Networks" in str(summary)
    assert "hybrid: 12 epochs" in str(summary)
    shares = ak.shares(model).set_index("part")
    assert shares.share.sum() == pytest.approx(1.0)
    assert shares.share_rows.sum() == pytest.approx(1.0)
    assert shares.share[LABELS].tolist() == pytest.approx(own.share.tolist())
    assert summary.terms.share.sum() == pytest.approx(1.0, abs=1e-6)


def test_an_explanation_sums_to_the_link(model: Any) -> None:
    row = {name: own[[7]] for name, own in NEW.items()}
    found = ak.explain(model, row)
    assert found.link == pytest.approx(float(model.predict(row, type="link")[0]), abs=1e-5)
    assert set(LABELS) <= set(found.table.part)
    terms = model.predict(row, type="terms").loc[0]
    own = found.table.set_index("part").contribution
    assert own[LABELS].to_numpy() == pytest.approx(terms[LABELS].to_numpy(), abs=1e-6)


def test_the_structured_part_is_read_as_always(model: Any) -> None:
    assert [effect.label for effect in ak.effects(model)] == ["x1", "x3"]
    slope = ak.summary(model).coefficients.loc["x1"]
    assert abs(slope.estimate - 1.5) < 4 * slope.se
    assert (ak.effect(model, "x3").se > 0).all()
    assert set(ak.check(model).concurvity.term) >= set(LABELS)
    ak.plot(model)
    plt.close("all")


def test_a_page_holds_networks_at_their_average(model: Any, tmp_path: Path) -> None:
    ak.report(model, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "what the network deep(image, g, x2) adds, which this page holds at its average" in page
    known = find_known_rows(model, DATA)
    assert known is not None
    np.testing.assert_allclose(known.mean, model.predict(DATA), atol=1e-5)


def test_files_clones_and_exports_predict_the_same(model: Any, tmp_path: Path) -> None:
    expected = model.predict(NEW, interval=0.9)
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    pd.testing.assert_frame_equal(again.predict(NEW, interval=0.9), expected)
    assert ak.summary(again).terms.share.tolist() == ak.summary(model).terms.share.tolist()
    assert again.fit_result == model.fit_result
    clone = keras.models.clone_model(model)
    clone.set_weights(model.get_weights())
    pd.testing.assert_frame_equal(clone.predict(NEW, interval=0.9), expected)
    model.save_weights(tmp_path / "some.weights.h5")
    fresh = ak.AdditiveModel(FORMULA, DATA, nets=NETS)
    fresh.load_weights(tmp_path / "some.weights.h5")
    pd.testing.assert_frame_equal(fresh.predict(NEW, interval=0.9), expected)
    model.export(tmp_path / "served", verbose=False)
    served = tf.saved_model.load(tmp_path / "served").signatures
    columns = {name: tf.constant(NEW[name]) for name in ("x1", "x2", "x3", "g", "image")}
    found = served["serving_default"](**columns)["response"]
    np.testing.assert_allclose(found, expected["mean"], rtol=1e-5, atol=1e-5)
    terms = served["terms"](**columns)
    own = model.predict(NEW, type="terms")["deep(x1, x2)"]
    np.testing.assert_allclose(terms["deep_x1_x2"], own, rtol=1e-4, atol=1e-5)


def test_a_fit_goes_on(model: Any, tmp_path: Path) -> None:
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    before = model.fit_result.deviance
    with pytest.warns(ak.AhofmWarning, match="its last epoch"):
        history = again.fit(DATA, epochs=3, verbose=0)
    assert len(history.epoch) == 3
    assert again.fit_result.deviance < 1.2 * before


class Watch(keras.callbacks.Callback):
    """Notes what it is told, and stops."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[Any] = []

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.told.append((epoch, sorted(logs), type(self.model).__name__))
        self.model.stop_training = len(self.told) == 3


def test_callbacks_see_the_model_and_may_stop_it() -> None:
    watch = Watch()
    model = ak.AdditiveModel('y ~ x1 + deep(x1, x2, net="net")', DATA, nets={"net": small_net()})
    model.compile(optimizer=keras.optimizers.SGD(0.01), jit_compile=False)
    history = model.fit(DATA, verbose=0, callbacks=[watch], batch_size=64)
    logs = ["deviance", "loss", "val_deviance", "val_loss"]
    assert watch.told == [(epoch, logs, "AdditiveModel") for epoch in range(3)]
    assert len(history.epoch) == 3
    assert model.fit_result.solver == "hybrid"


def test_turns_reach_what_mini_batches_reach() -> None:
    text = 'y ~ s(x3) + deep(x1, x2, net="net")'
    found = {}
    for solver in ("hybrid", "adam"):
        model = ak.AdditiveModel(text, DATA, nets={"net": small_net()})
        model.fit(DATA, solver=solver, validation_data=NEW, verbose=0)
        assert model.fit_result.converged
        found[solver] = np.mean((model.predict(NEW) - NEW["y"]) ** 2)
    assert found["hybrid"] < 1.1 * found["adam"]
    assert found["hybrid"] < 0.3 * np.var(NEW["y"])


@pytest.mark.filterwarnings("ignore:The fit reached its last epoch")
def test_scale_may_depend_on_a_network() -> None:
    formulas = {"loc": "y ~ x1 + s(x3)", "scale": '~ x2 + deep(x2, x3, net="net")'}
    model = ak.AdditiveModel(formulas, DATA, "gaussian_ls", nets={"net": small_net()})
    model.fit(DATA, epochs=3, verbose=0)
    assert model.fit_result.solver == "adam"
    terms = model.parameter("scale").predict(DATA, type="terms")
    rest, x = terms["deep(x2, x3)"], DATA["x2"]
    assert rest.std() > 0
    held = len(DATA["y"]) - model.fit_result.rows
    assert held == 36
    assert ak.shares(model, parameter="scale").share.sum() == pytest.approx(1.0)
    assert "Networks" in str(ak.summary(model))
    link = model.parameter("scale").predict(DATA, type="link")
    assert np.corrcoef(link, terms.sum(axis=1))[0, 1] == pytest.approx(1.0)
    assert abs(np.corrcoef(rest, x)[0, 1]) < 0.2
    with pytest.raises(DataError, match=r"there are several predictors. Use solver=\"adam\""):
        model.fit(DATA, solver="hybrid", verbose=0)


@pytest.mark.filterwarnings("ignore:The fit reached its last epoch")
def test_datasets_with_arrays() -> None:
    model = ak.AdditiveModel('y ~ x1 + deep(image, x1, net="image")', DATA, nets={"image": image_net()})
    columns = {name: DATA[name] for name in ("x1", "image")}
    batches = tf.data.Dataset.from_tensor_slices((columns, DATA["y"])).batch(80)
    model.fit(batches, epochs=3, verbose=0)
    assert model.fit_result.solver == "adam"
    rest = model.predict(DATA, type="terms")["deep(image, x1)"].to_numpy()
    assert abs(np.corrcoef(rest, DATA["x1"])[0, 1]) < 1e-5 < rest.std()
    rows = tf.data.Dataset.from_tensor_slices(columns).batch(50)
    np.testing.assert_allclose(model.predict(rows), model.predict(DATA), rtol=1e-5, atol=1e-6)
    wrong = {**columns, "image": DATA["image"][:, :4]}
    with pytest.raises(
        DataError, match=r"`image` of the dataset must have the shape \(batch, 5, 5, 1\)"
    ):
        model.predict(tf.data.Dataset.from_tensor_slices(wrong).batch(50))
    gaps = {**columns, "image": np.full_like(DATA["image"], np.nan)}
    with pytest.raises(DataError, match="`image` of the dataset has missing or infinite values"):
        model.predict(tf.data.Dataset.from_tensor_slices(gaps).batch(50))


@pytest.mark.filterwarnings("ignore:The fit reached its last epoch")
def test_a_neural_additive_model_shows_its_curves() -> None:
    data = frame_of({name: DATA[name] for name in ("x1", "x3", "g", "y")})
    model = ak.nam(data, "y", units=(6,))
    assert model.formula == 'y ~ deep(x1, net="x1") + deep(x3, net="x3") + g'
    model.fit(data, epochs=4, verbose=0)
    found = {effect.label: effect for effect in ak.effects(model)}
    assert list(found) == ["g", "deep(x1)", "deep(x3)"]
    assert [own.label for own in ak.effects(model, order=1)] == list(found)
    curve = found["deep(x3)"]
    rows = {"x1": np.full(120, DATA["x1"][0]), "x3": curve.grid[0], "g": np.full(120, "a")}
    terms = model.predict(rows, type="terms")["deep(x3)"]
    np.testing.assert_allclose(curve.fit, terms, atol=1e-5)
    assert curve.grid[0][[0, -1]] == pytest.approx([data.x3.min(), data.x3.max()])
    assert sum(own.share for own in found.values()) == pytest.approx(1.0)
    page = ak.plot(model)
    assert list(page) == ["g", "deep(x1)", "deep(x3)"]
    plt.close("all")
    with pytest.raises(DataError, match="`nets` out"):
        ak.nam(data, "y", nets={})
    with pytest.raises(DataError, match=r"`units` must be sizes of hidden layers.*Received: 8"):
        ak.nam(data, "y", units=8)
    with pytest.raises(DataError, match="`activation` must be one of Keras"):
        ak.nam(data, "y", activation="tanhh")


def test_which_networks_are_curves() -> None:
    """Those of one column, unless what was taken out of them depends on others too."""
    text = (
        'y ~ te(x1, x2, k=4) + deep(x1, net="a") + deep(x3, net="b") + deep(g, net="c")'
        ' + deep(x1, x3, net="d") + deep(log(x3 + 2), net="e")'
    )
    nets = {name: small_net(size) for name, size in (("a", 1), ("b", 1), ("c", 3), ("d", 2), ("e", 1))}
    model = ak.AdditiveModel(text, DATA, nets=nets)
    for layer in model.fitted_layers():
        if layer.name.startswith("te_"):
            layer.assign_coordinates(0.1 + layer.coordinates())
    found = ak.effects(model, order=1)
    assert [own.label for own in found if "deep" in own.label] == ["deep(x3)", "deep(g)"]
    assert found[-1].categories == (True,)
    assert found[-1].grid[0].tolist() == ["a", "b", "c"]


def test_refined_models_go_on_with_their_networks() -> None:
    model = ak.AdditiveModel(
        'y ~ afm(x1, x2, k=5, F=1) + deep(x3, net="net")', DATA, nets={"net": small_net(1)}
    )
    layer = model.get_layer("afm_x1_x2")
    layer.assign_coordinates(0, layer.coordinates(0) + 0.3)
    (name,) = model.design.terms[-1].networks
    model.get_layer(name).set_weights([w + 0.1 for w in small_net(1).get_weights()])
    refined = ak.refine(model, top=1, fit=False, data=DATA)
    assert refined.formula.endswith("ti(x1, x2)")
    (again,) = next(term.networks for term in refined.design.terms if term.networks)
    for own, expected in zip(
        refined.get_layer(again).get_weights(), model.get_layer(name).get_weights(), strict=True
    ):
        np.testing.assert_array_equal(own, expected)


REFUSED = {
    "variational": r"`deep\(x1, x2\)` has no exact updates. Use solver=\"hybrid\" or solver=\"adam\"",
    "bcd": r"`deep\(x1, x2\)` has no exact updates",
}


@pytest.mark.parametrize("solver", REFUSED)
def test_exact_solvers_alone_cannot_fit_networks(solver: str) -> None:
    model = ak.AdditiveModel('y ~ x1 + deep(x1, x2, net="net")', DATA, nets={"net": small_net()})
    with pytest.raises(DataError, match=REFUSED[solver]):
        model.fit(DATA, solver=solver, verbose=0)


def test_turns_need_a_network() -> None:
    model = ak.AdditiveModel("y ~ x1", DATA)
    with pytest.raises(DataError, match='solver="hybrid" is for models with networks'):
        model.fit(DATA, solver="hybrid", verbose=0)
    model = ak.AdditiveModel('y ~ deep(x1, x2, net="net")', frame_of(DATA), nets={"net": small_net()})
    with pytest.raises(DataError, match='`restarts` has no meaning for solver="hybrid"'):
        model.fit(DATA, restarts=2, verbose=0)
