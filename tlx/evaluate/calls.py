"""Calls to functions of the module, intrinsics, library functions and inline assembly; and argument passing.

Arguments are numpy arrays and numbers; `byval` arguments are copied. Inline assembly is evaluated if it is empty (its
result is its operand) or a target defines it, as x86 does for the instructions that identify the processor.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, TypeGuard

import numpy as np

from tlx.diagnostics import EvaluationError
from tlx.evaluate.context import (
    STACK_SLOT,
    CallSite,
    Frame,
    FunctionScope,
    FunctionTable,
    Implementation,
    ImplementationFactory,
    Step,
    target_semantics,
)
from tlx.evaluate.library import C_LIBRARY, OPENMP_LIBRARY, POSIX_LIBRARY
from tlx.evaluate.memory import AddressSpace, Layout, MemoryRegion
from tlx.evaluate.memory_access import MEMORY_INTRINSICS
from tlx.evaluate.scalars import FLOAT_INTRINSICS, INTEGER_INTRINSICS
from tlx.evaluate.tensors import tensor_step
from tlx.evaluate.values import RuntimeValue, element_dtype, signed, signed_array, width_of
from tlx.evaluate.vectors import MATRIX_INTRINSICS, VECTOR_INTRINSICS
from tlx.intrinsics import is_tensor_name
from tlx.intrinsics.numpy_types import Array
from tlx.ir.abi import parse_attributes, pointee_type
from tlx.ir.functions import Function
from tlx.ir.instructions import Instruction
from tlx.ir.tensors.conversions import wrong_conversion
from tlx.ir.types import VOID, ArrayType, FloatType, IntType, PointerType, StructType, Type, VectorType
from tlx.ir.values import Global, OpaqueConstant


@dataclass(frozen=True, slots=True)
class ByvalCopy:
    """An argument that is passed as a copy (`byval`).

    Attributes:
        position: Index of the argument.
        size: Size in bytes.
        padded_size: Size in bytes, including trailing padding.
        align: Alignment of the copy.
        label: What errors call the copy.
    """

    position: int
    size: int
    padded_size: int
    align: int
    label: str


def byval_copies(layout: Layout, callee: str, parameters: Iterable[tuple[Type, str]]) -> tuple[ByvalCopy, ...]:
    """The `byval` copies of a call, given the types and attributes of the parameters or arguments."""
    copies: list[ByvalCopy] = []
    for position, (type_, text) in enumerate(parameters):
        pointee = pointee_type(type_, text, "byval")
        if pointee is not None:
            align = next((a.number for a in parse_attributes(text) if a.name == "align"), layout.align(pointee))
            label = f"argument {position} of @{callee}, which is passed by value"
            copies.append(ByvalCopy(position, layout.store_size(pointee), layout.size(pointee), align, label))
    return tuple(copies)


def pass_byval_copies(
    memory: AddressSpace, stack: list[MemoryRegion], copies: Sequence[ByvalCopy], arguments: Sequence[RuntimeValue]
) -> list[RuntimeValue]:
    """The arguments, with `byval` ones replaced by the addresses of copies on the stack."""
    passed = list(arguments)
    for copy in copies:
        data = memory.read(passed[copy.position], copy.size, f"copy of {copy.label},")
        region = memory.allocate(copy.padded_size, copy.label, copy.align)
        region.data[: copy.size] = data
        stack.append(region)
        passed[copy.position] = region.base
    return passed


_ALIGNMENT = re.compile(r"\balign (\d+)")


@dataclass
class _SharedRange:
    """A range of this process's memory that arrays share."""

    low: int
    high: int
    align: int
    arrays: list[Array] = field(default_factory=list[Array])
    labels: list[str] = field(default_factory=list[str])


