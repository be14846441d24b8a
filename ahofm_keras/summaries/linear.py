"""The linear block of a fitted model in the user's units: all that is linear in its coefficients.

Inside the model linear columns are standardised, smooths and tensor products stand in Demmler-Reinsch
coordinates and the response may be scaled. What a reader wants is a linear function of that:
coefficients of the columns as they are, coefficients of the basis functions and of their products, and
the intercept where all columns are 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ahofm_keras.model import AdditiveModel

INTERCEPT = "(Intercept)"


@dataclass(frozen=True)
class Span:
    """Where the coefficients of a term stand: `own` in the user's units, `inner` in the model's."""

    own: slice
    inner: slice


class LinearCoefficients:
    """Coefficients of the linear block, and the covariance and prior that the posterior has of them.

    Args:
        model: fitted.

    Attributes:
        labels: of the coefficients in the user's units.
        spans: of each linear and smooth term, by its name.
        to_user: `(c, q)`, from coefficients inside the model to the user's.
    """

    def __init__(self, model: AdditiveModel) -> None:
        self.model = model
        self.labels: list[str] = []
        self.spans: dict[str, Span] = {}
        self._inner: list[np.ndarray] = []
        self._columns: list[np.ndarray] = []
        self.layout = model.design.layout.only
        at_zero = [np.zeros(0)]
        if self.layout.intercept:
            self._add("", [INTERCEPT], np.eye(1), np.reshape(np.asarray(model.predictor.bias), 1))
            at_zero.append(np.ones(1))
        for term, block, _ in self.layout.spans:
            own = block.user(term.label)
            inner = block.flatten(model.get_layer(term.name).coordinates())
            self._add(term.name, own.labels, own.transform, inner)
            at_zero.append(own.at_zero)
        self.to_user = self._transformation(np.concatenate(at_zero))

    def _add(self, name: str, labels: list[str], transform: np.ndarray, inner: np.ndarray) -> None:
        own, start = len(self.labels), sum(map(len, self._inner))
        self.labels += labels
        self._inner.append(inner.astype(float))
        self._columns.append(transform)
        self.spans[name] = Span(slice(own, own + len(labels)), slice(start, start + transform.shape[1]))

    def _transformation(self, at_zero: np.ndarray) -> np.ndarray:
        total = np.zeros((len(self.labels), len(at_zero)))
        for span, transform in zip(self.spans.values(), self._columns, strict=True):
            total[span.own, span.inner] = transform
        if self.layout.intercept:
            total[0] = at_zero
        return self.model.scale * total

    @property
    def inner(self) -> np.ndarray:
        """Coefficients as the model has them, `(q,)`."""
        return np.concatenate([np.zeros(0), *self._inner])

    @property
    def values(self) -> np.ndarray:
        """Coefficients in the user's units, `(c,)`."""
        values = self.to_user @ self.inner
        if self.layout.intercept:
            values[0] += self.model.shift
        return values

    @cached_property
    def inner_covariance(self) -> np.ndarray:
        """Posterior covariance inside the model, `(q, q)`; needs a posterior."""
        return self.inner_root @ self.inner_root.T

    @property
    def inner_root(self) -> np.ndarray:
        """Root of the posterior covariance inside the model, `(q, q)`; needs a posterior."""
        assert self.model.posterior is not None
        return np.asarray(self.model.posterior.linear_root)

    @property
    def covariance(self) -> np.ndarray:
        """Posterior covariance in the user's units, `(c, c)`; needs a posterior."""
        return self.to_user @ self.inner_covariance @ self.to_user.T

    @cached_property
    def dispersion(self) -> float:
        """Of the response inside the model, as the covariance has it; needs a posterior."""
        assert self.model.posterior is not None
        edf = np.asarray(self.model.posterior.linear_edf)
        own = self.precisions > 0
        return covariance_dispersion(
            float(self.inner_covariance.diagonal()[own] @ self.precisions[own]),
            float(np.sum(1 - edf[own])),
            float(self.model.posterior.dispersion),
        )

    @cached_property
    def smoothing(self) -> dict[str, np.ndarray]:
        """Logarithms of lambda, one per margin, and of tau of each penalised term; needs a posterior.

        A row per group of coefficients that share them.
        """
        assert self.model.posterior is not None
        # Without such terms the layer still has a row; with them one has as many places as the largest.
        kept = np.asarray(self.model.posterior.linear_smoothing)
        found, start = {}, 0
        for term, block, _ in self.layout.penalised:
            own = kept[start : start + block.groups]
            found[term.name] = np.column_stack([own[:, : len(block.penalties)], own[:, -1]])
            start += block.groups
        return found

    @cached_property
    def precisions(self) -> np.ndarray:
        """Prior precisions Q in units of the dispersion, `(q,)`, 0 where the prior is flat.

        The covariance is V = dispersion (G + Q)^-1 with G the weighted Gram matrix of the rows.
        """
        found = np.zeros(len(self.inner))
        for term, block, where in self.layout.penalised:
            found[where] = block.precisions(self.smoothing[term.name])
        return found

    @cached_property
    def influence(self) -> np.ndarray:
        """(G + Q)^-1 G `(q, q)`: its diagonal are the degrees of freedom of the coefficients."""
        return np.eye(len(self.inner)) - self.inner_covariance * self.precisions / self.dispersion

    @cached_property
    def gram(self) -> np.ndarray:
        """G `(q, q)`, from the posterior: the rows themselves are gone."""
        scale = np.sqrt(np.maximum(self.inner_covariance.diagonal(), 0.0))
        scale = np.where(scale > 0, scale, 1.0)
        # Variances range over many orders of magnitude; correlations do not.
        inverse = np.linalg.pinv(self.inner_covariance / scale / scale[:, None], 1e-14, hermitian=True)
        return self.dispersion * inverse / scale / scale[:, None] - np.diag(self.precisions)


def covariance_dispersion(shrunken: float, missing: float, otherwise: float) -> float:
    """The dispersion that a covariance V = dispersion (G + Q)^-1 was made with.

    A solver updates the dispersion once more after its last block. tr(V Q) is the dispersion times what
    the degrees of freedom lack of the number of coefficients, so their ratio tells it exactly.

    Args:
        shrunken: tr(V Q).
        missing: number of coefficients less their degrees of freedom.
        otherwise: where nothing is penalised.
    """
    return shrunken / missing if missing > 1e-6 and shrunken > 0 else otherwise
