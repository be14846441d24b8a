"""What a page computes from its contents, written down once more, with SciPy's B-splines."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from scipy.interpolate import BSpline
from scipy.spatial.distance import cdist
from scipy.special import kv, xlogy

from ahofm_keras.reporting.encoding import unpack
from ahofm_keras.transforms import Expression, evaluate_expression

_INVERSE = {"identity": lambda x: x, "log": np.exp, "logit": lambda x: 1 / (1 + np.exp(-x))}


def predict(contents: dict[str, Any], row: dict[str, Any]) -> float:
    """The mean of one row, from the page's contents alone."""
    arithmetic = contents["arithmetic"]
    functions = [_functions(variable, row) for variable in arithmetic["variables"]]
    link, held = arithmetic["raw_constant"], 0.0
    for group in arithmetic["groups"]:
        pairs = zip(group["members"], group["weights"], strict=True)
        factors = [unpack(weights).T @ functions[v] for v, weights in pairs]
        for subset in combinations(factors, group["order"]):
            product = float(unpack(group["scale"]) @ np.prod(subset, axis=0))
            link, held = (link, held + product) if group["held"] else (link + product, held)
    link += held if arithmetic["held_range"] is None else np.clip(held, *arithmetic["held_range"])
    link += sum(_evaluate(offset["expression"], row) for offset in arithmetic["offsets"])
    return float(_INVERSE[contents["family"]["link"]](link))


def _evaluate(expression: dict[str, Any], row: dict[str, Any]) -> Any:
    columns = {
        name: np.array([value], object if isinstance(value, str) else None)
        for name, value in row.items()
    }
    return np.asarray(evaluate_expression(Expression.from_json(expression), columns))[0]


def _functions(variable: dict[str, Any], row: dict[str, Any]) -> np.ndarray:
    value = _evaluate(variable["expression"], row)
    if variable["levels"]:
        value = variable["levels"].index(value)
    found = [
        _basis(basis, value) if basis["transform"] is None
        else unpack(basis["transform"]).T @ _basis(basis, value)
        for basis in variable["bases"]
    ]  # fmt: skip
    for product in variable["products"]:
        found.append(np.array([np.prod([_component(own, value) for own in product])]))
    return np.concatenate(found)


def _component(component: dict[str, Any], value: float) -> float:
    if "level" in component:
        return float(component["level"] in (-1, value))
    if "poly" in component:
        centre, spread, *rest = component["poly"]
        shifts, ratios, norms = np.array(rest).reshape(3, -1)
        before, current = 0.0, 1.0
        for k in range(component["power"] + 1):
            before, current = (
                current,
                ((value - centre) / spread - shifts[k]) * current - ratios[k] * before,
            )
        return float(current / norms[component["power"]])
    return float(value)


def _basis(basis: dict[str, Any], value: float) -> np.ndarray:
    """Functions of a basis inside the range of the training data."""
    size, degree, axis = basis["size"], basis["degree"], unpack(basis["axis"])
    if basis["radial"] is not None:
        return _radial(basis["radial"], value)
    if basis["kind"] in ("re", "mrf"):
        return np.eye(size)[value]
    if basis["kind"] == "linear":
        return np.array([(value - axis[0]) / axis[1]])
    if value in basis["atoms"]:
        return np.eye(size)[size - len(basis["atoms"]) + basis["atoms"].index(value)]
    place = np.interp(value, axis, unpack(basis["warped"])) * basis["intervals"]
    knots = np.arange(-degree, size + 1.0)
    found = BSpline.design_matrix([place], np.arange(-degree, basis["intervals"] + degree + 1.0), degree)
    values = found.toarray()[0]
    if basis["kind"] == "cp":  # functions that leave the circle come back on its other side
        return np.array([values[k::size].sum() for k in range(size)])
    splines = values[: len(knots) - degree - 1 - len(basis["atoms"])]
    return np.concatenate([splines, np.zeros(len(basis["atoms"]))])


def _radial(radial: dict[str, Any], value: Any) -> np.ndarray:
    """Functions of distances, by SciPy's distances."""
    place = (np.atleast_1d(value) - unpack(radial["centre"])) / radial["unit"]
    r = cdist(place[None], unpack(radial["knots"]))[0]
    kernels = {
        "logarithm": lambda: -((-1) ** (radial["shape"] // 2)) * xlogy(r ** radial["shape"], r),
        "power": lambda: (-1) ** np.ceil(radial["shape"] / 2) * r ** radial["shape"],
        "matern_3": lambda: matern(r / radial["shape"]),
    }
    polynomials = np.prod(place ** np.array(radial["powers"]), axis=1)
    return kernels[radial["kernel"]]() @ unpack(radial["projection"]) + polynomials @ unpack(
        radial["mixing"]
    )


def matern(r: np.ndarray) -> np.ndarray:
    """Of 3/2, by Bessel functions."""
    return np.where(
        r > 0, np.sqrt(2 / np.pi) * np.maximum(r, 1e-9) ** 1.5 * kv(1.5, np.maximum(r, 1e-9)), 1.0
    )
