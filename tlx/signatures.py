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
from typing import TYPE_CHECKING, Final

from tlx.diagnostics import Span
from tlx.ir.abi import IN_MEMORY, attributes, convention, memory_type, passing
from tlx.ir.analysis import analyse
from tlx.ir.dynamic import element_of
from tlx.ir.headers import named_types
from tlx.ir.module import Argument, Function, Instruction, Module
from tlx.ir.tensors import FunctionTensors
from tlx.ir.types import I1, ArrayType, PointerType, Type, VectorType, is_scalar_number
from tlx.ir.values import Local, Value
from tlx.types import TensorType

if TYPE_CHECKING:
    from tlx.evaluate.layout import Layout

_HIDDEN: Final = frozenset({"internal", "private", "available_externally"})
_LEAST_ALIGNED: Final = 8  # what is passed on the stack of a 64-bit machine
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
        size: For pointers: bytes that the call itself needs there, whatever the function accesses.
        passing: The attributes that say how it is passed, as the IR spells them: `byval(<4 x float>) align 16`.
        copied: For pointers: bytes that the call copies for the function (`byval`), padding behind them included.
        is_result: For pointers: whether the function's result goes there (`sret`).
    """

    name: str
    type: Type
    element: Type | None = None
    count: int | None = None
    written: bool = False
    align: int = 1
    whole: bool = True
    size: int = 0
    passing: str = ""
    copied: int = 0
    is_result: bool = False


@dataclass(frozen=True, slots=True)
class Prototype:
    """A function that can be called: its name, what it returns and what it takes.

    Attributes:
        convention: Its calling convention as the IR spells it; empty for C's.
        passing: The attributes that say how its result is passed.
        variadic: Whether it takes further arguments.
        saves: Whether it saves the registers that callers rely on.
        span: Where it is defined.
    """

    name: str
    result: Type
    parameters: tuple[Parameter, ...]
    convention: str = ""
    passing: str = ""
    variadic: bool = False
    saves: bool = True
    span: Span | None = None

    @property
    def is_plain(self) -> bool:
        """Whether it is called as a C function of its types is, and no attribute says otherwise."""
        return not (self.convention or self.passing or self.variadic or any(p.passing for p in self.parameters))


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
    raw = re.sub(rb"\\([0-9a-fA-F]{2})", lambda m: bytes([int(m.group(1), 16)]), name[1:-1].encode())
    return raw.decode(errors="surrogateescape")


def _words(function: Function) -> list[str]:
    return function.signature.result_attributes.split()


def prototype_of(module: Module, function: Function) -> Prototype:
    """What one function takes and returns."""
    signature = function.signature
    accesses = list(_accesses(function, analyse(module, function)))
    return Prototype(
        plain_name(function.name),
        signature.result,
        tuple(_parameter(module, argument, accesses) for argument in function.arguments),
        convention(signature.result_attributes),
        passing(signature.result_attributes),
        signature.vararg,
        "no_callee_saved_registers" not in module.attribute_text(signature),
        function.span,
    )


def _parameter(module: Module, argument: Argument, accesses: list[_Access]) -> Parameter:
    name = f"%{argument.name}"
    if not isinstance(argument.type, PointerType):
        return Parameter(name, argument.type, passing=passing(argument.attributes))
    mine = [access for access in accesses if access.parameter == argument.name]
    pointee, pointed = _flat(argument.type.pointee)
    elements = {access.element for access in mine if access.element is not None}
    element = elements.pop() if len(elements) == 1 else None
    counts = [access.count for access in mine if access.count is not None and access.element == element]
    if isinstance(argument.type.pointee, (VectorType, ArrayType)):
        counts.append(pointed)
    element = element or (pointee if str(pointee) != "i8" else None)
    words = {attribute.name: attribute for attribute in attributes(argument.attributes)}
    inside = memory_type(argument.type, argument.attributes, *IN_MEMORY)
    size = words["dereferenceable"].number if "dereferenceable" in words else 0
    align, copied = 1, 0
    if inside is not None:
        layout = _layout(module)
        size, align = layout.store_size(inside), layout.align(inside)
        copied = layout.size(inside) if "byval" in words else 0
        align = 1 if "byref" in words else max(align, _LEAST_ALIGNED) if "byval" in words else align
        within, fits = _flat(inside)
        element = element or (within if within != I1 else None)
        if within == element:
            counts.append(fits)
    return Parameter(
        name,
        argument.type,
        element if element is not None and is_scalar_number(element) else None,
        max(counts, default=None),
        not copied and ("sret" in words or any(access.writes for access in mine)),
        words["align"].number if "align" in words else align,
        all(access.count is not None for access in mine),
        size,
        passing(argument.attributes),
        copied,
        "sret" in words,
    )


def _layout(module: Module) -> Layout:
    from tlx.evaluate.layout import Layout

    return Layout(named_types(module.source))


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
