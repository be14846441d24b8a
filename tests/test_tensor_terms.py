"""`te()` and `ti()`: from the formula to the layer."""

from __future__ import annotations

import warnings
from typing import Any

import keras
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from keras import ops

import ahofm_keras as ak
from ahofm_keras.bases import evaluate_basis
from ahofm_keras.data import kind_of, read_columns
from ahofm_keras.errors import AhofmWarning, FormulaError
from ahofm_keras.formula import parse_formula
from ahofm_keras.layers import FactorizedInteraction, TensorProduct
from ahofm_keras.penalties import difference_penalty
from ahofm_keras.tensors import count_products, row_products
from ahofm_keras.terms import Design, fit_terms
from ahofm_keras.terms.interaction import InteractionTerm
from ahofm_keras.terms.smooth import SmoothTerm
from ahofm_keras.terms.tensor import TensorTerm
from tests.layers.common import nonzero
from tests.reference import hat_degrees_of_freedom, penalised, terms_of

ROWS = 200


def make_data() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    data = pd.DataFrame({name: rng.uniform(size=ROWS) for name in ("x", "z", "w", "v")})
    data["hour"] = rng.uniform(0, 24, ROWS)
    data["g"] = rng.choice(["a", "b", "c"], ROWS)
    data["many"] = [f"level {i % 60}" for i in range(ROWS)]
    data["y"] = rng.normal(size=ROWS)
    return data


DATA = make_data()


def design(formula: str, **options: Any) -> Design:
    parsed = parse_formula(f"y ~ {formula}")
    columns = read_columns(DATA, parsed.columns())
    return fit_terms(parsed, columns, {name: kind_of(v) for name, v in columns.items()}, **options)


def tensor(formula: str, **options: Any) -> tuple[TensorTerm, list[Any]]:
    """The one tensor product of a formula, and the features of its margins."""
    made = design(formula, **options)
    (term,) = terms_of(made, TensorTerm)
    return term, [made.features[place] for place in term.features]


# Sizes and degrees of freedom


def test_the_record_names_its_margins_in_order() -> None:
    term, features = tensor("s(w) + ti(z, x, sp=(2, 3))")
    assert (term.label, term.name, term.kind) == ("ti(z, x)", "ti_z_x", "te")
    assert [feature.label for feature in features] == ["z", "x"]
    assert (term.smoothing, term.pure, term.fixed) == ((2.0, 3.0), True, True)
    assert tensor("te(x, z)")[0].pure is False


@pytest.mark.parametrize(
    ("formula", "sizes"),
    [
        ("te(x, z)", [10, 10]),
        ("ti(x, z, w)", [7, 7, 7]),
        ("ti(x, z, w, v)", [5, 5, 5, 5]),
        ("te(x, z, k=6)", [6, 6]),
        ("te(x, z, k=(6, 4))", [6, 4]),
        ("te(x, z, k=(None, 4))", [10, 4]),
        ("te(x, z, k={'z': 5})", [10, 5]),
        ("te(x, z, df=(12, 4))", [14, 10]),
        ("te(x, g, k=6)", [6, 3]),
        ("s(x, k=30) + ti(x, z)", [10, 10]),
    ],
)
def test_margins_are_small_unless_k_or_df_ask_for_more(formula: str, sizes: list[int]) -> None:
    assert [feature.basis.size for feature in tensor(formula)[1]] == sizes


def test_a_block_without_k_stays_below_some_hundred_columns() -> None:
    for names in (["x", "z"], ["x", "z", "w"], ["x", "z", "w", "v"]):
        _, features = tensor(f"ti({', '.join(names)})")
        assert count_products([len(f.eigenvalues) for f in features], pure=True) <= 256


def dense_df(feature: Any, smoothing: float) -> float:
    """Degrees of freedom of a margin's own centred smooth."""
    rows = evaluate_basis(feature.basis, DATA[feature.label].to_numpy())
    means = rows.mean(axis=0)
    centre = np.linalg.qr(means[:, None], mode="complete")[0][:, 1:]
    values, vectors = np.linalg.eigh(difference_penalty(len(means), at=np.asarray(feature.basis.line)))
    root = (vectors * np.sqrt(np.maximum(values, 0))).T @ centre
    return hat_degrees_of_freedom(rows @ centre, root, smoothing)["2H-HH"]


