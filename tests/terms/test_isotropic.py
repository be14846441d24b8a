"""Smooths of distances between points: held to mgcv, to SciPy's radial interpolation, to dense algebra."""

from __future__ import annotations

import json
from math import factorial, gamma, pi
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pandas as pd
import pytest
from scipy.interpolate import RBFInterpolator

import ahofm_keras as ak
from ahofm_keras.bases import evaluate_basis
from ahofm_keras.errors import AhofmError, AhofmWarning, DataError, FormulaError
from ahofm_keras.layers import RadialExpansion
from ahofm_keras.penalties import difference_penalty
from ahofm_keras.radial import CORRELATIONS, Radial, kernel_values, make_duchon, make_process
from ahofm_keras.solvers.settings import use_settings

STORED = json.loads((Path(__file__).parents[1] / "fixtures" / "mgcv_isotropic.json").read_text())
DATA = pd.DataFrame(STORED["data"])
NEW = pd.DataFrame(STORED["new"])


def places(n: int = 300, seed: int = 100) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    data = pd.DataFrame(rng.uniform(size=(n, 3)), columns=["lon", "lat", "time"])
    data["y"] = surface(data.lon, data.lat) * (1 + data.time) + data.time + 0.2 * rng.normal(size=n)
    return data


def surface(lon: Any, lat: Any) -> Any:
    return np.sin(5 * lon) * np.cos(4 * lat)


@pytest.fixture(scope="module")
def fitted() -> ak.AdditiveModel:
    return ak.fit("y ~ s(lon, lat) + s(time)", places(), verbose=0)


# Against mgcv -----------------------------------------------------------------------------------------


