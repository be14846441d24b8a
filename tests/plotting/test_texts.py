"""Numbers and long names as short texts."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

from ahofm_keras import plotting
from ahofm_keras.plotting.texts import (
    even_numbers,
    join_names,
    link_label,
    share_text,
    shorten_apart,
    signed,
    wrap,
)
from ahofm_keras.texts import number, percent, shorten

LONG = "average_household_income_in_thousand_euros"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (12.0, "12"),
        (-1234.6, "−1,235"),
        (0.5, "0.5"),
        (1.25e-7, "1.25e−7"),
        (3.4e9, "3.4e9"),
        (99.96, "100"),
    ],
)
def test_numbers_have_three_figures(value, text):
    assert number(value) == text
    assert signed(value) == (text if value <= 0 else f"+{text}")


@pytest.mark.parametrize(
    ("share", "text"),
    [(1.0, "100%"), (0.0996, "10%"), (0.0994, "9.9%"), (0.004, "0.40%"), (2e-4, "0.020%"), (5e-5, "<0.01%"), (1e-12, "0%"), (float("nan"), "0%")],
)  # fmt: skip
def test_shares_have_two_figures(share, text):
    assert percent(share) == text


@pytest.mark.parametrize(
    ("step", "texts"),
    [
        (1.0, ["−1", "0", "1"]),
        (0.25, ["−0.25", "0.00", "0.25"]),
        (2500, ["−2,500", "0", "2,500"]),
        (2e6, ["−2e6", "0", "2e6"]),
        (2.5e-5, ["−2.5e−5", "0", "2.5e−5"]),
    ],
)
def test_ticks_of_a_scale_have_the_same_digits(step, texts):
    assert even_numbers(step * np.arange(-1, 2)) == texts


@pytest.mark.parametrize(
    "text", [LONG, "x", "a b c d e f g h", "without-any_break:at.all/or not", "y" * 90]
)
@pytest.mark.parametrize("width", [8, 15, 30])
@pytest.mark.parametrize("last", [None, 6])
def test_wrapped_texts_keep_their_width_and_start(text, width, last):
    lines = wrap(text, width, 2, last=last).split("\n")
    assert len(lines) <= 2
    assert all(len(line) <= width for line in lines)
    assert len(lines[-1]) <= (last or width)
    assert lines[0][0] == text[0]
    assert wrap(text, 200, 2) == text


def test_a_wrapped_text_is_whole_where_it_fits():
    assert wrap(LONG, 30, 2).replace("\n", "") == LONG
    assert wrap("income_in_euros", 15, 2, last=10) == "income_in_\neuros"


@pytest.mark.parametrize("width", [5, 6, 17, 41])
def test_shortened_texts_have_the_width_and_both_ends(width):
    short = shorten(LONG, width)
    assert len(short) == width
    assert (short[0], short[-1], "…" in short) == (LONG[0], LONG[-1], True)


def test_ticks_far_from_zero_differ():
    assert even_numbers(np.array([2.2e6, 2.3e6, 2.4e6])) == ["2.2e6", "2.3e6", "2.4e6"]
    assert even_numbers(1e6 + np.arange(0, 6, 2)) == ["1,000,000", "1,000,002", "1,000,004"]


def test_shares_next_to_nothing_are_called_that():
    assert share_text(2e-5) == "negligible: <0.01% of variance"
    assert share_text(2e-5, words=False) == "negligible"
    assert share_text(0.0) == "0% of variance"
    assert share_text(0.0002) == "0.020% of variance"


@pytest.mark.parametrize("width", [10, 14, 20])
def test_shortened_names_stay_apart(width):
    names = [
        f"municipality of the {side} of {part}" for side in ("north", "south", "east") for part in "abc"
    ]
    short = shorten_apart(names, width)
    assert len(set(short)) == len(names)
    assert max(map(len, short)) <= width
    assert shorten_apart(names, 60) == names
    assert shorten_apart([LONG, LONG, "x"], width)[0] == shorten_apart([LONG, LONG, "x"], width)[1]


def test_lines_of_a_label_are_about_as_long_as_each_other():
    assert wrap("measured_from_station_population_5", 33, 2).split("\n")[1] == "5"
    assert wrap("measured_from_station_population_5", 33, 2, even=True).split("\n")[1] != "5"


def test_joined_names_share_the_width():
    assert join_names(["x1", "x2"], 20) == "x1 : x2"
    assert join_names([LONG, "x2"], 20) == f"{shorten(LONG, 15)} : x2"
    assert len(join_names([LONG, LONG, LONG], 42)) <= 42


@pytest.mark.parametrize(("link", "text"), [("identity", "y"), ("log", "log(y)"), ("logit", "logit(y)")])
def test_effects_are_named_after_the_link(link, text):
    assert link_label(link, "y") == text


def test_matplotlib_is_imported_inside_functions_only():
    for path in Path(plotting.__file__).parent.glob("*.py"):
        for node in ast.parse(path.read_text()).body:
            names = [alias.name for alias in getattr(node, "names", [])] + [
                getattr(node, "module", "") or ""
            ]
            assert not any(name.startswith("matplotlib") for name in names), path.name
