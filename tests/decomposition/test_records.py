"""`effect` and `effects`: records of curves and surfaces, and what cannot be asked for."""

from __future__ import annotations

from pathlib import Path

import keras
import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from ahofm_keras.decomposition import Parts, effect, effects, interactions, shares
from tests.decomposition.conftest import build, on_rows, random_model

FORMULA = 'gaussian ~ Q("a b") + group:x3 + C(digit) + ahofm(x1, x2, group, Q("c:d"), D=3, F=2) + ahofm(x1, hour)'


@pytest.fixture(scope="module")
def model(frame: pd.DataFrame) -> ak.AdditiveModel:
    return random_model(FORMULA, frame)


def place_of(parts: Parts, label: str) -> int:
    return [variable.label for variable in parts.variables].index(label)


@pytest.mark.parametrize(
    "features", [("x1",), ("group",), ("x2", "x1"), ("group", "x1"), ("x1", "group", "x2")]
)
def test_the_record_holds_the_part(
    model: ak.AdditiveModel, frame: pd.DataFrame, features: tuple[str, ...]
) -> None:
    """On the grid, and at values of rows."""
    parts = Parts(model)
    subset = tuple(place_of(parts, name) for name in features)
    record = effect(model, *features)
    points = {1: 120, 2: 50, 3: 25}[len(features)]
    assert record.fit.shape == tuple(3 if name == "group" else points for name in features)
    assert record.features == features
    assert record.label == ":".join(features)
    assert record.order == len(features)
    assert record.categories == tuple(name == "group" for name in features)
    assert record.share == pytest.approx(parts.variance(subset) / parts.total_variance)
    assert not record.purified
    for name, axis in zip(features, record.grid, strict=True):
        if name == "group":
            assert axis.tolist() == ["a", "b", "c"]
        else:
            np.testing.assert_allclose(axis, np.linspace(frame[name].min(), frame[name].max(), points))
    at = {name: frame[name][:4] for name in features}
    functions, _ = on_rows(model, parts, frame[:4])
    values = effect(model, *features, at=at).fit
    diagonal = values[tuple(np.arange(4) for _ in features)]
    expected = parts.evaluate(subset, [functions[v] for v in subset])
    np.testing.assert_allclose(diagonal, expected, rtol=1e-9, atol=1e-12)


def test_features_in_any_order_and_spelling(model: ak.AdditiveModel) -> None:
    one, other = effect(model, "x1", "x2"), effect(model, "x2:x1")
    np.testing.assert_allclose(one.fit, other.fit.T)
    assert (one.label, other.label) == ("x1:x2", "x2:x1")
    assert one.share == pytest.approx(other.share, rel=1e-12)
    assert effect(model, "a b").label == 'Q("a b")'
    assert effect(model, "C(digit)").label == effect(model, "digit").label == "digit"
    assert effect(model, "c:d").features == ('Q("c:d")',)
    for spelling in [("c:d", "x1"), ('Q("c:d"):x1',), ("c:d:x1",), ('Q("c:d")', "x1")]:
        assert effect(model, *spelling, points=3).features == ('Q("c:d")', "x1")
    assert effect(model, "x1:c:d:group", points=3).features == ("x1", 'Q("c:d")', "group")


def test_the_longest_name_is_meant(frame: pd.DataFrame) -> None:
    data = frame.rename(columns={"x1": "c", "x2": "d"})
    model = random_model('gaussian ~ c:d + x3:Q("c:d")', data)
    assert effect(model, "c:d").features == ('Q("c:d")',)
    assert effect(model, "x3:c:d").features == ("x3", 'Q("c:d")')
    assert effect(model, "c", "d").features == ("c", "d")


def test_all_effects(model: ak.AdditiveModel) -> None:
    found = effects(model, points=5)
    main = [e.label for e in found if e.order == 1]
    assert main == ['Q("a b")', "group", "x3", "digit", "x1", "x2", 'Q("c:d")', "hour"]
    pairs = [e for e in found if e.order == 2]
    assert len(pairs) == 8
    assert [e.share for e in pairs] == sorted((e.share for e in pairs), reverse=True)
    assert [e.label for e in pairs] == interactions(model, 2).label.tolist()
    assert {e.order for e in found} == {1, 2}
    assert [e.label for e in effects(model, 2, top=2, points=3)] == [e.label for e in pairs[:2]]
    assert [e.label for e in effects(model, 3, points=3)] == interactions(model, 3).label.tolist()
    assert len(effects(model, 1, top=2, points=3)) == 8
    total = sum(e.share for e in found) + interactions(model, 3).share.sum()
    assert total == pytest.approx(1, abs=1e-6)


