"""Response distributions: link, deviance, start, support; as Keras loss and metric.

A family's functions take `numpy` or `keras.ops` as their last argument, so training, tables and tests
share one formula.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
from keras import ops
from scipy import stats
from scipy.optimize import brentq, minimize_scalar

from ahofm_keras.errors import DataError, did_you_mean

Array = Any
Namespace = Any

# Between a probability and 0 or 1, and between a mean and 0, so that logarithms stay finite.
_LEAST_PROBABILITY = 1e-15
_LEAST_MEAN = 1e-300
# exp() of more overflows before sums over rows do.
LARGEST_LOG = 300.0
# Keras adds losses up in float32.
_LARGEST_LOSS = 1e37


@dataclass(frozen=True)
class Family:
    """A response distribution with its canonical or usual link.

    Args:
        name: key in `FAMILIES`.
        link: name of the link function g.
        link_function: g, from mean to predictor, NumPy.
        inverse_link: g^-1, `(eta, namespace) -> mean`.
        unit_deviance: `(y, mean, namespace) -> 2 (log-likelihood of y at y minus at mean)` at
            dispersion 1.
        slope: derivative of the mean by the predictor, as a function of the mean, NumPy.
        variance: of the response at dispersion 1, as a function of the mean, NumPy.
        distribution: `(mean, dispersion) ->` the response's distribution in SciPy.
        rough_mean: `(y, average) ->` a mean of each row to start a fit from, inside the support, NumPy.
        support: `(y,) -> bool array` of the values that the response may take.
        support_text: the same in words.
        scaled: whether the response is standardised inside, because the family is equivariant.
        dispersed: whether the dispersion is estimated, not 1.
        discrete: whether the response is a whole number.
        least_slope: slope and variance stay above this in a fit: a row of a mean at the edge of the
            support says nothing. 0 where a row says as much at any mean.
    """

    name: str
    link: str
    link_function: Callable[[Array], Array]
    inverse_link: Callable[[Array, Namespace], Array]
    unit_deviance: Callable[[Array, Array, Namespace], Array]
    slope: Callable[[np.ndarray], np.ndarray]
    variance: Callable[[np.ndarray], np.ndarray]
    distribution: Callable[[np.ndarray, Any], Any]
    rough_mean: Callable[[np.ndarray, float], np.ndarray]
    support: Callable[[np.ndarray], np.ndarray]
    support_text: str
    scaled: bool = False
    dispersed: bool = False
    discrete: bool = False
    least_slope: float = 1e-10

    def check_response(self, y: np.ndarray, label: str) -> None:
        """Raise a `DataError` where the response leaves the family's support."""
        outside = ~self.support(y)
        if outside.any():
            row = int(np.argmax(outside))
            raise DataError(
                f"The response `{label}` of the {self.name} family must be {self.support_text}, but "
                f"{int(outside.sum()):,} of {len(y):,} values are not; first at row {row}: {y[row]:g}."
            )

    def start(
        self, y: np.ndarray, offset: np.ndarray | float = 0.0, weight: np.ndarray | None = None
    ) -> float:
        """The intercept of the model without terms: sum of g^-1(a + offset) equals the sum of y."""
        mean = float(np.average(y, weights=weight))
        if np.ndim(offset) == 0:
            return float(self.link_function(np.asarray(mean))) - float(offset)
        if self.scaled:
            return float(np.average(y - offset, weights=weight))

        def excess(intercept: float) -> float:
            fitted = self.inverse_link(intercept + np.asarray(offset), np)
            return float(np.average(fitted, weights=weight)) - mean

        centre = float(self.link_function(np.asarray(mean)))
        reach = 1.0 + float(np.max(np.abs(offset)))
        return float(brentq(excess, centre - reach, centre + reach))

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
            if not np.isfinite(
                self.link_function(np.asarray(average))
            ):  # all of one class, all counts 0
                return np.full(y.shape, average)
        # With a link that is not the family's own, equal sums of mean and response are not the optimum.
        start = self.start(y, offset, weight)
        return mean(minimize_scalar(deviance, (start - 0.1, start + 0.1)).x)

    def log_likelihood(
        self, y: np.ndarray, mean: np.ndarray, dispersion: float, weight: np.ndarray
    ) -> float:
        """Sum over rows; a weight divides the dispersion, or counts a row several times without one."""
        rows = weight > 0
        y, mean, weight = y[rows], mean[rows], weight[rows]
        if self.dispersed:
            return float(self.distribution(mean, dispersion / weight).logpdf(y).sum())
        distribution = self.distribution(mean, 1.0)
        log = distribution.logpmf if self.discrete else distribution.logpdf
        return float(log(y) @ weight)


