"""NGBoost: boosting of a normal distribution's mean and standard deviation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from comparison.encoding import as_codes
from comparison.fitted import Fitted
from comparison.problems import Split


def ngboost(rows: Split, **settings: Any) -> Fitted:
    """NGBoost with its default distribution, learner and number of trees, unless told otherwise."""
    from ngboost import NGBRegressor

    model = NGBRegressor(random_state=rows.seed, verbose=False, **settings)
    model.fit(as_codes(rows, rows.train).to_numpy(float), rows.y.to_numpy(float))

    def log_density(data: pd.DataFrame) -> np.ndarray:
        own = model.pred_dist(as_codes(rows, data).to_numpy(float))
        return np.asarray(own.logpdf(data[rows.response].to_numpy(float)))

    return Fitted(
        lambda data: model.predict(as_codes(rows, data).to_numpy(float)), log_density=log_density
    )


def candidates(rows: Split) -> list[dict[str, Any]]:
    """Numbers of trees; more of them fit the training rows ever better."""
    return [{"n_estimators": number} for number in (250, 500, 1000, 2000)]
