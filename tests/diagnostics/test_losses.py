"""Checks of quantiles and expectiles: of which no distribution is assumed."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, stats

import ahofm_keras as ak
from ahofm_keras.diagnostics import Check, check
from ahofm_keras.errors import DataError
from ahofm_keras.families import Expectile, Quantile, get_family
from ahofm_keras.families.conditions import Condition

LEVELS = (0.1, 0.5, 0.9)


def expectile_of(y: np.ndarray, level: float) -> float:
    """By its definition: level times the distances above are 1 - level times those below."""
    return float(
        optimize.brentq(
            lambda m: level * np.maximum(y - m, 0).sum() - (1 - level) * np.maximum(m - y, 0).sum(),
            y.min(),
            y.max(),
        )
    )


@cache
def uneven() -> pd.DataFrame:
    """A response whose spread grows with one feature."""
    rng = np.random.default_rng(11)
    data = pd.DataFrame({"x": rng.uniform(size=600), "z": rng.uniform(size=600)})
    data["group"] = rng.choice(list("abcd"), 600)
    data["y"] = data.x + (0.1 + data.z) * rng.normal(size=600)
    return data


@cache
def checked(formula: str, name: str) -> Check:
    family = Quantile(levels=LEVELS) if name == "quantile" else Expectile(level=0.9)
    texts = {"q50": formula} if name == "quantile" else formula
    model = ak.AdditiveModel(texts, uneven(), family=family)
    model.fit(uneven(), verbose=0, solver="bcd")
    return check(model)


def parameters(y: np.ndarray) -> tuple[Quantile, dict[str, np.ndarray]]:
    """Quantiles 1, 2 and 4 of every row."""
    found = {"q50": 2.0, "q10_to_q50": 1.0, "q50_to_q90": 2.0, "scale": 1.0}
    return Quantile(levels=LEVELS), {name: np.full(len(y), value) for name, value in found.items()}


def test_a_response_lies_between_two_levels() -> None:
    y = np.array([0.0, 1.0, 1.5, 3.0, 9.0])
    family, own = parameters(y)
    chances = family.chances(y, own)
    assert chances.below[0].tolist() == [0, 0, 0.1, 0.5, 0.9]
    assert chances.below[1].tolist() == [0.1, 0.1, 0.5, 0.9, 1]
    np.testing.assert_allclose(chances.above[0], 1 - chances.below[0])
    drawn, beyond = chances.drawn(np.full(5, 0.25))
    np.testing.assert_allclose(drawn, [0.025, 0.025, 0.2, 0.6, 0.925])
    np.testing.assert_allclose(drawn + beyond, 1)


def test_conditions_of_quantiles_are_shares_below_them() -> None:
    y = np.array([0.0, 1.0, 1.5, 3.0, 9.0])
    family, own = parameters(y)
    counts, groups = np.array([1.0, 1, 2, 1, 1]), np.array([0, 0, 0, 1, 1])
    low, middle, high = family.conditions(y, own)
    assert [low.name, middle.name, high.name] == ["q10", "q50", "q90"]
    np.testing.assert_allclose(low.shift(counts, groups, 2)[0], [2 / 4 - 0.1, -0.1])
    np.testing.assert_allclose(middle.shift(counts, groups, 2)[0], [0.5, -0.5])
    shift, error = high.shift(counts, groups, 2)
    np.testing.assert_allclose(shift, [0.1, 0.5 - 0.9])
    np.testing.assert_allclose(error, np.sqrt(0.09 * np.array([6, 2])) / [4, 2])


def test_the_shift_of_an_expectile_is_what_is_missing_to_that_of_the_rows() -> None:
    y = np.random.default_rng(0).gamma(2.0, size=400)
    family = Expectile(level=0.8)
    best = expectile_of(y, 0.8)
    (right,) = family.conditions(y, {"mean": np.full(400, best)})
    groups = np.zeros(400, int)
    assert right.shift(np.ones(400), groups, 1)[0][0] == pytest.approx(0, abs=1e-9)
    (far,) = family.conditions(y, {"mean": np.full(400, best - 0.7)})
    assert far.shift(np.ones(400), groups, 1)[0][0] == pytest.approx(0.7)
    (most,) = family.conditions(y, {"mean": np.full(400, y.max() + 1)})  # all rows on one side
    assert most.shift(np.ones(400), groups, 1)[0][0] == pytest.approx(best - y.max() - 1)


def test_standard_errors_of_shifts_are_those_of_repeated_samples() -> None:
    rng = np.random.default_rng(3)
    found = []
    for _ in range(400):
        y = rng.normal(size=80)
        mean = np.full(80, expectile_of(np.random.default_rng(1).normal(size=200_000), 0.9))
        (own,) = Expectile(level=0.9).conditions(y, {"mean": mean})
        found.append([float(part[0]) for part in own.shift(np.ones(80), np.zeros(80, int), 1)])
    shifts, errors = np.array(found).T
    assert np.std(shifts) == pytest.approx(np.sqrt(np.mean(errors**2)), rel=0.15)


def test_a_quantile_that_ignores_a_feature_is_found() -> None:
    blind = checked("y ~ s(x)", "quantile")
    model_has_it = checked("y ~ s(x) + s(z)", "quantile")
    for found in (blind, model_has_it):
        lines = found.tests.set_index("check")
        for level in LEVELS:
            name = f"q{100 * level:g}"
            share = lines.loc[f"share below {name}", "value"]
            assert share == pytest.approx(np.mean(found.residuals["quantile"] < stats.norm.ppf(level)))
            assert abs(share - level) < 0.03
    assert blind.tests["ok"].all()  # it is not asked about features that it does not know
    bad = [text for text in model_has_it.verdicts if "along `z`" in text]
    assert len(bad) == 2
    assert all("of the responses lie below it, not" in text for text in bad)


def test_quantiles_with_gaps_that_follow_the_spread_are_fine() -> None:
    family = Quantile(levels=LEVELS)
    model = ak.AdditiveModel("y ~ x + z", uneven(), family=family)
    model.fit(uneven(), verbose=0)
    found = check(model)
    assert found.tests["ok"].all(), found.verdicts
    assert found.frequencies["expected"].tolist() == pytest.approx([60, 240, 240, 60])
    assert found.frequencies["observed"].sum() == 600
    bins = found.calibration[found.calibration["quantile"] == "q90"]
    assert (bins["rows"] == 60).all()
    assert np.average(bins["observed"], weights=bins["rows"]) == pytest.approx(0.9, abs=0.03)
    shifted = uneven().assign(y=uneven().y + 0.4)
    held = check(model, shifted)
    assert any(text.startswith("`q10` is too low") for text in held.verdicts)


def test_an_expectile_is_checked_without_chances() -> None:
    found = checked("y ~ s(x) + s(z)", "expectile")
    assert found.is_loss
    assert found.residuals["quantile"].isna().all()
    assert not len(found.frequencies)
    assert found.residuals["pull"].mean() == pytest.approx(0, abs=1e-3)
    assert found.tests["ok"].all(), found.verdicts
    assert found.tests["check"].tolist()[0] == "expectile of residuals"
    assert "Predictions and rows" in str(found)


def test_an_expectile_that_is_off_is_found() -> None:
    data = uneven()
    model = ak.AdditiveModel("y ~ s(x)", data, family=Expectile(level=0.9))
    model.fit(data, verbose=0, solver="bcd")
    found = check(model, data.assign(y=data.y + 0.5))
    assert "The expectile is too low on average, by 0.5" in " ".join(found.verdicts)


def test_levels_with_few_rows_count_together() -> None:
    data = uneven().copy()
    data.loc[:2, "group"] = "rare"
    model = ak.AdditiveModel("y ~ group", data, family=Expectile(level=0.5))
    model.fit(data, verbose=0, solver="bcd")
    assert "largest gap of expectile along a feature" in check(model).tests["check"].tolist()


def test_a_log_score_of_a_loss_is_still_refused() -> None:
    model = ak.AdditiveModel("y ~ x", uneven(), family=Expectile(level=0.5))
    model.fit(uneven(), verbose=0, solver="bcd")
    with pytest.raises(DataError, match="is a loss"):
        ak.log_score(model)


def test_a_family_that_is_no_loss_has_no_conditions() -> None:
    assert get_family("gaussian").conditions(np.ones(3), {}) == []
    assert Condition.__dataclass_fields__["level"].default is None
