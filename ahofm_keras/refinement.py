"""`refine`: the strongest interactions of a fitted `ahofm()` become exact tensor products."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd

from ahofm_keras.data import NUMBER, TEXT
from ahofm_keras.decomposition.names import check_count
from ahofm_keras.decomposition.parts import NOTHING, Parts
from ahofm_keras.errors import DataError, warn
from ahofm_keras.formula import Formula, TermSpec, parse_formula
from ahofm_keras.formula.margins import KNOT_OPTIONS
from ahofm_keras.model import AdditiveModel
from ahofm_keras.model.arguments import check_share, check_unknown
from ahofm_keras.terms import TERMS
from ahofm_keras.terms.groups import FACTORS, PRODUCTS, Subset
from ahofm_keras.terms.learning import bare
from ahofm_keras.terms.term_options import with_own_smooth
from ahofm_keras.transforms import Expression

# What a formula says of the basis of a feature, beside its size.
_BASES = ("bs", "knots", "m", "atoms")


def refine(
    model: AdditiveModel,
    data: Any = None,
    top: int = 3,
    *,
    order: int | Sequence[int] = 2,
    k: Any = None,
    df: Any = None,
    keep: bool = True,
    least: float = 0.001,
    fit: bool = True,
    parameter: str | None = None,
    **options: Any,
) -> AdditiveModel:
    """Screen cheaply, refine exactly: a new model whose strongest interactions have exact surfaces.

    An `ahofm()` finds which of all subsets of its features interact, with surfaces of low rank. The
    strongest of them become `ti()` terms, which have every surface of their margins' bases and one
    lambda per margin, in a new model with the same family, settings and other terms. The `ahofm()` stays
    for all the others. Where both know a subset, `effect(model, "x1", "x2")` is the sum of both:
    nothing is counted twice. The variational solver leaves such a subset to the `ti()` and switches off
    what the `ahofm()` is no longer needed for; the others, which keep the smoothing that df asks for,
    share it between the two.

    Where few interactions carry the signal their surfaces come nearer to the truth. Where many small
    ones do, predictions need not be better: compare both models on rows that neither was fitted to.

    Args:
        model: fitted, with an `ahofm()`.
        data: training rows with the response. By default those of the fit, of which a model remembers
            up to 10,000 while it is in memory; with more, after loading, or for a response such as
            `log(y)`, they must be given.
        top: how many interactions, the strongest first.
        order: of the interactions: 2 for pairs, 3 for triples, `(2, 3)` for the strongest of both.
        k: size of the margins' bases, as in `ti()`. By default `ti()` takes fewer functions than an
            `ahofm()` does; where a surface bends much, more of them are worth their time.
        df: degrees of freedom, as in `ti()`.
        keep: whether the `ahofm()` stays. Without it only its main effects do: the model is additive
            but for the chosen interactions, each of which can be looked at.
        least: interactions with a smaller share of the variance of the link are not refined.
        fit: whether the new model is fitted, by the solver of the old one, and on its rows' weights.
        parameter: of the family whose predictor is refined, by default the first; those of the others
            stay as they are.
        options: of `AdditiveModel.fit`, e.g. `solver`, `verbose`, `sample_weight`.

    Returns:
        The new model.

    Raises:
        NotFittedError: an unfitted model.
        DataError: a model without `ahofm()`, or with nothing left of it; no training rows.

    Example:
        >>> import pandas as pd
        >>> rng = np.random.default_rng(0)
        >>> data = pd.DataFrame(rng.uniform(-1, 1, (300, 3)), columns=["a", "b", "c"])
        >>> data["y"] = data.a + 2 * data.a * data.b + 0.1 * rng.normal(size=300)
        >>> model = AdditiveModel("y ~ afm(a, b, c, F=2, k=6)", data)
        >>> history = model.fit(data, verbose=0)
        >>> refine(model, top=1, fit=False).formula
        'y ~ afm(a, b, c, F=2, k=6) + ti(a, b)'
    """
    parts = Parts(model, parameter)
    model = parts.model
    check_count("top", top, 1, none=False)
    check_share("least", least)
    _check_options(options, fit)
    chosen = _choose(parts, _orders(model, order), top, least or 0.0)
    rows = _training_rows(model, data, options)
    parsed = parse_formula(model.formula)
    exact = [_exact(model, parsed, features, k, df) for features in chosen]
    formula = model.formula
    if not keep:
        first, *exact = [*_main_terms(model, parsed), *exact]
        formula = f"{parsed.response} ~ {first}"
    text = " + ".join([formula, *exact])
    whole = model.whole()
    refined = AdditiveModel(
        text if parts.parameter is None else {**whole.formula, parts.parameter: text},
        rows,
        whole.family,
        df_kind=whole.df_kind,
        extrapolation=whole.extrapolation,
        seed=whole.seed,
        neighbours=whole.design.neighbours,
        name=whole.name,
        nets=whole.networks_by_name(),
    )
    if whole.own_compile:
        refined.compile_from_config({**whole.get_compile_config(), "own_compile": True})
    if fit:
        solver = {} if model.fit_result is None else {"solver": model.fit_result.solver}
        refined.fit(rows, **{**solver, **_class_weight(model, options), **options})
    return refined


def _check_options(options: dict[str, Any], fit: bool) -> None:
    """Raise where what is left of the arguments is none of `fit`, or where there is no fit."""
    own = [name for name in signature(refine).parameters if name != "options"]
    of_fit = [name for name in signature(AdditiveModel.fit).parameters if name not in ("self", "x", "y")]
    check_unknown(options, [*own, *of_fit], "refine()")
    if options and not fit:
        raise DataError(f"`{next(iter(options))}` is an argument of the fit, and `fit=False` was given.")


def _orders(model: AdditiveModel, order: Any) -> list[int]:
    """The orders asked for, which some `ahofm()` of the model must have."""
    known = {own.order for own in model.design.layout.only.orders}
    if not known:
        raise DataError(
            "The model has no interactions to refine: its formula has no `ahofm()`. Exact ones can be "
            "written into it, `ti(x1, x2)`."
        )
    several = isinstance(order, Sequence | np.ndarray) and not isinstance(order, str)
    asked = list(order) if several else [order]
    for own in asked:
        if not isinstance(own, Integral) or isinstance(own, bool) or own not in known:
            listed = ", ".join(map(str, sorted(known)))
            raise DataError(
                f"`order` must be one of those of the `ahofm()`: {listed}. Received: {own!r}."
            )
    if not asked:
        raise DataError("`order` is empty: name at least one, e.g. 2.")
    return sorted({int(own) for own in asked})


def _choose(parts: Parts, orders: list[int], top: int, least: float) -> list[list[Expression]]:
    """Features of the strongest interactions of `ahofm()` terms; warns where there are few."""
    exact = {frozenset(g.members) for g in parts.groups if g.kind == PRODUCTS and len(g.members) > 1}
    total = parts.total_variance
    screened = Parts(parts.model)
    screened.groups = [g for g in parts.groups if g.kind == FACTORS]
    shares: dict[Subset, float] = {}
    for order in orders:
        subsets = screened.subsets(order)
        found = screened.variances(subsets) / total if total > 0 else np.zeros(len(subsets))
        shares |= {tuple(map(int, s)): float(v) for s, v in zip(subsets, found, strict=True)}
    candidates = [subset for subset in shares if frozenset(subset) not in exact]
    strong = [subset for subset in candidates if shares[subset] > max(least, NOTHING)]
    strong.sort(key=lambda subset: -shares[subset])
    if len(strong) < top:
        _report_few(len(strong), top, shares, len(shares) - len(candidates), least)
    features = {
        variable: parts.model.design.features[feature].expression
        for group in screened.groups
        for variable, feature in zip(group.members, group.features, strict=True)
    }
    return [[features[variable] for variable in subset] for subset in strong[:top]]


def _report_few(found: int, top: int, shares: dict[Subset, float], exact: int, least: float) -> None:
    """Warn where fewer interactions than asked for are left, raise where none is."""
    off = sum(share <= NOTHING for share in shares.values())
    weak = len(shares) - found - exact - off
    reasons = [
        f"{off} switched off by the fit" if off else "",
        f"{weak} below {100 * least:g} % of the variance (`least`)" if weak > 0 else "",
        f"{exact} exact already" if exact else "",
    ]
    of_them = f"of {len(shares)} interactions {', '.join(filter(None, reasons))}"
    if not found:
        raise DataError(f"The model has no interaction to refine: {of_them}.")
    warn(f"{found} interactions are refined, not {top}: {of_them}.")


def _class_weight(model: AdditiveModel, options: dict[str, Any]) -> dict[str, Any]:
    """The weights of classes that the model was fitted with, unless others are given for the rows."""
    record = model.fit_result
    if record is None or record.class_weight is None or options.get("sample_weight") is not None:
        return {}
    return {"class_weight": dict(enumerate(record.class_weight))}


def _training_rows(model: AdditiveModel, data: Any, options: dict[str, Any]) -> Any:
    """The rows given, else all those of the fit; puts their weights into the options of `fit`."""
    record = model.fit_result
    if data is not None:
        if record is not None and record.weighted and options.get("sample_weight") is None:
            warn(
                "The model was fitted with weights of its rows; pass `sample_weight=` to use them again."
            )
        return data
    sample = model.sample
    if sample is None:
        raise DataError(
            "`refine` needs the training rows, and the model knows none of them (it was loaded, or "
            "fitted to a dataset): pass `data=`."
        )
    if not sample.complete:
        raise DataError(
            f"`refine` needs all training rows, and the model remembers {len(sample.y):,} of them only: "
            "pass `data=`."
        )
    if not model.response.is_column:
        raise DataError(
            f"`refine` needs the columns of the response `{model.response}`, and the model remembers "
            "its values only: pass `data=`."
        )
    if sample.weight is not None:
        options.setdefault("sample_weight", sample.weight)
    columns = {name: _with_order(model, name, values) for name, values in sample.columns.items()}
    return {**columns, model.response.arguments[0]: sample.y}


def _with_order(model: AdditiveModel, name: str, values: np.ndarray) -> Any:
    """A column with the order of its levels, where it holds texts."""
    if model.design.columns[name] != TEXT:
        return values
    own = [
        v for v in model.design.variables() if v.is_category and list(v.expression.columns()) == [name]
    ]
    # Rows of another data set than the model's may have other levels too.
    return pd.Categorical(values, list(dict.fromkeys([*own[0].levels, *values]))) if own else values


def _exact(model: AdditiveModel, parsed: Formula, features: list[Expression], k: Any, df: Any) -> str:
    """An exact interaction as a formula writes it, with the bases and knots that the `ahofm()` has."""
    texts, options = list(map(str, features)), {"k": k, "df": df}
    for spec in parsed.terms:
        if spec.kind == "ahofm" and set(texts) <= set(map(str, spec.features)):
            # Where it says nothing of them, `ti()` takes those of the features' own `s()` too.
            if set(_BASES) & set(spec.options):
                said = [_basis_of(model, parsed, spec, feature) for feature in features]
                options |= {option: _by_margin([each[option] for each in said]) for option in said[0]}
            break
    return f"ti({', '.join([*texts, *_written(options)])})"


def _basis_of(
    model: AdditiveModel, parsed: Formula, spec: TermSpec, feature: Expression
) -> dict[str, Any]:
    """The basis of a feature of an `ahofm()`: what it says itself, else what its `s()` does."""
    if _is_category(model, feature):
        return dict.fromkeys(_BASES)
    own = [term for term in parsed.terms if term.kind == "s" and term.features == (feature,)]
    found = with_own_smooth(spec, feature, own[0] if own else None)
    return {option: found.get(option) for option in _BASES}


def _by_margin(values: list[Any]) -> Any:
    """One value for all margins where they agree, else one per margin."""
    return values[0] if len(set(values)) == 1 else tuple(values)


def _written(options: dict[str, Any]) -> list[str]:
    return [f"{name}={_plain(value)!r}" for name, value in options.items() if value is not None]


def _plain(value: Any) -> Any:
    """A value of NumPy as one of Python, whose `repr` a formula can hold."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    return tuple(map(_plain, value)) if isinstance(value, list | tuple) else value


