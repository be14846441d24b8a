"""The decomposition: exact for every kind of term, centred, and with the right variances."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from ahofm_keras.decomposition import Parts
from tests.decomposition.conftest import all_subsets, brute_force, on_rows, random_model

FORMULAS = {
    "every kind": "gaussian ~ group + x3 + group:x3 + poly(x3, 2) + s(hour, bs='cp', knots=(0, 24))"
    " + ahofm(x1, x2, group, flag, D=3, F=2) + offset(log(exposure))",
    "not centred": "gaussian ~ ahofm(x1, x2, group, flag, D=4, F=2, center=False)",
    "machines": "gaussian ~ hofm(x1, x2, x3, group, D=3, F=3) + offset(x1)",
    "overlapping": "gaussian ~ s(x1, k=8) + s(x3, k=5) + ahofm(x1, x2, x3, k=12, F=2)"
    " + ahofm(x2, x3, hour, x1, D=4, F=2)",
    "no intercept": "gaussian ~ 0 + group + x1:x2 + x1:group + s(x2)",
    "expressions": "gaussian ~ x2 + log(x2) + I(x1 * x3) + ahofm(log(x2), x1, F=2) + poly(log(x2), 2)",
    "products": "gaussian ~ group:flag + x1:x2:x3 + flag:x1 + poly(x1, 2):group + group:x1",
    "number and category": "gaussian ~ digit + C(digit) + digit:C(digit) + s(digit, k=4, df=2)"
    " + ahofm(C(digit), x1)",
    "tensors": "gaussian ~ x3 + te(x1, x2, k=(4, 6)) + ti(x1, group, flag) + ti(x2, hour, x3, k=4)"
    " + ahofm(x1, x2, x3, F=2)",
    "tensors beyond": "gaussian ~ s(hour, bs='cp', knots=(0, 24)) + ti(hour, x1) + te(x1, x2, group, k=4)",
    "points": "gaussian ~ s(x1, exposure, k=12) + te(x1, exposure, hour, d=(2, 1), k=(6, 4)) + s(x3, bs='gp')"
    " + x1 + ahofm(x1, x2, group, F=2)",
    "points beyond": "gaussian ~ s(x1, exposure, hour, bs='ds', m=(2, 0)) + ti(x1, exposure, group, d=(2, 1))",
    "linear beyond": "gaussian ~ ahofm(x1, x2, D=2) + x3",
}


@pytest.fixture(scope="module", params=FORMULAS)
def model(request: pytest.FixtureRequest, frame: pd.DataFrame) -> ak.AdditiveModel:
    extrapolation = "linear" if "beyond" in request.param else "clip"
    return random_model(FORMULAS[request.param], frame, extrapolation=extrapolation)


@pytest.mark.filterwarnings("ignore::ahofm_keras.AhofmWarning")
def test_parts_sum_to_the_link(model: ak.AdditiveModel, frame: pd.DataFrame) -> None:
    """At all rows, and at levels and values that training has not seen."""
    odd = frame[:4].assign(
        group=["new", "a", "new", "b"], x1=[0.5, 7.0, -5.0, 0.2], digit=[9.0, 1, 2, 3]
    )
    rows = pd.concat([frame, odd])
    parts = Parts(model)
    functions, offset = on_rows(model, parts, rows)
    link = model.predict(rows, type="link")
    total = parts.constant + offset
    for order in range(1, parts.largest_order + 1):
        subsets = parts.subsets(order)
        own = parts.evaluate_many(subsets, functions)
        alone = [parts.evaluate(tuple(s), [functions[v] for v in s]) for s in subsets]
        np.testing.assert_allclose(own, np.reshape(alone, own.shape), rtol=1e-9, atol=1e-9)
        total = total + own.sum(axis=0)
    np.testing.assert_allclose(total, link, atol=1e-5 * link.std())
    np.testing.assert_allclose(
        total[: len(frame)], link[: len(frame)], atol=1e-5 * link[: len(frame)].std()
    )
    np.testing.assert_allclose(parts.link(functions) + offset, total, atol=1e-9 * link.std())


def test_parts_have_mean_zero_along_each_variable(model: ak.AdditiveModel, frame: pd.DataFrame) -> None:
    parts = Parts(model)
    functions, _ = on_rows(model, parts, frame)
    for subset in all_subsets(parts):
        elsewhere = [functions[v][:, 17:18].repeat(len(frame), axis=1) for v in subset]
        for axis, variable in enumerate(subset):
            along = [*elsewhere[:axis], functions[variable], *elsewhere[axis + 1 :]]
            values = parts.evaluate(subset, along)
            assert abs(values.mean()) < 1e-6 * max(values.std(), parts.total_variance**0.5)


def test_variances_of_orders_are_sums_over_subsets(model: ak.AdditiveModel) -> None:
    parts = Parts(model)
    for order, variance in parts.variance_by_order.items():
        assert variance == pytest.approx(parts.variances(parts.subsets(order)).sum(), rel=1e-9)


def test_a_grid_is_evaluated_as_its_rows(model: ak.AdditiveModel, frame: pd.DataFrame) -> None:
    parts = Parts(model)
    functions, _ = on_rows(model, parts, frame)
    subset = tuple(map(int, parts.subsets(parts.largest_order)[0]))[::-1]
    axes = [functions[v][:, : 3 + place] for place, v in enumerate(subset)]
    mesh = np.meshgrid(*(np.arange(own.shape[1]) for own in axes), indexing="ij")
    rows = [own[:, place.reshape(-1)] for own, place in zip(axes, mesh, strict=True)]
    found = parts.evaluate_grid(subset, axes)
    np.testing.assert_allclose(
        found, parts.evaluate(subset, rows).reshape(found.shape), rtol=1e-9, atol=1e-9
    )


# Against the definition, on all combinations of the rows' values


def test_brute_force(small: tuple[ak.AdditiveModel, pd.DataFrame, np.ndarray]) -> None:
    """Values, variances and correlations of all parts on the full grid."""
    model, data, link = small
    parts = Parts(model)
    expected = brute_force(link)
    functions, _ = on_rows(model, parts, data)
    assert parts.constant == pytest.approx(link.mean(), abs=1e-5 * link.std())
    known = all_subsets(parts)
    for subset, values in expected.items():
        if subset in known:
            found = parts.evaluate_grid(subset, [functions[v] for v in subset])
            np.testing.assert_allclose(found, values.squeeze(), atol=1e-5 * link.std())
            assert parts.variance(subset) == pytest.approx(values.var(), rel=1e-4, abs=1e-9 * link.var())
        elif subset:
            assert values.std() < 1e-5 * link.std()
    assert parts.total_variance == pytest.approx(link.var(), rel=1e-5)
    flat = np.stack([np.broadcast_to(expected[s], link.shape).reshape(-1) for s in known])
    covariances = np.cov(flat)
    assert np.abs(covariances - np.diag(covariances.diagonal())).max() < 1e-5 * link.var()


def test_rank_one_pair_by_hand() -> None:
    """x1 x2 with means 1 and 2: the parts are 2 (x1 - 1), x2 - 2 and (x1 - 1)(x2 - 2)."""
    data = pd.DataFrame({"x1": [0.0, 2.0, 0.0, 2.0], "x2": [1.0, 1.0, 3.0, 3.0], "y": [1.0, 2, 3, 5]})
    model = random_model("y ~ x1:x2", data)
    parts = Parts(model)
    slope = float(model.get_layer("linear_x1_x2").kernel[0]) * model.scale / np.sqrt(6)  # sd of x1 x2
    found = parts.variances(parts.subsets(1))
    np.testing.assert_allclose(found, slope**2 * np.array([4.0, 1.0]), rtol=1e-5)
    np.testing.assert_allclose(parts.variances(parts.subsets(2)), slope**2, rtol=1e-5)


# Edges


def test_digits_of_time_stamps_are_kept(frame: pd.DataFrame) -> None:
    """Seconds since 1970 that differ by minutes: their squares hold none of the digits that matter."""
    data = frame.assign(t=1.7e9 + 60 * frame.x1)
    model = random_model("gaussian ~ t + t:x3", data)
    parts = Parts(model)
    functions, _ = on_rows(model, parts, data)
    variables = [v.label for v in parts.variables]
    place = variables.index("t")
    assert parts.covariances[place][0, 0] == pytest.approx(np.var(60 * data.x1), rel=1e-6)
    own = parts.evaluate((place,), [functions[place]])
    assert parts.variance((place,)) == pytest.approx(own.var(), rel=1e-6)


def test_a_term_that_was_switched_off_has_parts_of_zero(frame: pd.DataFrame) -> None:
    model = random_model("gaussian ~ ahofm(x1, x2, x3, D=3, F=2)", frame)
    layer = model.get_layer(model.design.terms[-1].name)
    layer.factors[1].assign(np.zeros(layer.factors[1].shape))
    parts = Parts(model)
    assert parts.largest_order == 3
    assert parts.subsets(3).tolist() == [[0, 1, 2]]
    assert parts.variance((0, 1, 2)) == 0
    functions, _ = on_rows(model, parts, frame)
    assert not parts.evaluate((0, 1, 2), functions).any()


def test_variables_stand_in_the_order_of_the_formula(frame: pd.DataFrame) -> None:
    model = random_model("gaussian ~ x3 + s(hour) + group + ahofm(x2, x1, group)", frame)
    assert [v.label for v in Parts(model).variables] == ["x3", "hour", "group", "x2", "x1"]


def test_a_constant_column_without_an_intercept(frame: pd.DataFrame) -> None:
    model = random_model("gaussian ~ 0 + one + x1 + one:x3", frame.assign(one=1.0))
    parts = Parts(model)
    assert parts.variance((0,)) == 0
    assert parts.total_variance > 0
