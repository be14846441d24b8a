"""`fit(init_from=other)`: which terms of another model a fit begins at."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import keras

from ahofm_keras.errors import DataError, NotFittedError, warn
from ahofm_keras.solvers.origin import Origin, take_weights
from ahofm_keras.solvers.posterior import forget_posterior
from ahofm_keras.terms import Term
from ahofm_keras.terms.features import Feature
from ahofm_keras.terms.layout import PredictorLayout

# These begin at the posterior of the other model, the rest at its weights.
_WITH_POSTERIOR = ("variational", "hybrid")
# Terms that a message names.
_MOST = 8


def begin_at_terms(model: Any, other: Any, solver: str, verbose: Any) -> Origin | None:
    """Take the coefficients of the terms that another model has too; tells which.

    Args:
        model: to be fitted.
        other: given as `init_from`, checked.
        solver: that fits it.
        verbose: whether the user wants to be told.

    Returns:
        Where the variational solver begins; None where it can only begin anew, and for other solvers.
    """
    taken, reasons = _match(model, other)
    for label, reason in reasons.items():
        warn(f"`init_from`: `{label}` starts as it would without it: {reason}.")
    if not taken:
        if not reasons:
            own, others = (_listed(each.design.terms) for each in (model, other))
            warn(
                f"`init_from` has no effect: the model has the terms {own}, the other model {others}, "
                "none of which is in both."
            )
        return None
    origin = Origin(other, {mine.name: theirs.name for mine, theirs in taken})
    anew = _why_anew(model, other, origin) if solver in _WITH_POSTERIOR else None
    if anew is not None:
        warn(f'`init_from` has no effect with solver="{solver}", which begins anew: {anew}.')
        return None
    forget_posterior(model)
    take_weights(model, origin)
    if verbose:
        print(f"Starting from the other model's {_listed(mine for mine, _ in taken)}.")
    return origin if solver in _WITH_POSTERIOR else None


def check_init_from(model: Any, other: Any) -> None:
    """Raise a `DataError` where nothing of another model can be meant, or `NotFittedError`."""
    if not (isinstance(other, keras.Model) and hasattr(other, "design")):
        raise DataError(f"`init_from` takes a fitted `AdditiveModel`. Received: {type(other)}.")
    if other is model:
        raise DataError("`init_from` is another model: a second `fit` of the same goes on by itself.")
    for whose, each in (("This one", model), ("The other", other)):
        if len(each.design.predictors) > 1:
            names = ", ".join(f"`{name}`" for name in each.design.predictors)
            raise DataError(f"`init_from` is for models with one predictor. {whose} has {names}.")
    if not other.is_fitted:
        raise NotFittedError("The model given as `init_from` is not fitted: call its `fit` first.")
    links = [each.family.link for each in (model, other)]
    if links[0] != links[1]:
        raise DataError(
            f"The model given as `init_from` has the {links[1]} link, this one the {links[0]} link: "
            "coefficients of one mean nothing in the other."
        )
    if str(model.response) != str(other.response):
        raise DataError(
            f"The model given as `init_from` is of `{other.response}`, this one of "
            f"`{model.response}`: coefficients of one mean nothing in the other."
        )


def _match(model: Any, other: Any) -> tuple[list[tuple[Term, Term]], dict[str, str]]:
    """The terms that both have, and why those of the same label do not agree, by label."""
    theirs = {term.label: term for term in other.design.terms if term.offset is None}
    taken, reasons = [], {}
    for term in model.design.terms:
        if term.offset is not None or term.label not in theirs:
            continue
        reason = _difference(model, term, other, theirs[term.label])
        if reason is None:
            taken.append((term, theirs[term.label]))
        else:
            reasons[term.label] = reason
    return taken, reasons


def _difference(model: Any, term: Term, other: Any, known: Term) -> str | None:
    """Why coefficients of a term of another model are not those of one here; None where they are."""
    layouts = [each.design.layout.only for each in (model, other)]
    if term in layouts[0].opaque:
        return "a network starts from the weights that `nets` has"
    if type(term) is not type(known):
        return "the other model's is another kind of term"
    for place, theirs in zip(term.features, known.features, strict=False):
        reason = _other_basis(model.design.features[place], other.design.features[theirs])
        if reason is not None:
            return reason
    if term.parametric != known.parametric:
        return "levels, or centre and scale, were learned from other rows"
    sums = [each.weight_function for each in (term, known)]
    if len({str(None if own is None else own.config()) for own in sums}) > 1:
        return "its functions were learned from other rows"
    if _shape(layouts[0], term) != _shape(layouts[1], known):
        return "the other model's has other options"
    return None


def _other_basis(own: Feature, other: Feature) -> str | None:
    """How the basis of a feature differs from another, in words; None where it does not."""
    if own.expression != other.expression:
        return f"`{own.label}` was learned from other rows"
    sizes = [len(each.eigenvalues) for each in (own, other)]
    if sizes[0] != sizes[1]:
        return f"`{own.label}` has {sizes[0]} functions here, {sizes[1]} in the other model"
    if own.basis.to_json() != other.basis.to_json():
        return f"the basis of `{own.label}` has other knots or levels in the other model"
    pairs = [(each.to_json()["transform"], each.through) for each in (own, other)]
    if pairs[0] != pairs[1]:
        return f"the basis of `{own.label}` is the same, but its functions were learned from other rows"
    return None


def _shape(layout: PredictorLayout, term: Term) -> Any:
    """What coefficients of the same number must have in common beside their bases."""
    span = layout.by_name.get(term.name)
    block = None if span is None else (span.block.size, span.block.pure, span.block.shape)
    orders = [
        (own.order, own.rank, own.size, own.automatic, own.optional) for own in layout.orders_of(term)
    ]
    return block, orders


def _why_anew(model: Any, other: Any, origin: Origin) -> str | None:
    """Why the variational solver cannot begin at what another model knows; None where it can."""
    if not other.has_posterior:
        return "the other model has no posterior"
    orders = model.design.orders
    missing = [order.label for order in orders if order.name not in origin.terms]
    if missing:
        return f"the factors of `{missing[0]}` are drawn at random, and all terms fitted beside them"
    if orders and other.starts > 1:
        return (
            f"the interactions of the other model are an average of {other.starts} fits, from which no "
            "single one can go on; fit that with `restarts=0`"
        )
    result = other.fit_result
    if orders and (result is None or result.posterior not in _WITH_POSTERIOR):
        return "the interactions of the other model are not those of a variational fit"
    return None


def _listed(terms: Iterable[Term]) -> str:
    labels = [f"`{term.label}`" for term in terms]
    more = [f"{len(labels) - _MOST:,} more"] if len(labels) > _MOST else []
    return ", ".join([*labels[:_MOST], *more]) or "none"
