"""The epilogue of BLAS instructions: `output := alpha * value + beta * output`, in one type, rounded once.

    output            computed in      sums of products of integers in
    i8, i16           i32, cut off     i32
    i32, i64, index   its type         its type
    bf16, f16         f32              i32 where the factors are i8, else f32
    f32, f64          its type         i32 where the factors are i8, else its type
    c32, c64          its type         its type

A constant 1 costs nothing. `beta` constant 0 leaves the output unread if it is an integer, updated atomically, or known
to be nothing that matters: NaN times zero is NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tlx.frontends.tensor_language.ast.collective import Blas
from tlx.frontends.tensor_language.emit.arithmetic import binary
from tlx.frontends.tensor_language.emit.blas_first_writes import output
from tlx.frontends.tensor_language.emit.conversions import convert
from tlx.frontends.tensor_language.emit.emitter import Emitter
from tlx.frontends.tensor_language.emit.values import Memref, Number, Parts
from tlx.frontends.tensor_language.types import F32, I8, I32, ScalarType
from tlx.ir.values import ConstFloat, ConstInt, Value


@dataclass(frozen=True, slots=True)
class Epilogue:
    """`output := alpha * value + beta * output`, of what a BLAS instruction computes.

    Attributes:
        out: The output.
        type: In which it is computed.
        alpha: Factor of the value in `type`, None for 1.
        beta: Factor of what the output holds in `type`, None for 1.
        reads: Whether the output is read.
        atomic: Whether it is updated atomically.
    """

    out: Memref
    type: ScalarType
    alpha: Parts | None
    beta: Parts | None
    reads: bool
    atomic: bool

    def apply(self, e: Emitter, value: Parts, old: Callable[[], Parts], spread: Callable[[Value], Value]) -> Parts:
        """`alpha * value + beta * old`, of any number of elements.

        Args:
            e: The emitter.
            value: What was computed, in `type`.
            old: Reads the output, in `type`.
            spread: Repeats a number for as many elements.
        """
        result = self.scaled(e, value, spread)
        if not self.reads:
            return result
        kept = old()
        if self.beta is not None:
            kept = binary(e, "mul", self.type, tuple(map(spread, self.beta)), kept)
        return binary(e, "add", self.type, result, kept)

    def scaled(self, e: Emitter, value: Parts, spread: Callable[[Value], Value]) -> Parts:
        """`alpha * value`."""
        if self.alpha is None:
            return value
        return binary(e, "mul", self.type, tuple(map(spread, self.alpha)), value)


def epilogue_of(e: Emitter, i: Blas) -> Epilogue:
    """The epilogue of an instruction."""
    out = e.memref(output(i))
    type_ = _computed_in(out.type.element)
    alpha, beta = e.number(i.alpha), e.number(i.beta)
    unread = _is_constant(beta, 0) and (type_.kind == "int" or i.atomic or id(i) in e.first_writes.unread)
    return Epilogue(out, type_, _factor(e, alpha, type_), _factor(e, beta, type_), not unread, i.atomic)


def _computed_in(type_: ScalarType) -> ScalarType:
    """The type in which elements of a type are computed."""
    if type_.kind == "int" and type_.bits < 32:
        return I32
    return F32 if type_.is_narrow_float else type_


def summed_in(type_: ScalarType, factors: Sequence[ScalarType]) -> ScalarType:
    """The type in which products of factors are summed up for a result computed in `type_`."""
    if type_.kind == "float" and all(factor == I8 for factor in factors):
        return I32
    return type_


def _is_constant(number: Number, value: int) -> bool:
    """Whether a number is known to be a value, and a real one."""
    first, *rest = number.parts
    return _is(first, value) and all(_is(part, 0) for part in rest)


def _is(part: Value, value: int) -> bool:
    return isinstance(part, (ConstInt, ConstFloat)) and part.value == value


def _factor(e: Emitter, number: Number, type_: ScalarType) -> Parts | None:
    return None if _is_constant(number, 1) else convert(e, number.parts, number.type, type_)
