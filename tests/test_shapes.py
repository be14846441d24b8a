"""`s(x, shape=...)`: the shape on a fine grid, fits against bounded least squares, files and pages."""

from __future__ import annotations

from pathlib import Path

import keras
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from scipy.interpolate import BSpline
from scipy.optimize import lsq_linear

import ahofm_keras as ak
from ahofm_keras.bases import evaluate_basis
from ahofm_keras.errors import FormulaError
from ahofm_keras.shapes import SHAPES, is_bent, shape_rows
from ahofm_keras.terms import Feature

ROWS = 250
RNG = np.random.default_rng(0)
DATA = pd.DataFrame({"x": RNG.uniform(0, 3, ROWS), "z": RNG.uniform(size=ROWS)})
DATA["skewed"] = np.exp(DATA.x)
DATA["gap"] = np.where(DATA.x > 2.9, 30.0, DATA.x)
DATA["g"] = RNG.choice(["a", "b", "c"], ROWS)
ETA = np.tanh(3 * (DATA.x - 1.5)) + np.sin(5 * DATA.z)
DATA["y"] = ETA + 0.5 * RNG.normal(size=ROWS)
DATA["count"] = RNG.poisson(np.exp(ETA / 2))
DATA["yes"] = RNG.uniform(size=ROWS) < 1 / (1 + np.exp(-ETA))
GRID = pd.DataFrame({"x": np.linspace(DATA.x.min(), DATA.x.max(), 1001), "z": 0.5, "g": "a"})

every_shape = pytest.mark.parametrize("shape", SHAPES)


def holds(shape: str, values: np.ndarray, slack: float) -> bool:
    """Whether values on an even grid have a shape, up to rounding."""
    slopes, bends = np.diff(values), np.diff(values, 2)
    slack = slack * max(np.abs(values).max(), 1.0)
    wanted = {"increasing": slopes, "decreasing": -slopes, "convex": bends, "concave": -bends}
    return all(own.min() >= -slack for word, own in wanted.items() if word in shape.split())


# Inequalities


@every_shape
@pytest.mark.parametrize("degree", [1, 2, 3])
def test_coordinates_of_a_shape_are_those_of_functions_that_have_it(shape: str, degree: int) -> None:
    size, rng = 9, np.random.default_rng(3)
    rows, free = shape_rows(shape, size)
    assert rows.shape == (size - 1, size)
    assert np.linalg.matrix_rank(rows) == size - 1
    np.testing.assert_allclose(rows.sum(axis=1), 0, atol=1e-12)  # a constant has every shape
    grid = np.linspace(0, size - degree, 400)
    for _ in range(20):
        # Some of them at the edge of the cone.
        held = rng.exponential(size=size - 1) * (rng.uniform(size=size - 1) < 0.6)
        held[len(held) - free :] -= 1
        coefficients = np.linalg.pinv(rows) @ held
        spline = BSpline(np.arange(-degree, size + 1.0), coefficients, degree)
        assert holds(shape, spline(grid), 1e-12)


def test_a_shape_is_not_had_by_chance() -> None:
    wavy = np.sin(np.linspace(0, 9, 400))
    assert not any(holds(shape, wavy, 1e-6) for shape in SHAPES)


# Fits


def oracle(model: ak.AdditiveModel, shapes: list[str], response: np.ndarray) -> np.ndarray:
    """Fitted values of penalised least squares in coordinates that are bounded, by SciPy."""
    columns, roots, low, scale = [np.ones((ROWS, 1))], [np.zeros((1, 1))], [-np.inf], model.scale
    for term, shape in zip(model.design.terms, shapes, strict=True):
        feature: Feature = model.design.features[term.feature]
        name = next(iter(feature.expression.columns()))
        functions = evaluate_basis(feature.basis, DATA[name].to_numpy()) @ feature.transform
        root = np.diag(np.sqrt(term.smoothing * ROWS * feature.eigenvalues))
        directions, held = np.eye(functions.shape[1]), 0
        if shape:
            rows, free = shape_rows(shape, feature.basis.size)
            directions = np.linalg.inv(rows @ feature.transform)
            held = len(rows) - free
        columns.append(functions @ directions)
        roots.append(root @ directions)
        low += [0.0] * held + [-np.inf] * (len(directions) - held)
    design, width = np.concatenate(columns, axis=1), len(low)
    penalty, start = np.zeros((width, width)), 0
    for root in roots:
        penalty[start : start + len(root), start : start + len(root)] = root
        start += len(root)
    stacked = np.concatenate([design, penalty])
    target = np.concatenate([response / scale, np.zeros(width)])
    sizes = np.linalg.norm(stacked, axis=0)
    found = lsq_linear(stacked / sizes, target, (low, np.inf), method="bvls", tol=1e-14, max_iter=1000)
    return np.asarray(scale * (design / sizes) @ found.x)