def eta_constant(m: int, d: int) -> float:
    """What mgcv multiplies r^(2m - d), or that times log r, with for bs="tp"."""
    if d % 2 == 0:
        sign = (-1) ** (m + 1 + d // 2)
        return sign / (2 ** (2 * m - 1) * pi ** (d / 2) * factorial(m - 1) * factorial(m - d // 2))
    return gamma(d / 2 - m) / (2 ** (2 * m) * pi ** (d / 2) * factorial(m - 1))


def lambda_of(name: str, penalty: float, radial: Radial) -> float:
    """The lambda here of a penalty that mgcv has in its own units."""
    if name.startswith("gp"):
        return penalty
    if name.startswith("tp"):
        d = radial.dimension
        penalty /= abs(eta_constant(int(radial.shape + d) // 2, d))
    return penalty / radial.unit**radial.shape


@pytest.mark.parametrize("name", STORED["fits"])
def test_fits_are_those_of_mgcv(name: str) -> None:
    stored = STORED["fits"][name]
    formula = stored["formula"].replace("c(", "(").removesuffix(")")
    radial = ak.AdditiveModel(f"{formula})", DATA).design.features[0].basis.radial
    model = ak.AdditiveModel(f"{formula}, sp={lambda_of(name, stored['penalty'], radial)!r})", DATA)
    with use_settings(left_out=0.0):
        model.fit(DATA, solver="bcd", verbose=0)
    np.testing.assert_allclose(model.predict(DATA)[::3], stored["fitted"], atol=1e-4)
    np.testing.assert_allclose(model.predict(NEW), stored["predicted"], atol=1e-4)
    edf = float(np.asarray(model.posterior.linear_edf).sum())
    assert edf == pytest.approx(stored["edf"], rel=1e-4)


def test_markov_random_field_is_mgcvs() -> None:
    stored = STORED["mrf"]
    data = pd.DataFrame({"region": stored["region"], "y": stored["y"]})
    formula = f'y ~ s(region, bs="mrf", sp={stored["penalty"]!r})'
    model = ak.AdditiveModel(formula, data, neighbours={"region": stored["neighbours"]})
    model.fit(data, solver="bcd", verbose=0)
    # One of the regions has no rows: its neighbours say what it is.
    assert set(stored["regions"]) - set(data.region) == {"r33"}
    found = model.predict({"region": np.array(stored["regions"], object)})
    np.testing.assert_allclose(found, stored["predicted"], atol=1e-4)
    around = [stored["regions"].index(own) for own in stored["neighbours"]["r33"]]
    assert found[stored["regions"].index("r33")] == pytest.approx(found[around].mean(), abs=1e-4)
    assert float(np.asarray(model.posterior.linear_edf).sum()) == pytest.approx(stored["edf"], rel=1e-4)


# Against SciPy ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [2, 3])
def test_thin_plate_spline_of_all_points_is_scipys(d: int) -> None:
    data = places(90)
    names, (kernel, order) = (
        ["lon", "lat", "time"][:d],
        {2: ("thin_plate_spline", 2), 3: ("cubic", 3)}[d],
    )
    term, smoothing = f"s({', '.join(names)}, k=90", 0.02
    radial = ak.AdditiveModel(f"y ~ {term})", data).design.features[0].basis.radial
    sp = smoothing / radial.unit**radial.shape
    with use_settings(left_out=0.0):
        model = ak.fit(f"y ~ {term}, sp={sp!r})", data, verbose=0, solver="bcd")
    points = data[names].to_numpy()
    theirs = RBFInterpolator(points, data.y, kernel=kernel, smoothing=smoothing, degree=order - 1)
    np.testing.assert_allclose(model.predict(data), theirs(points), atol=1e-4)


# The basis --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [12, 60])
def test_penalty_of_a_function_is_that_of_its_distances(size: int) -> None:
    x = np.random.default_rng(100).uniform(size=(60, 2)) * [3.0, 1.0]
    radial = make_duchon(x, size, 2)
    squares = np.sum((radial.knots[:, None] - radial.knots) ** 2, axis=2)
    matrix = kernel_values("logarithm", 2.0, 1.0, squares)
    penalty = radial.projection.T @ matrix @ radial.projection
    np.testing.assert_allclose(penalty, np.diag(radial.roughness), atol=1e-8 * radial.roughness.max())
    polynomials = np.column_stack([np.ones(60), radial.knots])
    np.testing.assert_allclose(polynomials.T @ radial.projection, 0, atol=1e-7)
    assert radial.size == size


def test_basis_does_not_depend_on_origin_unit_and_direction() -> None:
    x = np.random.default_rng(100).uniform(size=(80, 2))
    turned = 1e4 + 250 * x @ np.array([[0.6, -0.8], [0.8, 0.6]])

    def span(points: np.ndarray) -> np.ndarray:
        radial = make_duchon(points, 20, 2)
        functions = radial.evaluate(radial.locate(points, True).T)
        return np.asarray(functions.T @ np.linalg.pinv(functions.T))

    np.testing.assert_allclose(span(x), span(turned), atol=1e-6)


@pytest.mark.parametrize("correlation", CORRELATIONS.values())
def test_correlations_are_1_at_0_fall_and_are_positive_definite(correlation: str) -> None:
    r = np.linspace(0, 6, 40)
    values = kernel_values(correlation, 1.2, 1.5, r**2)
    assert values[0] == pytest.approx(1)
    assert (np.diff(values) <= 1e-12).all()
    assert values[-1] < 0.5
    x = np.random.default_rng(100).uniform(size=(50, 2))
    squares = np.sum((x[:, None] - x) ** 2, axis=2)
    assert np.linalg.eigvalsh(kernel_values(correlation, 1.2, 1.5, squares)).min() > -1e-10


@pytest.mark.parametrize("radial", [
    make_duchon(np.random.default_rng(0).normal(size=(400, 2)), 25, 1, 0.5),
    make_duchon(np.random.default_rng(0).normal(size=(50, 3)), 25, 3),
    make_process(np.random.default_rng(0).normal(size=(50, 1)), 12, "spherical", 0.7, stationary=True),
], ids=["ds", "tp of three", "gp of one"])  # fmt: skip
def test_graph_and_json_have_the_functions_of_numpy(radial: Radial) -> None:
    again = Radial.from_json(json.loads(json.dumps(radial.to_json())))
    x = np.random.default_rng(1).normal(size=(20, radial.dimension))
    expected = radial.evaluate(radial.locate(x, True).T)
    np.testing.assert_array_equal(again.evaluate(again.locate(x, True).T), expected)
    located = again.locate(keras.ops.convert_to_tensor(x), True, keras.ops)
    found = np.asarray(again.evaluate(keras.ops.transpose(located), keras.ops))
    np.testing.assert_allclose(found, expected, atol=1e-9)
    layer = RadialExpansion(0, radial, dtype="float32")
    _, values = RadialExpansion.from_config(layer.get_config())(
        radial.locate(x, True).astype(np.float32)
    )
    np.testing.assert_allclose(np.asarray(values)[0], expected, atol=2e-4)


def test_large_smoothing_leaves_a_plane() -> None:
    data = places(150)
    model = ak.fit("y ~ s(lon, lat, sp=1e9)", data, verbose=0, solver="bcd")
    design = np.column_stack([np.ones(150), data.lon, data.lat])
    plane = design @ np.linalg.lstsq(design, data.y, rcond=None)[0]
    np.testing.assert_allclose(model.predict(data), plane, atol=1e-4)


def test_product_with_points_is_dense_algebra() -> None:
    data = places(200)
    model = ak.AdditiveModel("y ~ te(lon, lat, time, d=(2, 1), k=(12, 6), sp=(0.01, 0.3))", data)
    with use_settings(left_out=0.0):
        model.fit(data, solver="bcd", verbose=0)
    bases, grams, penalties = [], [], []
    for feature, values in zip(model.design.features, (data[["lon", "lat"]], data["time"]), strict=True):
        basis = evaluate_basis(feature.basis, values.to_numpy(float))
        if feature.basis.radial is not None:  # whose functions have mean zero
            basis = np.column_stack([basis, np.ones(len(data))])
        bases.append(basis)
        grams.append(basis.T @ basis / len(data))
        penalties.append(penalty_of(feature.basis))
    dense = np.einsum("na,nb->nab", *bases).reshape(len(data), -1)
    penalty = 0.01 * np.kron(penalties[0], grams[1]) + 0.3 * np.kron(grams[0], penalties[1])
    expected = dense @ np.linalg.solve(dense.T @ dense + penalty, dense.T @ data.y)
    np.testing.assert_allclose(model.predict(data), expected, atol=2e-4)


def penalty_of(basis: Any) -> np.ndarray:
    if basis.radial is not None:
        return np.diag(np.append(basis.radial.roughness, 0.0))
    return difference_penalty(basis.size, 2, at=np.asarray(basis.line))


# Reading the model -------------------------------------------------------------------------------------


def test_surface_is_found(fitted: ak.AdditiveModel) -> None:
    effect = ak.effect(fitted, "lon", "lat")
    assert effect.features == ("lon", "lat")
    assert effect.fit.shape == (50, 50) == effect.se.shape
    data = places()
    truth = surface(*np.meshgrid(*effect.grid, indexing="ij")) * 1.5
    truth -= np.mean(surface(data.lon, data.lat)) * 1.5
    near = effect.near_data
    assert np.sqrt(np.mean((effect.fit - truth)[near] ** 2)) < 0.15
    assert np.mean((np.abs(effect.fit - truth) < 2 * effect.se)[near]) > 0.8


@pytest.mark.parametrize("names", [("lon, lat",), ("lat", "lon"), ("lon:lat",)])
def test_names_of_a_point(fitted: ak.AdditiveModel, names: tuple[str, ...]) -> None:
    expected = ak.effect(fitted, "lon", "lat", points=4)
    np.testing.assert_array_equal(ak.effect(fitted, *names, points=4).fit, expected.fit)


def test_effect_at_given_coordinates(fitted: ak.AdditiveModel) -> None:
    frame = ak.effect(fitted, "lon", "lat", at={"lon": [0.3, 0.6], "lat": [0.5]}).frame()
    assert frame[["lon", "lat"]].to_numpy().tolist() == [[0.3, 0.5], [0.6, 0.5]]
    rows = {"lon": [0.3, 0.6], "lat": [0.5, 0.5], "time": [0.5, 0.5]}
    terms = fitted.predict(rows, type="terms")
    np.testing.assert_allclose(terms["s(lon, lat)"], frame["fit"], atol=1e-4)


def test_standard_errors_are_those_of_predictions() -> None:
    data = places(150)
    model = ak.fit("y ~ s(lon, lat)", data, verbose=0)
    frame = ak.effect(model, "lon", "lat", points=5).frame()
    table = model.predict(frame[["lon", "lat"]], interval=0.95)
    own = (table["upper"] - table["lower"]).to_numpy() / 3.92
    root = np.asarray(model.posterior.linear_roots)
    assert (own**2 >= frame["se"] ** 2 - 1e-6).all()  # the intercept is known less well than not at all
    intercept = model.scale * np.linalg.norm(root[0])
    np.testing.assert_allclose(np.median(own**2 - frame["se"] ** 2), intercept**2, rtol=0.3)


def test_a_product_falls_apart_into_place_time_and_both() -> None:
    data = places()
    model = ak.fit("y ~ te(lon, lat, time, d=(2, 1))", data, verbose=0)
    assert [effect.label for effect in ak.effects(model)] == ["lon, lat", "time", "lon, lat:time"]
    assert ak.effect(model, "lon", "lat", "time", points=4).fit.shape == (4, 4, 4)
    row = data.iloc[[7]]
    explanation = ak.explain(model, row)
    assert explanation.link == pytest.approx(float(model.predict(row)[0]), abs=1e-4)
    assert sum(ak.shares(model)["share"]) == pytest.approx(1.0)


# Bad input ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("y ~ s(lon, C(g))", "cannot be a coordinate"),
        ('y ~ s(lon, lat, bs="ps")', "is of one feature"),
        ("y ~ s(lon, lat, k=3)", "must lie between 4 and 500"),
        ("y ~ s(lon, lat, k=400)", "must not exceed the number of different points, 60"),
        ("y ~ s(lon, lat, m=1)", "would not be continuous"),
        ('y ~ s(lon, lat, bs="ds", m=(2, 0.3))', "a multiple of 0.5"),
        ('y ~ s(lon, lat, bs="gp", m=(6, 1))', "the number of a correlation function"),
        ("y ~ s(lon, lat, atoms=[1])", "`atoms` has no meaning for functions of distances"),
        ('y ~ s(lon, lat, shape="increasing")', "they have no direction"),
        ("y ~ s(lon, lat, pc=3)", "`pc` has no meaning for functions of distances"),
        ("y ~ te(lon, lat, up, d=(2, 2))", "says that there are 4 features"),
        ("y ~ te(lon, lat, d=2)", "the number of features of each margin"),
        ('y ~ ahofm(lon, lat, bs="tp")', "must be one of 'ps'"),
    ],
)
def test_formulas_that_ask_for_what_there_is_not(formula: str, message: str) -> None:
    with pytest.raises(FormulaError, match=message):
        ak.AdditiveModel(formula, DATA.assign(g="a"))


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (lambda d: 2 * d.lon - 1, "lie on a straight line"),
        (lambda d: 0 * d.lon + 3, "is constant"),
        (lambda d: np.where(d.lon > 8, "east", "west"), "holds texts"),
    ],
)
def test_points_without_an_area(column: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        ak.AdditiveModel("y ~ s(lon, other)", DATA.assign(other=column))


def test_few_points_and_other_units() -> None:
    with pytest.raises(DataError, match="more than 4 different points"):
        ak.AdditiveModel("y ~ s(lon, lat)", DATA.iloc[:9])
    with pytest.warns(AhofmWarning, match="spreads .* times as far"):
        ak.AdditiveModel("y ~ s(lon, lat)", DATA.assign(lat=1000 * DATA.lat))


def test_points_outside_are_moved_to_the_edge_and_counted(fitted: ak.AdditiveModel) -> None:
    beyond = {"lon": [2.0, 0.5], "lat": [0.5, 0.5], "time": [0.5, 0.5]}
    with pytest.warns(AhofmWarning, match=r"`lon` in 1 of 2 rows"):
        clipped = fitted.predict(beyond)
    edge = {**beyond, "lon": [places().lon.max(), 0.5]}
    np.testing.assert_allclose(clipped, fitted.predict(edge), atol=1e-5)
    strict = ak.AdditiveModel("y ~ s(lon, lat)", places(), extrapolation="error")
    with pytest.raises(DataError, match="`lon` in 1 of 2 rows"):
        strict.predict(beyond)


# Regions ------------------------------------------------------------------------------------------------

NEAR = {"a": ["b"], "b": ["a", "c"], "c": ["b"]}
ROWS = pd.DataFrame({"region": list("aabbccab"), "y": [1.0, 2, 3, 4, 5, 6, 1, 3]})


def squares() -> dict[str, Any]:
    """Three squares in a row, as GeoJSON."""
    features = []
    for place, name in enumerate("abc"):
        ring = [[place, 0], [place + 1, 0], [place + 1, 1], [place, 1], [place, 0]]
        geometry = {"type": "Polygon", "coordinates": [ring]}
        features.append({"type": "Feature", "properties": {"code": name}, "geometry": geometry})
    return {"type": "FeatureCollection", "features": features}


def test_neighbours_from_geojson() -> None:
    models = [
        ak.AdditiveModel('y ~ s(region, bs="mrf")', ROWS, neighbours={"region": given})
        for given in (NEAR, squares())
    ]
    first, second = (model.design.to_json()["features"] for model in models)
    assert first == second
    assert models[0].design.neighbours == {"region": NEAR}


@pytest.mark.parametrize(
    ("neighbours", "message"),
    [
        (None, "needs the neighbours of each region"),
        ({"regions": NEAR}, "Did you mean `regions`"),
        ({"region": {"a": ["b"], "b": ["a"]}}, "lacks 1 of the 3 regions of `region`: 'c'"),
        ({"region": {**NEAR, "c": []}}, "but not 'b' as one of 'c'"),
        ({"region": {**NEAR, "c": ["b", "d"]}}, "does not list the neighbours of 'd'"),
        ({"region": {**NEAR, "c": ["b", "c"]}}, "as its own neighbour"),
        ({"region": {1: [], 2: [], 3: []}}, "lacks 3 of the 3 regions"),
        ({"region": [("a", "b")]}, "must be a dict from region to its neighbours"),
        ({"region": {"a": "b"}}, "must be a list of regions"),
        ([NEAR], "must be a dict from the name of a column"),
    ],
)
def test_neighbours_that_do_not_fit(neighbours: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        ak.AdditiveModel('y ~ s(region, bs="mrf")', ROWS, neighbours=neighbours)


def test_neighbours_that_nobody_asks_for() -> None:
    with pytest.raises(DataError, match="no term has its regions"):
        ak.AdditiveModel("y ~ s(region)", ROWS, neighbours={"region": NEAR})


def test_names_of_regions_of_another_type() -> None:
    codes = ROWS.assign(region=ROWS.region.map({"a": 1, "b": 2, "c": 3}))
    near = {1: [2], 2: [1, 3], 3: [2]}
    assert ak.AdditiveModel('y ~ s(region, bs="mrf")', codes, neighbours={"region": near})
    as_texts = {str(own): list(map(str, others)) for own, others in near.items()}
    with pytest.raises(DataError, match="it has str for the names of regions, the column"):
        ak.AdditiveModel('y ~ s(region, bs="mrf")', codes, neighbours={"region": as_texts})


def test_an_island_has_an_effect_of_its_own_and_one_without_rows_has_none() -> None:
    near = {**NEAR, "island": [], "empty": ["rock"], "rock": ["empty"]}
    rows = pd.concat([ROWS, pd.DataFrame({"region": ["island"] * 3, "y": [9.0, 9.5, 10]})])
    with pytest.warns(AhofmWarning, match="2 of 6 regions of `region` have no rows.*'empty', 'rock'"):
        model = ak.AdditiveModel('y ~ s(region, bs="mrf")', rows, neighbours={"region": near})
    model.fit(rows, solver="bcd", verbose=0)
    assert model.predict({"region": ["island"]})[0] == pytest.approx(9.5, abs=1e-3)
    with pytest.warns(AhofmWarning, match="count as the average"):
        assert model.predict({"region": ["rock"]})[0] == pytest.approx(rows.y.mean(), abs=1e-3)


def test_all_messages_are_ours() -> None:
    assert issubclass(DataError, AhofmError)
