"""Tensor products in tables: coefficients, covariance, the row of the summary and its test."""

from __future__ import annotations

from functools import reduce
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from ahofm_keras.bases import evaluate_basis
from ahofm_keras.summaries import coef, summary, vcov
from ahofm_keras.summaries.linear import LinearCoefficients
from ahofm_keras.summaries.wald import REFERENCE_DF, function_test, reference_penalty
from tests.reference import penalised
from tests.summaries.conftest import fitted

FORMULA = "y ~ z + s(noise, k=6) + te(x1, x2, k=(5, 6)) + ti(x3, site, k=4) + ti(x1, x3, noise, k=4)"


@pytest.fixture(scope="module")
def surfaces(data: pd.DataFrame) -> ak.AdditiveModel:
    return fitted(FORMULA, data, solver="bcd")


@pytest.fixture(scope="module")
def chosen(data: pd.DataFrame) -> ak.AdditiveModel:
    """One pair that matters and one that does not."""
    return fitted("y ~ z + group + s(x1) + s(x2) + s(noise) + ti(x1, x2) + ti(noise, x2)", data)


def design_of(model: ak.AdditiveModel, term, data: pd.DataFrame) -> np.ndarray:
    """Products of basis functions, for each subset of margins that the term has functions of."""
    bases = []
    for place in term.features:
        feature = model.design.features[place]
        bases.append(evaluate_basis(feature.basis, data[feature.label].to_numpy()))
    count = len(bases)
    sizes = [count] if term.pure else range(1, count + 1)
    subsets = [subset for size in sizes for subset in combinations(bases, size)]
    return np.concatenate(
        [np.array([reduce(np.kron, row) for row in zip(*own, strict=True)]) for own in subsets], axis=1
    )


def test_coefficients_reproduce_the_terms(surfaces: ak.AdditiveModel, data: pd.DataFrame) -> None:
    predicted = surfaces.predict(data, type="terms")
    for term in penalised(surfaces.design):
        found = design_of(surfaces, term, data) @ coef(surfaces, term.label).to_numpy()
        wanted = predicted[term.label]
        np.testing.assert_allclose(found, wanted, atol=1e-4 * wanted.std())


def test_labels_name_the_functions_of_each_margin(surfaces: ak.AdditiveModel) -> None:
    labels = list(coef(surfaces).index)
    assert len(set(labels)) == len(labels)
    whole = list(coef(surfaces, "te(x1, x2)").index)
    assert [whole[0], whole[5], whole[11], whole[-1]] == [
        "te(x1, x2).x1.1", "te(x1, x2).x2.1", "te(x1, x2).x1.1:x2.1", "te(x1, x2).x1.5:x2.6",
    ]  # fmt: skip
    assert coef(surfaces, "ti(x3, site)").index[1] == "ti(x3, site).x3.1:site[q]"
    assert coef(surfaces, "ti(x1, x3, noise)").index[-1] == "ti(x1, x3, noise).x1.4:x3.4:noise.4"
    assert len(labels) == 2 + 6 + (5 + 6 + 30) + 4 * 6 + 4**3


def test_the_covariance_gives_the_errors_of_the_link(
    surfaces: ak.AdditiveModel, data: pd.DataFrame
) -> None:
    blocks = [np.ones((len(data), 1)), data[["z"]].to_numpy()]
    blocks += [design_of(surfaces, term, data) for term in penalised(surfaces.design)]
    rows = np.concatenate(blocks, axis=1)
    variance = np.einsum("ni,ij,nj->n", rows, vcov(surfaces), rows)
    errors = surfaces.predict(data, type="link", interval=0.9).se
    np.testing.assert_allclose(np.sqrt(variance), errors, rtol=1e-3)
    own = vcov(surfaces, "ti(x3, site)")
    assert list(own.index) == list(coef(surfaces, "ti(x3, site)").index)


def test_a_row_a_tensor_product(chosen: ak.AdditiveModel) -> None:
    found = summary(chosen)
    row = found.terms.loc["ti(x1, x2)"]
    assert row.kind == "tensor"
    assert row.order == 2
    assert row.df_by_margin[0] == pytest.approx(chosen.design.terms[-2].df[0])
    logs = np.asarray(chosen.posterior.linear_smoothing)[3]
    np.testing.assert_allclose(row.lambda_by_margin, np.exp(logs[:2]) / 300)
    assert (row.lambda_min, row.lambda_max) == (min(row.lambda_by_margin), max(row.lambda_by_margin))
    assert 0.9 < row.edf < 30
    assert row.p_value < 1e-6
    assert not row.pruned
    other = found.terms.loc["ti(noise, x2)"]
    assert other.pruned or other.p_value > 0.01
    assert other.share < 0.01
    assert found.terms.edf.sum() + 1 == pytest.approx(chosen.fit_result.edf)


def test_the_table(surfaces: ak.AdditiveModel) -> None:
    text = str(summary(surfaces))
    lines = text.splitlines()
    start = lines.index("Tensor products")
    assert lines[start + 1].split() == ["k", "df", "edf", "lambda", "share", "F", "p-value"]
    assert lines[start + 2].startswith("te(x1, x2)")
    assert "5, 6" in lines[start + 2], "k of each margin"
    assert lines[start + 4].startswith("ti(x1, x3, noise)")
    assert max(map(len, lines)) <= 100
    assert "Tensor products" in summary(surfaces)._repr_html_()


def test_without_a_posterior(data: pd.DataFrame) -> None:
    model = fitted("y ~ ti(x1, x2, k=5)", data, solver="adam", epochs=2)
    model.posterior.forget()
    row = summary(model).terms.loc["ti(x1, x2)"]
    assert np.isnan(row.edf)
    assert np.isnan(row.p_value)
    assert row.k_by_margin == (5, 5)
    assert "ti(x1, x2)" in str(summary(model))


def test_the_test_at_fixed_smoothing_is_that_of_the_function(
    surfaces: ak.AdditiveModel, data: pd.DataFrame
) -> None:
    """Wood's test of the surface at the rows, from dense matrices."""
    block = LinearCoefficients(surfaces)
    columns = []
    for term in penalised(surfaces.design):
        own = block.spans[term.name]
        columns.append(design_of(surfaces, term, data) @ block.to_user[own.own, own.inner])
    z = data.z.to_numpy()
    X = np.concatenate([np.ones((300, 1)), ((z - z.mean()) / z.std())[:, None], *columns], axis=1)
    X[:, 2:] /= surfaces.scale
    inverse = np.linalg.inv(X.T @ X + np.diag(block.precisions))
    H = inverse @ X.T @ X
    own = block.spans["ti_x1_x3_noise"].inner
    rank = np.trace(2 * H[own, own]) - np.sum(H[own] * H[:, own].T)
    root = X[:, own] @ np.linalg.cholesky(block.dispersion * inverse[own, own])
    wanted = function_test(
        X[:, own] @ block.inner[own], root, float(rank), summary(surfaces).figures["residual_df"]
    )
    found = summary(surfaces).terms.loc["ti(x1, x3, noise)"]
    assert found.ref_df == pytest.approx(wanted.reference_df, rel=1e-3)
    assert found.statistic == pytest.approx(wanted.statistic, rel=1e-2)
    assert found.p_value == pytest.approx(wanted.p_value, rel=5e-2, abs=1e-4)


def test_the_reference_of_a_margin() -> None:
    penalty = np.array([0.0, 1e-3, 0.1, 2.0, 50.0])
    assert np.sum(1 / (1 + reference_penalty(penalty))) == pytest.approx(REFERENCE_DF)
    assert not reference_penalty(np.array([0.0, 4.0])).any()