@pytest.mark.parametrize(("formula", "wanted"), [("te(x, z, df=16)", 4), ("ti(x, z, w, df=27)", 3)])
def test_one_df_is_split_evenly_over_the_margins(formula: str, wanted: float) -> None:
    term, features = tensor(formula)
    assert term.df == pytest.approx((wanted,) * len(features), abs=1e-6)
    assert np.prod(term.df) == pytest.approx(wanted ** len(features), abs=1e-4)
    for feature, smoothing in zip(features, term.smoothing, strict=True):
        assert dense_df(feature, smoothing) == pytest.approx(wanted, abs=1e-4)


def test_a_df_a_margin_gives_each_margin_its_own() -> None:
    assert tensor("te(x, z, df=(6, 3))")[0].df == pytest.approx((6, 3), abs=1e-6)
    by_name, _ = tensor("te(x, z, df={'z': 3})")
    assert by_name.df == pytest.approx((5, 3), abs=1e-6)
    # The lambda of a margin is that of the `s()` with the same basis and df.
    smooth = design("s(x, k=10, df=6)").terms[0]
    assert isinstance(smooth, SmoothTerm)
    assert tensor("ti(x, z, k=10, df=(6, 3))")[0].smoothing[0] == pytest.approx(smooth.smoothing)


def test_margins_may_be_cyclic_or_levels() -> None:
    _, features = tensor("te(hour, g, bs=('cp', 're'), knots=((0, 24), None))")
    assert [feature.basis.kind for feature in features] == ["cp", "re"]
    assert features[0].basis.axis == (0.0, 24.0)
    # Where nothing is said, the kind of basis is that of the feature's own smooth.
    _, features = tensor("s(hour, bs='cp', knots=(0, 24)) + ti(hour, x)")
    assert features[0].basis.kind == "cp"
    assert features[0].basis.axis == (0.0, 24.0)
    _, features = tensor("te(x, z, knots=(-1, 2))")
    assert [feature.basis.axis for feature in features] == [(-1.0, 2.0)] * 2


def test_tensors_of_one_feature_share_its_basis() -> None:
    made = design("ti(x, z) + ti(x, w) + ti(z, w)")
    assert len(made.features) == 3


def test_main_effects_stand_once() -> None:
    made = design("te(x, z) + ahofm(x, z, w)")
    assert [term.label for term in terms_of(made, SmoothTerm)] == ["s(w)"]
    made = design("ti(x, z) + ahofm(x, z, w)")
    assert len(terms_of(made, SmoothTerm)) == 3


@pytest.mark.parametrize(
    ("formula", "told"),
    [
        ("s(x) + te(x, z)", "`te(x, z)` and `s(x)` both hold the main effect of `x`"),
        ("te(x, z) + te(x, w)", "`te(x, z)` and `te(x, w)` both hold the main effect of `x`"),
        ("te(x, z, w) + ti(x, w)", "`te(x, z, w)` and `ti(x, w)` both hold the interaction of `w`, `x`"),
        ("te(x, z, w) + te(x, w)", "both hold the interaction of `w`, `x`"),
        ("x + te(x, z)", "`x` stands as a linear term and inside `te(x, z)`"),
        ("te(x, z, k=4, df=20)", "df=4.472 of `x` is not below its rank 3"),
        ("ti(x, g, df=16)", "df=4 cannot be reached by `g` (3 distinct values, rank 2)"),
    ],
)
def test_what_cannot_be_told_apart_or_reached_is_said(formula: str, told: str) -> None:
    with pytest.warns(AhofmWarning) as caught:
        design(formula)
    assert any(told in str(warning.message) for warning in caught)


