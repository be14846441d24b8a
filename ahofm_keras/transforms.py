"""The closed list of functions that a formula may use, for NumPy and `keras.ops` alike.

A formula such as `y ~ log(x) + I(a / b)` is parsed into `Expression` trees. Nothing of the text is
ever evaluated by Python: an expression is computed by looking its functions up here, with NumPy on
training data and with `keras.ops` inside the graph, by the same code.
"""

from __future__ import annotations

import keyword
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ahofm_keras.errors import DataError

Array = Any
Namespace = Any


@dataclass(frozen=True)
class Expression:
    """A node of an expression tree.

    Args:
        function: `"column"`, `"number"`, `"C"` (a column taken as categories), `"point"` (coordinates of
            a point, as in `s(lon, lat)`), a key of `FUNCTIONS` or of `RESPONSES`.
        arguments: the column's name, the number, or the argument expressions.
        state: what was learned from the training data (`scale`, `center`, `poly`), empty before.
    """

    function: str
    arguments: tuple[Any, ...]
    state: tuple[float, ...] = ()

    def to_json(self) -> dict[str, Any]:
        arguments = [a.to_json() if isinstance(a, Expression) else a for a in self.arguments]
        return {"function": self.function, "arguments": arguments, "state": list(self.state)}

    @classmethod
    def from_json(cls, config: Mapping[str, Any]) -> Expression:
        arguments = tuple(cls.from_json(a) if isinstance(a, Mapping) else a for a in config["arguments"])
        return cls(config["function"], arguments, tuple(config["state"]))

    @property
    def is_column(self) -> bool:
        return self.function == "column"

    @property
    def is_category(self) -> bool:
        return self.function == "C"

    @property
    def is_point(self) -> bool:
        return self.function == POINT

    @property
    def coordinates(self) -> tuple[Expression, ...]:
        """The expressions whose values are one number each: those of a point, else itself."""
        return self.arguments if self.is_point else (self,)

    @property
    def width(self) -> int:
        """Number of columns of a response."""
        return len(self.arguments) if self.function in RESPONSES else 1

    @property
    def labels(self) -> list[str]:
        """What each column of a response is called, as a formula writes it."""
        return [_arithmetic(own) for own in self.arguments] if self.width > 1 else [str(self)]

    def columns(self) -> Iterator[str]:
        """Names of the raw columns used, each once, in order of appearance."""
        seen: set[str] = set()
        for node in self._walk():
            if node.is_column and node.arguments[0] not in seen:
                seen.add(node.arguments[0])
                yield node.arguments[0]

    def _walk(self) -> Iterator[Expression]:
        yield self
        for argument in self.arguments:
            if isinstance(argument, Expression):
                yield from argument._walk()

    def __str__(self) -> str:
        if self.is_column:
            return quote_column(self.arguments[0])
        if self.function == "number":
            return repr(self.arguments[0]).removesuffix(".0")
        if self.is_point:
            return ", ".join(map(str, self.arguments))
        if self.function in _RANKS:
            return f"I({_arithmetic(self)})"
        return f"{self.function}({', '.join(map(_arithmetic, self.arguments))})"


def column(name: str) -> Expression:
    """The expression that is a raw column."""
    return Expression("column", (name,))


def point(*coordinates: Expression) -> Expression:
    """The expression that is a point of several coordinates; of one, that coordinate."""
    return Expression(POINT, coordinates) if len(coordinates) > 1 else coordinates[0]


def quote_column(name: str) -> str:
    """A column's name as a formula writes it: `x1`, or `Q("a b")` where it is no identifier."""
    if name.isidentifier() and not keyword.iskeyword(name) and not is_number_word(name):
        return name
    return f'Q("{"".join(map(_escape, name))}")'


def is_number_word(name: str) -> bool:
    """Whether a name is what Python's `float` reads as a number, such as `nan` or `Infinity`."""
    return name.lower() in ("inf", "infinity", "nan")


def _escape(letter: str) -> str:
    """A letter between double quotes; what does not print would be lost on its way through a formula."""
    if letter in ('"', "\\"):
        return f"\\{letter}"
    return letter if letter.isprintable() else letter.encode("unicode_escape").decode()


# What the features of an isotropic smooth are together.
POINT = "point"
# Responses of several columns, which stand left of `~`, and how many columns each may have.
RESPONSES = {"cbind": (2,), "Surv": (2, 3)}

_OPERATORS = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "power": "**"}
# How tightly arithmetic binds in Python; a sign stands between products and powers.
_RANKS = {"add": 1, "subtract": 1, "multiply": 2, "divide": 2, "negative": 3, "power": 4}


def _arithmetic(node: Expression, least: int = 0) -> str:
    """Text of an argument, operators infix and bracketed where they bind less tightly than `least`."""
    if node.function not in _RANKS:
        return str(node)
    rank = _RANKS[node.function]
    if node.function == "negative":
        text = f"-{_arithmetic(node.arguments[0], rank)}"
    else:
        # Powers are read from the right, and their exponent may have a sign.
        left, right = (rank + 1, _RANKS["negative"]) if node.function == "power" else (rank, rank + 1)
        first, second = node.arguments
        sign = _OPERATORS[node.function]
        text = f"{_arithmetic(first, left)} {sign} {_arithmetic(second, right)}"
    return f"({text})" if rank < least else text


@dataclass(frozen=True)
class Function:
    """An entry of `FUNCTIONS`.

    Args:
        arity: number of arguments.
        compute: `(namespace, state, *arguments) -> array`; `(n,)`, or `(n, degree)` for `poly`.
        learn: `(expression, *training arguments) -> state`, for functions that learn from data.
    """

    arity: int
    compute: Callable[..., Array]
    learn: Callable[..., tuple[float, ...]] | None = None


