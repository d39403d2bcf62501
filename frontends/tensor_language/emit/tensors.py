"""BLAS instructions as sums of products with an epilogue, and as one expression of `llvm.tensor` operations.

The terms: for each factor, the index of the output, or of the sum, that each of its modes has (`Blas.indices`).

The epilogue, `output := alpha * value + beta * output`, is computed in one type and rounded once.

    output            computed in      sums of products of integers in
    i8, i16           i32, truncated   i32
    i32, i64, index   its type         its type
    bf16, f16         f32              i32 where the factors are i8, else f32
    f32, f64          its type         i32 where the factors are i8, else its type
    c32, c64          its type         its type

A constant factor 1 is not multiplied. `beta` constant 0 leaves the output unread if the output is an integer, updated
atomically, or uninitialised local memory; otherwise it is read, because NaN times zero is NaN.

A memref is column-major and a tensor's memory order is outermost first, so everything is computed transposed:

    C := op(A) op(B)    as    C^T = op(B)^T op(A)^T         MxN = MxK KxN    as    NxM = NxK KxM

    memref M x N, strides 1, L       tensor N x M, row-major, pitch L: its transpose, without a copy
    the same, read as M x N          tensor N x M of layout <1, 0>
    memref M, stride S               tensor M x 1 of pitch S
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from tlx.frontends.tensor_language.analysis.uses import output_operand
from tlx.frontends.tensor_language.emit.arithmetic.registers import undefined
from tlx.frontends.tensor_language.emit.arithmetic.scalars import binary, convert, is_int
from tlx.frontends.tensor_language.emit.emitter import Emitter, Memref, Number, Parts, register_type, tensor_element
from tlx.frontends.tensor_language.operations.blas import Blas, K
from tlx.frontends.tensor_language.types import F32, I8, I32, ScalarType
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.types import FloatType, IntType, Type, VectorType, bits_of
from tlx.ir.values import ConstFloat, ConstInt, Local, Value


@dataclass(frozen=True, slots=True)
class Factor:
    """A memref that is multiplied.

    Attributes:
        memref: What is read.
        modes: For each of its modes the index of the output, or `K`.
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
        """Extent of `K`; None if nothing is summed."""
        for factor in self.factors:
            if K in factor.modes:
                return factor.memref.shape[factor.modes.index(K)]
        return None

    def is_contiguous(self, index: int) -> bool:
        """Whether all factors are contiguous along an index."""
        return all(factor.is_contiguous(index) for factor in self.factors)


def terms_of(e: Emitter, i: Blas) -> Terms:
    """What an instruction other than `cumsum` computes."""
    memrefs = {field: e.memref(getattr(i, field)) for field in i.inputs}
    return Terms(tuple(Factor(memref, i.indices(field, memref.type.order)) for field, memref in memrefs.items()))