def test_pure_terms_beside_smooths_need_no_word() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        design("s(x) + s(z) + s(w) + ti(x, z) + ti(x, w) + ti(x, z, w) + afm(x, z)")


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("te(x, z, df=1)", "`df` of `te(x, z)` must be above 1: it is split evenly over the margins"),
        ("te(x, z, df=(1, 5))", "`df` of `te(x, z)` must be above 1: the penalty of `x`"),
        (
            "ti(many, x, z, k=18)",
            "`ti(many, x, z)` has 17,051 coefficients (59 x 17 x 17), more than 10,000",
        ),
        ("te(x, z, w, v, k=12)", "`te(x, z, w, v)` has 20,735 coefficients (12 x 12 x 12 x 12)"),
        ("te(x, g, k=(5, 5))", "`k` has no meaning for the category `g`"),
        ("te(x, g, bs='ps')", 'Column `g` holds categories: leave its `bs` out, or use "re"'),
        ("te(x, hour, knots=(0, 24), k=3, bs=('ps', 'cp'))", "A cyclic smooth needs k of at least 4"),
        ("te(x, hour, knots=(0, 9))", "`knots` of `te(x, hour)` must span the training values"),
    ],
)
def test_data_that_a_tensor_cannot_take(formula: str, message: str) -> None:
    with pytest.raises(FormulaError) as caught:
        design(formula)
    assert message in str(caught.value)
    assert "^^^" in str(caught.value)


# The layer


def made_layer(pure: bool, rng: np.random.Generator) -> tuple[TensorProduct, list[Any], np.ndarray]:
    """A layer with random weights on three margins of two kinds, its bases, its functions `(q, n)`."""
    made = design("te(x, g, z, k=5)")
    features = [made.features[place] for place in made.terms[0].features]
    layer = TensorProduct(
        [(0, 1), (1, 0), (0, 0)],
        [feature.transform for feature in features],
        [feature.eigenvalues for feature in features],
        [0.7, 3.0, 0.0],
        pure,
        dtype="float64",
    )
    dense = [evaluate_basis(feature.basis, DATA[feature.label].to_numpy()).T for feature in features]
    bases = [nonzero(dense[2].T, dense[0].T), nonzero(dense[1].T)]
    layer(bases)
    layer.assign_coordinates(rng.normal(size=layer.coordinates().shape))
    functions = [f.transform.T @ rows for f, rows in zip(features, dense, strict=True)]
    return layer, bases, row_products(functions, pure)


@pytest.mark.parametrize("pure", [True, False])
def test_the_layer_is_the_sum_of_all_products(pure: bool) -> None:
    layer, bases, functions = made_layer(pure, np.random.default_rng(2))
    coordinates = layer.coordinates()
    assert coordinates.shape == ((4, 2, 4) if pure else (5, 3, 5))
    flat = coordinates.reshape(-1)[0 if pure else 1 :]
    if not pure:
        assert coordinates[0, 0, 0] == 0
    np.testing.assert_allclose(np.asarray(layer(bases))[:, 0], flat @ functions, rtol=1e-10, atol=1e-12)
    again = TensorProduct.from_config(layer.get_config())
    again(bases)
    again.assign_coordinates(coordinates)
    np.testing.assert_array_equal(again(bases), layer(bases))


@pytest.mark.parametrize("pure", [True, False])
def test_the_gradient_is_that_of_finite_differences(pure: bool) -> None:
    rng = np.random.default_rng(3)
    layer, bases, _ = made_layer(pure, rng)
    target = ops.convert_to_tensor(rng.normal(size=(ROWS, 1)))

    def loss() -> Any:
        return ops.mean(ops.square(layer(bases) - target)) + ops.cast(sum(layer.losses), "float64")

    with tf.GradientTape() as tape:
        value = loss()
    gradient = np.asarray(tape.gradient(value, layer.kernel.value))
    kernel, direction = np.asarray(layer.kernel), rng.normal(size=layer.kernel.shape)
    step = 3.0
    values = []
    for sign in (1, -1):
        layer.kernel.assign(kernel + sign * step * direction)
        values.append(float(loss()))
    # The loss is quadratic: central differences are exact at any step, but for the penalty's float32.
    assert (values[0] - values[1]) / (2 * step) == pytest.approx(np.sum(gradient * direction), rel=1e-3)


