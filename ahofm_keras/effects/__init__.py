"""A fitted model -> effects of subsets of features, ranked, with standard errors."""

from ahofm_keras.effects.explain import Explanation, explain
from ahofm_keras.effects.parts import Parts
from ahofm_keras.effects.ranking import interactions, shares
from ahofm_keras.effects.records import Effect, effect, effects

__all__ = ["Effect", "Explanation", "Parts", "effect", "effects", "explain", "interactions", "shares"]
