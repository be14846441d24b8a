"""The additive model: a functional Keras model made of a formula's terms."""

from ahofm_keras.model.additive import AdditiveModel
from ahofm_keras.model.loading import load_model
from ahofm_keras.model.shortcut import fit
from ahofm_keras.model.zoo import afm, ahofm, fm, gam, hofm, nam

__all__ = ["AdditiveModel", "afm", "ahofm", "fit", "fm", "gam", "hofm", "load_model", "nam"]
