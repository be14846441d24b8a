"""The shipped default, an average of several starts, through everything that reads or keeps a model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak

FORMULA = "{family} ~ s(d) + ahofm(a, b, c, D=3, F=2, k=8, df=6)"


@pytest.fixture(scope="module")
def data() -> pd.DataFrame:
    rng = np.random.default_rng(8)
    frame = pd.DataFrame(rng.uniform(-1, 1, (300, 4)), columns=list("abcd"))
    mean = np.sin(3 * frame.a) * frame.b + np.cos(2 * frame.c) * frame.b + frame.d**2
    frame["gaussian"] = mean + 0.5 * rng.normal(size=300)
    frame["poisson"] = rng.poisson(np.exp(mean))
    return frame


@pytest.fixture(scope="module", params=["gaussian", "poisson"])
def model(request: pytest.FixtureRequest, data: pd.DataFrame, shipped_starts: None) -> ak.AdditiveModel:
    return ak.fit(FORMULA.format(family=request.param), data, request.param, verbose=0)


def test_a_fit_without_arguments_is_an_average(model: ak.AdditiveModel) -> None:
    assert model.starts > 1
    assert model.fit_result.converged
    terms = ak.summary(model).terms
    pairs = terms[terms["kind"] == "interaction"]
    assert set(pairs["factors_asked"]) == {2 * model.starts}
    assert f"/{2 * model.starts}" in str(ak.summary(model))


def test_terms_and_parts_add_up_to_the_link(model: ak.AdditiveModel, data: pd.DataFrame) -> None:
    link = model.predict(data, type="link")
    terms = model.predict(data, type="terms")
    np.testing.assert_allclose(terms.sum(axis=1) + model.intercept, link, atol=1e-5)
    for row in (0, 7):
        explained = ak.explain(model, data.iloc[[row]])
        assert explained.link == pytest.approx(link[row], abs=1e-5)
    shares = ak.shares(model).set_index("part")["share"]
    assert shares.filter(like="order").sum() == pytest.approx(1, abs=1e-6)


def test_true_pairs_are_ranked_first(model: ak.AdditiveModel) -> None:
    assert set(ak.interactions(model, order=2, top=2)["label"]) == {"a:b", "b:c"}
    assert max(ak.effects(model, order=1), key=lambda effect: effect.share).label == "d"


def test_intervals_and_checks_are_those_of_an_average(
    model: ak.AdditiveModel, data: pd.DataFrame
) -> None:
    band = model.predict(data, interval=0.9)
    assert (band.lower < band["mean"]).all()
    assert (band["mean"] < band.upper).all()
    inside = (band.predictive_lower <= data[model.family.name]) & (
        data[model.family.name] <= band.predictive_upper
    )
    assert 0.8 < inside.mean() <= 1
    assert len(ak.check(model).residuals) == len(data)


def test_files_predict_the_same(model: ak.AdditiveModel, data: pd.DataFrame, tmp_path: Path) -> None:
    model.save(tmp_path / "model.keras")
    loaded = ak.load_model(tmp_path / "model.keras")
    assert loaded.starts == model.starts
    np.testing.assert_array_equal(loaded.predict(data, interval=0.9), model.predict(data, interval=0.9))
    assert str(ak.summary(loaded)) == str(ak.summary(model))


def test_pictures_and_pages_are_made(model: ak.AdditiveModel, tmp_path: Path) -> None:
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("Agg")
    assert {"d", "a:b"} <= set(ak.plot(model))
    plt.close("all")
    pytest.importorskip("bokeh")
    assert ak.report(model, tmp_path / "page.html", rows=20).stat().st_size > 100_000


def test_a_second_fit_of_the_same_rows_gives_the_same_model(
    model: ak.AdditiveModel, data: pd.DataFrame
) -> None:
    before = model.predict(data, type="link")
    model.fit(data, verbose=0)
    assert model.starts > 1
    np.testing.assert_allclose(model.predict(data, type="link"), before, atol=1e-5)
