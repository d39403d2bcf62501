"""What the functions of a module take and return, seen from numpy.

A typed pointer says what it points to. An opaque one does not, so the tensors say it: a parameter that is the pointer
of a load, a store or a pointer-form typeinfo points to as many elements as that tensor spans. Ordinary loads and stores
of scalars and vectors count as well.

    define void @gemm(ptr %a, ptr %b, ptr %c)             a: 8 elements of float, read
      %x = call token @llvm.tensor.load(ptr %a, <2, 4> …)  c: 10 elements of float (rows 8 apart), written
      call void @llvm.tensor.store(ptr %c, token %z, <0, 8> …)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tlx.ir.analysis import analyse
from tlx.ir.dynamic import element_of
from tlx.ir.module import Argument, Function, Instruction, Module
from tlx.ir.tensors import FunctionTensors
from tlx.ir.types import ArrayType, PointerType, Type, VectorType, is_scalar_number
from tlx.ir.values import Local, Value
from tlx.types import TensorType

_HIDDEN: Final = frozenset({"internal", "private", "available_externally"})
_FORWARDS: Final = frozenset({"getelementptr", "bitcast", "addrspacecast"})


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a function.

    Attributes:
        name: Its name in the IR, with `%`.
        type: Its type.
        element: For pointers: element type of what it points to; None where the IR does not tell.
        count: For pointers: elements that are accessed from there on, at least; None where the IR does not tell.
        whole: For pointers: whether these are all, as far as accesses tell: none is of a size, or at an offset, that is
            known only when the program runs.
        written: For pointers: whether the function stores there.
        align: For pointers: alignment in bytes that the IR promises.
    """

    name: str
    type: Type
    element: Type | None = None
    count: int | None = None
    written: bool = False
    align: int = 1
    whole: bool = True


@dataclass(frozen=True, slots=True)
class Prototype:
    """A function that can be called: its name, what it returns and what it takes."""

    name: str
    result: Type
    parameters: tuple[Parameter, ...]


@dataclass(frozen=True, slots=True)
class _Access:
    """One access through a pointer parameter: `count` elements where that is known."""

    parameter: str
    element: Type | None
    count: int | None
    writes: bool


def prototypes(module: Module) -> dict[str, Prototype]:
    """The functions that other modules can call, by name."""
    found = [prototype_of(module, f) for f in module.functions if not _HIDDEN & set(_words(f))]
    return {prototype.name: prototype for prototype in found}


def plain_name(name: str) -> str:
    r"""A name as the object file has it: without quotes, `\5C` read as the character it stands for."""
    if not name.startswith('"'):
        return name
    return re.sub(r"\\([0-9a-fA-F]{2})", lambda m: chr(int(m.group(1), 16)), name[1:-1])


def _words(function: Function) -> list[str]:
    return function.signature.result_attributes.split()


def prototype_of(module: Module, function: Function) -> Prototype:
    """What one function takes and returns."""
    accesses = list(_accesses(function, analyse(module, function)))
    parameters = tuple(_parameter(argument, accesses) for argument in function.arguments)
    return Prototype(plain_name(function.name), function.signature.result, parameters)


def _parameter(argument: Argument, accesses: list[_Access]) -> Parameter:
    name = f"%{argument.name}"
    if not isinstance(argument.type, PointerType):
        return Parameter(name, argument.type)
    mine = [access for access in accesses if access.parameter == argument.name]
    pointee, pointed = _flat(argument.type.pointee)
    elements = {access.element for access in mine if access.element is not None}
    element = elements.pop() if len(elements) == 1 else None
    counts = [access.count for access in mine if access.count is not None and access.element == element]
    if isinstance(argument.type.pointee, (VectorType, ArrayType)):
        counts.append(pointed)
    element = element or (pointee if str(pointee) != "i8" else None)
    align = re.search(r"\balign[ (]*(\d+)", argument.attributes)
    return Parameter(
        name,
        argument.type,
        element if element is not None and is_scalar_number(element) else None,
        max(counts, default=None),
        any(access.writes for access in mine),
        int(align.group(1)) if align else 1,
        all(access.count is not None for access in mine),
    )


def _flat(type_: Type | None) -> tuple[Type | None, int]:
    """Element type and number of elements of a vector, or of an array of arrays."""
    count = 1
    while isinstance(type_, (VectorType, ArrayType)):
        count *= type_.count
        type_ = type_.element
    return type_, count


def _accesses(function: Function, tensors: FunctionTensors) -> Iterator[_Access]:
    roots = {argument.name: (argument.name, True) for argument in function.arguments}
    for instruction in function.instructions():
        if instruction.opcode in _FORWARDS and instruction.result is not None and instruction.operands:
            _forward(instruction, roots)
        elif instruction.opcode == "load":
            yield from _plain(roots, instruction.operands[0], instruction.type, writes=False)
        elif instruction.opcode == "store":
            yield from _plain(roots, instruction.operands[1], instruction.operands[0].type, writes=True)
    for tensor in tensors.tokens.values():
        if tensor.kind != "value":
            yield from _spanned(roots, tensor.source, tensor.type, tensor.pitches, writes=False)
    for tensor in tensors.dynamic.tokens.values():
        if tensor.kind != "value":
            yield from _unbounded(roots, tensor.source, tensor.element, writes=False)
    for op in tensors.dynamic.ops:
        if op.pointer is not None:
            yield from _unbounded(roots, op.pointer, element_of(op.tensors[0]), writes=True)
    for op in tensors.ops:
        if op.pointer is not None:
            yield from _spanned(roots, op.pointer, op.tensors[0].type, op.pitches, writes=True)


_Roots = dict[str, tuple[str, bool]]
"""The parameter that a pointer is derived from, and whether it is the parameter itself."""


def _forward(instruction: Instruction, roots: _Roots) -> None:
    base = instruction.operands[0]
    if isinstance(base, Local) and base.name in roots and instruction.result is not None:
        root, same = roots[base.name]
        roots[instruction.result] = (root, same and instruction.opcode != "getelementptr")


def _root(roots: _Roots, pointer: Value) -> tuple[str, bool] | None:
    return roots.get(pointer.name) if isinstance(pointer, Local) else None


def _plain(roots: _Roots, pointer: Value, type_: Type, *, writes: bool) -> Iterator[_Access]:
    root = _root(roots, pointer)
    if root is None:
        return
    element, count = _flat(type_)
    known = element is not None and is_scalar_number(element)
    yield _Access(root[0], element if known else None, count if root[1] and known else None, writes)


def _unbounded(roots: _Roots, pointer: Value, element: Type, *, writes: bool) -> Iterator[_Access]:
    """The access of a tensor whose extents are known only when the program runs."""
    root = _root(roots, pointer)
    if root is not None:
        yield _Access(root[0], element, None, writes)


def _spanned(
    roots: _Roots, pointer: Value, type_: TensorType, pitches: tuple[int, ...] | None, *, writes: bool
) -> Iterator[_Access]:
    root = _root(roots, pointer)
    if root is None:
        return
    steps = zip(type_.data_shape, type_.strides(pitches), strict=True)
    last = sum((extent - 1) * stride for extent, stride in steps)
    yield _Access(root[0], type_.element, last + 1 if root[1] else None, writes)
