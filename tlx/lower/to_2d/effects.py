"""What an instruction writes: ranges behind pointers, or memory anywhere."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from tlx.intrinsics import is_tensor_name
from tlx.ir.module import Instruction
from tlx.ir.rewriter import may_write
from tlx.ir.types import PointerType, Type, VectorType
from tlx.ir.values import ConstInt, Value
from tlx.lower.to_2d.callees import Callees
from tlx.lower.to_2d.elementwise import INTRINSICS
from tlx.lower.to_2d.offsets import size_of

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
class Effects:
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
    while stem.count(".") > 1 and stem not in INTRINSICS:
        stem = stem.rpartition(".")[0]
    return stem in INTRINSICS


def effects_of(callees: Callees, instruction: Instruction) -> Effects | None:
    """What an instruction may write, None if nothing."""
    if instruction.is_call:
        return _call(callees, instruction)
    if instruction.opcode == "store" and not {"volatile", "atomic"} & set(instruction.flags):
        value, pointer = instruction.operands[:2]
        return Effects(((pointer, _stored_size(value.type)),))
    return Effects(_pointers(instruction.operands), anywhere=True) if may_write(instruction) else None


def _call(callees: Callees, call: Instruction) -> Effects | None:
    callee = (call.callee or "").strip('"')
    if is_tensor_name(callee):
        return Effects(((call.args[0], None),)) if callee.startswith("llvm.tensor.store") else None
    if no_memory(callee):
        return None
    if callee.startswith(_TRANSFERS):
        size = call.args[2]
        return Effects(((call.args[0], size.value if isinstance(size, ConstInt) else None),))
    if callee.startswith(_LIFETIME):
        return Effects(_pointers(call.args))
    access = _access(callees.attributes(call))
    if access == "none":
        return None
    written = [a for i, a in enumerate(call.args) if not _is_read_only(callees.argument_attributes(call, i))]
    return Effects(_pointers(written), anywhere=access == "any")


def _is_read_only(attributes: str) -> bool:
    return bool({"readonly", "readnone", "byval"} & set(attributes.replace("(", " ").split()))


def _pointers(values: list[Value]) -> tuple[tuple[Value, int | None], ...]:
    return tuple((value, None) for value in values if isinstance(value.type, PointerType))


def _stored_size(type_: Type) -> int | None:
    if isinstance(type_, VectorType) and not type_.scalable:
        element = size_of(type_.element)
        return None if element is None else type_.count * element
    return size_of(type_)


def _access(attributes: str) -> str:
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
