"""A fitted model -> tables: summary, coefficients, covariance."""

from ahofm_keras.summary.coefficients import coef, vcov
from ahofm_keras.summary.summarise import Summary, summary

__all__ = ["Summary", "coef", "summary", "vcov"]
