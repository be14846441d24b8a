"""The model's parts as Keras layers, registered for saving."""

from ahofm_keras.layers.inputs import Offset, ParametricColumns, Positions
from ahofm_keras.layers.posterior import Posterior
from ahofm_keras.layers.predictor import Predictor, Response
from ahofm_keras.layers.tensors import TensorProduct
from ahofm_keras.layers.terms import BasisExpansion, FactorizedInteraction, Linear, Smooth

__all__ = [
    "BasisExpansion",
    "FactorizedInteraction",
    "Linear",
    "Offset",
    "ParametricColumns",
    "Positions",
    "Posterior",
    "Predictor",
    "Response",
    "Smooth",
    "TensorProduct",
]