@every_shape
@pytest.mark.parametrize("df", [12, 5])
def test_a_fit_is_the_solution_of_the_quadratic_program(shape: str, df: int) -> None:
    model = ak.AdditiveModel(f"y ~ s(x, shape={shape!r}, df={df}) + s(z, df=8)", DATA)
    model.fit(DATA, solver="bcd", verbose=0)
    # Weights are in single precision.
    wanted = oracle(model, [shape, ""], DATA.y.to_numpy())
    np.testing.assert_allclose(model.predict(DATA), wanted, rtol=0, atol=2e-6)


def test_two_shapes_are_one_quadratic_program() -> None:
    shapes = ["decreasing", "concave"]
    model = ak.AdditiveModel("y ~ s(x, shape='decreasing', df=9) + s(z, shape='concave', df=9)", DATA)
    model.fit(DATA, solver="bcd", verbose=0)
    wanted = oracle(model, shapes, DATA.y.to_numpy())
    np.testing.assert_allclose(model.predict(DATA), wanted, rtol=0, atol=2e-6)


def test_where_the_data_has_the_shape_nothing_changes() -> None:
    data = DATA.assign(y=2 * DATA.x + 0.1 * DATA.y)
    free, held = (
        ak.fit(f"y ~ s(x, k=12{option})", data, verbose=0)
        for option in (", atoms=False", ", shape='increasing'")
    )
    # Up to single precision, in which each layer has weights of its own.
    frames = [own.predict(data, interval=0.9).to_numpy() for own in (free, held)]
    np.testing.assert_allclose(*frames, rtol=0, atol=1e-6 * np.ptp(data.y))


@pytest.mark.parametrize("solver", ["variational", "bcd", "adam"])
def test_every_solver_holds_all_shapes_outside_the_data_too(solver: str) -> None:
    rng, names = np.random.default_rng(1), [f"x{place}" for place in range(len(SHAPES))]
    data = pd.DataFrame({name: rng.uniform(size=ROWS) for name in names})
    data["y"] = np.sin(9 * data[names]).sum(axis=1) + 0.3 * rng.normal(size=ROWS)
    terms = [f"s({name}, shape={shape!r})" for name, shape in zip(names, SHAPES, strict=True)]
    model = ak.AdditiveModel(f"y ~ {' + '.join(terms)}", data, extrapolation="linear")
    if solver == "adam":
        with pytest.warns(ak.AhofmWarning, match="reached its last epoch"):
            model.fit(data, solver=solver, verbose=0, epochs=15)
    else:
        model.fit(data, solver=solver, verbose=0)
    grid = pd.DataFrame(dict.fromkeys(names, np.linspace(-1, 2, 1001)))
    found = model.predict(grid, type="terms")
    assert (np.ptp(found, axis=0) > 1e-3).sum() >= 4
    for shape, name in zip(SHAPES, found, strict=True):
        assert holds(shape, found[name].to_numpy(), 2e-6), name


def test_adam_reaches_the_optimum_of_the_blocks() -> None:
    formula = "y ~ s(x, shape='concave', df=6)"
    exact, other = (ak.AdditiveModel(formula, DATA) for _ in range(2))
    exact.fit(DATA, solver="bcd", verbose=0)
    with pytest.warns(ak.AhofmWarning, match="reached its last epoch"):
        other.fit(DATA, solver="adam", validation_split=0.0, batch_size=ROWS, epochs=200, verbose=0)
    losses = [own.evaluate(DATA, verbose=0, return_dict=True)["loss"] for own in (exact, other)]
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)


@pytest.mark.parametrize(("family", "response"), [("poisson", "count"), ("bernoulli", "yes")])
@pytest.mark.parametrize("solver", ["variational", "bcd"])
def test_other_families_hold_the_shape(family: str, response: str, solver: str) -> None:
    formula = f"{response} ~ s(x, shape='decreasing concave') + s(z, shape='concave')"
    model = ak.AdditiveModel(formula, DATA, family=family)
    model.fit(DATA, solver=solver, verbose=0)
    assert holds("decreasing concave", model.predict(GRID, type="link"), 2e-6)


