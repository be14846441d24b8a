"""The effect of regions on their map."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from ahofm_keras.decomposition import Parts, effect
from ahofm_keras.decomposition.names import find_subset, name_parameter
from ahofm_keras.errors import DataError
from ahofm_keras.model import AdditiveModel
from ahofm_keras.plotting.grids import choose_grid
from ahofm_keras.plotting.picture import look_of
from ahofm_keras.plotting.surfaces import NOTHING_THERE, colour_limit, contour_levels, extent, value_bar
from ahofm_keras.plotting.theme import DIVERGING, FAINT, MASK, headline, note, one_axes, styled, tidy
from ahofm_keras.terms.regions import region_polygons

_SIZE = (5.0, 4.4)
NO_ROWS = "hatched: no rows, smoothed from the neighbours"
UNKNOWN = "grey: not in the model"


def plot_regions(
    model: AdditiveModel,
    feature: str,
    regions: Mapping[str, Any],
    *,
    ax: Any = None,
    parameter: str | None = None,
) -> Any:
    """Draw the effect of the regions of a category on their map.

    Args:
        model: fitted.
        feature: name of the category.
        regions: their borders, a GeoJSON `FeatureCollection` as `neighbours=` takes it.
        ax: axes to draw on.
        parameter: of the family whose predictor is read, by default the first; only models with several
            predictors have a choice.

    Returns:
        The axes.

    Raises:
        DataError: no category, or no GeoJSON.

    The data behind the picture is `regions_data(...)` with the same arguments.
    """
    from matplotlib.collections import PatchCollection

    parts = Parts(model, parameter)
    subset = _find(parts, feature)
    frame = regions_data(model, feature, regions, parameter=parameter)
    found = effect(parts.model, feature)
    look = look_of(parts, subset, choose_grid(parts, subset), 0.95)
    patches = region_polygons(regions, feature, frame["region"])
    with styled():
        ax = one_axes(ax, _SIZE)
        tidy(ax, None)
        levels = contour_levels(colour_limit(found, look))
        known = frame[frame["fit"].notna()]
        drawn = PatchCollection(
            [_patch(patches[region]) for region in known["region"]], cmap=DIVERGING, edgecolor=FAINT,
            linewidth=0.6,
        )  # fmt: skip
        drawn.set_array(known["fit"].to_numpy(float))
        drawn.set_clim(levels[0], levels[-1])
        ax.add_collection(drawn)
        notes = _cover(ax, patches, known.loc[known["rows"] == 0, "region"], True)
        notes += _cover(ax, patches, frame.loc[frame["fit"].isna(), "region"], False)
        ax.autoscale_view()
        ax.set_aspect("equal")
        ax.set_xticks([])
        ax.set_yticks([])
        for side in ("left", "bottom"):
            ax.spines[side].set_visible(False)
        if extent(found) == 0:
            notes.append(NOTHING_THERE)
        else:
            value_bar(ax, drawn, levels, look.effect_label)
        ax.set_label(found.label)
        headline(ax, found.label, found.share)
        note(ax, "; ".join(notes))
    return ax


def regions_data(
    model: AdditiveModel,
    feature: str,
    regions: Mapping[str, Any],
    *,
    parameter: str | None = None,
) -> pd.DataFrame:
    """The data behind `plot_regions`.

    Returns:
        One row per region of the map: `region`, `fit` and, where known, `se` of its effect, both missing
        where the model does not know the region, and the share of training `rows`.
    """
    parts = Parts(model, parameter)
    (place,) = _find(parts, feature)
    if not isinstance(regions, Mapping) or regions.get("type") != "FeatureCollection":
        raise DataError(
            "`regions` must be a GeoJSON `FeatureCollection`, a dict with the borders of the regions. "
            f"Received: {type(regions).__name__}."
        )
    variable, margin = parts.variables[place], parts.margins.single[place]
    found = effect(parts.model, feature)
    own = pd.DataFrame({"region": list(variable.levels), "fit": found.fit})
    if found.se is not None:
        own["se"] = found.se
    own["rows"] = margin.frequencies
    names = list(region_polygons(regions, feature, variable.levels))
    frame = pd.DataFrame({"region": names}).merge(own, how="left", on="region")
    return name_parameter(frame.fillna({"rows": 0.0}), parts.parameter)


def _find(parts: Parts, feature: str) -> tuple[int, ...]:
    subset = find_subset(parts, (feature,))
    if len(subset) != 1 or not parts.variables[subset[0]].is_category:
        raise DataError(f"A map of regions is that of one category. Received: `{feature}`.")
    return subset


def _patch(rings: list[np.ndarray]) -> Any:
    """A region with its holes and islands, as one path."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    return PathPatch(Path.make_compound_path(*(Path(ring, closed=True) for ring in rings)))


def _cover(
    ax: Any, patches: Mapping[Any, list[np.ndarray]], regions: pd.Series, hatched: bool
) -> list[str]:
    """Hatch regions, or fill those that have no colour."""
    for region in regions:
        patch = _patch(patches[region])
        patch.set(facecolor="none" if hatched else MASK, edgecolor=FAINT, linewidth=0.6)
        if hatched:
            patch.set_hatch("////")
        ax.add_patch(patch)
    if not len(regions):
        return []
    return [NO_ROWS if hatched else UNKNOWN]
