"""`coef` and `vcov`: coefficients and their covariance, labelled, in the user's units."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.linalg import block_diag

from ahofm_keras.decomposition.names import name_parameter
from ahofm_keras.decomposition.parts import readable
from ahofm_keras.errors import DataError, NotFittedError, did_you_mean
from ahofm_keras.model import AdditiveModel
from ahofm_keras.summaries.linear import LinearCoefficients
from ahofm_keras.terms import InteractionOrder
from ahofm_keras.terms.blocks import function_labels


def coef(
    model: AdditiveModel,
    term: str | None = None,
    *,
    interactions: bool = False,
    parameter: str | None = None,
) -> pd.Series:
    """Coefficients in the user's units.

    The intercept is the link where all linear columns are 0 and smooths are at their mean, 0. A linear
    column has the coefficient of its raw values. A smooth `s(x)` has those of its B-spline basis
    functions, `s(x).1`, `s(x).2`, ... (of a category, one per level, `s(group)[a]`), which are centred:
    s(x) = sum_m b_m(x) coef_m. A tensor product has those of the products of its margins' basis
    functions, `ti(x, z).x.1:z.2`, of a category `ti(x, group).x.1:group[a]`; a `te(x, z)` also those of
    each smaller set of its margins, `te(x, z).x.1`. An order of an interaction has those of its factors,
    `ahofm(x1, x2)[2].x1.f1.3`: feature, factor, basis function. They are scaled evenly, so that
    sum_f e_d(phi_1f, ..., phi_pf) is in units of the link.

    Args:
        model: fitted.
        term: label of one term, e.g. `"s(x1)"`, `"ti(x1, x2)"`, `"ahofm(x1, x2)"` or, of one order,
            `"ahofm(x1, x2)[2]"`; by default intercept, linear terms, smooths and tensor products.
        interactions: whether interaction terms are added; without `term` only.
        parameter: of the family whose predictor is read, by default the first; only models with several
            predictors have a choice.

    Returns:
        A series with a label per coefficient.

    Raises:
        NotFittedError: an unfitted model.
        DataError: an unknown term.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> data = pd.DataFrame({"x": np.linspace(0, 1, 50)})
        >>> data["y"] = 3 + 2 * data.x + 0.01 * rng.normal(size=50)
        >>> model = AdditiveModel("y ~ x", data)
        >>> history = model.fit(data, verbose=0)
        >>> coef(model).round(1).to_dict()
        {'(Intercept)': 3.0, 'x': 2.0}
    """
    model = readable(model, parameter)
    block = LinearCoefficients(model)
    linear, orders = _chosen(model, block, term)
    if term is None and interactions:
        orders = list(model.design.layout.only.orders)
    values = [block.values[linear], *(_factor_coefficients(model, order) for order in orders)]
    labels = [*np.array(block.labels, object)[linear], *_factor_labels(model, orders)]
    found = pd.Series(np.concatenate(values), pd.Index(labels, dtype=object), name="coef")
    return name_parameter(found, model.of_parameter)


def vcov(model: AdditiveModel, term: str | None = None, *, parameter: str | None = None) -> pd.DataFrame:
    """Posterior covariance of the coefficients, in the order and units of `coef(model, term)`.

    Intercept, linear terms, smooths and tensor products have one joint covariance; roots of its diagonal
    are the standard errors. Coefficients of a smooth's basis functions, and of their products, are tied
    by centring, so their part is singular. Factors of different features of an interaction, and of
    different orders, are independent in the posterior (mean field), so the covariance of an interaction
    is block diagonal: one block per feature, with all its factors, of which those of different groups
    are independent too. Inside a group the model keeps what predictions need: the covariances of those
    functions of a factor that are not zero together, and of two factors those of the same function. The
    others are NaN.

    Args:
        model: fitted.
        term: label of one term, or of one order of an interaction, as in `coef`.
        parameter: of the family whose predictor is read, by default the first; only models with several
            predictors have a choice.

    Raises:
        NotFittedError: a model without a posterior.
        DataError: an unknown term.
    """
    model = readable(model, parameter)
    if not model.has_posterior:
        raise NotFittedError(
            "The model has no posterior, so its coefficients have no covariance. Fit it on a data "
            "frame, not on a dataset, with the family's own loss."
        )
    block = LinearCoefficients(model)
    linear, orders = _chosen(model, block, term)
    parts = [block.covariance[linear, linear]] if len(block.labels[linear]) or not orders else []
    parts += [covariance for order in orders for covariance in _factor_covariances(model, order)]
    labels = pd.Index([*block.labels[linear], *_factor_labels(model, orders)], dtype=object)
    return name_parameter(pd.DataFrame(block_diag(*parts), labels, labels), model.of_parameter)


def _chosen(
    model: AdditiveModel, block: LinearCoefficients, label: str | None
) -> tuple[slice, list[InteractionOrder]]:
    """Which coefficients of the linear block, and which orders, a label names."""
    if label is None:
        return slice(None), []
    known: list[str] = []
    layout = model.design.layout.only
    for term in model.design.only.terms:
        if term.label == label and term.name in layout.by_name:
            return block.spans[term.name].own, []
        orders = layout.orders_of(term)
        found = [order for order in orders if label in (term.label, order.label)]
        if found:
            return slice(0, 0), found
        if orders or term.name in layout.by_name:
            known += dict.fromkeys([term.label, *(order.label for order in orders)])
    # An order that the term does not have: the term itself.
    hint = did_you_mean(str(label), known) or did_you_mean(str(label).partition("[")[0], known)
    listed = ", ".join(f"`{name}`" for name in known[:10]) + (", ..." if len(known) > 10 else "")
    raise DataError(f"The model has no term `{label}`.{hint} It has: {listed or 'none'}.")


def _count_factors(model: AdditiveModel, order: InteractionOrder) -> int:
    """Factors of an order that are in use, and those before them."""
    return int(model.get_layer(order.name).in_use[order.index])


def _factor_labels(model: AdditiveModel, orders: list[InteractionOrder]) -> list[str]:
    labels = []
    for order in orders:
        for feature in order.features:
            for factor in range(_count_factors(model, order)):
                labels += function_labels(f"{order.label}.{feature.label}.f{factor + 1}", feature)
    return labels


def _unit(model: AdditiveModel, order: InteractionOrder) -> float:
    """What a factor is multiplied by, so that products of d factors are in units of the link."""
    return float(model.scale ** (1 / order.order))


def _factor_coefficients(model: AdditiveModel, order: InteractionOrder) -> np.ndarray:
    """Coefficients of the basis functions, by feature, factor and function."""
    factors = _count_factors(model, order)
    coordinates = model.get_layer(order.name).coordinates(order.index)[..., :factors].astype(float)
    parts = []
    for j, feature in enumerate(order.features):
        own = coordinates[j, : feature.transform.shape[1]]
        parts.append((feature.transform @ own).T.reshape(-1))
    return _unit(model, order) * np.concatenate(parts)


def _factor_covariances(model: AdditiveModel, order: InteractionOrder) -> list[np.ndarray]:
    """Covariance of the coefficients of all factors of each feature, NaN where it is not kept."""
    assert model.posterior is not None
    place = model.design.layout.only.order_index[order.key]
    slots = np.arange(_count_factors(model, order))
    found = []
    for j, feature in enumerate(order.features):
        size = feature.basis.size
        blocks = np.zeros((len(slots), size, len(slots), size))
        for number in np.unique(slots // order.rank):
            own = slots[slots // order.rank == number]
            known = _filled(model.posterior.band(place, j, own))
            blocks[np.ix_(own, range(size), own, range(size))] = known.transpose(0, 2, 1, 3)
        flat = blocks.reshape(len(slots) * size, -1)
        found.append(_unit(model, order) ** 2 * flat)
    return found


def _filled(bands: np.ndarray) -> np.ndarray:
    """Covariances `(F, F, M, M)` of factors from their bands, NaN where these do not tell.

    Of two factors they hold the mean of those of functions a and b, and b and a.
    """
    count, _, size, width = bands.shape
    found = np.full((count, count, size, size), np.nan)
    rows = np.arange(size)[:, None]
    columns = (rows + np.arange(width)) % size
    same = np.arange(count)
    own = bands[same, same]
    found[same[:, None, None], same[:, None, None], rows, columns] = own
    found[same[:, None, None], same[:, None, None], columns, rows] = own
    found[..., rows[:, 0], rows[:, 0]] = bands[..., 0]
    return found
