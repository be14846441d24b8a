"""What a response distribution is to the rest of the package: the contract of a family.

A family's functions take `numpy` or `keras.ops` as their last argument where training needs them, so
that solvers, tables and tests share one formula. A new family is a class in a file: `ExponentialFamily`
needs a deviance or log-density and a distribution, `Family` a log-density of any number of parameters.
What a family answers stands in the order in which a model asks: `signature.py`, `observed.py`,
`likelihood.py`, and here where fits start, in which units, and what they predict.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from ahofm_keras.errors import DataError
from ahofm_keras.families.observed import Observed
from ahofm_keras.families.predictive import Asked, quantile_by_distribution
from ahofm_keras.families.signature import Array, Links, Namespace, Parameters, listed

__all__ = ["Array", "Family", "Links", "Namespace", "Parameters", "listed"]

# Rows of which quantiles are computed together.
_ROWS = 8192
# A standard error of 0, which nothing can be divided by.
_LEAST_ERROR = 1e-12


class Family(Observed):
    """A response distribution whose parameters have links.

    Args:
        link: name of the link of the first parameter, or a dict from parameter to name; by default the
            first of `links`.

    Attributes:
        name: key in `FAMILIES`.
        links: parameter -> names of the links it may have, the default first.
        parameters: parameter -> its link, in order.
        support_text: the values that the response may take, in words.
        aliases: what other packages call parameters -> what they are called here.
        forms: what the response may be: `"column"`, or the call of several columns `"cbind"`, `"Surv"`.
        bounds: closed interval that holds these values.
        dispersion_known: whether the dispersion is 1; else it is estimated.
        discrete: whether the response is a whole number.
        with_dispersion: name of the family that has a parameter in the place of a dispersion that is
            estimated on the side.
        binary: whether it is 0 or 1, so that its mean is a probability.
        labelled: whether it may hold texts and other labels, which `encode` makes numbers of.
        nuisance: whether something is learned from all rows together and stands beside each response.
        ordered: whether these labels have an order.
        classes: labels of the classes that the response is one of.
        shared: what a dict of formulas calls that of all parameters without one of their own; a plain
            formula is that of all then.
        unshared: parameters that it does not reach: they are constant without a formula of their own.
        levels: those of quantiles that the family is of.
        is_loss: whether its log-density is minus a loss and no more: there is no distribution then.
        constant_variance: whether the variance is that of every mean.
        least_slope: slope and variance stay above this in a fit: a row of a mean at the edge of the
            support says nothing. 0 where a row says as much at any mean.
        variance_text: what the variance is by the family, in words.
        remedies: what `ak.check` may find -> a sentence on the family or formula that allows for it:
            `"overdispersed"`, `"underdispersed"`, `"more zeros"`, `"fewer zeros"`, `"heavy tails"`,
            `"uneven spread"`, `"shape"`.
        predicts: what a prediction is, e.g. `"the probability"`.
        result_label: the same before the name of the response, e.g. `"Probability of a 1 in"`.
        reader_note: what a page adds on its predictions, for people who do not know the family.
        meanings: what parameters are, in words, where that is not what most families mean by the name.
    """

    # What it learns ------------------------------------------------------------------------------

    def learn(self, values: Any, label: str) -> Family:
        """The family with what the training response teaches it, such as its classes.

        Args:
            values: response as `encode` takes it.
            label: the formula's response.
        """
        return self

    def check_known(self, label: str) -> None:
        """Raise a `DataError` where the family would have to learn from a response that is not there."""

    def counted(self, y: np.ndarray, weight: np.ndarray) -> tuple[Family, np.ndarray]:
        """The family and the response of what was observed, where weights are a part of that."""
        return self, y

    def of_rows(self, rows: np.ndarray) -> Family:
        """The family of some rows, where it knows something of each, such as trials."""
        return self

    def bound(self, nuisance: Mapping[str, Any]) -> Family:
        """The family that knows the nuisance, with the distribution of new responses."""
        return self

    # Start ---------------------------------------------------------------------------------------

    def start_values(self, y: np.ndarray, weight: np.ndarray | None = None) -> dict[str, float]:
        """Rough parameters of the model without terms, inside their ranges; here the mean."""
        if len(self.links) > 1:
            raise NotImplementedError(f"The {self.name} family has no start of its parameters.")
        return {next(iter(self.links)): float(np.average(y, weights=weight))}

    def first_fit(self, y: np.ndarray) -> tuple[Family, np.ndarray] | None:
        """A family of the first parameter alone, and its response, that a fit of several begins with.

        It estimates a dispersion as the predictor takes shape, so that the noise is not overestimated
        while it is chosen how smooth the predictor is. None: the fit begins with all parameters.
        """
        return None

    def rough_mean(self, y: np.ndarray, average: float) -> np.ndarray:
        """A mean of each row to start a fit from, inside the range of the link."""
        return (y + average) / 2

    def start(
        self, y: np.ndarray, offset: np.ndarray | float = 0.0, weight: np.ndarray | None = None
    ) -> float:
        """The intercept of the model without terms: sum of g^-1(a + offset) equals the sum of y."""
        mean = float(np.average(y, weights=weight))
        self._check_mean(mean)
        if np.ndim(offset) == 0:
            return float(self.link_function(np.asarray(mean))) - float(offset)
        if self._link.is_identity:
            return float(np.average(y - offset, weights=weight))

        def excess(intercept: float) -> float:
            fitted = self.inverse_link(intercept + np.asarray(offset), np)
            return float(np.average(fitted, weights=weight)) - mean

        centre = float(self.link_function(np.asarray(mean)))
        reach = 1.0 + float(np.max(np.abs(offset)))
        return float(brentq(excess, centre - reach, centre + reach))

    def _check_mean(self, mean: float) -> None:
        low, high = self._link.range
        if not low <= mean <= high:
            raise DataError(
                f"The mean of the response is {mean:g}, and the {self.link} link has means between "
                f"{low:g} and {high:g} only. Take another link of the {self.name} family: "
                f"{listed(name for name in next(iter(self.links.values())) if name != self.link)}."
            )

    def null_mean(
        self,
        y: np.ndarray,
        offset: np.ndarray | float = 0.0,
        weight: np.ndarray | None = None,
        intercept: bool = True,
    ) -> np.ndarray:
        """Means of the model that has an intercept, or not even that, and the offset only."""

        def mean(constant: float) -> np.ndarray:
            return np.broadcast_to(self.inverse_link(constant + np.asarray(offset), np), y.shape)

        def deviance(constant: float) -> float:
            return float(np.average(self.unit_deviance(y, mean(constant), np), weights=weight))

        average = float(np.average(y, weights=weight))
        if not intercept:
            return mean(0.0)
        with np.errstate(divide="ignore"):
            if not np.isfinite(self.link_function(np.asarray(average))):  # one class only, no counts
                return np.full(y.shape, average)
        # With a link that is not the family's own, equal sums of mean and response are not the optimum.
        start = self.start(y, offset, weight)
        step = 0.1 * (self.predictor_scale(y, offset) or 1.0)
        return mean(minimize_scalar(deviance, (start - step, start + step)).x)

    # Units --------------------------------------------------------------------------------------

    def predictor_scale(self, y: np.ndarray, offset: np.ndarray | float = 0.0) -> float:
        """By what the predictor is standardised, so that a fit does not depend on the response's unit.

        The standard deviation that the rows of the model without terms would give a predictor of their
        own: the root of the dispersion over the information. 1 where the dispersion is known.
        """
        if self.dispersion_known:
            return 1.0
        eta = np.broadcast_to(self.start(y, offset) + np.asarray(offset), y.shape)
        information = np.mean(self._information_at(eta))
        return float(np.sqrt(self.rough_dispersion(y, self.inverse_link(eta)) / information))

    def _information_at(self, eta: np.ndarray) -> np.ndarray:
        """Of each row on the first predictor, at dispersion 1."""
        parameter = next(iter(self.parameters))
        return self.working(self.inverse_link(eta), {parameter: eta})[parameter][0]

    def rough_dispersion(self, y: np.ndarray, mean: np.ndarray) -> float:
        """The dispersion of the model without terms, whose unit that of a fit should have.

        1 where the dispersion has no unit.
        """
        return float(np.mean((y - mean) ** 2 / self.variance(mean)))

    def dispersion_unit(self, shift: float, scale: float) -> float:
        """What dispersions inside a model are multiples of, by the predictor's start and scale."""
        eta = np.array([shift])
        if self.dispersion_known or not self.is_valid(eta).all():
            return 1.0
        return float(scale**2 * self._information_at(eta)[0])

    # Predictive distribution ----------------------------------------------------------------------

    def predictive_quantile(
        self, link: np.ndarray, error: np.ndarray, dispersion: float, probability: float
    ) -> np.ndarray:
        """Quantile of a new response whose predictor is gaussian.

        Args:
            link: mean of the predictor `(n,)`.
            error: its standard deviation `(n,)`.
            dispersion: of the response, in its own units.
            probability: between 0 and 1.

        Returns:
            `(n,)`; infinite where the quantile is beyond float64, 0 where it is below, never NaN.
        """
        asked, error = Asked.at(probability), np.maximum(error, _LEAST_ERROR)
        parts = [
            self.averaged_quantile(link[rows], error[rows], dispersion, asked)
            for rows in (slice(start, start + _ROWS) for start in range(0, len(link), _ROWS))
        ]
        return np.concatenate([np.zeros(0), *parts])

    def averaged_quantile(
        self, link: np.ndarray, error: np.ndarray, dispersion: float, asked: Asked
    ) -> np.ndarray:
        """The same of a few rows, for any family; closed forms are faster."""
        return quantile_by_distribution(self, link, error, dispersion, asked)
