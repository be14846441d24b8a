"""The linear block's posterior where a nuisance is learned beside it: of the profile likelihood.

With the nuisance held where it is, rows seem to say more than they do. What following it takes is a
matrix L of the linear block (`Family.nuisance_information`), which the Poisson information loses.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ahofm_keras.solvers import tasks
from ahofm_keras.solvers.job import FitJob
from ahofm_keras.solvers.predictors import links_and_errors
from ahofm_keras.solvers.sweeps import make_engine, one_blas_thread
from ahofm_keras.solvers.weights import read_weights

# Numbers of the matrix of all functions on all rows; beyond, the intercept alone is taken out.
_MOST_NUMBERS = 2**26
# The share of a direction's information that is left at least, so that its inverse is finite.
_LEAST_LEFT = 1e-8


@one_blas_thread
def write_profile_posterior(model: Any, job: FitJob) -> None:
    """Widen the linear block's covariance by what follows from learning the nuisance.

    The intercept is a part of the nuisance, so it has neither an error nor a degree of freedom. With C
    the covariance given the nuisance and the intercept, that of the profile likelihood is (C^-1 - L)^-1.

    Args:
        model: with the posterior of a fit.
        job: on rows with the nuisance beside their responses.
    """
    layer, rows = model.posterior, job.weighted_training()
    if not model.has_posterior or not layer.intercept:
        return
    root = np.asarray(layer.linear_root).astype(float)
    covariance = root @ root.T
    given = covariance - np.outer(covariance[0], covariance[0]) / covariance[0, 0]
    given[0], given[:, 0] = 0.0, 0.0
    edf = np.asarray(layer.linear_edf).astype(float)
    edf[0] = 0.0
    if len(rows) * len(root) <= _MOST_NUMBERS:
        engine = make_engine(model, job, variational=False)
        state = engine.linearise(read_weights(model, engine.start()))
        functions = engine.store.collect(tasks.linear_functions, state)
        eta, _ = links_and_errors(model, rows)[next(iter(model.design.predictors))]
        parameters = model.family.inverse_links({next(iter(model.family.parameters)): eta})
        lost = model.family.nuisance_information(rows.y, functions, parameters, rows.weight)
        given = _without(given, lost)
        left = state.gram - lost
        edf[1:] = np.einsum("ij,ji->i", given, left)[1:]
    smoothing = np.asarray(layer.smoothing_root).astype(float)
    smoothing[0] = 0.0
    layer.linear_root.assign(_root(given))
    layer.smoothing_root.assign(smoothing)
    layer.linear_edf.assign(edf)


def _without(covariance: np.ndarray, lost: np.ndarray) -> np.ndarray:
    """(C^-1 - L)^-1 of a covariance C that may be singular."""
    root = _root(covariance)
    values, vectors = np.linalg.eigh(np.eye(len(root)) - root.T @ lost @ root)
    wide = root @ vectors / np.sqrt(np.maximum(values, _LEAST_LEFT))
    return np.asarray(wide @ wide.T)


def _root(covariance: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))
