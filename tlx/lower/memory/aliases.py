"""Alias analysis: which memory a pointer may point to, and which instructions may change it.

The rules are those of LLVM's BasicAliasAnalysis, as far as buffers of tensors need them: distinct identified objects
(allocas, globals, fresh heap memory, `noalias` and `byval` arguments) do not overlap, a local object that was never
captured is out of reach of calls and loaded pointers, and constant offsets from one pointer tell ranges apart.

`effects_of` gives what an instruction writes: ranges of memory at pointers, or any memory.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Literal

from tlx.diagnostics import ParseError
from tlx.intrinsics import is_tensor_name
from tlx.ir.control_flow import ControlFlow
from tlx.ir.functions import DuplicateFunction, Function, Signature
from tlx.ir.instructions import Instruction, may_write
from tlx.ir.module import Module
from tlx.ir.parser.module import parse
from tlx.ir.rewrite import Use, definitions, uses
from tlx.ir.types import ArrayType, FloatType, IntType, PointerType, Type, VectorType, bytes_of, next_power_of_two
from tlx.ir.values import ConstExpr, ConstInt, Global, Keyword, Local, Value
from tlx.lower.memory.views import TensorView
from tlx.lower.operations import ELEMENTWISE_INTRINSICS

Position = tuple[str, int]
"""A block's name and an index in its instructions."""


def instruction_positions(function: Function) -> dict[int, Position]:
    """The position of each instruction, by its id."""
    return {
        id(instruction): (block.name, index)
        for block in function.blocks
        for index, instruction in enumerate(block.instructions)
    }


_Kind = Literal["alloca", "fresh", "noalias", "global", "argument", "unknown", "any"]
_LOCAL: Final = frozenset({"alloca", "fresh", "noalias"})
_MOST_OBJECTS: Final = 16
_SAME_OBJECT: Final = frozenset({"getelementptr", "bitcast", "addrspacecast", "freeze"})
_DERIVES: Final = _SAME_OBJECT | {"phi", "select"}
_HARMLESS: Final = frozenset({"icmp", "load", "#dbg"})


@dataclass(frozen=True, slots=True)
class UnderlyingObject:
    """An object that a pointer may point into.

    `unknown` is a pointer from outside, which cannot point to a local object; `any` may point to anything.
    """

    kind: _Kind
    name: str


@dataclass(frozen=True, slots=True)
class MemoryLocation:
    """Bytes from a pointer on; `size` is None where it is not known."""

    pointer: Value
    size: int | None

    @classmethod
    def of(cls, view: TensorView) -> MemoryLocation:
        """The bytes between the first and the last element of a view."""
        return cls(view.storage.pointer, view.spanned_bytes)


_Group = tuple[frozenset[UnderlyingObject], bool]
"""Objects that an instruction writes to, and whether it may write anywhere."""


