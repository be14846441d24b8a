"""One row per term, of an interaction one per order: what was asked, what was reached, is it needed."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from ahofm_keras.decomposition import Parts
from ahofm_keras.decomposition.parts import NOTHING
from ahofm_keras.summaries.interactions import interaction_test
from ahofm_keras.summaries.linear import LinearCoefficients
from ahofm_keras.summaries.wald import TermTest, joint_test, smooth_test
from ahofm_keras.terms import Columns, InteractionOrder, Span, Term

# With fewer degrees of freedom a smooth, or a factor of a feature, is switched off.
PRUNED = 0.05

# Of these a smooth or tensor product has one per margin.
_BY_MARGIN = tuple(f"{name}_by_margin" for name in ("k", "df", "lambda_asked", "lambda"))

COLUMNS = (
    "kind",
    "shape",
    "order",
    "k_min",
    "k_max",
    "df_min",
    "df_max",
    "edf",
    "lambda_asked_min",
    "lambda_asked_max",
    "lambda_min",
    "lambda_max",
    "factors",
    "factors_asked",
    "features",
    "features_asked",
    "columns",
    "nonzero",
    "atoms",
    "atoms_edf",
    "share",
    "pruned",
    "statistic",
    "ref_df",
    "p_value",
    *_BY_MARGIN,
)

Row = dict[str, Any]


class TermRows:
    """Makes the rows of a model's terms.

    Args:
        model: fitted.
        residual_df: of the dispersion, None where it is known.
        rows: n of the fit, in units of which the posterior holds lambda.
    """

    def __init__(self, model: Any, residual_df: float | None, rows: int) -> None:
        self.model = model
        self.residual_df = residual_df
        self.rows = rows
        self.layout = model.design.layout.only
        self.block = LinearCoefficients(model)
        self.parts = Parts(model)
        self._fresh = Parts(model)  # copies of it have computed nothing yet

    def frame(self) -> pd.DataFrame:
        """One row per term, labelled as in `predict(type="terms")`."""
        rows: dict[str, Row] = {}
        for term in self.model.design.only.terms:
            rows |= self._rows(term)
        frame = pd.DataFrame(rows.values(), index=pd.Index(rows, name="term"), columns=list(COLUMNS))
        whole = ["order", "k_min", "k_max", "factors", "factors_asked", "features", "features_asked"]
        whole += ["columns", "nonzero", "atoms"]
        kinds: dict[str, Any] = dict.fromkeys(whole, "Int64")
        kinds |= {"kind": object, "shape": object, "pruned": bool} | dict.fromkeys(_BY_MARGIN, object)
        return frame.astype(kinds | {c: float for c in COLUMNS if c not in kinds})

    def _rows(self, term: Term) -> dict[str, Row]:
        """The rows of a term: one, or one per order of an interaction; none of an offset."""
        span = self.layout.by_name.get(term.name)
        if span is None and any(own.name == term.name for own in self.parts.opaque):
            return {term.label: self._opaque(term)}
        if span is not None:
            fill = self._penalised if span.block.is_penalised else self._linear
            if term.has_penalty:
                fill = self._shrunken
            return {term.label: fill(span)}
        orders = self.layout.orders_of(term)
        return {order.label: self._interaction(term, order) for order in orders}

    def _opaque(self, term: Term) -> Row:
        """A network has neither smoothing nor degrees of freedom: its share is all there is to say."""
        order = len(term.raw_columns(self.model.design.features))
        share = self._share((term.name, 0))
        return {"kind": term.word, "order": order, "share": share, "pruned": False}

    def _linear(self, span: Span) -> Row:
        name = span.term.name
        row: Row = {
            "kind": span.term.word,
            "order": span.block.order,
            "share": self._share((name, 0)),
            "pruned": False,
        }
        if self.model.has_posterior:
            own = self.block.spans[name].own
            row["edf"] = self._edf(span)
            covariance = self.block.covariance[own, own]
            row |= _tested(joint_test(self.block.values[own], covariance, self.residual_df))
        return row

    def _edf(self, span: Span) -> float:
        return float(np.asarray(self.model.posterior.linear_edf)[span.where].sum())

    def _penalised(self, span: Span) -> Row:
        term, block, where = span
        row: Row = {
            "kind": term.word,
            "shape": block.shape or None,
            "order": block.order,
            **_by_margin("k", block.sizes),
            **_by_margin("df", block.df),
            **_by_margin("lambda_asked", block.smoothing[: _margins(block)]),
            "atoms": sum(feature.atoms for feature in block.features),
            "share": self._share((term.name, 0)),
            "pruned": not self.block.inner[where].any(),
        }
        if self.model.has_posterior:
            row["edf"] = self._edf(span)
            row["pruned"] = row["edf"] < PRUNED
            reached = self._lambdas(block.penalties, self.block.smoothing[term.name][0])
            row |= _by_margin("lambda", reached[: _margins(block)])
            if block.atoms:
                edf = np.asarray(self.model.posterior.linear_edf)[where]
                row["atoms_edf"] = float(edf[~block.is_shrunk].sum())
            if not row["pruned"]:
                row |= _tested(smooth_test(self.block, span, self.residual_df))
        return row

    def _shrunken(self, span: Span) -> Row:
        """Penalised design columns.

        Of those that a penalty selects there is no test: it would take the selection as given.
        """
        term, block, where = span
        nonzero = np.count_nonzero(self.block.inner[where])
        row: Row = {
            "kind": term.word,
            "order": block.order,
            "columns": block.size,
            "nonzero": nonzero,
            **_by_margin("df", block.df),
            **_by_margin("lambda_asked", block.smoothing),
            "share": self._share((term.name, 0)),
            "pruned": nonzero == 0,
        }
        if self.model.has_posterior:
            row["edf"] = self._edf(span)
            if not block.norms:
                row["pruned"] = row["edf"] < PRUNED
                reached = self._lambdas(block.penalties, self.block.smoothing[term.name][0])
                row |= _by_margin("lambda", reached)
            if not (block.norms or row["pruned"]):
                row |= _tested(smooth_test(self.block, span, self.residual_df))
        return row

    def _interaction(self, term: Term, order: InteractionOrder) -> Row:
        features = order.features
        active = self._active(order)
        row: Row = {
            "kind": term.word,
            "order": order.order,
            **_range("k", [feature.basis.splines for feature in features]),
            **_range("df", order.df),
            **_range("lambda_asked", order.smoothing),
            "factors": int(active.any(axis=0).sum()),
            "factors_asked": None if order.automatic else order.rank * self.model.starts,
            "features": int(active.any(axis=1).sum()),
            "features_asked": len(features),
            "atoms": sum(feature.atoms for feature in features),
            "share": self._share(order.key),
            "pruned": not active.any(),
        }
        if self.model.has_posterior:
            layer, own = self.model.posterior, self.layout.order_index[order.key]
            row["edf"] = float(np.asarray(layer.factor_edf[own]).sum())
            smoothing = np.asarray(layer.factor_smoothing[own])
            row |= _range(
                "lambda",
                [
                    self._lambdas(features[j].eigenvalues[None], smoothing[j, f])[0]
                    for j, f in np.argwhere(active)
                ],
            )
            if not row["pruned"]:
                row |= _tested(interaction_test(self.parts, order, self.residual_df))
        return row

    def _active(self, order: InteractionOrder) -> np.ndarray:
        """Which factors of which features are not switched off, `(p, F)`."""
        values = self.model.get_layer(order.name).coordinates(order.index)
        active = np.abs(values).max(axis=1) > 0
        if self.model.has_posterior:
            layer = self.model.posterior
            active &= layer.edf_in_fit(self.layout.order_index[order.key]) >= PRUNED
        # A factor of fewer features than a product has adds nothing.
        return active & (active.sum(axis=0) >= order.order)

    def _lambdas(self, penalties: np.ndarray, parameters: np.ndarray) -> list[float]:
        """The lambda of each penalty that was reached, on the scale of the one that df asked for."""
        *smoothing, shrinkage = np.exp(parameters) / self.rows
        first = penalties[0]
        identity = len(penalties) == 1 and len(first) > 0 and np.ptp(first) == 0
        if identity and not smoothing[0] and first[0] > 0:
            # Where the penalty is the identity one scale does for both.
            return [float(shrinkage / first[0])]
        return list(map(float, smoothing))

    def _share(self, source: tuple[str, int]) -> float:
        """Share of the variance of the link that a term, or an order of it, has on its own."""
        own = copy.copy(self._fresh)
        own.groups = [group for group in self.parts.groups if group.source == source]
        own.opaque = [other for other in self.parts.opaque if other.name == source[0]]
        total = self.parts.total_variance
        share = own.total_variance / total if total > 0 else 0.0
        return share if share > NOTHING else 0.0


def _margins(block: Columns) -> int:
    """Number of lambdas but for those of atoms."""
    return len(block.penalties) - block.atoms


def _range(name: str, values: Iterable[float]) -> Row:
    found = list(values)
    return {f"{name}_min": min(found), f"{name}_max": max(found)} if found else {}


def _by_margin(name: str, values: Iterable[float]) -> Row:
    found = tuple(values)
    return {f"{name}_by_margin": found, **_range(name, found)}


def _tested(test: TermTest | None) -> Row:
    if test is None:
        return {}
    return {"statistic": test.statistic, "ref_df": test.reference_df, "p_value": test.p_value}
