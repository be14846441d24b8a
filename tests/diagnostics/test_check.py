"""What a check says of models that are right, and of those that are not."""

from __future__ import annotations

import warnings

import keras
import numpy as np
import pandas as pd
import pytest
from scipy import stats

import ahofm_keras as ak
from ahofm_keras.diagnostics import Check, check

from .conftest import FAMILIES, fit, simulate

FRAMES = ("residuals", "basis", "concurvity", "tests", "calibration")


@pytest.mark.parametrize("family", FAMILIES)
def test_a_right_model_has_no_verdicts(family: str, right) -> None:
    _, found = right(family)
    assert found.verdicts == []
    assert found.tests["ok"].all()
    assert "Nothing found that speaks against the model." in str(found)


def test_it_prints_as_aligned_tables_and_as_html(right, interaction) -> None:
    text = str(right("poisson")[1])
    lines = text.splitlines()
    assert lines[0] == "Check of poisson ~ s(x) + s(z) + group"
    assert lines[1] == "poisson (log), 400 training rows"
    titles = [
        line
        for line in lines
        if line in ("Quantile residuals and rows", "Is k large enough?", "Concurvity", "Verdict")
    ]
    assert len(titles) == 4
    table = lines[lines.index("Is k large enough?") + 1 :][:3]
    assert table[0].split() == ["basis", "terms", "k", "k'", "edf", "k_index", "p_value"]
    assert table[0].index("p_value") + len("p_value") == len(table[1])
    html = interaction[1]._repr_html_()
    assert html.count("<table") == 3
    assert "nan" not in text.lower() + html.lower()


def test_names_are_escaped_in_html(right) -> None:
    _, found = right("gaussian")
    tricky = Check(**{**found.__dict__, "formula": "y ~ <script>"})
    assert "<script>" not in tricky._repr_html_()


# Rows that the model was not fitted to, and did not expect -------------------------------------------


