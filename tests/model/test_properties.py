"""What the method promises: units, centring, orthogonality, exact surfaces, one main effect."""

from __future__ import annotations

from itertools import product

import keras
import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from ahofm_keras.bases import evaluate_basis


def smooth_data(rows: int = 400, seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    data = pd.DataFrame({name: rng.uniform(size=rows) for name in ("a", "b", "c")})
    data["y"] = np.sin(6 * data.a) * data.b + data.c + 0.1 * rng.normal(size=rows)
    return data


def short_fit(data: pd.DataFrame, formula: str, **kwargs: object) -> ak.AdditiveModel:
    model = ak.AdditiveModel(formula, data, **kwargs)
    with pytest.warns(ak.AhofmWarning, match="reached its last epoch"):
        model.fit(data, epochs=25, verbose=0, solver="adam")
    return model


def standardised(values: np.ndarray, response: pd.Series) -> np.ndarray:
    return (values - response.mean()) / response.std()


def test_units_of_x_and_y_do_not_matter() -> None:
    data = smooth_data()
    other = data.assign(y=1000 * data.y + 7, a=data.a / 50 + 3)
    formula = "y ~ ahofm(a, b, c, D=3, F=2, df=6)"
    first, second = short_fit(data, formula), short_fit(other, formula)
    np.testing.assert_allclose(
        [term.smoothing for term in first.design.terms[:3]],
        [term.smoothing for term in second.design.terms[:3]],
        rtol=1e-6,
    )
    np.testing.assert_allclose(
        standardised(first.predict(data), data.y),
        standardised(second.predict(other), other.y),
        rtol=0,
        atol=2e-3,
    )


def test_response_far_from_zero_keeps_its_digits() -> None:
    data = smooth_data()
    far = data.assign(y=data.y + 1e8)
    first, second = short_fit(data, "y ~ s(a) + s(b)"), short_fit(far, "y ~ s(a) + s(b)")
    np.testing.assert_allclose(second.predict(far) - 1e8, first.predict(data), rtol=0, atol=1e-3)


def factor_values(model: ak.AdditiveModel, term: object, order: int) -> np.ndarray:
    """phi `(p, n, F)` of the training rows that `model.rows` holds, from bases and coefficients."""
    layer = model.get_layer(term.name)
    coefficients = np.asarray(layer.coefficients(order))
    values = []
    for place, position in enumerate(term.features):
        feature = model.design.features[position]
        basis = evaluate_basis(feature.basis, model.rows[feature.label].to_numpy())
        values.append(basis @ coefficients[place, : basis.shape[1]])
    return np.stack(values)


def test_factors_and_smooths_have_mean_zero(frame: pd.DataFrame) -> None:
    model = ak.AdditiveModel("gaussian ~ ahofm(x1, x2, group, flag, D=3, F=3)", frame)
    object.__setattr__(model, "rows", frame)
    term = model.design.terms[-1]
    for order in range(2):
        phi = factor_values(model, term, order)
        assert np.abs(phi).max() > 1e-3
        np.testing.assert_allclose(phi.mean(axis=1), 0, atol=1e-6)
    rng = np.random.default_rng(0)
    for smooth in model.design.terms[:-1]:
        layer = model.get_layer(smooth.name)
        layer.kernel.assign(rng.normal(size=layer.kernel.shape))
    terms = model.predict(frame, type="terms")
    np.testing.assert_allclose(terms.iloc[:, :4].mean(), 0, atol=1e-4)
    assert terms.iloc[:, :4].std().min() > 0.1


def test_center_false_is_the_papers_form() -> None:
    data = smooth_data()
    model = ak.AdditiveModel("y ~ ahofm(a, b, k=8, center=False)", data)
    assert [feature.transform.shape for feature in model.design.features] == [(8, 8), (8, 8)]
    centred = ak.AdditiveModel("y ~ ahofm(a, b, k=8)", data)
    assert [feature.transform.shape for feature in centred.design.features] == [(8, 7), (8, 7)]


def test_orders_are_orthogonal_on_the_grid_of_training_margins() -> None:
    rng = np.random.default_rng(2)
    values = {name: rng.gamma(2, size=12) for name in "abc"}
    grid = pd.DataFrame(list(product(*values.values())), columns=list(values))
    rows = pd.DataFrame(values).assign(y=rng.normal(size=12))
    model = ak.AdditiveModel("y ~ ahofm(a, b, c, D=3, F=3, k=6)", rows)
    for smooth in model.design.terms[:3]:
        layer = model.get_layer(smooth.name)
        layer.kernel.assign(rng.normal(size=layer.kernel.shape))
    terms = model.predict(grid, type="terms").drop(columns="(limit)")
    correlation = np.corrcoef(terms.to_numpy().T)
    np.testing.assert_allclose(correlation, np.eye(5), atol=1e-4)
    # Not orthogonal on other rows: the statement is one about the product of the margins.
    off_grid = np.corrcoef(model.predict(rows, type="terms")[terms.columns].to_numpy().T)
    assert np.abs(off_grid - np.eye(5)).max() > 0.05


def test_factors_of_an_svd_reproduce_a_tensor_product_surface() -> None:
    """sum_f phi_1f phi_2f with factors from the SVD of a coefficient matrix Theta is B1 Theta B2'."""
    data = smooth_data()
    model = ak.AdditiveModel("y ~ afm(a, b, F=6, k=7, main=False)", data)
    term = model.design.terms[0]
    layer = model.get_layer(term.name)
    theta = np.random.default_rng(3).normal(size=(6, 6))
    left, singular, right = np.linalg.svd(theta)
    transform = layer._to_coefficients[0]
    scale = [np.linalg.pinv(transform[j]) @ model.design.features[j].transform for j in (0, 1)]
    weights = np.stack([scale[0] @ (left * np.sqrt(singular)), scale[1] @ (right.T * np.sqrt(singular))])
    layer.factors[0].assign(weights)
    bases = [
        evaluate_basis(feature.basis, data[feature.label].to_numpy()) @ feature.transform
        for feature in model.design.features
    ]
    surface = np.einsum("nm,mo,no->n", bases[0], theta, bases[1])
    predicted = model.predict(data, type="terms").iloc[:, 0] / model.scale
    np.testing.assert_allclose(predicted, surface, rtol=0, atol=1e-4 * np.abs(surface).max())


def test_penalty_of_the_model_is_the_papers() -> None:
    """sum_j lambda_j gamma_j' P gamma_j / (2 n), from coefficients and difference matrices."""
    data = smooth_data()
    model = ak.AdditiveModel("y ~ ahofm(a, b, c, D=2, F=2, df=5, knots='even')", data)
    rng = np.random.default_rng(4)
    for weight in model.trainable_weights:
        weight.assign(rng.normal(size=weight.shape))
    total = 0.0
    for term in model.design.terms:
        layer = model.get_layer(term.name)
        if term.kind == "s":
            gamma = np.asarray(layer.coefficients(), float)
            D = np.diff(np.eye(len(gamma)), n=2, axis=0)
            total += term.smoothing * np.sum((D @ gamma) ** 2)
        else:
            gamma = np.asarray(layer.coefficients(0), float)
            D = np.diff(np.eye(gamma.shape[1]), n=2, axis=0)
            for j, smoothing in enumerate(term.orders[0].smoothing):
                total += smoothing * np.sum((D @ gamma[j]) ** 2)
    assert float(sum(model.losses)) == pytest.approx(total / (2 * len(data)), rel=1e-4)


def test_a_main_effect_stands_once() -> None:
    data = smooth_data()
    labels = [t.label for t in ak.AdditiveModel("y ~ s(a, k=6) + b + ahofm(a, b, c)", data).design.terms]
    assert labels == ["s(a)", "b", "s(c)", "ahofm(a, b, c)"]


def test_gradient_of_the_whole_model_by_finite_differences() -> None:
    data = smooth_data(rows=60)
    precision, policy = keras.config.floatx(), keras.config.dtype_policy()
    keras.config.set_floatx("float64")
    keras.config.set_dtype_policy("float64")
    try:
        model = ak.AdditiveModel("y ~ ahofm(a, b, c, D=3, F=2, k=6)", data)
        check_gradient(model, data)
    finally:
        keras.config.set_floatx(precision)
        keras.config.set_dtype_policy(policy)


def check_gradient(model: ak.AdditiveModel, data: pd.DataFrame) -> None:
    import tensorflow as tf

    columns = {name: tf.constant(data[name]) for name in "abc"}
    y = tf.constant(data.y)
    rng = np.random.default_rng(5)
    for weight in model.trainable_weights:
        weight.assign(0.3 * rng.normal(size=weight.shape))

    def objective() -> tf.Tensor:
        return model.compute_loss(y=y, y_pred=model(columns))

    with tf.GradientTape() as tape:
        value = objective()
    gradients = tape.gradient(value, [w.value for w in model.trainable_weights])
    step = 1e-5
    for weight, gradient in zip(model.trainable_weights, gradients, strict=True):
        direction = rng.normal(size=weight.shape)
        start = weight.numpy()
        weight.assign(start + step * direction)
        above = float(objective())
        weight.assign(start - step * direction)
        below = float(objective())
        weight.assign(start)
        expected = (above - below) / (2 * step)
        assert float(np.sum(np.asarray(gradient) * direction)) == pytest.approx(
            expected, rel=1e-5, abs=1e-8
        )
