"""The summary of fitted models: frames, figures, text and page."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import keras
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

import ahofm_keras as ak
from ahofm_keras.decomposition import Parts
from ahofm_keras.layers import factor_covariances
from ahofm_keras.summaries import Summary, coef, summary, vcov
from ahofm_keras.summaries.interactions import interaction_test, sample_margins
from ahofm_keras.summaries.linear import LinearCoefficients
from ahofm_keras.summaries.wald import function_test
from ahofm_keras.terms.interaction import InteractionTerm
from ahofm_keras.texts import text_width
from tests.reference import terms_of
from tests.summaries.conftest import fitted


@pytest.fixture(scope="module")
def found(model: ak.AdditiveModel) -> Summary:
    return summary(model)


def test_terms(found: Summary, model: ak.AdditiveModel) -> None:
    terms = found.terms
    assert list(terms.index) == [label for t in model.design.terms for label in t.column_labels]
    assert terms.loc["s(x1)", "p_value"] < 1e-10
    assert terms.loc["ahofm(x1, x2, x3)[2]", "p_value"] < 1e-10
    active = np.asarray(model.posterior.factor_edf[0]) > 0.05
    pair = terms.loc["ahofm(x1, x2, x3)[2]"]
    assert (pair.factors, pair.factors_asked) == (active.any(axis=0).sum(), 2)
    assert (pair.features, pair.features_asked) == (active.any(axis=1).sum(), 3)
    triple = terms.loc["ahofm(x1, x2, x3)[3]"]
    assert triple.pruned
    assert triple[["factors", "features", "edf", "share"]].tolist() == [0, 0, 0, 0]
    assert np.isnan(triple.p_value)
    assert (terms.k_max.dropna() == [8, 6, 8, 8, 8, 8, 8]).all()
    assert not terms.loc[["z", "group", "s(x1)"], "pruned"].any()
    edf = terms.edf.sum() + 1  # and the intercept
    assert edf == pytest.approx(found.figures["edf"])


def test_shares_are_those_of_the_decomposition(found: Summary, model: ak.AdditiveModel) -> None:
    parts = Parts(model)
    names = [variable.label for variable in parts.variables]
    for feature, term in (("x1", "s(x1)"), ("z", "z"), ("group", "group"), ("site", "s(site)")):
        share = parts.variance((names.index(feature),)) / parts.total_variance
        assert found.terms.loc[term, "share"] == pytest.approx(share)
    pairs = sum(
        parts.variance((names.index(a), names.index(b))) for a, b in combinations(("x1", "x2", "x3"), 2)
    )
    assert found.terms.loc["ahofm(x1, x2, x3)[2]", "share"] == pytest.approx(
        pairs / parts.total_variance
    )
    assert found.terms.share.sum() == pytest.approx(1)
    assert found.figures["shares"] == pytest.approx(1)


def test_terms_that_covary_are_told(data: pd.DataFrame) -> None:
    model = fitted("y ~ s(x1, k=6, sp=1) + poly(x1, 2)", data)
    found = summary(model)
    assert abs(found.figures["shares"] - 1) > 0.005
    assert "the covariances make up" in str(found)


def test_smoothing_is_on_the_scale_of_what_was_asked(data: pd.DataFrame) -> None:
    fixed = fitted("y ~ s(x1, k=8, sp=0.3) + s(site, bs='re', sp=2.0)", data)
    terms = summary(fixed).terms
    np.testing.assert_allclose(terms.lambda_asked_max, [0.3, 2.0])
    np.testing.assert_allclose(terms.lambda_max, terms.lambda_asked_max)
    asked = fitted("y ~ ahofm(x1, site, D=2, F=2, k=8, df=5)", data, solver="bcd", epochs=20)
    row = summary(asked).terms.loc["ahofm(x1, site)[2]"]
    assert row.df_max == pytest.approx(5)
    assert row.lambda_min <= row.lambda_asked_max


def test_degrees_of_freedom_of_the_posterior(model: ak.AdditiveModel) -> None:
    """Prior and covariance give them back: the summary reads both in the right units."""
    block = LinearCoefficients(model)
    np.testing.assert_allclose(block.influence.diagonal(), model.posterior.linear_edf, atol=1e-8)
    rows = model.fit_result.rows
    own = block.spans["s_x1"].inner
    np.testing.assert_allclose(
        block.gram[own, own], rows * np.eye(own.stop - own.start), atol=0.02 * rows
    )


def test_an_order_is_tested_by_its_derivatives(unpruned: ak.AdditiveModel) -> None:
    """Against differences by every coefficient."""
    parts, [term] = Parts(unpruned), terms_of(unpruned.design, InteractionTerm)
    test = interaction_test(parts, unpruned.design.orders[1], 100.0)
    group = next(g for g in parts.groups if g.source == (term.name, 1))
    functions = [
        parts.variables[v].functions(values)
        for v, values in zip(group.members, sample_margins(parts, group, 512), strict=True)
    ]

    def order(weights: list[np.ndarray]) -> np.ndarray:
        factors = [w.T @ own for w, own in zip(weights, functions, strict=True)]
        triples = sum(np.prod(chosen, axis=0) for chosen in combinations(factors, 3))
        return unpruned.scale * triples.sum(axis=0)

    root, step = [], 1e-4
    for j in range(3):
        covariance = unpruned.posterior.tested_covariance(1, j, group.kept)
        rank, size = covariance.shape[:2]
        variances, vectors = np.linalg.eigh(covariance.reshape(rank * size, -1))
        scaled = vectors * np.sqrt(np.maximum(variances, 0.0))
        feature = unpruned.design.features[term.features[j]]
        assert size == len(feature.eigenvalues), "all functions are tested"
        start = parts.variables[group.members[j]].columns_of(term.features[j]).start
        own = start + np.argsort(feature.eigenvalues, kind="stable")
        for column in scaled.reshape(rank, size, -1).transpose(2, 1, 0):
            moved = [[w.copy() for w in group.weights] for _ in range(2)]
            moved[0][j][own] += step * column
            moved[1][j][own] -= step * column
            root.append((order(moved[0]) - order(moved[1])) / (2 * step))
    expected = function_test(order(list(group.weights)), np.array(root).T, test.reference_df, 100.0)
    assert test.statistic == pytest.approx(expected.statistic, rel=1e-5)
    assert test.p_value == pytest.approx(expected.p_value, rel=1e-4)


def test_large_bases_are_tested_by_their_smoothest_functions(
    data: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for tested in (8, 100):
        monkeypatch.setattr(factor_covariances, "TESTED_FUNCTIONS", tested)
        model = fitted("y ~ z + group + ahofm(x1, x2, F=2, k=20)", data, restarts=0)
        kept = model.posterior.orders[0]["tested_covariances"].shape[2]
        assert kept == min(tested, 19)
        found.append(interaction_test(Parts(model), model.design.orders[0], None))
    assert found[0].reference_df == pytest.approx(found[1].reference_df)
    assert found[0].statistic == pytest.approx(found[1].statistic, rel=0.01)


def test_figures(found: Summary, model: ak.AdditiveModel, data: pd.DataFrame) -> None:
    figures = found.figures
    residuals = data.y - model.predict(data)
    explained = 1 - np.sum(residuals**2) / np.sum((data.y - data.y.mean()) ** 2)
    assert figures["deviance_explained"] == pytest.approx(explained, abs=1e-6)
    assert figures["aic"] == pytest.approx(-2 * figures["log_likelihood"] + 2 * (figures["edf"] + 1))
    assert figures["residual_df"] == pytest.approx(300 - figures["edf"])
    assert (figures["solver"], figures["converged"], figures["rows"]) == ("variational", True, 300)


def test_a_known_dispersion(data: pd.DataFrame) -> None:
    found = summary(fitted("count ~ z + s(x1, k=8)", data, family="poisson"))
    assert found.figures["aic"] == pytest.approx(
        -2 * found.figures["log_likelihood"] + 2 * found.figures["edf"]
    )
    text = str(found)
    assert "z value" in text
    assert "chi.sq" in text
    assert "dispersion 1 (known)" in text


def test_text(found: Summary) -> None:
    text = str(found)
    assert repr(found) == text
    assert max(map(text_width, text.splitlines())) <= 100
    for part in ("gaussian(identity), n = 300", "t value", "pruned", "converged", "approximate"):
        assert part in text
    table = text[text.index("Smooth terms") :].split("\n\n")[0].splitlines()[1:]
    assert len({len(line) for line in table}) == 1  # aligned


def test_page(found: Summary, data: pd.DataFrame) -> None:
    page = found._repr_html_()
    assert page.count("<table") == 4
    assert "s(noise)" in page
    hostile = data.rename(columns={"z": "<script>&", "noise": "x" * 80 + "<b>"})
    model = fitted(f"y ~ Q('<script>&') + s(Q('{'x' * 80}<b>'), k=6, sp=1)", hostile)
    page = summary(model)._repr_html_()
    assert "<script>" not in page
    assert "<b>" not in page.replace("<b>Parametric", "").replace("<b>Linear", "").replace(
        "<b>Smooth", ""
    )
    assert "&lt;script&gt;&amp;" in page
    text = str(summary(model))
    assert max(map(text_width, text.splitlines())) <= 100
    assert "…" in text


def test_a_saved_model_gives_the_same(model: ak.AdditiveModel, found: Summary, tmp_path: Path) -> None:
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    again = summary(loaded)
    assert str(again) == str(found)
    pd.testing.assert_frame_equal(again.terms, found.terms)
    pd.testing.assert_frame_equal(again.coefficients, found.coefficients)
    assert again.figures == found.figures
    pd.testing.assert_frame_equal(vcov(loaded), vcov(model))
    pd.testing.assert_series_equal(coef(loaded, interactions=True), coef(model, interactions=True))


def test_without_a_posterior(data: pd.DataFrame) -> None:
    model = ak.AdditiveModel("y ~ z + s(x1, k=6) + ahofm(x1, x2, D=2, F=1, k=6)", data)
    model.compile(jit_compile=False)
    columns = {name: data[name].to_numpy() for name in ("z", "x1", "x2")}
    dataset = tf.data.Dataset.from_tensor_slices((columns, data.y.to_numpy())).batch(100)
    with pytest.warns(ak.AhofmWarning, match="last epoch"):
        model.fit(dataset, epochs=1, verbose=0)
    found = summary(model)
    assert found.coefficients[["se", "statistic", "p_value"]].isna().all().all()
    assert found.coefficients.estimate.notna().all()
    assert found.terms[["edf", "lambda_max", "statistic", "p_value"]].isna().all().all()
    assert found.terms.loc["s(x1)", ["k_max", "lambda_asked_max", "share"]].notna().all()
    assert found.figures["aic"] is None
    text = str(found)
    for part in (
        "n = not known",
        "AIC not known",
        "no posterior",
        "did NOT converge",
        "warning of the fit",
    ):
        assert part in text
    assert len(coef(model)) == 2 + 6 + 6
    with pytest.raises(ak.NotFittedError, match="data frame"):
        vcov(model)
