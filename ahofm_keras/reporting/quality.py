"""How well a model does, in figures that its family is judged by."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import rankdata

from ahofm_keras.model import AdditiveModel
from ahofm_keras.reporting.known_rows import KnownRows

Figure = dict[str, Any]


def describe_quality(model: AdditiveModel, rows: KnownRows | None) -> dict[str, Any]:
    """Figures with a label and what they mean; on the rows known, else those that the fit left.

    Returns:
        `source` (`"given"`, `"fit"`, `"record"` or None), `rows` and `figures`.
    """
    if rows is not None:
        source = "given" if rows.given else "fit"
        return {"source": source, "rows": len(rows), "figures": _measure(model, rows)}
    record = model.fit_result
    if record is None or record.deviance is None or not record.null_deviance:
        return {"source": None, "rows": None, "figures": []}
    if record.log_likelihood is None:
        figures = []
    elif len(model.design.predictors) > 1:
        assert record.rows is not None
        figures = [_log_score(record.log_likelihood / record.rows)]
    else:
        figures = [_explained(1 - record.deviance / record.null_deviance)]
    return {"source": "record", "rows": record.rows, "figures": figures}


def _measure(model: AdditiveModel, rows: KnownRows) -> list[Figure]:
    y, mean, family = rows.y, rows.mean, model.family
    several = len(model.design.predictors) > 1 or family.several_classes
    weight = np.ones(len(y)) if rows.weight is None else rows.weight
    figures = []
    if np.ptp(y[weight > 0]) > 0 and not several:  # else a constant leaves nothing unexplained
        null = float(family.unit_deviance(y, _null_mean(model, rows), np) @ weight)
        figures.append(_explained(1 - float(family.unit_deviance(y, mean, np) @ weight) / null))
    if family.several_classes:
        right = float(np.average(mean.argmax(axis=1) == y, weights=weight))
        note = "rows whose most likely class is theirs"
        figures.append(_figure("Right classes", right, note, "percent"))
        error = np.zeros(len(y))
    else:
        error = y - mean
    if family.binary:
        area = _area(y, mean, weight)
        figures.append(_figure("AUC", area, "0.5 is guessing, 1 sorts all rows rightly"))
        brier = float(np.average(error**2, weights=weight))
        figures.append(_figure("Brier score", brier, "mean squared error of the probability"))
    elif not family.several_classes:
        root = float(np.sqrt(np.average(error**2, weights=weight)))
        figures.append(_figure("RMSE", root, f"typical error, in units of {model.response}"))
        absolute = float(np.average(np.abs(error), weights=weight))
        figures.append(_figure("MAE", absolute, "mean absolute error"))
    dispersion = _dispersion(model)
    if family.is_loss:  # which is no likelihood
        return [figure for figure in figures if figure["value"] is not None]
    if several:
        parameters = family.inverse_links(rows.links)
        log = family.log_density(y, parameters, np) + family.log_constant(y)
        figures.append(_log_score(float(np.average(log, weights=weight))))
    elif dispersion is not None:
        score = family.log_likelihood(y, mean, dispersion, weight) / float(weight.sum())
        figures.append(_log_score(score))
    return [figure for figure in figures if figure["value"] is not None]


def _log_score(score: float) -> Figure:
    return _figure("Log score", score, "mean log-likelihood of a row; higher is better")


def _null_mean(model: AdditiveModel, rows: KnownRows) -> np.ndarray:
    """Means of the model of these rows that has an intercept and the offset only."""
    offset = model.design.only.offset(rows.columns)
    intercept = model.design.only.intercept
    start = model.family.start(rows.y, offset, rows.weight) if intercept else 0.0
    return np.asarray(model.family.inverse_link(start + offset, np))


def _dispersion(model: AdditiveModel) -> float | None:
    if model.family.dispersion_known:
        return 1.0
    record = model.fit_result
    if record is not None and record.dispersion:
        return float(record.dispersion)
    return float(model.posterior.dispersion) * model.dispersion_unit if model.has_posterior else None  # type: ignore


def _area(y: np.ndarray, mean: np.ndarray, weight: np.ndarray) -> float | None:
    """Probability that a row with 1 has a larger mean than one with 0; weights are left out."""
    used = weight > 0
    ones = y[used] == 1
    if ones.all() or not ones.any():
        return None
    ranks = rankdata(mean[used])
    count = int(ones.sum())
    return float((ranks[ones].sum() - count * (count + 1) / 2) / (count * (len(ones) - count)))


def _explained(share: float) -> Figure:
    note = "of what a constant leaves unexplained"
    return _figure("Deviance explained", share, note, "percent")


def _figure(label: str, value: float | None, note: str, kind: str = "number") -> Figure:
    finite = value is not None and np.isfinite(value)
    return {"label": label, "value": value if finite else None, "note": note, "kind": kind}
