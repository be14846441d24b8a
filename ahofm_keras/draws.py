"""Random numbers that do not repeat those which simulated data is made of."""

from __future__ import annotations

from zlib import crc32

import numpy as np


def generator(seed: int, purpose: str) -> np.random.Generator:
    """A generator of its own for each purpose.

    `default_rng(0)` itself would draw the very numbers that data simulated with it is made of, and
    residuals randomised by a feature are not random.
    """
    return np.random.default_rng([seed, crc32(purpose.encode())])
