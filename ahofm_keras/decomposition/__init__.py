"""A fitted model -> effects of subsets of features, ranked, with standard errors."""

from ahofm_keras.decomposition.effect_records import Effect, effect, effects
from ahofm_keras.decomposition.explain import Explanation, explain
from ahofm_keras.decomposition.parts import Parts
from ahofm_keras.decomposition.ranking import interactions, shares

__all__ = ["Effect", "Explanation", "Parts", "effect", "effects", "explain", "interactions", "shares"]
