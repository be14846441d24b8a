"""How well a model does, in figures that its family is judged by."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import rankdata

from ahofm_keras.errors import DataError
from ahofm_keras.families.baseline import EVENT
from ahofm_keras.model import AdditiveModel
from ahofm_keras.reporting.known_rows import KnownRows
from ahofm_keras.reporting.responses import level_words
from ahofm_keras.reporting.words import response_words
from ahofm_keras.survival_curves import share_in_order

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
    family = model.family
    weight = np.ones(len(rows)) if rows.weight is None else rows.weight
    if family.nuisance:
        figures = _of_times(rows)
    elif family.is_loss:
        figures = _of_a_loss(model, rows, weight)
    elif family.several_classes:
        figures = _of_classes(rows, weight)
    else:
        figures = _of_means(model, rows, weight)
    return [figure for figure in figures if figure["value"] is not None]


def _of_times(rows: KnownRows) -> list[Figure]:
    """Whether censored times come in the predicted order."""
    events = float(np.sum(rows.y[:, EVENT] > 0))
    found = _figure(
        "Events", events, "rows whose event was seen; of the others it is known when it was not yet"
    )
    try:
        share = share_in_order(rows.y, next(iter(rows.links.values())))
    except DataError:  # too few events to have an order
        return [found]
    return [_figure("Concordance", share, "pairs of rows in the right order; 0.5 is guessing"), found]


def _of_a_loss(model: AdditiveModel, rows: KnownRows, weight: np.ndarray) -> list[Figure]:
    """Nothing is predicted but what the loss asks for."""
    family = model.family
    if not family.levels:
        return _explained_figures(model, rows, weight)
    quantiles = family.quantiles_of(family.inverse_links(rows.links))  # type: ignore[attr-defined]
    figures = []
    for level, own in zip(family.levels, quantiles.values(), strict=True):
        below = float(np.average(rows.y <= own, weights=weight))
        note = f"rows below the {level_words(level)}; {100 * level:.4g} % is right"
        figures.append(_figure(f"Below the {level_words(level)}", below, note, "percent"))
    return figures


def _of_classes(rows: KnownRows, weight: np.ndarray) -> list[Figure]:
    right = float(np.average(rows.mean.argmax(axis=1) == rows.y, weights=weight))
    places = rows.y.astype(int)
    with np.errstate(divide="ignore"):
        log = np.log(rows.mean[np.arange(len(rows)), places])
    note = "rows whose most likely class is theirs"
    score = _log_score(float(np.average(log, weights=weight)))
    return [_figure("Right classes", right, note, "percent"), score]


def _of_means(model: AdditiveModel, rows: KnownRows, weight: np.ndarray) -> list[Figure]:
    y, mean, family = rows.y, rows.mean, model.family
    several, error = len(model.design.predictors) > 1, rows.y - rows.mean
    figures = [] if several else _explained_figures(model, rows, weight)
    if family.binary:
        area = _area(y, mean, weight)
        figures.append(_figure("AUC", area, "0.5 is guessing, 1 sorts all rows rightly"))
        brier = float(np.average(error**2, weights=weight))
        figures.append(_figure("Brier score", brier, "mean squared error of the probability"))
    else:
        root, unit = float(np.sqrt(np.average(error**2, weights=weight))), response_words(model.response)
        figures.append(_figure("RMSE", root, f"typical error, in units of {unit}"))
        absolute = float(np.average(np.abs(error), weights=weight))
        figures.append(_figure("MAE", absolute, "mean absolute error"))
    dispersion = _dispersion(model)
    if several:
        parameters = family.inverse_links(rows.links)
        log = family.log_density(y, parameters, np) + family.log_constant(y)
        figures.append(_log_score(float(np.average(log, weights=weight))))
    elif dispersion is not None:
        score = family.log_likelihood(y, mean, dispersion, weight) / float(weight.sum())
        figures.append(_log_score(score))
    return figures


def _explained_figures(model: AdditiveModel, rows: KnownRows, weight: np.ndarray) -> list[Figure]:
    """The share of the deviance that is explained, where a constant leaves some unexplained."""
    if np.ptp(rows.y[weight > 0]) == 0:
        return []
    null = float(model.family.unit_deviance(rows.y, _null_mean(model, rows), np) @ weight)
    own = float(model.family.unit_deviance(rows.y, rows.mean, np) @ weight)
    return [_explained(1 - own / null)]


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
