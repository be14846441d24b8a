"""Regions with neighbours: who is whose neighbour, from what a user has, and the penalty of that.

A Markov random field has a coefficient per region and the penalty sum (b_i - b_j)^2 over all neighbours
i, j. A region without rows takes what its neighbours say.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from ahofm_keras.bases import Basis, make_levels
from ahofm_keras.errors import DataError, did_you_mean, warn
from ahofm_keras.formula import TermSpec
from ahofm_keras.transforms import Expression

# Region -> its neighbours.
Neighbours = dict[Hashable, set[Hashable]]
_EXAMPLE = '`neighbours={"region": {"a": ["b"], "b": ["a", "c"], "c": ["b"]}}`'


def learn_regions(
    expression: Expression, values: np.ndarray, given: Mapping[str, Any], spec: TermSpec
) -> Basis:
    """A level per region, with the neighbours that the user gave.

    Args:
        expression: the column of regions.
        values: its distinct training values.
        given: neighbours by the name of the column.
        spec: of the term, for messages.

    Raises:
        DataError: no neighbours given, a region of the data that they lack, or neighbours that do not
            agree.
    """
    name = next(iter(expression.columns()))
    if name not in given:
        hint = did_you_mean(name, given)
        raise DataError(
            f"`{spec.label}` needs the neighbours of each region of `{name}`: give them to the model, "
            f"{_EXAMPLE.replace('region', name)}, or regions as GeoJSON.{hint}"
        )
    own = list(values.tolist())
    known = read_neighbours(given[name], name, own)
    _check_regions(own, known, name)
    regions, pairs = _with_rows(own, known, name)
    return make_levels(tuple(regions), "mrf", pairs)


def read_neighbours(given: Any, name: str, regions: Iterable[Any] = ()) -> Neighbours:
    """Neighbours of each region, from a dict of lists or from GeoJSON.

    Args:
        given: region -> neighbours, or a GeoJSON `FeatureCollection`: regions that share a corner of
            their borders are neighbours.
        name: of the column.
        regions: of the data, which one of GeoJSON's properties must name.
    """
    where = f"`neighbours[{name!r}]`"
    if not isinstance(given, Mapping):
        raise DataError(
            f"{where} must be a dict from region to its neighbours, or GeoJSON. Received: "
            f"{type(given).__name__}."
        )
    if given.get("type") == "FeatureCollection":
        return _touching(region_polygons(given, name, regions))
    found: Neighbours = {}
    for region, others in given.items():
        if isinstance(others, str) or not isinstance(others, Iterable):
            raise DataError(f"{where}[{region!r}] must be a list of regions. Received: {others!r}.")
        found[_plain(region)] = {_plain(other) for other in others}
    for region, own in found.items():
        if region in own:
            raise DataError(f"{where} has {region!r} as its own neighbour. Take it out.")
        for other in own:
            if other not in found:
                raise DataError(
                    f"{where} has {other!r} as a neighbour of {region!r}, but does not list the "
                    f"neighbours of {other!r}. Add it."
                )
            if region not in found[other]:
                raise DataError(
                    f"{where} has {other!r} as a neighbour of {region!r}, but not {region!r} as one of "
                    f"{other!r}. Neighbours go both ways: add it, or take the other one out."
                )
    return found


def region_polygons(
    given: Mapping[str, Any], name: str, regions: Iterable[Any] = ()
) -> dict[Hashable, list[np.ndarray]]:
    """Rings of corners `(n, 2)` of each region of a GeoJSON `FeatureCollection`.

    A region is named by the property that has the regions' names, or by the feature's `id`.
    """
    wanted, features = {_plain(region) for region in regions}, list(given.get("features", ()))
    names = [{"id": f.get("id"), **(f.get("properties") or {})} for f in features]
    keys = list(dict.fromkeys(key for own in names for key in own))
    key = _naming_key(names, keys, wanted, name)
    found: dict[Hashable, list[np.ndarray]] = defaultdict(list)
    for feature, own in zip(features, names, strict=True):
        geometry = feature.get("geometry") or {}
        kind, coordinates = geometry.get("type"), geometry.get("coordinates", [])
        if kind not in ("Polygon", "MultiPolygon"):
            raise DataError(
                f"GeoJSON of `{name}`: regions are of type Polygon or MultiPolygon. Received: {kind!r}."
            )
        polygons = [coordinates] if kind == "Polygon" else coordinates
        rings = [np.asarray(ring, float)[:, :2] for polygon in polygons for ring in polygon]
        found[_plain(own[key])] += rings
    return dict(found)


def _naming_key(names: list[dict[str, Any]], keys: list[str], wanted: set[Hashable], name: str) -> str:
    """The property that names the regions: the column's own name first, else one that has all names."""
    lacking: dict[str, int] = {}
    for key in sorted(keys, key=lambda own: own != name):
        values = [own.get(key) for own in names]
        if all(isinstance(value, Hashable) and value is not None for value in values):
            lacking[key] = len(wanted - {_plain(value) for value in values})
            if not lacking[key]:
                return key
    if not lacking:
        raise DataError(f"GeoJSON of `{name}` has no property that names each of its regions.")
    # The nearest one; which region it lacks is said later.
    return min(lacking, key=lambda own: lacking[own])


