"""What is said where a fit's equations have no solution in double precision."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from ahofm_keras.errors import DataError


@contextmanager
def numerical_failures_told() -> Iterator[None]:
    """Raise a `DataError` where linear algebra fails: what happened, and what to do."""
    try:
        yield
    except np.linalg.LinAlgError as error:
        raise DataError(
            f"The fit met equations that double precision cannot solve ({error}). Look for features or "
            "a response with values of very different size, and for rows that are almost equal; fewer "
            'terms help, and `solver="adam"` solves no equations.'
        ) from error
