"""Which subsets of features carry how much of the link's variance."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ahofm_keras.decomposition.names import check_count, check_order, name_parameter
from ahofm_keras.decomposition.parts import NOTHING, Parts
from ahofm_keras.decomposition.read_rows import read_rows, row_variances, rows_for
from ahofm_keras.model import AdditiveModel

WITHIN, BETWEEN = "covariances within orders", "covariances between orders"


def interactions(
    model: AdditiveModel,
    order: int = 2,
    top: int | None = 20,
    data: Any = None,
    parameter: str | None = None,
) -> pd.DataFrame:
    """The strongest interactions of one order.

    The share of a subset is the variance of its part of the link over the total, both under the product
    of the training margins, where parts are uncorrelated: shares of all orders sum to 1. It follows from
    second moments of the factors, without a look at rows. On correlated features the variance over rows
    differs; it stands beside it. `shares` gives the sums of both, and the covariances.

    Args:
        model: fitted.
        order: number of features in a subset; 1 ranks main effects.
        top: how many to list, None for all.
        data: rows for the variance over rows; by default those of the fit, as far as the model still
            knows them.
        parameter: of the family whose predictor is read, by default the first; only models with several
            predictors have a choice.

    Returns:
        One row per subset, strongest first, with `label`, `feature_1` .. `feature_d`, `share`, `sd` (its
        standard deviation in units of the link) and `share_rows` (its variance over rows, over that of
        the link without its offset; missing where there are no rows). `attrs` has the `total` variance,
        the share of the `order` as a whole, and that of `rest`, the subsets of this order that are not
        listed; with several predictors also the `parameter`.

    Raises:
        DataError: an order that the model does not have.
    """
    parts = Parts(model, parameter)
    check_order(parts, order)
    check_count("top", top, 1)
    subsets = parts.subsets(order)
    total = parts.total_variance
    variances = parts.variances(subsets)
    variances = np.where(variances > NOTHING * total, variances, 0.0)
    best = np.argsort(-variances, kind="stable")[: len(variances) if top is None else top]
    frame = _named(parts, subsets[best])
    frame["share"] = over(variances[best], total)
    frame["sd"] = np.sqrt(variances[best])
    frame["share_rows"] = _share_over_rows(parts, subsets[best], data)
    whole = float(over(parts.variance_by_order[order], total))
    rest = max(whole - float(frame["share"].sum()), 0.0)
    frame.attrs |= {"total": total, "order": whole, "rest": rest}
    return name_parameter(frame, parts.parameter)


def shares(model: AdditiveModel, data: Any = None, parameter: str | None = None) -> pd.DataFrame:
    """How the variance of the link divides into orders: main effects, pairs, triples...

    Args:
        model: fitted.
        data: rows for the variance over rows, see `interactions`.
        parameter: of the family whose predictor is read, by default the first; only models with several
            predictors have a choice.

    Returns:
        One row per order and per network, and two for covariances, with `part`, `subsets` (how many have
        a share), `share` and `share_rows`. Under the product of the training margins parts are
        uncorrelated, so the shares of the orders sum to 1, with those of networks, whose variance is
        that over the training rows. Over rows the variances of all parts need not, because
        features are correlated: `share_rows` of an order is the sum over its parts of their variances,
        over that of the link without its offset, and what is missing to 1 are the covariances of parts
        of one order, and those of different orders.
    """
    parts = Parts(model, parameter)
    total = parts.total_variance
    by_order = {order: parts.subsets(order) for order in range(1, parts.largest_order + 1)}
    networks = {own.label: own.variance for own in parts.opaque}
    named = [*(f"order {order}" for order in by_order), *networks]
    frame = pd.DataFrame({"part": [*named, WITHIN, BETWEEN]})
    name_parameter(frame, parts.parameter)
    counts = [int(np.sum(parts.variances(s) > NOTHING * total)) for s in by_order.values()]
    frame["subsets"] = [*counts, *[1] * len(networks), 0, 0]
    found = [*parts.variance_by_order.values(), *networks.values()]
    frame["share"] = [*(float(over(v, total)) for v in found), 0.0, 0.0]
    most = rows_for(max(map(len, by_order.values()), default=0))
    rows = read_rows(parts, data, most) if named else None
    if rows is None:
        frame["share_rows"] = np.nan
        return frame
    each = [row_variances(parts, subsets, rows) for subsets in by_order.values()]
    each += [(rows.variances(own[None]), own) for own in rows.opaque.values()]
    own, sums = zip(*each, strict=True)
    variances = [float(found.sum()) for found in own]
    joint = float(rows.variances(np.stack(sums)).sum())
    link = float(rows.variances(np.sum(sums, axis=0)))
    over_rows = [*variances, joint - sum(variances), link - joint]
    frame["share_rows"] = over(np.array(over_rows), link)
    return frame


def over(variances: Any, total: float) -> Any:
    """Shares of a total; 0 where there is none."""
    return variances / total if total > 0 else 0.0 * variances


def _named(parts: Parts, subsets: np.ndarray) -> pd.DataFrame:
    """Labels and features of subsets."""
    labels = np.array([variable.label for variable in parts.variables], object)
    frame = pd.DataFrame({"label": [parts.label(subset) for subset in subsets]}, dtype=object)
    for column in range(subsets.shape[1]):
        frame[f"feature_{column + 1}"] = labels[subsets[:, column]]
    return frame


def _share_over_rows(parts: Parts, subsets: np.ndarray, data: Any) -> np.ndarray | float:
    rows = read_rows(parts, data, rows_for(len(subsets)))
    if rows is None:
        return np.nan
    found, _ = row_variances(parts, subsets, rows)
    share = over(found, float(rows.variances(rows.link(parts))))
    return np.where(share > NOTHING, share, 0.0)