def test_every_parameter_may_have_shapes() -> None:
    formulas = {"mean": "y ~ s(x, shape='increasing')", "sd": "~ s(z, shape='increasing')"}
    model = ak.fit(formulas, DATA, family="gaussian_ls", verbose=0)
    for parameter in model.design.predictors:
        (found,) = ak.effects(model, parameter=parameter)
        assert holds("increasing", found.fit, 2e-6)
    assert "held in shape: s(x) increasing" in str(ak.summary(model))


def test_the_bound_never_falls() -> None:
    model = ak.AdditiveModel("y ~ s(x, shape='decreasing') + s(z, shape='concave')", DATA)
    bounds = model.fit(DATA, solver="variational", verbose=0).history["bound"]
    assert len(bounds) > 1
    assert np.diff(bounds).min() >= -1e-6


def test_data_of_another_shape_gives_the_best_curve_and_no_word() -> None:
    model = ak.fit("y ~ s(x, shape='decreasing')", DATA, verbose=0)  # warnings are errors
    assert model.fit_result.converged
    assert np.ptp(model.predict(DATA)) < 1e-3


def test_knots_anywhere_keep_a_rising_function_rising() -> None:
    for knots in ("adaptive", "quantile", "even"):
        model = ak.AdditiveModel(f"y ~ s(skewed, shape='increasing', knots={knots!r}, df=14)", DATA)
        model.fit(DATA, solver="bcd", verbose=0)
        grid = np.linspace(DATA.skewed.min(), DATA.skewed.max(), 2001)
        assert holds("increasing", model.predict({"skewed": grid}), 2e-6)