@dataclass(eq=False)
class AliasAnalysis:
    """Alias analysis of a function as it was before the lowering changed it.

    Attributes:
        module: The function's module.
        function: The function.
        flow: Its control flow.
        store_sizes: Bytes that each `llvm.tensor.store` reaches over, by the call's id.
        private: Names of the private buffers that are not allocated yet.
    """

    module: Module
    function: Function
    flow: ControlFlow
    store_sizes: dict[int, int] = field(default_factory=dict[int, int])
    private: frozenset[str] = frozenset()
    _captured: dict[str, bool] = field(default_factory=dict[str, bool])
    _variables: dict[str, bool] = field(default_factory=dict[str, bool])
    _touching: dict[tuple[_Group, frozenset[UnderlyingObject]], bool] = field(
        default_factory=dict[tuple[_Group, frozenset[UnderlyingObject]], bool]
    )

    @cached_property
    def _definitions(self) -> dict[str, Instruction]:
        return definitions(self.function)

    @cached_property
    def _uses(self) -> dict[str, list[Use]]:
        return uses(self.function)

    @cached_property
    def _arguments(self) -> dict[str, str]:
        return {a.name: a.attributes for a in self.function.arguments}

    @cached_property
    def _callees(self) -> CalleeSignatures:
        return CalleeSignatures(self.module)

    # Objects ---------------------------------------------------------------------------------------------------

    def bases(self, pointer: Value) -> set[UnderlyingObject]:
        """The objects that a pointer may point into."""
        objects: set[UnderlyingObject] = set()
        seen: set[str] = set()
        pending = [pointer]
        while pending:
            value = pending.pop()
            if str(value) in seen:
                continue
            seen.add(str(value))
            if len(seen) > _MOST_OBJECTS:
                return {UnderlyingObject("any", str(pointer))}
            followed = self._sources(value)
            if followed:
                pending.extend(followed)
            elif not isinstance(value, Keyword):
                objects.add(self._base(value))
        return objects

    def _sources(self, value: Value) -> list[Value]:
        """The pointers that a pointer is derived from; none if it is an object itself."""
        if isinstance(value, ConstExpr) and value.opcode in ("getelementptr", "bitcast"):
            return [value.operands[0]]
        definition = self._definitions.get(value.name) if isinstance(value, Local) else None
        if definition is None:
            return []
        if definition.opcode in _SAME_OBJECT:
            return [definition.operands[0]]
        if definition.opcode == "phi":
            return [v for v, _ in definition.incoming]
        return definition.operands[1:3] if definition.opcode == "select" else []

    def _base(self, value: Value) -> UnderlyingObject:
        name = str(value)
        if isinstance(value, Global):
            return UnderlyingObject("global" if self._is_variable(value.name) else "unknown", name)
        if not isinstance(value, Local):
            return UnderlyingObject("unknown", name)
        if value.name in self._arguments:
            words = self._arguments[value.name].replace("(", " ").split()
            return UnderlyingObject("noalias" if {"noalias", "byval"} & set(words) else "argument", name)
        definition = self._definitions.get(value.name)
        if value.name in self.private or (definition is not None and definition.opcode == "alloca"):
            return UnderlyingObject("alloca", name)
        if definition is not None and definition.is_call and self._is_fresh(definition):
            return UnderlyingObject("fresh", name)
        return UnderlyingObject("unknown", name)

    @cached_property
    def _raw_text(self) -> str:
        return self.module.raw_text()

    def _is_variable(self, name: str) -> bool:
        if name not in self._variables:
            self._variables[name] = self._find_variable(name)
        return self._variables[name]

    def _find_variable(self, name: str) -> bool:
        """Whether a line of the module defines a global variable of that name."""
        text = self._raw_text
        at = text.find(f"\n@{name} = ")
        at = at + 1 if at >= 0 else 0 if text.startswith(f"@{name} = ") else -1
        line = text[at : text.find("\n", at)] if at >= 0 else ""
        words = line.split()[2:12]
        return bool({"global", "constant"} & set(words)) and not {"alias", "ifunc", "extern_weak"} & set(words)

    def _is_fresh(self, call: Instruction) -> bool:
        if call.callee in ("malloc", "calloc", "aligned_alloc"):
            return True
        return "noalias" in self._callees.result_attributes(call).split()

    # Ranges ----------------------------------------------------------------------------------------------------

    def disjoint(self, first: MemoryLocation, second: MemoryLocation) -> bool:
        """Whether two ranges provably have no byte in common."""
        if self._disjoint_by_offset(first, second):
            return True
        return all(self._distinct(a, b) for a in self.bases(first.pointer) for b in self.bases(second.pointer))

    def _distinct(self, a: UnderlyingObject, b: UnderlyingObject) -> bool:
        if a.name == b.name or "any" in (a.kind, b.kind):
            return False
        if "unknown" in (a.kind, b.kind):
            known = b if a.kind == "unknown" else a
            return known.kind in _LOCAL and not self.captured(known.name)
        if a.kind == "argument" or b.kind == "argument":
            return a.kind in _LOCAL or b.kind in _LOCAL
        return True

    def _disjoint_by_offset(self, first: MemoryLocation, second: MemoryLocation) -> bool:
        first_chain, second_chain = self._chain(first.pointer), self._chain(second.pointer)
        for name, offset in first_chain.items():
            if name in second_chain:
                low, high = sorted([(offset, first.size), (second_chain[name], second.size)], key=lambda r: r[0])
                return low[1] is not None and low[0] + low[1] <= high[0]
        return False

    def _chain(self, pointer: Value) -> dict[str, int]:
        """The pointers this one is at a constant distance from, and the distances in bytes."""
        chain = {str(pointer): 0}
        offset = 0
        while isinstance(pointer, Local):
            definition = self._definitions.get(pointer.name)
            if definition is None or definition.opcode not in _SAME_OBJECT:
                break
            step = gep_offset(definition) if definition.opcode == "getelementptr" else 0
            if step is None:
                break
            offset += step
            pointer = definition.operands[0]
            if str(pointer) in chain:  # in unreachable code, a pointer may be derived from itself
                break
            chain[str(pointer)] = offset
        return chain

    # Capture ---------------------------------------------------------------------------------------------------

    def captured(self, name: str) -> bool:
        """Whether the address of a local object (`%name`) may have escaped."""
        if name not in self._captured:
            self._captured[name] = self._is_captured(name.removeprefix("%"))
        return self._captured[name]

    def _is_captured(self, name: str) -> bool:
        pending = [name]
        seen: set[str] = set()
        while pending:
            current = pending.pop()
            if current in seen:
                continue
            seen.add(current)
            for use in self._uses.get(current, []):
                if self._captures(use):
                    return True
                if use.instruction.result is not None and use.instruction.opcode in _DERIVES:
                    pending.append(use.instruction.result)
        return False

    def _captures(self, use: Use) -> bool:
        instruction, index = use.instruction, use.index
        opcode = instruction.opcode
        if opcode in _DERIVES or opcode in _HARMLESS:
            return False
        if opcode == "store":
            return index == 0
        if not instruction.is_call or not 1 <= index <= len(instruction.args):
            return True
        callee = instruction.callee or ""
        if is_tensor_name(callee) or no_memory(callee) or callee.startswith(("llvm.mem", "llvm.lifetime.")):
            return False
        attributes = self._callees.argument_attributes(instruction, index - 1)
        return "captures(none)" not in attributes and not {"nocapture", "byval"} & set(
            attributes.replace("(", " ").split()
        )

    # Writes ----------------------------------------------------------------------------------------------------

    def clobbering_instruction(self, range_: MemoryLocation, start: Position, end: Position) -> Instruction | None:
        """An instruction that may run between two positions and change a range; None if there is none."""
        bases = frozenset(self.bases(range_.pointer))
        suspected = {group for group in self._groups if self._may_touch(group, bases)}
        if not suspected:
            return None
        for name, low, high in self.flow.spans(start, end):
            instructions = self.flow.blocks[name].instructions
            first = high
            for group, indices in self._writers[name].items():
                if group in suspected:
                    suspects = indices[bisect_left(indices, low) : bisect_left(indices, first)]
                    first = next((at for at in suspects if self.writes(instructions[at], range_)), first)
            if first < high:
                return instructions[first]
        return None

    @cached_property
    def _writers(self) -> dict[str, dict[_Group, list[int]]]:
        """The instructions of each block that write, by what they may write to."""
        writers: dict[str, dict[_Group, list[int]]] = {}
        for name, block in self.flow.blocks.items():
            groups = writers.setdefault(name, {})
            for index, instruction in enumerate(block.instructions):
                effects = effects_of(self._callees, instruction)
                if effects is not None:
                    bases = frozenset(base for pointer, _ in effects.written for base in self.bases(pointer))
                    groups.setdefault((bases, effects.anywhere), []).append(index)
        return writers

    @cached_property
    def _groups(self) -> set[_Group]:
        return {group for groups in self._writers.values() for group in groups}

    def _may_touch(self, group: _Group, bases: frozenset[UnderlyingObject]) -> bool:
        """Whether instructions that write to some objects may change others."""
        if (group, bases) not in self._touching:
            written, anywhere = group
            touches = any(not self._distinct(a, b) for a in written for b in bases)
            self._touching[group, bases] = touches or (anywhere and any(map(self._is_reachable, bases)))
        return self._touching[group, bases]

    def writes(self, instruction: Instruction, range_: MemoryLocation) -> bool:
        """Whether an instruction may change a range."""
        effects = effects_of(self._callees, instruction)
        if effects is None:
            return False
        for pointer, size in effects.written:
            if not self.disjoint(MemoryLocation(pointer, self.store_sizes.get(id(instruction), size)), range_):
                return True
        return effects.anywhere and any(self._is_reachable(base) for base in self.bases(range_.pointer))

    def _is_reachable(self, base: UnderlyingObject) -> bool:
        """Whether other functions may know the address of an object."""
        return base.kind not in _LOCAL or self.captured(base.name)


