"""How often each response was observed and was to be expected: a rootogram, as a frame."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ahofm_keras.diagnostics.checked_rows import CheckedRows
from ahofm_keras.diagnostics.losses import level_frequencies
from ahofm_keras.diagnostics.survival import event_frequencies

# Bins of a response on the line, and how many whole numbers have a bin each.
_BINS = 24
_MOST_BINS = 40
# Beyond this share of the rows on each side everything is one bin.
_TAIL = 0.005


def frequency_frame(rows: CheckedRows) -> pd.DataFrame:
    """Observed and expected numbers of rows by their response.

    Expected is the sum of P(low <= Y <= high) over rows, so both columns sum to the number of rows. The
    first and the last bin have no end.

    Returns:
        A row a bin with `low`, `high`, `observed` and `expected`. Of quantiles the ends are levels; of
        censored times there are events by their time, expected as the hazards of rows at risk sum.
    """
    if rows.conditions:
        return level_frequencies(rows)
    if rows.family.nuisance:
        return event_frequencies(rows)
    ends = _ends_of_counts(rows) if rows.family.discrete else _ends_on_the_line(rows)
    below = np.array([rows.counts @ rows.distribution.cdf(np.full(len(rows), end)) for end in ends])
    expected = np.diff(np.concatenate([[0.0], below, [rows.counts.sum()]]))
    place = np.searchsorted(ends, rows.drawn_y, side="left")  # a response at an end belongs below it
    observed = np.bincount(place, rows.counts, len(ends) + 1)
    step = 1.0 if rows.family.discrete else 0.0
    least, most = rows.family.bounds[0], max(rows.family.bounds[1], rows.drawn_y.max())
    low, high = np.concatenate([[least], ends + step]), np.concatenate([ends, [most]])
    return pd.DataFrame({"low": low, "high": high, "observed": observed, "expected": expected})


def _ends_of_counts(rows: CheckedRows) -> np.ndarray:
    """Upper ends of all bins but the last: each number, or equal ranges where they are many."""
    low, high = (float(edge(rows.drawn_y)) for edge in (np.min, np.max))
    if high - low >= _MOST_BINS:
        low, high = (float(np.floor(end)) for end in np.quantile(rows.drawn_y, [_TAIL, 1 - _TAIL]))
    width = max(1.0, np.ceil((high - low) / _MOST_BINS))
    return np.arange(low, max(high, low + 1), width)


def _ends_on_the_line(rows: CheckedRows) -> np.ndarray:
    """Evenly spaced; a bin of its own for an end of the support that rows share, as a zero."""
    low, high = np.quantile(rows.drawn_y, [_TAIL, 1 - _TAIL])
    ends = np.linspace(low, high, _BINS - 1)
    at_least = rows.drawn_y.min() == rows.family.bounds[0]
    return np.unique(np.concatenate([[rows.family.bounds[0]], ends]) if at_least else ends)
