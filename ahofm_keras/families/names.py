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
    "generalized_poisson": "genpois GPO",
    "cox": "cox.ph coxph",
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
        "gauss l2 leastsquares linear meansquarederror mse no no2 nof norm normal ols reglinear "
        "regression regressionl2 regsquarederror rmse squarederror squaredloss"
    ),
    "bernoulli": (
        "bernoullilogit bernoulliprob binary binarycrossentropy binarylogistic "
        "crossentropy logisticregression logit logloss"
    ),
    "binomial": "bi binom binomiallogit binomialprob cbind proportion",
    "cox": "coxnet coxph phreg proportionalhazards survival survivalcox",
    "poisson": "count countpoisson counts po poissondeviance poissonrate",
    "gamma": "ga gammadeviance reggamma",
    "gaussian_ls": "gaulss gaussianls heteroscedastic locationscale normalls normalmeanvariance",
    "gamma_ls": "gammals",
    "student_t": "scat student studentst studentt t tf tf2 tdist tfamily",
    "laplace": "absoluteerror doubleexponential l1 la mae regressionl1",
    "logistic": "lo logisticdistribution",
    "lognormal": "lno logno logno2 lognorm",
    "inverse_gaussian": "ig inversegaussian invgauss wald",
    "weibull": "wei wei2 wei3 weibullmin weibullaft",
    "beta": "be beo betafamily betamodel betar betaregression",
    "negative_binomial": "nb nbi nbinom nbinom2 negativebinomial negativebinomialp negbin negbinomial",
    "negative_binomial_1": "nbii nbinom1 negativebinomialtype1 negativebinomial1 quasipoisson",
    "generalized_poisson": (
        "generalisedpoisson generalizedpoisson generalizedpoissonp genpois genpoisson genpoisson1 "
        "genpoisson2 gpo"
    ),
    "shash": "sinharcsinh sinhasinh shasho shasho2",
    "quantile": (
        "ald asymlaplace asymmetriclaplace checkloss elf pinball pinballloss qgam quantileloss "
        "quantreg rq"
    ),
    "expectile": "asymmetricleastsquares expectilegam expectreg laws",
    "zero_inflated_poisson": "zeroinflatedpoisson zip zip2 zipoisson",
    "zero_inflated_negative_binomial": (
        "zeroinflatednegativebinomial zeroinflatednegativebinomialp zeroinflatednegbin "
        "zeroinflatednegbinomial zinb zinbi"
    ),
    "tweedie": "compoundpoissongamma regtweedie tw twlss",
    "categorical": (
        "mn3 mn4 mn5 mnlogit multiclass multiclassova multin multinom multinomial multisoftmax softmax"
    ),
    "ordinal": "cumulative ocat ordered orderedmodel ordinalregression polr proportionalodds",
    "hurdle_poisson": "hurdle hurdlepoisson truncatedpoisson zap ziplss",
}
_SAME = {name: family for family, names in _OTHER_NAMES.items() for name in names.split()}

_COUNTS = (
    "Counts of this kind are not here yet; nearest is `negative_binomial`, which assumes that their "
    "variance is mean + dispersion times the square of the mean, or `negative_binomial_1` and "
    "`generalized_poisson`, (1 + dispersion) times the mean. None of them varies less than a Poisson "
    "distribution: counts out of a known number, which do, are `binomial`."
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
_AMOUNTS = (
    "This distribution of amounts is not here yet; nearest are `gamma_ls`, `lognormal`, "
    "`inverse_gaussian` and `weibull`, of two parameters; for a skewness and tails of their own take "
    "`shash` of the logarithm, `log(y) ~ ...`."
)
_ENDS = (
    "Shares with a probability of 0 or 1 of their own are not here yet; nearest is `beta`, which "
    "assumes shares between them: move those at the ends inside, or model them by `bernoulli` apart."
)
_ZEROS = (
    "Zeros beside counts of this kind are not here yet; nearest is `zero_inflated_negative_binomial`, "
    "which assumes that they come on top of those of its counts; `hurdle_poisson` has fewer zeros too."
)
# What others have and is not here: the nearest family, what it assumes, what to do.
_NOT_HERE = {
    _COUNTS: (
        "compois compoisson conwaymaxwellpoisson dburr12 del doublepoisson dpo geom geometric geomo lg "
        "nbf pig pig2 si sichel waring yule zipf"
    ),
    _TAILS: "cauchy huber",
    _SPREADS: (
        "egb2 exgaus exgaussian exponnorm gengamma genextremevalue gev gevlss gt gu gumbel gumbls jsu "
        "jsuo net pe pe2 powerexponential rg sep sep1 sep2 sep3 sep4 skewnormal sn sn1 sn2 sst ssttr st "
        "st1 st2 st3 st4 st5"
    ),
    _AMOUNTS: (
        "bccg bccgo bcpe bcpeo bct bcto exp exponential frechet gb2 gg gig gp igamma pareto pareto1 "
        "pareto1o pareto2 pareto2o shiftedlognormal"
    ),
    _ENDS: "beinf beinf0 beinf1 beoi bezi ordbeta zeroinflatedbeta zerooneinflatedbeta",
    _ZEROS: (
        "hurdlenegbinomial truncatednbinom1 truncatednbinom2 zalg zanbi zasichel zazipf zinbf zipig "
        "zisichel"
    ),
    "Shares of this kind are not here yet; nearest is `beta`, which assumes that their variance is "
    "mean (1 - mean) / (1 + precision).": "logitno simplex",
    "Quasi-likelihoods are not here: a variance is that of a distribution. One that grows with the mean "
    "is that of `negative_binomial_1` for counts and of `tweedie`, whose power is estimated, for "
    "amounts.": "quasi",
    "Successes that vary more than those of independent trials are not here yet; nearest is `binomial`, "
    "which assumes that trials do not depend on each other: a level for each group of trials, "
    "`s(group)`, takes up what they have in common.": (
        "bb betabinomial dbi quasibinomial zabb zabi zibb zibi"
    ),
    "Zeros with a probability of their own beside amounts are not here yet; nearest is `tweedie`, which "
    "assumes that they grow rarer as the mean grows.": "hurdlegamma hurdlelognormal zaga zaig",
    "Censored responses of a distribution are not here yet; nearest is `cox`, of times, which assumes "
    "that hazards are in proportion, and takes any course of theirs.": (
        "aft bcg clog cnorm cpois tobit"
    ),
    "Other models of ordered classes are not here yet; nearest is `ordinal`, which assumes that one "
    "predictor moves all thresholds.": "acat cratio sratio",
    "Several responses in one model are not here: fit a model of each.": "dirichlet gfam mvn",
}
_ADVICE = {name: advice for advice, names in _NOT_HERE.items() for name in names.split()}
_CUSTOM = " `ak.families.custom` makes a family of any log-probability."


def own_name(word: str) -> str | None:
    """What a family that other packages have is called here."""
    return _SAME.get(_spoken(word))


def names_of_others() -> list[str]:
    """All names that have an answer."""
    return [*_SAME, *_ADVICE]


def names_elsewhere(family: str) -> list[str]:
    """A few names that other packages have for a family."""
    return _ELSEWHERE.get(family, "").split()


def advice_on(word: str) -> str | None:
    """The nearest family to one that is not here, what it assumes, what to do."""
    found = _ADVICE.get(_spoken(word))
    return found and found + _CUSTOM


def _spoken(word: str) -> str:
    """Small letters without signs, and without what a call has in brackets: `ocat(R=4)`."""
    return re.sub(r"[\W_]+", "", word.partition("(")[0].lower())