def quoted_instruction(instruction: Instruction) -> str:
    """An instruction as remarks quote it."""
    text = " ".join(instruction.text.split())
    return text if len(text) <= 60 else f"{text[:57]}..."


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
        return None if element is None else next_power_of_two(type_.count * element)
    return None


def gep_offset(instruction: Instruction) -> int | None:
    """Bytes that a getelementptr adds; None if they are not a known constant."""
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
        return re.sub(r"#\d+", lambda match: self.module.attribute_groups.get(match.group(), ""), text)

    def argument_attributes(self, call: Instruction, index: int) -> str:
        """Attributes of an argument, those of the parameter included."""
        signature = self.signature(call)
        written = call.arg_attributes[index]
        if signature is None or index >= len(signature.arguments):
            return written
        return f"{written} {signature.arguments[index].attributes}"

    def result_attributes(self, call: Instruction) -> str:
        """Attributes of the result of a call."""
        signature = self.signature(call)
        head = call.text.split("@", 1)[0]
        return head if signature is None else f"{head} {signature.result_attributes}"


_NO_MEMORY: Final = (
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
    """The memory that an instruction writes.

    Attributes:
        written: Pointers it writes through, each with the number of bytes; None: unknown.
        anywhere: Whether it may write any memory that it can reach.
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
    """The memory that an instruction may write; None if it writes nothing."""
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
    """The access that `memory(...)` allows: a default, then exceptions by location."""
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
