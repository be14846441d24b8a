"""The interaction map: shares of all pairs, sorted so that blocks show, and the strongest triples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy.cluster import hierarchy
from scipy.spatial.distance import squareform

from ahofm_keras.decomposition import Parts
from ahofm_keras.decomposition.names import check_count, name_parameter
from ahofm_keras.decomposition.parts import NOTHING, readable
from ahofm_keras.decomposition.ranking import over
from ahofm_keras.errors import DataError
from ahofm_keras.model import AdditiveModel
from ahofm_keras.plotting.texts import NEGLIGIBLE, join_names, shorten_apart
from ahofm_keras.plotting.theme import (
    BLUE,
    GRID,
    INK,
    LETTER,
    SEQUENTIAL,
    SMALL,
    TEXT,
    colour_bar,
    headline,
    inches,
    name_places,
    new_figure,
    note,
    styled,
    tidy,
)
from ahofm_keras.texts import percent

# Of a map of more features only shares from 1% on are written, without decimals.
_MOST_NUMBERS = 12
_LEAST_WRITTEN = 0.01
_LEAST_LETTERS = 4.5
_BAR_LETTERS = 42
_NAME_LETTERS = 28
# Where the colours may end, and their ticks.
_ENDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0)
_TICKS = (NEGLIGIBLE, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.04, 0.08, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0)
# Of the colours: the palest are hardly told from white.
_PALEST = 0.08
# Inches of a bar and its gap.
_BAR_HEIGHT = 0.4
# Inches of the longest bar with its share.
_BARS = 2.4


def plot_interaction_map(
    model: AdditiveModel,
    axes: Any = None,
    features: int = 50,
    triples: int = 10,
    parameter: str | None = None,
) -> np.ndarray:
    """Draw a table of all features by all features: shares of pairs, main effects on the diagonal.

    Features that interact stand side by side. Colours go with the square root of the share, which is the
    standard deviation of the part: a cell of twice the depth is an effect of twice the size. So 4% and
    18% are told apart, which logarithms would not do, and 1% is still seen beside 50%. What is below
    0.01% is white. Where the model has triples, the strongest stand beside the table as bars.

    Args:
        model: fitted.
        axes: one axes for the map, or two: for map and bars.
        features: how many are shown at most; those with the largest shares.
        triples: how many are shown at most; 0 for none.
        parameter: of the family whose predictor is read, by default the first; only models with several
            predictors have a choice.

    Returns:
        The axes: the map's, and that of the bars where there are triples.

    Raises:
        DataError: a model without interactions.

    The data behind the map is `interaction_map_data(model)`, that of the bars `triple_data(model)`.
    """
    model = readable(model, parameter)
    frame = interaction_map_data(model, features)
    check_count("triples", triples, 0, none=False)
    bars = triple_data(model, triples)
    with styled():
        letters = max((len(label) for label in bars["label"]), default=0)
        found = _map_axes(axes, len(frame), len(bars), letters)
        draw_map(found[0], frame)
        if len(found) > 1:
            draw_bars(found[1], bars)
    return found


def interaction_map_data(
    model: AdditiveModel, features: int = 50, parameter: str | None = None
) -> pd.DataFrame:
    """The data behind `plot_interaction_map`.

    Args:
        model: fitted.
        features: how many at most.
        parameter: of the family whose predictor is read, by default the first; only models with several
            predictors have a choice.

    Returns:
        A square frame of shares of the variance of the link, features in the order of the map; 0 where a
        pair has no part. `attrs` has `shown` and `left_out`, the shares of what is in it and of the
        features and pairs that are not.
    """
    check_count("features", features, 2, none=False)
    parts = Parts(model, parameter)
    shares = pair_shares(parts)
    if not np.triu(shares, 1).any():
        why = (
            "its formula has main effects only"
            if parts.largest_order < 2
            else "the fit switched them off"
        )
        raise DataError(f"The model has no pairs to map: {why}.")
    kept = np.sort(np.argsort(-_importance(shares), kind="stable")[:features])
    order = kept[seriate(shares[np.ix_(kept, kept)])]
    labels = [parts.variables[v].label for v in order]
    frame = pd.DataFrame(shares[np.ix_(order, order)], index=labels, columns=labels)
    frame.attrs |= {
        "shown": _once(frame.to_numpy()),
        "left_out": max(_once(shares) - _once(frame.to_numpy()), 0.0),
        "features": len(shares),
    }
    return name_parameter(frame, parts.parameter)


def pair_shares(parts: Parts) -> np.ndarray:
    """Shares of all pairs `(p, p)`, main effects on the diagonal."""
    size = len(parts.variables)
    shares = np.zeros((size, size))
    for order in (1, 2):
        subsets = parts.subsets(order)
        if len(subsets):
            found = over(parts.variances(subsets), parts.total_variance)
            found = np.where(found > NOTHING, found, 0.0)
            shares[subsets[:, 0], subsets[:, -1]] = found
            shares[subsets[:, -1], subsets[:, 0]] = found
    return shares


def seriate(shares: np.ndarray) -> np.ndarray:
    """An order of features in which those that interact with each other are neighbours.

    Average linkage on the logarithm of the pairs' shares, so that weak pairs count too. Of two branches
    the one with the larger pairs comes first; features without pairs follow, by the size of their main
    effect.
    """
    pairs = shares - np.diag(shares.diagonal())
    strength = np.log(np.maximum(pairs, NEGLIGIBLE) / NEGLIGIBLE) / np.log(1 / NEGLIGIBLE)
    joined = np.flatnonzero(strength.max(axis=1) > 0)
    alone = np.flatnonzero(strength.max(axis=1) <= 0)
    alone = alone[np.argsort(-_importance(shares)[alone], kind="stable")]
    if len(joined) < 3:
        return np.concatenate([joined[np.argsort(-_importance(shares)[joined], kind="stable")], alone])
    distance = 1 - strength[np.ix_(joined, joined)]
    np.fill_diagonal(distance, 0.0)
    tree = hierarchy.linkage(squareform(distance, checks=False), "average")
    return np.concatenate([joined[_leaves(tree, pairs[np.ix_(joined, joined)])], alone])


def _leaves(tree: np.ndarray, pairs: np.ndarray) -> list[int]:
    """Leaves of a tree of features, at each branching the side with the larger pairs first."""
    branches: list[list[int]] = [[leaf] for leaf in range(len(pairs))]
    weight = pairs.sum(axis=1)
    for first, second, *_ in tree:
        sides = [branches[int(first)], branches[int(second)]]
        sides.sort(key=lambda leaves: -weight[leaves].sum())
        branches.append(sides[0] + sides[1])
    return branches[-1]


def _importance(shares: np.ndarray) -> np.ndarray:
    """Main effect of each feature and half of each of its pairs."""
    return (shares.sum(axis=1) + shares.diagonal()) / 2


def _once(shares: np.ndarray) -> float:
    """The sum of all shares in a symmetric table, each pair once."""
    return float(np.triu(shares).sum())


def triple_data(model: AdditiveModel, top: int = 10, parameter: str | None = None) -> pd.DataFrame:
    """The data behind the bars beside the map: the strongest triples.

    Returns:
        `label`, `feature_1` to `feature_3` and `share`. `attrs` has the number of `others` that have a
        share, and that share, `rest`.
    """
    parts = Parts(model, parameter)
    if not top or parts.largest_order < 3:
        return pd.DataFrame({"label": [], "share": []})
    subsets = parts.subsets(3)
    shares = over(parts.variances(subsets), parts.total_variance)
    best = np.argsort(-shares, kind="stable")[:top]
    best = best[shares[best] > NOTHING]
    frame = pd.DataFrame({"label": [parts.label(subsets[k]) for k in best]}, dtype=object)
    for place in range(3):
        frame[f"feature_{place + 1}"] = [parts.variables[v].label for v in subsets[best, place]]
    frame["share"] = shares[best]
    others = int((shares > NOTHING).sum()) - len(best)
    frame.attrs |= {"others": others, "rest": max(float(shares.sum() - shares[best].sum()), 0.0)}
    return frame


def _map_axes(axes: Any, size: int, bars: int, letters: int) -> np.ndarray:
    if axes is not None:
        given = np.asarray(axes, object).reshape(-1)
        if not 1 <= len(given) <= 2 or not all(hasattr(ax, "plot") for ax in given):
            raise DataError(f"`axes` must be one or two matplotlib axes. Received: {len(given)}.")
        return given[: 2 if bars else 1]
    side = map_side(size)
    if not bars:
        return np.array([new_figure((side + 1.4, side)).add_subplot()], object)
    aside = _BARS + LETTER * SMALL / 72 * min(letters, _BAR_LETTERS)
    figure = new_figure((side + 1.4 + aside, side))
    grid = figure.add_gridspec(1, 2, width_ratios=(side + 1.4, aside))
    # Few bars do not fill a column as high as the map.
    high = min(side, 1.2 + _BAR_HEIGHT * max(bars, 5))
    cell = grid[1].subgridspec(2, 1, height_ratios=(high, side - high))[0] if side > high else grid[1]
    return np.array([figure.add_subplot(grid[0]), figure.add_subplot(cell)], object)


def map_side(size: int) -> float:
    """Inches of a map of so many features."""
    return float(np.clip(2.2 + 0.27 * size, 3.6, 9.5))


def draw_map(ax: Any, frame: pd.DataFrame) -> None:
    """Draw the map; shares as numbers where there is room.

    Args:
        ax: to draw on.
        frame: of `interaction_map_data`.
    """
    from matplotlib.colors import PowerNorm

    shares = frame.to_numpy()
    size = len(shares)
    tidy(ax, None)
    edges = np.arange(size + 1) - 0.5
    largest = next(end for end in _ENDS if end >= min(shares.max(), 1.0))
    drawn = ax.pcolormesh(
        edges, edges, np.ma.masked_less(shares, NEGLIGIBLE), cmap=_colours(),
        norm=PowerNorm(0.5, 0.0, largest), edgecolors=GRID, linewidth=0.5 if size <= 60 else 0,
    )  # fmt: skip
    for k in range(size):
        ax.add_patch(_square(k))
    _write_shares(ax, shares, largest)
    _name_features(ax, [str(name) for name in frame.index])
    ax.tick_params(length=0)
    ax.set_xlim(-0.5, size - 0.5)
    ax.set_ylim(size - 0.5, -0.5)
    ax.set_aspect("equal")
    for side in ("left", "bottom"):
        ax.spines[side].set_visible(False)
    _add_bar(ax, drawn, largest)
    headline(ax, "main effects and pairs", frame.attrs.get("shown"), words=size > 8)
    hidden = frame.attrs.get("features", size) - size
    if hidden > 0:
        left = percent(frame.attrs["left_out"])
        note(ax, f"the {size} strongest of {size + hidden} features; left out: {left} of variance")


def _colours() -> Any:
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    return ListedColormap(colormaps[SEQUENTIAL](np.linspace(_PALEST, 1.0, 256)))


def _name_features(ax: Any, names: list[str]) -> None:
    """Names along both axes; below the map upright where there are many."""
    size = len(names)
    short = shorten_apart(names, _NAME_LETTERS)
    letters = min(TEXT - 1, max(3.5, 0.7 * 72 * min(inches(ax)) / size))
    if size > _MOST_NUMBERS:
        ax.set_xticks(range(size), short, fontsize=letters, rotation=90)
    else:
        name_places(ax, short, letters)
    ax.set_yticks(range(size), short, fontsize=letters)


def _square(k: int) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle(
        (k - 0.5, k - 0.5), 1, 1, fill=False, edgecolor=INK, linewidth=0.9, zorder=3, clip_on=False
    )


def _write_shares(ax: Any, shares: np.ndarray, largest: float) -> None:
    size = len(shares)
    if few := size <= _MOST_NUMBERS:
        letters = SMALL if size <= 8 else SMALL - 1.2
    else:
        # Three letters have room in a cell; names take about a quarter of the map.
        letters = min(SMALL - 1.2, 0.75 * 72 * min(inches(ax)) / size / (3.4 * LETTER))
    if letters < _LEAST_LETTERS:
        return
    for row, column in np.argwhere(shares >= (NEGLIGIBLE if few else _LEAST_WRITTEN)):
        share = shares[row, column]
        ax.text(
            column, row, percent(share) if few else f"{share:.0%}", ha="center", va="center",
            fontsize=letters, color="white" if np.sqrt(share / largest) > 0.62 else INK,
        )  # fmt: skip


def _add_bar(ax: Any, drawn: Any, largest: float) -> None:
    bar = colour_bar(ax, drawn, "share of the variance of the link")
    ticks = [largest]
    for tick in reversed(_TICKS):
        if np.sqrt(ticks[-1] / largest) - np.sqrt(tick / largest) > 0.07:
            ticks.append(tick)
    bar.set_ticks(ticks, labels=[f"{100 * tick:g}%" for tick in ticks])
    bar.ax.minorticks_off()


def draw_bars(ax: Any, frame: pd.DataFrame) -> None:
    """Draw triples as horizontal bars, the strongest on top."""
    tidy(ax, "x")
    places = np.arange(len(frame))[::-1]
    ax.barh(places, frame["share"], height=0.62, color=BLUE, alpha=0.9, zorder=2)
    for place, share in zip(places, frame["share"], strict=True):
        ax.annotate(
            percent(share), (share, place), xytext=(3, 0), textcoords="offset points", va="center",
            fontsize=SMALL, color=INK,
        )  # fmt: skip
    names = frame[["feature_1", "feature_2", "feature_3"]].to_numpy().tolist()
    ax.set_yticks(places, [join_names(own, _BAR_LETTERS) for own in names])
    ax.tick_params(axis="y", length=0, labelsize=SMALL)
    ax.set_xlim(0, 1.25 * frame["share"].max())
    ax.set_ylim(min(-0.7, len(frame) - 6.7), len(frame) - 0.3)
    ax.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.3g}%")
    ax.xaxis.set_major_locator(_few_ticks())
    ax.spines["left"].set_visible(False)
    headline(ax, "strongest triples")
    if frame.attrs.get("others"):
        note(
            ax, f"{frame.attrs['others']:,} others: {percent(frame.attrs['rest'])} of variance together"
        )


def _few_ticks() -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(3)
