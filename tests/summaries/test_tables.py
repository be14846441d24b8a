"""Texts of tables: widths, shortened names, figures."""

from __future__ import annotations

import pytest

from ahofm_keras.summaries.tables import Table, shorten_all
from ahofm_keras.texts import p_value, short_range, table_number, table_percent, text_width

LONG = "a_rather_long_name_of_a_column_" * 4


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [
        ("s(x1)", 5, "s(x1)"),
        ("ahofm(x1, x2, x3, x4)[3]", 16, "ahofm(x1,…x4)[3]"),
        ("温度湿度気圧風速", 9, "温度…風速"),
        ("é" * 4, 4, "éééé"),
    ],
)
def test_shorten(text: str, width: int, expected: str) -> None:
    assert shorten_all([text], width) == [expected]
    assert text_width(expected) <= width


def test_names_that_differ_stay_different() -> None:
    for names in (
        [f"s({LONG}{i})" for i in range(3)],
        [f"{i}{LONG}" for i in range(3)],
        [f"{'x' * 40}{i}{'y' * 40}" for i in range(3)],
    ):
        short = shorten_all(names, 20)
        assert len(set(short)) == 3
        assert max(map(text_width, short)) <= 20
    assert shorten_all(["same", "same"], 20) == ["same", "same"]
    assert shorten_all(["a\nb\x1b[31m"], 20) == ["a�b�[31m"]


def test_a_table_is_aligned_and_fits() -> None:
    table = Table("Title", ("", "a", "longer"), ((LONG, "1.5", "2"), ("温度", "10", "")))
    lines = table.to_text(60).splitlines()
    assert max(map(text_width, lines)) <= 60
    assert lines[1].endswith("a  longer")
    assert lines[2].endswith("1.5       2")
    assert lines[3].endswith(" 10")
    page = Table("<t>", ("", "&"), (("<i>", '"'),)).to_html()
    assert "&lt;t&gt;" in page
    assert "<i>" not in page


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1234.567, "1235"),
        (0.00123456, "0.001235"),
        (-12.3456, "-12.35"),
        (1.5e-9, "1.50e-09"),
        (2e12, "2.00e+12"),
        (0.0, "0"),
        (float("nan"), ""),
        (float("inf"), "inf"),
        (None, ""),
    ],
)
def test_numbers(value: float | None, text: str) -> None:
    assert table_number(value) == text


def test_p_values_shares_and_ranges() -> None:
    assert [p_value(p) for p in (0.5, 0.00012, 3e-7, 0.0, None)] == [
        "0.5000",
        "0.0001",
        "3.0e-07",
        "<1e-16",
        "",
    ]
    assert [table_percent(s) for s in (0.1234, 0.0004, 0.0, -0.02, float("nan"))] == [
        "12.3 %",
        "<0.1 %",
        "0.0 %",
        "-2.0 %",
        "",
    ]
    assert short_range(1.0, 1.0, 2) == "1"
    assert short_range(0.5, 2e4, 2) == "0.5..2e+04"
    assert short_range(float("nan"), float("nan"), 2) == ""
