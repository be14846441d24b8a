"""Concurvity: how well each term's function can be written by the other terms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats
from scipy.linalg import cho_factor, cho_solve

from ahofm_keras.diagnostics.checked_rows import CheckedRows, quietly_predict
from ahofm_keras.draws import generator
from ahofm_keras.model import AdditiveModel

_ROWS = 10_000
# Directions that hold less than this share of a term's largest are rounding.
_RANK = 1e-10
# Added to the Gram matrix of the others, whose blocks are orthonormal, so that it can be inverted.
_RIDGE = 1e-9
# A fitted function whose standard deviation is a smaller share of the link's is pruned.
_NOTHING = 1e-7
# A term whose fitted function the others explain by more than this share is named.
_TOO_MUCH = 0.8
_CHANCE = 0.999

_COLUMNS = ["term", "worst", "observed", "estimate", "nearest", "nearest_share", "ok", "verdict"]


@dataclass(frozen=True, eq=False)
class Block:
    """A term, or one order of an interaction, at rows.

    Args:
        label: of the term.
        functions: the functions that it can use `(n, r)`; of an interaction only the fitted one.
        fitted: its contribution to the link `(n,)`.
        is_space: whether the functions span all that the term could be.
    """

    label: str
    functions: np.ndarray
    fitted: np.ndarray
    is_space: bool = True


def concurvity_frame(model: AdditiveModel, rows: CheckedRows, seed: int) -> pd.DataFrame:
    """Concurvity of all terms, at 10,000 rows at most."""
    chosen = np.arange(len(rows))
    if len(rows) > _ROWS:
        chosen = generator(seed, "concurvity").choice(len(rows), _ROWS, replace=False)
    return measure_concurvity(read_blocks(model, rows.take(chosen)))


def read_blocks(model: AdditiveModel, columns: dict[str, np.ndarray]) -> list[Block]:
    """What each term is made of; columns of one term stand side by side."""
    blocks: list[Block] = []
    if not any(term.column_labels for term in model.design.terms):
        return blocks
    contributions = quietly_predict(model, columns, type="terms")
    spans = model.design.layout.only.by_name
    for term in model.design.only.terms:
        if term.name in spans:
            functions = spans[term.name].block.on_columns(columns)
            blocks.append(Block(term.label, functions, contributions[term.label].to_numpy()))
            continue
        for label in term.column_labels:
            fitted = contributions[label].to_numpy()
            blocks.append(Block(label, fitted[:, None], fitted, is_space=False))
    return blocks


def measure_concurvity(blocks: list[Block]) -> pd.DataFrame:
    """mgcv's three measures, each from 0 (nothing) to 1 (all can be written by the others).

    With P the projection onto the functions of all other terms and a constant:

    - worst: the largest share |P g|^2 / |g|^2 of any function g of the term;
    - observed: that share of the fitted function;
    - estimate: |P X|^2 / |X|^2 of the term's functions X, all together.

    Of an interaction only the fitted function is known, so it has `observed` alone, and that function
    stands for it among the others. `nearest` is the single other term that explains most of the fitted
    function, `nearest_share` its share. As many functions as rows can write everything, so a term is
    `ok` unless the observed share is far above what noise would give.
    """
    if not blocks:
        return pd.DataFrame(columns=_COLUMNS)
    spaces = [_orthonormal(block.functions) for block in blocks]
    joint = np.concatenate([space for space, _ in spaces], axis=1)
    gram = joint.T @ joint
    ends = np.cumsum([space.shape[1] for space, _ in spaces])
    places = [np.arange(end - s.shape[1], end) for end, (s, _) in zip(ends, spaces, strict=True)]
    least = _NOTHING * np.sum([block.fitted for block in blocks], axis=0).std()
    found = []
    for i, block in enumerate(blocks):
        space, sizes = spaces[i]
        explained = _explained(gram, places[i])
        centred = block.fitted - block.fitted.mean()
        # The direction of the fitted function among the term's own.
        fitted = space.T @ centred if centred.std() > least else np.zeros(space.shape[1])
        worst = estimate = np.nan
        if block.is_space and len(explained):
            worst = np.linalg.eigvalsh(explained)[-1]
            estimate = sizes**2 @ explained.diagonal() / np.sum(sizes**2)
        observed = fitted @ explained @ fitted / (fitted @ fitted) if fitted.any() else np.nan
        nearest, share = _nearest(blocks, gram, places, i, fitted)
        line = [float(np.clip(value, 0.0, 1.0)) for value in (worst, observed, estimate)]
        ok = not _is_too_much(line[1], len(gram) - len(places[i]), len(block.fitted))
        text = "" if ok else _verdict(block.label, line[1], nearest, share)
        found.append((block.label, *line, nearest, share, ok, text))
    return pd.DataFrame(found, columns=_COLUMNS)


def _orthonormal(functions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Orthonormal functions `(n, r)` of the same span, up to a constant, and the sizes of each."""
    centred = functions - functions.mean(axis=0)
    left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    # Columns that do not vary at all are rounding too, however large they are among themselves.
    least = _RANK * max(sizes.max(initial=0.0), np.sqrt(np.sum(functions**2)))
    kept = (sizes > least) & (sizes > 0)
    return left[:, kept], sizes[kept]


def _explained(gram: np.ndarray, own: np.ndarray) -> np.ndarray:
    """X'PX for orthonormal functions X of one term and the projection P onto all others' `(r, r)`."""
    others = np.setdiff1d(np.arange(len(gram)), own)
    if not len(others):
        return np.zeros((len(own), len(own)))
    between = gram[np.ix_(others, own)]
    inner = gram[np.ix_(others, others)] + _RIDGE * np.eye(len(others))
    return between.T @ cho_solve(cho_factor(inner), between)


def _nearest(
    blocks: list[Block], gram: np.ndarray, places: list[np.ndarray], i: int, fitted: np.ndarray
) -> tuple[str, float]:
    """The other term that explains most of a fitted function, and how much of it."""
    if not fitted.any() or len(blocks) == 1:
        return "", np.nan
    total = fitted @ fitted
    shares = [
        -1.0 if j == i else float(np.sum((gram[np.ix_(places[j], places[i])] @ fitted) ** 2) / total)
        for j in range(len(blocks))
    ]
    best = int(np.argmax(shares))
    return blocks[best].label, min(shares[best], 1.0)


def _is_too_much(share: float, others: int, rows: int) -> bool:
    """Whether a share is large, also beside what as many functions of pure noise would explain.

    Theirs has a beta distribution; without it the share is as in the adjusted R^2.
    """
    left = rows - 1 - others
    if np.isnan(share) or left < 1:
        return False
    adjusted = 1 - (1 - share) * (rows - 1) / left
    by_chance = stats.beta.ppf(_CHANCE, others / 2, left / 2) if others else 0.0
    return bool(adjusted > _TOO_MUCH and share > by_chance)


def _verdict(label: str, observed: float, nearest: str, share: float) -> str:
    most = f", {share:.0%} by `{nearest}` alone" if share > 0.5 else ""
    return (
        f"{observed:.0%} of `{label}` can be written by the other terms{most}: the data hardly tells "
        "them apart."
    )
