"""What a BLAS instruction computes: a sum of products, and its epilogue.

BLAS instructions as sums of products: which index of the output, or of the sum, each mode of a factor has.

axpby      B[i,j] := a A[i,j]                  A(0, 1), with .t A(1, 0)
sum        b[i]   := a sum_k A[i,k]            A(0, K), with .t A(K, 0), of a vector A(K)
gemm       C[i,j] := a sum_k A[i,k] B[k,j]     A(0, K) B(K, 1)
gemv       c[i]   := a sum_k A[i,k] b[k]       A(0, K) b(K)
ger        C[i,j] := a a[i] b[j]               a(0) b(1)
hadamard   C[i,j] := a A[i,j] B[i,j]           A(0, 1) B(0, 1)

The epilogue of BLAS instructions: `output := alpha * value + beta * output`, in one type, rounded once.

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
from typing import Final

from tlx.frontends.tensor_language.emit.arithmetic import binary, convert
from tlx.frontends.tensor_language.emit.blas.first_writes import output_operand
from tlx.frontends.tensor_language.emit.emitter import Emitter
from tlx.frontends.tensor_language.emit.numbers import is_int
from tlx.frontends.tensor_language.emit.values import Memref, Number, Parts
from tlx.frontends.tensor_language.operations.blas import Axpby, Blas, Gemm, Gemv, Ger, Hadamard, Sum
from tlx.frontends.tensor_language.operations.core import Transpose
from tlx.frontends.tensor_language.types import F32, I8, I32, ScalarType
from tlx.ir.values import ConstFloat, ConstInt, Value

K: Final = -1  # the index that is summed over


@dataclass(frozen=True, slots=True)
class Factor:
    """A memref that is multiplied.

    Attributes:
        memref: What is read.
        modes: For each of its modes the mode of the output with the same index, or `K`.
    """

    memref: Memref
    modes: tuple[int, ...]

    def is_contiguous(self, index: int) -> bool:
        """Whether neighbours along an index are neighbours in memory, or the same element."""
        steps = [s for s, mode in zip(self.memref.stride, self.modes, strict=True) if mode == index]
        return all(is_int(step, 1) for step in steps)


@dataclass(frozen=True, slots=True)
class Terms:
    """The sum over `K`, if there is one, of the product of one or two factors."""

    factors: tuple[Factor, ...]

    @property
    def depth(self) -> Value | None:
        """Extent of `K`; None where nothing is summed."""
        for factor in self.factors:
            if K in factor.modes:
                return factor.memref.shape[factor.modes.index(K)]
        return None

    def is_contiguous(self, index: int) -> bool:
        """Whether all factors are, along an index."""
        return all(factor.is_contiguous(index) for factor in self.factors)


def terms_of(e: Emitter, i: Blas) -> Terms:
    """What an instruction other than `cumsum` computes."""
    a = e.memref(i.a)
    match i:
        case Axpby():
            plain = tuple(range(a.type.order))
            return Terms((Factor(a, _op(i.transpose, plain)),))
        case Sum():
            return Terms((Factor(a, (K,) if a.type.order == 1 else _op(i.transpose, (0, K))),))
        case Gemm():
            rhs = Factor(e.memref(i.b), _op(i.transpose_b, (K, 1)))
            return Terms((Factor(a, _op(i.transpose_a, (0, K))), rhs))
        case Gemv():
            return Terms((Factor(a, _op(i.transpose, (0, K))), Factor(e.memref(i.b), (K,))))
        case Ger():
            return Terms((Factor(a, (0,)), Factor(e.memref(i.b), (1,))))
        case _:
            assert isinstance(i, Hadamard)
            plain = tuple(range(a.type.order))
            return Terms((Factor(a, plain), Factor(e.memref(i.b), plain)))


def _op(transpose: Transpose, modes: tuple[int, ...]) -> tuple[int, ...]:
    return modes[::-1] if transpose == "t" else modes


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
    out = e.memref(output_operand(i))
    type_ = _computed_in(out.type.element)
    alpha, beta = e.number(i.alpha), e.number(i.beta)
    unread = _is_constant(beta, 0) and (type_.kind == "int" or i.atomic or id(i) in e.first_writes.unread)
    return Epilogue(out, type_, _factor(e, alpha, type_), _factor(e, beta, type_), not unread, i.atomic)


def _computed_in(type_: ScalarType) -> ScalarType:
    """The type in which elements of a type are computed."""
    if type_.kind == "int" and type_.bits < 32:
        return I32
    return F32 if type_.is_narrow_float else type_


def accumulator_type(type_: ScalarType, factors: Sequence[ScalarType]) -> ScalarType:
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
