"""Names that other packages have for a family, and what to do where there is none here."""

from __future__ import annotations

import re

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


def own_name(word: str) -> str | None:
    """What a family that other packages have is called here."""
    return _SAME.get(_spoken(word))


def advice_on(word: str) -> str | None:
    """The nearest family to one that is not here, what it assumes, what to do."""
    return _ADVICE.get(_spoken(word))


def _spoken(word: str) -> str:
    """Small letters without signs."""
    return re.sub(r"[\W_]+", "", word.lower())
