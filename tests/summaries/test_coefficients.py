"""`coef` and `vcov` against the model's own predictions and against dense algebra."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy.linalg import block_diag

import ahofm_keras as ak
from ahofm_keras.bases import evaluate_basis
from ahofm_keras.summaries import coef, summary, vcov
from ahofm_keras.terms.interaction import InteractionTerm
from ahofm_keras.terms.parametric import design_columns
from ahofm_keras.terms.smooth import SmoothTerm
from tests.reference import terms_of
from tests.summaries.conftest import fitted


def raw_design(model: ak.AdditiveModel, data: pd.DataFrame) -> np.ndarray:
    """Intercept and linear columns as they are."""
    columns = model.read_inputs(data)
    parts = [design_columns(t.factors, t.columns, columns) for t in model.design.terms]
    return np.column_stack([np.ones(len(data)), *parts])


def basis_of(model: ak.AdditiveModel, position: int, data: pd.DataFrame) -> np.ndarray:
    feature = model.design.features[position]
    return evaluate_basis(feature.basis, data[feature.label].to_numpy())


def test_a_linear_model_is_ordinary_least_squares(
    linear_model: ak.AdditiveModel, data: pd.DataFrame
) -> None:
    design, y = raw_design(linear_model, data), data.y.to_numpy()
    expected, *_ = np.linalg.lstsq(design, y, rcond=None)
    found = coef(linear_model)
    assert found.index[0] == "(Intercept)"
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    np.testing.assert_allclose(design @ found, linear_model.predict(data), rtol=1e-6)
    residual_df = len(y) - len(expected)
    dispersion = np.sum((y - design @ expected) ** 2) / residual_df
    covariance = dispersion * np.linalg.inv(design.T @ design)
    errors = np.sqrt(covariance.diagonal())
    own = vcov(linear_model)
    assert list(own.index) == list(own.columns) == list(found.index)
    np.testing.assert_allclose(
        own / errors / errors[:, None], covariance / errors / errors[:, None], atol=1e-4
    )
    table = summary(linear_model).coefficients
    np.testing.assert_allclose(table.se, errors, rtol=1e-4)
    np.testing.assert_allclose(table.estimate, found)
    assert summary(linear_model).figures["residual_df"] == pytest.approx(residual_df, abs=1e-6)


def test_coefficients_of_smooths_reproduce_the_link(model: ak.AdditiveModel, data: pd.DataFrame) -> None:
    found, covariance = coef(model), vcov(model)
    predicted = model.predict(data, type="terms")
    link = found["(Intercept)"] + found["z"] * data.z
    link += found.reindex([f"group[{g}]" for g in data.group]).fillna(0.0).to_numpy()
    for term in terms_of(model.design, SmoothTerm):
        own = coef(model, term.label)
        curve = basis_of(model, term.feature, data) @ own
        np.testing.assert_allclose(curve, predicted[term.label], atol=1e-4 * data.y.std())
        pd.testing.assert_series_equal(own, found[own.index])
        pd.testing.assert_frame_equal(vcov(model, term.label), covariance.loc[own.index, own.index])
        link += curve
    orders = [label for t in terms_of(model.design, InteractionTerm) for label in t.column_labels]
    np.testing.assert_allclose(link + predicted[orders].sum(axis=1), model.predict(data), rtol=1e-6)


def test_the_covariance_is_that_of_the_dense_posterior(data: pd.DataFrame) -> None:
    model = fitted("y ~ z + s(x1, k=6, knots='even', sp=0.5)", data)
    basis = basis_of(model, 0, data)
    design = np.column_stack([np.ones(len(data)), data.z, basis])
    centred = block_diag(np.eye(2), np.linalg.svd(basis.mean(axis=0)[None])[2][1:].T)
    differences = np.diff(np.eye(6), n=2, axis=0)
    penalty = 0.5 * block_diag(np.zeros((2, 2)), differences.T @ differences)
    precision = centred.T @ (design.T @ design + penalty) @ centred
    expected = centred @ np.linalg.solve(precision, centred.T @ design.T @ data.y)
    np.testing.assert_allclose(coef(model), expected, rtol=1e-4)
    # Three directions are free: the intercept, the slope of z, a straight line in x1.
    loss = np.sum((data.y - design @ expected) ** 2) + expected @ penalty @ expected
    covariance = loss / (len(data) - 3) * centred @ np.linalg.solve(precision, centred.T)
    np.testing.assert_allclose(vcov(model), covariance, rtol=1e-4, atol=1e-6 * np.abs(covariance).max())
    rows = np.einsum("ni,ij,nj->n", design, vcov(model), design)
    errors = model.predict(data, type="link", interval=0.9).se
    np.testing.assert_allclose(np.sqrt(rows), errors, rtol=1e-4)


def test_labels(model: ak.AdditiveModel) -> None:
    labels = list(coef(model, interactions=True).index)
    assert labels[:5] == ["(Intercept)", "z", "group[b]", "group[c]", "s(noise).1"]
    assert "s(site)[p]" in labels
    assert "ahofm(x1, x2, x3)[2].x1.f1.3" in labels
    assert len(set(labels)) == len(labels)
    assert len(labels) == 4 + 8 + 6 + 3 * 8 + 2 * 3 * 2 * 8


def test_factors_reproduce_the_order(unpruned: ak.AdditiveModel, data: pd.DataFrame) -> None:
    predicted = unpruned.predict(data, type="terms")
    [term] = terms_of(unpruned.design, InteractionTerm)
    for place, order in enumerate(term.orders):
        label = term.column_labels[place]
        values = coef(unpruned, label).to_numpy()
        factors, start = [], 0
        for position in term.features:
            basis = basis_of(unpruned, position, data)
            stop = start + order.rank * basis.shape[1]
            factors.append(basis @ values[start:stop].reshape(order.rank, -1).T)
            start = stop
        total = sum(np.prod(chosen, axis=0) for chosen in combinations(factors, order.order))
        np.testing.assert_allclose(
            total.sum(axis=1), predicted[label], atol=1e-4 * predicted[label].std()
        )
    np.testing.assert_allclose(
        coef(unpruned, term.label), np.concatenate([coef(unpruned, own) for own in term.column_labels])
    )


def test_the_covariance_of_an_interaction_is_block_diagonal(unpruned: ak.AdditiveModel) -> None:
    """Of a factor the functions that meet, of two factors the same function; other pairs are not kept."""
    [term] = terms_of(unpruned.design, InteractionTerm)
    found = vcov(unpruned, term.column_labels[0])
    assert list(found.index) == list(coef(unpruned, term.column_labels[0]).index)
    values, start = found.to_numpy(), 0
    for j, position in enumerate(term.features):
        feature, slots = unpruned.design.features[position], np.arange(term.orders[0].rank)
        # All functions are few enough to be tested, so their whole covariance is there.
        covariance = unpruned.posterior.tested_covariance(0, j, slots)
        transform = feature.transform[:, feature.smoothest(len(feature.eigenvalues))]
        dense = np.einsum("mr,frgs,ns->fmgn", transform, covariance, transform)
        stop = start + len(slots) * feature.basis.size
        own = values[start:stop, start:stop].reshape(dense.shape)
        size, width = feature.basis.size, feature.basis.width
        distance = np.abs(np.subtract.outer(range(size), range(size)))
        known = ~np.isnan(own)
        for f in slots:
            for g in slots:
                # What goes round the ends is there on a line, too.
                near = (distance < width) | (distance > size - width)
                meet = near if f == g else distance == 0
                np.testing.assert_array_equal(known[f, :, g], meet)
        wanted = unpruned.scale * dense[known]  # scale^(2/d), d = 2
        np.testing.assert_allclose(own[known], wanted, rtol=1e-7, atol=1e-10)
        assert not values[start:stop, :start].any()
        assert not values[start:stop, stop:].any()
        start = stop
    assert (values.diagonal() > 0).all()
    both = vcov(unpruned, term.label)
    np.testing.assert_allclose(both.loc[found.index, found.index], found)


def test_without_intercept(data: pd.DataFrame) -> None:
    model = ak.AdditiveModel("y ~ 0 + group + z", data)
    model.fit(data, solver="variational", verbose=0)
    found = coef(model)
    assert list(found.index) == ["group[a]", "group[b]", "group[c]", "z"]
    by_hand = found[[f"group[{g}]" for g in data.group]].to_numpy() + found["z"] * data.z
    np.testing.assert_allclose(by_hand, model.predict(data), rtol=1e-5)
    assert list(summary(model).coefficients.index) == list(found.index)


@pytest.mark.parametrize(
    ("term", "message"),
    [
        ("s(nois)", r"no term `s\(nois\)`\. Did you mean `s\(noise\)`\?"),
        ("ahofm(x1, x2, x3)[4]", r"Did you mean `ahofm\(x1, x2, x3\)"),
        (3, "no term `3`. It has: `z`, `group`"),
    ],
)
def test_unknown_terms(model: ak.AdditiveModel, term: object, message: str) -> None:
    for function in (coef, vcov):
        with pytest.raises(ak.DataError, match=message):
            function(model, term)


def test_unfitted(data: pd.DataFrame) -> None:
    model = ak.AdditiveModel("y ~ z", data)
    for function in (coef, vcov, summary):
        with pytest.raises(ak.NotFittedError, match="not fitted"):
            function(model)
        with pytest.raises(ak.DataError, match="`AdditiveModel` is needed"):
            function("model")
