"""`check`: what speaks against a fitted model, as frames and in words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
import pandas as pd

from ahofm_keras.decomposition.names import check_count
from ahofm_keras.decomposition.parts import check_readable
from ahofm_keras.diagnostics.basis import basis_frame
from ahofm_keras.diagnostics.checked_rows import read_rows
from ahofm_keras.diagnostics.concurvity import concurvity_frame
from ahofm_keras.diagnostics.frequencies import frequency_frame
from ahofm_keras.diagnostics.overall import calibration_frame, expected_spread, overall_frame
from ahofm_keras.diagnostics.residuals import residual_columns, residual_frame
from ahofm_keras.errors import DataError
from ahofm_keras.model import AdditiveModel
from ahofm_keras.model.formulas import formula_text

_SHOWN = 20
_FINE = "Nothing found that speaks against the model."


@dataclass(frozen=True, eq=False)
class Check:
    """Diagnostics of a model at rows.

    Args:
        formula: of the model.
        family: its name.
        link: name of the link, of several predictors of each.
        binary: whether the response is 0 or 1.
        discrete: whether it is a whole number.
        levels: of quantiles that the model is of.
        censored: whether responses are times of events that may be censored.
        classes: names of the classes that it is one of, where it is no number; residuals and frequencies
            are of their places 0, 1, ...
        response: name of the response.
        source: which rows, in words.
        dispersion: of the response, at which residuals are taken.
        seed: of what was drawn.
        residuals: of each row `row`, `fitted` and `observed` response, `link`, the randomised `quantile`
            residual (standard gaussian where the model is right; missing of an expectile, which has a
            weighted residual `pull` with mean 0 instead), the residuals of the `deviance` (of several
            predictors `score_loc` and so on: the score of each parameter in standard deviations) and of
            the `response`, `leverage` (missing where the model has no posterior). Its `attrs` count the
            quantile residuals that were `clipped`. Of censored times `fitted` is the hazard ratio,
            `observed` whether there was an event, and `response` the martingale residual.
        basis: a row per basis: `basis`, `terms` that use it, `k`, `k'` (degrees of freedom it can have),
            `edf` that its terms reach at most, `k_index` and `p_value` as in mgcv's `k.check`, `ok`
            and a `verdict`. Numbers that are linear stand there too; categories have no index.
        concurvity: one row per term: `worst`, `observed`, `estimate` as in mgcv's `concurvity`, the
            `nearest` other term and its share, `ok`, `verdict`. Of an order of an interaction only the
            fitted function counts.
        tests: a row per check of the whole: `check`, `value`, `expected`, `ok`, `verdict`.
        calibration: mean `observed` and `fitted` response by bins of the fitted one; of classes the
            probability of each `class`, of quantiles the share of responses below each `quantile`, of
            censored times the chance to survive each `time`.
        frequencies: rows by their response, `observed` and `expected`; `low` and `high` are the ends of
            each bin, both inside of a discrete response.
    """

    formula: str
    family: str
    link: str
    binary: bool
    discrete: bool
    levels: tuple[float, ...]
    censored: bool
    classes: tuple[str, ...]
    response: str
    source: str
    dispersion: float
    seed: int
    residuals: pd.DataFrame
    basis: pd.DataFrame
    concurvity: pd.DataFrame
    tests: pd.DataFrame
    calibration: pd.DataFrame
    frequencies: pd.DataFrame

    @property
    def is_loss(self) -> bool:
        """Whether no distribution was predicted: quantiles at most."""
        return bool(self.levels) or bool(self.residuals["quantile"].isna().any())

    @property
    def verdicts(self) -> list[str]:
        """All that speaks against the model, one sentence each.

        Those on k come first: a basis that is too small shows in the residuals as a whole too.
        """
        frames = (self.basis, self.tests, self.concurvity)
        return [text for frame in frames for text in frame["verdict"] if text]

    def __str__(self) -> str:
        parts = [f"{title}\n{_text(frame)}" for title, frame in self._tables()]
        verdicts = self.verdicts
        listed = "\n".join(f"- {text}" for text in verdicts) if verdicts else _FINE
        return "\n\n".join([self._head(), *parts, f"Verdict\n{listed}"])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        parts = [
            f"<h4>{escape(title)}</h4>{frame.to_html(index=False)}" for title, frame in self._tables()
        ]
        verdicts = self.verdicts or [_FINE]
        listed = "".join(f"<li>{escape(text)}</li>" for text in verdicts)
        head = escape(self._head()).replace("\n", "<br>")
        return f"<p>{head}</p>{''.join(parts)}<h4>Verdict</h4><ul>{listed}</ul>"

    def _head(self) -> str:
        return f"Check of {self.formula}\n{self.family} ({self.link}), {self.source}"

    def _tables(self) -> list[tuple[str, pd.DataFrame]]:
        """Titles and frames as they are shown."""
        first = (
            "Predictions and rows" if self.censored or self.is_loss else "Quantile residuals and rows"
        )
        tables = [(first, _shown_tests(self.tests))]
        if len(self.basis):
            tables.append((_title("Is k large enough?", self.basis), _shown_basis(self.basis)))
        if len(self.concurvity) > 1:
            title = _title("Concurvity", self.concurvity)
            tables.append((title, _shown_concurvity(self.concurvity)))
        return tables


def check(
    model: AdditiveModel, data: Any = None, seed: int = 0, *, y: Any = None, sample_weight: Any = None
) -> Check:
    """Look for what speaks against a fitted model.

    Args:
        model: fitted.
        data: rows with their response, e.g. held out; by default those of the fit, as far as the model
            still knows them.
        seed: of randomised residuals, permutations and samples of rows.
        y: response of `data`, where it is not one of its columns.
        sample_weight: of each row of `data`, or the name of a column.

    Returns:
        `Check`, which prints as a table, and `plot_check` draws.

    Raises:
        NotFittedError: the model was never fitted.
        DataError: no rows, no response, columns that do not fit the model.

    Example:
        >>> import numpy as np, pandas as pd
        >>> from ahofm_keras import AdditiveModel
        >>> x = np.linspace(0, 1, 200)
        >>> noise = np.random.default_rng(0).normal(size=200)
        >>> data = pd.DataFrame({"x": x, "y": np.sin(6 * x) + 0.1 * noise})
        >>> model = AdditiveModel("y ~ s(x)", data)
        >>> history = model.fit(data, verbose=0)
        >>> check(model).verdicts
        []
    """
    check_readable(model)
    if model.of_parameter is not None:
        raise DataError(
            "`check` looks at the whole response, so at all predictors at once: pass the model, not its "
            f"`{model.of_parameter}`."
        )
    check_count("seed", seed, 0, none=False)
    rows = read_rows(model, data, y, sample_weight)
    residuals = residual_frame(rows, seed)
    known = rows.has_chances
    residuals.attrs["spread"] = (
        expected_spread(model, residuals["quantile"].to_numpy()) if known else 1.0
    )
    calibration = calibration_frame(rows)
    return Check(
        formula_text(model),
        model.family.name,
        ", ".join(link.name for link in model.family.parameters.values()),
        model.family.binary,
        model.family.discrete,
        model.family.levels,
        model.family.nuisance,
        tuple(map(str, model.family.classes)) if model.family.labelled else (),
        str(model.response),
        rows.source,
        rows.dispersion,
        seed,
        residuals,
        _of_parameters(
            model, lambda view, column: basis_frame(view, rows, residuals[column].to_numpy(), seed)
        ),
        _of_parameters(model, lambda view, _: concurvity_frame(view, rows, seed)),
        overall_frame(model, rows, residuals, calibration),
        calibration,
        frequency_frame(rows),
    )


def _of_parameters(model: AdditiveModel, read: Callable[[Any, str], pd.DataFrame]) -> pd.DataFrame:
    """A frame of each predictor, given the column of its residuals; with `parameter` of several."""
    columns = residual_columns(model.family, model.design.predictors)
    names = list(columns)
    frames = [read(model.parameter(name), column) for name, column in columns.items()]
    if len(names) == 1:
        return frames[0]
    found = pd.concat([own.assign(parameter=name) for name, own in zip(names, frames, strict=True)])
    found.insert(0, "parameter", found.pop("parameter"))
    found["verdict"] = [
        f"Predictor of `{name}`: {text}" if text else ""
        for name, text in zip(found["parameter"], found["verdict"], strict=True)
    ]
    ranges = [own.attrs["random_orders"] for own in frames if "random_orders" in own.attrs]
    if ranges:
        low, middle, high = zip(*ranges, strict=True)
        found.attrs["random_orders"] = min(low), float(np.mean(middle)), max(high)
    return found.reset_index(drop=True)


def _title(text: str, frame: pd.DataFrame) -> str:
    return text if len(frame) <= _SHOWN else f"{text} (the {_SHOWN} most telling of {len(frame)})"


def _shown_tests(tests: pd.DataFrame) -> pd.DataFrame:
    return _marked(tests.assign(value=tests["value"].map(_short)))


def _short(value: float) -> str:
    """Counts as they are, other numbers with three decimals; never -0."""
    return f"{value:,.0f}" if float(value).is_integer() else f"{round(value, 3) + 0.0:.3f}"


def _shown_basis(basis: pd.DataFrame) -> pd.DataFrame:
    # The most telling first, where there are many.
    worst = basis.sort_values("p_value", kind="stable").head(_SHOWN).sort_index()
    shown = worst.assign(
        edf=worst["edf"].map("{:.2f}".format),
        k_index=worst["k_index"].map(_number("{:.3f}")),
        p_value=worst["p_value"].map(_number("{:.3f}")),
        terms=worst["terms"].map(lambda text: text if len(text) <= 30 else f"{text[:27]}..."),
    )
    return _marked(shown)


def _shown_concurvity(concurvity: pd.DataFrame) -> pd.DataFrame:
    worst = concurvity.sort_values("observed", ascending=False, kind="stable").head(_SHOWN).sort_index()
    numbers = ["worst", "observed", "estimate", "nearest_share"]
    return _marked(worst.assign(**{name: worst[name].map(_number("{:.3f}")) for name in numbers}))


def _marked(frame: pd.DataFrame) -> pd.DataFrame:
    """Sentences stand below the tables; a line that has one is marked."""
    marks = ["" if ok else "look" for ok in frame["ok"]]
    return frame.drop(columns=["ok", "verdict"]).assign(**{"": marks})


def _number(form: str) -> Any:
    return lambda value: "" if pd.isna(value) else form.format(value)


def _text(frame: pd.DataFrame) -> str:
    """Aligned for a terminal: names to the left, numbers to the right."""
    left = ("check", "parameter", "basis", "terms", "term", "nearest", "")
    columns = []
    for name in frame:
        cells = [str(name), *map(str, frame[name])]
        width = max(map(len, cells))
        columns.append([cell.ljust(width) if name in left else cell.rjust(width) for cell in cells])
    return "\n".join("  ".join(line).rstrip() for line in zip(*columns, strict=True))
