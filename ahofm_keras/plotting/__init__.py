"""Pictures of fitted models, with matplotlib (extra `plot`).

Every picture `plot_x(...)` has a sibling `x_data(...)` that takes the same arguments and returns the
data behind it as a frame.
"""

from ahofm_keras.plotting.check import plot_check
from ahofm_keras.plotting.coefficients import coefficient_data, plot_coefficients
from ahofm_keras.plotting.effects import effect_data, plot_effect
from ahofm_keras.plotting.entry import plot, plot_data
from ahofm_keras.plotting.factors import factor_data, plot_factors
from ahofm_keras.plotting.history import history_data, plot_history
from ahofm_keras.plotting.maps import interaction_map_data, plot_interaction_map, triple_data
from ahofm_keras.plotting.marginals import marginal_data, plot_marginals
from ahofm_keras.plotting.regions import plot_regions, regions_data
from ahofm_keras.plotting.rug import residual_data, rug_data
from ahofm_keras.plotting.survival import plot_survival
from ahofm_keras.plotting.waterfall import explanation_data, plot_explanation

__all__ = [
    "coefficient_data",
    "effect_data",
    "explanation_data",
    "factor_data",
    "history_data",
    "interaction_map_data",
    "marginal_data",
    "plot",
    "plot_check",
    "plot_coefficients",
    "plot_data",
    "plot_effect",
    "plot_explanation",
    "plot_factors",
    "plot_history",
    "plot_interaction_map",
    "plot_marginals",
    "plot_regions",
    "plot_survival",
    "regions_data",
    "residual_data",
    "rug_data",
    "triple_data",
]