def _log_ratio(y: Array, mean: Array, namespace: Namespace) -> Array:
    """y log(y / mean), 0 where y is 0."""
    safe = namespace.where(y > 0, y, namespace.ones_like(y))
    return namespace.where(y > 0, y * namespace.log(safe / mean), namespace.zeros_like(y))


def _positive(mean: Array, namespace: Namespace) -> Array:
    return namespace.maximum(mean, _LEAST_MEAN)


def _exp(eta: Array, namespace: Namespace) -> Array:
    return namespace.exp(namespace.clip(eta, -LARGEST_LOG, LARGEST_LOG))


def _bernoulli_deviance(y: Array, mean: Array, namespace: Namespace) -> Array:
    mean = namespace.clip(mean, _LEAST_PROBABILITY, 1 - _LEAST_PROBABILITY)
    return -2 * (y * namespace.log(mean) + (1 - y) * namespace.log(1 - mean))


def _poisson_deviance(y: Array, mean: Array, namespace: Namespace) -> Array:
    mean = _positive(mean, namespace)
    return 2 * (_log_ratio(y, mean, namespace) - (y - mean))


def _gamma_deviance(y: Array, mean: Array, namespace: Namespace) -> Array:
    ratio = y / _positive(mean, namespace)
    return 2 * (ratio - 1 - namespace.log(ratio))


FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        Family(
            "gaussian",
            "identity",
            lambda mean: mean,
            lambda eta, xp: eta,
            lambda y, mean, xp: (y - mean) ** 2,
            np.ones_like,
            np.ones_like,
            lambda mean, dispersion: stats.norm(mean, np.sqrt(dispersion)),
            lambda y, average: y,
            np.isfinite,
            "finite",
            scaled=True,
            dispersed=True,
        ),
        Family(
            "bernoulli",
            "logit",
            lambda mean: np.log(mean / (1 - mean)),
            lambda eta, xp: (1 + xp.tanh(eta / 2)) / 2,  # exp(-eta) would overflow
            _bernoulli_deviance,
            lambda mean: mean * (1 - mean),
            lambda mean: mean * (1 - mean),
            lambda mean, dispersion: stats.bernoulli(mean),
            lambda y, average: (y + average) / 2,
            lambda y: (y == 0) | (y == 1),
            "0 or 1",
            discrete=True,
        ),
        Family(
            "poisson",
            "log",
            np.log,
            _exp,
            _poisson_deviance,
            lambda mean: mean,
            lambda mean: mean,
            lambda mean, dispersion: stats.poisson(mean),
            lambda y, average: (y + average) / 2,
            lambda y: np.isfinite(y) & (y >= 0) & (y == np.floor(y)),
            "whole numbers from 0 on",
            discrete=True,
        ),
        Family(
            "gamma",
            "log",
            np.log,
            _exp,
            _gamma_deviance,
            lambda mean: mean,
            lambda mean: mean**2,
            lambda mean, dispersion: stats.gamma(1 / dispersion, scale=mean * dispersion),
            # From a mean far above the response a step of the log link goes down by 1, no further.
            lambda y, average: y,
            lambda y: np.isfinite(y) & (y > 0),
            "above 0",
            dispersed=True,
            least_slope=0.0,
        ),
    )
}


