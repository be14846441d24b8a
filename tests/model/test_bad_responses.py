"""Responses and parameters that a family cannot have: one message each, in words a user can act on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak

ROWS = 40
_RNG = np.random.default_rng(0)
X = _RNG.uniform(-1, 1, ROWS)
AMOUNTS = np.exp(X + 0.3 * _RNG.normal(size=ROWS))
COUNTS = 1 + _RNG.poisson(3.0, ROWS)
TIMES = _RNG.exponential(size=ROWS)
EVENTS = _RNG.integers(0, 2, ROWS)


def at(place: int, value: Any, rest: Any) -> np.ndarray:
    return np.where(np.arange(ROWS) == place, value, rest)


# Name -> family, formula, columns beside `x`, what the message says.
RESPONSES: dict[str, tuple[Any, Any, dict[str, Any], str]] = {
    "a negative count": ("poisson", "y ~ x", {"y": at(7, -2, COUNTS)}, r'1 of 40 values are not; first at row 7: -2\. `family="gaussian"`'),
    "a count with digits": ("generalized_poisson", "y ~ x", {"y": at(9, 1.5, COUNTS)}, r'1 of 40 .* first at row 9: 1\.5\. `family="gamma"`'),
    "an amount of 0": ("gamma_ls", "y ~ x", {"y": at(3, 0.0, AMOUNTS)}, r'1 of 40 .* first at row 3: 0\. `family="tweedie"` takes zeros'),
    "a share of 1": ("beta", "y ~ x", {"y": at(3, 1.0, 0.5 + 0.2 * X)}, r"first at row 3: 1\. 1 are 1 exactly\..*moved inside"),
    "a class of 2": ("bernoulli", "y ~ x", {"y": at(3, 2.0, EVENTS)}, r"0 or 1.*first at row 3: 2"),
    "an infinite value": ("student_t", "y ~ x", {"y": at(3, np.inf, X)}, "1 infinite value, first at row 3"),
    "no value": ("weibull", "y ~ x", {"y": at(3, np.nan, AMOUNTS)}, "1 missing value, first at row 3"),
    "one class of 0 and 1": ("bernoulli", "y ~ x", {"y": np.ones(ROWS)}, "nothing to learn"),
    "one class of several": ("categorical", "y ~ x", {"y": ["a"] * ROWS}, "one class only, 'a', in all 40 rows: nothing to learn"),
    "no successes": ("binomial", "cbind(k, m) ~ x", {"k": np.zeros(ROWS), "m": np.full(ROWS, 3)}, "nothing to learn"),
    "only zeros": ("negative_binomial", "y ~ x", {"y": np.zeros(ROWS)}, "nothing to learn"),
    "no events": ("cox", "Surv(t, e) ~ x", {"t": TIMES, "e": np.zeros(ROWS)}, "no events"),
    "texts without an order": (ak.families.Ordinal("probit"), "y ~ x", {"y": np.where(X > 0, "lo", "hi")}, r"texts without an order: 'hi', 'lo'\. Give it.*classes="),
    "numbers as classes": ("ordinal", "y ~ x", {"y": AMOUNTS}, "40 distinct values in 40 rows"),
    "texts as numbers": ("gaussian_ls", "y ~ x", {"y": np.where(X > 0, "a", "b")}, r'holds texts \(first: .*"categorical"'),
    "trials below successes": ("binomial", "cbind(k, m - k) ~ x", {"k": np.full(ROWS, 5), "m": at(3, 4, 7)}, "more successes than trials; first at row 3"),
    "events of 1 and 2": ("cox", "Surv(t, e) ~ x", {"t": TIMES, "e": EVENTS + 1}, r"must be 1 \(event\) or 0 \(censored\), but \d+ of 40 are not.*write the event as `event - 1`"),
    "an event of one half": ("cox", "Surv(t, e) ~ x", {"t": TIMES, "e": at(4, 0.5, EVENTS)}, r"1 of 40 are not; first at row 4: 0\.5"),
    "a time of 0": (ak.families.Cox(ties="efron"), "Surv(t, e) ~ x", {"t": at(4, 0.0, TIMES), "e": EVENTS}, r"1 of 40 are not; first at row 4: 0\."),
    "a time without an event": ("cox", "t ~ x", {"t": TIMES}, r"is `Surv\(time, event\)`\. Received: `t`"),
    "a misspelt alias": ("gaussian_ls", {"loc": "y ~ x", "sgima": "~ x"}, {"y": AMOUNTS}, "no parameter 'sgima'. Did you mean `sigma`, which is `scale` here.*It has: `loc`, `scale`"),
    "a misspelt parameter": ("beta", {"mean": "y ~ x", "precison": "~ x"}, {"y": 0.5 + 0.2 * X}, "Did you mean `precision`"),
    "a parameter of another family": ("poisson", {"mu": "y ~ x", "zero": "~ x"}, {"y": COUNTS}, "no parameter 'zero'. It has: `mean`"),
    "one parameter twice": ("gaussian_ls", {"mu": "y ~ x", "loc": "y ~ x"}, {"y": AMOUNTS}, "`loc` has two formulas"),
    "a misspelt family": ("gausian", "y ~ x", {"y": AMOUNTS}, "Did you mean `gaussian`"),
    "a family of mgcv": ("gaulss", "y ~ x", {"y": AMOUNTS}, "Here it is called `gaussian_ls`"),
}  # fmt: skip


@pytest.mark.parametrize("case", RESPONSES)
def test_it_is_refused(case: str) -> None:
    family, formula, columns, message = RESPONSES[case]
    with pytest.raises(ak.DataError, match=message):
        ak.AdditiveModel(formula, pd.DataFrame({"x": X, **columns}), family=family)


def test_the_names_of_gamlss_stand_for_parameters_of_every_family() -> None:
    data = pd.DataFrame({"x": X, "y": COUNTS})
    assert ak.AdditiveModel({"mu": "y ~ x"}, data, family="poisson").formula == "y ~ x"
    model = ak.AdditiveModel({"mu": "y ~ x", "sigma": "~ x"}, data, family="generalized_poisson")
    assert list(model.formula) == ["mean", "dispersion"]
