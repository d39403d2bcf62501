"""Alias analysis: which memory a pointer may point to, and which instructions may change it.

The rules are those of LLVM's BasicAliasAnalysis, as far as buffers of tensors need them: distinct identified objects
(allocas, globals, fresh heap memory, `noalias` and `byval` arguments) do not overlap, a local object that was never
captured is out of reach of calls and loaded pointers, and constant offsets from one pointer tell ranges apart.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Literal

from tlx.intrinsics import is_tensor_name
from tlx.ir.analysis.control_flow import ControlFlow
from tlx.ir.functions import Function
from tlx.ir.instructions import Instruction
from tlx.ir.module import Module
from tlx.ir.transform.rewrite import Use, definitions, uses
from tlx.ir.values import ConstExpr, Global, Keyword, Local, Value
from tlx.lower.memory.effects import CalleeSignatures, effects_of, gep_offset, no_memory
from tlx.lower.memory.views import TensorView

Position = tuple[str, int]
"""A block's name and an index in its instructions."""


def instruction_positions(function: Function) -> dict[int, Position]:
    """Where each instruction stands, by its id."""
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


@dataclass(frozen=True)
class UnderlyingObject:
    """An object that a pointer may point into.

    `unknown` is a pointer from outside, which cannot point to a local object; `any` may point to anything.
    """

    kind: _Kind
    name: str


@dataclass(frozen=True)
class MemoryLocation:
    """Bytes from a pointer on; `size` is None where it is not known."""

    pointer: Value
    size: int | None

    @classmethod
    def of(cls, view: TensorView) -> MemoryLocation:
        """The bytes between the first and the last element of a view."""
        return cls(view.storage.pointer, view.reach)


_Group = tuple[frozenset[UnderlyingObject], bool]
"""Objects that an instruction writes to, and whether it may write anywhere."""


@dataclass(eq=False)
class AliasAnalysis:
    """Alias facts of a function, as it was before anything was changed.

    Attributes:
        module: The function's module.
        function: The function.
        flow: Its control flow.
        store_sizes: Bytes that each `llvm.tensor.store` reaches over, by the call's id.
    """

    module: Module
    function: Function
    flow: ControlFlow
    store_sizes: dict[int, int] = field(default_factory=dict[int, int])
    _captured: dict[str, bool] = field(default_factory=dict[str, bool])
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
        found: set[UnderlyingObject] = set()
        seen: set[str] = set()
        pending = [pointer]
        while pending:
            value = pending.pop()
            if str(value) in seen:
                continue
            seen.add(str(value))
            if len(seen) > _MOST_OBJECTS:
                return {UnderlyingObject("any", str(pointer))}
            followed = self._followed(value)
            if followed:
                pending.extend(followed)
            elif not isinstance(value, Keyword):
                found.add(self._base(value))
        return found

    def _followed(self, value: Value) -> list[Value]:
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
        if definition is not None and definition.opcode == "alloca":
            return UnderlyingObject("alloca", name)
        if definition is not None and definition.is_call and self._is_fresh(definition):
            return UnderlyingObject("fresh", name)
        return UnderlyingObject("unknown", name)

    @cached_property
    def _raw_text(self) -> str:
        return self.module.raw_text()

    def _is_variable(self, name: str) -> bool:
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
        """Whether two ranges surely have no byte in common."""
        if self._apart_by_offset(first, second):
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

    def _apart_by_offset(self, first: MemoryLocation, second: MemoryLocation) -> bool:
        mine, other = self._chain(first.pointer), self._chain(second.pointer)
        for name, offset in mine.items():
            if name in other:
                low, high = sorted([(offset, first.size), (other[name], second.size)], key=lambda r: r[0])
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
            if str(pointer) in chain:  # code that nothing reaches may define a pointer by itself
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
        found: dict[str, dict[_Group, list[int]]] = {}
        for name, block in self.flow.blocks.items():
            groups = found.setdefault(name, {})
            for index, instruction in enumerate(block.instructions):
                effects = effects_of(self._callees, instruction)
                if effects is not None:
                    bases = frozenset(base for pointer, _ in effects.written for base in self.bases(pointer))
                    groups.setdefault((bases, effects.anywhere), []).append(index)
        return found

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
        """Whether other functions may reach an object by an address of their own."""
        return base.kind not in _LOCAL or self.captured(base.name)


def quoted_instruction(instruction: Instruction) -> str:
    """An instruction as remarks quote it."""
    text = " ".join(instruction.text.split())
    return text if len(text) <= 60 else f"{text[:57]}..."
