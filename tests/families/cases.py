"""Every family of the package with every link that it may have."""

from __future__ import annotations

import numpy as np
import pytest

from ahofm_keras.families import FAMILIES, Bernoulli, Binomial, Family, Gamma, Gaussian, Poisson

# The package's own families by name: of one parameter, and of several. Losses that are no densities, and
# censored times, have tests of their own.
_NAMES = [
    name
    for name, own in FAMILIES.items()
    if own.__module__.startswith("ahofm_keras.") and not own.is_loss and "column" in own.forms
]
ONE = [name for name in _NAMES if len(FAMILIES[name].links) == 1]
SEVERAL = [name for name in _NAMES if len(FAMILIES[name].links) > 1]

OWN = (Gaussian, Bernoulli, Poisson, Gamma, Binomial)
# Those of one parameter whose response is one number a row; others have tests of their own.
PLAIN = [family.name for family in OWN if family.forms == ("column",)]
EVERY = [family(link) for family in OWN for link in family.links["mean"]]
every_link = pytest.mark.parametrize("family", EVERY, ids=repr)

# Predictors that have a mean, and means that are neither tiny nor certain.
ETAS = {
    "identity": np.array([-3.0, -0.2, 0.0, 1.7]),
    "log": np.array([-2.0, -0.3, 0.4, 2.1]),
    "logit": np.array([-4.0, -0.5, 0.0, 2.5]),
    "probit": np.array([-2.2, -0.4, 0.0, 1.6]),
    "cloglog": np.array([-3.0, -0.7, 0.1, 0.9]),
    "softplus": np.array([-3.0, -0.2, 0.5, 2.4]),
    "cauchit": np.array([-4.0, -0.5, 0.0, 2.5]),
    "inverse_square": np.array([0.2, 0.7, 1.0, 4.0]),
    "inverse": np.array([0.2, 0.7, 1.0, 4.0]),
    "log_above_2": np.array([-1.5, -0.3, 0.4, 2.1]),
    "logit_1_2": np.array([-4.0, -0.5, 0.0, 2.5]),
    "sqrt": np.array([0.4, 0.9, 1.5, 4.0]),
}


def truth(family: Family, x: np.ndarray) -> np.ndarray:
    """A predictor that rises with x in [-1, 1] and has a mean everywhere."""
    centre = {"identity": 3.0, "log": 1.0, "inverse": 1.0, "sqrt": 2.0}.get(family.link, -0.2)
    return centre + 0.6 * x


def draw(family: Family, eta: np.ndarray, seed: int = 0, dispersion: float = 0.1) -> np.ndarray:
    """Responses of the family at predictors."""
    mean = np.asarray(family.inverse_link(eta, np))
    noise = 1.0 if family.dispersion_known else dispersion
    return np.asarray(
        family.distribution(mean, noise).rvs(random_state=np.random.default_rng(seed)), float
    )
