"""Memory effects of instructions: what they write, through which pointers, at which constant offsets.

What an instruction writes: ranges of memory at pointers, or any memory.

Constant byte offsets of getelementptr.

What is known of called functions: signatures of those declared, and of those defined in the module.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from tlx.diagnostics import ParseError
from tlx.intrinsics import is_tensor_name
from tlx.ir.functions import DuplicateFunction, Function, Signature
from tlx.ir.instructions import Instruction, may_write
from tlx.ir.module import Module
from tlx.ir.parser.module import parse
from tlx.ir.types import ArrayType, FloatType, IntType, PointerType, Type, VectorType, bytes_of
from tlx.ir.values import ConstInt, Value
from tlx.lower.operations import ELEMENTWISE_INTRINSICS


def size_of(type_: Type | None) -> int | None:
    """Bytes between neighbours of a type in an array; None for structs and other types without a plain size."""
    if isinstance(type_, (IntType, FloatType)):
        size = bytes_of(type_)
        return size if size in (1, 2, 4, 8) else None
    if isinstance(type_, PointerType):
        return 8
    if isinstance(type_, ArrayType):
        element = size_of(type_.element)
        return None if element is None else type_.count * element
    if isinstance(type_, VectorType) and not type_.scalable:
        element = size_of(type_.element)
        return None if element is None else 1 << (type_.count * element - 1).bit_length()
    return None


def gep_offset(instruction: Instruction) -> int | None:
    """Bytes a getelementptr adds; None if that is not a constant known here."""
    type_ = instruction.source_type
    offset = 0
    for position, index in enumerate(instruction.operands[1:]):
        if position > 0:
            if not isinstance(type_, (ArrayType, VectorType)):
                return 0 if _all_zero(instruction) else None
            type_ = type_.element
        step = size_of(type_)
        if not isinstance(index, ConstInt):
            return None
        if index.value != 0:
            if step is None:
                return None
            offset += index.value * step
    return offset


def _all_zero(instruction: Instruction) -> bool:
    return all(isinstance(index, ConstInt) and index.value == 0 for index in instruction.operands[1:])


@dataclass(eq=False)
class CalleeSignatures:
    """Signatures of a module's functions, looked up once each."""

    module: Module
    _known: dict[str, Signature | None] = field(default_factory=dict[str, Signature | None])

    def signature(self, call: Instruction) -> Signature | None:
        """The signature of the callee, None if it is not known."""
        name = call.callee
        if name is None:
            return None
        if name not in self._known:
            self._known[name] = self._find(name)
        return self._known[name]

    def _find(self, name: str) -> Signature | None:
        declared = self.module.declarations.get(name)
        if declared is not None:
            return declared.signature
        for item in self.module.items:
            if isinstance(item, Function | DuplicateFunction) and item.name == name:
                return item.original.signature if isinstance(item, DuplicateFunction) else item.signature
        return self._unparsed(name)

    def _unparsed(self, name: str) -> Signature | None:
        """The signature of a function whose body was not parsed."""
        header = re.search(rf"(?m)^define\b([^\n]*@{re.escape(name)}\([^\n]*)\{{[^\n{{]*$", self.module.raw_text())
        if header is None:
            return None
        try:
            return parse(f"declare{header.group(1)}\n").declarations[name].signature
        except ParseError:
            return None

    def attributes(self, call: Instruction) -> str:
        """Function attributes of a call, those of the callee and of groups included."""
        signature = self.signature(call)
        text = call.trailer.split("!", 1)[0] + " " + (signature.attributes if signature is not None else "")
        return re.sub(r"#\d+", lambda found: self.module.attribute_groups.get(found.group(), ""), text)

    def argument_attributes(self, call: Instruction, index: int) -> str:
        """Attributes of an argument, those of the parameter included."""
        signature = self.signature(call)
        written = call.arg_attributes[index]
        if signature is None or index >= len(signature.arguments):
            return written
        return f"{written} {signature.arguments[index].attributes}"

    def result_attributes(self, call: Instruction) -> str:
        """Attributes of what a call returns."""
        signature = self.signature(call)
        head = call.text.split("@", 1)[0]
        return head if signature is None else f"{head} {signature.result_attributes}"


