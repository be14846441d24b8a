"""Names that other packages have for a family, and what to do where there is none here."""

from __future__ import annotations

import re

# What mgcv, gamlss and others call a family, as they write it.
_ELSEWHERE = {
    "gaussian": "NO normal",
    "bernoulli": "binomial BI",
    "poisson": "PO count:poisson",
    "gamma": "Gamma GA",
    "binomial": "binomial BI",
    "gaussian_ls": "gaulss NO",
    "gamma_ls": "gammals GA",
    "student_t": "scat TF",
    "laplace": "LA",
    "logistic": "LO",
    "shash": "SHASHo",
    "lognormal": "LOGNO",
    "inverse_gaussian": "inverse.gaussian IG",
    "weibull": "WEI",
    "beta": "betar BE",
    "negative_binomial": "nb NBI",
    "negative_binomial_1": "quasipoisson NBII nbinom1",
    "tweedie": "tw twlss",
    "zero_inflated_poisson": "ziP ZIP",
    "zero_inflated_negative_binomial": "ZINBI",
    "hurdle_poisson": "ZAP ziplss",
    "categorical": "multinom",
    "ordinal": "ocat polr",
    "quantile": "qgam rq",
    "expectile": "expectreg",
}
# Names that other packages have for a family, its model or its loss, in small letters without signs.
_OTHER_NAMES = {
    "gaussian": (
        "gauss l2 leastsquares linear meansquarederror mse no norm normal ols reglinear regression "
        "regressionl2 regsquarederror rmse squarederror squaredloss"
    ),
    "bernoulli": (
        "bernoullilogit bernoulliprob binary binarycrossentropy binarylogistic "
        "crossentropy logisticregression logit logloss"
    ),
    "binomial": "bi binom binomiallogit binomialprob cbind proportion",
    "cox": "coxnet coxph proportionalhazards survival survivalcox",
    "poisson": "count countpoisson counts po poissondeviance poissonrate",
    "gamma": "ga gammadeviance reggamma",
    "gaussian_ls": "gaulss gaussianls heteroscedastic locationscale normalls normalmeanvariance",
    "gamma_ls": "gammals",
    "student_t": "scat student studentst t tf tf2 tdist",
    "laplace": "absoluteerror doubleexponential l1 la mae regressionl1",
    "logistic": "lo logisticdistribution",
    "lognormal": "logno lognorm",
    "inverse_gaussian": "ig inversegaussian invgauss wald",
    "weibull": "wei weibullmin weibullaft",
    "beta": "be betar betaregression",
    "negative_binomial": "nb nbi nbinom nbinom2 negativebinomial negativebinomialp negbin",
    "negative_binomial_1": "nbii nbinom1 negativebinomialtype1 negativebinomial1 quasipoisson",
    "shash": "sinharcsinh sinhasinh shasho shasho2",
    "quantile": "ald asymmetriclaplace checkloss elf pinball pinballloss qgam quantileloss quantreg rq",
    "expectile": "asymmetricleastsquares expectilegam laws",
    "zero_inflated_poisson": "zeroinflatedpoisson zip zipoisson",
    "zero_inflated_negative_binomial": "zeroinflatednegativebinomial zeroinflatednegbin zinb zinbi",
    "tweedie": "compoundpoissongamma regtweedie tw",
    "categorical": "multiclass multiclassova multinom multinomial multisoftmax softmax",
    "ordinal": "cumulative ocat ordered ordinalregression polr proportionalodds",
    "hurdle_poisson": "hurdle hurdlepoisson truncatedpoisson zap ziplss",
}
_SAME = {name: family for family, names in _OTHER_NAMES.items() for name in names.split()}

_COUNTS = (
    "Counts of this kind are not here yet; nearest is `negative_binomial`, which assumes that their "
    "variance is mean + dispersion times the square of the mean, or `negative_binomial_1`, (1 + "
    "dispersion) times the mean."
)
_TAILS = (
    "Losses that are no density are not here yet; nearest is `student_t`, which assumes heavy tails of "
    "a weight that is estimated: far values count little; `laplace` has its best location at a median. "
    "For intervals that hold for any response take "
    '`predict(data, interval=0.9, method="conformal", calibration=other_rows)`.'
)
_SPREADS = (
    "This distribution is not here yet; nearest is `shash`, which assumes that a response is normal up "
    "to a skewness and a weight of its tails, with a formula for each."
)
# What others have and is not here: the nearest family, what it assumes, what to do.
_NOT_HERE = {
    _COUNTS: "compoisson generalizedpoisson geometric gpo pig",
    _TAILS: "cauchy huber",
    _SPREADS: "gev gevlss gumbel gumbls skewnormal sn",
    "Successes that vary more than those of independent trials are not here yet; nearest is `binomial`, "
    "which assumes that trials do not depend on each other: a level for each group of trials, "
    "`s(group)`, takes up what they have in common.": "betabinomial quasibinomial",
    "Zeros with a probability of their own beside amounts are not here yet; nearest is `tweedie`, which "
    "assumes that they grow rarer as the mean grows.": "zaga zaig",
    "Censored times of a distribution are not here yet; nearest is `cox`, which assumes that hazards "
    "are in proportion, and takes any course of theirs.": "aft exponential",
}
_ADVICE = {name: advice for advice, names in _NOT_HERE.items() for name in names.split()}


def own_name(word: str) -> str | None:
    """What a family that other packages have is called here."""
    return _SAME.get(_spoken(word))


def names_elsewhere(family: str) -> list[str]:
    """A few names that other packages have for a family."""
    return _ELSEWHERE.get(family, "").split()


def advice_on(word: str) -> str | None:
    """The nearest family to one that is not here, what it assumes, what to do."""
    return _ADVICE.get(_spoken(word))


def _spoken(word: str) -> str:
    """Small letters without signs."""
    return re.sub(r"[\W_]+", "", word.lower())
