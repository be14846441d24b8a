"""Log-density of a family, its derivatives and moments; what is learned from all rows together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ahofm_keras.families.crps import numeric_crps
from ahofm_keras.families.labels import decode_labels
from ahofm_keras.families.signature import Array, Namespace, Parameters, Signature

_LEAST_DISPERSION = 1e-14
# Relative step of a numerical derivative of the log-density.
_STEP = 1e-5


class Likelihood(Signature):
    """How likely responses are, given the parameters of their rows."""

    def log_density(self, y: Array, parameters: Parameters, xp: Namespace = np) -> Array:
        """Of each row at dispersion 1, up to terms of y alone."""
        raise NotImplementedError(f"The {self.name} family has no log-density.")

    def loss(self, y: Array, parameters: Parameters, xp: Namespace = np) -> Array:
        """What training minimises, of each row: minus the log-density, or half the unit deviance."""
        return -self.log_density(y, parameters, xp)

    def saturated(self, y: Array) -> dict[str, Array]:
        """The parameters of each row under which its response is likeliest."""
        return self.named(y)

    def unit_deviance(self, y: Array, mean: Array, xp: Namespace = np) -> Array:
        """2 (log-density of y at its best parameters less that at the mean) at dispersion 1."""
        best = self.log_density(y, self.saturated(y), xp)
        return 2 * (best - self.log_density(y, self.named(mean), xp))

    def distribution(self, mean: np.ndarray, dispersion: Any = 1.0) -> Any:
        """The response's distribution in SciPy."""
        raise NotImplementedError(f"The {self.name} family has no distribution.")

    def variance(self, mean: np.ndarray) -> np.ndarray:
        """Of the response at dispersion 1."""
        return np.asarray(self.distribution(mean, 1.0).var())

    def log_likelihood(
        self, y: np.ndarray, mean: np.ndarray, dispersion: float, weight: np.ndarray
    ) -> float:
        """Sum over rows; a weight divides the dispersion, or counts a row several times without one."""
        rows = weight > 0
        y, mean, weight = y[rows], mean[rows], weight[rows]
        if not self.dispersion_known:
            return float(self.distribution(mean, dispersion / weight).logpdf(y).sum())
        distribution = self.distribution(mean, 1.0)
        log = distribution.logpmf if self.discrete else distribution.logpdf
        return float(log(y) @ weight)

    # Fisher scoring -----------------------------------------------------------------------------

    def score(self, y: np.ndarray, parameters: Parameters) -> dict[str, np.ndarray]:
        """Derivative of each row's log-density by each parameter; here numerical."""
        found = {}
        for name, values in parameters.items():
            step = _STEP * (1 + np.abs(values))
            ends = [{**parameters, name: values + side} for side in (step, -step)]
            high, low = (self.log_density(y, end, np) for end in ends)
            found[name] = (high - low) / (2 * step)
        return found

    def information(self, y: np.ndarray, parameters: Parameters) -> dict[str, np.ndarray]:
        """Expected square of each row's score; here the square of the one that was observed."""
        return {name: score**2 for name, score in self.score(y, parameters).items()}

    def working(self, y: np.ndarray, etas: Parameters) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Weights and responses of the linear model that a step of Fisher scoring fits.

        With u the derivative of the log-density by the predictor and w its expected square, the weight
        is w and the response eta + u / w.

        Args:
            y: response `(n,)`.
            etas: predictors `(n,)` by parameter.

        Returns:
            Parameter -> (weight, working response).
        """
        parameters = self.inverse_links(etas, np)
        score, information = self.score(y, parameters), self.information(y, parameters)
        found = {}
        for name, link in self.parameters.items():
            slope = self._held(link.derivative(etas[name], np))
            weight = np.maximum(information[name] * slope**2, self.least_slope)
            found[name] = weight, etas[name] + score[name] * slope / weight
        return found

    def _held(self, slope: np.ndarray) -> np.ndarray:
        """A slope that is not too small to divide by."""
        return np.copysign(np.maximum(np.abs(slope), self.least_slope), slope)

    def estimate_dispersion(self, squares: float, degrees: float) -> float:
        """The dispersion from a sum of squares (or deviances) and its degrees of freedom; 1 if known."""
        return 1.0 if self.dispersion_known else max(squares / degrees, _LEAST_DISPERSION)

    # Moments and classes -------------------------------------------------------------------------

    def log_constant(self, y: np.ndarray) -> np.ndarray:
        """The terms of y alone that `log_density` leaves out; here none."""
        return np.zeros_like(y, dtype=float)

    def distribution_of(self, parameters: Parameters) -> Any:
        """The response's distribution, with SciPy's methods; here by mean and dispersion."""
        mean = parameters[next(iter(self.parameters))]
        return self.distribution(mean, parameters.get("dispersion", 1.0))

    def mean_of(self, parameters: Parameters, xp: Namespace = np) -> Array:
        """Of the response; of Keras tensors the first parameter, where there is no closed form."""
        if xp is not np:
            return next(iter(parameters.values()))
        return np.asarray(self.distribution_of(parameters).mean())

    @property
    def several_classes(self) -> bool:
        """Whether the response is a class, and its mean no number but a probability of each."""
        return bool(self.classes) and not self.binary

    def probabilities(self, parameters: Parameters, xp: Namespace = np) -> Array:
        """Of each of the `classes` `(..., K)`."""
        raise NotImplementedError(f"The {self.name} family has no classes.")

    def decode(self, codes: np.ndarray) -> np.ndarray:
        """The labels of classes at some places."""
        return decode_labels(codes, self.classes)

    def crps(self, y: np.ndarray, parameters: Parameters) -> np.ndarray:
        """Continuous ranked probability score of each row: the smaller, the better.

        Here by an integral over the cumulative probabilities; closed forms are faster.
        """
        return numeric_crps(self.distribution_of(parameters), np.asarray(y, float), self.discrete)

    # What is learned from all rows together -----------------------------------------------------

    def learn_nuisance(
        self, y: np.ndarray, parameters: Parameters, weight: np.ndarray | None
    ) -> dict[str, Any]:
        """What maximises the likelihood at these parameters of all rows, as JSON."""
        raise NotImplementedError(f"The {self.name} family has no nuisance.")

    def given(self, y: np.ndarray, nuisance: Mapping[str, Any]) -> np.ndarray:
        """The response with what the nuisance says of it beside it."""
        return y

    def nuisance_information(
        self, y: np.ndarray, functions: np.ndarray, parameters: Parameters, weight: np.ndarray | None
    ) -> np.ndarray:
        """What learning the nuisance takes of the information on coefficients `(q, q)`.

        Args:
            y: response with the nuisance beside it.
            functions: that the predictor is a sum of, on each row `(n, q)`.
            parameters: of each row.
            weight: of each row, or None.
        """
        raise NotImplementedError(f"The {self.name} family has no nuisance.")

    def mean_log_density(
        self, y: np.ndarray, parameters: Parameters, weight: np.ndarray | None
    ) -> float:
        """Of all rows, up to terms of y alone, with the best nuisance where there is one."""
        return float(np.average(self.log_density(y, parameters, np), weights=weight))
