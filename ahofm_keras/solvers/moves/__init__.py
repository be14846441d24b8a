"""Moves between models: one file per move, one loop that tries them."""

from ahofm_keras.solvers.moves.move import Move, Proposal, try_moves

__all__ = ["Move", "Proposal", "try_moves"]