# Names that other packages have for a family, its model or its loss, in small letters without signs.
_OTHER_NAMES = {
    "gaussian": (
        "gauss l2 leastsquares linear meansquarederror mse no norm normal ols reglinear regression "
        "regressionl2 regsquarederror rmse squarederror squaredloss"
    ),
    "bernoulli": (
        "bernoullilogit bernoulliprob bi binary binarycrossentropy binarylogistic binomial binomialprob "
        "crossentropy logistic logisticregression logit logloss"
    ),
    "poisson": "count countpoisson counts po poissondeviance poissonrate",
    "gamma": "ga gammadeviance reggamma",
}
_SAME = {name: family for family, names in _OTHER_NAMES.items() for name in names.split()}

_COUNTS = (
    "Counts that vary more than their mean are not here yet; nearest is `poisson`, which assumes that "
    "they vary as much: its fitted means serve; multiply its standard errors by the root of `Pearson "
    "chi2 / df` in `ak.check(model)`."
)
_CLASSES = (
    "More than two classes are not here yet; nearest is `bernoulli`, which assumes two: fit one model a "
    "class, with 1 for that class and 0 for the others, or of ordered classes one a threshold."
)
_TAILS = (
    "Heavy tails and quantiles are not here yet; nearest is `gaussian`, which assumes that far values "
    "are rare: model `log(y)` or leave out wrong rows, and take intervals that hold for any response, "
    '`predict(data, interval=0.9, method="conformal", calibration=other_rows)`.'
)
_SPREADS = (
    "A spread that has a formula of its own is not here yet; nearest is `gaussian`, which assumes one "
    "spread of all rows: model `log(y)` where it grows with the mean, or give rows of less spread a "
    "larger `sample_weight`."
)
# What others have and is not here: the nearest family, what it assumes, what to do.
_NOT_HERE = {
    _COUNTS: "geometric nb nbi nbii negativebinomial negbin nbinom2 pig quasipoisson",
    _CLASSES: (
        "categorical cumulative multiclass multiclassova multinom multinomial multisoftmax ocat ordered "
        "ordinal softmax"
    ),
    _TAILS: (
        "absoluteerror cauchy expectile huber l1 laplace mae pinball quantile regressionl1 scat "
        "studentt t tf"
    ),
    _SPREADS: "gammals gaulss gevlss gumbls jsu shash",
    "Shares between 0 and 1 are not here yet; nearest is `gaussian` of `log(y / (1 - y))`, which "
    "assumes one spread there. Of k successes in m trials `bernoulli` is exact: a row of 1 with "
    "`sample_weight` k, a row of 0 with m - k.": "be beta betabinomial betar quasibinomial",
    "Amounts with exact zeros are not here yet; nearest is `gamma`, which assumes amounts above 0: fit "
    "a `bernoulli` model of y > 0, a `gamma` model on the rows above 0, and multiply their "
    "predictions.": "regtweedie tw tweedie zaga",
    "Counts with zeros of their own are not here yet; nearest is `poisson`, which assumes as many zeros "
    "as its mean gives: fit a `bernoulli` model of y > 0 beside it where there are more.": (
        "hurdle zeroinflatedpoisson zip ziplss zinb"
    ),
    "Censored times are not here yet; nearest is `poisson` with an offset, which assumes a constant "
    "rate within each interval: cut each time into intervals, model whether it ends there, and add "
    "`offset(log(time))`.": "aft cox coxph coxnet exponential survival survivalcox weibull",
    "An inverse gaussian is not here yet; nearest is `gamma`, which assumes that the standard deviation "
    "grows with the mean, not with its power 1.5.": "ig inversegaussian invgauss",
    "A lognormal response is `gaussian` of its logarithm: write `log(y) ~ ...`.": (
        "logno lognorm lognormal"
    ),
}
_ADVICE = {name: advice for advice, names in _NOT_HERE.items() for name in names.split()}


