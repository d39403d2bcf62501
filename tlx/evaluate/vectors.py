"""Instructions on elements of vectors, arrays and structs; vector and matrix intrinsics.

The intrinsics are reductions, masked memory accesses, masks, sequences, and `llvm.matrix.*` (column-major).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Final, cast

import numpy as np

from tlx.diagnostics import EvaluationError
from tlx.evaluate.arithmetic import binary_function
from tlx.evaluate.context import (
    CallSite,
    FunctionScope,
    FunctionTable,
    Implementation,
    ImplementationFactory,
    Step,
    type_independent,
    typed,
)
from tlx.evaluate.scalars import maximum, maximum_number, minimum, minimum_number
from tlx.evaluate.values import (
    RuntimeValue,
    element_dtype,
    is_native,
    scalar,
    signed,
    to_float,
    undefined,
    vector,
    width_of,
)
from tlx.intrinsics.numpy_types import Array
from tlx.ir.instructions import Instruction
from tlx.ir.types import FloatType, IntType, Type, VectorType
from tlx.ir.values import Aggregate, ConstInt, Keyword, Splat
from tlx.ir.values import Value as Operand


def vector_type(type_: Type) -> VectorType:
    """The type as a vector with a known number of elements; `<vscale x 1 x T>` holds one (see `tlx.evaluate.tensors`).

    Raises:
        EvaluationError: It is another type, or another scalable vector.
    """
    if isinstance(type_, VectorType) and (not type_.scalable or type_.count == 1):
        return type_
    raise EvaluationError(f"expected a vector of known length, got {type_}")


def extract_element(scope: FunctionScope, instruction: Instruction) -> Step:
    """`extractelement`; an index outside the vector gives undefined bits."""
    type_ = vector_type(instruction.operands[0].type)
    source, index = scope.slots(instruction)
    out = scope.result(instruction)
    count = type_.count
    outside = undefined(type_.element, scope.context.layout)
    is_float = isinstance(type_.element, FloatType)

    def step(frame: list[RuntimeValue]) -> None:
        at = frame[index]
        if at >= count:
            frame[out] = outside
        else:
            frame[out] = frame[source][at] if is_float else int(frame[source][at])

    return step


def insert_element(scope: FunctionScope, instruction: Instruction) -> Step:
    """`insertelement`; an index outside the vector makes all of it undefined."""
    type_ = vector_type(instruction.type)
    source, element, index = scope.slots(instruction)
    out = scope.result(instruction)
    outside = undefined(type_, scope.context.layout)

    def step(frame: list[RuntimeValue]) -> None:
        at = frame[index]
        changed: Array = frame[source].copy()
        if at >= len(changed):
            changed = outside
        else:
            changed[at] = frame[element]
        frame[out] = changed

    return step


def mask_lanes(mask: Operand) -> list[int]:
    """Lanes of a constant shuffle mask; -1 for undefined ones.

    Raises:
        EvaluationError: The mask is not a constant vector.
    """
    count = vector_type(mask.type).count
    match mask:
        case Keyword(word="zeroinitializer"):
            return [0] * count
        case Keyword():
            return [-1] * count
        case Splat(element=ConstInt(value=lane)):
            return [lane] * count
        case Aggregate():
            return [e.value if isinstance(e, ConstInt) else -1 for e in mask.elements]
        case _:
            raise EvaluationError(f"shuffle mask {mask} is not a constant")


def shuffle(scope: FunctionScope, instruction: Instruction) -> Step:
    """`shufflevector`; a lane whose mask element is undefined is undefined."""
    left, right, mask = instruction.operands
    lanes = np.array(mask_lanes(mask), np.intp)
    count = vector_type(left.type).count
    out = scope.result(instruction)
    a, b = scope.slot(left), scope.slot(right)
    is_undefined = lanes < 0
    filler = undefined(instruction.type, scope.context.layout) if is_undefined.any() else None
    one_sided = bool((lanes < count).all())
    sources = np.where(is_undefined, 0, lanes)

    def step(frame: list[RuntimeValue]) -> None:
        both = frame[a] if one_sided else np.concatenate((frame[a], frame[b]))
        result = both[sources]
        frame[out] = result if filler is None else np.where(is_undefined, filler, result)

    return step


def extract_value(scope: FunctionScope, instruction: Instruction) -> Step:
    """`extractvalue`."""
    source = scope.slot(instruction.operands[0])
    out = scope.result(instruction)
    path = instruction.indices

    def step(frame: list[RuntimeValue]) -> None:
        value = frame[source]
        for index in path:
            value = value[index]
        frame[out] = value

    return step


def insert_value(scope: FunctionScope, instruction: Instruction) -> Step:
    """`insertvalue`."""
    source, element = scope.slots(instruction)
    out = scope.result(instruction)
    path = instruction.indices

    def step(frame: list[RuntimeValue]) -> None:
        frame[out] = _replaced(frame[source], path, frame[element])

    return step


def _replaced(aggregate: tuple[RuntimeValue, ...], path: tuple[int, ...], element: RuntimeValue) -> RuntimeValue:
    if not path:
        return element
    first, *rest = path
    inner = _replaced(cast("tuple[RuntimeValue, ...]", aggregate[first]), tuple(rest), element)
    return (*aggregate[:first], inner, *aggregate[first + 1 :])


# Reductions ----------------------------------------------------------------------------------------------------------


def _sum(opcode: str) -> ImplementationFactory:
    """`llvm.vector.reduce.fadd`, `.fmul`: start value first, then lane by lane, rounding at each."""

    def make(site: CallSite) -> Implementation:
        function = binary_function(opcode, site.result)
        return typed(lambda start, lanes: reduce(function, list(lanes), start))

    return make


def _reduction(opcode: str) -> ImplementationFactory:
    def make(site: CallSite) -> Implementation:
        function = binary_function(opcode, site.result)
        return typed(lambda lanes: reduce(function, [int(n) for n in lanes]))

    return make


def _extreme(choose: Callable[..., int], *, is_signed: bool) -> ImplementationFactory:
    def make(site: CallSite) -> Implementation:
        bits = width_of(site.result)
        if is_signed:
            return typed(lambda lanes: choose([int(n) for n in lanes], key=partial(signed, bits=bits)))
        return typed(lambda lanes: choose([int(n) for n in lanes]))

    return make


def _float_extreme(function: Callable[[Array, Array], Array]) -> ImplementationFactory:
    def pair(a: RuntimeValue, b: RuntimeValue) -> RuntimeValue:
        return function(np.array([a]), np.array([b]))[0]

    return type_independent(typed(lambda lanes: reduce(pair, list(lanes))))


# Masked memory -------------------------------------------------------------------------------------------------------


def _without_alignment(site: CallSite, args: tuple[RuntimeValue, ...], *, first: int) -> list[RuntimeValue]:
    """Arguments without the alignment, which LLVM 22 has as an attribute and older ones as an i32."""
    return [a for k, a in enumerate(args) if k < first or site.arguments[k] != IntType(32)]


def _active_range(mask: Array) -> tuple[int, int] | None:
    """The range from the first active lane to the last one (exclusive)."""
    active = np.flatnonzero(mask)
    return (int(active[0]), int(active[-1]) + 1) if len(active) else None


def _element_size(element: Type) -> int:
    if not is_native(element):
        raise EvaluationError(f"the evaluator has no masked accesses to elements of type {element}")
    return element_dtype(element).itemsize


def _masked_load(site: CallSite) -> Implementation:
    element = vector_type(site.result).element
    size, dtype, memory = _element_size(element), element_dtype(element), site.context.memory

    def run(*args: RuntimeValue) -> Array:
        address, mask, passthru = _without_alignment(site, args, first=1)
        result: Array = passthru.copy()
        if active_range := _active_range(mask):
            low, high = active_range
            data = memory.read(address + low * size, (high - low) * size, "masked load")
            active = mask[low:high]
            result[low:high][active] = np.frombuffer(data, dtype)[active]
        return result

    return run


def _masked_store(site: CallSite) -> Implementation:
    element = vector_type(site.arguments[0]).element
    size, dtype, memory = _element_size(element), element_dtype(element), site.context.memory

    def run(*args: RuntimeValue) -> None:
        value, address, mask = _without_alignment(site, args, first=2)
        if active_range := _active_range(mask):
            low, high = active_range
            start, length = address + low * size, (high - low) * size
            region = memory.writable(start, length, f"masked store of {length} bytes")
            place = np.frombuffer(region.data, dtype, high - low, start - region.base)
            active = mask[low:high]
            place[active] = value[low:high][active]

    return run


def _gather(site: CallSite) -> Implementation:
    codec, memory = site.context.codecs[vector_type(site.result).element], site.context.memory

    def run(*args: RuntimeValue) -> Array:
        addresses, mask, passthru = _without_alignment(site, args, first=1)
        result: Array = passthru.copy()
        for lane in np.flatnonzero(mask):
            data = memory.read(int(addresses[lane]), codec.size, "gather")
            result[lane] = codec.decode(memoryview(data), 0)
        return result

    return run


def _scatter(site: CallSite) -> Implementation:
    element = vector_type(site.arguments[0]).element
    codec, memory = site.context.codecs[element], site.context.memory

    def run(*args: RuntimeValue) -> None:
        value, addresses, mask = _without_alignment(site, args, first=2)
        for lane in np.flatnonzero(mask):
            memory.write(int(addresses[lane]), codec.encode(scalar(value[lane], element)), "scatter")

    return run


def _expand_load(site: CallSite) -> Implementation:
    element = vector_type(site.result).element
    dtype, memory = element_dtype(element), site.context.memory

    def run(address: int, mask: Array, passthru: Array) -> Array:
        result = passthru.copy()
        data = memory.read(address, int(mask.sum()) * dtype.itemsize, "expanding load")
        result[mask] = np.frombuffer(data, dtype)
        return result

    return run


def _compress_store(site: CallSite) -> Implementation:
    memory = site.context.memory
    return typed(lambda value, address, mask: memory.write(address, value[mask].tobytes(), "compressing store"))


# Masks and sequences -------------------------------------------------------------------------------------------------


def _steps(site: CallSite) -> Implementation:
    type_ = vector_type(site.result)
    numbers = [n & ((1 << width_of(type_)) - 1) for n in range(type_.count)]
    return lambda: vector(numbers, type_.element)


def _lane_mask(site: CallSite) -> Implementation:
    count = vector_type(site.result).count
    return typed(lambda start, end: np.array([start + lane < end for lane in range(count)], np.bool_))


def _extract(site: CallSite) -> Implementation:
    count = vector_type(site.result).count
    return typed(lambda value, start: value[start : start + count].copy())


def _insert(site: CallSite) -> Implementation:
    """Into a scalable vector at its start, as code with vectors of a known length does: they are its whole length."""
    count = vector_type(site.arguments[1]).count
    if isinstance(site.result, VectorType) and site.result.scalable:
        return typed(lambda _value, part, _start: part.copy())

    def run(value: Array, part: Array, start: int) -> Array:
        result = value.copy()
        result[start : start + count] = part
        return result

    return run


def _partial_sum(site: CallSite) -> Implementation:
    """`llvm.vector.partial.reduce.add`: here lane k adds the lanes k, k + n, k + 2n, ... of the long vector."""
    count = vector_type(site.result).count
    if site.result == site.arguments[1]:
        return typed(lambda start, value: start + value)
    return typed(lambda start, value: start + value.reshape(-1, count).sum(0, dtype=value.dtype))


def _reversed(value: Array) -> Array:
    return value[::-1].copy()


def _splice(site: CallSite) -> Implementation:
    count = vector_type(site.result).count

    def run(a: Array, b: Array, at: int) -> Array:
        at = signed(at, 32) % count
        return np.concatenate((a, b))[at : at + count]

    return run


def _interleaved(*vectors: Array) -> Array:
    return np.stack(vectors, axis=1).reshape(-1)


def _deinterleaved(count: int) -> Implementation:
    def run(value: Array) -> tuple[Array, ...]:
        return tuple(value[first::count].copy() for first in range(count))

    return run


VECTOR_INTRINSICS: Final[FunctionTable] = {
    "vector.reduce.fadd": _sum("fadd"),
    "vector.reduce.fmul": _sum("fmul"),
    **{f"vector.reduce.{name}": _reduction(name) for name in ("add", "mul", "and", "or", "xor")},
    "vector.reduce.smax": _extreme(max, is_signed=True),
    "vector.reduce.smin": _extreme(min, is_signed=True),
    "vector.reduce.umax": _extreme(max, is_signed=False),
    "vector.reduce.umin": _extreme(min, is_signed=False),
    "vector.reduce.fmax": _float_extreme(maximum_number),
    "vector.reduce.fmin": _float_extreme(minimum_number),
    "vector.reduce.fmaximum": _float_extreme(maximum),
    "vector.reduce.fminimum": _float_extreme(minimum),
    "masked.load": _masked_load,
    "masked.store": _masked_store,
    "masked.gather": _gather,
    "masked.scatter": _scatter,
    "masked.expandload": _expand_load,
    "masked.compressstore": _compress_store,
    "stepvector": _steps,
    "experimental.stepvector": _steps,
    "get.active.lane.mask": _lane_mask,
    "vector.extract": _extract,
    "vector.insert": _insert,
    "experimental.vector.extract": _extract,
    "experimental.vector.insert": _insert,
    "vector.reverse": type_independent(_reversed),
    "experimental.vector.reverse": type_independent(_reversed),
    "vector.splice": _splice,
    "experimental.vector.splice": _splice,
    **{f"vector.interleave{count}": type_independent(_interleaved) for count in range(2, 9)},
    **{f"vector.deinterleave{count}": type_independent(_deinterleaved(count)) for count in range(2, 9)},
    "experimental.vector.interleave2": type_independent(_interleaved),
    "experimental.vector.deinterleave2": type_independent(_deinterleaved(2)),
    "vector.partial.reduce.add": _partial_sum,
    "experimental.vector.partial.reduce.add": _partial_sum,
}


def _multiply(site: CallSite) -> Implementation:
    """R x K times K x C; floats are summed in double and rounded once."""
    element = vector_type(site.result).element
    dtype = element_dtype(element)
    wide = np.dtype(np.float64) if isinstance(element, FloatType) else dtype

    def run(a: Array, b: Array, rows: int, inner: int, columns: int) -> Array:
        left = a.reshape(inner, rows).T.astype(wide)
        right = b.reshape(columns, inner).T.astype(wide)
        return to_float((left @ right).T.reshape(-1), dtype)

    return run


def _transpose(a: Array, rows: int, columns: int) -> Array:
    return a.reshape(columns, rows).T.reshape(-1).copy()


def _load_matrix(site: CallSite) -> Implementation:
    dtype, memory = element_dtype(vector_type(site.result).element), site.context.memory

    def run(address: int, stride: int, _volatile: int, rows: int, columns: int) -> Array:
        size = dtype.itemsize
        data = [memory.read(address + c * stride * size, rows * size, "matrix load") for c in range(columns)]
        return np.frombuffer(b"".join(data), dtype).copy()

    return run


def _store_matrix(site: CallSite) -> Implementation:
    memory = site.context.memory

    def run(value: Array, address: int, stride: int, _volatile: int, rows: int, columns: int) -> None:
        for c, column in enumerate(value.reshape(columns, rows)):
            memory.write(address + c * stride * value.itemsize, column.tobytes(), "matrix store")

    return run


MATRIX_INTRINSICS: Final[FunctionTable] = {
    "matrix.multiply": _multiply,
    "matrix.transpose": type_independent(_transpose),
    "matrix.column.major.load": _load_matrix,
    "matrix.column.major.store": _store_matrix,
    "matrix.columnwise.load": _load_matrix,
    "matrix.columnwise.store": _store_matrix,
}
