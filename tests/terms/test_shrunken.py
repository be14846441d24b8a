"""Ridge, lasso and group lasso: closed forms, conditions of the optimum, what the evidence selects."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

import ahofm_keras as ak
from ahofm_keras.errors import AhofmWarning, DataError, FormulaError
from ahofm_keras.solvers.norms import descend
from ahofm_keras.solvers.selection import Candidates, next_price, select, selection_price
from tests.terms.common import fit as fit_design

FIXTURE = json.loads((Path(__file__).parents[1] / "fixtures" / "mgcv_parapen.json").read_text())
NAMES = list("abcd")
SPARSE = ("lasso", "grouplasso")
BLOCKS = ("variational", "bcd")


def make_data(rows: int = 160, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(3, 2, (rows, 5)), columns=[*NAMES, "e"])
    frame["b"] += frame["a"]
    frame["g"] = rng.choice(["u", "v", "w"], rows, p=[0.2, 0.3, 0.5])
    frame["flag"] = rng.uniform(size=rows) < 0.3
    level = frame.g.map({"u": 2.0, "v": 0.0, "w": -1.0})
    frame["y"] = frame.a - 0.5 * frame.c + level + np.sin(frame.e) + rng.normal(size=rows)
    frame["count"] = rng.poisson(np.exp(0.2 * frame.a - 0.1 * frame.c + 0.5))
    return frame


DATA = make_data()


def fit(formula: str, data: pd.DataFrame = DATA, solver: str = "variational", **options: Any) -> Any:
    model = ak.AdditiveModel(formula, data, family=options.pop("family", "gaussian"))
    model.fit(data, solver=solver, verbose=0, **options)
    return model


def standardised(data: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Columns of mean 0 and variance 1, and what they were divided by."""
    columns = data.to_numpy(float)
    scale = columns.std(axis=0)
    return (columns - columns.mean(axis=0)) / scale, scale


