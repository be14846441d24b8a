"""Survival curves for a page: the baseline hazard, and what was observed beside what was predicted."""

from __future__ import annotations

from typing import Any

import numpy as np

from ahofm_keras.families.baseline import EVENT, STOP, Baseline, baseline_hazard
from ahofm_keras.families.cox import Cox
from ahofm_keras.model import AdditiveModel
from ahofm_keras.model.nuisance import bound_family
from ahofm_keras.reporting.encoding import pack
from ahofm_keras.reporting.known_rows import KnownRows

# Times at which curves are known, at most; where no row may enter the page they are even.
_TIMES, _EVEN_TIMES = 300, 60
# Groups of rows by their predicted hazard ratio, and how many rows make one.
_GROUPS = ("lowest third of the risk", "middle third", "highest third")
_LEAST_ROWS = 20

Json = dict[str, Any]


def describe_survival(model: AdditiveModel, rows: KnownRows | None, exact: bool) -> Json | None:
    """The cumulative baseline hazard at times, and curves of groups; None of other families.

    Args:
        model: whole.
        rows: known, or None.
        exact: whether times of events may enter the page.

    Returns:
        `times` and `hazard`, a step at each time, `last` the end of observation, and `groups` by
        predicted risk with their `label`, `rows`, `events`, and curves `observed` and `predicted`.
    """
    if not isinstance(model.family, Cox):
        return None
    family = bound_family(model)
    assert isinstance(family, Cox)
    assert family.baseline is not None
    known = family.baseline
    times = np.concatenate([[0.0], known.times])
    if not exact:
        times = np.linspace(0.0, known.last, _EVEN_TIMES)
    elif len(times) > _TIMES:
        times = times[np.unique(np.linspace(0, len(times) - 1, _TIMES).round().astype(int))]
    return {
        "times": pack(times),
        "hazard": pack(known.at(times)),
        "last": known.last,
        "groups": [] if rows is None else _groups(rows, known, times),
    }


def _groups(rows: KnownRows, known: Baseline, times: np.ndarray) -> list[Json]:
    ratio = next(iter(rows.links.values()))
    weight = np.ones(len(rows)) if rows.weight is None else rows.weight
    used = np.flatnonzero(weight > 0)
    if len(used) < _LEAST_ROWS * len(_GROUPS):
        return []
    ends = np.quantile(ratio[used], np.linspace(0, 1, len(_GROUPS) + 1)[1:-1])
    group = np.searchsorted(ends, ratio, side="left")
    found = []
    for place, label in enumerate(_GROUPS):
        own = used[group[used] == place]
        y = rows.y[own]
        if not len(own) or not np.any(y[:, EVENT] > 0):
            continue
        observed = baseline_hazard(y, np.ones(len(own)), weight[own])
        seen = times <= y[:, STOP].max()
        curves = np.exp(-np.exp(ratio[own])[:, None] * known.at(times))
        found.append(
            {
                "label": label,
                "rows": len(own),
                "events": int(np.sum(y[:, EVENT] > 0)),
                "observed": pack(np.exp(-observed.at(times[seen]))),
                "predicted": pack(np.average(curves, axis=0, weights=weight[own])),
            }
        )
    return found