class ArrayMapping:
    """Gives numpy arrays addresses in a machine's memory.

    Arrays that overlap lie in one region, so they alias as they do in numpy. A region's address is a multiple of 16
    (or of a parameter's `align`) and of no larger power of two.
    """

    def __init__(self, memory: AddressSpace) -> None:
        self._memory = memory
        self._blocks: list[_SharedRange] = []
        self.regions: list[MemoryRegion] = []

    def add(self, array: Array, label: str, align: int = 16) -> None:
        """Add an array to be mapped."""
        low, high = np.lib.array_utils.byte_bounds(array) if array.size else (_address(array), _address(array))
        block = _SharedRange(low, high, max(align, 16), [array], [label])
        for other in [b for b in self._blocks if b.low < high and low < b.high]:
            self._blocks.remove(other)
            block.low, block.high = min(block.low, other.low), max(block.high, other.high)
            block.align = max(block.align, other.align)
            block.arrays += other.arrays
            block.labels += other.labels
        self._blocks.append(block)

    def place(self) -> None:
        """Make the regions."""
        for block in self._blocks:
            size = block.high - block.low
            data = memoryview((ctypes.c_ubyte * size).from_address(block.low)).cast("B")
            skew = (block.low - _owner_address(block.arrays[0])) % (2 * block.align)
            label = " and ".join(block.labels)
            writable = all(a.flags.writeable for a in block.arrays)
            self.regions.append(
                self._memory.add(data, label, block.align, writable=writable, owner=block.arrays, skew=skew)
            )

    def address(self, array: Array) -> int:
        """Where the first element of a mapped array is."""
        at = _address(array)
        for block, region in zip(self._blocks, self.regions, strict=True):
            if any(a is array for a in block.arrays):
                return region.base + at - block.low
        raise EvaluationError("the array was not mapped")

    def release(self) -> None:
        """Unmap everything."""
        for region in self.regions:
            self._memory.release(region, "was an argument of a call that has ended")


def _address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


def _owner_address(array: Array) -> int:
    """Address of the array that a view looks into."""
    base = array
    while is_array(base.base):
        base = base.base
    return _address(base)


def is_array(value: object) -> TypeGuard[Array]:
    """Whether a Python argument is a numpy array."""
    return isinstance(value, np.ndarray)


def map_arguments(memory: AddressSpace, function: Function, args: tuple[Any, ...]) -> ArrayMapping:
    """Map the arrays among the arguments that go to pointer parameters."""
    mapping = ArrayMapping(memory)
    for parameter, arg in zip(function.arguments, args, strict=True):
        if isinstance(parameter.type, PointerType) and is_array(arg):
            alignment_match = _ALIGNMENT.search(parameter.attributes)
            shape = "x".join(map(str, arg.shape))
            label = f"argument %{parameter.name} of @{function.name} ({shape} {arg.dtype})"
            mapping.add(arg, label, int(alignment_match[1]) if alignment_match else 16)
    mapping.place()
    return mapping


def to_value(type_: Type, arg: Any, mapping: ArrayMapping) -> RuntimeValue:
    """The value of a Python argument for a parameter of some type.

    Raises:
        EvaluationError: The argument does not fit the parameter.
    """
    if isinstance(type_, PointerType):
        return mapping.address(arg) if is_array(arg) else int(arg) & ((1 << 64) - 1)
    if isinstance(type_, IntType):
        return int(arg) & ((1 << type_.bits) - 1)
    if isinstance(type_, FloatType):
        return element_dtype(type_).type(arg)
    if isinstance(type_, VectorType):
        return _vector(type_, np.asarray(arg))
    if isinstance(type_, StructType):
        return tuple(to_value(t, a, mapping) for t, a in zip(type_.elements, arg, strict=True))
    raise EvaluationError(f"cannot pass {type(arg).__name__} as a parameter of type {type_}")


def _vector(type_: VectorType, array: Array) -> Array:
    dtype = element_dtype(type_.element)
    if array.shape != (type_.count,):
        shape = "x".join(map(str, array.shape))
        raise EvaluationError(f"a parameter of type {type_} needs {type_.count} elements, got an array of {shape}")
    if isinstance(type_.element, FloatType) or dtype == np.bool_:
        return array.astype(dtype)
    mask = (1 << width_of(type_)) - 1
    return np.array([int(n) & mask for n in array], dtype)


