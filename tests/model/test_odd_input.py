"""Input that is odd but allowed: warnings, and answers that are right."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from tests.model.careless import DATA, ROWS, at, with_random_weights, without


def test_unseen_level_contributes_nothing_and_warns(models: SimpleNamespace) -> None:
    data = at("g", 4, "zz")
    with pytest.warns(ak.AhofmWarning) as caught:
        terms = models.mixed.predict(data, type="terms")
    assert [str(w.message) for w in caught] == [
        "Levels not seen in training count as the average of the training rows: `g` in 1 of 60 rows "
        "(first at row 4: 'zz')."
    ]
    assert caught[0].filename == __file__
    assert terms.g[4] == 0.0
    assert (terms.g.drop(index=4) != 0).all()
    expected = models.mixed.predict(DATA, type="terms")
    pd.testing.assert_frame_equal(terms.drop(index=4), expected.drop(index=4))


def test_unseen_number_is_written_plainly() -> None:
    model = ak.AdditiveModel("y ~ C(k)", DATA.assign(k=np.resize([1, 2, 3], ROWS)))
    with pytest.warns(ak.AhofmWarning) as caught:
        model.predict({"k": 9})
    assert str(caught[0].message) == (
        "Levels not seen in training count as the average of the training rows: `C(k)` in 1 of 1 rows "
        "(first at row 0: 9.0)."
    )


def test_unseen_level_of_an_interaction_contributes_nothing() -> None:
    model = with_random_weights(ak.AdditiveModel("y ~ ahofm(x1, g, D=2, F=2)", DATA))
    with pytest.warns(ak.AhofmWarning, match="`g` in 1 of 2 rows"):
        terms = model.predict({"x1": [0.3, 0.3], "g": ["a", "zz"]}, type="terms")
    assert (terms.loc[0].drop("(limit)") != 0).all()
    assert terms.loc[1, "s(g)"] == 0.0
    assert terms.loc[1, "ahofm(x1, g)[2]"] == 0.0
    assert terms.loc[1, "s(x1)"] == terms.loc[0, "s(x1)"]


NUMBERS = DATA.x1.round(3).astype(str)


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (NUMBERS, "60 of 60 are numbers: it is"),
        (NUMBERS.where(DATA.index > 2, "n/a"), "57 of 60 are numbers (another: 'n/a'): it is"),
        (pd.Series(np.resize([*"123456789", "?"], ROWS)), "54 of 60 are numbers (another: '?'): it is"),
    ],
    ids=["all", "all but some", "whole"],
)
def test_numbers_that_were_read_as_texts_are_noticed(texts: pd.Series, said: str) -> None:
    data = DATA.assign(**{"a b": texts})
    with pytest.warns(ak.AhofmWarning) as caught:
        ak.AdditiveModel('y ~ s(Q("a b"))', data)
    message = str(caught[0].message)
    assert message.startswith(f"Column `a b` holds texts, of which {said} taken as a category with ")
    assert 'Write `C(Q("a b"))` if that is meant' in message
    assert caught[0].filename == __file__


@pytest.mark.filterwarnings("error")
def test_numbers_that_are_names_are_not_noticed() -> None:
    names = pd.Series(np.resize(["1", "2", "10"], ROWS))
    ak.AdditiveModel("y ~ s(k)", DATA.assign(k=names))
    ak.AdditiveModel("y ~ s(k)", DATA.assign(k=NUMBERS.astype("category")))
    ak.AdditiveModel("y ~ s(C(k))", DATA.assign(k=NUMBERS))
    ak.AdditiveModel("y ~ s(k)", DATA.assign(k=np.resize(["1.5", "a", "b"], ROWS)))


def test_clipping_warns_and_equals_the_end_of_the_range(models: SimpleNamespace) -> None:
    base = {"g": "a", "f": True, "x2": 0.0}
    with pytest.warns(ak.AhofmWarning) as caught:
        beyond = models.mixed.predict(base | {"x1": [-1e300, -0.1, 1.1, 1e300]})
    assert [str(w.message) for w in caught] == [
        "Values outside the training range are clipped to it: `x1` in 4 of 4 rows ([0, 1])."
    ]
    assert caught[0].filename == __file__
    low, high = models.mixed.predict(base | {"x1": [0.0, 1.0]})
    assert beyond.tolist() == [low, low, high, high]
    assert low != high


def test_straight_extrapolation_goes_on_without_a_warning(models: SimpleNamespace) -> None:
    for end, step in ((1.0, 0.5), (0.0, -0.5)):
        at_end, *beyond = models.straight.predict(
            {"x1": [end, end + step, end + 2 * step, end + 4 * step]}
        )
        rise = beyond[0] - at_end
        assert abs(rise) > 1e-3
        np.testing.assert_allclose(np.array(beyond) - at_end, [rise, 2 * rise, 4 * rise], rtol=1e-4)
        near = models.straight.predict({"x1": [end, end - 1e-4 * step]})
        assert (near[0] - near[1]) / 1e-4 == pytest.approx(rise, rel=0.02)


def test_straight_extrapolation_of_huge_values_is_no_nan(models: SimpleNamespace) -> None:
    assert not np.isnan(models.straight.predict({"x1": [1e300, -1e300]})).any()


def test_response_is_not_needed_to_predict(models: SimpleNamespace) -> None:
    expected = models.mixed.predict(DATA)
    np.testing.assert_array_equal(models.mixed.predict(without("y", "b", "c", "e")), expected)
    np.testing.assert_array_equal(models.mixed.predict(at("y", 0, np.nan)), expected)


def test_steps_of_terms_keep_the_index(models: SimpleNamespace) -> None:
    terms = models.mixed.predict(DATA, batch_size=10, steps=2, type="terms")
    assert terms.index.tolist() == list(range(20))


@pytest.mark.parametrize(
    "levels",
    [["[UNK]", "", "[MASK]"], [" a", "a", "a "], ["nan", "None", "NA"], ["ü" * 300, "ä/b", "a\0b"]],
    ids=["words of Keras", "spaces", "words for nothing", "letters"],
)
def test_any_text_is_a_level(levels: list[str]) -> None:
    names = dict(zip("abc", levels, strict=True))
    model = with_random_weights(ak.AdditiveModel("y ~ g + s(h)", DATA.assign(h=DATA.g)))
    data = DATA.assign(g=DATA.g.map(names), h=DATA.g.map(names))
    other = ak.AdditiveModel("y ~ g + s(h)", data)
    with_random_weights(other)
    assert (
        len(np.unique(other.predict(data))) == len(np.unique(model.predict(DATA.assign(h=DATA.g)))) == 3
    )


@pytest.mark.parametrize(
    "formula", ["y ~ s(x)", "y ~ x", "y ~ ahofm(x, x2, D=2, F=2)", "y ~ hofm(x, x2)"]
)
@pytest.mark.parametrize(
    ("shift", "scale"), [(1e9, 1e-3), (0.0, 1e12), (0.0, 1e-12), (-1e6, 1.0)], ids=str
)
def test_place_and_unit_of_a_feature_do_not_matter(formula: str, shift: float, scale: float) -> None:
    plain = with_random_weights(ak.AdditiveModel(formula, DATA.assign(x=DATA.x1)))
    moved = DATA.assign(x=shift + scale * DATA.x1)
    model = with_random_weights(ak.AdditiveModel(formula, moved))
    expected = plain.predict(DATA.assign(x=DATA.x1))
    np.testing.assert_allclose(np.abs(model.predict(moved)).std(), np.abs(expected).std(), rtol=1.0)
    if formula in ("y ~ x", "y ~ hofm(x, x2)"):  # coordinates of smooths may change their sign
        np.testing.assert_allclose(model.predict(moved), expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    "values",
    [np.where(np.arange(ROWS) < 57, 0.0, DATA.x1), DATA.f * 1.0, np.resize([1.0, 2.0, 3.0], ROWS)],
    ids=["heavy ties", "two values", "three values"],
)
def test_few_distinct_values_make_a_finite_smooth(values: np.ndarray) -> None:
    data = DATA.assign(x=values)
    terms = with_random_weights(ak.AdditiveModel("y ~ s(x)", data)).predict(data, type="terms")
    assert np.isfinite(terms["s(x)"]).all()
    assert terms["s(x)"].nunique() > 1
    assert terms["s(x)"].mean() == pytest.approx(0, abs=1e-4)


def test_gamma_response_of_any_unit_starts_at_its_mean() -> None:
    """Or is refused; what lies between, a mean far off, says nothing."""
    data = DATA.assign(p=np.exp(DATA.x2) * 1e60)
    try:
        model = ak.AdditiveModel("p ~ x1", data, family="gamma")
    except ak.DataError:
        return
    for weight in model.trainable_weights:
        weight.assign(np.zeros(weight.shape))
    with pytest.warns(ak.AhofmWarning, match="never fitted"):
        assert model.predict(data)[0] == pytest.approx(data.p.mean(), rel=1e-4)


def test_a_binary_response_of_the_gaussian_family_is_answered_with_the_right_one() -> None:
    data = pd.DataFrame({"x": np.linspace(0, 1, 20), "y": np.arange(20) % 2})
    with pytest.warns(ak.AhofmWarning, match='`y` is 0 or 1: `family="bernoulli"` models its prob'):
        ak.AdditiveModel("y ~ x", data)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ak.AdditiveModel("y ~ x", data, family="bernoulli")
        ak.AdditiveModel("y ~ x", data.assign(y=data.y + 1))
