"""`fit(solver="bcd")` against closed forms, SciPy's optimisers and Adam."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import combinations, pairwise
from typing import Any

import keras
import numpy as np
import pandas as pd
import pytest
from scipy.interpolate import BSpline
from scipy.optimize import minimize

import ahofm_keras as ak
from tests.solvers.conftest import (
    FAMILIES,
    draw_response,
    fit_quietly,
    pair_frame,
)

every_family = pytest.mark.parametrize("family", FAMILIES)


def new_model(
    formula: str, data: pd.DataFrame, family: str = "gaussian", **options: Any
) -> ak.AdditiveModel:
    model = ak.AdditiveModel(formula, data, family=family, **options)
    model.compile(jit_compile=False)
    return model


def unit_deviance(family: str, y: np.ndarray, eta: np.ndarray) -> np.ndarray:
    """From the predictor."""
    if family == "gaussian":
        return (y - eta) ** 2
    if family == "bernoulli":
        return 2 * (np.logaddexp(0, eta) - y * eta)
    if family == "poisson":
        return 2 * (np.where(y > 0, y * np.log(np.maximum(y, 1)), 0) - y * eta - y + np.exp(eta))
    return 2 * (y * np.exp(-eta) - 1 - np.log(y) + eta)


def deviance_slope(family: str, y: np.ndarray, eta: np.ndarray) -> np.ndarray:
    """Of half the unit deviance, by the predictor."""
    if family == "gaussian":
        return eta - y
    if family == "bernoulli":
        return 1 / (1 + np.exp(-eta)) - y
    if family == "poisson":
        return np.exp(eta) - y
    return 1 - y * np.exp(-eta)


class Objective:
    """Half the mean deviance plus the penalty of a GAM with pairs, with its gradient; dense.

    Even knots, SciPy's B-splines, difference penalties: nothing of the library but lambda.
    """

    def __init__(
        self,
        data: pd.DataFrame,
        k: int,
        lam: Sequence[float],
        rank: int,
        family: str,
        cyclic: bool = False,
    ) -> None:
        self.y = data["y"].to_numpy()
        self.family, self.rank, self.k = family, rank, k
        self.shift = self.y.mean() if family == "gaussian" else 0.0
        self.scale = self.y.std() if family == "gaussian" else 1.0
        make = cyclic_basis if cyclic else line_basis
        made = [make(data[name].to_numpy(), k) for name in data if name != "y"]
        self.count = len(made)
        self.constraints = [np.linalg.svd(B.mean(axis=0)[None])[2][1:].T for B, _ in made]
        self.functions = [B @ Z for (B, _), Z in zip(made, self.constraints, strict=True)]
        self.penalties = [
            each * Z.T @ D.T @ D @ Z for each, (_, D), Z in zip(lam, made, self.constraints, strict=True)
        ]

    @property
    def size(self) -> int:
        return 1 + self.count * (self.k - 1) * (1 + self.rank)

    def split(self, weights: np.ndarray) -> tuple[float, np.ndarray]:
        """Intercept, and coefficients `(p, 1 + F, k - 1)`, main effects first."""
        return weights[0], weights[1:].reshape(self.count, 1 + self.rank, self.k - 1)

    def predictor(self, weights: np.ndarray) -> np.ndarray:
        intercept, coefficients = self.split(weights)
        phi = [c @ X.T for c, X in zip(coefficients, self.functions, strict=True)]
        eta = intercept + sum(part[0] for part in phi)
        for first, second in combinations(phi, 2):
            eta = eta + (first[1:] * second[1:]).sum(axis=0)
        return self.shift + self.scale * eta

    def __call__(self, weights: np.ndarray) -> tuple[float, np.ndarray]:
        n = len(self.y)
        _, coefficients = self.split(weights)
        eta = self.predictor(weights)
        value = unit_deviance(self.family, self.y, eta).sum() / (2 * n * self.scale**2)
        slope = deviance_slope(self.family, self.y, eta) / (n * self.scale)
        phi = np.stack([c @ X.T for c, X in zip(coefficients, self.functions, strict=True)])
        rest = phi[:, 1:].sum(axis=0) - phi[:, 1:]
        gradient = np.zeros_like(coefficients)
        for j, (X, P) in enumerate(zip(self.functions, self.penalties, strict=True)):
            gradient[j, 0] = X.T @ slope
            gradient[j, 1:] = (rest[j] * slope) @ X
            penalised = coefficients[j] @ P / n
            gradient[j] += penalised
            value += np.sum(penalised * coefficients[j]) / 2
        return value, np.append(slope.sum(), gradient)

    def minimise(self, start: np.ndarray) -> tuple[float, np.ndarray]:
        options = {"maxiter": 20_000, "maxfun": 10**6, "gtol": 1e-9, "ftol": 1e-15, "maxcor": 50}
        found = minimize(self, start, jac=True, method="L-BFGS-B", options=options)
        return float(found.fun), found.x


def line_basis(x: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Functions and differences of their coefficients, from end to end."""
    knots = x.min() + np.ptp(x) / (k - 3) * np.arange(-3, k + 1)
    B = BSpline.design_matrix(np.clip(x, x.min(), x.max() - 1e-12), knots, 3).toarray()
    return B, np.diff(np.eye(k), n=2, axis=0)


