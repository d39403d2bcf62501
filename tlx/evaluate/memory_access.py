"""Memory: addresses, loads, stores and atomics, and LLVM's intrinsics for copies, lifetimes and assumptions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from tlx.diagnostics import EvaluationError
from tlx.evaluate.arithmetic import binary_function, icmp_function
from tlx.evaluate.context import (
    STACK_SLOT,
    CallSite,
    FunctionScope,
    FunctionTable,
    Implementation,
    ImplementationFactory,
    Step,
    first_argument,
    no_operation,
    type_independent,
)
from tlx.evaluate.globals import gep_step
from tlx.evaluate.memory import AddressSpace, alignment_check
from tlx.evaluate.scalars import maximum, minimum
from tlx.evaluate.values import RuntimeValue, signed, signed_array, width_of
from tlx.ir.instructions import Instruction
from tlx.ir.types import Type, VectorType, scalar_of
from tlx.ir.values import ConstInt, int_elements
from tlx.ir.values import Value as Operand

_MASK = (1 << 64) - 1


def alloca(scope: FunctionScope, instruction: Instruction) -> Step:
    """`alloca`: a region that dies when the function returns."""
    type_ = instruction.source_type
    if type_ is None:
        raise EvaluationError("alloca without a type")
    layout, memory = scope.context.layout, scope.context.memory
    size, align = layout.size(type_), instruction.align or layout.align(type_)
    label = f"alloca %{instruction.result} of @{scope.function.name}"
    out = scope.result(instruction)
    count = scope.slot(instruction.operands[0]) if instruction.operands else None

    def step(frame: list[RuntimeValue]) -> None:
        elements = 1 if count is None else frame[count]
        region = memory.allocate(size * elements, label, align)
        frame[STACK_SLOT].append(region)
        frame[out] = region.base

    return step


# Addresses -----------------------------------------------------------------------------------------------------------


def _constant_index(index: Operand) -> int | None:
    """The value of a constant index, or of a splat of one; None for any other index."""
    if isinstance(index, ConstInt):
        return index.value
    lanes = set(int_elements(index) or ())
    return lanes.pop() if len(lanes) == 1 else None


def _terms(scope: FunctionScope, instruction: Instruction) -> tuple[int, list[tuple[Operand, int]]]:
    """A `getelementptr` as a constant offset and a sum of products, (index, bytes)."""
    type_ = instruction.source_type
    if type_ is None:
        raise EvaluationError("getelementptr without a type")
    layout = scope.context.layout
    first, *others = instruction.operands[1:]
    known = _constant_index(first)
    constant = (known or 0) * layout.size(type_)
    terms = [(first, layout.size(type_))] if known is None else []
    for index in others:
        known = _constant_index(index)
        type_, offset = gep_step(layout, type_, known)
        if offset is None:
            terms.append((index, layout.size(type_)))
        constant += offset or 0
    return constant, terms


def gep(scope: FunctionScope, instruction: Instruction) -> Step:
    """`getelementptr` on one pointer, or lane by lane where any operand is a vector."""
    constant, terms = _terms(scope, instruction)
    base = scope.slot(instruction.operands[0])
    out = scope.result(instruction)
    if isinstance(instruction.type, VectorType):
        return _vector_gep(scope, instruction, constant, terms)
    if not terms:

        def fixed(frame: list[RuntimeValue]) -> None:
            frame[out] = (frame[base] + constant) & _MASK

        return fixed
    products = [(scope.slot(o), size, 1 << (width_of(o.type) - 1)) for o, size in terms]
    if len(products) == 1:
        index, size, sign = products[0]

        def single(frame: list[RuntimeValue]) -> None:
            frame[out] = (frame[base] + constant + ((frame[index] ^ sign) - sign) * size) & _MASK

        return single

    def step(frame: list[RuntimeValue]) -> None:
        address = frame[base] + constant
        for index, size, sign in products:
            address += ((frame[index] ^ sign) - sign) * size
        frame[out] = address & _MASK

    return step


def _vector_gep(
    scope: FunctionScope, instruction: Instruction, constant: int, terms: list[tuple[Operand, int]]
) -> Step:
    base = scope.slot(instruction.operands[0])
    out = scope.result(instruction)
    count = instruction.type.count if isinstance(instruction.type, VectorType) else 1
    products = [(scope.slot(o), size, o.type) for o, size in terms]

    def step(frame: list[RuntimeValue]) -> None:
        addresses = np.full(count, constant & _MASK, np.uint64)
        addresses += np.asarray(frame[base], np.uint64)
        for index, size, type_ in products:
            addresses += _signed_index(frame[index], type_) * np.uint64(size)
        frame[out] = addresses

    return step


def _signed_index(index: RuntimeValue, type_: Type) -> RuntimeValue:
    bits = width_of(type_)
    if isinstance(type_, VectorType):
        return signed_array(index, bits).astype(np.int64).view(np.uint64)
    return np.uint64(signed(index, bits) & _MASK)


# Loads and stores ----------------------------------------------------------------------------------------------------


def load(scope: FunctionScope, instruction: Instruction) -> Step:
    """`load`."""
    codec = scope.context.codecs[instruction.type]
    memory = scope.context.memory
    pointer = scope.slot(instruction.operands[0])
    out = scope.result(instruction)
    size, decode = codec.size, codec.decode
    access = f"load of {size} bytes ({instruction.type})"
    check = alignment_check(instruction.align, access)

    def step(frame: list[RuntimeValue]) -> None:
        address = frame[pointer]
        region = memory.last
        if not (region.base <= address and address + size <= region.end):
            region = memory.region(address, size, access)
        frame[out] = decode(region.data, address - region.base)

    return _checked(step, check, pointer)


def store(scope: FunctionScope, instruction: Instruction) -> Step:
    """`store`."""
    type_ = instruction.operands[0].type
    codec = scope.context.codecs[type_]
    memory = scope.context.memory
    value, pointer = scope.slots(instruction)
    size, encode = codec.size, codec.encode
    access = f"store of {size} bytes ({type_})"
    check = alignment_check(instruction.align, access)

    def step(frame: list[RuntimeValue]) -> None:
        address = frame[pointer]
        region = memory.last
        if not (region.base <= address and address + size <= region.end and region.writable):
            region = memory.writable(address, size, access)
        at = address - region.base
        region.data[at : at + size] = encode(frame[value])

    return _checked(step, check, pointer)


def _checked(step: Step, check: Callable[[int], None] | None, pointer: int) -> Step:
    """The step with an alignment check in front, if there is one."""
    if check is None:
        return step

    def checked(frame: list[RuntimeValue]) -> None:
        check(frame[pointer])
        step(frame)

    return checked


# Atomics, which are plain accesses, as threads do not overlap --------------------------------------------------------


_FLOAT_EXTREMES: Final = {"fmax": np.fmax, "fmin": np.fmin, "fmaximum": maximum, "fminimum": minimum}
_UNSIGNED_UPDATES: Final[dict[str, Callable[[int, int], int]]] = {
    "uinc_wrap": lambda old, last: 0 if old >= last else old + 1,
    "udec_wrap": lambda old, last: last if old == 0 or old > last else old - 1,
    "usub_cond": lambda old, less: old - less if old >= less else old,
    "usub_sat": lambda old, less: max(old - less, 0),
}


def _update(operation: str, type_: Type) -> Callable[[RuntimeValue, RuntimeValue], RuntimeValue]:
    if operation == "xchg":
        return lambda _old, new: new
    if operation == "nand":
        mask = (1 << width_of(type_)) - 1
        return lambda old, new: ~(old & new) & mask
    if operation in ("max", "min", "umax", "umin"):
        prefix = "u" if operation[0] == "u" else "s"
        first = icmp_function(prefix + ("gt" if operation.endswith("max") else "lt"), type_)
        return lambda old, new: old if first(old, new) else new
    if operation in _FLOAT_EXTREMES:
        extreme = _FLOAT_EXTREMES[operation]
        return lambda old, new: extreme(old, new)[()]
    if operation in _UNSIGNED_UPDATES:
        return _UNSIGNED_UPDATES[operation]
    return binary_function(operation, scalar_of(type_))


def atomic_update(scope: FunctionScope, instruction: Instruction) -> Step:
    """`atomicrmw`: returns the old value."""
    type_ = instruction.type
    codec, memory = scope.context.codecs[type_], scope.context.memory
    pointer, operand = scope.slots(instruction)
    out = scope.result(instruction)
    update = _update(instruction.predicate, type_)

    def step(frame: list[RuntimeValue]) -> None:
        address = frame[pointer]
        old = codec.decode(memoryview(memory.read(address, codec.size, "atomicrmw")), 0)
        memory.write(address, codec.encode(update(old, frame[operand])), "atomicrmw")
        frame[out] = old

    return step


def compare_exchange(scope: FunctionScope, instruction: Instruction) -> Step:
    """`cmpxchg`: returns the old value, and whether it was the expected one."""
    codec, memory = scope.context.codecs[instruction.operands[1].type], scope.context.memory
    pointer, expected, new = scope.slots(instruction)
    out = scope.result(instruction)

    def step(frame: list[RuntimeValue]) -> None:
        address = frame[pointer]
        old = codec.decode(memoryview(memory.read(address, codec.size, "cmpxchg")), 0)
        if old == frame[expected]:
            memory.write(address, codec.encode(frame[new]), "cmpxchg")
        frame[out] = (old, int(old == frame[expected]))

    return step


def copy_memory(memory: AddressSpace, destination: int, source: int, size: int, *, may_overlap: bool) -> None:
    """`memcpy` and `memmove`.

    Raises:
        EvaluationError: An access is outside memory, or the two ranges of a memcpy overlap in part.
    """
    if not may_overlap and destination != source and abs(destination - source) < size:
        raise EvaluationError(f"memcpy of {size} bytes between overlapping ranges {destination:#x} and {source:#x}")
    memory.write(destination, memory.read(source, size, "memcpy"), "memcpy")


def fill_memory(memory: AddressSpace, destination: int, byte: int, size: int) -> None:
    """`memset`."""
    if size:
        region = memory.writable(destination, size, f"memset of {size} bytes")
        at = destination - region.base
        region.data[at : at + size] = bytes([byte & 255]) * size


def _copy_memory(*, may_overlap: bool) -> ImplementationFactory:
    def make(site: CallSite) -> Implementation:
        memory = site.context.memory

        def run(destination: int, source: int, size: int, *_: RuntimeValue) -> None:
            copy_memory(memory, destination, source, size, may_overlap=may_overlap)

        return run

    return make


def _fill(site: CallSite) -> Implementation:
    memory = site.context.memory

    def run(destination: int, byte: int, size: int, *_: RuntimeValue) -> None:
        fill_memory(memory, destination, byte, size)

    return run


def _lifetime(change: Callable[[AddressSpace, int], None]) -> ImplementationFactory:
    def make(site: CallSite) -> Implementation:
        memory = site.context.memory
        return lambda *args: change(memory, args[-1])

    return make


def _begin(memory: AddressSpace, address: int) -> None:
    region = memory.nearest(address)
    if region is not None and region.base == address and region.data.nbytes == region.size:
        region.revive(memory.undefined)


def _end(memory: AddressSpace, address: int) -> None:
    region = memory.nearest(address)
    if region is not None and region.base == address and not region.death:
        region.kill("is dead after llvm.lifetime.end")


def _assume(condition: RuntimeValue, *_: RuntimeValue) -> None:
    if not condition:
        raise EvaluationError("llvm.assume of a false condition")


def _trap(*_: RuntimeValue) -> None:
    raise EvaluationError("reached llvm.trap")


def _object_size(site: CallSite) -> Implementation:
    unknown = (1 << width_of(site.result)) - 1

    def run(_pointer: int, smallest: int, *_: RuntimeValue) -> int:
        return 0 if smallest else unknown

    return run


def _mask_pointer(address: int, mask: int) -> int:
    return address & mask


def _load_relative(site: CallSite) -> Implementation:
    """`llvm.load.relative`: `base` plus the 32-bit distance stored at `base + offset`."""
    memory = site.context.memory

    def run(base: int, offset: int) -> int:
        data = memory.read(base + signed(offset, width_of(site.arguments[1])), 4, "llvm.load.relative")
        return base + int.from_bytes(data, "little", signed=True)

    return run


MEMORY_INTRINSICS: Final[FunctionTable] = {
    "memcpy": _copy_memory(may_overlap=False),
    "memcpy.inline": _copy_memory(may_overlap=False),
    "memmove": _copy_memory(may_overlap=True),
    "memset": _fill,
    "memset.inline": _fill,
    "lifetime.start": _lifetime(_begin),
    "lifetime.end": _lifetime(_end),
    "invariant.start": type_independent(lambda *_: 0),
    "invariant.end": type_independent(no_operation),
    "launder.invariant.group": type_independent(first_argument),
    "strip.invariant.group": type_independent(first_argument),
    "ptr.annotation": type_independent(first_argument),
    "ptrmask": type_independent(_mask_pointer),
    "threadlocal.address": type_independent(first_argument),
    "prefetch": type_independent(no_operation),
    "codeview.annotation": type_independent(no_operation),
    "assume": type_independent(_assume),
    "trap": type_independent(_trap),
    "debugtrap": type_independent(_trap),
    "ubsantrap": type_independent(_trap),
    "objectsize": _object_size,
    "load.relative": _load_relative,
}
