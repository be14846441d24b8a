"""`predict(interval=, method="conformal")`: intervals that hold whatever the response follows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from ahofm_keras.intervals import conformal_quantile


def heavy_frame(rows: int, seed: int, family: str = "gaussian") -> pd.DataFrame:
    """A response that the family is wrong for."""
    rng = np.random.default_rng(seed)
    data = pd.DataFrame({"x": np.r_[0.0, 1.0, rng.uniform(size=rows - 2)]})
    mean = 1 + np.sin(6 * data.x) + data.x
    if family == "gaussian":
        data["y"] = mean + rng.standard_t(2, rows)
    elif family == "poisson":
        data["y"] = rng.negative_binomial(1, 1 / (1 + mean + 0.5)).astype(float)
    else:
        data["y"] = mean.abs() * rng.lognormal(0, 1.5, rows) + 1e-3
    return data


@pytest.fixture(scope="module", params=["gaussian", "poisson", "gamma"])
def model(request: pytest.FixtureRequest) -> ak.AdditiveModel:
    train = heavy_frame(300, 0, request.param)
    model = ak.AdditiveModel("y ~ s(x)", train, family=request.param)
    model.fit(train, verbose=0)
    return model


def test_coverage_is_the_level_whatever_the_response_follows(model: ak.AdditiveModel) -> None:
    """Averaged over calibration sets it lies between level and level + 1 / (rows + 1)."""
    covered = []
    for seed in range(1, 41):
        calibration = heavy_frame(100, seed, model.family.name)
        fresh = heavy_frame(200, 1000 + seed, model.family.name)
        band = model.predict(fresh, interval=0.8, method="conformal", calibration=calibration)
        covered.append(((band.predictive_lower <= fresh.y) & (fresh.y <= band.predictive_upper)).mean())
    assert 0.78 < np.mean(covered) < 0.84


def test_columns_and_support(model: ak.AdditiveModel) -> None:
    calibration = heavy_frame(100, 1, model.family.name)
    fresh = heavy_frame(50, 2, model.family.name)
    fresh.index = pd.RangeIndex(100, 150)
    band = model.predict(fresh, interval=0.8, method="conformal", calibration=calibration)
    assert list(band) == ["mean", "predictive_lower", "predictive_upper"]
    assert band.index.equals(fresh.index)
    np.testing.assert_allclose(band["mean"], model.predict(fresh), rtol=1e-6)
    if model.family.name != "gaussian":
        assert (band.predictive_lower >= 0).all()
    if model.family.name == "poisson":
        assert (band[["predictive_lower", "predictive_upper"]] % 1 == 0).all().all()
    pair = (calibration[["x"]], calibration["y"])
    again = model.predict(fresh, interval=0.8, method="conformal", calibration=pair)
    pd.testing.assert_frame_equal(again, band)


def test_without_a_posterior() -> None:
    train = heavy_frame(200, 0)
    model = ak.AdditiveModel("y ~ s(x)", train)
    model.compile(loss="mae")
    with pytest.warns(ak.AhofmWarning, match="reached its last epoch"):
        model.fit(train, epochs=2, verbose=0)
    calibration = heavy_frame(99, 1)
    band = model.predict(train, interval=0.9, method="conformal", calibration=calibration)
    residuals = np.sort(np.abs(calibration.y - model.predict(calibration)))
    reach = residuals[89]  # the 90th of 99: ceil(100 * 0.9)
    np.testing.assert_allclose(band.predictive_upper - band["mean"], reach, rtol=1e-6)


def test_the_quantile() -> None:
    scores = np.arange(1.0, 20.0)
    assert conformal_quantile(scores[::-1], 0.95) == 19.0
    assert conformal_quantile(scores, 0.5) == 10.0
    with pytest.raises(ak.DataError, match=r"level 0.99 need at least 99 calibration rows, 19 were"):
        conformal_quantile(scores, 0.99)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "conformal"}, "Conformal intervals need rows that the model was not fitted to"),
        ({"method": "bayes"}, "`method` must be one of"),
        ({"calibration": heavy_frame(20, 0)}, '`calibration` goes with method="conformal"'),
        (
            {"method": "conformal", "calibration": heavy_frame(20, 0), "type": "link"},
            'type="response"',
        ),
        ({"method": "conformal", "calibration": heavy_frame(5, 0)}, "need at least 9 calibration rows"),
        (
            {"method": "conformal", "calibration": heavy_frame(5, 0)[["x"]]},
            "Column `y` is missing",
        ),
    ],
)
def test_bad_input(arguments: dict, message: str) -> None:
    train = heavy_frame(100, 0)
    model = ak.AdditiveModel("y ~ s(x)", train)
    model.fit(train, verbose=0)
    with pytest.raises(ak.DataError, match=message):
        model.predict(train, interval=0.9, **arguments)


def test_two_classes_have_none() -> None:
    train = heavy_frame(100, 0).assign(y=lambda d: (d.y > 1).astype(float))
    model = ak.AdditiveModel("y ~ s(x)", train, family="bernoulli")
    model.fit(train, verbose=0)
    with pytest.raises(ak.DataError, match="more than two values"):
        model.predict(train, interval=0.9, method="conformal", calibration=train)


# Models of several predictors -----------------------------------------------------------------------


def uneven_frame(rows: int, seed: int) -> pd.DataFrame:
    """Skewed noise, three times as wide on the right as on the left: gaussian_ls is wrong for it."""
    rng = np.random.default_rng(seed)
    data = pd.DataFrame({"x": np.r_[0.0, 1.0, rng.uniform(size=rows - 2)]})
    data["y"] = np.sin(6 * data.x) + np.exp(1.1 * data.x - 1) * (rng.gamma(1.0, 1.0, rows) - 1)
    return data


@pytest.fixture(scope="module")
def uneven() -> ak.AdditiveModel:
    train = uneven_frame(300, 0)
    model = ak.AdditiveModel({"loc": "y ~ s(x, k=8)", "scale": "~ x"}, train, family="gaussian_ls")
    model.fit(train, solver="variational", verbose=0)
    return model


def test_several_predictors_have_the_level_too(uneven: ak.AdditiveModel) -> None:
    covered, widths = [], []
    for seed in range(1, 41):
        calibration, fresh = uneven_frame(100, seed), uneven_frame(200, 1000 + seed)
        band = uneven.predict(fresh, interval=0.8, method="conformal", calibration=calibration)
        covered.append(((band.predictive_lower <= fresh.y) & (fresh.y <= band.predictive_upper)).mean())
        width = band.predictive_upper - band.predictive_lower
        widths.append(width[fresh.x > 0.8].mean() / width[fresh.x < 0.2].mean())
    assert 0.78 < np.mean(covered) < 0.84
    # The true spreads differ by exp(1.1 * 0.8) = 2.4.
    assert 1.7 < np.mean(widths) < 3.4


def test_scores_are_distances_beyond_the_quantiles_in_units_of_the_halves(uneven) -> None:
    calibration, fresh = uneven_frame(99, 1), uneven_frame(50, 2)
    band = uneven.predict(fresh, interval=0.9, method="conformal", calibration=calibration)
    low, middle, high = uneven.predict(calibration, type="quantile", q=[0.05, 0.5, 0.95]).T
    y = calibration.y.to_numpy()
    scores = np.maximum((low - y) / (middle - low), (y - high) / (high - middle))
    far = np.sort(scores)[89]  # the 90th of 99
    low, middle, high = uneven.predict(fresh, type="quantile", q=[0.05, 0.5, 0.95]).T
    np.testing.assert_allclose(band.predictive_lower, low - far * (middle - low), rtol=1e-6)
    np.testing.assert_allclose(band.predictive_upper, high + far * (high - middle), rtol=1e-6)
    np.testing.assert_allclose(band["mean"], uneven.predict(fresh), rtol=1e-6)


def test_counts_of_two_predictors_have_whole_ends_and_enough_rows_inside() -> None:
    train = heavy_frame(300, 0, "poisson")
    model = ak.AdditiveModel("y ~ s(x, k=8)", train, family="negative_binomial")
    model.fit(train, solver="variational", verbose=0)
    covered = []
    for seed in range(1, 21):
        calibration = heavy_frame(100, seed, "poisson")
        fresh = heavy_frame(200, 1000 + seed, "poisson")
        band = model.predict(fresh, interval=0.8, method="conformal", calibration=calibration)
        ends = band[["predictive_lower", "predictive_upper"]]
        assert (ends % 1 == 0).all().all()
        assert (ends >= 0).all().all()
        covered.append(((band.predictive_lower <= fresh.y) & (fresh.y <= band.predictive_upper)).mean())
    assert np.mean(covered) > 0.78


# Quantiles, expectiles, trials, censored times -------------------------------------------------------


@pytest.mark.parametrize("levels", [(0.1, 0.5, 0.9), (0.5,), (0.5, 0.9)])
def test_fitted_quantiles_are_moved_to_the_level(levels: tuple[float, ...]) -> None:
    train = uneven_frame(300, 0)
    family = ak.families.Quantile(levels=levels)
    model = ak.AdditiveModel("y ~ s(x, k=8)", train, family=family)
    model.fit(train, solver="variational", verbose=0)
    covered = []
    for seed in range(1, 31):
        calibration, fresh = uneven_frame(100, seed), uneven_frame(200, 1000 + seed)
        band = model.predict(fresh, interval=0.8, method="conformal", calibration=calibration)
        covered.append(((band.predictive_lower <= fresh.y) & (fresh.y <= band.predictive_upper)).mean())
    assert 0.78 < np.mean(covered) < 0.84
    found = model.predict(fresh, type="quantile").set_axis(model.family.columns, axis=1)
    np.testing.assert_allclose(band["mean"], found["q50"], rtol=1e-6)
    if len(levels) < 3:
        return
    # Romano, Patterson & Candes, in units of the halves.
    own = model.predict(calibration, type="quantile")
    y = calibration.y.to_numpy()
    scores = np.maximum((own.q10 - y) / (own.q50 - own.q10), (y - own.q90) / (own.q90 - own.q50))
    far = np.sort(scores)[80]  # the 81st of 100
    np.testing.assert_allclose(
        band.predictive_upper, found.q90 + far * (found.q90 - found.q50), rtol=1e-5
    )


def shares_frame(rows: int, seed: int) -> pd.DataFrame:
    """Successes that vary more than binomial ones."""
    rng = np.random.default_rng(seed)
    data = pd.DataFrame({"x": np.r_[0.0, 1.0, rng.uniform(size=rows - 2)]})
    data["trials"] = rng.integers(5, 60, rows)
    chance = 1 / (1 + np.exp(-np.sin(6 * data.x)))
    data["won"] = rng.binomial(data.trials, rng.beta(4 * chance, 4 * (1 - chance)))
    return data.assign(lost=data.trials - data.won)


@pytest.fixture(scope="module")
def wins() -> ak.AdditiveModel:
    train = shares_frame(300, 0)
    model = ak.AdditiveModel("cbind(won, lost) ~ s(x, k=8)", train, family="binomial")
    model.fit(train, solver="variational", verbose=0)
    return model


def test_with_trials_conformal_intervals_are_of_successes(wins: ak.AdditiveModel) -> None:
    covered = []
    for seed in range(1, 31):
        calibration, fresh = shares_frame(100, seed), shares_frame(200, 1000 + seed)
        band = wins.predict(
            fresh, interval=0.8, method="conformal", calibration=calibration, trials="trials"
        )
        assert (band % 1 == 0)[["predictive_lower", "predictive_upper"]].all().all()
        assert (band.predictive_upper <= fresh.trials).all()
        covered.append(band.predictive_lower.le(fresh.won) & fresh.won.le(band.predictive_upper))
    assert np.mean(covered) > 0.78
    np.testing.assert_allclose(band["mean"], wins.predict(fresh), rtol=1e-6)
    wide = band.predictive_upper - band.predictive_lower
    assert wide[fresh.trials > 40].mean() > 2 * wide[fresh.trials < 15].mean()


def test_without_trials_they_are_of_shares(wins: ak.AdditiveModel) -> None:
    fresh = shares_frame(200, 77)
    band = wins.predict(fresh, interval=0.8, method="conformal", calibration=shares_frame(100, 1))
    share = fresh.won / fresh.trials
    assert 0.6 < (band.predictive_lower.le(share) & share.le(band.predictive_upper)).mean() < 0.95
    assert band.to_numpy().max() <= 1
    assert (band.predictive_upper % 1 > 0).any()


def test_trials_need_those_of_the_calibration_rows() -> None:
    known = shares_frame(100, 1).assign(share=lambda d: d.won / d.trials)
    model = ak.AdditiveModel("share ~ x", known, family="binomial")
    model.fit(known, sample_weight="trials", solver="bcd", verbose=0)
    asked = {"interval": 0.8, "method": "conformal", "trials": "trials"}
    with (
        pytest.warns(ak.AhofmWarning, match="no whole numbers of successes"),
        pytest.raises(ak.DataError, match="needs the trials of the calibration rows"),
    ):
        model.predict(known, calibration=known, **asked)
    found = model.predict(known, calibration=(known, known.share, known.trials), **asked)
    assert (found.predictive_upper <= known.trials).all()


def test_censored_times_have_none() -> None:
    data = heavy_frame(60, 0, "gamma").assign(event=1)
    model = ak.AdditiveModel("Surv(y, event) ~ x", data, family="cox")
    model.fit(data, verbose=0)
    with pytest.raises(ak.DataError, match=r"censored.*`ak\.survival\(model, x, interval=\.\.\.\)`"):
        model.predict(data, interval=0.9, method="conformal", calibration=data)
