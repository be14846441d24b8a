"""Every constant of the block solvers, with its reason.

Users never need to change one. Benchmarks and tests do, for the fits within a context:

    with use_settings(edf_penalty=0.0, moves_off=("grow",)):
        model.fit(data)

`examples/benchmarks/ablation.py` measures what moves and doubtful constants are worth.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import log
from typing import Any


@dataclass(frozen=True)
class Settings:
    """Constants of the block solvers. What guards against rounding alone stays where it is used."""

    # Rows -------------------------------------------------------------------------------------------

    # Rows of a chunk: its moments stay in the cache of a core, its Python takes no time.
    chunk_rows: int = 8192
    # Moments of all groups of factors on all rows that are kept, 1 GB: others are computed again.
    moment_numbers: float = 2.0**27
    # Numbers of dense columns of the linear block that are held at once: 32 MB.
    dense_numbers: int = 4_000_000
    # Rows times functions of distances that are kept in memory (128 MB); more are computed whenever they
    # are needed.
    kept_numbers: int = 2**24

    # The prior --------------------------------------------------------------------------------------

    # What integrating out the logarithm of a scale would cost: it is known to about one unit, of a prior
    # range of about twenty, log 20 = 3 less what a normal of that width has.
    log_prior_odds: float = 2.0
    # A product of d functions of d features is the same with other scales of its functions, and other
    # signs, of which d - 1 can be chosen: that scale has no price, and the bound knows one sign of two.
    same_product: float = 1.0 + log(2.0)
    # Of one degree of freedom that the prior leaves to a smooth. The evidence of a weak smooth is almost
    # the same from straight to rough.
    edf_penalty: float = 0.2
    # A group with fewer degrees of freedom counts as switched off.
    active_edf: float = 0.05
    # Precision of a coefficient with a flat prior, relative to the block's Gram matrix: none that a
    # statistician would see, enough for equal columns, whose coefficients it makes equal (the solution
    # of least norm), and for levels that no row has, whose coefficients it makes 0.
    flat_precision: float = 1e-11
    # That of the intercept, relative to it: it takes what a constant column could take as well.
    weak_intercept: float = 1e-3
    # Functions of a smooth or factor that the penalty leaves nothing of are left out: squares of their
    # shares of a degree of freedom. It moves predictions by a thirtieth of the standard error that a
    # mean over all rows has; with 1e-5 fits with hundreds of functions take up to twice the time. So few
    # functions are always in use: they take no time.
    left_out: float = 1e-3
    few_functions: int = 24
    # tau at the start, relative to the Gram matrix of a function with variance 1 on each row.
    start_shrinkage: float = 1e-3
    # How far the logarithms of lambda and tau may lie from where they started: beyond, nothing changes.
    smoothing_range: float = 25.0
    # Standard deviations of the response that a function may reach in a gap of its feature.
    gap_reach: float = 3.0

    # Newton steps on the smoothing ------------------------------------------------------------------

    # By how much logarithms move in one step along an axis of the curvature.
    longest_step: float = 4.0
    step_halvings: int = 12
    # Steps end where the evidence gains less.
    least_gain: float = 1e-6

    # From where the smoothing started: most of the way, sweeps go on.
    reset_steps: int = 15

    # Uncertainty of the smoothing -------------------------------------------------------------------

    # Logarithms of lambda and tau from where they start: from rough to straight, from free to off.
    lambda_grid: tuple[float, float, int] = (-4.0, 16.0, 9)
    tau_grid: tuple[float, float, int] = (-4.0, 20.0, 9)
    # Larger groups, such as the levels of a category with thousands of them, keep their smoothing.
    largest_integrated: int = 400
    # Points of the grid that weigh less are left out.
    least_grid_weight: float = 1e-4

    # The start --------------------------------------------------------------------------------------

    # Of all interactions of one order together, in units of the response's variance.
    start_variance: float = 0.05
    # Less where a predictor would be out of range, but not below this.
    least_start_variance: float = 1e-12
    # Updates of the linear block alone: enough for its smoothing and the dispersion to settle.
    linear_updates: int = 10
    # Newton steps where the linear block could explain every row: chosen as if all were noise.
    crowded_steps: int = 30
    # A fit with more degrees of freedom than this share of the rows might be chance.
    crowded_share: float = 0.5
    # Sweeps at the smoothing that df asks for, at most, and the relative fall of the objective at which
    # they end: then factors have a shape that the smoothing can be chosen for.
    warm_up_sweeps: int = 15
    warm_up_fall: float = 2e-3
    # With more than twice as many rows a sample of at least so many finds the start; samples grow by
    # this factor.
    sample_rows: int = 10_000
    sample_growth: int = 10

    # The ascent -------------------------------------------------------------------------------------

    variational_sweeps: int = 500
    # A fit has converged when the bound gains less than this per row and sweep, over so many sweeps: the
    # error changes by less than 0.2 % in them ...
    bound_gain: float = 4e-4
    window: int = 5
    # ... and less than this per degree of freedom. Each is estimated with an error worth half a nat,
    # however many rows there are: weak effects in many rows change the error by next to nothing.
    edf_gain: float = 0.01
    few_edf: float = 25.0
    # With fewer rows the bound has to stand still as with so many: hundredths of it say nothing.
    few_rows: int = 100
    # In one of so many sweeps weak factors are switched off, in another weak tensor products.
    round: int = 10

    # Families that are not gaussian -----------------------------------------------------------------

    # By how much, per row, the bound may fall in a sweep: it is that of a working response.
    bound_slack: float = 1e-3
    halvings: int = 6
    # A mean further from the response, on the scale of the predictor, is not one to linearise at.
    far: float = 10.0
    # A predictor may lie so far beyond its response, on the scale of the link: exp(-50) is as good as 0.
    predictor_reach: float = 50.0
    # A fitted probability that is closer to 0 or 1 is none.
    certain: float = 1e-8

    # Moves ------------------------------------------------------------------------------------------

    # Names of moves that are not made.
    moves_off: tuple[str, ...] = ()
    # Sweeps that a proposal has to show what it is worth.
    trial_sweeps: int = 2
    # Sweeps over a new group alone: of one that starts at random, before its smoothing is chosen and
    # while it is; and of one that starts where the search found something.
    group_warm_up: int = 5
    group_sweeps: int = 10
    subset_sweeps: int = 6
    # Where the residuals show each product of two functions, in squares of its standard error, clearer
    # than this, groups of products find all of them, and what features have in common in several pairs.
    surface_signal: float = 50.0
    # Sweeps over new surfaces before their smoothing is chosen; and `few_functions` of their factors, of
    # which they have many.
    surface_sweeps: int = 3
    surface_functions: int = 8
    # What pruning may cost: a trial has not converged.
    prune_tolerance: float = 0.05
    # The weakest factors are tried, and only what is worth less than so many times its price.
    prune_candidates: int = 3
    prune_worth: float = 10.0
    # By how much interactions must be better than the main effects alone where they take so many degrees
    # of freedom that they might be chance, and for the main effects not to be tried again.
    crowded_margin: float = 10.0
    clear_margin: float = 10.0

    # The search for interactions that the ascent missed ---------------------------------------------

    # Functions of a feature that are looked at, and rows at least and usually; where products are few,
    # as many as weak effects need.
    search_functions: int = 5
    search_rows: int = 5000
    search_least_rows: int = 500
    search_most_rows: int = 100_000
    # Products of all rows, at most and usually: a search should not take longer than a few sweeps. And
    # functions of all features.
    search_budget: float = 1e10
    search_usual_budget: float = 2e9
    search_width: int = 2000
    # So many of the strongest subsets are looked at more closely, by so many alternating steps.
    search_candidates: int = 30
    search_steps: int = 20
    # An order is done after so many subsets in a row that were not worth it.
    search_refusals: int = 2

    # Several starts ---------------------------------------------------------------------------------

    # Further starts, any number of them, would change the error by less than this share of it.
    agreement: float = 0.01
    # And one start is enough where no more than this share of its degrees of freedom was drawn.
    drawn_share: float = 0.05

    # Block coordinate descent -----------------------------------------------------------------------

    descent_sweeps: int = 1000
    # The fit has converged when the objective falls by less than this share in a sweep.
    descent_fall: float = 1e-6
    descent_halvings: int = 15
    # Sweeps without a better validation deviance.
    patience: int = 20


_current = [Settings()]


def current_settings() -> Settings:
    """The settings of fits that begin now."""
    return _current[-1]


@contextmanager
def use_settings(**changes: Any) -> Iterator[Settings]:
    """Other settings for the fits within."""
    _current.append(replace(_current[-1], **changes))
    try:
        yield _current[-1]
    finally:
        _current.pop()
