"""Degrees of freedom asked for -> lambda, with a word where they cannot be reached."""

from __future__ import annotations

from collections.abc import Sequence

from ahofm_keras.errors import warn
from ahofm_keras.formula import TermSpec
from ahofm_keras.penalties import degrees_of_freedom, solve_smoothing
from ahofm_keras.terms.features import FeaturePool

DEFAULT_DF = 15.0
# Of a surface: as many as mgcv's `te()` of two features has coefficients.
SURFACE_DF = 25.0
# Where few distinct values keep the df asked for out of reach, this share of what lies between a
# straight line and an unpenalised fit is used instead: still penalised.
_REACHABLE = 0.9


class Smoother:
    """Chooses the lambdas of all terms of a model.

    Args:
        pool: the features, with their Demmler-Reinsch form.
        df_kind: definition of degrees of freedom.
    """

    def __init__(self, pool: FeaturePool, df_kind: str) -> None:
        self.pool = pool
        self.df_kind = df_kind
        self._notes: dict[str, str] = {}

    def smoothing(
        self,
        places: Sequence[int],
        wanted: Sequence[float | None],
        spec: TermSpec,
        size_given: bool,
        default: float = DEFAULT_DF,
    ) -> list[float]:
        """Lambda of each feature.

        Args:
            places: positions of the features in the pool.
            wanted: df of each, None for the default.
            spec: the term, for messages.
            size_given: whether the user chose the number of basis functions.
            default: df where none is wanted.
        """
        pairs = zip(places, wanted, strict=True)
        return [self._one(place, df, spec, size_given, default) for place, df in pairs]

    def reached(self, place: int, smoothing: float) -> float:
        """Degrees of freedom of a feature at a lambda."""
        return degrees_of_freedom(smoothing, self.pool.orthogonal(place), self.df_kind)

    def warn(self) -> None:
        """One warning a term for everything that it could not reach.

        A main effect that an interaction adds repeats what the interaction says; the last one speaks.
        """
        by_term: dict[str, list[str]] = {}
        for note, label in self._notes.items():
            by_term.setdefault(label, []).append(note)
        for label, notes in by_term.items():
            warn(f"`{label}`:" + ("\n    " if notes[1:] else " ") + "\n    ".join(notes))

    def _one(
        self, place: int, df: float | None, spec: TermSpec, size_given: bool, default: float
    ) -> float:
        feature, orthogonal = self.pool.features[place], self.pool.orthogonal(place)
        null, rank = feature.null_dimension, orthogonal.rank
        if df is not None and df <= min(null, rank - 1):
            raise spec.error(
                f"`df` of `{spec.label}` must be above {null}: the penalty of `{feature.label}` leaves "
                f"that many degrees of freedom free.\n    Received: df={df:g}."
            )
        highest = null + _REACHABLE * (rank - null)
        if df is not None and df < rank - 1e-6:
            return solve_smoothing(df, orthogonal, self.df_kind)
        if df is not None and (rank > null or df > rank):
            self._note(place, df, highest, spec, size_given)
        if rank <= null or (df is not None and size_given and feature.basis.is_sized):
            return 0.0
        return solve_smoothing(min(default, highest), orthogonal, self.df_kind)

    def _note(self, place: int, df: float, highest: float, spec: TermSpec, size_given: bool) -> None:
        feature, rank = self.pool.features[place], self.pool.orthogonal(place).rank
        if size_given and feature.basis.is_sized:
            note = (
                f"df={df:.4g} of `{feature.label}` is not below its rank {rank:.4g}, so it is not "
                "penalised at all. Raise `k`, or lower `df`."
            )
        else:
            note = (
                f"df={df:.4g} cannot be reached by `{feature.label}` ({feature.distinct} distinct "
                f"values, rank {rank:.4g}); df={highest:.3g} is used."
            )
        self._notes[note] = spec.label
