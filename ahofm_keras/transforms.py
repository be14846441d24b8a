"""The closed list of functions that a formula may use, for NumPy and `keras.ops` alike.

A formula such as `y ~ log(x) + I(a / b)` is parsed into `Expression` trees. Nothing of the text is
ever evaluated by Python: an expression is computed by looking its functions up here, with NumPy on
training data and with `keras.ops` inside the graph, by the same code.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

Array = Any
Namespace = Any


@dataclass(frozen=True)
class Expression:
    """A node of an expression tree.

    Args:
        function: `"column"`, `"number"`, `"C"` (a column taken as categories) or a key of `FUNCTIONS`.
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
            return f"{self.arguments[0]:g}"
        if self.function in _OPERATORS:
            return f"I({_arithmetic(self)})"
        return f"{self.function}({', '.join(map(_arithmetic, self.arguments))})"


def column(name: str) -> Expression:
    """The expression that is a raw column."""
    return Expression("column", (name,))


def quote_column(name: str) -> str:
    """A column's name as a formula writes it: `x1`, or `Q("a b")` where it is no identifier."""
    import keyword

    if name.isidentifier() and not keyword.iskeyword(name):
        return name
    return 'Q("' + name.replace("\\", "\\\\").replace('"', '\\"') + '")'


_OPERATORS = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "power": "**"}
_PRECEDENCE = {"+": 1, "-": 1, "*": 2, "/": 2, "**": 4}


def _arithmetic(node: Expression, above: int = 0) -> str:
    """Text of an argument, operators infix and bracketed where their rank demands it."""
    if node.function == "negative":
        return f"-{_arithmetic(node.arguments[0], 3)}"
    if node.function not in _OPERATORS:
        return str(node)
    sign = _OPERATORS[node.function]
    rank = _PRECEDENCE[sign]
    left, right = node.arguments
    left_rank, right_rank = (rank + 1, rank) if sign == "**" else (rank, rank + 1)
    text = f"{_arithmetic(left, left_rank)} {sign} {_arithmetic(right, right_rank)}"
    return f"({text})" if rank < above else text


@dataclass(frozen=True)
class Function:
    """An entry of `FUNCTIONS`.

    Args:
        arity: number of arguments.
        compute: `(namespace, state, *arguments) -> array`; `(n,)`, or `(n, degree)` for `poly`.
        learn: `(*training arguments) -> state`, for functions that learn from data.
    """

    arity: int
    compute: Callable[..., Array]
    learn: Callable[..., tuple[float, ...]] | None = None


def _elementwise(name: str, arity: int = 1) -> Function:
    return Function(arity, lambda xp, state, *arguments: getattr(xp, name)(*arguments))


def _learn_scale(x: np.ndarray) -> tuple[float, ...]:
    return float(np.mean(x)), float(np.std(x, ddof=1)) or 1.0


def _learn_poly(x: np.ndarray, degree: float) -> tuple[float, ...]:
    """Three-term recurrence of the polynomials orthonormal on the training values.

    p_0 = 1, p_1 = x - a_0, p_(k+1) = (x - a_k) p_k - b_k p_(k-1); returned as
    (centre, spread, a_0.., b_0.., norms..) on the standardised axis, so that large x do no harm.
    """
    count = int(degree)
    centre, spread = _learn_scale(x)
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
    "center": Function(1, lambda xp, s, x: x - s[0], lambda x: (float(np.mean(x)),)),
    "scale": Function(1, lambda xp, s, x: (x - s[0]) / s[1], _learn_scale),
    "poly": Function(2, _compute_poly, _learn_poly),
}

CALLABLE = tuple(sorted(set(FUNCTIONS) - set(_OPERATORS) - {"negative"}))


def learn_expression(expression: Expression, columns: Mapping[str, np.ndarray]) -> Expression:
    """The same expression with the state of its `scale`, `center` and `poly` learned from `columns`."""
    if expression.function in ("column", "number"):
        return expression
    arguments = tuple(learn_expression(a, columns) for a in expression.arguments)
    learned = replace(expression, arguments=arguments)
    function = FUNCTIONS.get(expression.function)
    if function is None or function.learn is None:
        return learned
    values = [evaluate_expression(a, columns) for a in arguments]
    return replace(learned, state=function.learn(*values))


def evaluate_expression(
    expression: Expression, columns: Mapping[str, Array], namespace: Namespace = np
) -> Array:
    """Value of an expression.

    Args:
        expression: with its state learned, where it has one.
        columns: raw columns by name, each `(n,)`.
        namespace: `numpy` or `keras.ops`.

    Returns:
        `(n,)`, or `(n, degree)` for `poly`. A column taken as categories comes back as it is.
    """
    if expression.function == "column":
        return columns[expression.arguments[0]]
    if expression.function == "number":
        return expression.arguments[0]
    values = [evaluate_expression(a, columns, namespace) for a in expression.arguments]
    if expression.is_category:
        return values[0]
    return FUNCTIONS[expression.function].compute(namespace, expression.state, *values)
