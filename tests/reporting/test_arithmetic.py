"""The page's arithmetic gives what the model gives: predictions, parts, standard errors."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from ahofm_keras.decomposition import Parts
from ahofm_keras.decomposition.groups import places_by_group
from ahofm_keras.decomposition.read_rows import functions_on
from ahofm_keras.families import LINKS
from ahofm_keras.reporting import arithmetic
from ahofm_keras.reporting.contents import collect
from ahofm_keras.reporting.encoding import unpack
from tests.decomposition.conftest import build
from tests.reporting import mirror

Run = Callable[[dict[str, Any], str], Any]
ROWS = 25


def contents_of(model: ak.AdditiveModel) -> dict[str, Any]:
    return json.loads(json.dumps(collect(model, None, None, 20, 0.95)))


def records(model: ak.AdditiveModel, frame: pd.DataFrame) -> list[dict[str, Any]]:
    columns = {name: frame[name].tolist() for name in model.design.columns}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def at_rows(rows: list[dict[str, Any]], then: str) -> str:
    """JavaScript of a list over rows."""
    return f"{json.dumps(rows)}.map((row) => new Map(Object.entries(row))).map((row) => {then})"


def axes_of(effect: ak.Effect) -> list[list[float]]:
    """Its grid as the page counts: levels by their index."""
    pairs = zip(effect.grid, effect.categories, strict=True)
    return [list(range(len(axis))) if category else axis.tolist() for axis, category in pairs]


def test_contents_predict(random_model: ak.AdditiveModel, frame: pd.DataFrame) -> None:
    rows = frame.iloc[:ROWS]
    found = [mirror.predict(contents_of(random_model), row) for row in records(random_model, rows)]
    wanted = random_model.family.inverse_link(random_model.predict(rows, type="link"), np)
    scale = float(frame[str(random_model.response)].std())
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5 * scale)


def test_scripts_predict(random_model: ak.AdditiveModel, frame: pd.DataFrame, run_script: Run) -> None:
    rows = frame.iloc[:ROWS].copy()
    if random_model.extrapolation == "linear":  # also beyond the training range
        rows.loc[:4, ["x1", "x2", "x3"]] *= 1.5
    link = random_model.predict(rows, type="link")
    found = np.array(
        run_script(
            contents_of(random_model),
            at_rows(records(random_model, rows), "[model.at(row).link, model.at(row).mean]"),
        )
    )
    scale = float(frame[str(random_model.response)].std())
    np.testing.assert_allclose(found[:, 0], link, rtol=1e-5, atol=1e-5 * np.std(link))
    mean = random_model.family.inverse_link(link, np)
    np.testing.assert_allclose(found[:, 1], mean, rtol=1e-5, atol=1e-5 * scale)


def test_scripts_take_a_row_apart(
    random_model: ak.AdditiveModel, frame: pd.DataFrame, run_script: Run
) -> None:
    parts, rows = Parts(random_model), frame.iloc[:4]
    functions = functions_on(parts, random_model.read_inputs(rows))
    found = run_script(
        contents_of(random_model),
        at_rows(
            records(random_model, rows),
            "model.partsAt(model.at(row)).map(({ order, subsets, values }) => ({ order, subsets: [...subsets],"
            " values: [...values], single: [...values].map((_, k) => model.partAt(model.at(row),"
            " [...subsets.subarray(k * order, (k + 1) * order)])) }))",
        ),
    )
    for place, orders in enumerate(found):
        assert [own["order"] for own in orders] == list(range(1, parts.largest_order + 1))
        for own in orders:
            subsets = np.array(own["subsets"]).reshape(-1, own["order"])
            assert sorted(subsets.tolist()) == parts.subsets(own["order"]).tolist()
            wanted = parts.evaluate_many(subsets, functions)[:, place]
            np.testing.assert_allclose(
                own["values"], wanted, rtol=1e-9, atol=1e-9 * np.abs(wanted).max()
            )
            np.testing.assert_allclose(own["single"], own["values"], rtol=1e-9, atol=1e-12)


def test_scripts_draw_effects(random_model: ak.AdditiveModel, run_script: Run) -> None:
    """Surfaces alone, and together with all that is smaller."""
    parts = Parts(random_model)
    subsets = parts.subsets(2)[:4].tolist()
    pairs = [[parts.variables[v].label for v in subset] for subset in subsets]
    effects = [ak.effect(random_model, *labels, points=5) for labels in pairs]
    drawn = ", ".join(
        f"[[...model.partOn({subset}, {axes_of(own)})], [...model.jointOn({subset}, {axes_of(own)})]]"
        for subset, own in zip(subsets, effects, strict=True)
    )
    found = run_script(contents_of(random_model), f"[{drawn}]")
    for labels, own, (alone, joint) in zip(pairs, effects, found, strict=True):
        first, second = (ak.effect(random_model, name, points=5).fit for name in labels)
        together = own.fit + first[:, None] + second
        for values, wanted in ((alone, own.fit), (joint, together)):
            scale = np.abs(wanted).max()
            np.testing.assert_allclose(values, wanted.reshape(-1), rtol=1e-7, atol=1e-9 * scale)


def test_scripts_know_the_uncertainty(
    fitted: ak.AdditiveModel, frame: pd.DataFrame, run_script: Run
) -> None:
    contents, rows = contents_of(fitted), frame.iloc[:ROWS]
    labels = [variable["label"] for variable in contents["arithmetic"]["variables"]]
    pairs = [("x1", "x2"), ("x3", "group"), ("x1", "flag")]
    effects = [ak.effect(fitted, *pair, points=6) for pair in pairs]
    surfaces = ", ".join(
        f"[...posterior.errorsOn({[labels.index(name) for name in pair]}, {axes_of(own)})]"
        for pair, own in zip(pairs, effects, strict=True)
    )
    at = at_rows(records(fitted, rows), "posterior.errorAt(model.at(row))")
    links, errors = run_script(contents, f"[{at}, [{surfaces}]]")
    wanted = fitted.predict(rows, type="link", interval=0.95)["se"]
    np.testing.assert_allclose(links, wanted, rtol=1e-4)
    for own, found in zip(effects, errors, strict=True):
        np.testing.assert_allclose(found, own.se.reshape(-1), rtol=1e-4, atol=1e-6 * own.se.max())


def test_scripts_know_the_uncertainty_of_tensor_products(frame: pd.DataFrame, run_script: Run) -> None:
    formula = "gaussian ~ group:x3 + te(x1, x2, k=4) + ti(group, x1) + ti(x3, x1, x2, k=4)"
    formula += " + s(x2, by=x3, k=5) + s(x3, group, bs='fs', k=4) + s(hour, by=flag, k=4) + flag"
    model = build(formula, frame)
    model.fit(frame, verbose=0, solver="bcd")
    contents, rows = contents_of(model), frame.iloc[:ROWS]
    labels = [variable["label"] for variable in contents["arithmetic"]["variables"]]
    pairs = [
        ("x1", "x2"),
        ("x2", "x1"),
        ("x1", "group"),
        ("group", "x3"),
        ("x3", "x2"),
        ("hour", "flag"),
    ]
    effects = [ak.effect(model, *pair, points=4) for pair in pairs]
    surfaces = ", ".join(
        f"[...posterior.errorsOn({[labels.index(name) for name in pair]}, {axes_of(own)})]"
        for pair, own in zip(pairs, effects, strict=True)
    )
    at = at_rows(records(model, rows), "[model.at(row).link, posterior.errorAt(model.at(row))]")
    found, errors = run_script(contents, f"[{at}, [{surfaces}]]")
    wanted = model.predict(rows, type="link", interval=0.95)
    np.testing.assert_allclose(np.array(found)[:, 0], wanted["link"], atol=1e-5 * wanted["link"].std())
    np.testing.assert_allclose(np.array(found)[:, 1], wanted["se"], rtol=1e-4)
    for own, error in zip(effects, errors, strict=True):
        np.testing.assert_allclose(error, own.se.reshape(-1), rtol=1e-4, atol=1e-6 * own.se.max())


def test_scripts_know_the_uncertainty_of_an_average(frame: pd.DataFrame, run_script: Run) -> None:
    a, b = (frame[name].rank() / len(frame) for name in ("x1", "x2"))
    noise = np.random.default_rng(0).normal(size=len(frame))
    data = frame.assign(z=5 * np.sin(4 * a) * b + np.cos(6 * b) * a + 0.4 * noise)
    model = ak.AdditiveModel("z ~ afm(x1, x2, x3, F=2, k=6)", data, starts=3)
    model.fit(data, restarts=2, verbose=0)
    assert len(places_by_group(model, Parts(model).groups[-1])) == 3
    contents, rows = contents_of(model), data.iloc[:ROWS]
    effect = ak.effect(model, "x1", "x2", points=5)
    at = at_rows(records(model, rows), "[model.at(row).link, posterior.errorAt(model.at(row))]")
    found, errors = run_script(contents, f"[{at}, [...posterior.errorsOn([0, 1], {axes_of(effect)})]]")
    wanted = model.predict(rows, type="link", interval=0.95)
    np.testing.assert_allclose(np.array(found)[:, 0], wanted["link"], atol=1e-5 * wanted["link"].std())
    np.testing.assert_allclose(np.array(found)[:, 1], wanted["se"], rtol=1e-4)
    np.testing.assert_allclose(errors, effect.se.reshape(-1), rtol=1e-4, atol=1e-6 * effect.se.max())


def test_scripts_know_the_uncertainty_of_uncentred_functions(
    frame: pd.DataFrame, run_script: Run
) -> None:
    """Also on circles of few functions, of which two meet on either side."""
    formula = "gaussian ~ ahofm(x1, group, D=2, F=2, k=5, center=False)"
    model = build(f"{formula} + ahofm(x1, x3, D=2, F=2, k=4, bs='cp', center=False)", frame)
    with pytest.warns(ak.AhofmWarning):
        model.fit(frame, verbose=0, solver="bcd", epochs=2)
    contents, rows = contents_of(model), frame.iloc[:ROWS]
    labels = [variable["label"] for variable in contents["arithmetic"]["variables"]]
    pairs = [("x1", "group"), ("x3", "x1")]
    effects = [ak.effect(model, *pair, points=5) for pair in pairs]
    surfaces = ", ".join(
        f"[...posterior.errorsOn({[labels.index(name) for name in pair]}, {axes_of(own)})]"
        for pair, own in zip(pairs, effects, strict=True)
    )
    at = at_rows(records(model, rows), "posterior.errorAt(model.at(row))")
    links, errors = run_script(contents, f"[{at}, [{surfaces}]]")
    np.testing.assert_allclose(links, model.predict(rows, type="link", interval=0.95)["se"], rtol=1e-4)
    for own, found in zip(effects, errors, strict=True):
        np.testing.assert_allclose(found, own.se.reshape(-1), rtol=1e-6)


def test_errors_of_uncentred_products_are_not_claimed(frame: pd.DataFrame, run_script: Run) -> None:
    """Products of three have a share in pairs there, by means that are uncertain themselves."""
    model = build("gaussian ~ ahofm(x1, x2, group, D=3, F=2, center=False)", frame)
    with pytest.warns(ak.AhofmWarning):
        model.fit(frame, verbose=0, solver="bcd", epochs=2)
    contents = contents_of(model)
    assert contents["posterior"] is not None
    assert run_script(contents, "posterior.errorsOn([0, 1], [[0.5], [1]])") is None


def test_a_large_posterior_is_left_out(
    fitted: ak.AdditiveModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert contents_of(fitted)["posterior"] is not None
    monkeypatch.setattr(arithmetic, "_MOST_COVARIANCES", 100)
    contents = contents_of(fitted)
    assert contents["posterior"] is None
    assert contents["posterior_left_out"] is True
    assert contents["margins"][0]["se"] is not None, "curves keep their bands"


@pytest.mark.parametrize("name", LINKS)
def test_scripts_know_every_link(
    name: str, random_models: dict[str, ak.AdditiveModel], run_script: Run
) -> None:
    link = LINKS[name]
    low = 1e-3 if link.domain[0] == 0 else -9.0
    eta = np.linspace(low, 9, 73)
    script = f"{eta.tolist()}.map((eta) => INVERSE_LINKS[{name!r}](eta))"
    found = run_script(contents_of(random_models["gaussian"]), script)
    np.testing.assert_allclose(found, link.inverse(eta, np), rtol=1e-12, atol=1e-15)


def test_scripts_know_atoms(frame: pd.DataFrame, run_script: Run) -> None:
    """At them, beside them and elsewhere, with their uncertainty; axes stand beside them."""
    rng = np.random.default_rng(3)
    x = np.where(rng.uniform(size=len(frame)) < 0.4, 0.3, frame["x1"])
    data = frame.assign(x1=x, z=2 * frame["x2"] * (x == 0.3) + frame["x1"] + rng.normal(size=len(frame)))
    formula = (
        "z ~ ahofm(x1, x2, D=2, F=2, k=6, atoms={'x1': [0.3]}) + ti(x1, x3, k=4, atoms={'x1': [0.3]})"
    )
    model = build(formula, data)
    with pytest.warns(ak.AhofmWarning):
        model.fit(data, verbose=0, solver="bcd", epochs=20)
    contents = contents_of(model)
    rows = data.iloc[:ROWS].copy()
    rows.iloc[:3, rows.columns.get_loc("x1")] = [0.3, 0.3 + 1e-9, 0.1 + 0.2]  # but for rounding the atom
    wanted = model.predict(rows, type="link", interval=0.95)
    exact = rows.assign(x1=np.where(np.abs(rows.x1 - 0.3) < 1e-12, 0.3, rows.x1))
    found = [mirror.predict(contents, row) for row in records(model, exact)]
    np.testing.assert_allclose(found, wanted["link"], atol=1e-5 * wanted["link"].std())
    at = at_rows(records(model, rows), "[model.at(row).link, posterior.errorAt(model.at(row))]")
    own = ak.effect(model, "x1", "x2", points=4, at={"x1": [0.3, 0.31]})
    surface = f"[...posterior.errorsOn([0, 1], {axes_of(own)})]"
    axis = "[...model.besideAtoms(0, [0.1, 0.3, 0.5, 0.3])]"
    links, errors, moved = run_script(contents, f"[{at}, {surface}, {axis}]")
    np.testing.assert_allclose(np.array(links)[:, 0], wanted["link"], atol=1e-5 * wanted["link"].std())
    np.testing.assert_allclose(np.array(links)[:, 1], wanted["se"], rtol=1e-4)
    np.testing.assert_allclose(errors, own.se.reshape(-1), rtol=1e-4)
    assert moved[0] == 0.1
    assert 0 < abs(moved[1] - 0.3) < 1e-6
    errors = ak.effect(model, "x1").atoms.se
    packed = contents["margins"][0]
    np.testing.assert_allclose(unpack(packed["atoms_se"]), errors, rtol=1e-6)
    # The page unpacks whatever a margin has.
    for margin in contents["margins"]:
        assert all(value is None or {"shape"} < set(value) for value in margin.values())


POINTS = (
    "gaussian ~ s(x1, exposure, k=12) + ti(x1, exposure, hour, d=(2, 1), k=(7, 4))"
    " + s(x2, bs='gp', k=8) + s(group, bs='mrf') + s(hour, x3, bs='ds', m=(2, 0.5), k=9)"
)


@pytest.mark.parametrize("extrapolation", ["clip", "linear"])
def test_scripts_know_points_and_regions(
    frame: pd.DataFrame, run_script: Run, extrapolation: str
) -> None:
    levels = sorted(frame["group"].unique())
    chain = {
        own: [levels[k] for k in (i - 1, i + 1) if 0 <= k < len(levels)] for i, own in enumerate(levels)
    }
    model = build(POINTS, frame, neighbours={"group": chain}, extrapolation=extrapolation)
    model.fit(frame, verbose=0, solver="bcd")
    contents, rows = contents_of(model), frame.iloc[:ROWS].copy()
    wanted = model.predict(rows, type="link", interval=0.95)
    found = [mirror.predict(contents, row) for row in records(model, rows)]
    np.testing.assert_allclose(found, wanted["link"], atol=1e-5 * wanted["link"].std())
    rows.iloc[:5, rows.columns.get_loc("x1")] += 1.0  # also beyond the training range
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ak.AhofmWarning)
        wanted = model.predict(rows, type="link", interval=0.95)
    effect = ak.effect(model, "x1", "exposure", points=4)
    points = np.stack(np.meshgrid(*effect.grid, indexing="ij"), axis=-1).reshape(-1, 2).tolist()
    three = ak.effect(model, "x1", "exposure", "hour", points=3)
    further = np.stack(np.meshgrid(*three.grid[:2], indexing="ij"), axis=-1).reshape(-1, 2).tolist()
    labels = [variable["label"] for variable in contents["arithmetic"]["variables"]]
    place, hour = labels.index("x1, exposure"), labels.index("hour")
    at = at_rows(records(model, rows), "[model.at(row).link, posterior.errorAt(model.at(row))]")
    links, map_, product = run_script(
        contents,
        f"[{at}, [...model.partOn([{place}], [{points}])],"
        f" [...model.partOn([{place}, {hour}], [{further}, {three.grid[2].tolist()}])]]",
    )
    np.testing.assert_allclose(np.array(links)[:, 0], wanted["link"], atol=1e-5 * wanted["link"].std())
    np.testing.assert_allclose(np.array(links)[:, 1], wanted["se"], rtol=1e-4)
    np.testing.assert_allclose(map_, effect.fit.reshape(-1), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(product, three.fit.reshape(-1), rtol=1e-7, atol=1e-9)