def to_python(type_: Type, value: RuntimeValue) -> Any:
    """A result for Python: integers signed (i1: bool), also in vectors and structs; pointers as addresses."""
    if isinstance(type_, IntType):
        return bool(value) if type_.bits == 1 else signed(value, type_.bits)
    if isinstance(type_, VectorType) and isinstance(type_.element, IntType) and type_.element.bits > 1:
        return signed_array(value, type_.element.bits)
    if isinstance(type_, StructType):
        return tuple(to_python(t, v) for t, v in zip(type_.elements, value, strict=True))
    if isinstance(type_, ArrayType):
        return tuple(to_python(type_.element, v) for v in value)
    return value


_IGNORED: Final = (
    "llvm.experimental.noalias.scope.decl",
    "llvm.donothing",
    "llvm.var.annotation",
    "llvm.sideeffect",
)


def call(scope: FunctionScope, instruction: Instruction) -> Step | None:
    """`call` and the call of an `invoke`; None where there is nothing to do."""
    callee = instruction.operands[0]
    if isinstance(callee, OpaqueConstant):
        return inline_assembly(scope, instruction, callee)
    if not isinstance(callee, Global):
        return _indirect(scope, instruction)
    name = callee.name.strip('"')
    if is_tensor_name(name):
        return tensor_step(scope, instruction)
    if name.startswith(_IGNORED):
        return None
    if name.startswith("llvm.stack"):
        return _stack(scope, instruction, name)
    if (error := wrong_conversion(instruction)) is not None:
        raise error
    context = scope.context
    metadata = tuple(str(a) for a in instruction.args if str(a.type) == "metadata")
    site = CallSite(context, name, instruction.type, tuple(a.type for a in instruction.args), metadata)
    if callee.name in context.defined or name in context.foreign:
        return _direct(scope, instruction, callee.name)
    factory = find_implementation(name)
    if factory is not None:
        return _run(scope, instruction, factory(site))
    return _direct(scope, instruction, callee.name)


def _run(scope: FunctionScope, instruction: Instruction, function: Implementation) -> Step:
    out = scope.result(instruction)
    slots = [scope.slot(a) for a in instruction.args if str(a.type) != "metadata"]
    if len(slots) == 1:
        (a,) = slots

        def unary(frame: Frame) -> None:
            frame[out] = function(frame[a])

        return unary

    def step(frame: Frame) -> None:
        frame[out] = function(*[frame[s] for s in slots])

    return step


def _direct(scope: FunctionScope, instruction: Instruction, name: str) -> Step:
    out = scope.result(instruction)
    slots = [scope.slot(a) for a in instruction.args]
    invoke = scope.context.call
    memory = scope.context.memory
    parameters = zip([a.type for a in instruction.args], instruction.arg_attributes, strict=True)
    callee = scope.context.defined.get(name)
    if callee is not None and not _fits(callee, instruction):
        return _undefined(f"the types of these arguments are not those of the parameters of @{name}")
    copies = () if callee is not None else byval_copies(scope.context.layout, name, parameters)

    def step(frame: Frame) -> None:
        frame[out] = invoke(name, [frame[s] for s in slots])

    def copying(frame: Frame) -> None:
        frame[out] = invoke(name, pass_byval_copies(memory, frame[STACK_SLOT], copies, [frame[s] for s in slots]))

    return copying if copies else step


def _fits(callee: Function, instruction: Instruction) -> bool:
    """Whether the arguments of a direct call have the types of the callee's parameters, of which it may ignore some."""
    types = [a.type for a in instruction.args]
    pairs = zip((parameter.type for parameter in callee.arguments), types, strict=False)
    are_alike = all(
        to == type_ or (isinstance(to, PointerType) and isinstance(type_, PointerType)) for to, type_ in pairs
    )
    return len(types) >= len(callee.arguments) and are_alike


def _undefined(message: str) -> Step:
    def step(_: Frame) -> None:
        raise EvaluationError(f"undefined behaviour: {message}")

    return step