def test_steps_may_rise() -> None:
    model = ak.AdditiveModel("y ~ s(x, bs='step', k=20, shape='increasing', sp=0)", DATA)
    model.fit(DATA, solver="bcd", verbose=0)
    # Least squares with free rising steps: the pool-adjacent-violators of the means of the steps.
    basis = model.design.features[0].basis
    rows = evaluate_basis(basis, DATA.x.to_numpy())
    counts = rows.sum(axis=0)
    means = list(zip(rows.T @ DATA.y / counts, counts, strict=True))
    pools: list[tuple[float, float, int]] = []
    for mean, count in means:
        pools.append((mean, count, 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (first, n, own), (second, m, other) = pools[-2:]
            pools[-2:] = [((first * n + second * m) / (n + m), n + m, own + other)]
    wanted = rows @ np.concatenate([np.full(own, mean) for mean, _, own in pools])
    np.testing.assert_allclose(model.predict(DATA), wanted, rtol=0, atol=2e-6)


def test_bands_cover_what_they_say() -> None:
    x, grid = np.linspace(0, 1, 150), np.linspace(0.02, 0.98, 40)
    hits = []
    for seed in range(100, 108):
        rng = np.random.default_rng(seed)
        data = pd.DataFrame({"x": x, "y": np.maximum(x - 0.4, 0) * 3 + 0.3 * rng.normal(size=len(x))})
        model = ak.fit("y ~ s(x, shape='increasing')", data, verbose=0)
        band = model.predict({"x": grid}, interval=0.95)
        truth = np.maximum(grid - 0.4, 0) * 3
        hits.append(np.mean((band["lower"] <= truth) & (truth <= band["upper"])))
        # It holds a function of the shape: the fit.
        assert (band["lower"] <= band["mean"]).all()
    assert 0.9 < np.mean(hits) < 0.995


# Interactions


def test_the_main_effect_is_held_beside_interactions() -> None:
    data = DATA.assign(y=DATA.y + DATA.x * (DATA.z - 0.5))
    formula = "y ~ s(x, shape='increasing') + s(z) + ti(x, z)"
    model = ak.fit(formula, data, verbose=0)
    assert holds("increasing", ak.effect(model, "x").fit, 2e-6)
    assert "main effects alone, interactions are free" in str(ak.summary(model))
    again = ak.fit("y ~ s(x, shape='increasing') + ahofm(x, z, D=2)", data, verbose=0)
    assert holds("increasing", ak.effect(again, "x").fit, 2e-6)


def test_an_average_of_fits_has_the_shape(shipped_starts: None) -> None:
    data = DATA.assign(y=DATA.y + 2 * DATA.x * (DATA.z - 0.5))
    model = ak.AdditiveModel("y ~ s(x, shape='concave') + ahofm(x, z, D=2, F=1)", data)
    model.fit(data, verbose=0)
    assert holds("concave", ak.effect(model, "x").fit, 2e-6)


# What is done with a model


@pytest.fixture(scope="module")
def model() -> ak.AdditiveModel:
    return ak.fit("y ~ s(x, shape='increasing concave') + s(z) + g", DATA, verbose=0)


def test_files_and_exports_predict_the_same(model: ak.AdditiveModel, tmp_path: Path) -> None:
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    inside = DATA.head(20)
    np.testing.assert_array_equal(loaded.predict(inside), model.predict(inside))
    pd.testing.assert_frame_equal(
        loaded.predict(inside, interval=0.9), model.predict(inside, interval=0.9)
    )
    loaded.fit(DATA, verbose=0)
    assert holds("increasing concave", ak.effect(loaded, "x").fit, 2e-6)
    clone = keras.models.clone_model(model)
    clone.set_weights(model.get_weights())
    np.testing.assert_array_equal(clone.predict(inside), model.predict(inside))
    model.export(tmp_path / "exported")
    served = tf.saved_model.load(str(tmp_path / "exported")).signatures["serving_default"]
    columns = {name: tf.constant(inside[name].to_numpy()) for name in ("x", "z", "g")}
    found = next(iter(served(**columns).values()))
    np.testing.assert_allclose(np.ravel(found), model.predict(inside), rtol=1e-6)


def test_terms_sum_to_the_link(model: ak.AdditiveModel) -> None:
    terms = model.predict(DATA, type="terms")
    total = terms.sum(axis=1) + model.intercept
    np.testing.assert_allclose(total, model.predict(DATA, type="link"), rtol=1e-6)


def test_tables_and_pages_say_the_shape(model: ak.AdditiveModel, tmp_path: Path) -> None:
    summary = ak.summary(model)
    assert "held in shape: s(x) increasing concave (edf and" in " ".join(str(summary).split())
    assert summary.terms["shape"].dropna().to_dict() == {"s(x)": "increasing concave"}
    ak.report(model, tmp_path / "page.html")
    assert "Held increasing concave" in (tmp_path / "page.html").read_text()
    assert ak.plot(model) is not None


def test_a_check_says_that_the_data_may_have_another_shape() -> None:
    x = np.linspace(-1, 1, 300)
    data = pd.DataFrame({"x": x, "y": x**2 + 0.1 * np.random.default_rng(0).normal(size=300)})
    found = ak.check(ak.fit("y ~ s(x, shape='increasing')", data, verbose=0))
    assert "whose smooth is held increasing: the data may be of another shape" in str(found)


# Messages


@pytest.mark.parametrize(
    ("term", "message"),
    [
        ("s(x, shape='up')", "`shape` of `s()` must be one of 'increasing', 'decreasing', 'convex'"),
        ("s(g, shape='increasing')", "`shape` has no meaning for the category `g`"),
        ("s(C(x), shape='increasing')", "`shape` has no meaning for the levels of `C(x)`"),
        ("s(x, bs='re', shape='increasing')", "`shape` has no meaning for the levels of `x`"),
        ("s(x, bs='cp', shape='increasing')", "a circle ends where it began"),
        ("s(x, atoms=[1], shape='increasing')", "`atoms` cannot stand beside `shape`"),
        ("s(x, bs='step', shape='convex')", "Steps cannot be 'convex'"),
        ("s(x, knots='quantile', shape='concave')", "shape='concave' needs even knots"),
        ("s(gap, k=40, sp=0, shape='concave')", "some of its basis functions have no row"),
        ("s(x, by=g, shape='increasing')", "it cannot stand beside `by` or levels"),
        ("te(x, z, shape='increasing')", "Unknown argument `shape` of `te()`"),
        ("s(x, bs='mpi')", 'That is `s(x, shape="increasing")`.'),
        ("s(x, constraints='monotonic_inc')", "That is `shape` of `s()` here"),
    ],
)
def test_what_cannot_have_a_shape(term: str, message: str) -> None:
    with pytest.raises(FormulaError) as raised:
        ak.AdditiveModel(f"y ~ {term}", DATA)
    assert message in str(raised.value)


def test_bent_shapes_have_even_knots_and_may_name_their_ends() -> None:
    for shape in SHAPES:
        model = ak.AdditiveModel(f"y ~ s(skewed, shape={shape!r})", DATA)
        assert (len(model.design.features[0].basis.axis) == 2) == is_bent(shape)
    model = ak.AdditiveModel("y ~ s(x, shape='convex', knots=(0, 5))", DATA)
    assert model.design.features[0].basis.axis == (0.0, 5.0)
