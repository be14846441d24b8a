"""Is a fit one that could be meant? What no measure of convergence looks at."""

from __future__ import annotations

from operator import attrgetter

import numpy as np

from ahofm_keras.solvers.engine import Engine
from ahofm_keras.solvers.job import is_no_worse
from ahofm_keras.solvers.rows import Chunk

# A predictor may lie so far beyond its response, on the scale of the link: exp(-50) is as good as 0.
_REACH = 50.0


def is_astray(engine: Engine) -> bool:
    """Whether a fit is worse than the intercept alone, or its predictor out of range."""
    figures = engine.deviance(), _null_deviance(engine), engine.total_weight, engine.dispersion_unit**0.5
    return not (is_no_worse(*figures) and is_in_range(engine))


def is_in_range(engine: Engine) -> bool:
    """Whether no predictor is on the wrong side of its response, and far beyond it.

    On the right side it may be far: where terms tell classes apart nothing holds it.
    """
    if engine.family.is_linear:
        return True

    def in_range(chunk: Chunk) -> bool:
        rough = engine.family.link_function(engine.family.rough_mean(chunk.y, engine.average))
        eta = chunk.offset + engine.scale * chunk.fit()
        beyond = eta - rough
        wrong = (chunk.y - engine.mean(chunk)) * beyond * engine.family.slope(eta) < 0
        far = (np.abs(beyond) > _REACH * engine.scale) & wrong | ~engine.family.is_valid(eta)
        return not np.any(far & (chunk.case_weight > 0))

    return all(engine.each(in_range))


def _null_deviance(engine: Engine) -> float:
    """Of the model without terms."""
    y, weight, offset = (engine.on_rows(attrgetter(name)) for name in ("y", "case_weight", "offset"))
    mean = engine.family.null_mean(y, offset - engine.shift, weight, engine.design.only.intercept)
    return float(engine.family.unit_deviance(y, mean, np) @ weight)