def _elementwise(name: str, arity: int = 1) -> Function:
    return Function(arity, lambda xp, state, *arguments: getattr(xp, name)(*arguments))


def _learn_center(expression: Expression, x: np.ndarray) -> tuple[float, ...]:
    return (float(np.mean(x)),)


def _learn_scale(expression: Expression, x: np.ndarray) -> tuple[float, ...]:
    # The deviation of a constant is zero only up to rounding, that of a single row is undefined.
    spread = float(np.std(x, ddof=1)) if np.ptp(x) > 0 else 1.0
    return float(np.mean(x)), spread


def _learn_poly(expression: Expression, x: np.ndarray, degree: float) -> tuple[float, ...]:
    """Three-term recurrence of the polynomials orthonormal on the training values.

    p_0 = 1, p_1 = x - a_0, p_(k+1) = (x - a_k) p_k - b_k p_(k-1); returned as
    (centre, spread, a_0.., b_0.., norms..) on the standardised axis, so that large x do no harm.

    Raises:
        DataError: too few distinct values for the degree.
    """
    count = int(degree)
    _check_distinct(expression, x, count)
    centre, spread = _learn_scale(expression, x)
    z = (x - centre) / spread
    before, current = np.zeros_like(z), np.ones_like(z)
    previous_norm, shifts, ratios, norms = 1.0, [], [], []
    for _ in range(count):
        norm = float(current @ current)
        shifts.append(float(current @ (z * current)) / norm)
        ratios.append(norm / previous_norm if shifts[1:] else 0.0)
        before, current = current, (z - shifts[-1]) * current - ratios[-1] * before
        previous_norm = norm
        norms.append(math.sqrt(float(current @ current)))
    return (centre, spread, *shifts, *ratios, *norms)


def _check_distinct(expression: Expression, x: np.ndarray, degree: int) -> None:
    distinct = len(np.unique(x))
    if distinct <= degree:
        raise DataError(
            f"`{expression}` needs more than {degree} distinct values of `{expression.arguments[0]}`, "
            f"the data has {distinct}. Lower the degree."
        )


def _compute_poly(xp: Namespace, state: tuple[float, ...], x: Array, degree: Array) -> Array:
    centre, spread, *rest = state
    count = len(rest) // 3
    shifts, ratios, norms = rest[:count], rest[count : 2 * count], rest[2 * count :]
    z = (x - centre) / spread
    before, current, powers = xp.zeros_like(z), xp.ones_like(z), []
    for k in range(count):
        before, current = current, (z - shifts[k]) * current - ratios[k] * before
        powers.append(current / norms[k])
    return xp.stack(powers, axis=-1)


_ELEMENTWISE = "abs cos exp expm1 log log10 log1p log2 negative sin sqrt tanh".split()

FUNCTIONS: dict[str, Function] = {
    **{name: _elementwise(name) for name in _ELEMENTWISE},
    **{name: _elementwise(name, 2) for name in _OPERATORS},
    "center": Function(1, lambda xp, s, x: x - s[0], _learn_center),
    "scale": Function(1, lambda xp, s, x: (x - s[0]) / s[1], _learn_scale),
    "poly": Function(2, _compute_poly, _learn_poly),
}

CALLABLE = tuple(sorted(set(FUNCTIONS) - set(_OPERATORS) - {"negative"}))


def learn_expression(expression: Expression, columns: Mapping[str, np.ndarray]) -> Expression:
    """The same expression with the state of its `scale`, `center` and `poly` learned from `columns`.

    Raises:
        DataError: `poly` of a column with too few distinct values.
    """
    if expression.function in ("column", "number"):
        return expression
    arguments = tuple(learn_expression(a, columns) for a in expression.arguments)
    learned = replace(expression, arguments=arguments)
    function = FUNCTIONS.get(expression.function)
    if function is None or function.learn is None:
        return learned
    values = [evaluate_expression(a, columns) for a in arguments]
    return replace(learned, state=function.learn(expression, *values))


def is_learned(expression: Expression) -> bool:
    """Whether everything in an expression that learns from data has done so."""
    arguments = (a for a in expression.arguments if isinstance(a, Expression))
    function = FUNCTIONS.get(expression.function)
    learns = function is not None and function.learn is not None
    return (not learns or bool(expression.state)) and all(map(is_learned, arguments))


def evaluate_expression(
    expression: Expression, columns: Mapping[str, Array], namespace: Namespace = np
) -> Array:
    """Value of an expression.

    Args:
        expression: with its state learned, where it has one.
        columns: raw columns by name, each `(n,)`.
        namespace: `numpy` or `keras.ops`.

    Returns:
        `(n,)`, or `(n, degree)` for `poly`, `(n, d)` for a point or a response of several columns. A
        column taken as categories comes back as it is.
    """
    if expression.function == "column":
        return columns[expression.arguments[0]]
    if expression.function == "number":
        return expression.arguments[0]
    values = [evaluate_expression(a, columns, namespace) for a in expression.arguments]
    if expression.is_category:
        return values[0]
    if expression.is_point or expression.function in RESPONSES:
        return namespace.stack(values, axis=-1)
    compute = FUNCTIONS[expression.function].compute
    # keras.ops would give float32 for numbers alone; a plain float takes the precision of its column.
    if all(isinstance(value, int | float) for value in values):
        return float(compute(np, expression.state, *values))
    return compute(namespace, expression.state, *values)
