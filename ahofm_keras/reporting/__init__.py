"""A fitted model -> one HTML page for people who do not write Python."""

from ahofm_keras.reporting.page import report

__all__ = ["report"]
