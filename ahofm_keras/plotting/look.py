"""How a drawing of an effect looks, whatever it draws."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

# Of a standard deviation of the link.
_LEAST_REACH = 0.1


@dataclass(frozen=True)
class Look:
    """What drawings of effects have in common.

    Args:
        unit: what effects are measured in, e.g. `log(y)`.
        level: of bands.
        log: features with a logarithmic axis.
        compact: one of many panels: the title names the feature, so its axis does not.
        quantiles: of the training rows at even probabilities, by feature that is a number.
        rows: values of the features at rows, for a rug.
        residuals: partial residuals at rows.
        legend_outside: whether there is room beside the axes.
        spread: standard deviation of the link, 0 where it is not known.
        short: names of features that are short and still differ, for panels.
    """

    unit: str = "the link"
    level: float = 0.95
    log: frozenset[str] = frozenset()
    compact: bool = False
    quantiles: tuple[tuple[str, np.ndarray], ...] = ()
    rows: pd.DataFrame | None = None
    residuals: pd.DataFrame | None = None
    legend_outside: bool = True
    spread: float = 0.0
    short: tuple[tuple[str, str], ...] = ()

    @property
    def least(self) -> float:
        """How far scales of effects reach on both sides of 0, at least.

        On a scale of its own every effect looks as large as any other. A part of 0.01% of the variance
        has a hundredth of the link's standard deviation: on this scale it looks small.
        """
        return _LEAST_REACH * self.spread

    @property
    def effect_label(self) -> str:
        """Label of the axis of effects."""
        return f"effect on {self.unit}"

    def name(self, feature: str) -> str:
        """What a feature is called: in a panel its short name."""
        return dict(self.short).get(feature, feature) if self.compact else feature

    def quantiles_of(self, feature: str, *probabilities: float) -> np.ndarray | None:
        """Quantiles of a number, None where they are not known."""
        known = dict(self.quantiles).get(feature)
        if known is None:
            return None
        return np.asarray([known[round(p * (len(known) - 1))] for p in probabilities])

    def within(self, **changes: Any) -> Look:
        """The same with some changes."""
        return replace(self, **changes)
