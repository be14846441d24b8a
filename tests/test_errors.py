"""Suggestions: typing errors are told, other names are left alone."""

from __future__ import annotations

import pytest

from ahofm_keras.errors import did_you_mean

MEANT = [
    ("twon", "town"), ("aeg", "age"), ("gruop", "group"), ("hour", "hours"), ("Age", "age"), ("AGE", "age"),
    ("x11", "x1"), ("x1", "x1_"), ("x_1", "x1"), ("tempreature", "temperature"), ("wieght", "weight"),
    ("hight", "height"), ("house age", "house_age"), ("HouseAge", "house_age"), ("logg", "log"),
    ("ahofn", "ahofm"), ("return_dct", "return_dict"), ("s(nois)", "s(noise)"), ("Straße", "straße"),
]  # fmt: skip
OTHERS = [
    ("target", "age"), ("sex", "age"), ("x2", "x1"), ("x12", "x11"), ("feature_2", "feature_1"),
    ("col_a", "col_b"), ("height", "weight"), ("temp_min", "temp_max"), ("income", "outcome"),
    ("quasipoisson", "poisson"), ("gaulss", "gaussian"), ("rate", "date"), ("y", "x"), ("", "x"),
    ("x", ""), ("???", "!!!"), ("sales", "salary"), ("start_date", "state"), ("female", "male"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "meant"), MEANT)
def test_a_typing_error_finds_the_name(name: str, meant: str) -> None:
    assert did_you_mean(name, ["bmi", meant, "zone"]) == f" Did you mean `{meant}`?"


@pytest.mark.parametrize(("name", "other"), OTHERS)
def test_another_name_is_not_suggested(name: str, other: str) -> None:
    assert did_you_mean(name, ["bmi", other, "zone"]) == ""


def test_the_closest_of_several_is_meant() -> None:
    assert did_you_mean("temprature", ["temper", "temperature", "temperatures"]) == (
        " Did you mean `temperature`?"
    )


def test_nothing_is_known() -> None:
    assert did_you_mean("x", []) == ""