_NO_MEMORY: Final = (
    "llvm.dbg.",
    "llvm.assume",
    "llvm.sideeffect",
    "llvm.donothing",
    "llvm.experimental.noalias.scope.decl",
    "llvm.annotation",
    "llvm.expect",
    "llvm.prefetch",
    "llvm.objectsize",
    "llvm.trap",
    "llvm.vector.reduce.",
)
_TRANSFERS: Final = ("llvm.memcpy.", "llvm.memmove.", "llvm.memset.")
_LIFETIME: Final = ("llvm.lifetime.", "llvm.invariant.")


@dataclass(frozen=True)
class MemoryEffects:
    """What an instruction writes.

    Attributes:
        written: Pointers it writes through, with the number of bytes, None where that is not known.
        anywhere: Whether it may write any memory it can get at.
    """

    written: tuple[tuple[Value, int | None], ...] = ()
    anywhere: bool = False


def no_memory(callee: str) -> bool:
    """Whether an intrinsic is known not to touch memory."""
    return callee.startswith(_NO_MEMORY) or _is_arithmetic(callee)


def _is_arithmetic(callee: str) -> bool:
    stem = callee
    while stem.count(".") > 1 and stem not in ELEMENTWISE_INTRINSICS:
        stem = stem.rpartition(".")[0]
    return stem in ELEMENTWISE_INTRINSICS


def effects_of(callees: CalleeSignatures, instruction: Instruction) -> MemoryEffects | None:
    """What an instruction may write, None if nothing."""
    if instruction.is_call:
        return _call_effects(callees, instruction)
    if instruction.opcode == "store" and not {"volatile", "atomic"} & set(instruction.flags):
        value, pointer = instruction.operands[:2]
        return MemoryEffects(((pointer, _stored_size(value.type)),))
    return MemoryEffects(_pointer_arguments(instruction.operands), anywhere=True) if may_write(instruction) else None


def _call_effects(callees: CalleeSignatures, call: Instruction) -> MemoryEffects | None:
    callee = (call.callee or "").strip('"')
    if is_tensor_name(callee):
        return MemoryEffects(((call.args[0], None),)) if callee.startswith("llvm.tensor.store") else None
    if no_memory(callee):
        return None
    if callee.startswith(_TRANSFERS):
        size = call.args[2]
        return MemoryEffects(((call.args[0], size.value if isinstance(size, ConstInt) else None),))
    if callee.startswith(_LIFETIME):
        return MemoryEffects(_pointer_arguments(call.args))
    access = _access_of_attributes(callees.attributes(call))
    if access == "none":
        return None
    written = [a for i, a in enumerate(call.args) if not _is_read_only(callees.argument_attributes(call, i))]
    return MemoryEffects(_pointer_arguments(written), anywhere=access == "any")


def _is_read_only(attributes: str) -> bool:
    return bool({"readonly", "readnone", "byval"} & set(attributes.replace("(", " ").split()))


def _pointer_arguments(values: list[Value]) -> tuple[tuple[Value, int | None], ...]:
    return tuple((value, None) for value in values if isinstance(value.type, PointerType))


def _stored_size(type_: Type) -> int | None:
    if isinstance(type_, VectorType) and not type_.scalable:
        element = size_of(type_.element)
        return None if element is None else type_.count * element
    return size_of(type_)


def _access_of_attributes(attributes: str) -> str:
    """`none`, `args` or `any`: what a call with these function attributes may write."""
    words = set(re.sub(r'"[^"]*"(="[^"]*")?', "", attributes).split())
    memory = re.search(r"\bmemory\(([^)]*)\)", attributes)
    if memory is not None:
        return _memory_access(memory.group(1))
    if {"readnone", "readonly"} & words or "inaccessiblememonly" in words:
        return "none"
    return "args" if {"argmemonly", "inaccessiblemem_or_argmemonly"} & words else "any"


def _memory_access(text: str) -> str:
    """Of `memory(...)`: a default, then exceptions by location."""
    access = {"argmem": "none", "other": "none"}
    for item in text.split(","):
        location, _, kind = item.rpartition(":")
        location = location.strip()
        writes = kind.strip() in ("write", "readwrite")
        for place in access if not location else [location] if location in access else []:
            access[place] = "write" if writes else "none"
        if location not in ("", "argmem", "inaccessiblemem"):
            access["other"] = "write" if writes else access["other"]
    if access["other"] == "write":
        return "any"
    return "args" if access["argmem"] == "write" else "none"