def test_the_penalty_is_the_kronecker_sum_of_the_margins() -> None:
    """In coefficients C of the B-splines: lambda_x <C, P_x C G_z/n> + lambda_z <C, G_x/n C P_z>."""
    made = design("te(x, z, k=(6, 5), sp=(0.7, 3), knots='even')")
    term, features = made.terms[0], made.features
    assert isinstance(term, TensorTerm)
    layer = TensorProduct(
        [(0, 0), (1, 0)], [f.transform for f in features], [f.eigenvalues for f in features],
        term.smoothing, term.pure, dtype="float64",
    )  # fmt: skip
    rows = [evaluate_basis(f.basis, DATA[f.label].to_numpy()) for f in features]
    layer([nonzero(own) for own in rows])
    weights = np.random.default_rng(4).normal(size=(6, 5))
    weights[0, 0] = 0
    layer.assign_coordinates(weights)
    # B-splines sum to one, so the constant of a margin is a row of ones.
    first, second = (np.hstack([np.ones((len(f.transform), 1)), f.transform]) for f in features)
    coefficients = (first @ weights @ second.T).reshape(-1)
    penalties = [difference_penalty(own.shape[1]) for own in rows]
    grams = [own.T @ own / ROWS for own in rows]
    matrix = 0.7 * np.kron(penalties[0], grams[1]) + 3 * np.kron(grams[0], penalties[1])
    wanted = coefficients @ matrix @ coefficients / (2 * ROWS)
    assert float(sum(layer.losses)) == pytest.approx(wanted, rel=1e-5)


def test_the_ends_of_an_axis_count_beside_the_rows() -> None:
    """A margin's functions are orthonormal over the rows and the ends, which have 0.3 of the weight."""
    made = design("ti(x, z, k=6) + s(x, k=6)")
    tensor, smooth = made.terms
    assert isinstance(tensor, TensorTerm)
    assert isinstance(smooth, SmoothTerm)
    margin, alone = made.features[tensor.features[0]], made.features[smooth.feature]
    rows = evaluate_basis(margin.basis, DATA.x.to_numpy())
    ends = evaluate_basis(margin.basis, np.array([DATA.x.min(), DATA.x.max()]))
    weighted = 0.7 * rows.T @ rows / ROWS + 0.3 * ends.T @ ends / 2
    for feature, gram in ((margin, weighted), (alone, rows.T @ rows / ROWS)):
        own = feature.transform
        np.testing.assert_allclose(own.T @ gram @ own, np.eye(5), rtol=0, atol=1e-8)
        penalty = difference_penalty(6, at=np.asarray(feature.basis.line))
        np.testing.assert_allclose(
            own.T @ penalty @ own, ROWS * np.diag(feature.eigenvalues), rtol=0, atol=1e-8
        )
    # The df of a margin are those of the rows: the same lambda as an `s()` of that df has.
    tensor, smooth = penalised(design("ti(x, z, k=8, df=(5, 6)) + s(x, k=8, df=5)"))
    assert tensor.lambdas[0] == pytest.approx(smooth.lambdas[0], rel=1e-9)


@pytest.mark.parametrize(
    "formula",
    [
        "ti(x, z, k=6, sp=1) + s(x, k=6)",
        "ti(hour, z, k=6, bs={'hour': 'cp'}) + s(hour, k=6, bs='cp')",
        "ti(g, z, k={'z': 6}) + s(g)",
    ],
)
def test_circles_levels_and_given_lambdas_have_the_rows_alone(formula: str) -> None:
    """So that they share the feature of an `s()`."""
    tensor, smooth = penalised(design(formula))
    assert tensor.features[0] == smooth.features[0]


