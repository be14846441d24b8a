"""Approximate tests of terms, from the posterior of their coefficients.

All of them take the smoothing as given, as mgcv's do; those of an interaction also the chosen factors.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import stats
from scipy.linalg import solve_triangular
from scipy.optimize import brentq

from ahofm_keras.summaries.chisquares import tail_of_sum
from ahofm_keras.summaries.linear import LinearCoefficients
from ahofm_keras.tensors import margin_penalties
from ahofm_keras.terms import Columns, Span

# Directions with a smaller share of the largest variance are rounding.
_RANK = 1e-13
# A direction counts where at least this share of what is known of it comes from the data.
_HEARD = 1e-9
# Degrees of freedom, in each margin, of the functions that are looked for where the data chose the
# smoothing.
REFERENCE_DF = 3.0


class TermTest(NamedTuple):
    """A test that a term is zero.

    Args:
        statistic: about chi-squared with `reference_df` degrees of freedom if it is.
        reference_df: its expectation if it is.
        p_value: approximate.
    """

    statistic: float
    reference_df: float
    p_value: float


def joint_test(values: np.ndarray, covariance: np.ndarray, residual_df: float | None) -> TermTest | None:
    """The Wald test of unpenalised coefficients, all of them together.

    Args:
        values: `(m,)`.
        covariance: `(m, m)`.
        residual_df: of the dispersion, None where it is known: then chi^2, else F.
    """
    scale = np.sqrt(np.maximum(covariance.diagonal(), 0.0))
    if not (scale > 0).all():
        return None
    correlation = covariance / scale / scale[:, None]
    variances, directions = np.linalg.eigh(correlation)
    kept = variances > 1e-8 * variances.max()
    scores = (directions.T @ (values / scale))[kept] / np.sqrt(variances[kept])
    statistic, rank = float(scores @ scores), int(kept.sum())
    return TermTest(statistic, rank, tail_of_sum(statistic, np.ones(rank), residual_df))


def smooth_test(block: LinearCoefficients, span: Span, residual_df: float | None) -> TermTest | None:
    """The test that a smooth, or a tensor product, is zero.

    Where the penalty leaves something free (a straight line, say), mgcv's Wald test of the function on
    the rows, with as many of its best-determined directions as it has degrees of freedom (Wood, 2013, On
    p-values for smooth components of an extended generalized additive model). Where the prior shrinks
    all of it towards zero, mgcv's test of a variance (Wood, 2013, A simple test for random effects in
    regression models). Where the data chose both lambda and tau, that test would be too liberal, one in
    ten at 5 %; taken at a smoothing that the data did not choose, it is not.
    """
    own, name = span.where, span.term.name
    values, covariance = block.inner[own], block.inner_covariance[own, own]
    precisions = block.precisions[own] / block.dispersion
    if precisions.min() > 0:
        *lambdas, tau = np.exp(block.smoothing[name][0])
        reference = _reference_penalty(span.block) if tau > 0 and any(lambdas) else None
        return variance_test(values, covariance, precisions, residual_df, reference)
    influence = block.influence
    # tr(2H - HH) of the term
    rank = 2 * np.trace(influence[own, own]) - float(np.sum(influence[own] * influence[:, own].T))
    sizes, vectors = np.linalg.eigh(block.gram[own, own])
    on_rows = np.sqrt(np.maximum(sizes, 0.0))[:, None] * vectors.T
    root = on_rows @ block.inner_root[own]
    return function_test(on_rows @ values, root, float(rank), residual_df)


def variance_test(
    values: np.ndarray,
    covariance: np.ndarray,
    precisions: np.ndarray,
    residual_df: float | None,
    reference: np.ndarray | None = None,
) -> TermTest | None:
    """The test of coefficients with a proper prior.

    The posterior of precision V^-1 = K + Q has Q from the prior and K from the data. Without an effect
    the score V^-1 b has the covariance K, so that b' V^-1 (K + Q0)^-1 V^-1 b is a sum of chi-squares
    with the eigenvalues of (K + Q0)^-1 K as weights, whatever Q0 is: the shrinkage is in both and
    cancels. Q0 says which functions are looked for.

    Args:
        values: b `(m,)`.
        covariance: V `(m, m)`, all other coefficients integrated out.
        precisions: diagonal of Q `(m,)`, positive.
        residual_df: as in `joint_test`.
        reference: Q0 `(m,)`, in units of what the data says of a coefficient on average; by default Q0
            is Q.
    """
    scale = np.sqrt(covariance.diagonal())
    # Where the prior says all, what the data says is lost in rounding.
    heard = covariance.diagonal() * precisions < 1 - _HEARD
    if not heard.any() or not (scale > 0).all():
        return None
    inverse = (
        np.linalg.pinv(covariance / scale / scale[:, None], hermitian=True) / scale / scale[:, None]
    )
    score = (inverse @ values)[heard]
    information = (inverse - np.diag(precisions))[np.ix_(heard, heard)]
    if reference is None:
        prior = precisions[heard]
    else:
        prior = reference[heard] * max(float(np.mean(information.diagonal())), 0.0)
    try:
        factor = np.linalg.cholesky(information + np.diag(prior))
    except np.linalg.LinAlgError:  # columns that cannot be told apart
        return None
    scores = solve_triangular(factor, score, lower=True)
    half = solve_triangular(factor, information, lower=True)
    weights = np.clip(np.linalg.eigvalsh(solve_triangular(factor, half.T, lower=True)), 0.0, 1.0)
    statistic = float(scores @ scores)
    return TermTest(statistic, float(weights.sum()), tail_of_sum(statistic, weights, residual_df))


def _reference_penalty(block: Columns) -> np.ndarray:
    """The term's penalty at a smoothing that leaves `REFERENCE_DF` degrees of freedom to each margin."""
    if block.inner is not None:
        own = _reference_penalty(block.inner)
        constants = block.size // block.width - len(own)
        return np.repeat(np.pad(own, (constants, 0)), block.width)
    if not block.features:
        return np.sum([reference_penalty(penalty) for penalty in block.penalties], axis=0)
    margins = [
        np.append(
            feature.ridge[: feature.atoms], reference_penalty(feature.eigenvalues[feature.atoms :])
        )
        for feature in block.features
    ]
    return margin_penalties(margins, block.pure).sum(axis=0)