@dataclass(frozen=True, slots=True)
class OutputUpdate:
    """`output := alpha * value + beta * output`, where a BLAS instruction computes the value.

    Attributes:
        out: The output.
        type: In which it is computed.
        alpha: Factor of the value in `type`, None for 1.
        beta: Factor of the output's old contents in `type`, None for 1.
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
        scaled = old()
        if self.beta is not None:
            scaled = binary(e, "mul", self.type, tuple(map(spread, self.beta)), scaled)
        return binary(e, "add", self.type, result, scaled)

    def scaled(self, e: Emitter, value: Parts, spread: Callable[[Value], Value]) -> Parts:
        """`alpha * value`."""
        if self.alpha is None:
            return value
        return binary(e, "mul", self.type, tuple(map(spread, self.alpha)), value)


def epilogue_of(e: Emitter, i: Blas) -> OutputUpdate:
    """The epilogue of an instruction."""
    out = e.memref(output_operand(i))
    type_ = _computed_in(out.type.element)
    alpha, beta = e.number(i.alpha), e.number(i.beta)
    unread = _is_constant(beta, 0) and (type_.kind == "int" or i.atomic or id(i) in e.first_writes.unread)
    return OutputUpdate(out, type_, _factor(e, alpha, type_), _factor(e, beta, type_), not unread, i.atomic)


def _computed_in(type_: ScalarType) -> ScalarType:
    """The type in which elements of a type are computed."""
    if type_.kind == "int" and type_.bits < 32:
        return I32
    return F32 if type_.is_narrow_float else type_


def accumulator_type(type_: ScalarType, factors: Sequence[ScalarType]) -> ScalarType:
    """The type in which products of factors are accumulated for a result computed in `type_`."""
    if type_.kind == "float" and all(factor == I8 for factor in factors):
        return I32
    return type_


def _is_constant(number: Number, value: int) -> bool:
    """Whether a number is the constant `value`."""
    first, *rest = number.parts
    return _is(first, value) and all(_is(part, 0) for part in rest)


def _is(part: Value, value: int) -> bool:
    return isinstance(part, (ConstInt, ConstFloat)) and part.value == value


def _factor(e: Emitter, number: Number, type_: ScalarType) -> Parts | None:
    return None if _is_constant(number, 1) else convert(e, number.parts, number.type, type_)


LARGEST: Final = (1 << 31) - 1  # of extents and pitches, which are i32, and of elements
Label = int | None  # a mode of a memref, or None for a dimension of extent 1 that it lacks


def fits_tensors(epilogue: OutputUpdate, terms: Terms) -> bool:
    """Whether the instruction can be one of tensors of known shape."""
    memrefs = [epilogue.out, *(factor.memref for factor in terms.factors)]
    return epilogue.type.kind != "complex" and not epilogue.atomic and all(map(_is_tensor, memrefs))


def emit_tensors(e: Emitter, epilogue: OutputUpdate, terms: Terms) -> None:
    """Compute the output as a tensor."""
    type_, pitches = _tensor_of(epilogue.out, (1, 0))
    value = _value(e, epilogue, terms)

    def old() -> Parts:
        return (_vector(e, epilogue.out, epilogue.type),)

    (result,) = epilogue.apply(e, (value,), old, lambda number: _spread(e, number, type_.shape))
    result = cast_elements(e, result, type_.element)
    e.b.tensor_store(epilogue.out.pointer, e.b.typeinfo(result, type_), pitches)


def _spread(e: Emitter, number: Value, shape: tuple[int, ...]) -> Value:
    """A number in every element of a shape."""
    single = TensorType.dense(number.type, (1, 1))
    vector = e.b.insert_element(undefined(single.vector), number, 0)
    return e.b.broadcast(e.b.typeinfo(vector, single), shape, (0, 1))


def _tensor_of(memref: Memref, labels: tuple[Label, Label]) -> tuple[TensorType, tuple[int, int]]:
    """A memref of known shape and strides as a matrix.

    Args:
        memref: Of order 0, 1 or 2.
        labels: Which of its modes is the first, and which the second logical dimension.

    Returns:
        The tensor's type and its pitches.
    """
    shape, strides = _static_values(memref.shape), _static_values(memref.stride)
    extents = [*shape, 1, 1][:2]
    if _is_strided(memref):
        order, pitch = (0, 1), strides[0]
    else:
        order, pitch = (1, 0), strides[1] if len(strides) > 1 else extents[0]
    own: list[Label] = [mode if mode < len(shape) else None for mode in order]
    logical = [label if label is not None and label < len(shape) else None for label in labels]
    layout = (0, 1) if own == logical else (1, 0)
    element = tensor_element(memref.type.element)
    return TensorType(element, (extents[order[0]], extents[order[1]]), layout, (0, 0)), (0, pitch)


def _label(factor: Factor, index: int) -> Label:
    """The mode of a factor that has an index."""
    return factor.modes.index(index) if index in factor.modes else None


def cast_elements(e: Emitter, value: Value, to: Type) -> Value:
    """A flattened vector or handle with elements converted; integers are signed."""
    type_ = value.type
    assert isinstance(type_, VectorType)
    source = type_.element
    if source == to:
        return value
    is_wider = bits_of(to) > bits_of(source)
    if isinstance(source, IntType):
        opcode = "sitofp" if isinstance(to, FloatType) else "sext" if is_wider else "trunc"
    else:
        opcode = "fpext" if is_wider else "fptrunc"
    return e.b.cast(opcode, value, VectorType(type_.count, to, type_.scalable))


def _value(e: Emitter, epilogue: OutputUpdate, terms: Terms) -> Value:
    """What the instruction computes, in the epilogue's type, in the output's memory order."""
    first, *rest = terms.factors
    is_product = any(set(factor.modes) != set(first.modes) for factor in rest)
    if is_product or (rest and terms.depth is not None):
        value = _matmul(e, epilogue, first, rest[0])
    elif terms.depth is not None:
        value = _sum(e, epilogue, first)
    else:
        values = [(_elements(e, factor, epilogue.type),) for factor in terms.factors]
        (value,) = values[0] if len(values) == 1 else binary(e, "mul", epilogue.type, *values)
    return cast_elements(e, value, register_type(epilogue.type))


def _matmul(e: Emitter, epilogue: OutputUpdate, a: Factor, b: Factor) -> Value:
    """`NxK KxM -> NxM`."""
    sums = register_type(accumulator_type(epilogue.type, [a.memref.type.element, b.memref.type.element]))
    lhs = _operand(e, b.memref, (_label(b, 1), _label(b, K)), sums)
    rhs = _operand(e, a.memref, (_label(a, K), _label(a, 0)), sums)
    return e.b.matmul(lhs, rhs, sums)


def _sum(e: Emitter, epilogue: OutputUpdate, a: Factor) -> Value:
    """The sums of the rows of an M x K matrix."""
    sums = register_type(accumulator_type(epilogue.type, [a.memref.type.element]))
    type_, pitches = _tensor_of(a.memref, (_label(a, 0), _label(a, K)))
    token = e.b.tensor_load(a.memref.pointer, type_, pitches)
    if type_.element != sums:
        type_ = TensorType(sums, type_.shape, type_.layout, type_.padding)
        token = e.b.typeinfo(cast_elements(e, e.b.tovector(token), sums), type_)
    return e.b.reduce("add", token, (1, type_.extents[1]), (1, 1))


def _operand(e: Emitter, memref: Memref, labels: tuple[Label, Label], sums: Type) -> Local:
    """A factor of a product; integers accumulated as floats are converted first."""
    type_, pitches = _tensor_of(memref, labels)
    token = e.b.tensor_load(memref.pointer, type_, pitches)
    if isinstance(type_.element, FloatType) or isinstance(sums, IntType):
        return token
    converted = cast_elements(e, e.b.tovector(token), sums)
    return e.b.typeinfo(converted, TensorType(sums, type_.shape, type_.layout, type_.padding))


def _elements(e: Emitter, factor: Factor, type_: ScalarType) -> Value:
    """The elements of a factor in the memory order of the output, as a type."""
    if factor.modes != (1, 0) or 1 in _static_values(factor.memref.shape):
        return _vector(e, factor.memref, type_)
    tensor, pitches = _tensor_of(factor.memref, (1, 0))
    transposed = e.b.transpose(e.b.tensor_load(factor.memref.pointer, tensor, pitches), (1, 0))
    return cast_elements(e, transposed, register_type(type_))


def _vector(e: Emitter, memref: Memref, type_: ScalarType) -> Value:
    """The elements of a memref in memory order, as a type."""
    tensor, pitches = _tensor_of(memref, (1, 0))
    value = e.b.tovector(e.b.tensor_load(memref.pointer, tensor, pitches))
    return cast_elements(e, value, register_type(type_))


def _is_tensor(memref: Memref) -> bool:
    shape, strides = memref.shape, memref.stride
    if len(shape) > 2 or not all(isinstance(v, ConstInt) for v in (*shape, *strides)):
        return False
    numbers = [*_static_values(shape), *_static_values(strides)]
    count = 1
    for extent in _static_values(shape):
        count *= extent
    is_strided_matrix = len(shape) == 2 and _is_strided(memref) and _static_values(shape)[1] != 1
    return max(count, *numbers, 1) <= LARGEST and not is_strided_matrix


def _is_strided(memref: Memref) -> bool:
    """Whether neighbours along the first mode are not neighbours in memory."""
    return bool(memref.shape) and _static_values(memref.stride)[0] != 1 and _static_values(memref.shape)[0] != 1


def _static_values(values: Sequence[Value]) -> list[int]:
    numbers = [value.value for value in values if isinstance(value, ConstInt)]
    assert len(numbers) == len(values)
    return numbers