def test_factors_of_rank_m_minus_one_represent_every_surface() -> None:
    """The coefficients of a `ti()` of two features as a sum of products: its singular vectors."""
    made = design("ti(x, z, k=6, sp=1) + afm(x, z, k=6, F=5, main=False)")
    tensor_term, factor_term = made.terms
    assert isinstance(tensor_term, TensorTerm)
    assert isinstance(factor_term, InteractionTerm)
    assert tensor_term.features == factor_term.features
    features = [made.features[place] for place in tensor_term.features]
    surface = np.random.default_rng(5).normal(size=(5, 5))
    assert np.linalg.matrix_rank(surface) == 5
    bases = [nonzero(evaluate_basis(f.basis, DATA[f.label].to_numpy())) for f in features]
    transforms, eigenvalues = [f.transform for f in features], [f.eigenvalues for f in features]
    exact = TensorProduct([(0, 0), (1, 0)], transforms, eigenvalues, [0.0, 0.0], True, dtype="float64")
    exact(bases)
    exact.assign_coordinates(surface)
    order = {"order": 2, "started": 5, "smoothing": [0.0, 0.0]}
    factors = FactorizedInteraction([(0, 0), (1, 0)], transforms, eigenvalues, [order], dtype="float64")
    factors(bases)
    left, values, right = np.linalg.svd(surface)
    factors.assign_coordinates(0, np.stack([left * np.sqrt(values), right.T * np.sqrt(values)]))
    np.testing.assert_allclose(factors(bases), exact(bases), rtol=0, atol=1e-10)


# In a model


def test_a_model_with_tensors_is_saved_exported_and_adds_up(tmp_path: Any) -> None:
    model = ak.AdditiveModel("y ~ g + s(x) + te(z, w, k=4) + ti(x, g)", DATA)
    rng = np.random.default_rng(6)
    for term in penalised(model.design):
        layer = model.get_layer(term.name)
        layer.assign_coordinates(rng.normal(size=layer.coordinates().shape))
    new = DATA.head(20)
    terms = model.predict(new, type="terms")
    assert list(terms) == ["g", "s(x)", "te(z, w)", "ti(x, g)"]
    np.testing.assert_allclose(
        terms.sum(axis=1) + model.intercept, model.predict(new, type="link"), rtol=1e-5, atol=1e-5
    )
    # The surface of a `ti()` has mean zero along each margin, under the margins' product.
    grid = pd.concat([DATA.assign(g=level) for level in "abc"])
    share = DATA.g.value_counts(normalize=True)
    parts = model.predict(grid, type="terms")["ti(x, g)"].to_numpy().reshape(3, ROWS)
    np.testing.assert_allclose(parts.mean(axis=1), 0, atol=1e-5)
    np.testing.assert_allclose(share.reindex(list("abc")).to_numpy() @ parts, 0, atol=1e-5)
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(again.predict(new), model.predict(new))
    assert again.design.terms == model.design.terms
    model.export(tmp_path / "served")
    served = tf.saved_model.load(str(tmp_path / "served"))
    columns = {name: tf.constant(new[name].tolist()) for name in model.design.columns}
    columns = {n: tf.cast(v, tf.float64) if v.dtype == tf.float32 else v for n, v in columns.items()}
    found = served.signatures["serving_default"](**columns)["response"]
    np.testing.assert_allclose(found, model.predict(new), rtol=0, atol=1e-4)


def test_a_level_that_was_not_seen_leaves_the_margins_own_effect() -> None:
    model = ak.AdditiveModel("y ~ te(x, g)", DATA)
    layer = model.get_layer("te_x_g")
    weights = np.random.default_rng(7).normal(size=layer.coordinates().shape)
    layer.assign_coordinates(weights)
    new = pd.DataFrame({"x": [0.2, 0.7], "g": ["a", "new"]})
    with pytest.warns(
        AhofmWarning,
        match="Levels not seen in training count as the average of the training rows: `g` in 1 of 2 rows",
    ):
        found = model.predict(new, type="terms")["te(x, g)"].to_numpy()
    feature = model.design.features[0]
    functions = evaluate_basis(feature.basis, new.x.to_numpy()) @ feature.transform
    assert found[1] == pytest.approx(model.scale * functions[1] @ weights[1:, 0], rel=1e-4)