def reference_penalty(penalty: np.ndarray) -> np.ndarray:
    """A multiple of the penalty with sum 1 / (1 + multiple) = `REFERENCE_DF`, or 0."""
    if len(penalty) <= REFERENCE_DF or np.sum(penalty == 0) >= REFERENCE_DF:
        return np.zeros(len(penalty))
    scale = np.median(penalty[penalty > 0])

    def excess(exponent: float) -> float:
        return float(np.sum(1 / (1 + np.exp(exponent) * penalty / scale))) - REFERENCE_DF

    return np.exp(float(brentq(excess, -80.0, 80.0))) * penalty / scale


def function_test(
    values: np.ndarray, root: np.ndarray, rank: float, residual_df: float | None
) -> TermTest | None:
    """The Wald test of a function by its values at some points, of fractional rank (Wood, 2013).

    With z the scores of the function along the eigenvectors of its covariance, largest variance first,
    r = k + v the rank and k whole: sum_(i<k) z_i^2 + z_k^2 + v z_(k+1)^2 +- 2 c z_k z_(k+1), where
    c^2 = v (1 - v) / 2. Without an effect it is a sum of chi-squares, k - 1 of weight 1 and two that add
    up to 1 + v. The sign of an eigenvector means nothing, so the p-values of both are averaged.

    Args:
        values: `(n,)`.
        root: L `(n, q)`, L L' their covariance.
        rank: r.
        residual_df: as in `joint_test`.
    """
    scores = _scores(values, root)
    usable = len(scores)
    if not usable:
        return None
    whole = max(int(np.floor(rank)), 0)
    part = max(rank - whole, 0.0)
    if whole + (part > 0) > usable:
        whole, part = usable, 0.0
    if not whole:  # less than one degree of freedom: the best-determined direction
        whole, part = 1, 0.0
    used = whole + (part > 0)
    statistic = float(scores[:whole] @ scores[:whole])
    weights = np.ones(used)
    if not part:
        return TermTest(statistic, whole, tail_of_sum(statistic, weights, residual_df))
    statistic += part * float(scores[whole]) ** 2
    cross = 2 * np.sqrt(part * (1 - part) / 2) * float(scores[whole - 1] * scores[whole])
    weights[-2] = (1 + part + np.sqrt(1 - part**2)) / 2
    weights[-1] = 1 + part - weights[-2]
    both = [tail_of_sum(statistic + sign * cross, weights, residual_df) for sign in (-1, 1)]
    return TermTest(statistic, whole + part, float(np.mean(both)))


def _scores(values: np.ndarray, root: np.ndarray) -> np.ndarray:
    """The function along the eigenvectors of its covariance, in standard errors, best known first."""
    tall = len(root) > root.shape[1]
    variances, vectors = np.linalg.eigh(root.T @ root if tall else root @ root.T)
    kept = (variances > _RANK * max(variances[-1], 0.0)) & (variances > 0)
    variances, vectors = variances[kept][::-1], vectors[:, kept][:, ::-1]
    if tall:
        return vectors.T @ (root.T @ values) / variances
    return vectors.T @ values / np.sqrt(variances)


def coefficient_tests(
    values: np.ndarray, errors: np.ndarray, residual_df: float | None
) -> tuple[np.ndarray, np.ndarray]:
    """Estimate over standard error, and two-sided p-values: t, or z where the dispersion is known."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = values / errors
    tail = stats.norm.sf if residual_df is None else stats.t(residual_df).sf
    return ratio, 2 * tail(np.abs(ratio))
