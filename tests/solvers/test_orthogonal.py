"""Post-hoc orthogonalization: what structured terms can say too becomes theirs, and no prediction moves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from ahofm_keras.bases import evaluate_basis
from ahofm_keras.solvers.job import FitJob, Rows
from ahofm_keras.solvers.orthogonal import orthogonalise
from ahofm_keras.tensors import row_products
from ahofm_keras.transforms import evaluate_expression
from tests.deep_models import image_net, simulate, small_net

FORMULAS = {
    "linear": 'y ~ x1 + s(x3) + deep(x1, x2, net="net")',
    "smooth": 'y ~ s(x1) + x3 + deep(x1, x2, net="net")',
    "surface": 'y ~ te(x1, x2, k=5) + deep(x1, x2, net="net")',
    "category": 'y ~ g + s(x2) + deep(g, x2, net="wide")',
    "interactions": 'y ~ afm(x1, x2, F=2) + deep(x1, x2, net="net")',
    "no intercept": 'y ~ 0 + x1 + deep(x1, x2, net="net")',
    "all": 'y ~ x1 + s(x3) + deep(image, x2, net="image", orthogonalize="all")',
    "nothing shared": 'y ~ x1 + deep(image, x2, net="image")',
}
NETS = {"net": small_net(), "wide": small_net(4), "image": image_net(), "five": small_net(5)}


def make(formula: str, data: Any) -> Any:
    nets = {name: net for name, net in NETS.items() if f'net="{name}"' in formula}
    return ak.AdditiveModel(formula, data, nets=nets)


def job_of(model: Any, data: Any, weight: Any = None) -> FitJob:
    rows = model._reader.with_response(data, None, weight)
    assert isinstance(rows, Rows)
    return FitJob(rows)


def disturb(model: Any, seed: int = 0) -> None:
    """Weights as a fit may have left them."""
    rng = np.random.default_rng(seed)
    for span in next(iter(model.design.layout.values())).spans:
        layer = model.get_layer(span.term.name)
        layer.assign_coordinates(0.3 * rng.normal(size=layer.coordinates().shape))
    if model.predictor.bias is not None:
        model.predictor.bias.assign(0.4)


def design_of(model: Any, data: Any, shared: list[str]) -> np.ndarray:
    """A constant and the leading functions of some terms, by NumPy in float64: an oracle."""
    columns = model.read_inputs(data)
    predictor = next(iter(model.design.predictors.values()))
    found = [np.ones((len(columns["x2"]), 1))] * predictor.intercept
    for span in next(iter(model.design.layout.values())).spans:
        if span.term.label not in shared:
            continue
        block = span.block
        if not block.features:
            own = (span.term.parametric.raw(columns) - span.term.centre) / span.term.scale
        else:
            each = [
                (evaluate_basis(f.basis, evaluate_expression(f.expression, columns)) @ f.transform).T
                for f in block.features
            ]
            own = row_products(each, block.pure).T
        found.append(own[:, block.leading])
    return np.concatenate(found, axis=1)


SHARED = {
    "linear": ["x1"],
    "smooth": ["s(x1)"],
    "surface": ["te(x1, x2)"],
    "category": ["g", "s(x2)"],
    "interactions": ["s(x1)", "s(x2)"],
    "no intercept": ["x1"],
    "all": ["x1", "s(x3)"],
    "nothing shared": [],
}


@pytest.mark.parametrize("name", FORMULAS)
def test_the_rest_is_orthogonal_and_predictions_stay(name: str) -> None:
    data = simulate(1, 200)
    model = make(FORMULAS[name], data)
    disturb(model)
    before, terms = model.predict(data), model.predict(data, type="terms")
    term = next(term for term in model.design.terms if term.networks)
    label = term.label
    orthogonalise(model, job_of(model, data))
    np.testing.assert_allclose(model.predict(data), before, rtol=1e-6, atol=1e-6)
    rest = model.predict(data, type="terms")[label].to_numpy()
    assert np.std(rest) > 1e-3
    X = design_of(model, data, SHARED[name])
    size = np.linalg.norm(X, axis=0) * np.linalg.norm(rest)
    # The columns of bases are computed in float32 in the graph, here in float64.
    np.testing.assert_allclose((X.T @ rest) / size, 0.0, atol=1e-6)
    found = model._outputs.run("complement", [job_of(model, data).training.encoded], term.name)
    own, size = found.get("X", np.zeros((200, 0))), np.linalg.norm(found["rest"])
    inner = own.T @ found["rest"] / np.linalg.norm(own, axis=0) / size
    np.testing.assert_allclose(inner, 0.0, atol=1e-8)
    # What was taken out is what least squares find in what was there before.
    start = terms[label].to_numpy()
    expected = start - X @ np.linalg.lstsq(X, start, rcond=1e-9)[0]
    np.testing.assert_allclose(rest, expected, atol=1e-4 * np.std(start))


def test_leading_functions_are_as_many_as_the_degrees_of_freedom() -> None:
    data = simulate(9, 400)
    model = make('y ~ s(x1, k=30, df=6) + s(x2, k=30) + g + deep(x1, x2, g, net="five")', data)
    blocks = {span.term.label: span.block for span in model.design.layout["mean"].spans}
    counts = {label: len(block.leading) for label, block in blocks.items()}
    assert counts["g"] == 2
    assert 4 <= counts["s(x1)"] <= 6  # tr H, where tr(2H - HH) is 6
    assert counts["s(x1)"] < counts["s(x2)"] < 22
    smooth = blocks["s(x2)"]
    assert (
        smooth.penalties[0][smooth.leading].max() <= np.delete(smooth.penalties[0], smooth.leading).min()
    )
    levels = make('y ~ s(g) + deep(g, x2, net="wide")', data).design.layout["mean"].spans[0].block
    assert len(levels.leading) == levels.size


def test_a_network_beside_rich_bases_is_tame_at_new_rows() -> None:
    """Least squares on hundreds of functions would be far off between the rows that they follow."""
    rng = np.random.default_rng(100)
    data = {name: rng.standard_t(3, 300) for name in ("x1", "x2")}
    data["y"] = np.sin(data["x1"]) + data["x2"] * np.tanh(data["x1"]) + 0.3 * rng.normal(size=300)
    model = make('y ~ s(x1, k=100) + s(x2, k=100) + deep(x1, x2, net="net")', data)
    kept = np.sort(rng.permutation(300)[:200])
    train = {name: own[kept] for name, own in data.items()}
    disturb(model)
    before = model.predict(data, type="terms")["deep(x1, x2)"]
    orthogonalise(model, job_of(model, train))
    after = model.predict(data, type="terms")["deep(x1, x2)"]
    assert np.abs(after).max() < 3 * np.abs(before).max()


def test_a_second_time_changes_nothing() -> None:
    data = simulate(2, 150)
    model = make(FORMULAS["smooth"], data)
    orthogonalise(model, job_of(model, data))
    before = model.get_weights()
    orthogonalise(model, job_of(model, data))
    for found, expected in zip(model.get_weights(), before, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-7)


def test_rows_count_by_their_weights() -> None:
    data, weight = simulate(3, 150), np.random.default_rng(0).integers(0, 4, 150).astype(float)
    model = make(FORMULAS["linear"], data)
    orthogonalise(model, job_of(model, data, weight))
    rest = model.predict(data, type="terms")["deep(x1, x2)"].to_numpy()
    x = data["x1"]
    assert abs(np.sum(weight * rest * x)) < 1e-5 * np.sum(np.abs(weight * rest * x))
    assert abs(np.sum(rest * x)) > 1e-2 * np.sum(np.abs(rest * x))
    layer = model.get_layer(model.design.terms[-1].name)
    assert float(layer.variance) * model.scale**2 == pytest.approx(
        np.average(rest**2, weights=weight) - np.average(rest, weights=weight) ** 2, rel=1e-4
    )


def test_a_shape_is_left_alone() -> None:
    """What is added to its coefficients might break it."""
    data = simulate(8, 150)
    model = make('y ~ s(x1, shape="increasing") + x2 + deep(x1, x2, net="net")', data)
    before = model.get_layer("s_x1").coordinates()
    orthogonalise(model, job_of(model, data))
    np.testing.assert_array_equal(model.get_layer("s_x1").coordinates(), before)
    layer, _ = model._graph.complements[model.design.terms[-1].name]
    assert layer.size == 1


def test_what_is_left_alone_stays() -> None:
    data = simulate(4, 120)
    model = make('y ~ x1 + deep(x1, x2, net="net", orthogonalize=False)', data)
    disturb(model)
    before = model.predict(data, type="terms")
    orthogonalise(model, job_of(model, data))
    pd.testing.assert_frame_equal(model.predict(data, type="terms"), before)
    layer = model.get_layer(model.design.terms[-1].name)
    found = float(layer.mean) * model.scale, float(layer.variance) * model.scale**2
    deep = before["deep(x1, x2)"]
    assert found == pytest.approx((deep.mean(), deep.var(ddof=0)), rel=1e-4)


def test_columns_that_depend_on_each_other() -> None:
    data = simulate(5, 150)
    data["x1b"] = data["x1"] + 1e-7 * data["x2"]
    model = make('y ~ s(x1) + s(x1b) + ti(x1, x2, k=5) + deep(x1, x1b, net="net")', data)
    disturb(model)
    before = model.predict(data)
    orthogonalise(model, job_of(model, data))
    np.testing.assert_allclose(model.predict(data), before, rtol=1e-6, atol=1e-6)
    rest = model.predict(data, type="terms")["deep(x1, x1b)"].to_numpy()
    X = design_of(model, data, ["s(x1)", "s(x1b)", "ti(x1, x2)"])
    np.testing.assert_allclose(
        X.T @ rest / np.linalg.norm(rest) / np.linalg.norm(X, axis=0), 0, atol=1e-6
    )


def test_a_linear_signal_in_the_network_leaves_the_linear_effect_where_it_was() -> None:
    """Of gaussian rows: X'(y - rest) = X'y, so the structured fit is that without the network."""
    data = simulate(6, 400)
    held = {name: own[300:] for name, own in data.items()}
    data = {name: own[:300] for name, own in data.items()}
    for name in ("x1", "x2", "x3"):
        held[name] = np.clip(held[name], data[name].min(), data[name].max())
    plain = ak.AdditiveModel("y ~ x1 + s(x3)", data)
    plain.fit(data, verbose=0)
    known = ak.summary(plain).coefficients.loc["x1", "estimate"]
    away = {}
    for orthogonalize in (True, False):
        text = FORMULAS["linear"].replace('"net"', f'"net", orthogonalize={orthogonalize}')
        deep = ak.AdditiveModel(text, data, nets={"net": NETS["net"]})
        with pytest.warns(ak.AhofmWarning, match="reached its last epoch"):
            deep.fit(data, validation_data=held, epochs=30, verbose=0)
        assert ak.shares(deep).set_index("part").share["deep(x1, x2)"] > 0.02
        found = ak.summary(deep).coefficients.loc["x1"]
        away[orthogonalize] = abs(found.estimate - known) / found.se
    assert away[True] < 0.2 < 1 < away[False]
