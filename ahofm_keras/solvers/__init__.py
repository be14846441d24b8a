"""Ways to set the weights of a model: one file a solver."""

from ahofm_keras.solvers.adam import fit_adam
from ahofm_keras.solvers.job import FitJob

SOLVERS = {"adam": fit_adam}

__all__ = ["SOLVERS", "FitJob", "fit_adam"]