def within(data: pd.DataFrame, names: list[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X and y as the model has them, and by what a coefficient inside becomes the user's."""
    columns, scale = standardised(data[names])
    return (
        columns,
        ((data.y - data.y.mean()) / data.y.std(ddof=0)).to_numpy(),
        scale / data.y.std(ddof=0),
    )


# Ridge ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", BLOCKS)
def test_a_ridge_is_its_closed_form(solver: str) -> None:
    X, y, unit = within(DATA, NAMES)
    wanted = np.linalg.solve(X.T @ X + 0.3 * len(y) * np.eye(4), X.T @ y)
    model = fit("y ~ ridge(a, b, c, d, sp=0.3)", solver=solver)
    np.testing.assert_allclose(
        ak.coef(model)[1:] * unit, wanted, atol=1e-10 if solver == "bcd" else 1e-7
    )
    # Its degrees of freedom, by the text's definition.
    hat = X @ np.linalg.solve(X.T @ X + 0.3 * len(y) * np.eye(4), X.T)
    (term,) = fit_design("ridge(x, z, w, v, sp=0.3)").terms
    (own,) = model.design.terms
    assert own.df == pytest.approx(np.trace(2 * hat - hat @ hat)) != pytest.approx(term.df)


def test_df_is_reached() -> None:
    (term,) = fit_design("ridge(x, z, g, df=2.5)").terms
    assert term.df == pytest.approx(2.5)
    assert fit_design("ridge(x, z, w)").terms[0].df == pytest.approx(0.9 * 3)


@pytest.mark.parametrize("family", ["gaussian", "poisson"])
def test_a_ridge_is_that_of_mgcv(family: str) -> None:
    data, stored = pd.DataFrame(FIXTURE["data"]), FIXTURE["fits"][family]
    response = "y" if family == "gaussian" else "count"
    names = [f"x{k}" for k in range(1, 6)]
    formula = f"{response} ~ ridge({', '.join(names)}, sp=0.2) + z"
    model = fit(formula, data, "bcd", family=family)
    np.testing.assert_allclose(model.predict(data), stored["fitted"], rtol=1e-4)
    found = ak.coef(model, formula.split("~ ")[1].split(" +")[0].replace(", sp=0.2", ""))
    scale = standardised(data[names])[1]
    np.testing.assert_allclose(found * scale, stored["coefficients"][1:6], atol=1e-4)
    assert ak.coef(model)["z"] == pytest.approx(stored["coefficients"][6], abs=1e-4)
    assert ak.summary(model).figures["edf"] == pytest.approx(stored["edf"], rel=1e-4)


def test_the_evidence_chooses_the_ridge() -> None:
    """At the lambda that was chosen the evidence of dense algebra is no smaller than beside it."""
    model = fit("y ~ ridge(a, b, c, d)")
    X, y, _ = within(DATA, NAMES)
    chosen = ak.summary(model).terms["lambda_max"].iloc[0]

    def evidence(smoothing: float) -> float:
        total = np.eye(len(y)) + X @ X.T / (smoothing * len(y))
        # The constant and the dispersion are integrated and profiled out.
        inverse = np.linalg.inv(total)
        _, size = np.linalg.slogdet(total)
        return -(size + len(y) * np.log(y @ inverse @ y)) / 2

    assert evidence(chosen) > max(evidence(chosen * 1.2), evidence(chosen / 1.2))


# Lasso ----------------------------------------------------------------------------------------------------


def brute_force(X: np.ndarray, y: np.ndarray, free: np.ndarray, smoothing: float) -> np.ndarray:
    """The lasso by all signs that its coefficients may have; those of `free` are not penalised."""
    best, found = np.inf, np.zeros(X.shape[1])
    for signs in product((-1, 0, 1), repeat=X.shape[1]):
        sign = np.array(signs)
        design = np.column_stack([X[:, sign != 0], free])
        gram, sums = design.T @ design, design.T @ y
        sums[: np.count_nonzero(sign)] -= len(y) * smoothing * sign[sign != 0]
        solved = np.linalg.solve(gram, sums)
        own = np.zeros(X.shape[1])
        own[sign != 0] = solved[: np.count_nonzero(sign)]
        loss = np.sum((y - design @ solved) ** 2) / (2 * len(y)) + smoothing * np.abs(own).sum()
        if loss < best:
            best, found = loss, own
    return found


@pytest.mark.parametrize("solver", BLOCKS)
@pytest.mark.parametrize("smoothing", [0.02, 0.1, 0.4])
def test_a_lasso_is_the_best_of_all_signs(solver: str, smoothing: float) -> None:
    X, y, unit = within(DATA, NAMES)
    rest = standardised(DATA[["e"]])[0]
    model = fit(f"y ~ lasso(a, b, c, d, sp={smoothing}) + e", solver=solver)
    wanted = brute_force(X, y, rest, smoothing)
    found = ak.coef(model, "lasso(a, b, c, d)").to_numpy() * unit
    np.testing.assert_allclose(found, wanted, atol=1e-6)
    assert (found == 0).tolist() == (wanted == 0).tolist()
    assert ak.summary(model).terms.nonzero.iloc[0] == np.count_nonzero(wanted)


def missed(model: Any, norm: float, groups: list[list[int]]) -> float:
    """By how much the gradient of the mean loss misses what the optimum of a group lasso asks for."""
    term = model.design.terms[0]
    raw = {name: DATA[name].to_numpy() for name in model.design.columns}
    X = (term.parametric.raw(raw) - term.centre) / term.scale
    values = ak.coef(model, term.label).to_numpy() * np.array(term.scale) / model.scale
    mean, response = model.predict(DATA), DATA[str(model.response)].to_numpy(float)
    # Half the deviance by the predictor inside: for a canonical link.
    slopes = X.T @ (response - mean) * model.scale / len(DATA)
    unit = model.scale**2 if model.family.is_linear else 1.0
    worst = 0.0
    for own in groups:
        strength, size = norm * np.sqrt(len(own)), np.linalg.norm(values[own])
        gap = slopes[own] / unit - strength * values[own] / size if size else slopes[own] / unit
        worst = max(worst, np.linalg.norm(gap) - (0 if size else strength))
    return worst


@pytest.mark.parametrize("solver", BLOCKS)
@pytest.mark.parametrize("family", ["gaussian", "poisson"])
def test_a_group_lasso_meets_the_conditions_of_its_optimum(solver: str, family: str) -> None:
    response = "y" if family == "gaussian" else "count"
    sp = 0.06 if family == "gaussian" else 0.12
    features = "a, d, g, b, poly(e, 3), flag, c"
    formula = f"{response} ~ grouplasso({features}, sp={sp}, groups=[[d, b], [flag, c]])"
    model = fit(formula, solver=solver, family=family)
    (term,) = model.design.terms
    own = [name.removeprefix(f"{term.label}.") for name in term.coefficients]
    assert own == ["a", "d", "b", "g[u]", "g[v]", "g[w]", *(f"poly(e, 3)[{k}]" for k in (1, 2, 3)),
                   "flag[True]", "c"]  # fmt: skip
    groups = [[0], [1, 2], [3, 4, 5], [6, 7, 8], [9, 10]]
    assert term.groups == (0, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4)
    values = ak.coef(model, term.label).to_numpy()
    zero = [not values[group].any() for group in groups]
    assert any(zero)
    assert not all(zero)
    assert all(values[group].all() for group, off in zip(groups, zero, strict=True) if not off)
    assert missed(model, sp, groups) < (1e-7 if family == "gaussian" else 1e-5)


def test_coordinate_descent_meets_its_conditions_on_hard_systems() -> None:
    rng = np.random.default_rng(5)
    for columns in (rng.normal(size=(40, 24)), rng.normal(size=(15, 24))):
        X = columns.copy()
        X[:, 3] = X[:, 2]  # equal columns, one direction short
        X[:, 6:9] += 5 * rng.normal(size=(len(X), 1))
        gram, sums = X.T @ X, X.T @ (X[:, 0] + X[:, 7] + rng.normal(size=len(X)))
        for groups in ([slice(k, k + 1) for k in range(24)], [slice(k, k + 3) for k in range(0, 24, 3)]):
            strengths = rng.uniform(2, 6, len(groups))
            found = descend(gram, sums, groups, strengths)
            slopes = sums - gram @ found
            for own, strength in zip(groups, strengths, strict=True):
                size = np.linalg.norm(found[own])
                if size:
                    np.testing.assert_allclose(slopes[own], strength * found[own] / size, atol=1e-7)
                else:
                    assert np.linalg.norm(slopes[own]) <= strength + 1e-7
            assert 0 < np.count_nonzero(found) < 24


@pytest.mark.filterwarnings("ignore:The fit reached its last epoch")
@pytest.mark.parametrize(
    "term", ["lasso(a, b, c, d, g, sp=0.08)", "grouplasso(a, b, c, d, g, sp=0.08, groups=[[a, b]])"]
)
def test_adam_finds_the_same_optimum(term: str) -> None:
    """u v with squares of both penalised, all rows in a batch: the smooth form has the same minimum."""
    exact = fit(f"y ~ {term}", solver="bcd")
    model = ak.AdditiveModel(f"y ~ {term}", DATA)
    whole = {"batch_size": len(DATA), "shuffle": False, "steps_per_epoch": 64}
    options = {"solver": "adam", "validation_split": 0.0, "verbose": 0, **whole}
    model.fit(DATA, epochs=30, **options)
    unit = np.append(1.0, model.design.terms[0].scale) / DATA.y.std()
    difference = (ak.coef(model) - ak.coef(exact)).to_numpy() * unit
    np.testing.assert_allclose(difference[1:], 0, atol=1e-3)
    zero = ak.coef(exact) == 0
    assert not (ak.coef(model)[~zero] == 0).any()
    assert (ak.coef(model)[zero] == 0).mean() >= 0.5
    losses = [own.evaluate(DATA, verbose=0, return_dict=True)["loss"] for own in (model, exact)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
    # What is 0 can come back: with another response the gradient finds it.
    other = DATA.assign(y=DATA.d)
    exact.fit(other, epochs=8, **options)
    label = model.design.terms[0].label
    assert abs(ak.coef(exact)[f"{label}.d"]) > 0.5 > abs(ak.coef(model)[f"{label}.d"])


def test_a_lasso_beside_a_smooth_goes_everywhere(tmp_path: Path) -> None:
    for formula in ("y ~ lasso(a, b, c, d, g, sp=0.05) + s(e)", "y ~ s(e) + lasso(a, b, c, d, g) + g:d"):
        model = fit(formula)
        label, link = "lasso(a, b, c, d, g)", model.predict(DATA, type="link")
        terms = model.predict(DATA, type="terms")
        np.testing.assert_allclose(terms.sum(axis=1) + model.intercept, link, atol=1e-5)
        assert ak.explain(model, DATA.iloc[[3]]).link == pytest.approx(link[3], abs=1e-5)
        row = ak.summary(model).terms.loc[label]
        assert row["columns"] == 7
        assert 1 <= row.nonzero <= 6
        assert 0 < row.edf <= 7
        assert np.isnan(row.p_value)
        assert "no test" in str(ak.summary(model))
        assert f"{row.nonzero}/7" in str(ak.summary(model))
        # The band of a straight line is that of its coefficient.
        error = np.sqrt(ak.vcov(model, label).loc[f"{label}.a", f"{label}.a"])
        line = ak.effect(model, "a")
        assert np.ptp(line.fit) / np.ptp(line.grid[0]) == pytest.approx(
            ak.coef(model)[f"{label}.a"], rel=1e-4
        )
        np.testing.assert_allclose(line.se[0], error * abs(line.grid[0][0] - DATA.a.mean()), rtol=0.05)
        model.save(tmp_path / "model.keras")
        again = keras.models.load_model(tmp_path / "model.keras")
        pd.testing.assert_frame_equal(
            again.predict(DATA, interval=0.9), model.predict(DATA, interval=0.9)
        )
        pd.testing.assert_frame_equal(ak.summary(again).terms, ak.summary(model).terms)
        again.fit(DATA, verbose=0)
        np.testing.assert_allclose(again.predict(DATA), model.predict(DATA), atol=0.02)


def test_a_lasso_is_served_and_reported(tmp_path: Path) -> None:
    model = fit("y ~ lasso(a, c, g) + grouplasso(b, d) + ridge(e, flag)")
    model.export(tmp_path / "served", verbose=False)
    served = tf.saved_model.load(str(tmp_path / "served")).signatures["serving_default"]
    new = DATA.head(6).assign(g=["u", "v", "w", "w", "new", "u"])
    with pytest.warns(AhofmWarning, match="Levels not seen"):
        wanted = model.predict(new)
    raw = {name: tf.constant(new[name].to_numpy()) for name in model.design.columns}
    found = served(**raw)["response"]
    np.testing.assert_allclose(np.asarray(found).reshape(-1), wanted, rtol=1e-5)
    # A new level is the average of the training rows, and moves no other column.
    with pytest.warns(AhofmWarning, match="Levels not seen"):
        terms = model.predict(new, type="terms")
    a, c = (ak.coef(model)[f"lasso(a, c, g).{name}"] for name in "ac")
    other = a * (new.a - DATA.a.mean()) + c * (new.c - DATA.c.mean())
    assert terms["lasso(a, c, g)"].iloc[4] == pytest.approx(other.iloc[4], abs=1e-5)
    page = tmp_path / "page.html"
    ak.report(model, page)
    assert "lasso" in page.read_text()


@pytest.mark.parametrize("solver", BLOCKS)
def test_a_lasso_stands_beside_a_smooth_that_rises(solver: str) -> None:
    """The conditions of a lasso, with the smooth's part taken out; and the smooth still rises."""
    formula = 'y ~ lasso(a, b, c, d, sp=0.05) + s(e, shape="increasing", sp=0.01)'
    model = fit(formula, solver=solver)
    assert missed(model, 0.05, [[k] for k in range(4)]) < 1e-6
    curve = model.predict(DATA.sort_values("e"), type="terms").iloc[:, 1].to_numpy()
    assert (np.diff(curve) >= -1e-6).all()
    assert np.ptp(curve) > 0.1


# What the evidence selects ---------------------------------------------------------------------------------


def test_the_price_of_a_number_of_groups() -> None:
    """Every number of groups is as probable as any other, and so is every choice of so many."""
    from math import comb, log

    for count in (1, 7, 50):
        for used in range(count // 2 + 1):
            assert selection_price(count, used) == pytest.approx(log(comb(count, used)))
        assert selection_price(count, count) == selection_price(count, (count + 1) // 2)
    assert next_price(50, 0) == pytest.approx(np.log(50))
    assert next_price(50, 49) == 0


def evidence(gram: np.ndarray, rhs: np.ndarray, precisions: np.ndarray, dispersion: float) -> float:
    """Of the coefficients whose precision is finite."""
    own = np.isfinite(precisions)
    matrix = gram[np.ix_(own, own)] + np.diag(precisions[own])
    proper = precisions[own] > 0
    fit = rhs[own] @ np.linalg.solve(matrix, rhs[own]) / dispersion
    return float((np.log(precisions[own][proper]).sum() - np.linalg.slogdet(matrix)[1] + fit) / 2)


@pytest.mark.parametrize("size", [1, 3])
def test_each_step_of_the_selection_is_the_best_of_its_group(size: int) -> None:
    class System:
        pass

    rng = np.random.default_rng(size)
    X = rng.normal(size=(60, 13)) @ (np.eye(13) + 0.3)
    system = System()
    system.gram, system.dispersion = X.T @ X, 0.7
    system.rhs = X.T @ (X[:, 1] + 0.4 * X[:, 5] + rng.normal(size=60))
    members = [np.arange(1 + k, 1 + k + size) for k in range(0, 12, size)]  # the first column is free
    start = np.where(np.arange(len(members)) % 3 == 1, np.inf, 20.0)
    ends = np.full(len(members), 1e-6), np.full(len(members), 1e12)

    def whole(found: np.ndarray) -> np.ndarray:
        return np.concatenate([[0.0], np.repeat(found, size)])

    def worth(found: np.ndarray) -> float:
        price = selection_price(len(members), int(np.isfinite(found).sum()))
        return evidence(system.gram, system.rhs, whole(found), system.dispersion) - price

    found = start
    for _ in range(30):
        before = found
        precisions = whole(before)
        on = np.isfinite(precisions)
        inverse = np.zeros((13, 13))
        inverse[np.ix_(on, on)] = np.linalg.inv(system.gram[np.ix_(on, on)] + np.diag(precisions[on]))
        found = select(Candidates(members, before, *ends), system, inverse)
        assert worth(found) >= worth(before) - 1e-9
    for group in range(len(members)):
        for precision in [np.inf, *np.exp(np.linspace(-5, 12, 60))]:
            other = found.copy()
            other[group] = precision
            assert worth(other) <= worth(found) + 1e-4
    assert 0 < np.isfinite(found).sum() < len(members)


def sparse_data(rows: int, effects: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    slopes = np.zeros(50)
    slopes[:effects] = 1.0
    X = rng.normal(size=(rows, 50))
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(50)])
    return frame.assign(y=X @ slopes + rng.normal(size=rows)), slopes


@pytest.mark.parametrize("term", SPARSE)
def test_noise_is_left_out_and_effects_stay(term: str) -> None:
    """Without effects hardly any of fifty columns, with five these and few others."""
    for effects, most in ((0, 1), (5, 7)):
        frame, slopes = sparse_data(150, effects, seed=effects)
        model = fit(f"y ~ {term}(.)", frame)
        found = ak.coef(model).to_numpy()[1:]
        assert found[:effects].all()
        assert np.count_nonzero(found) <= most
        if effects:
            assert np.sum((found - slopes) ** 2) < 0.1  # least squares: 50 / 100
            assert ak.summary(model).terms.nonzero.iloc[0] == np.count_nonzero(found)
        else:
            assert ak.summary(model).figures["edf"] < 2.5


def test_intervals_cover_and_those_of_selected_columns_too() -> None:
    covered = []
    for seed in range(3):
        frame, slopes = sparse_data(150, 8, seed=10 + seed)
        model = fit("y ~ lasso(.)", frame)
        errors = np.sqrt(np.diag(ak.vcov(model)))[1:9]
        covered += list(np.abs(ak.coef(model).to_numpy()[1:9] - slopes[:8]) < 1.96 * errors)
    assert np.mean(covered) >= 0.8


def test_more_columns_than_rows() -> None:
    frame, _ = sparse_data(40, 3, seed=4)
    for formula in ("y ~ lasso(.)", "y ~ ridge(.)", "y ~ lasso(., sp=0.3)"):
        model = fit(formula, frame)
        assert np.isfinite(ak.coef(model)).all()
        if "sp" in formula or "lasso" in formula:
            assert ak.coef(model).to_numpy()[1:4].all()


# Bad input --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("y ~ ridge(a, sp=-1)", r"`sp` of `ridge\(\)` must be a number of at least 0"),
        ("y ~ ridge(a, b, sp=1, df=1)", r"`ridge\(\)` takes `df` or `sp`, not both"),
        ("y ~ lasso(a, df=3)", r"Unknown argument `df` of `lasso\(\)`. Known: `sp`"),
        ("y ~ lasso()", r"`lasso\(\)` takes at least 1 feature"),
        ("y ~ lasso(a, a)", "`a` stands twice"),
        ("y ~ lasso(a):b", r"`lasso\(\)` cannot be multiplied"),
        ("y ~ lasso(a, b) + lasso(b, a)", "stands twice in the formula"),
        ("y ~ grouplasso(a, b, groups=[[a, z]])", r"`groups` of `grouplasso\(\)` names `z`, which is not"),
        ("y ~ grouplasso(a, b, groups=[[a], [a, b]])", "names `a` twice"),
        ("y ~ grouplasso(a, b, groups=3)", r"`groups` of `grouplasso\(\)` must be lists of features"),
        ("y ~ ridge(y, a)", "response `y` cannot stand among the terms"),
    ],
)  # fmt: skip
def test_what_a_formula_may_not_say(formula: str, message: str) -> None:
    with pytest.raises(FormulaError, match=message):
        ak.parse_formula(formula)


def test_what_columns_may_not_be() -> None:
    frame = DATA.assign(same=1.0)
    with pytest.raises(DataError, match=r"`same` is constant, so `lasso\(a, same\)` cannot learn"):
        ak.AdditiveModel("y ~ lasso(a, same)", frame)
    with pytest.raises(FormulaError, match=r"`df` of `ridge\(a, b\)` must be below 2"):
        ak.AdditiveModel("y ~ ridge(a, b, df=2)", DATA)


@pytest.mark.parametrize("rest", ["a", "s(a)", "ridge(a, d)", "ahofm(a, e)"])
def test_a_straight_line_that_is_there_twice_is_said(rest: str) -> None:
    with pytest.warns(AhofmWarning, match="the two cannot be told apart"):
        ak.AdditiveModel(f"y ~ lasso(a, b, c) + {rest}", DATA)


def test_one_column_and_columns_that_repeat_each_other_are_fine() -> None:
    frame = DATA.assign(twin=2 * DATA.a + 1)
    for solver in BLOCKS:
        model = fit("y ~ ridge(a, twin, sp=0.1)", frame, solver)
        first, second = ak.coef(model).to_numpy()[1:]
        assert first == pytest.approx(2 * second, rel=1e-6)  # the same share each
        assert ak.coef(fit("y ~ lasso(a, sp=0.2)", solver=solver)).iloc[1] > 0
    assert np.isfinite(ak.coef(fit("y ~ lasso(a, twin)", frame))).all()


def test_all_coefficients_may_be_0() -> None:
    model = fit("y ~ lasso(a, b, g, sp=2)")
    assert not ak.coef(model).to_numpy()[1:].any()
    assert ak.summary(model).terms.pruned.all()
    np.testing.assert_allclose(model.predict(DATA), DATA.y.mean(), rtol=1e-5)
