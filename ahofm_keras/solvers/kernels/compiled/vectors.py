"""Vectors of `LANES` numbers, a type of their own: what loops read, write, add and multiply."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped,import-not-found]
from numba import types  # type: ignore[import-untyped,import-not-found]
from numba.extending import (  # type: ignore[import-untyped,import-not-found]
    intrinsic,
    models,
    overload,
    register_model,
)

from ahofm_keras.solvers.kernels.compiled.compiler import FAST, inlined

LANES = 8


def _instructions(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that says which instructions a call stands for."""
    made: Callable[..., Any] = intrinsic(function)
    return made


class _LanesType(types.Type):  # type: ignore[misc]
    """Of a variable that holds `LANES` numbers."""

    def __init__(self) -> None:
        super().__init__(name="Lanes")


_LANES = _LanesType()
_VECTOR = ir.VectorType(ir.DoubleType(), LANES)


@register_model(_LanesType)
class _LanesModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, own: Any) -> None:
        super().__init__(manager, own, _VECTOR)


def _address(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), _VECTOR.as_pointer())


@_instructions
def load(_: Any, array: Any, index: Any) -> Any:
    """Numbers of an array in C order from a place on, whatever its axes."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return builder.load(_address(context, builder, signature.args[0], *given), align=8)

    return _LANES(array, types.intp), generate


@_instructions
def store(_: Any, array: Any, index: Any, numbers: Any) -> Any:
    """Write them there."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        builder.store(given[2], _address(context, builder, signature.args[0], *given[:2]), align=8)
        return context.get_dummy_value()

    return types.void(array, types.intp, numbers), generate


@_instructions
def in_all_lanes(_: Any, number: Any) -> Any:
    """One number in all lanes."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        first = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), given[0], ir.IntType(32)(0))
        return _shuffled(builder, first, first, [0] * LANES)

    return _LANES(types.float64), generate


@_instructions
def transpose(_: Any, source: Any, at: Any, step: Any, out: Any, to: Any, out_step: Any) -> Any:
    """`LANES` lines of as many numbers, `step` apart, written as lines that are `out_step` apart."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        lines = []
        for line in range(LANES):
            index = builder.add(given[1], builder.mul(given[2], given[2].type(line)))
            address = _address(context, builder, signature.args[0], given[0], index)
            lines.append(builder.load(address, align=8))
        # Halves of blocks of 2, 4, 8 numbers change places with those of the line so far away.
        for half in (1, 2, 4):
            low = [a if not a & half else a - half + LANES for a in range(LANES)]
            high = [a + half if not a & half else a + LANES for a in range(LANES)]
            for line in range(LANES):
                if not line & half:
                    one, other = lines[line], lines[line + half]
                    lines[line] = _shuffled(builder, one, other, low)
                    lines[line + half] = _shuffled(builder, one, other, high)
        for line, numbers in enumerate(lines):
            index = builder.add(given[4], builder.mul(given[5], given[5].type(line)))
            builder.store(
                numbers, _address(context, builder, signature.args[3], given[3], index), align=8
            )
        return context.get_dummy_value()

    return types.void(source, types.intp, types.intp, out, types.intp, types.intp), generate


def _shuffled(builder: Any, one: Any, other: Any, places: list[int]) -> Any:
    mask = ir.Constant(ir.VectorType(ir.IntType(32), LANES), places)
    return builder.shuffle_vector(one, other, mask)


def _define(operation: Callable[..., Any], instruction: str) -> None:
    """What an operator does to two vectors."""

    @_instructions
    def compute(_: Any, one: Any, other: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            return getattr(builder, instruction)(*given, flags=tuple(FAST))

        return _LANES(_LANES, _LANES), generate

    def apply(one: Any, other: Any) -> Any:
        return compute(one, other)

    @overload(operation)  # type: ignore[untyped-decorator]
    def choose(one: Any, other: Any) -> Any:
        are_vectors = isinstance(one, _LanesType) and isinstance(other, _LanesType)
        return apply if are_vectors else None


_define(operator.add, "fadd")
_define(operator.sub, "fsub")
_define(operator.mul, "fmul")


@inlined
def add_line(state: np.ndarray, at: int, sign: Any, grown: Any) -> None:
    """Add to the numbers of a line, or take away."""
    store(state, at, load(state, at) + sign * grown)
