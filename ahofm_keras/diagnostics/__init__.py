"""A fitted model at rows -> what speaks against it: residuals, bases that are too small, concurvity."""

from ahofm_keras.diagnostics.check import Check, check

__all__ = ["Check", "check"]
