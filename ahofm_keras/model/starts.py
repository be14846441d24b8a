"""How many starts a model has room for: the average of K fits of rank F is a model of rank K F."""

from __future__ import annotations

from typing import Any

from ahofm_keras.errors import DataError
from ahofm_keras.model.arguments import check_given
from ahofm_keras.model.graph import count_posterior
from ahofm_keras.terms import Design

AUTO = "auto"
# Starts are added until they agree, to so many at most, and to so many rows in all but the first of them
# together: the fewer rows there are, the more a fit depends on its start, and the sooner it is done.
MOST_STARTS = 12
ROWS_OF_STARTS = 20_000
# Numbers of a posterior, 128 MB of them: room that would take more is not made unasked.
MOST_NUMBERS = 2**24


def most_starts(rows: int) -> int:
    """How many starts a fit to so many rows has by default, at most."""
    return min(MOST_STARTS, 1 + ROWS_OF_STARTS // rows)


def make_room(design: Design, starts: Any) -> int:
    """For how many starts a model has room.

    Args:
        design: of the model.
        starts: the number, or `"auto"`: what `fit` may use by default on as many rows as the model was
            made from, as far as the posterior stays within `MOST_NUMBERS`; 1 with several predictors,
            each of which would be averaged given the others.
    """
    if starts != AUTO:
        check_given(1, starts=starts)
    if not design.orders:
        return 1
    if starts != AUTO:
        return int(starts)
    if len(design.predictors) > 1:
        return 1
    room = most_starts(design.rows)
    while room > 1 and count_posterior(design.with_starts(room)) > MOST_NUMBERS:
        room -= 1
    return room


def check_room(design: Design, room: int, starts: int) -> None:
    """Raise a `DataError` where a fit asks for more starts than the model has room for."""
    if starts > room and design.orders:
        raise DataError(
            f"`restarts={starts - 1}` is the average of {starts} fits; the model has room for {room}. "
            f"Make it with room for more: `AdditiveModel(formula, data, starts={starts})`."
        )