def _main_terms(model: AdditiveModel, parsed: Formula) -> list[str]:
    """The terms of a formula with the main effects of its interaction terms in place of them."""
    main = [spec for spec in parsed.terms if TERMS[spec.kind].is_main_effect(spec)]
    own = {bare(feature) for spec in main for feature in spec.features}
    terms = [] if parsed.intercept else ["0"]
    for spec in parsed.terms:
        if spec.kind not in ("ahofm", "hofm"):
            terms.append(spec.source.written[slice(*spec.span)] if spec.call else spec.label)
        elif spec.options.get("main", True):
            missing = [feature for feature in spec.features if bare(feature) not in own]
            own.update(map(bare, missing))
            terms += [_main_effect(model, spec, feature) for feature in missing]
    return terms


def _main_effect(model: AdditiveModel, spec: TermSpec, feature: Expression) -> str:
    """The main effect that an interaction term adds for one of its features, as a formula writes it."""
    if spec.kind == "hofm":
        return str(feature)
    found = {option: spec.options.get(option) for option in ("bs", "k", "knots", "m", "atoms", "df")}
    given = {option: _of_feature(value, feature) for option, value in found.items()}
    if isinstance(given["df"], tuple):
        given["df"] = given["df"][0]
    if given["bs"] == "re" or _is_category(model, feature):
        given |= dict.fromkeys(KNOT_OPTIONS)
    return f"s({', '.join([str(feature), *_written(given)])})"


def _is_category(model: AdditiveModel, feature: Expression) -> bool:
    return feature.is_category or model.design.columns.get(_name(feature), NUMBER) != NUMBER


def _of_feature(value: Any, feature: Expression) -> Any:
    """An option's value for one feature: the value itself, or its entry in a dict."""
    return value.get(_name(feature)) if isinstance(value, dict) else value


def _name(feature: Expression) -> str:
    return str(feature.arguments[0]) if feature.is_column else str(feature)
