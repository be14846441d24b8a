"""Bases of the features of `ahofm()` and `afm()`: as the term says, else as the feature's own `s()`."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from ahofm_keras.bases import Basis
from ahofm_keras.formula import parse_formula
from ahofm_keras.refinement import _exact, _main_effect
from ahofm_keras.terms import Design
from ahofm_keras.terms.interaction import InteractionTerm
from ahofm_keras.terms.smooth import SmoothTerm
from tests.model.careless import with_random_weights
from tests.reference import terms_of

ROWS = 150
DAY = 'bs={"hour": "cp"}, knots={"hour": (0, 24)}'
OWN = 's(hour, bs="cp", knots=(0, 24))'


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "x": rng.uniform(size=ROWS),
            "hour": rng.uniform(0, 24, ROWS),
            "five": np.arange(ROWS) % 5.0,
            "g": rng.choice(list("abc"), ROWS),
            "y": rng.normal(size=ROWS),
        }
    )


def inside(formula: str, frame: pd.DataFrame) -> dict[str, Basis]:
    """Bases of the features of the formula's interaction term."""
    design = ak.AdditiveModel(f"y ~ {formula}", frame).design
    (term,) = terms_of(design, InteractionTerm)
    return {design.features[place].label: design.features[place].basis for place in term.features}


@pytest.mark.parametrize(
    ("formula", "kind", "size", "ends"),
    [
        (f"{OWN} + afm(x, hour)", "cp", 20, (0.0, 24.0)),
        (f"{OWN} + afm(x, hour, k=8, df=4)", "cp", 8, (0.0, 24.0)),
        (f'{OWN} + afm(x, hour, k={{"x": 8}})', "cp", 20, (0.0, 24.0)),
        (f'{OWN} + afm(x, hour, knots={{"hour": (-1, 25)}})', "cp", 20, (-1.0, 25.0)),
        (f'{OWN} + afm(x, hour, bs="ps")', "ps", 20, (0.0, 24.0)),
        (f"afm(x, hour, {DAY})", "cp", 20, (0.0, 24.0)),
        (f"ahofm(x, hour, five, D=3, F=1, k=6, df=3, {DAY})", "cp", 6, (0.0, 24.0)),
        (f's(hour, k=9, df=5) + afm(x, hour, {DAY})', "cp", 9, (0.0, 24.0)),
    ],
)  # fmt: skip
def test_of_a_cyclic_feature(
    frame: pd.DataFrame, formula: str, kind: str, size: int, ends: tuple[float, float]
) -> None:
    bases = inside(formula, frame)
    assert (bases["hour"].kind, bases["hour"].size) == (kind, size)
    assert (bases["hour"].axis[0], bases["hour"].axis[-1]) == ends
    assert bases["x"].kind == "ps"


def test_both_ways_to_say_it_are_one_basis(frame: pd.DataFrame) -> None:
    assert inside(f"{OWN} + afm(x, hour)", frame) == inside(f"afm(x, hour, {DAY})", frame)


def test_the_main_effect_that_is_added_has_the_same_basis(frame: pd.DataFrame) -> None:
    design = ak.AdditiveModel(f"y ~ afm(x, hour, {DAY})", frame).design
    (term,) = terms_of(design, InteractionTerm)
    assert [smooth.feature for smooth in terms_of(design, SmoothTerm)] == list(term.features)
    assert Design.from_json(json.loads(json.dumps(design.to_json()))).terms == design.terms


def test_predictions_go_round(frame: pd.DataFrame) -> None:
    cyclic = with_random_weights(ak.AdditiveModel(f"y ~ afm(x, hour, {DAY})", frame))
    ends = cyclic.predict({"x": [0.3, 0.3, 0.3], "hour": [0.0, 24.0, 12.0]}, type="terms")
    part = ends["afm(x, hour)[2]"]
    assert part[0] == pytest.approx(part[1], abs=1e-6)
    assert part[0] != pytest.approx(part[2], abs=1e-3)


@pytest.mark.parametrize(
    "formula",
    [
        'afm(x, five, bs={"five": "re"}, F=1)',
        'afm(x, five, bs={"five": "re"}, k=6, df=3, F=1)',
        's(five, bs="re") + afm(x, five, F=1)',
    ],
)
@pytest.mark.filterwarnings("ignore:df=.* cannot be reached")
def test_levels_of_a_number(frame: pd.DataFrame, formula: str) -> None:
    assert inside(formula, frame)["five"].levels == (0.0, 1.0, 2.0, 3.0, 4.0)


def test_a_k_for_all_says_nothing_of_categories(frame: pd.DataFrame) -> None:
    bases = inside('afm(x, g, F=1, k=7, df={"x": 4}, bs={"x": "ps", "g": "re"})', frame)
    assert (bases["x"].size, bases["g"].levels) == (7, ("a", "b", "c"))


@pytest.mark.parametrize(
    ("term", "message"),
    [
        ('afm(x, hour, bs="tp")', "`bs` of `afm()` must be one of 'ps', 'cp', 're', 'step', or a dict"),
        ('afm(x, hour, bs={"hour": 3})', "`bs` of `afm()` must be a dict from feature to one of 'ps',"),
        ('afm(x, hour, bs={"day": "cp"})', "`day`"),
        ('afm(x, g, bs={"g": "ps"})', 'Column `g` holds categories: leave its `bs` out, or use "re".'),
        ('afm(x, five, bs={"five": "cp"}, k=3)', "A cyclic smooth needs k of at least 4"),
        ('fm(x, hour, bs="cp")', "Unknown argument `bs` of `fm()`"),
    ],
)
def test_errors(frame: pd.DataFrame, term: str, message: str) -> None:
    with pytest.raises(ak.FormulaError) as caught:
        ak.AdditiveModel(f"y ~ {term}", frame)
    assert message in str(caught.value)
    assert f"y ~ {term}" in str(caught.value)


@pytest.mark.parametrize(
    ("formula", "exact", "main"),
    [
        (f"afm(x, hour, {DAY})", "bs=(None, 'cp'), knots=(None, (0, 24))", "bs='cp', knots=(0, 24)"),
        (f'{OWN} + afm(x, hour, knots={{"x": "even"}})', "bs=(None, 'cp'), knots=('even', (0, 24))", ""),
        (f"{OWN} + afm(x, hour, k=8)", "", "k=8"),
        ("afm(x, hour, knots=even)", "knots='even'", "knots='even'"),
    ],
)
def test_refined_terms_have_the_same_basis(
    frame: pd.DataFrame, formula: str, exact: str, main: str
) -> None:
    model = ak.AdditiveModel(f"y ~ {formula}", frame)
    parsed = parse_formula(model.formula)
    spec = parsed.terms[-1]
    text = _exact(model, parsed, list(spec.features), None, None)
    assert text == ", ".join(filter(None, ["ti(x, hour", exact])) + ")"
    written = _main_effect(model, spec, spec.features[1])
    assert written == ", ".join(filter(None, ["s(hour", main])) + ")"
    own = "" if OWN in formula else f"{written} + "
    refined = ak.AdditiveModel(f"y ~ {own}{formula.split('afm')[0]}{text}", frame).design
    kinds = {feature.basis.kind for feature in refined.features if feature.label == "hour"}
    assert kinds == {"cp" if "cp" in formula else "ps"}
