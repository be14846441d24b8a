"""Response distributions: one class each, with its links; as Keras loss and metric."""

# In the order in which they are listed.
from ahofm_keras.families.gaussian import Gaussian  # isort: skip
from ahofm_keras.families.binary import Bernoulli  # isort: skip
from ahofm_keras.families.counts import Poisson  # isort: skip
from ahofm_keras.families.positive import Gamma  # isort: skip
from ahofm_keras.families.base import Family
from ahofm_keras.families.exponential import ExponentialFamily
from ahofm_keras.families.links import LINKS, Link
from ahofm_keras.families.losses import Deviance, HalfDeviance
from ahofm_keras.families.registry import FAMILIES, get_family, register_family

__all__ = [
    "FAMILIES",
    "LINKS",
    "Bernoulli",
    "Deviance",
    "ExponentialFamily",
    "Family",
    "Gamma",
    "Gaussian",
    "HalfDeviance",
    "Link",
    "Poisson",
    "get_family",
    "register_family",
]
