"""How many functions a basis has where the user does not say."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from ahofm_keras.terms.basis_size import MOST_TOGETHER, MOST_USUAL, ROWS_OF_A_FUNCTION, usual_size
from ahofm_keras.terms.features import Feature, Request
from tests.solvers.conftest import learn_design


def frame(rows: int, features: int = 2, distinct: int | None = None) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    data = pd.DataFrame(rng.uniform(size=(rows, features))).rename(columns="x{}".format)
    return (data if distinct is None else (data * distinct).astype(int)).astype(float).assign(y=data.x0)


def sizes(formula: str, data: pd.DataFrame) -> list[int]:
    return [feature.basis.size for feature in learn_design(formula, data)[0].features]


@pytest.mark.parametrize(
    ("rows", "features", "size"),
    [
        (300, 1, 20),
        (20 * ROWS_OF_A_FUNCTION, 1, 20),
        (30 * ROWS_OF_A_FUNCTION, 5, 30),
        (10**7, 1, MOST_USUAL),
        (10**7, 50, MOST_TOGETHER // 50),
        (10**7, 10_000, 20),
    ],
)
def test_it_follows_rows_and_the_number_of_features(rows: int, features: int, size: int) -> None:
    assert usual_size(Request("ps", df=15.0), rows, features) == size


def test_df_asks_for_functions_whatever_the_rows() -> None:
    assert usual_size(Request("ps", df=40.0), 100, 3) == 45
    assert usual_size(Request("ps", df=3.0), 100, 3) == 10


def test_margins_of_tensor_products_do_not_follow_the_rows() -> None:
    few, many = (usual_size(Request("ps", df=4.0, margins=2), rows, 2) for rows in (100, 10**6))
    assert few == many == 10


def test_features_of_a_model_follow_its_rows() -> None:
    rows = 40 * ROWS_OF_A_FUNCTION
    assert sizes("y ~ s(x0) + x1", frame(rows)) == [40]
    assert sizes("y ~ s(x0) + s(x1, k=17)", frame(rows)) == [40, 17]
    assert sizes("y ~ ahofm(x0, x1, D=2)", frame(rows)) == [40, 40]
    assert sizes("y ~ te(x0, x1)", frame(rows)) == [10, 10]
    assert sizes("y ~ s(x0)", frame(rows, distinct=33)) == [32]
    assert sizes("y ~ s(x0, bs='cp')", frame(rows)) == [40]


def test_many_features_share_what_a_model_may_hold() -> None:
    data = frame(60 * ROWS_OF_A_FUNCTION, features=50)
    formula = "y ~ " + " + ".join(f"s(x{j})" for j in range(50))
    assert sizes(formula, data) == 50 * [MOST_TOGETHER // 50]


def test_a_large_basis_comes_back_with_every_digit() -> None:
    (feature,) = learn_design("y ~ s(x0, k=100)", frame(500))[0].features
    text = json.dumps(feature.to_json(), allow_nan=False)
    found = Feature.from_json(json.loads(text))
    np.testing.assert_array_equal(found.transform, feature.transform)
    np.testing.assert_array_equal(found.eigenvalues, feature.eigenvalues)
    assert found.basis == feature.basis
    assert len(text) < 12 * feature.transform.size + 60 * len(feature.basis.axis)
