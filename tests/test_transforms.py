"""The functions of a formula: NumPy against oracles, `keras.ops` against NumPy, state, text."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable

import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ahofm_keras.errors import DataError, FormulaError
from ahofm_keras.formula.parse import parse_formula
from ahofm_keras.transforms import (
    FUNCTIONS,
    Expression,
    column,
    evaluate_expression,
    learn_expression,
)

Columns = dict[str, np.ndarray]


def data(seed: int, count: int = 40) -> Columns:
    generator = np.random.default_rng(seed)
    return {name: generator.uniform(0.5, 3.0, count) for name in ("x", "z", "a b")}


TRAIN, NEW = data(seed=1), data(seed=2)


def parse(text: str) -> Expression:
    return parse_formula(f"longer_than_any_name_below ~ {text}").terms[0].features[0]


def learned(text: str, columns: Columns = TRAIN) -> Expression:
    return learn_expression(parse(text), columns)


def tensors(columns: Columns) -> dict[str, keras.KerasTensor]:
    return {
        name: keras.ops.convert_to_tensor(values, dtype="float64") for name, values in columns.items()
    }


def orthogonal_polynomials(x: np.ndarray, degree: int) -> np.ndarray:
    """Q of the QR of the Vandermonde matrix, leading coefficients positive, without the constant."""
    shifted = x - x.mean()
    Q, R = np.linalg.qr(np.vander(shifted / shifted.std(), degree + 1, increasing=True))
    return (Q * np.sign(np.diag(R)))[:, 1:]


def each(function: Callable[..., float]) -> Callable[..., np.ndarray]:
    return lambda *columns: np.array([function(*values) for values in zip(*columns, strict=True)])


def centred(x: np.ndarray) -> np.ndarray:
    return np.array([value - statistics.fmean(x) for value in x])


# Function -> how a formula writes it, and what it must give by the standard library.
ORACLES: dict[str, tuple[str, Callable[..., np.ndarray]]] = {
    "abs": ("abs(x - z)", each(lambda x, z: math.fabs(x - z))),
    "add": ("I(x + z)", each(lambda x, z: math.fsum((x, z)))),
    "center": ("center(x)", lambda x, z: centred(x)),
    "cos": ("cos(x)", each(lambda x, z: math.cos(x))),
    "divide": ("I(x / z)", each(lambda x, z: x / z)),
    "exp": ("exp(x)", each(lambda x, z: math.exp(x))),
    "expm1": ("expm1(x * 1e-9)", each(lambda x, z: math.expm1(x * 1e-9))),
    "log": ("log(x)", each(lambda x, z: math.log(x))),
    "log10": ("log10(x)", each(lambda x, z: math.log10(x))),
    "log1p": ("log1p(x * 1e-9)", each(lambda x, z: math.log1p(x * 1e-9))),
    "log2": ("log2(x)", each(lambda x, z: math.log2(x))),
    "multiply": ("I(x * z)", each(lambda x, z: math.prod((x, z)))),
    "negative": ("I(-x)", each(lambda x, z: 0.0 - x)),
    "poly": ("poly(x, 4)", lambda x, z: orthogonal_polynomials(x, 4)),
    "power": ("I(x ** z)", each(lambda x, z: math.pow(x, z))),
    "scale": ("scale(x)", lambda x, z: centred(x) / statistics.stdev(x)),
    "sin": ("sin(x)", each(lambda x, z: math.sin(x))),
    "sqrt": ("sqrt(x)", each(lambda x, z: math.sqrt(x))),
    "subtract": ("I(x - z)", each(lambda x, z: math.fsum((x, -z)))),
    "tanh": ("tanh(x)", each(lambda x, z: math.tanh(x))),
}

# Trees whose arithmetic has more than one reading, with the right one in Python.
PRECEDENCE: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "I(x + z * 2)": lambda x, z: x + (z * 2),
    "I((x + z) * 2)": lambda x, z: (x + z) * 2,
    "I(x - z - 2)": lambda x, z: (x - z) - 2,
    "I(x - (z - 2))": lambda x, z: x - z + 2,
    "I(x / z / 2)": lambda x, z: x / (z * 2),
    "I(x / (z / 2))": lambda x, z: 2 * x / z,
    "I(-x ** 2)": lambda x, z: -(x * x),
    "I((-x) ** 2)": lambda x, z: x * x,
    "I(-x * z)": lambda x, z: -(x * z),
    "I(x ** z ** 2)": lambda x, z: x ** (z * z),
    "I((x ** z) ** 2)": lambda x, z: x ** (2 * z),
    "I(2 ** -x)": lambda x, z: 1 / 2**x,
    "I(x - -z)": lambda x, z: x + z,
    "log(x + 1)": lambda x, z: np.log1p(x),
    "log(I(x + 1))": lambda x, z: np.log1p(x),
}

# Numbers that are computed with before they meet a column.
CONSTANTS = [
    "I(x * -0.1)", "I(x * (1 / 3))", "I(x ** -0.3)", "I(x + 1 / 3 - 0.7)", "I(0.1 - x)",
    "I(x * log(2))", "log(x + exp(0.1))", "I(log(3) / x)", "I(sqrt(2) ** x)", "scale(x * log(2))",
]  # fmt: skip

STATEFUL = ["center(x)", "scale(x)", "poly(x, 3)", "scale(log(x))", "poly(scale(x) + z, 2)",
            "center(scale(x) * center(z))"]  # fmt: skip

EXPRESSIONS = [
    *(text for text, _ in ORACLES.values()),
    *PRECEDENCE,
    *CONSTANTS,
    *STATEFUL,
    "x", 'Q("a b")', "C(x)", 'C(Q("a b"))', "sqrt(exp(x))", "log(x * z)", "I(--x)", "I(-(x + z))",
    "I(-(-x) ** 2)", "I((x + -z) ** (z - x))", "I(x * 0.123456789)", "I(x * 1e-20)",
    "I(x + 123456789)", "I(x * 1e300)", "I(x * 1e16)", "I(x * 0.1e-320)", "I(x ** -z ** 2)",
    "I(x ** (-z) ** 2)", "I(-(x ** 2) ** z)", "I(x * -(z + 1))", "I(x / -z)", "log(-x)", "I(x - (-z))", 'I(Q("a b") / Q("class"))', "I(log(x) ** 2 - 1)",
]  # fmt: skip


def test_every_function_has_an_oracle() -> None:
    assert set(ORACLES) == set(FUNCTIONS)
    assert {name for name, (text, _) in ORACLES.items() if parse(text).function == name} == set(
        FUNCTIONS
    )


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_numpy_agrees_with_the_oracle(name: str) -> None:
    text, oracle = ORACLES[name]
    value = evaluate_expression(learned(text), TRAIN)
    np.testing.assert_allclose(value, oracle(TRAIN["x"], TRAIN["z"]), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("text", [*(text for text, _ in ORACLES.values()), *PRECEDENCE, *CONSTANTS])
def test_keras_agrees_with_numpy(text: str) -> None:
    expression = learned(text)
    value = keras.ops.convert_to_numpy(evaluate_expression(expression, tensors(NEW), keras.ops))
    assert value.dtype == np.float64
    np.testing.assert_allclose(value, evaluate_expression(expression, NEW), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("text", CONSTANTS)
def test_constants_take_the_precision_of_their_column(text: str) -> None:
    columns = {"x": keras.ops.convert_to_tensor(NEW["x"], dtype="float32")}
    value = evaluate_expression(learned(text), columns, keras.ops)
    assert keras.backend.standardize_dtype(value.dtype) == "float32"


@pytest.mark.parametrize("text", PRECEDENCE)
def test_arithmetic_keeps_pythons_precedence(text: str) -> None:
    expected = PRECEDENCE[text](TRAIN["x"], TRAIN["z"])
    np.testing.assert_allclose(evaluate_expression(parse(text), TRAIN), expected, rtol=1e-12)


@pytest.mark.parametrize("centre", [0.0, -5.0, 1e9])
@pytest.mark.parametrize("degree", [1, 2, 5, 10])
def test_poly_is_an_orthonormal_basis_of_the_polynomials(degree: int, centre: float) -> None:
    x = centre + np.random.default_rng(3).uniform(-0.5, 0.5, 200)
    value = evaluate_expression(learned(f"poly(x, {degree})", {"x": x}), {"x": x})
    assert value.shape == (200, degree)
    np.testing.assert_allclose(value.T @ value, np.eye(degree), atol=1e-12)
    np.testing.assert_allclose(value.sum(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(value, orthogonal_polynomials(x, degree), atol=1e-11)


@pytest.mark.parametrize("text", STATEFUL)
def test_new_data_replays_what_training_data_taught(text: str) -> None:
    expression = learned(text)
    alone = evaluate_expression(expression, NEW)
    both = {name: np.concatenate([TRAIN[name], NEW[name]]) for name in TRAIN}
    together = evaluate_expression(expression, both)
    np.testing.assert_array_equal(together[len(TRAIN["x"]) :], alone)
    relearned = evaluate_expression(learned(text, NEW), NEW)
    assert np.abs(relearned - alone).max() > 1e-3


def test_scale_and_center_use_the_training_mean_and_deviation() -> None:
    mean, deviation = statistics.fmean(TRAIN["x"]), statistics.stdev(TRAIN["x"])
    scaled = evaluate_expression(learned("scale(x)"), NEW)
    np.testing.assert_allclose(scaled, (NEW["x"] - mean) / deviation, rtol=1e-12)
    shifted = evaluate_expression(learned("center(x)"), NEW)
    np.testing.assert_allclose(shifted, NEW["x"] - mean, rtol=1e-12)


def test_poly_of_new_data_is_the_same_polynomial() -> None:
    value = evaluate_expression(learned("poly(x, 3)"), TRAIN)
    for place in range(3):
        coefficients = np.polyfit(TRAIN["x"], value[:, place], 3)
        expected = np.polyval(coefficients, NEW["x"])
        new = evaluate_expression(learned("poly(x, 3)"), NEW)[:, place]
        np.testing.assert_allclose(new, expected, atol=1e-11)


@pytest.mark.parametrize("values", [np.full(5, 7.0), np.full(3, 0.1), np.array([4.2])])
@pytest.mark.parametrize("text", ["scale(x)", "center(x)"])
def test_scale_and_center_of_a_constant_or_a_single_row_are_zero(text: str, values: np.ndarray) -> None:
    value = evaluate_expression(learned(text, {"x": values}), {"x": values})
    np.testing.assert_allclose(value, np.zeros(len(values)), atol=1e-15)


@pytest.mark.parametrize(
    ("values", "degree", "distinct"),
    [([3.0] * 4, 1, 1), ([1.0, 2.0, 2.0, 1.0], 2, 2), ([1.0, 2.0, 3.0] * 2, 3, 3), ([5.0], 4, 1)],
)
def test_poly_needs_more_different_values_than_its_degree(
    values: list[float], degree: int, distinct: int
) -> None:
    with pytest.raises(DataError) as caught:
        learned(f"poly(x, {degree})", {"x": np.array(values)})
    assert str(caught.value) == (
        f"`poly(x, {degree})` needs more than {degree} distinct values of `x`, "
        f"the data has {distinct}. Lower the degree."
    )


def test_poly_of_just_enough_different_values_is_learned() -> None:
    few = {"x": np.array([1.0, 2.0, 4.0, 4.0])}
    value = evaluate_expression(learned("poly(x, 2)", few), few)
    np.testing.assert_allclose(value.T @ value, np.eye(2), atol=1e-12)


def test_category_comes_back_as_it_is() -> None:
    levels = {"x": np.array(["b", "a", "b"])}
    np.testing.assert_array_equal(evaluate_expression(learned("C(x)", levels), levels), levels["x"])


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_learned_expression_survives_json(text: str) -> None:
    expression = learned(text, {**TRAIN, "class": TRAIN["z"]})
    stored = json.dumps(expression.to_json(), allow_nan=False)
    assert Expression.from_json(json.loads(stored)) == expression


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_text_of_an_expression_parses_back_to_it(text: str) -> None:
    expression = parse(text)
    assert parse(str(expression)) == expression


@pytest.mark.parametrize(
    "name",
    ["x", "a b", "class", "a.b", "it's", 'say "hi"', "a\\b", "µ", "ﬁ", "a\tb", "a\nb", "nan"],
)
def test_text_of_a_column_parses_back_to_it(name: str) -> None:
    assert parse(str(column(name))) == column(name)


@settings(derandomize=True, deadline=None, max_examples=300)
@given(st.text(st.characters(exclude_categories=()), min_size=1, max_size=12))
def test_text_of_any_column_parses_back_to_it(name: str) -> None:
    assert parse(str(column(name))) == column(name)


LEAVES = st.sampled_from([column("x"), column("z")]) | st.floats(0, 1e300).map(
    lambda value: Expression("number", (value,))
)
TREES = st.recursive(
    LEAVES,
    lambda parts: st.one_of(
        st.builds(
            lambda name, left, right: Expression(name, (left, right)),
            st.sampled_from(["add", "subtract", "multiply", "divide", "power"]),
            parts,
            parts,
        ),
        st.builds(lambda part: Expression("negative", (part,)), parts),
        st.builds(lambda part: Expression("log", (part,)), parts),
    ),
    max_leaves=8,
)


@settings(derandomize=True, deadline=None, max_examples=500)
@given(TREES)
def test_text_of_any_arithmetic_parses_back_to_it(tree: Expression) -> None:
    expression = Expression("add", (column("x"), tree))
    try:
        parsed = parse(str(expression))
    except FormulaError as error:
        assert error.message.endswith("is no finite number.")
        return
    assert parsed == expression


def test_columns_of_an_expression_come_once_in_order() -> None:
    assert list(parse('I(z / x + log(z) * Q("a b"))').columns()) == ["z", "x", "a b"]
