"""Vector intrinsics: reductions, masked memory, masks and sequences."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Final

import numpy as np

from tlx.diagnostics import EvaluationError
from tlx.evaluate.arithmetic import binary_function
from tlx.evaluate.elements import vector_type
from tlx.evaluate.float_functions import maximum, maximum_number, minimum, minimum_number
from tlx.evaluate.site import CallSite, Factory, Run, Table, plain, run
from tlx.evaluate.values import Array, Value, dtype_of, is_native, scalar, signed, vector, width_of
from tlx.ir.types import IntType, Type

# Reductions ----------------------------------------------------------------------------------------------------------


def _sum(opcode: str) -> Factory:
    """`llvm.vector.reduce.fadd`, `.fmul`: start value first, then lane by lane, rounding at each."""

    def make(site: CallSite) -> Run:
        function = binary_function(opcode, site.result)
        return run(lambda start, lanes: reduce(function, list(lanes), start))

    return make


def _fold(opcode: str) -> Factory:
    def make(site: CallSite) -> Run:
        function = binary_function(opcode, site.result)
        return run(lambda lanes: reduce(function, [int(n) for n in lanes]))

    return make


def _extreme(choose: Callable[..., int], *, is_signed: bool) -> Factory:
    def make(site: CallSite) -> Run:
        bits = width_of(site.result)
        if is_signed:
            return run(lambda lanes: choose([int(n) for n in lanes], key=partial(signed, bits=bits)))
        return run(lambda lanes: choose([int(n) for n in lanes]))

    return make


def _float_extreme(function: Callable[[Array, Array], Array]) -> Factory:
    def pair(a: Value, b: Value) -> Value:
        return function(np.array([a]), np.array([b]))[0]

    return plain(run(lambda lanes: reduce(pair, list(lanes))))


# Masked memory -------------------------------------------------------------------------------------------------------


def _arguments(site: CallSite, args: tuple[Value, ...], *, first: int) -> list[Value]:
    """Arguments without the alignment, which LLVM 22 has as an attribute and older ones as an i32."""
    return [a for k, a in enumerate(args) if k < first or site.arguments[k] != IntType(32)]


def _ends(mask: Array) -> tuple[int, int] | None:
    """First active lane and the lane behind the last active one."""
    active = np.flatnonzero(mask)
    return (int(active[0]), int(active[-1]) + 1) if len(active) else None


def _element_size(element: Type) -> int:
    if not is_native(element):
        raise EvaluationError(f"masked access to elements of type {element} is not known to the evaluator")
    return dtype_of(element).itemsize


def _masked_load(site: CallSite) -> Run:
    element = vector_type(site.result).element
    size, dtype, memory = _element_size(element), dtype_of(element), site.context.memory

    def run(*args: Value) -> Array:
        address, mask, passthru = _arguments(site, args, first=1)
        result: Array = passthru.copy()
        if ends := _ends(mask):
            low, high = ends
            data = memory.read(address + low * size, (high - low) * size, "masked load")
            active = mask[low:high]
            result[low:high][active] = np.frombuffer(data, dtype)[active]
        return result

    return run


def _masked_store(site: CallSite) -> Run:
    element = vector_type(site.arguments[0]).element
    size, dtype, memory = _element_size(element), dtype_of(element), site.context.memory

    def run(*args: Value) -> None:
        value, address, mask = _arguments(site, args, first=2)
        if ends := _ends(mask):
            low, high = ends
            start, length = address + low * size, (high - low) * size
            region = memory.writable(start, length, f"masked store of {length} bytes")
            place = np.frombuffer(region.data, dtype, high - low, start - region.base)
            active = mask[low:high]
            place[active] = value[low:high][active]

    return run


def _gather(site: CallSite) -> Run:
    codec, memory = site.context.codecs[vector_type(site.result).element], site.context.memory

    def run(*args: Value) -> Array:
        addresses, mask, passthru = _arguments(site, args, first=1)
        result: Array = passthru.copy()
        for lane in np.flatnonzero(mask):
            data = memory.read(int(addresses[lane]), codec.size, "gather")
            result[lane] = codec.decode(memoryview(data), 0)
        return result

    return run


def _scatter(site: CallSite) -> Run:
    element = vector_type(site.arguments[0]).element
    codec, memory = site.context.codecs[element], site.context.memory

    def run(*args: Value) -> None:
        value, addresses, mask = _arguments(site, args, first=2)
        for lane in np.flatnonzero(mask):
            memory.write(int(addresses[lane]), codec.encode(scalar(value[lane], element)), "scatter")

    return run


def _expand_load(site: CallSite) -> Run:
    element = vector_type(site.result).element
    dtype, memory = dtype_of(element), site.context.memory

    def run(address: int, mask: Array, passthru: Array) -> Array:
        result = passthru.copy()
        data = memory.read(address, int(mask.sum()) * dtype.itemsize, "expanding load")
        result[mask] = np.frombuffer(data, dtype)
        return result

    return run


def _compress_store(site: CallSite) -> Run:
    memory = site.context.memory
    return run(lambda value, address, mask: memory.write(address, value[mask].tobytes(), "compressing store"))


# Masks and sequences -------------------------------------------------------------------------------------------------


def _steps(site: CallSite) -> Run:
    type_ = vector_type(site.result)
    numbers = [n & ((1 << width_of(type_)) - 1) for n in range(type_.count)]
    return lambda: vector(numbers, type_.element)


def _lane_mask(site: CallSite) -> Run:
    count = vector_type(site.result).count
    return run(lambda start, end: np.array([start + lane < end for lane in range(count)], np.bool_))


def _extract(site: CallSite) -> Run:
    count = vector_type(site.result).count
    return run(lambda value, start: value[start : start + count].copy())


def _insert(site: CallSite) -> Run:
    count = vector_type(site.arguments[1]).count

    def run(value: Array, part: Array, start: int) -> Array:
        result = value.copy()
        result[start : start + count] = part
        return result

    return run


def _partial_sum(site: CallSite) -> Run:
    """`llvm.vector.partial.reduce.add`: here lane k takes the lanes k, k + n, k + 2n, ... of the long vector."""
    count = vector_type(site.result).count
    if site.result == site.arguments[1]:
        return run(lambda start, value: start + value)
    return run(lambda start, value: start + value.reshape(-1, count).sum(0, dtype=value.dtype))


def _reversed(value: Array) -> Array:
    return value[::-1].copy()


def _splice(site: CallSite) -> Run:
    count = vector_type(site.result).count

    def run(a: Array, b: Array, at: int) -> Array:
        at = signed(at, 32) % count
        return np.concatenate((a, b))[at : at + count]

    return run


def _interleaved(*vectors: Array) -> Array:
    return np.stack(vectors, axis=1).reshape(-1)


def _deinterleaved(several: int) -> Run:
    def run(value: Array) -> tuple[Array, ...]:
        return tuple(value[first::several].copy() for first in range(several))

    return run


VECTORS: Final[Table] = {
    "vector.reduce.fadd": _sum("fadd"),
    "vector.reduce.fmul": _sum("fmul"),
    **{f"vector.reduce.{name}": _fold(name) for name in ("add", "mul", "and", "or", "xor")},
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
    "vector.reverse": plain(_reversed),
    "experimental.vector.reverse": plain(_reversed),
    "vector.splice": _splice,
    "experimental.vector.splice": _splice,
    **{f"vector.interleave{count}": plain(_interleaved) for count in range(2, 9)},
    **{f"vector.deinterleave{count}": plain(_deinterleaved(count)) for count in range(2, 9)},
    "experimental.vector.interleave2": plain(_interleaved),
    "experimental.vector.deinterleave2": plain(_deinterleaved(2)),
    "vector.partial.reduce.add": _partial_sum,
    "experimental.vector.partial.reduce.add": _partial_sum,
}
