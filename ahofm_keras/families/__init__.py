"""Response distributions: one class each, with its links; as Keras loss and metric."""

# In the order in which they are listed.
from ahofm_keras.families.gaussian import Gaussian  # isort: skip
from ahofm_keras.families.binary import Bernoulli  # isort: skip
from ahofm_keras.families.counts import Poisson  # isort: skip
from ahofm_keras.families.positive import Gamma  # isort: skip
from ahofm_keras.families.binomial import Binomial  # isort: skip
from ahofm_keras.families.gaussian_ls import GaussianLS  # isort: skip
from ahofm_keras.families.gamma_ls import GammaLS  # isort: skip
from ahofm_keras.families.student_t import StudentT  # isort: skip
from ahofm_keras.families.laplace import Laplace  # isort: skip
from ahofm_keras.families.logistic import Logistic  # isort: skip
from ahofm_keras.families.shash import Shash  # isort: skip
from ahofm_keras.families.lognormal import LogNormal  # isort: skip
from ahofm_keras.families.inverse_gaussian import InverseGaussian  # isort: skip
from ahofm_keras.families.weibull import Weibull  # isort: skip
from ahofm_keras.families.beta import Beta  # isort: skip
from ahofm_keras.families.negative_binomial import NegativeBinomial  # isort: skip
from ahofm_keras.families.negative_binomial_1 import NegativeBinomial1  # isort: skip
from ahofm_keras.families.generalized_poisson import GeneralizedPoisson  # isort: skip
from ahofm_keras.families.quantile import Quantile  # isort: skip
from ahofm_keras.families.expectile import Expectile  # isort: skip
from ahofm_keras.families.tweedie import Tweedie  # isort: skip
from ahofm_keras.families.zero_inflated import (  # isort: skip
    HurdlePoisson,
    ZeroInflatedNegativeBinomial,
    ZeroInflatedPoisson,
)
from ahofm_keras.families.cox import Cox  # isort: skip
from ahofm_keras.families.categorical import Categorical  # isort: skip
from ahofm_keras.families.ordinal import Ordinal  # isort: skip
from ahofm_keras.families.base import Family
from ahofm_keras.families.custom import CustomFamily, custom
from ahofm_keras.families.exponential import ExponentialFamily
from ahofm_keras.families.links import LINKS, Link
from ahofm_keras.families.losses import Deviance, HalfDeviance
from ahofm_keras.families.overview import overview
from ahofm_keras.families.registry import FAMILIES, get_family, register_family

__all__ = [
    "FAMILIES",
    "LINKS",
    "Bernoulli",
    "Beta",
    "Binomial",
    "Categorical",
    "Cox",
    "CustomFamily",
    "Deviance",
    "Expectile",
    "ExponentialFamily",
    "Family",
    "Gamma",
    "GammaLS",
    "Gaussian",
    "GaussianLS",
    "GeneralizedPoisson",
    "HalfDeviance",
    "HurdlePoisson",
    "InverseGaussian",
    "Laplace",
    "Link",
    "LogNormal",
    "Logistic",
    "NegativeBinomial",
    "NegativeBinomial1",
    "Ordinal",
    "Poisson",
    "Quantile",
    "Shash",
    "StudentT",
    "Tweedie",
    "Weibull",
    "ZeroInflatedNegativeBinomial",
    "ZeroInflatedPoisson",
    "custom",
    "get_family",
    "overview",
    "register_family",
]
