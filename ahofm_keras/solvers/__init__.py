"""Ways to set the weights of a model: one file per solver."""

from ahofm_keras.solvers.adam import fit_adam
from ahofm_keras.solvers.bcd import fit_bcd
from ahofm_keras.solvers.choice import AUTO, choose_solver
from ahofm_keras.solvers.hybrid import fit_hybrid
from ahofm_keras.solvers.job import FitJob
from ahofm_keras.solvers.variational import fit_variational

SOLVERS = {
    "adam": fit_adam,
    "bcd": fit_bcd,
    "hybrid": fit_hybrid,
    "variational": fit_variational,
}

__all__ = ["AUTO", "SOLVERS", "FitJob", "choose_solver"]
