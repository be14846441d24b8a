"""This library: the variational solver, which nobody has to tune, and a choice of D and F beside it;
families whose scale has a formula."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from comparison.fitted import Fitted
from comparison.problems import Split

LEVEL = 0.95


def ahofm(rows: Split, order: int = 3, rank: int | None = None, single: bool = False) -> Fitted:
    """All smooth interactions up to `order`; everything else as it is by default.

    Args:
        rows: whose training rows are fitted.
        order: D.
        rank: F, None for the default.
        single: one start in place of the average of several.
    """
    import ahofm_keras as ak

    given = "" if rank is None else f", F={rank}"
    terms = "s(.)" if order == 1 else f"ahofm(., D={order}{given})"
    starts, restarts = (1, 0) if single else ("auto", "auto")
    formula = f"{rows.response} ~ {terms}"
    model = ak.AdditiveModel(formula, rows.train, family=rows.family, seed=rows.seed, starts=starts)
    model.fit(rows.train, restarts=restarts, verbose=0)

    def spread(data: pd.DataFrame) -> np.ndarray:
        frame = model.predict(data, interval=LEVEL)
        width = (frame["predictive_upper"] - frame["predictive_lower"]).to_numpy()
        return width / (2 * stats.norm.ppf((1 + LEVEL) / 2))

    return Fitted(model.predict, spread if rows.family == "gaussian" else None)


def distributional(rows: Split, family: str, order: int = 2) -> Fitted:
    """All smooth interactions in the location, and main effects in the scale.

    Args:
        rows: whose training rows are fitted.
        family: with the parameters `loc` and `scale`.
        order: D of the location.
    """
    import ahofm_keras as ak

    formulas = {"loc": f"{rows.response} ~ ahofm(., D={order})", "scale": "~ s(.)"}
    model = ak.AdditiveModel(formulas, rows.train, family=family, seed=rows.seed)
    model.fit(rows.train, verbose=0)

    def log_density(data: pd.DataFrame) -> np.ndarray:
        return ak.log_score(model, data, by_row=True, posterior=True)

    return Fitted(model.predict, log_density=log_density)


def candidates(rows: Split) -> list[dict[str, Any]]:
    return [{"order": 1}, *({"order": order, "rank": rank} for order in (2, 3) for rank in (5, 10))]
