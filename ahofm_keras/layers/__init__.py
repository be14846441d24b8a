"""The model's parts as Keras layers, registered for saving."""

from ahofm_keras.layers.basis import BasisExpansion
from ahofm_keras.layers.inputs import Offset, ParametricColumns, Positions
from ahofm_keras.layers.interaction import FactorizedInteraction
from ahofm_keras.layers.limit import RangeLimit
from ahofm_keras.layers.linear import Linear
from ahofm_keras.layers.network import BlockColumns, NetInput, OrthogonalComplement
from ahofm_keras.layers.posterior import Posterior
from ahofm_keras.layers.predictor import ClassLabel, MeanResponse, Predictor, Response
from ahofm_keras.layers.radial import RadialExpansion
from ahofm_keras.layers.scaled import Scaled
from ahofm_keras.layers.shaped import ShapedSmooth
from ahofm_keras.layers.smooth import Smooth
from ahofm_keras.layers.sparse import SparseLinear
from ahofm_keras.layers.tensors import TensorProduct

__all__ = [
    "BasisExpansion",
    "BlockColumns",
    "ClassLabel",
    "FactorizedInteraction",
    "Linear",
    "MeanResponse",
    "NetInput",
    "Offset",
    "OrthogonalComplement",
    "ParametricColumns",
    "Positions",
    "Posterior",
    "Predictor",
    "RadialExpansion",
    "RangeLimit",
    "Response",
    "Scaled",
    "ShapedSmooth",
    "Smooth",
    "SparseLinear",
    "TensorProduct",
]
