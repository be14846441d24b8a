"""Responses that a family cannot have: count, first row, and the family that would fit."""

from __future__ import annotations

import re

import numpy as np
import pytest

from ahofm_keras.errors import DataError
from ahofm_keras.families import FAMILIES, get_family
from ahofm_keras.families.suggestions import suggest_family

RESPONSES = {
    "negative": np.array([1.5, 2.0, -1.0, 3.0, -2.0]),
    "zeros": np.array([1.5, 0.0, 2.0, 3.0]),
    "amounts": np.array([1.5, 0.2, 2.0, 3.0]),
    "counts": np.array([0.0, 3.0, 2.0, 7.0]),
    "shares": np.array([0.2, 0.7, 0.5]),
    "classes": np.array([0.0, 1.0, 1.0, 0.0]),
}
NUMBERS = [
    name
    for name, family in FAMILIES.items()
    if family.__module__.startswith("ahofm_keras.")
    and not family.labelled
    and "Surv" not in family.forms
]


@pytest.mark.parametrize(
    ("family", "kind", "words"),
    [
        ("gamma", "negative", '2 of 5 values are not; first at row 2: -1. `family="gaussian"` takes'),
        (
            "gamma_ls",
            "zeros",
            '1 of 4 values are not; first at row 1: 0. `family="tweedie"` takes zeros',
        ),
        ("lognormal", "negative", '`family="gaussian"` takes negative values.'),
        ("poisson", "amounts", '2 of 4 values are not; first at row 0: 1.5. `family="gamma"` is for'),
        ("negative_binomial", "zeros", '`family="tweedie"` takes zeros beside amounts'),
        ("poisson", "negative", '`family="gaussian"`'),
        ("poisson", "shares", '`family="beta"` is for shares between 0 and 1.'),
        ("beta", "classes", '`family="bernoulli"` is for 0 and 1.'),
        ("beta", "counts", '`family="poisson"` and `family="negative_binomial"` are for counts.'),
        ("bernoulli", "counts", '`family="negative_binomial"`'),
        ("tweedie", "negative", '`family="gaussian"`'),
    ],
)
def test_the_family_that_fits_is_named(family: str, kind: str, words: str) -> None:
    with pytest.raises(DataError, match=re.escape(words)):
        get_family(family).check_response(RESPONSES[kind], "y")


def test_shares_at_the_ends_are_counted_and_can_be_moved_inside() -> None:
    y = np.array([0.0, 0.4, 1.0, 0.0, 0.8])
    with pytest.raises(DataError, match="3 of 5 values are not; first at row 0") as caught:
        get_family("beta").check_response(y, "y")
    text = str(caught.value)
    assert "2 are 0 and 1 are 1 exactly" in text
    assert '`family="binomial"`, with the trials as `sample_weight`' in text
    assert "(y * 4 + 0.5) / 5" in text
    get_family("beta").check_response((y * 4 + 0.5) / 5, "y")


def test_two_classes_that_are_not_0_and_1() -> None:
    with pytest.raises(DataError, match="Recode two classes: 1 where it is 2, 0 where it is 1"):
        get_family("bernoulli").check_response(np.array([1.0, 2.0, 2.0]), "y")


@pytest.mark.parametrize("kind", RESPONSES)
def test_what_is_suggested_can_have_the_response(kind: str) -> None:
    y = RESPONSES[kind]
    for name in re.findall(r'family="(\w+)"', suggest_family(y)):
        assert get_family(name).support(y).all(), (name, kind)


@pytest.mark.parametrize("family", NUMBERS)
def test_every_refusal_has_a_count_a_row_and_a_family_but_where_nothing_fits(family: str) -> None:
    own = get_family(family)
    for y in RESPONSES.values():
        if own.support(y).all():
            own.check_response(y, "y")
            continue
        with pytest.raises(DataError, match=r"first at row \d") as caught:
            own.check_response(y, "y")
        assert re.search(r'family="|cbind\(', str(caught.value)), str(caught.value)
    with pytest.raises(DataError, match="1 of 2 values are not; first at row 1: inf"):
        own.check_response(np.array([0.5 if own.support(np.array([0.5])).all() else 1.0, np.inf]), "y")
