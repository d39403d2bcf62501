"""The prototypes of a module's functions: what their memory accesses tell about their pointers.

A typed pointer has an element type. The element type of an opaque pointer is that of the tensors, scalars and vectors
that are loaded or stored through it, and the number of elements is what these accesses span. If memory, or local memory
that is copied to or from it, is accessed as floats and as integers of the same size, its elements are floats, whose
bits are copied.

    define void @gemm(ptr %a, ptr %b, ptr %c)             a: 8 elements of float, read
      %x = call token @llvm.tensor.load(ptr %a, <2, 4> …)  c: 10 elements of float (rows 8 apart), written
      call void @llvm.tensor.store(ptr %c, token %z, <0, 8> …)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tlx.api.signatures import CallParameter, Prototype, symbol_name
from tlx.ir.abi import MEMORY_ATTRIBUTES, abi_attributes, calling_convention, parse_attributes, pointee_type
from tlx.ir.functions import Argument, Function
from tlx.ir.instructions import Instruction
from tlx.ir.module import Module
from tlx.ir.prepared import CONSTANT
from tlx.ir.types import I1, ArrayType, FloatType, PointerType, Type, VectorType, bits_of, is_scalar_number
from tlx.ir.values import Global, Local, Value

if TYPE_CHECKING:
    from tlx.evaluate.memory import Layout
    from tlx.intrinsics.tensor_type import TensorType
    from tlx.ir.tensors.model import FunctionTensors

_HIDDEN: Final = frozenset({"internal", "private", "available_externally"})
_MASKED_LOADS: Final = ("llvm.masked.load.", "llvm.masked.gather.", "llvm.masked.expandload.")
_MASKED_STORES: Final = ("llvm.masked.store.", "llvm.masked.scatter.", "llvm.masked.compressstore.")
_COPIES: Final = ("llvm.memcpy.", "llvm.memmove.")
_STACK_ALIGNMENT: Final = 8  # of arguments on the stack of a 64-bit machine
_FORWARDS: Final = frozenset({"getelementptr", "bitcast", "addrspacecast"})


@dataclass(frozen=True, slots=True)
class _Access:
    """An access through a pointer derived from a parameter or an `alloca`, the root; unknown fields are None."""

    root: str
    element: Type | None
    count: int | None
    writes: bool


def prototypes(module: Module) -> dict[str, Prototype]:
    """The functions that other modules can call, by name."""
    visible = [prototype_of(module, f) for f in module.functions if not _HIDDEN & set(_words(f))]
    return {prototype.name: prototype for prototype in visible}


def _words(function: Function) -> list[str]:
    return function.signature.result_attributes.split()


def prototype_of(module: Module, function: Function) -> Prototype:
    """The prototype of a function."""
    from tlx.ir.tensors.inference import analyse

    signature = function.signature
    accesses = _Accesses(function, analyse(module, function))
    return Prototype(
        symbol_name(function.name),
        signature.result,
        tuple(_parameter(module, argument, accesses) for argument in function.arguments),
        calling_convention(signature.result_attributes),
        abi_attributes(signature.result_attributes),
        signature.vararg,
        "no_callee_saved_registers" not in module.attribute_text(signature),
        function.span,
    )


def _parameter(module: Module, argument: Argument, accesses: _Accesses) -> CallParameter:
    name = f"%{argument.name}"
    if not isinstance(argument.type, PointerType):
        return CallParameter(name, argument.type, abi_attributes=abi_attributes(argument.attributes))
    own = [access for access in accesses.all if access.root == argument.name]
    pointee, pointee_count = _flat(argument.type.pointee)
    accessed = {access.element for access in own if access.element is not None}
    stored = _common_element(accessed, accesses.copied(argument.name))
    element = next(iter(accessed)) if len(accessed) == 1 else None if accessed else stored
    counts = [access.count for access in own if access.count is not None and _same_size(access.element, stored)]
    if isinstance(argument.type.pointee, (VectorType, ArrayType)):
        counts.append(pointee_count)
    element = element or (pointee if str(pointee) != "i8" else None)
    words = {attribute.name: attribute for attribute in parse_attributes(argument.attributes)}
    passed = pointee_type(argument.type, argument.attributes, *MEMORY_ATTRIBUTES)
    size = words["dereferenceable"].number if "dereferenceable" in words else 0
    align, byval_bytes = 1, 0
    if passed is not None:
        layout = _layout(module)
        size, align = layout.store_size(passed), layout.align(passed)
        byval_bytes = layout.size(passed) if "byval" in words else 0
        align = 1 if "byref" in words else max(align, _STACK_ALIGNMENT) if "byval" in words else align
        passed_element, passed_count = _flat(passed)
        element = element or (passed_element if passed_element != I1 else None)
        if passed_element == element:
            counts.append(passed_count)
    element = element if element is not None and is_scalar_number(element) else None
    return CallParameter(
        name,
        argument.type,
        element,
        max(counts, default=None),
        not byval_bytes and ("sret" in words or any(access.writes for access in own)),
        words["align"].number if "align" in words else align,
        all(access.count is not None for access in own),
        size,
        abi_attributes(argument.attributes),
        byval_bytes,
        "sret" in words,
        stored or element,
        CONSTANT in words,
    )


def _common_element(elements: set[Type], copied: set[Type]) -> Type | None:
    """The element type of all accesses: one type, or a float of its size that is accessed there or in a copy."""
    elements = elements or copied
    if len({bits_of(element) for element in elements}) != 1:
        return None
    floats = {
        e for e in elements | copied if isinstance(e, FloatType) and all(_same_size(e, other) for other in elements)
    }
    if floats:
        return next(iter(floats)) if len(floats) == 1 else None
    return next(iter(elements))


def _same_size(one: Type | None, other: Type | None) -> bool:
    return one is not None and other is not None and bits_of(one) == bits_of(other)


def _layout(module: Module) -> Layout:
    from tlx.evaluate.memory import Layout
    from tlx.ir.parser.module import named_types

    return Layout(named_types(module.source))


def _flat(type_: Type | None) -> tuple[Type | None, int]:
    """Element type and number of elements of a vector, or of an array of arrays."""
    count = 1
    while isinstance(type_, (VectorType, ArrayType)):
        count *= type_.count
        type_ = type_.element
    return type_, count


class _Accesses:
    """The accesses of a function, by the parameter or `alloca` that the pointer is derived from.

    Attributes:
        all: All of them.
    """

    def __init__(self, function: Function, tensors: FunctionTensors) -> None:
        self.all: list[_Access] = []
        self._roots: dict[str, tuple[str, bool]] = {a.name: (a.name, True) for a in function.arguments}
        self._loaded: dict[str, str] = {}
        self._copies: list[tuple[str, str]] = []
        for instruction in function.instructions():
            self._instruction(instruction)
        self._tensors(tensors)

    def copied(self, root: str) -> set[Type]:
        """Element types of the accesses to memory that is copied to or from that of `root`."""
        others = {b if a == root else a for a, b in self._copies if root in (a, b)}
        return {access.element for access in self.all if access.root in others and access.element is not None}

    def _instruction(self, i: Instruction) -> None:
        callee = (i.callee or "").strip('"')
        arguments = [v for v in i.operands if not isinstance(v, Global)]
        if i.opcode in _FORWARDS and i.result is not None and i.operands:
            self._forward(i.result, i.operands[0], is_same=i.opcode != "getelementptr")
        elif i.opcode == "alloca" and i.result is not None:
            self._roots[i.result] = (i.result, True)
        elif i.opcode == "load":
            self._load(i, i.operands[0])
        elif i.opcode == "store":
            self._store(i.operands[0], i.operands[1])
        elif i.opcode in ("atomicrmw", "cmpxchg"):
            self._plain(i.operands[0], i.operands[1].type, writes=True, is_counted=False)
        elif callee.startswith(_MASKED_LOADS):
            self._load(i, arguments[0], is_counted=False)
        elif callee.startswith(_MASKED_STORES):
            self._store(arguments[0], arguments[1], is_counted=False)
        elif callee.startswith(_COPIES):
            self._copy(arguments[0], arguments[1])

    def _tensors(self, tensors: FunctionTensors) -> None:
        from tlx.ir.tensors.dynamic import element_type

        for tensor in tensors.tokens.values():
            if tensor.kind != "value":
                self._spanned(tensor.source, tensor.type, tensor.pitches, writes=False)
        for tensor in tensors.dynamic.tokens.values():
            if tensor.kind != "value":
                self._unbounded(tensor.source, tensor.element, writes=False)
        for op in tensors.dynamic.ops:
            if op.pointer is not None:
                self._unbounded(op.pointer, element_type(op.tensors[0]), writes=True)
        for op in tensors.ops:
            if op.pointer is not None:
                self._spanned(op.pointer, op.tensors[0].type, op.pitches, writes=True)

    def _root(self, pointer: Value) -> tuple[str, bool] | None:
        """The root that a pointer is derived from, and whether it points to the root's first byte."""
        return self._roots.get(pointer.name) if isinstance(pointer, Local) else None

    def _forward(self, result: str, base: Value, *, is_same: bool) -> None:
        root = self._root(base)
        if root is not None:
            self._roots[result] = (root[0], root[1] and is_same)

    def _load(self, i: Instruction, pointer: Value, *, is_counted: bool = True) -> None:
        self._plain(pointer, i.type, writes=False, is_counted=is_counted)
        root = self._root(pointer)
        if root is not None and i.result is not None:
            self._loaded[i.result] = root[0]

    def _store(self, value: Value, pointer: Value, *, is_counted: bool = True) -> None:
        self._plain(pointer, value.type, writes=True, is_counted=is_counted)
        root = self._root(pointer)
        if root is not None and isinstance(value, Local) and value.name in self._loaded:
            self._copies.append((self._loaded[value.name], root[0]))

    def _copy(self, destination: Value, source: Value) -> None:
        to, from_ = self._root(destination), self._root(source)
        if to is not None:
            self.all.append(_Access(to[0], None, None, writes=True))
        if to is not None and from_ is not None:
            self._copies.append((from_[0], to[0]))

    def _plain(self, pointer: Value, type_: Type, *, writes: bool, is_counted: bool) -> None:
        root = self._root(pointer)
        if root is None:
            return
        element, count = _flat(type_)
        known = element is not None and is_scalar_number(element)
        is_counted = is_counted and root[1] and known
        self.all.append(_Access(root[0], element if known else None, count if is_counted else None, writes))

    def _unbounded(self, pointer: Value, element: Type, *, writes: bool) -> None:
        """Record the access of a tensor with run-time extents."""
        root = self._root(pointer)
        if root is not None:
            self.all.append(_Access(root[0], element, None, writes))

    def _spanned(self, pointer: Value, type_: TensorType, pitches: tuple[int, ...] | None, *, writes: bool) -> None:
        root = self._root(pointer)
        if root is None:
            return
        steps = zip(type_.data_shape, type_.strides(pitches), strict=True)
        last = sum((extent - 1) * stride for extent, stride in steps)
        self.all.append(_Access(root[0], type_.element, last + 1 if root[1] else None, writes))