def test_the_table_of_an_effect(model: ak.AdditiveModel) -> None:
    record = effect(model, "group", "x1", points=4)
    table = record.frame()
    assert list(table) == ["group", "x1", "fit"]
    np.testing.assert_array_equal(table.fit.to_numpy().reshape(3, 4), record.fit)
    assert table.group.tolist() == [level for level in "abc" for _ in range(4)]
    assert repr(record) == f"<Effect group:x1: 3 x 4 points, share {record.share:.1%}>"


def test_an_interaction_that_was_switched_off_is_zero(frame: pd.DataFrame) -> None:
    model = random_model("gaussian ~ x3 + ahofm(x1, x2, D=2, F=2)", frame)
    layer = model.get_layer(model.design.terms[-1].name)
    layer.factors[0].assign(np.zeros(layer.factors[0].shape))
    record = effect(model, "x1", "x2")
    assert not record.fit.any()
    assert record.share == 0
    assert [e.label for e in effects(model)] == ["x3", "x1", "x2"]
    assert interactions(model).share.tolist() == [0]


def test_where_rows_are_near(frame: pd.DataFrame) -> None:
    """Rows along the diagonal: the corners are far from them."""
    rng = np.random.default_rng(0)
    x = rng.uniform(size=300)
    data = pd.DataFrame(
        {"x1": x, "x2": x + rng.uniform(-0.01, 0.01, 300), "g": np.where(x < 0.5, "low", "up")}
    )
    data["gaussian"] = rng.normal(size=300)
    model = random_model("gaussian ~ ahofm(x1, x2, g, D=3, F=1)", data)
    surface = effect(model, "x1", "x2", points=21)
    gap = np.abs(surface.grid[0][:, None] - surface.grid[1])
    assert surface.near_data is not None
    assert surface.near_data[gap < 1 / 24].all()
    assert not surface.near_data[gap > 5 / 24].any()
    np.testing.assert_array_equal(effect(model, "x2", "x1", points=21).near_data, surface.near_data.T)
    by_level = effect(model, "g", "x1", at={"x1": [0.1, 0.9]})
    np.testing.assert_array_equal(by_level.near_data, [[True, False], [False, True]])
    triple = effect(model, "x1", "x2", "g", at={"x1": [0.1, 0.9], "x2": [0.1, 0.9]})
    expected = np.zeros((2, 2, 2), bool)
    expected[0, 0, 0] = expected[1, 1, 1] = True
    np.testing.assert_array_equal(triple.near_data, expected)
    with pytest.warns(ak.AhofmWarning, match=r"`x1` outside the training range.*clipped"):
        curve = effect(model, "x1", at={"x1": [0.5, 1.5]})
    assert curve.near_data.tolist() == [True, False]


def test_products_of_linear_terms_know_where_rows_are(frame: pd.DataFrame) -> None:
    model = random_model("gaussian ~ x1:x3 + x1:group", frame)
    assert effect(model, "x1", "x3").near_data is not None
    assert effect(model, "x1", "group").near_data is not None


