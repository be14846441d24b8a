"""Which effects matter: shares of all features and pairs and of the largest of higher order."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.cluster.hierarchy import fcluster, leaves_list, linkage
from scipy.spatial.distance import squareform

from ahofm_keras.decomposition.parts import NOTHING, Parts
from ahofm_keras.decomposition.read_rows import read_rows, row_variances
from ahofm_keras.reporting.encoding import pack

# Subsets of three and more features that are listed, of each order.
_MOST_SUBSETS = 200
# Blocks of the map: interactions of at least this size beside the largest, in units of the link.
_TOGETHER = 0.05
_MOST_ORDERED = 200
# Rows that variances over rows are computed from, at most.
_ROWS = 2000


def describe_ranking(parts: Parts, data: Any) -> list[dict[str, Any]]:
    """For each order the `subsets` `(K, order)`, largest first, with shares of the variance.

    `share` is under the product of the margins, `share_rows` over rows (None without them); `whole` is
    the order's share, `count` the number of its subsets, `active` that of those not switched off.

    Args:
        parts: of the model.
        data: rows for the variance over rows; by default those of the fit, where they are known.
    """
    total = parts.total_variance
    rows = read_rows(parts, data, _ROWS)
    spread = 0.0 if rows is None else float(rows.variances(parts.link(rows.functions)))
    listed = []
    for order in range(1, parts.largest_order + 1):
        subsets = parts.subsets(order)
        variances = parts.variances(subsets)
        variances = np.where(variances > NOTHING * total, variances, 0.0)
        best = np.argsort(-variances, kind="stable")
        active = int(np.count_nonzero(variances))
        if order > 1:
            best = best[:active]
        if order > 2:
            best = best[:_MOST_SUBSETS]
        entry = {
            "order": order,
            "count": len(subsets),
            "active": active,
            "whole": parts.variance_by_order[order] / total if total > 0 else 0.0,
            "subsets": pack(subsets[best], "i4"),
            "share": pack(variances[best] / total if total > 0 else np.zeros(len(best)), "f4"),
            "share_rows": None,
        }
        if rows is not None and spread > 0:
            entry["share_rows"] = pack(row_variances(parts, subsets[best], rows)[0] / spread, "f4")
        listed.append(entry)
    return listed


def map_order(parts: Parts) -> list[int]:
    """The variables in an order in which those that interact stand together, strong blocks first."""
    count = len(parts.variables)
    singles, pairs = parts.subsets(1), parts.subsets(2)
    variances = np.zeros((count, count))
    variances[pairs[:, 0], pairs[:, 1]] = parts.variances(pairs)
    variances = variances + variances.T
    strength = np.sqrt(variances)
    variances[singles[:, 0], singles[:, 0]] = parts.variances(singles)
    if count < 3 or not strength.any():
        return np.argsort(-variances.sum(axis=1), kind="stable").tolist()
    distance = 1 - strength / strength.max()
    np.fill_diagonal(distance, 0.0)
    tree = linkage(squareform(distance), "average", optimal_ordering=count <= _MOST_ORDERED)
    block = fcluster(tree, 1 - _TOGETHER, "distance")
    size = np.array([variances[np.ix_(block == own, block == own)].sum() for own in block])
    leaves = leaves_list(tree)
    return leaves[np.lexsort((block[leaves], -size[leaves]))].tolist()