def get_family(name: str) -> Family:
    """The family of that name.

    Raises:
        DataError: naming the families that there are.
    """
    if not isinstance(name, str) or name not in FAMILIES:
        listed = ", ".join(f"`{known}`" for known in FAMILIES)
        raise DataError(f"Unknown family {_shown(name)}.{_family_hint(name)} Known families: {listed}.")
    return FAMILIES[name]


def _shown(name: Any) -> str:
    return repr(name) if isinstance(name, str | None) else type(name).__name__


def _family_hint(name: Any) -> str:
    """What to write in the place of a name, or of an object that other packages have for a family."""
    word = name if isinstance(name, str) else getattr(name, "__name__", type(name).__name__)
    spoken = re.sub(r"[\W_]+", "", word.lower())
    if spoken in _SAME:
        support = FAMILIES[_SAME[spoken]].support_text
        return f" Here it is called `{_SAME[spoken]}`, of responses that are {support}."
    if spoken in _ADVICE:
        return f" {_ADVICE[spoken]}"
    return did_you_mean(word, FAMILIES) or ("" if isinstance(name, str) else " Give its name.")


@keras.saving.register_keras_serializable(package="ahofm_keras")
class HalfDeviance(keras.losses.Loss):
    """Half the unit deviance in units of the response's scale: the loss beside which lambda is set.

    The paper minimises a sum of losses plus half the penalty. Keras takes means, so loss and penalty
    are both divided by n, and the squared error is halved: with a plain mean squared error lambda
    would be off by a factor of 2.

    Args:
        family: a key of `FAMILIES`.
        scale: the response's scale inside the model; a number, or the weight that holds it.
    """

    def __init__(
        self,
        family: str,
        scale: Any = 1.0,
        name: str = "half_deviance",
        reduction: str = "sum_over_batch_size",
    ) -> None:
        # Responses far from 0 (years, counts of seconds) would lose their digits in float32.
        super().__init__(name=name, reduction=reduction, dtype="float64")
        self.family = get_family(family)
        self.scale = scale if isinstance(scale, keras.Variable) else float(scale)

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        # Keras adds the regularizers, which have the default precision.
        loss = ops.minimum(super().__call__(y_true, y_pred, sample_weight), _LARGEST_LOSS)
        return ops.cast(loss, keras.config.floatx())

    def call(self, y_true: Any, y_pred: Any) -> Any:
        y_true = ops.reshape(y_true, ops.shape(y_pred))  # (n, 1) and (n,) would make (n, n)
        return self.family.unit_deviance(y_true, y_pred, ops) / (
            2 * ops.square(ops.cast(self.scale, "float64"))
        )

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "family": self.family.name, "scale": float(self.scale)}


@keras.saving.register_keras_serializable(package="ahofm_keras")
class Deviance(keras.metrics.Metric):
    """Mean unit deviance, without the penalty that Keras mixes into `val_loss`.

    For the gaussian family it is the mean squared error in the response's own units.
    """

    def __init__(self, family: str, name: str = "deviance", dtype: Any = None) -> None:
        super().__init__(name=name, dtype=dtype)
        self._direction = "down"  # less is better: callbacks that monitor it ask for that
        self.family = get_family(family)
        self.total = self.add_variable(shape=(), initializer="zeros", name="total", dtype="float64")
        self.weight = self.add_variable(shape=(), initializer="zeros", name="weight", dtype="float64")

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        y_pred = ops.cast(y_pred, "float64")
        y_true = ops.reshape(ops.cast(y_true, "float64"), ops.shape(y_pred))
        deviance = self.family.unit_deviance(y_true, y_pred, ops)
        weight = ops.ones_like(deviance)
        if sample_weight is not None:
            weight = ops.reshape(ops.cast(sample_weight, "float64"), ops.shape(deviance))
        self.total.assign_add(ops.sum(weight * deviance))
        self.weight.assign_add(ops.sum(weight))

    def result(self) -> Any:
        return self.total / ops.maximum(self.weight, _LEAST_MEAN)

    def get_config(self) -> dict[str, Any]:
        return {"name": self.name, "dtype": self.dtype, "family": self.family.name}
