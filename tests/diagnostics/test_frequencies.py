"""Observed and expected numbers of rows by their response, against sums over rows."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy import stats

import ahofm_keras as ak
from ahofm_keras.diagnostics import check

from .conftest import FAMILIES, fit, simulate


@pytest.mark.parametrize("family", FAMILIES)
def test_both_columns_sum_to_the_rows_and_bins_join(family: str, right, frame) -> None:
    model, found = right(family)
    bins = found.frequencies
    assert bins["observed"].sum() == len(frame)
    assert bins["expected"].sum() == pytest.approx(len(frame), rel=1e-9)
    step = float(model.family.discrete)
    np.testing.assert_array_equal(bins["low"][1:], bins["high"][:-1] + step)
    assert (bins["low"].iloc[0], bins["high"].iloc[-1]) == model.family.bounds
    within = [
        ((frame[family] > low - step) & (frame[family] <= high)).sum()
        for low, high in bins[["low", "high"]].to_numpy()
    ]
    assert bins["observed"].tolist() == within


def test_counts_are_expected_as_often_as_their_probabilities_say(right) -> None:
    _, found = right("poisson")
    mean = found.residuals["fitted"].to_numpy()
    chances = stats.poisson.pmf(np.arange(len(found.frequencies) - 1)[:, None], mean).sum(axis=1)
    np.testing.assert_allclose(found.frequencies["expected"][:-1], chances, rtol=1e-9)


def test_many_different_counts_share_bins() -> None:
    data = simulate(300)
    data["poisson"] = np.random.default_rng(1).poisson(np.exp(5 + np.sin(6 * data.x)))
    found = check(fit("poisson ~ s(x)", data, "poisson"))
    assert 10 < len(found.frequencies) <= 42
    assert found.frequencies["observed"].sum() == 300
    roots = np.sqrt(found.frequencies["observed"]) - np.sqrt(found.frequencies["expected"])
    assert (roots.abs() < 2).all()


def test_weights_of_counts_are_rows(right, frame) -> None:
    model, found = right("poisson")
    twice = check(model, frame, sample_weight=np.full(len(frame), 2.0))
    np.testing.assert_allclose(twice.frequencies["expected"], 2 * found.frequencies["expected"])
    np.testing.assert_allclose(twice.frequencies["observed"], 2 * found.frequencies["observed"])


def test_zeros_beyond_those_of_the_family_are_said(right, frame) -> None:
    zeros = np.random.default_rng(2).random(len(frame)) < 0.3
    data = frame.assign(poisson=np.where(zeros, 0, frame.poisson))
    found = check(right("poisson")[0], data)
    line = found.tests.set_index("check").loc["share of zeros"]
    chance = np.exp(-found.residuals["fitted"])
    assert line["value"] == pytest.approx((data.poisson == 0).mean())
    assert float(line["expected"]) == pytest.approx(chance.mean(), abs=1e-4)
    assert not line["ok"]
    assert any("zero_inflated_poisson" in text for text in found.verdicts)


def test_remedies_name_families_that_there_are() -> None:
    for family in ak.families.FAMILIES.values():
        for text in family.remedies.values():
            named = re.findall(r'family="(\w+)"', text)
            assert set(named) <= set(ak.families.FAMILIES), text