def _indirect(scope: FunctionScope, instruction: Instruction) -> Step:
    out = scope.result(instruction)
    pointer = scope.slot(instruction.operands[0])
    slots = [scope.slot(a) for a in instruction.args]
    context = scope.context

    def step(frame: Frame) -> None:
        name = context.symbols.function_at(frame[pointer])
        frame[out] = context.call(name, [frame[s] for s in slots])

    return step


def _stack(scope: FunctionScope, instruction: Instruction, name: str) -> Step:
    """`llvm.stacksave` gives the number of stack regions, `llvm.stackrestore` drops those made since."""
    out = scope.result(instruction)
    if name.startswith("llvm.stacksave"):

        def save(frame: Frame) -> None:
            frame[out] = len(frame[STACK_SLOT])

        return save
    (saved,) = [scope.slot(a) for a in instruction.args]
    memory = scope.context.memory

    def restore(frame: Frame) -> None:
        stack = frame[STACK_SLOT]
        while len(stack) > frame[saved]:
            memory.release(stack.pop(), "went out of scope at llvm.stackrestore")

    return restore


_EMPTY: Final = re.compile(r'asm (sideeffect )?"",')
_TIED: Final = re.compile(r'"=\w+,0(,~\{[^"]*)?"')
"""One result, in the register of the only operand."""
_INSTRUCTION: Final = re.compile(r'asm (?:\w+ )*"([^"]*)"')


def _empty_assembly(scope: FunctionScope, instruction: Instruction, callee: str) -> Step:
    """Assembly without instructions.

    Raises:
        EvaluationError: The result is an arbitrary register instead of the operand.
    """
    if instruction.type == VOID:
        return lambda _frame: None
    if not _TIED.search(callee):
        raise EvaluationError("the result of this inline assembly is not its operand")
    out, source = scope.result(instruction), scope.slot(instruction.args[0])

    def step(frame: Frame) -> None:
        frame[out] = frame[source]

    return step


def inline_assembly(scope: FunctionScope, instruction: Instruction, callee: OpaqueConstant) -> Step:
    """A call of assembly.

    Raises:
        EvaluationError: No target defines what its instructions do.
    """
    if _EMPTY.search(str(callee)):
        return _empty_assembly(scope, instruction, str(callee))
    match = _INSTRUCTION.search(str(callee))
    name = match[1] if match else ""
    run = scope.context.assembly.get(name) or target_semantics().assembly.get(name)
    if run is None:
        raise EvaluationError("the evaluator does not run inline assembly")
    out, type_ = scope.result(instruction), instruction.type
    slots = [scope.slot(a) for a in instruction.args]

    def step(frame: Frame) -> None:
        registers: list[Any] = list(run([frame[s] for s in slots]))
        frame[out] = registers[: len(type_.elements)] if isinstance(type_, StructType) else registers[0]

    return step


_INTRINSICS: FunctionTable = {
    **FLOAT_INTRINSICS,
    **INTEGER_INTRINSICS,
    **VECTOR_INTRINSICS,
    **MEMORY_INTRINSICS,
    **MATRIX_INTRINSICS,
}


@cache
def find_implementation(name: str) -> ImplementationFactory | None:
    """The table entry of a function; the suffixes of overloaded intrinsics are ignored.

    `llvm.vector.reduce.fadd.v4f32` is looked up as itself, then without `.v4f32`, and so on.
    """
    if not name.startswith("llvm."):
        return C_LIBRARY.get(name) or OPENMP_LIBRARY.get(name) or POSIX_LIBRARY.get(name)
    base = name.removeprefix("llvm.").replace("experimental.vector.reduce.v2.", "vector.reduce.")
    base = base.replace("experimental.vector.reduce.", "vector.reduce.")
    return _without_suffixes(base, _INTRINSICS) or _without_suffixes(base, target_semantics().intrinsics)


def _without_suffixes(name: str, table: FunctionTable) -> ImplementationFactory | None:
    """The entry of the longest prefix of a dotted name."""
    while name and name not in table:
        name = name.rpartition(".")[0]
    return table.get(name)
