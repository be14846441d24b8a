"""A fitted model -> tables: summary, coefficients, covariance."""

from ahofm_keras.summaries.coefficients import coef, vcov
from ahofm_keras.summaries.summarise import Summary, summary

__all__ = ["Summary", "coef", "summary", "vcov"]
