"""Features as the libraries of the benchmarks want them; what is learned comes from training rows."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd

from comparison.problems import Split

SCREENED_ROWS = 20_000
BINS = 8


def as_categories(rows: Split, data: pd.DataFrame) -> pd.DataFrame:
    """Texts as categories; a level without training rows counts as missing."""
    data = data[rows.features].copy()
    for name in rows.texts:
        levels = sorted(rows.train[name].unique())
        data[name] = pd.Categorical(data[name].where(data[name].isin(levels)), levels)
    return data


def as_codes(rows: Split, data: pd.DataFrame) -> pd.DataFrame:
    """Texts as numbers of levels; a level without training rows counts as the most frequent one."""
    data = data[rows.features].copy()
    for name in rows.texts:
        levels = sorted(rows.train[name].unique())
        most = levels.index(rows.train[name].mode()[0])
        codes = {level: code for code, level in enumerate(levels)}
        data[name] = data[name].map(codes).fillna(most).astype(int)
    return data


def as_known(rows: Split, data: pd.DataFrame) -> pd.DataFrame:
    """Texts as they are, but a level without training rows becomes the most frequent one."""
    data = data[rows.features].copy()
    for name in rows.texts:
        known = data[name].isin(rows.train[name].unique())
        data[name] = data[name].where(known, rows.train[name].mode()[0])
    return data


def as_dummies(rows: Split, data: pd.DataFrame) -> np.ndarray:
    """`(n, c)`: an indicator of each level of each text but its most frequent one."""
    columns = [
        (data[name] == level).to_numpy(float)
        for name in rows.texts
        for level in sorted(set(rows.train[name]) - {rows.train[name].mode()[0]})
    ]
    return np.column_stack(columns) if columns else np.zeros((len(data), 0))


def numbers(rows: Split, distinct: bool = False) -> list[str]:
    """Features that are numbers; with `distinct` none that repeats another or is constant."""
    names = [name for name in rows.features if name not in rows.texts]
    if not distinct:
        return names
    kept = [name for name in names if rows.train[name].nunique() > 1]
    return [
        name
        for place, name in enumerate(kept)
        if not any(np.array_equal(rows.train[name], rows.train[other]) for other in kept[:place])
    ]


def bins_of(column: pd.Series) -> pd.Series:
    """Numbers of bins: a bin a value where values are few, else quantiles."""
    if column.nunique() <= BINS:
        return column.rank(method="dense")
    return pd.qcut(column, BINS, labels=False, duplicates="drop")


def strongest_pairs(rows: Split, names: list[str], number: int) -> list[tuple[str, str]]:
    """Pairs of numbers by what the means of a grid of their quantiles explain beyond main effects.

    Args:
        rows: whose training rows are looked at, a sample where there are many.
        names: features whose pairs compete.
        number: of pairs returned.

    Returns:
        The strongest pair first. A pair's score is the sum of squares between its cells, less what
        noise alone would give; main effects are taken out by regression on the bins of each feature.
    """
    train = rows.train.head(SCREENED_ROWS)
    bins = {name: bins_of(train[name]) for name in names}
    mains = [as_dummies(rows, train), np.ones((len(train), 1))]
    mains += [pd.get_dummies(codes).to_numpy(float) for codes in bins.values()]
    design, y = np.hstack(mains), train[rows.response].to_numpy(float)
    residuals = pd.Series(y - design @ np.linalg.lstsq(design, y, rcond=None)[0], train.index)

    def score(pair: tuple[str, str]) -> float:
        cells = residuals.groupby([bins[pair[0]], bins[pair[1]]])
        sums, sizes = cells.sum(), cells.size()
        return float(np.sum(sums**2 / sizes) - len(sizes) * residuals.var())

    return sorted(combinations(names, 2), key=score, reverse=True)[:number]