def cyclic_basis(x: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """On the circle from -1 to 1."""
    open_ended = BSpline.design_matrix((x + 1) / 2 * k, np.arange(-3.0, k + 4), 3).toarray()
    B = open_ended[:, :k]
    B[:, :3] += open_ended[:, k:]
    once = np.roll(np.eye(k), -1, axis=0) - np.eye(k)
    return B, once @ once


def pair_formula(sp: float, k: int = 7) -> str:
    smooths = " + ".join(f"s(x{j}, k={k}, knots='even', sp={sp})" for j in range(2))
    return f"y ~ {smooths}"


# Without interactions


@every_family
def test_smooths_alone_reach_the_penalised_optimum(family: str) -> None:
    data = pair_frame(150, 2, family)
    model = new_model(pair_formula(0.7, 9), data, family)
    history = fit_quietly(model, data, "bcd")
    objective = Objective(data, 9, [0.7, 0.7], 0, family)
    value, weights = objective.minimise(np.zeros(objective.size))
    found = model.predict(data, type="link")
    np.testing.assert_allclose(found, objective.predictor(weights), rtol=0, atol=5e-3)
    assert history["loss"][-1] == pytest.approx(value, rel=1e-5)
    deviance = unit_deviance(family, data.y.to_numpy(), objective.predictor(weights)).mean()
    assert history["deviance"][-1] == pytest.approx(deviance, rel=1e-4)


def test_gaussian_smooths_are_penalised_least_squares_after_one_sweep() -> None:
    data = pair_frame(120, 2)
    model = new_model(pair_formula(0.4), data)
    with pytest.warns(ak.AhofmWarning, match="The fit reached its last"):
        fit_quietly(model, data, "bcd", epochs=1)
    objective = Objective(data, 7, [0.4, 0.4], 0, "gaussian")
    X = np.hstack([np.ones((len(data), 1)), *objective.functions])
    P = np.zeros((13, 13))
    P[1:7, 1:7], P[7:, 7:] = objective.penalties
    wanted = X @ np.linalg.solve(X.T @ X + P, X.T @ data.y)
    np.testing.assert_allclose(model.predict(data), wanted, rtol=0, atol=1e-5)


def test_linear_terms_offset_and_weights_are_weighted_least_squares() -> None:
    rng = np.random.default_rng(0)
    data = pd.DataFrame(rng.normal(size=(80, 3)), columns=["a", "b", "o"])
    data["y"] = 3 * data.a - data.b + 100 * data.o + rng.normal(size=80)
    data["w"] = rng.uniform(0, 3, 80)
    model = new_model("y ~ a + b + offset(I(100 * o))", data)
    fit_quietly(model, data, "bcd", sample_weight="w")
    X, w = np.column_stack([np.ones(80), data.a, data.b]), data.w.to_numpy()
    wanted = X @ np.linalg.solve(X.T @ (w[:, None] * X), X.T @ (w * (data.y - 100 * data.o)))
    np.testing.assert_allclose(model.predict(data) - 100 * data.o, wanted, rtol=0, atol=1e-4)


# With interactions


def pair_model(data: pd.DataFrame, family: str, rank: int) -> ak.AdditiveModel:
    """On circles no function but 0 is free of penalty, so the objective has an optimum."""
    smooths = " + ".join(f"s(x{j}, bs='cp', k=7, knots=(-1, 1), df=4.5)" for j in range(2))
    return new_model(f"y ~ {smooths} + ahofm(x0, x1, D=2, F={rank}, df=4.5)", data, family)


def dense_objective(model: ak.AdditiveModel, data: pd.DataFrame) -> Objective:
    order = model.design.terms[-1].orders[0]
    assert [term.smoothing for term in model.design.terms[:2]] == list(order.smoothing)
    return Objective(data, 7, order.smoothing, order.rank, model.family.name, cyclic=True)


def read_coefficients(model: ak.AdditiveModel, objective: Objective) -> np.ndarray:
    """The weights of a model as those of the dense objective."""
    factors = np.asarray(model.get_layer("ahofm_x0_x1").coefficients(0))
    parts = [(model.intercept - objective.shift) / objective.scale]
    for j, Z in enumerate(objective.constraints):
        parts += [*(np.asarray(model.get_layer(f"s_x{j}").coefficients()) @ Z)]
        parts += [*(factors[j].T @ Z).reshape(-1)]
    return np.array(parts)


@pytest.mark.parametrize("rank", [1, 2])
@every_family
def test_pairs_reach_the_optimum_that_scipy_finds(family: str, rank: int) -> None:
    data = pair_frame(120, 2, family, seed=3)
    model = pair_model(data, family, rank)
    objective = dense_objective(model, data)
    start = read_coefficients(model, objective)
    history = fit_quietly(model, data, "bcd")
    value, weights = objective.minimise(start)
    deviance = unit_deviance(family, data.y.to_numpy(), objective.predictor(weights)).mean()
    assert np.abs(model.get_layer("ahofm_x0_x1").coordinates(0)).max() > 0.1
    assert history["loss"][-1] <= value * (1 + 1e-5)
    assert history["deviance"][-1] == pytest.approx(deviance, rel=1e-4)


@every_family
def test_the_reported_loss_is_the_dense_objective_and_that_of_keras(family: str) -> None:
    data = pair_frame(120, 2, family, seed=4)
    data["w"] = np.random.default_rng(0).uniform(0, 2, len(data))
    model = pair_model(data[["x0", "x1", "y"]], family, 2)
    objective = dense_objective(model, data[["x0", "x1", "y"]])
    for weight in (None, "w"):
        with pytest.warns(ak.AhofmWarning, match="The fit reached its last"):
            history = fit_quietly(model, data, "bcd", epochs=2, sample_weight=weight)
        loss, deviance = model.evaluate(data, sample_weight=weight)
        assert history["loss"][-1] == pytest.approx(loss, rel=1e-5)
        assert history["deviance"][-1] == pytest.approx(deviance, rel=1e-5)
        if weight is None:
            dense = objective(read_coefficients(model, objective))[0]
            assert history["loss"][-1] == pytest.approx(dense, rel=1e-5)


def test_adam_run_to_convergence_ends_at_the_same_deviance() -> None:
    data = pair_frame(100, 2, seed=3)
    model, other = pair_model(data, "gaussian", 1), pair_model(data, "gaussian", 1)
    history = fit_quietly(model, data, "bcd")
    other.compile(optimizer=keras.optimizers.Adam(0.05), jit_compile=False)
    slower = keras.callbacks.LearningRateScheduler(lambda epoch: 0.05 * 0.99**epoch)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The fit reached its last epoch", ak.AhofmWarning)
        fit_quietly(
            other, data, "adam", epochs=600, batch_size=100, validation_split=0.0, callbacks=[slower]
        )
    loss, deviance = other.evaluate(data)
    assert history["deviance"][-1] == pytest.approx(deviance, rel=1e-4)
    assert history["loss"][-1] <= loss * (1 + 1e-5)


# On the way


def rich_frame(family: str, rows: int = 150) -> pd.DataFrame:
    data = pair_frame(rows, 4, family, seed=5)
    data["group"] = np.random.default_rng(1).choice(["a", "b", "c"], rows)
    return data


RICH = "y ~ x3 + ahofm(x0, x1, x2, group, D=3, F=3)"


def fit_some_sweeps(
    model: ak.AdditiveModel, data: pd.DataFrame, sweeps: int = 15, **options: Any
) -> Any:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The fit reached its last", ak.AhofmWarning)
        return fit_quietly(model, data, "bcd", epochs=sweeps, **options)


@pytest.mark.filterwarnings("ignore:Fitted probabilities are 0 or 1")
@every_family
def test_the_objective_never_rises(family: str) -> None:
    data = rich_frame(family)
    model = new_model(RICH, data, family, seed=1)
    before, _ = model.evaluate(data)
    loss = np.array([before, *fit_some_sweeps(model, data)["loss"]])
    assert len(loss) > 3
    assert loss[-1] < 0.9 * loss[0]
    assert (np.diff(loss) <= 1e-6 * np.abs(loss[:-1])).all()


@pytest.mark.parametrize("family", ["poisson", "gamma"])
def test_the_objective_never_rises_from_a_bad_start(family: str) -> None:
    data = rich_frame(family)
    model = new_model(RICH, data, family)
    model.predictor.bias.assign(-8.0)
    before, _ = model.evaluate(data)
    loss = np.array([before, *fit_some_sweeps(model, data)["loss"]])
    assert (np.diff(loss) <= 1e-6 * np.abs(loss[:-1])).all()
    assert loss[-1] < 0.5 * loss[0]


@every_family
def test_the_fit_ends_where_a_further_fit_cannot_move(family: str) -> None:
    data = pair_frame(150, 2, family, seed=6)
    model = pair_model(data, family, 1)
    first = fit_quietly(model, data, "bcd")["loss"]
    second = fit_quietly(model, data, "bcd")["loss"]
    assert len(second) <= 3
    assert second[-1] == pytest.approx(first[-1], rel=1e-5)


def test_a_pair_of_splines_converges() -> None:
    data = pair_frame(120, 2, "poisson", seed=3)
    model = new_model("y ~ ahofm(x0, x1, D=2, F=1)", data, "poisson")
    fit_quietly(model, data, "bcd", epochs=300)  # warns where it does not


def test_a_second_fit_goes_on_from_the_first() -> None:
    data = rich_frame("gaussian")
    model = new_model(RICH, data)
    with pytest.warns(ak.AhofmWarning, match="The fit reached its last"):
        first = fit_quietly(model, data, "bcd", epochs=3)["loss"]
    with pytest.warns(ak.AhofmWarning, match="The fit reached its last"):
        second = fit_quietly(model, data, "bcd", epochs=3)["loss"]
    assert second[0] < first[-1] < first[0]
    whole = new_model(RICH, data)
    with pytest.warns(ak.AhofmWarning, match="The fit reached its last"):
        loss = fit_quietly(whole, data, "bcd", epochs=6)["loss"]
    np.testing.assert_allclose(first + second, loss, rtol=1e-5)


def test_restarts_keep_the_lowest_objective() -> None:
    data = pd.DataFrame(
        np.random.default_rng(2).uniform(-1, 1, (120, 4)), columns=["x0", "x1", "x2", "x3"]
    )
    data["y"] = np.sin(3 * data.x0) * np.cos(3 * data.x1) + np.cos(3 * data.x2) * np.sin(3 * data.x3)
    smooths = " + ".join(f"s({name}, bs='cp', k=7, knots=(-1, 1), df=4.5)" for name in data.columns[:4])
    formula = f"y ~ {smooths} + ahofm(x0, x1, x2, x3, D=2, F=1, df=4.5)"
    one, three = new_model(formula, data), new_model(formula, data)
    alone = fit_quietly(one, data, "bcd")["loss"]
    loss = fit_quietly(three, data, "bcd", restarts=2)["loss"]
    np.testing.assert_allclose(loss[: len(alone)], alone, rtol=1e-6)
    ends = [a for a, b in pairwise(loss) if b > a * 1.01]  # where the next start begins
    assert len(ends) == 2
    assert loss[-1] == pytest.approx(min(loss), rel=1e-9)
    assert loss[-1] < 0.9 * max(*ends, loss[-2])
    assert three.evaluate(data)[0] == pytest.approx(loss[-1], rel=1e-5)


# Validation


def noisy_frame() -> pd.DataFrame:
    rng = np.random.default_rng(7)
    data = pair_frame(120, 4, seed=7)
    data["y"] += 2 * rng.normal(size=len(data))
    return data


OVERFIT = "y ~ ahofm(x0, x1, x2, x3, D=2, F=4, df=9)"


def test_validation_rows_stop_the_fit_early_at_the_best_weights() -> None:
    data = noisy_frame()
    model = new_model(OVERFIT, data)
    deviances = fit_quietly(model, data, "bcd", validation_split=0.3)["val_deviance"]
    best = int(np.argmin(deviances))
    assert best < len(deviances) - 1 < best + 30
    again = new_model(OVERFIT, data)
    fit_some_sweeps(again, data, best + 1, validation_split=0.3)
    np.testing.assert_allclose(model.predict(data), again.predict(data), rtol=1e-5, atol=1e-5)


def test_validation_data_are_judged_as_keras_does() -> None:
    data = noisy_frame()
    held_out = data[:40]
    # What holds predictions in the range of the training rows is learned at the end.
    model = ak.AdditiveModel(OVERFIT, data, extrapolation="linear")
    history = fit_quietly(model, data[40:], "bcd", validation_data=held_out)
    assert min(history["val_deviance"]) == pytest.approx(model.evaluate(held_out)[1], rel=1e-5)


def test_rows_that_are_held_out_are_not_fitted() -> None:
    data = noisy_frame()
    other = data.copy()
    other.loc[:39, "y"] += 50
    histories = []
    for held_out in (data[:40], other[:40]):
        histories.append(
            fit_some_sweeps(new_model(OVERFIT, data), data[40:], 3, validation_data=held_out)
        )
    assert histories[0]["loss"] == histories[1]["loss"]
    assert histories[0]["val_deviance"] != histories[1]["val_deviance"]


# Hard data


@pytest.mark.filterwarnings("ignore:The predictors of .* leave the range")
@every_family
def test_hard_data_leave_weights_finite(family: str) -> None:
    rng = np.random.default_rng(8)
    data = rich_frame(family, 30)
    data["x1"] = data["x0"]
    data["x2"] = np.append(np.zeros(29), 1.0)
    data["group"] = ["a"] + ["b"] * 29
    data["y"] = draw_response(family, 3 * data.x0.to_numpy(), rng)
    weight = rng.integers(0, 2, 30).astype(float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ak.AhofmWarning)
        model = new_model(RICH, data, family)
        fit_quietly(model, data, "bcd", sample_weight=weight, epochs=50)
    assert all(np.isfinite(values).all() for values in model.get_weights())
    assert np.isfinite(model.predict(data)).all()


@pytest.mark.filterwarnings("ignore:Fitted probabilities are 0 or 1")
def test_separated_classes_have_finite_weights() -> None:
    data = pair_frame(80, 2, seed=9)
    data["y"] = (data.x0 > 0).astype(float)
    model = new_model("y ~ x1 + s(x0, sp=0)", data, "bernoulli")
    fit_some_sweeps(model, data, 100)
    assert all(np.isfinite(values).all() for values in model.get_weights())
    assert model.evaluate(data)[1] < 1e-2


def test_no_intercept_and_nothing_linear_can_be_fitted() -> None:
    data = pair_frame(80, 2, seed=9)
    data["y"] = 2 * data.x0 * data.x1
    model = new_model("y ~ ahofm(x0, x1, D=2, F=1, main=False) - 1", data)
    history = fit_some_sweeps(model, data)
    assert history["deviance"][-1] < 1e-2 * np.mean(data.y**2)
