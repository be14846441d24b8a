"""Mean-field posterior over blocks: every smoothing parameter is chosen by the data, nothing is tuned.

Coordinate ascent on the evidence bound. The start decides where it ends: the bound has a local optimum
without any interaction, and steps on the smoothing that are taken while the noise is still
overestimated fall into it. So the linear block is solved first, factors are then fitted at the
smoothing that `df` asks for, and only then is the smoothing chosen.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import chain, count
from operator import attrgetter
from typing import Any

import keras
import numpy as np

from ahofm_keras.errors import warn
from ahofm_keras.solvers.averaging import are_enough, average_states
from ahofm_keras.solvers.blocks import LinearBlock
from ahofm_keras.solvers.damping import damped
from ahofm_keras.solvers.engine import Engine, State
from ahofm_keras.solvers.growing import grow
from ahofm_keras.solvers.job import FitJob
from ahofm_keras.solvers.posterior import read_posterior, write_posterior
from ahofm_keras.solvers.priors import COST
from ahofm_keras.solvers.pruning import drop_idle, prune
from ahofm_keras.solvers.rows import Chunk
from ahofm_keras.solvers.sanity import is_astray, is_in_range
from ahofm_keras.solvers.starts import draw_factors
from ahofm_keras.solvers.sweeps import Steps, announced, make_engine, run_sweeps
from ahofm_keras.solvers.trials import score

SWEEPS = 500
_LINEAR_STEPS = 10
_PATIENT_STEPS = 30
# By how much a fit that takes more degrees of freedom than half the rows must be better than another.
_CROWDED_MARGIN = 10.0
# By how much a fit must be better than its main effects were at the start for these not to be tried.
_CLEAR_MARGIN = 10.0
_WARM_SWEEPS = 15
# Warming up ends earlier where the objective falls by less than this share in a sweep.
_WARM_FALL = 2e-3
# A fit has converged when the bound gains less than this a row and sweep, over the last sweeps.
_GAIN = 4e-4
# With fewer rows the bound has to stand still as with so many: hundredths of it say nothing.
_FEW_ROWS = 100
_WINDOW = 5
# In one of these many sweeps weak factors are switched off, in another the linear block is revived.
_ROUND = 10
# With more rows than twice this many a sample of them finds the start.
_SAMPLE_ROWS = 10_000
_SAMPLE_STEP = 10
# By how much, per row, the bound may fall in a sweep of a family that is not gaussian.
_SLACK = 1e-3
_HALVINGS = 6


def fit_variational(model: Any, job: FitJob) -> keras.callbacks.History:
    """Fit by coordinate ascent on the evidence bound; the posterior stays in the model."""
    engine = make_engine(model, job, random=True)
    # An average has more factors than a fit: there is nothing to go on from.
    known = read_posterior(model, engine) if model.design.starts == 1 else None
    steps = _go_on(engine, known) if known is not None else _starts(engine, model, job)
    return run_sweeps(model, job, steps, SWEEPS * (job.restarts + 1), _logs, write_posterior)


def _logs(engine: Engine) -> dict[str, float]:
    bound = engine.bound() if engine.average_bound is None else engine.average_bound
    return {"loss": -bound / engine.total_weight, "bound": bound, "edf": engine.edf()}


def _starts(engine: Engine, model: Any, job: FitJob) -> Steps:
    """Fits from several starts, averaged."""
    bounds, states, fits = [], [], []
    for start in range(job.restarts + 1):
        yield from _one_start(engine, model, job, job.seed + start)
        bounds.append(engine.bound())
        states.append(engine.state())
        if job.until_agreed:
            fits.append(engine.on_rows(Chunk.fit))
            targets, weights = (engine.on_rows(attrgetter(name)) for name in ("target", "weight"))
            if are_enough(fits, targets, weights):
                break
    if job.restarts:
        model.use_starts(len(states))
        average = average_states(states, model.design, engine.linear_gram)
        yield from announced(engine, lambda: engine.adopt(average, bounds))


def _one_start(engine: Engine, model: Any, job: FitJob, seed: int) -> Steps:
    """A whole fit; of many rows a sample, and of many in it a sample of that, finds the start."""
    sizes = sample_sizes(engine.rows)
    if sizes:
        yield from _from_samples(engine, model, job, seed, sizes)
        if not is_astray(engine):
            return
        warn(
            f"The fit that a sample of {sizes[0]:,} rows started went astray on all {engine.rows:,}: "
            "it is fitted again without a sample, which takes longer."
        )
    engine.reset()
    yield from ascend(engine, seed)


def _from_samples(engine: Engine, model: Any, job: FitJob, seed: int, sizes: list[int]) -> Steps:
    """A fit to samples of growing size, then to all rows."""
    order = np.random.default_rng(seed).permutation(engine.rows)
    samples = (make_engine(model, job, random=True, chosen=np.sort(order[:size])) for size in sizes)
    first = next(samples)
    yield from ascend(first, seed)
    state = first.state()
    for larger in (*samples, engine):
        yield from _go_on(larger, state, other_rows=True)
        # What a few rows did not show, more rows may.
        if (yield from grow(larger)):
            yield from _climb(larger)
        state = larger.state()


def sample_sizes(rows: int) -> list[int]:
    """Sizes of the samples that come before all rows, each a tenth of the next at the least."""
    sizes: list[int] = []
    while rows > 2 * _SAMPLE_ROWS:
        rows = max(rows // _SAMPLE_STEP, _SAMPLE_ROWS)
        sizes.insert(0, rows)
    return sizes


def _go_on(engine: Engine, state: State, other_rows: bool = False) -> Steps:
    """Sweeps from a state that was reached before, on these rows or on others."""
    engine.restore(state)
    engine.linearise(cautious=other_rows)
    engine.update_linear(anew=True)
    yield from _climb(engine)


def ascend(engine: Engine, seed: int) -> Steps:
    """A whole fit from random factors, yielding after every sweep."""
    groups, engine.groups = engine.groups, []
    engine.rebuild()
    _start_linear(engine)
    start = engine.linear.copy()
    _fit_linear(engine)
    if not groups:
        yield from _climb(engine)
        return
    plain, worth = engine.state(), score(engine)
    # Now the factors, which are 0, count in the dispersion as if they explained their share: it is
    # underestimated, and that helps. Where noise is overestimated factors die before they fit.
    engine.restore(State(1.0, start, groups))
    engine.linearise(start=True)
    _fit_linear(engine)
    draw_factors(engine.groups, seed)
    yield from _warm_up(engine)
    # It was chosen while the interactions, which are there now, were noise.
    engine.update_linear(anew=True)
    yield from _settle(engine)
    yield from _complete(engine)
    margin = _CROWDED_MARGIN if _is_crowded(engine) else 0.0
    if margin or (engine.groups and score(engine) < worth + _CLEAR_MARGIN):
        yield from announced(engine, lambda: _reconsider(engine, plain, margin))


def _start_linear(engine: Engine) -> None:
    """The linear block alone, at the smoothing that df asks for or, where that is crowded, at more."""
    engine.linearise(start=True)
    engine.update_linear()
    if _is_crowded(engine):
        # The functions could explain every row, noise and all: the dispersion would fall to nothing and
        # the smoothing with it. So that is first chosen as if all were noise.
        engine.update_linear(adapt=_PATIENT_STEPS)


def _fit_linear(engine: Engine) -> None:
    """The linear block alone, with its smoothing."""
    for _ in range(_LINEAR_STEPS):
        engine.update_dispersion()
        engine.linearise()
        engine.update_linear(adapt=1)
    engine.update_dispersion()
    if not np.isfinite(engine.deviance()):
        # A step led to where there is no mean; from the intercept alone steps can be halved.
        engine.linear = LinearBlock(engine.design, engine.total_weight, True)
        engine.rebuild()
        engine.linearise()
        engine.update_dispersion()


def _is_crowded(engine: Engine) -> bool:
    """Whether the fit takes so many degrees of freedom that it might be chance."""
    return engine.edf() > engine.total_weight / 2


def _reconsider(engine: Engine, plain: State, margin: float) -> None:
    """Fit from another state too, and keep what is better, by a margin if it was there first.

    One sweep to those who look: a fit that ends meanwhile must leave what it had reached.
    """
    worth, reached = score(engine), engine.state()
    _return_to(engine, plain)
    for _ in chain(_climb(engine), _complete(engine)):
        pass
    if score(engine) < worth - margin:
        _return_to(engine, reached)


def _return_to(engine: Engine, state: State) -> None:
    engine.restore(state)
    engine.linearise()


def _complete(engine: Engine) -> Steps:
    """Take in what was missed."""
    found = yield from grow(engine)
    if found:
        yield from _settle(engine)


def _settle(engine: Engine) -> Steps:
    """Choose the smoothing, then which factors stay."""
    yield from _climb(engine)
    if engine.groups:
        yield from prune(engine)
        yield from _climb(engine)


def _warm_up(engine: Engine) -> Steps:
    """Sweeps at the smoothing that df asks for, while they change much."""
    engine.rebuild()
    value = engine.objective()
    for _ in range(_WARM_SWEEPS):
        before = value
        # Factors have no variances yet: the bound, which counts them, says nothing of the first sweep.
        yield from announced(engine, lambda: _sweep(engine, lambda: -engine.objective()))
        value = engine.objective()
        if before - value < _WARM_FALL * before:
            return


def _climb(engine: Engine) -> Steps:
    """Sweeps that choose the smoothing too, until the bound stands still."""

    def worth() -> float:
        return engine.bound() / engine.total_weight

    bounds, least = [engine.bound()], _GAIN * max(engine.total_weight, _FEW_ROWS)
    for sweep in count(1):
        phase = sweep % _ROUND
        yield None
        _sweep(engine, worth, adapt=1, revive=phase == _WINDOW, cost=0.0 if phase else COST)
        if not phase:
            drop_idle(engine)
        bounds.append(engine.bound())
        yield engine
        # Not while the window holds a sweep that switched factors off: the bound may have fallen.
        if phase >= _WINDOW and bounds[-1] - bounds[-1 - _WINDOW] < _WINDOW * least:
            return


def _sweep(
    engine: Engine,
    worth: Callable[[], float],
    adapt: int = 0,
    revive: bool = False,
    cost: float = 0.0,
) -> None:
    """One sweep; for other families than the gaussian at current weights, and damped if too long.

    Args:
        engine: of the fit.
        worth: what may not fall, per row.
        adapt, revive, cost: of `Engine.sweep`.
    """
    if engine.family.is_linear:
        engine.sweep(adapt, revive, cost)
        return
    engine.linearise()
    goal = worth() - _SLACK

    def cautiously() -> None:
        engine.linearise(cautious=True)
        engine.sweep(adapt, revive, cost)

    def is_good() -> bool:
        return worth() >= goal - engine.conceded / engine.total_weight and is_in_range(engine)

    updates = (partial(engine.sweep, adapt, revive, cost), cautiously, engine.update_linear)
    damped(engine, updates, is_good, _HALVINGS)