def _touching(polygons: Mapping[Hashable, list[np.ndarray]]) -> Neighbours:
    """Regions that share a corner."""
    at: dict[tuple[float, float], set[Hashable]] = defaultdict(set)
    for region, rings in polygons.items():
        for ring in rings:
            for x, y in ring.tolist():
                at[x, y].add(region)
    found: Neighbours = {region: set() for region in polygons}
    for together in at.values():
        for region in together:
            found[region] |= together - {region}
    return found


def _check_regions(own: list[Any], known: Neighbours, name: str) -> None:
    """Raise where the neighbours lack a region of the data."""
    missing = sorted((region for region in own if region not in known), key=str)
    if not missing:
        return
    kinds = {type(region).__name__ for region in known}
    shown = ", ".join(map(repr, missing[:5])) + (", ..." if len(missing) > 5 else "")
    same = {str(region).removesuffix(".0") for region in missing} & set(map(str, known))
    if same:
        reason = (
            f"it has {', '.join(sorted(kinds))} for the names of regions, the column "
            f"{type(missing[0]).__name__}: {missing[0]!r}. Write them as the column does."
        )
    else:
        hint = did_you_mean(str(missing[0]), [str(region) for region in known])
        reason = (
            f"add {'them' if len(missing) > 1 else 'it'}, with an empty list where there is none.{hint}"
        )
    raise DataError(
        f"`neighbours[{name!r}]` lacks {len(missing)} of the {len(own)} regions of `{name}`: {shown}; "
        f"{reason}"
    )


def _with_rows(
    own: list[Any], known: Neighbours, name: str
) -> tuple[list[Any], tuple[tuple[int, int], ...]]:
    """All regions that rows, or a way to a region with rows, say something of; pairs of neighbours."""
    regions = sorted(known, key=lambda region: (str(type(region)), region))  # type: ignore[type-var]
    graph = _graph(regions, known)
    _, component = connected_components(graph, directed=False)
    present = set(own)
    seen = {component[place] for place, region in enumerate(regions) if region in present}
    kept = [region for place, region in enumerate(regions) if component[place] in seen]
    if len(kept) < len(regions):
        lost = [region for place, region in enumerate(regions) if component[place] not in seen]
        shown = ", ".join(map(repr, lost[:5])) + (", ..." if len(lost) > 5 else "")
        warn(
            f"{len(lost)} of {len(regions)} regions of `{name}` have no rows, nor has any region that "
            f"they are connected with: {shown}. They count as the average of the training rows."
        )
    place_of = {region: place for place, region in enumerate(kept)}
    pairs = tuple(
        (place_of[region], place_of[other])
        for region in kept
        for other in sorted(known[region], key=lambda own: place_of[own])
        if place_of[region] < place_of[other]
    )
    return kept, pairs


def _graph(regions: list[Any], known: Neighbours) -> Any:
    place_of = {region: place for place, region in enumerate(regions)}
    pairs = [(place_of[a], place_of[b]) for a in regions for b in known[a]]
    first, second = np.array(pairs, int).reshape(-1, 2).T
    size = len(regions)
    return coo_array((np.ones(len(first)), (first, second)), shape=(size, size)).tocsr()


def neighbours_of(basis: Basis) -> dict[Any, list[Any]]:
    """Neighbours of each region of a basis, as a user would give them."""
    found: dict[Any, list[Any]] = {level: [] for level in basis.levels}
    for first, second in basis.neighbours:
        found[basis.levels[first]].append(basis.levels[second])
        found[basis.levels[second]].append(basis.levels[first])
    return found


def neighbour_penalty(size: int, pairs: Iterable[tuple[int, int]]) -> np.ndarray:
    """P `(size, size)` with b' P b = sum (b_i - b_j)^2 over all pairs of neighbours."""
    penalty = np.zeros((size, size))
    for first, second in pairs:
        penalty[[first, second], [first, second]] += 1.0
        penalty[[first, second], [second, first]] -= 1.0
    return penalty


def count_parts(size: int, pairs: Iterable[tuple[int, int]]) -> int:
    """How many parts of a map are not connected with each other."""
    listed = np.array(list(pairs), int).reshape(-1, 2)
    graph = coo_array((np.ones(len(listed)), listed.T), shape=(size, size))
    return int(connected_components(graph.tocsr(), directed=False)[0])


def _plain(value: Any) -> Hashable:
    """A name as a column of the data has it: numbers are floats there."""
    value = value.item() if isinstance(value, np.generic) else value
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value
