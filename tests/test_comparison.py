"""`compare`: the figures are those of the likelihood, and what cannot be compared is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import ahofm_keras as ak
from ahofm_keras.texts import text_width


@pytest.fixture(scope="module")
def data() -> pd.DataFrame:
    rng = np.random.default_rng(11)
    frame = pd.DataFrame({"x": rng.uniform(size=120), "z": rng.normal(size=120)})
    frame["y"] = 50 + 3 * np.sin(6 * frame.x) + frame.z + 0.5 * rng.normal(size=120)
    frame["count"] = rng.poisson(np.exp(0.5 * frame.z))
    frame["positive"] = np.exp(frame.y / 50)
    return frame


@pytest.fixture(scope="module")
def line(data: pd.DataFrame) -> ak.AdditiveModel:
    return ak.fit("y ~ x + z", data, verbose=0, solver="bcd")


@pytest.fixture(scope="module")
def smooth(data: pd.DataFrame) -> ak.AdditiveModel:
    return ak.fit("y ~ s(x) + z", data, verbose=0)


def test_figures_of_a_linear_model_are_those_of_least_squares(
    line: ak.AdditiveModel, smooth: ak.AdditiveModel, data: pd.DataFrame
) -> None:
    found = ak.compare(line, smooth).frame.iloc[0]
    X = np.column_stack([np.ones(len(data)), data.x, data.z])
    coefficients, (deviance,), *_ = np.linalg.lstsq(X, data.y, rcond=None)
    variance = deviance / (len(data) - 3)
    log = stats.norm(X @ coefficients, np.sqrt(variance)).logpdf(data.y).sum()
    expected = {
        "aic": -2 * log + 2 * 4,  # three coefficients and the dispersion
        "edf": 3,
        "deviance": deviance,
        "deviance_explained": 1 - deviance / np.sum((data.y - data.y.mean()) ** 2),
        "log_score": log / len(data),
        "rows": 120,
    }
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, rel=1e-4), name


def test_the_difference_is_that_to_the_best(line: ak.AdditiveModel, smooth: ak.AdditiveModel) -> None:
    frame = ak.compare(line, smooth, names=["line", "smooth"]).frame
    assert list(frame.index) == ["line", "smooth"]
    assert frame.delta_aic["smooth"] == 0
    assert frame.delta_aic["line"] == frame.aic["line"] - frame.aic["smooth"] > 10


def test_the_log_score_of_given_rows_is_that_of_the_predictive_density(
    line: ak.AdditiveModel, smooth: ak.AdditiveModel, data: pd.DataFrame
) -> None:
    held_out = data.iloc[:30].assign(y=lambda own: own.y + 0.3)
    found = ak.compare(line, smooth, data=held_out)
    for model, score in zip((line, smooth), found.frame["log_score"], strict=True):
        distribution = stats.norm(model.predict(held_out), np.sqrt(model.fit_result.dispersion))
        assert score == pytest.approx(distribution.logpdf(held_out.y).mean(), rel=1e-6)
    assert "on the 30 rows given" in str(found)
    assert found.frame["aic"].equals(ak.compare(line, smooth).frame["aic"])


def test_log_scores_of_counts_are_those_of_their_probabilities(data: pd.DataFrame) -> None:
    models = [ak.fit(f"count ~ {term}", data, "poisson", verbose=0) for term in ("x", "z")]
    found = ak.compare(*models, data=data).frame["log_score"]
    for model, score in zip(models, found, strict=True):
        expected = stats.poisson(model.predict(data)).logpmf(data["count"]).mean()
        assert score == pytest.approx(expected, rel=1e-6)


def test_families_of_the_same_kind_can_be_compared(data: pd.DataFrame) -> None:
    models = [ak.fit("positive ~ z", data, family, verbose=0) for family in ("gaussian", "gamma")]
    frame = ak.compare(*models).frame
    assert list(frame.index) == ["1: positive ~ z", "2: positive ~ z"]
    assert list(frame["family"]) == ["gaussian", "gamma"]
    assert frame["aic"].notna().all()


def test_rows_in_another_order_are_the_same_rows(line: ak.AdditiveModel, data: pd.DataFrame) -> None:
    turned = ak.fit("y ~ x + z", data[::-1], verbose=0, solver="bcd")
    assert ak.compare(line, turned).frame["delta_aic"].max() < 1e-3


def test_other_rows_are_refused(line: ak.AdditiveModel, data: pd.DataFrame) -> None:
    fewer = ak.fit("y ~ x", data[:100], verbose=0, solver="bcd")
    with pytest.raises(ak.DataError, match="different rows: 120 and 100"):
        ak.compare(line, fewer)
    changed = ak.fit("y ~ x", data.assign(y=data.y.to_numpy() + data.z), verbose=0, solver="bcd")
    with pytest.raises(ak.DataError, match="their responses differ"):
        ak.compare(line, changed)
    weighted = ak.fit("y ~ x", data, verbose=0, solver="bcd", sample_weight=np.full(120, 2.0))
    with pytest.raises(ak.DataError, match="their weights differ"):
        ak.compare(line, line, weighted, names=list("abc"))


def test_loaded_models_tell_other_rows_by_their_null_deviance(
    line: ak.AdditiveModel, smooth: ak.AdditiveModel, data: pd.DataFrame, tmp_path: Path
) -> None:
    line.save(tmp_path / "line.keras")
    loaded = ak.load_model(tmp_path / "line.keras")
    assert ak.compare(loaded, smooth).frame["aic"].notna().all()
    changed = ak.fit("y ~ x", data.assign(y=2 * data.y), verbose=0, solver="bcd")
    with pytest.raises(ak.DataError, match="null deviances"):
        ak.compare(loaded, changed)


def test_models_of_other_rows_have_log_scores_of_rows_held_out(
    line: ak.AdditiveModel, data: pd.DataFrame
) -> None:
    fewer = ak.fit("y ~ x", data[:100], verbose=0, solver="bcd")
    found = ak.compare(line, fewer, data=data[100:])
    assert found.frame["delta_aic"].isna().all()
    assert found.frame["log_score"].notna().all()
    assert "AIC and deviance cannot be compared" in " ".join(str(found).split())


def test_other_scales_are_refused(line: ak.AdditiveModel, data: pd.DataFrame) -> None:
    with pytest.raises(ak.DataError, match="different responses, `y` and `log\\(y\\)`"):
        ak.compare(line, ak.fit("log(y) ~ x", data, verbose=0))
    models = [ak.fit("count ~ z", data, family, verbose=0) for family in ("gaussian", "poisson")]
    with pytest.raises(ak.DataError, match="a probability and a density are on different scales"):
        ak.compare(*models)


def test_figures_that_no_fit_left_are_missing_and_told(
    smooth: ak.AdditiveModel, data: pd.DataFrame
) -> None:
    given = ak.AdditiveModel("y ~ s(x) + z", data)
    given.set_weights(smooth.get_weights())
    found = ak.compare(smooth, given, data=data, names=["fitted", "given"])
    assert np.isnan(found.frame.loc["given", "aic"])
    assert "no AIC of `given`" in str(found)
    scores = found.frame["log_score"]
    assert scores["given"] == pytest.approx(scores["fitted"], rel=1e-5)


def test_bad_calls_are_told(
    line: ak.AdditiveModel, smooth: ak.AdditiveModel, data: pd.DataFrame
) -> None:
    with pytest.raises(ak.DataError, match="Two or more models"):
        ak.compare(line)
    with pytest.raises(ak.DataError, match="An `AdditiveModel` is needed"):
        ak.compare(line, "y ~ x")  # type: ignore[arg-type]
    with pytest.raises(ak.NotFittedError):
        ak.compare(line, ak.AdditiveModel("y ~ x", data))
    for names in (["a"], ["a", "a"], "a"):
        with pytest.raises(ak.DataError, match="one name per model"):
            ak.compare(line, smooth, names=names)


def test_the_table_stands_aligned_in_text_and_page(
    line: ak.AdditiveModel, smooth: ak.AdditiveModel
) -> None:
    names = ["straight <b>", "a smooth of a name that goes on and on " * 4]
    found = ak.compare(line, smooth, names=names)
    lines = str(found).split("\n")
    assert lines[1].split() == "family AIC difference edf deviance explained log score n".split()
    assert all(text_width(own) <= 100 for own in lines)
    assert len({text_width(own) for own in lines[1:4]}) == 1
    assert repr(found) == str(found)
    page = found._repr_html_()
    assert "straight &lt;b&gt;" in page
    assert page.count("<tr>") == 3


def test_models_of_other_numbers_of_predictors() -> None:
    """A constant scale is the dispersion: likelihoods, degrees of freedom and AIC agree."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.uniform(-1, 1, 300)})
    frame["y"] = 100 + 40 * frame.x + 7 * rng.normal(size=300)
    held_out = frame.assign(y=100 + 40 * frame.x + 7 * rng.normal(size=300))
    formulas = ("y ~ x", {"loc": "y ~ x", "scale": "~ 1"}, {"loc": "y ~ x", "scale": "~ 1", "nu": "~ 1"})
    families = ("gaussian", "gaussian", "student_t")
    models = []
    for formula, family in zip(formulas, families, strict=True):
        models.append(ak.AdditiveModel(formula, frame, family=family))
        models[-1].fit(frame, verbose=0)
    found = ak.compare(*models).frame
    assert found.index.tolist()[1] == "loc: y ~ x; scale: ~ 1"
    assert found["aic"].iloc[1] == pytest.approx(found["aic"].iloc[0], abs=0.1)
    assert found["log_score"].iloc[1] == pytest.approx(found["log_score"].iloc[0], abs=1e-3)
    assert found["log_score"].iloc[2] == pytest.approx(found["log_score"].iloc[0], abs=0.02)
    assert found["deviance_explained"].isna().tolist() == [False, True, True]
    fresh = ak.compare(*models, data=held_out).frame["log_score"]
    assert fresh.to_numpy() == pytest.approx(np.full(3, fresh.iloc[0]), abs=0.02)
    mean, scale = (models[1].predict(held_out, type="parameters")[name] for name in ("loc", "scale"))
    assert fresh.iloc[1] == pytest.approx(stats.norm.logpdf(held_out.y, mean, scale).mean())
    with pytest.raises(ak.DataError, match="compared as a whole"):
        ak.compare(models[0], models[1].parameter("scale"))
