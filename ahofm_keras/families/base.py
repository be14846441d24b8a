"""What a response distribution is to the rest of the package: the contract of a family.

A family's functions take `numpy` or `keras.ops` as their last argument where training needs them, so
that solvers, tables and tests share one formula. A new family is a class in a file: `ExponentialFamily`
needs a deviance or log-density and a distribution, `Family` a log-density of any number of parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from ahofm_keras.errors import DataError, did_you_mean
from ahofm_keras.families.crps import numeric_crps
from ahofm_keras.families.labels import decode_labels
from ahofm_keras.families.links import LINKS, Link
from ahofm_keras.families.meanings import meaning_of
from ahofm_keras.families.predictive import Asked, quantile_by_distribution
from ahofm_keras.families.suggestions import suggest_family

Array = Any
Namespace = Any
Parameters = Mapping[str, Array]
Links = Mapping[str, tuple[str, ...]]

# Rows of which quantiles are computed together.
_ROWS = 8192
# A standard error of 0, which nothing can be divided by.
_LEAST_ERROR = 1e-12
_LEAST_DISPERSION = 1e-14
# Relative step of a numerical derivative of the log-density.
_STEP = 1e-5


class Family:
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
        meanings: what parameters are, in words, where that is not what most families mean by the name.
    """

    name: ClassVar[str]
    links: ClassVar[Links]
    support_text: ClassVar[str]
    aliases: ClassVar[Mapping[str, str]] = {}
    forms: ClassVar[tuple[str, ...]] = ("column",)
    bounds: ClassVar[tuple[float, float]] = (-inf, inf)
    dispersion_known: ClassVar[bool] = True
    discrete: ClassVar[bool] = False
    with_dispersion: ClassVar[str | None] = None
    binary: ClassVar[bool] = False
    labelled: ClassVar[bool] = False
    nuisance: ClassVar[bool] = False
    ordered: ClassVar[bool] = False
    classes: ClassVar[tuple[Any, ...]] = ()
    shared: ClassVar[str | None] = None
    unshared: ClassVar[tuple[str, ...]] = ()
    levels: tuple[float, ...] = ()
    is_loss: ClassVar[bool] = False
    constant_variance: ClassVar[bool] = False
    least_slope: ClassVar[float] = 1e-10
    variance_text: ClassVar[str] = "what the family says"
    remedies: ClassVar[Mapping[str, str]] = {}
    predicts: ClassVar[str] = "the average"
    result_label: ClassVar[str] = "Predicted"
    meanings: ClassVar[Mapping[str, str]] = {}

    def __init__(self, link: str | Mapping[str, str] | None = None) -> None:
        first = next(iter(self.links), "")
        given = {} if link is None else link if isinstance(link, Mapping) else {first: link}
        chosen: dict[str, str] = {}
        for name, own_link in given.items():
            parameter = self.own_parameter(name)
            if parameter is None:
                raise DataError(
                    f"The {self.name} family has no parameter {name!r}."
                    f"{did_you_mean(str(name), self.links)} It has: {_listed(self.links)}."
                )
            if parameter in chosen:
                raise DataError(
                    f"The parameter `{parameter}` of the {self.name} family has two links: "
                    f"{chosen[parameter]!r} and {own_link!r}."
                )
            chosen[parameter] = own_link
        self.parameters: dict[str, Link] = {
            parameter: self._find_link(parameter, chosen.get(parameter, allowed[0]))
            for parameter, allowed in self.links.items()
        }

    def _find_link(self, parameter: str, name: Any) -> Link:
        allowed = self.links[parameter]
        if name not in allowed:
            hint = "" if name in LINKS else did_you_mean(str(name), allowed)
            raise DataError(
                f"The {self.name} family cannot have the link {name!r} for its {parameter}.{hint} "
                f"It can have: {_listed(allowed)}."
            )
        return LINKS[name]

    # Names and JSON -----------------------------------------------------------------------------

    @property
    def link(self) -> str:
        """Name of the link of the first parameter."""
        return self._link.name

    @property
    def _link(self) -> Link:
        return next(iter(self.parameters.values()))

    def options(self) -> dict[str, Any]:
        """Further arguments of the constructor, as JSON."""
        return {}

    def to_json(self) -> dict[str, Any]:
        """All that the family is made of; `get_family` reads it."""
        links = {parameter: link.name for parameter, link in self.parameters.items()}
        return {"name": self.name, "links": links, **self.options()}

    @classmethod
    def from_json(cls, config: Mapping[str, Any]) -> Family:
        """The family of what `to_json` gave."""
        options = {key: value for key, value in config.items() if key not in ("name", "links")}
        return cls(config.get("links"), **options)

    @property
    def only_for_mini_batches(self) -> str | None:
        """Why no block solver can fit the family, in words, or None."""
        return None

    def check_saved(self) -> None:
        """Raise a `DataError` where a file could not say what the family is made of."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Family) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        links = {parameter: link.name for parameter, link in self.parameters.items()}
        shown = {"link": self.link if len(links) == 1 else links, **self.options()}
        return f"{type(self).__name__}({', '.join(f'{key}={value!r}' for key, value in shown.items())})"

    # Parameters ---------------------------------------------------------------------------------

    def own_parameter(self, name: str) -> str | None:
        """The family's own name of a parameter, which other packages may call otherwise."""
        return name if name in self.links else self.aliases.get(name)

    def meaning(self, parameter: str) -> str:
        """What a parameter is, in words."""
        return self.meanings.get(parameter) or meaning_of(parameter)

    # Links --------------------------------------------------------------------------------------

    def inverse_links(self, etas: Parameters, xp: Namespace = np) -> dict[str, Array]:
        """Parameters of the distribution from their predictors."""
        return {name: link.inverse(etas[name], xp) for name, link in self.parameters.items()}

    def named(self, outputs: Array) -> dict[str, Array]:
        """Parameters by name, from an array of the first one, or with a last axis for all."""
        if len(self.parameters) == 1:
            return {next(iter(self.parameters)): outputs}
        return {name: outputs[..., place] for place, name in enumerate(self.parameters)}

    def link_function(self, mean: Array, xp: Namespace = np) -> Array:
        """From the first parameter to its predictor."""
        return self._link.function(mean, xp)

    def inverse_link(self, eta: Array, xp: Namespace = np) -> Array:
        """From the predictor to the first parameter."""
        return self._link.inverse(eta, xp)

    def slope(self, eta: Array, xp: Namespace = np) -> Array:
        """Derivative of the first parameter by its predictor."""
        return self._link.derivative(eta, xp)

    def is_valid(self, eta: np.ndarray) -> np.ndarray:
        """Which predictors belong to a mean: those of an inverse or square root must be above 0."""
        return self._link.holds(eta)

    def mean_interval(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Means between two predictors."""
        ends = self._link.limit(low), self._link.limit(high)
        return ends if self._link.increasing else ends[::-1]

    @property
    def is_linear(self) -> bool:
        """Whether the response is its own working response, with weights that never change."""
        return self._link.is_identity and self.constant_variance

    # Likelihood ---------------------------------------------------------------------------------

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

    # Several parameters -------------------------------------------------------------------------

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

    def bound(self, nuisance: Mapping[str, Any]) -> Family:
        """The family that knows the nuisance, with the distribution of new responses."""
        return self

    def mean_log_density(
        self, y: np.ndarray, parameters: Parameters, weight: np.ndarray | None
    ) -> float:
        """Of all rows, up to terms of y alone, with the best nuisance where there is one."""
        return float(np.average(self.log_density(y, parameters, np), weights=weight))

    # Response and start -------------------------------------------------------------------------

    def learn(self, values: Any, label: str) -> Family:
        """The family with what the training response teaches it, such as its classes.

        Args:
            values: response as `encode` takes it.
            label: the formula's response.
        """
        return self

    def check_known(self, label: str) -> None:
        """Raise a `DataError` where the family would have to learn from a response that is not there."""

    def encode(self, values: Any, label: str) -> np.ndarray:
        """The response as likelihoods take it, checked.

        Args:
            values: numbers `(n,)`, of several columns `(n, k)`; of a family that is `labelled` a
                `pandas.Series` without missing values.
            label: the formula's response.

        Raises:
            DataError: naming the first row that the family cannot have.
        """
        self.check_response(values, label)
        return np.asarray(values)

    def as_weighted(
        self, y: Array, weight: Array | None, tell: bool = False
    ) -> tuple[Array, Array | None]:
        """The same response with as few columns as say it, and weights that say the rest.

        Args:
            y: as `encode` gives it.
            weight: of each row `(n,)`, or None.
            tell: whether to warn of what is odd.
        """
        return y, weight

    def counted(self, y: np.ndarray, weight: np.ndarray) -> tuple[Family, np.ndarray]:
        """The family and the response of what was observed, where weights are a part of that."""
        return self, y

    def check_training(self, y: np.ndarray, label: str) -> None:
        """Raise a `DataError`, or warn, where training rows are too much the same to learn from."""
        if np.ptp(y) == 0:
            raise DataError(f"The response `{label}` is constant ({y[0]:g}): nothing to learn.")

    def support(self, y: np.ndarray) -> np.ndarray:
        """Which values the response may take."""
        return np.isfinite(y) & (y >= self.bounds[0]) & (y <= self.bounds[1])

    def check_response(self, y: np.ndarray, label: str) -> None:
        """Raise a `DataError` where the response leaves the family's support."""
        outside = ~self.support(y)
        if outside.any():
            row = int(np.argmax(outside))
            held = ", ".join(f"{value:g}" for value in np.atleast_1d(y[row]))
            raise DataError(
                f"The response `{label}` of the {self.name} family must be {self.support_text}, but "
                f"{int(outside.sum()):,} of {len(y):,} values are not; first at row {row}: {held}."
                f"{suggest_family(y, self.binary)}"
            )

    def advice(self, y: np.ndarray) -> str | None:
        """What to consider where the response can be had, but looks like that of another family."""
        return None

    def remedy(self, trouble: str) -> str:
        """A sentence on what allows for something that a check found, after a space; or nothing."""
        found = self.remedies.get(trouble, "")
        if not found and trouble == "uneven spread" and len(self.parameters) > 1:
            first, second, *_ = self.parameters
            found = f"Give `{second}` the terms that `{first}` has."
        return found and f" {found}"

    def average(self, y: np.ndarray) -> float:
        """Of the response."""
        return float(np.mean(y))

    def residual(self, y: np.ndarray, mean: np.ndarray) -> np.ndarray:
        """How far each response is from its mean."""
        return y - mean

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
                f"{_listed(name for name in next(iter(self.links.values())) if name != self.link)}."
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


def _listed(names: Any) -> str:
    return ", ".join(f"`{name}`" for name in names)
