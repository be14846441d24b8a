"""Data of all kinds of columns, and short ways to terms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ahofm_keras.bases import evaluate_basis
from ahofm_keras.data import kind_of, read_columns
from ahofm_keras.formula import parse_formula
from ahofm_keras.penalties import difference_penalty
from ahofm_keras.terms import Design, Feature, fit_terms
from ahofm_keras.terms.smooth import SmoothTerm
from tests.reference import hat_degrees_of_freedom, terms_of

ROWS = 240


def make_data() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    data = {name: rng.uniform(size=ROWS) for name in ("x", "z", "w", "v")}
    data |= {f"d{count}": np.arange(ROWS) % float(count) for count in (2, 3, 4, 5, 6, 12)}
    data |= {
        "skewed": np.exp(1.5 * rng.normal(size=ROWS)),
        "hour": rng.uniform(0, 24, ROWS),
        "g": rng.choice(["a", "b", "c", "d"], ROWS),
        "two": rng.choice(["u", "v"], ROWS),
        "flag": rng.uniform(size=ROWS) < 0.4,
        "same": np.full(ROWS, 2.5),
        "same text": np.full(ROWS, "a"),
        "never": np.zeros(ROWS, bool),
        "y": rng.normal(size=ROWS),
    }
    return pd.DataFrame(data)


DATA = make_data()


def fit(formula: str, data: pd.DataFrame = DATA, **options: Any) -> Design:
    parsed = parse_formula(f"y ~ {formula}")
    columns = read_columns(data, parsed.columns())
    kinds = {name: kind_of(values) for name, values in columns.items()}
    return fit_terms(parsed, columns, kinds, **options)


def values_of(feature: Feature, data: pd.DataFrame = DATA) -> np.ndarray:
    name = next(iter(feature.expression.columns()))
    return read_columns(data, [name])[name]


def dense_df(feature: Feature, smoothing: float, kind: str = "2H-HH") -> float:
    """Degrees of freedom of the hat matrix of the centred basis."""
    rows = evaluate_basis(feature.basis, values_of(feature))
    size = feature.basis.size
    if feature.basis.kind == "re":
        root = np.eye(size)
    else:
        cyclic = feature.basis.kind == "cp"
        line = None if cyclic else np.asarray(feature.basis.line)
        values, vectors = np.linalg.eigh(difference_penalty(size, cyclic=cyclic, at=line))
        root = (vectors * np.sqrt(np.maximum(values, 0))).T
    means = rows.mean(axis=0)
    _, _, right = np.linalg.svd(means[None])
    constraint = right[1:].T
    return hat_degrees_of_freedom(rows @ constraint, root @ constraint, smoothing)[kind]


def smooth(formula: str, **options: Any) -> tuple[SmoothTerm, Feature]:
    design = fit(formula, **options)
    (term,) = terms_of(design, SmoothTerm)
    return term, design.features[term.feature]


def labels(design: Design) -> list[str]:
    return [term.label for term in design.terms]
