"""One prediction taken apart."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ahofm_keras.decomposition.names import check_count
from ahofm_keras.decomposition.parts import Parts
from ahofm_keras.decomposition.read_rows import functions_on, opaque_on
from ahofm_keras.errors import DataError
from ahofm_keras.model import AdditiveModel
from ahofm_keras.transforms import evaluate_expression

# Smaller than this, in standard deviations of the link, a contribution is what is left of a part that
# was switched off.
_NOTHING = 1e-6

# What is called a part too where the limit of the predictor acts.
HELD = "held in the training range"

# Part, values of its features, order, contribution.
Line = tuple[str, str, int, float]


@dataclass(frozen=True, eq=False)
class Explanation:
    """What makes up one prediction.

    Args:
        table: a row per part with `part`, `value` (the features' values), `order` and `contribution` in
            units of the link. They sum to the link. Where the parts leave the range that they have on
            the training rows, the last one (`HELD`) is what brings their sum back to its end.
        link: the predictor.
        response: the predicted mean, or the value of the parameter whose predictor was taken apart.
        response_label: name of the response, or of the parameter.
        parameter: of the family; None of a model with one predictor.
    """

    table: pd.DataFrame
    link: float
    response: float
    response_label: str
    parameter: str | None = None

    @property
    def headline(self) -> str:
        return f"{self.response_label}: predicted {self.response:.5g} (link {self.link:.5g})"

    def __str__(self) -> str:
        own = self.table["contribution"]
        own = own.where(own.abs() > _NOTHING * own.abs().max(), 0.0)
        shown = self.table.assign(contribution=own.map("{:+.4g}".format))
        return f"{self.headline}\n{shown.to_string(index=False)}"

    def _repr_html_(self) -> str:
        table = self.table.to_html(index=False, float_format="{:+.4g}".format)
        return f"<p>{html.escape(self.headline)}</p>{table}"


def explain(model: AdditiveModel, row: Any, top: int = 5, parameter: str | None = None) -> Explanation:
    """Take one prediction apart: intercept, main effects, the largest interactions, the rest, networks.

    Args:
        model: fitted.
        row: one row: a dict of values, a row of a data frame (series), or a frame of one row.
        top: how many interactions are shown; those of each order that are not are added up.
        parameter: of the family whose predictor is read, by default the first; only models with several
            predictors have a choice.

    Raises:
        DataError: several rows, a missing column or value.
    """
    parts = Parts(model, parameter)
    model = parts.model
    check_count("top", top, 0, none=False)
    columns = model.read_inputs(row.to_dict() if isinstance(row, pd.Series) else row)
    count = len(next(iter(columns.values())))
    if count != 1:
        raise DataError(f"`explain` takes one row, e.g. `data.iloc[[0]]`. Received: {count:,} rows.")
    functions = functions_on(parts, columns)
    values = [_text(evaluate_expression(v.expression, columns)[0]) for v in parts.variables]
    lines: list[Line] = [("intercept", "", 0, parts.constant)]
    for label, offset in model.design.only.offsets.items():
        lines.append((label, "", 0, float(evaluate_expression(offset, columns)[0])))
    main = parts.subsets(1)
    for (variable,), own in zip(main, parts.evaluate_many(main, functions)[:, 0], strict=True):
        lines.append((parts.label([variable]), values[variable], 1, float(own)))
    lines += _interaction_lines(parts, functions, values, top)
    lines += [(label, "", 0, float(own[0])) for label, own in opaque_on(parts, columns).items()]
    limit = float(parts.limit(functions)[0])
    if abs(limit) > _NOTHING * np.sqrt(parts.total_variance):
        lines.append((HELD, "", 0, limit))
    table = pd.DataFrame(lines, columns=["part", "value", "order", "contribution"])
    link = float(table["contribution"].sum())
    response = float(model.family.inverse_link(np.asarray(link), np))
    return Explanation(table, link, response, model.quantity, parts.parameter)


def _interaction_lines(
    parts: Parts, functions: list[np.ndarray], values: list[str], top: int
) -> list[Line]:
    """The largest interactions of all orders, then the sum of the others of each order."""
    found = []
    for order in range(2, parts.largest_order + 1):
        subsets = parts.subsets(order)
        found.append((order, subsets, parts.evaluate_many(subsets, functions)[:, 0]))
    sizes = np.abs(np.concatenate([own for _, _, own in found])) if found else np.zeros(0)
    nothing = _NOTHING * np.sqrt(parts.total_variance)
    best = np.argsort(-sizes, kind="stable")[:top]
    shown = set(best[sizes[best] > nothing].tolist())
    largest: list[Line] = []
    rest: list[Line] = []
    start = 0
    for order, subsets, own in found:
        chosen = np.array([start + place in shown for place in range(len(own))], bool)
        start += len(own)
        for subset, value in zip(subsets[chosen], own[chosen], strict=True):
            text = ", ".join(values[variable] for variable in subset)
            largest.append((parts.label(subset), text, order, float(value)))
        if not chosen.all():
            count, total = int(np.sum(~chosen)), float(own[~chosen].sum())
            plural = "s" if count > 1 else ""
            rest.append((f"{count:,} other interaction{plural} of order {order}", "", order, total))
    return sorted(largest, key=lambda line: -abs(line[3])) + rest


def _text(value: Any) -> str:
    if isinstance(value, np.ndarray):  # a point
        return ", ".join(map(_text, value))
    return f"{value:.4g}" if isinstance(value, float | np.floating) else str(value)