def test_a_loaded_model_has_the_same_effects(model: ak.AdditiveModel, tmp_path: Path) -> None:
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.sample is None
    for before, after in zip(effects(model, points=4), effects(loaded, points=4), strict=True):
        assert before.label == after.label
        np.testing.assert_allclose(after.fit, before.fit, rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(after.near_data, before.near_data)
        assert after.share == pytest.approx(before.share, rel=1e-9)


# What cannot be asked for


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (("X1",), "no feature `X1`. Did you mean `x1`"),
        (("exposure",), r"no feature `exposure`.* It has: `Q\(\"a b\"\)`, `group`"),
        (("gruop", "x1"), "Did you mean `group`"),
        (("x1:nothing",), "no feature `nothing`"),
        (("x1", "x1"), "A feature stands twice in `x1`, `x1`"),
        (("x1:x2:x1",), "A feature stands twice"),
        ((), "Name at least one feature. The model has: "),
        ((3,), "Features are given by name. Received: 3"),
        ((["x1", "x2"],), "Features are given by name"),
        (("x1", "x2", "group", "c:d"), "interactions of order 3 at most; 4 features were given"),
        (
            ("x1", "a b"),
            r"no interaction of `x1`, `Q\(\"a b\"\)`: no term holds them all. `x1` interacts with: `group`",
        ),
        (("a b", "x1"), r"`Q\(\"a b\"\)` has none"),
        (("x1", "hour", "x2"), "no interaction of `x1`, `hour`, `x2`"),
    ],
)
def test_features_that_have_no_effect(
    model: ak.AdditiveModel, features: tuple[object, ...], message: str
) -> None:
    with pytest.raises(ak.DataError, match=message):
        effect(model, *features)


@pytest.mark.parametrize(
    ("at", "message"),
    [
        ({"x1": [0.1, np.nan]}, "`at` has values for `x1` that are not finite"),
        ({"x1": np.inf}, "not finite"),
        ({"x1": "a"}, "`at` must hold numbers for `x1`"),
        ({"x1": []}, "`at` has no values for `x1`"),
        ({"x1": [None]}, "not finite|numbers"),
        ({"group": ["a", "z"]}, "'z' is no level of `group`; it has: 'a', 'b', 'c'"),
        ({"group": 1}, "1 is no level"),
        ({"x2": 0.5}, "The effect has no feature `x2`. It has: `x1`, `group`"),
        ({"nothing": 1}, "no feature `nothing`"),
        ([0.1], "`at` must go from features to values"),
    ],
)
def test_values_that_cannot_be_evaluated(model: ak.AdditiveModel, at: object, message: str) -> None:
    with pytest.raises(ak.DataError, match=message):
        effect(model, "x1", "group", at=at)


def test_values_outside_are_refused_where_the_model_refuses_them(frame: pd.DataFrame) -> None:
    model = random_model("gaussian ~ s(x1) + x3", frame, extrapolation="error")
    with pytest.raises(ak.DataError, match="`x1` outside the training range"):
        effect(model, "x1", at={"x1": 5.0})
    effect(model, "x3", at={"x3": 1e6})
    beyond = random_model("gaussian ~ s(x1)", frame, extrapolation="linear")
    line = effect(beyond, "x1", at={"x1": [5.0, 6.0, 7.0]}).fit
    assert line[2] - line[1] == pytest.approx(line[1] - line[0], rel=1e-6)


@pytest.mark.parametrize("points", [0, 1, -5, 2.5, True, "9"])
def test_points_that_are_none(model: ak.AdditiveModel, points: object) -> None:
    for call in (lambda: effect(model, "x1", points=points), lambda: effects(model, points=points)):
        with pytest.raises(ak.DataError, match="`points` must be a whole number from 2 on"):
            call()


def test_orders_and_tops_that_are_none(model: ak.AdditiveModel) -> None:
    for order in (0, True, 1.0, "1"):
        with pytest.raises(ak.DataError, match="`order` must be a whole number"):
            effects(model, order)
    with pytest.raises(ak.DataError, match="highest order is 3"):
        effects(model, 4)
    with pytest.raises(ak.DataError, match="`top` must be a whole number from 1 on"):
        effects(model, top=0)


READERS = [lambda m: effect(m, "x1"), effects, interactions, shares]


@pytest.mark.parametrize("read", READERS)
def test_models_that_cannot_be_read(frame: pd.DataFrame, read) -> None:
    with pytest.raises(ak.NotFittedError, match=r"call `model\.fit"):
        read(build("gaussian ~ s(x1)", frame))
    with pytest.raises(ak.DataError, match="Received: Sequential"):
        read(keras.Sequential())
    model = random_model("gaussian ~ s(x1)", frame)
    config = model.get_config()
    config["state"] = {**config["state"], "design": {**config["state"]["design"], "margins": None}}
    old = ak.AdditiveModel.from_config(config)
    old.set_weights(model.get_weights())
    with pytest.raises(ak.DataError, match="did not keep the margins of its training data"):
        read(old)