def overdispersed(frame: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    return frame.assign(poisson=rng.poisson(frame.poisson * rng.gamma(1.0, 1.0, len(frame)) * 1.0))


def shifted(frame: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    return frame.assign(gaussian=frame.gaussian + 0.8)


def wide(frame: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    return frame.assign(gaussian=frame.gaussian + 1.5 * rng.normal(size=len(frame)))


def heavy(frame: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    jump = 6.0 * rng.choice([-1, 1], len(frame)) * (rng.random(len(frame)) < 0.02)
    return frame.assign(gaussian=frame.gaussian + jump)


def flipped(frame: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    return frame.assign(
        bernoulli=np.where(rng.random(len(frame)) < 0.35, 1 - frame.bernoulli, frame.bernoulli)
    )


def growing(frame: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    high = frame.gaussian > frame.gaussian.median()
    return frame.assign(gaussian=frame.gaussian + 1.2 * high * rng.normal(size=len(frame)))


@pytest.mark.parametrize(
    ("family", "change", "line", "words"),
    [
        ("poisson", overdispersed, "Pearson chi2 / df", "Overdispersed: the variance is about "),
        ("gaussian", shifted, "mean of residuals", "Fitted values are too low on average, by 0."),
        ("gaussian", wide, "sd of residuals", "Responses vary more than the model says"),
        ("gaussian", heavy, "beyond ±3", "Heavy tails: "),
        ("bernoulli", flipped, "largest calibration gap", "Not calibrated: where "),
        (
            "gaussian",
            growing,
            "spread along fitted",
            "Residuals spread more where fitted values are high.",
        ),
    ],
)
def test_what_is_wrong_is_said(family: str, change, line: str, words: str, right, frame) -> None:
    data = change(frame, np.random.default_rng(5))
    found = check(right(family)[0], data)
    assert line in list(found.tests["check"][~found.tests["ok"]])
    assert any(text.startswith(words) for text in found.verdicts)
    assert list(found.residuals["row"]) == list(data.index)


def test_figures_of_the_whole_follow_from_the_residuals(right, frame) -> None:
    model, found = right("poisson")
    value = found.tests.set_index("check")["value"]
    residuals = found.residuals["quantile"]
    assert value["mean of residuals"] == pytest.approx(residuals.mean())
    assert value["sd of residuals"] == pytest.approx(residuals.std(ddof=0))
    assert value["beyond ±2"] == pytest.approx((residuals.abs() > 2).mean())
    mean = found.residuals["fitted"]
    chi2 = np.sum((frame.poisson - mean) ** 2 / mean)
    assert value["Pearson chi2 / df"] == pytest.approx(chi2 / (400 - model.fit_result.edf), rel=1e-5)
    rank = stats.spearmanr(mean, residuals.abs()).statistic
    assert value["spread along fitted"] == pytest.approx(rank, abs=1e-4)


@pytest.mark.parametrize("family", ["bernoulli", "gamma"])
def test_calibration_is_by_tenths_of_the_rows(family: str, right, frame) -> None:
    _, found = right(family)
    mean = found.residuals["fitted"].to_numpy()
    tenths = np.array_split(np.argsort(mean), 10)
    np.testing.assert_allclose(found.calibration["fitted"], [mean[t].mean() for t in tenths], rtol=1e-5)
    observed = [frame[family].to_numpy()[t].mean() for t in tenths]
    np.testing.assert_allclose(found.calibration["observed"], observed, rtol=1e-5)
    variance = mean * (1 - mean) if family == "bernoulli" else found.dispersion * mean**2
    reach = [1.959964 * np.sqrt(variance[t].sum()) / len(t) for t in tenths]
    np.testing.assert_allclose(
        found.calibration["upper"] - found.calibration["fitted"], reach, rtol=1e-4
    )
    inside = found.calibration["observed"].between(
        found.calibration["lower"], found.calibration["upper"]
    )
    assert inside.sum() >= 7


def test_a_loaded_model_needs_rows_and_gives_the_same_with_them(right, frame, tmp_path) -> None:
    model, found = right("gamma")
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    with pytest.raises(ak.DataError, match=r"`check` needs rows.*pass `data=`"):
        check(loaded)
    again = check(loaded, frame)
    for name in FRAMES[:3]:
        pd.testing.assert_frame_equal(getattr(found, name), getattr(again, name), rtol=1e-5, atol=1e-6)
    assert again.source == "400 rows given"


def test_rows_of_weight_0_are_left_out_and_counted(right, frame) -> None:
    model = right("gaussian")[0]
    weight = np.where(np.arange(len(frame)) < 30, 0.0, 2.0)
    some = check(model, frame, sample_weight=weight)
    kept = check(model, frame[30:], sample_weight=np.full(370, 2.0))
    pd.testing.assert_frame_equal(some.residuals, kept.residuals)
    assert "30 rows have weight 0; left out here." in some.verdicts
    assert list(some.residuals["row"]) == list(range(30, 400))
    plain = check(model, frame[30:])
    np.testing.assert_allclose(
        some.residuals["quantile"], np.sqrt(2) * plain.residuals["quantile"], rtol=1e-6
    )


def test_values_outside_the_range_and_clipped_residuals_are_counted(right) -> None:
    model = right("poisson")[0]
    data = pd.DataFrame(
        {"x": [0.5, 7.0, 0.5], "z": [0.5, 0.5, -3.0], "group": "a", "poisson": [2, 1, 4000]}
    )
    with pytest.warns(ak.AhofmWarning, match="outside the training range"):
        found = check(model, data)
    value = found.tests.set_index("check")["value"]
    assert value["values outside range"] == 2
    assert value["clipped residuals"] == 1
    assert "Outside the training range: `x` in 1 row, `z` in 1 row." in found.verdicts
    assert "1 row is as good as impossible under the model." in found.verdicts


def test_a_circle_has_no_outside_and_given_knots_reach_further() -> None:
    hour = np.linspace(1, 23, 200)
    data = pd.DataFrame({"hour": hour, "y": np.sin(hour / 24 * 2 * np.pi)})
    at_night = data.assign(hour=np.linspace(-5, 24, 200))
    for smooth, outside in {
        "s(hour, bs='cp', knots=(0, 24))": 0,
        "s(hour, knots=(-2, 24))": int((at_night.hour < -2).sum()),
        "s(hour)": int(((at_night.hour < 1) | (at_night.hour > 23)).sum()),
        "hour": int(((at_night.hour < 1) | (at_night.hour > 23)).sum()),
    }.items():
        model = ak.AdditiveModel(f"y ~ {smooth}", data)
        model.fit(data, verbose=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ak.AhofmWarning)
            found = check(model, at_night).tests.set_index("check")["value"]
        assert found["values outside range"] == outside


def test_a_row_that_decides_its_own_fit_is_found() -> None:
    data = simulate(60, seed=2)
    data.loc[0, "x"] = 40.0
    data.loc[0, "gaussian"] = 80.0
    model = fit("gaussian ~ x + z", data)
    found = check(model)
    assert found.residuals["leverage"].idxmax() == 0
    assert "1 row decides half or more of its own fitted value." in found.verdicts


def test_more_degrees_of_freedom_than_rows_can_pay_for_are_named(frame) -> None:
    data = frame[:80]
    model = fit("gaussian ~ s(x, k=40, sp=0) + s(z, k=30, sp=0)", data, solver="bcd")
    found = check(model)
    share = found.tests.set_index("check")["value"]["edf / rows"]
    assert share == pytest.approx(model.fit_result.edf / 80)
    assert any(text.startswith("The model uses 6") for text in found.verdicts)
    assert "edf / rows" not in list(check(model, data).tests["check"])


def test_the_response_may_stand_beside_the_data(right, frame) -> None:
    model = right("poisson")[0]
    beside = check(model, frame.drop(columns="poisson"), y=frame["poisson"])
    pd.testing.assert_frame_equal(beside.residuals, check(model, frame).residuals)


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_few_rows_are_enough(rows: int, right, frame) -> None:
    found = check(right("gamma")[0], frame[:rows])
    assert np.isfinite(found.residuals["quantile"]).all()
    assert len(str(found)) > 100


# Bad input ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (lambda f: {"data": f.drop(columns="gaussian")}, "Column `gaussian` is missing"),
        (lambda f: {"data": f.drop(columns="x")}, "Column `x` is missing"),
        (lambda f: {"data": f.rename(columns={"x": "X"})}, "Did you mean `X`"),
        (lambda f: {"data": f[:0]}, "no rows"),
        (lambda f: {"data": f.assign(x="a")}, "`x`"),
        (lambda f: {"data": f.assign(gaussian=np.nan)}, "`gaussian` has 400 missing values"),
        (lambda f: {"data": [1, 2]}, "data frame or a dict"),
        (lambda f: {"data": f, "y": [1.0, 2.0]}, "The response has 2 values, the data 400 rows"),
        (lambda f: {"data": f, "sample_weight": np.ones(3)}, "`sample_weight` has 3 values"),
        (lambda f: {"y": [1.0]}, "`y` goes with `data=`"),
        (lambda f: {"sample_weight": [1.0]}, "`sample_weight` goes with `data=`"),
        (lambda f: {"seed": -1}, "`seed` must be a whole number"),
        (lambda f: {"seed": 1.5}, "`seed` must be a whole number"),
    ],
)
def test_bad_rows_are_named(arguments, message: str, right, frame) -> None:
    with pytest.raises(ak.DataError, match=message):
        check(right("gaussian")[0], **arguments(frame))


def test_an_unfitted_model_and_other_objects_are_refused(frame) -> None:
    with pytest.raises(ak.NotFittedError, match=r"model\.fit"):
        check(ak.AdditiveModel("gaussian ~ s(x)", frame))
    with pytest.raises(ak.DataError, match="Received: str"):
        check("y ~ s(x)")


def test_residuals_of_a_large_fit_may_be_smaller_by_what_it_took() -> None:
    """40 coefficients from 120 rows leave two thirds of the variance in the residuals."""
    rng = np.random.default_rng(0)
    data = pd.DataFrame(rng.normal(size=(120, 40)), columns=[f"x{j}" for j in range(40)])
    data["y"] = rng.normal(size=120)
    model = fit(f"y ~ {' + '.join(data.columns[:-1])}", data)
    found = check(model)
    left = np.sqrt(1 - 41 / 120)
    assert found.residuals["quantile"].std() == pytest.approx(left, rel=0.02)
    assert found.residuals.attrs["spread"] == pytest.approx(left, rel=0.02)
    line = found.tests.set_index("check").loc["sd of residuals"]
    assert line["ok"]
    assert not any("vary less" in verdict for verdict in found.verdicts)


def test_a_rank_that_is_used_up_is_named() -> None:
    rng = np.random.default_rng(5)
    data = pd.DataFrame(rng.uniform(-1, 1, (400, 2)), columns=["a", "b"])
    surface = np.sin(3 * data.a) * np.cos(3 * data.b) + np.cos(4 * data.a) * np.sin(2 * data.b)
    data["y"] = surface + 0.1 * rng.normal(size=400)
    narrow = fit("y ~ afm(a, b, F=1, k=8)", data)
    found = check(narrow)
    line = found.tests.set_index("check").loc["factors of order 2"]
    assert (line["value"], line["expected"], line["ok"]) == (1, "< 1", False)
    assert any(
        text.startswith("All factors of afm(a, b)[2] are in use, F = 1") for text in found.verdicts
    )
    wide = check(fit("y ~ afm(a, b, F=5, k=8)", data))
    line = wide.tests.set_index("check").loc["factors of order 2"]
    assert line["ok"]
    assert line["value"] in (2, 3, 4)
    assert not any("factors" in text for text in wide.verdicts)


def test_a_solver_that_switches_nothing_off_is_not_asked_for_its_rank() -> None:
    rng = np.random.default_rng(5)
    data = pd.DataFrame(rng.uniform(-1, 1, (100, 2)), columns=["a", "b"]).assign(y=rng.normal(size=100))
    model = fit("y ~ afm(a, b, F=1, k=5)", data, solver="bcd")
    assert "factors of order 2" not in list(check(model).tests["check"])
