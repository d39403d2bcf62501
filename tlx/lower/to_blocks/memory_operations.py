"""Ordinary memory operations of the host's part of a function, as trees: copies, fills, and stores of single numbers.

%x = load float, ptr %p      store float (fneg %x), ptr %q          an expression of one row and column
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from tlx.diagnostics import LoweringError
from tlx.ir.instructions import Instruction
from tlx.ir.rewrite import definitions, uses
from tlx.ir.tensors.calls import is_tensor_call
from tlx.ir.types import I8, FloatType, IntType, PointerType, VectorType, bytes_of, scalar_of
from tlx.ir.values import Aggregate, Constant, ConstInt, Keyword, Local, Splat, Value, zero
from tlx.lower.memory.aliases import AliasAnalysis, MemoryLocation
from tlx.lower.operations import ElementwiseOp
from tlx.lower.to_blocks.kernel import vector_columns
from tlx.lower.to_tiles.expression import (
    Expression,
    InstructionNode,
    MatrixLeaf,
    MatrixView,
    Node,
    ScalarLeaf,
    SplatLeaf,
)
from tlx.lower.to_tiles.match.stores import Match
from tlx.lower.to_tiles.problem import Copy, Elementwise

_MEMORY_CALLS: Final = ("llvm.memcpy.", "llvm.memset.")


def is_memory_call(instruction: Instruction) -> bool:
    """Whether an instruction copies or fills memory."""
    return instruction.opcode == "call" and (instruction.callee or "").startswith(_MEMORY_CALLS)


def match_memory_call(call: Instruction) -> Match:
    """A call that copies or fills memory, as a tree on bytes."""
    destination, source, size, *_ = call.args
    if not isinstance(size, ConstInt):
        raise host_error("a copy whose size is known only at run time", call, "copy a constant number of bytes")
    view = _bytes(size.value)
    if isinstance(source.type, PointerType):
        return Match(call, Copy(view, view), [(destination, view), (source, view)], [], [])
    if not isinstance(source, Constant):
        raise host_error("filling memory with a number known only at run time", call, "fill it with a constant")
    value = Expression(1, size.value, (SplatLeaf(I8, source),))
    return Match(call, Elementwise(view, value), [(destination, view)], [], [])


class PlainStores:
    """The ordinary stores of a function that kernels can do: of expressions of numbers, and of what was just loaded.

    Args:
        aliases: What is known about the function's memory.

    Attributes:
        loads: The loads, by their identity, whose values only such stores depend on.

    Raises:
        LoweringError: A vector may be stored over a part of what it was loaded from.
    """

    def __init__(self, aliases: AliasAnalysis) -> None:
        self._aliases, function = aliases, aliases.function
        self._definitions, self._parameters = definitions(function), {argument.name for argument in function.arguments}
        self._matches: dict[int, Match] = {}
        consumed: set[int] = set()
        for block in function.blocks:
            for number, instruction in enumerate(block.instructions):
                match = self._match(block.instructions, number) if instruction.opcode == "store" else None
                if match is not None:
                    self._matches[id(instruction)] = match
                    consumed |= {id(instruction), *map(id, match.consumed)}
        used = uses(function)
        self.loads = frozenset(
            id(i)
            for i in function.instructions()
            if i.opcode == "load" and all(id(use.instruction) in consumed for use in used.get(i.result or "", []))
        )

    def match(self, instruction: Instruction) -> Match | None:
        """The store as a tree."""
        return self._matches.get(id(instruction))

    def _match(self, block: list[Instruction], number: int) -> Match | None:
        store = block[number]
        value, pointer = store.operands
        definition = self._definitions.get(value.name) if isinstance(value, Local) else None
        if definition is not None and definition.opcode == "load" and _is_unchanged(block, definition, number):
            source = definition.operands[0]
            self._check_overlap(store, pointer, source)
            view = _bytes(bytes_of(value.type))
            return Match(store, Copy(view, view), [(pointer, view), (source, view)], [], [definition])
        if not isinstance(scalar_of(value.type), IntType | FloatType) or _count(value) != 1:
            return None
        reader = _NumberReader(self._definitions, self._parameters, block, number)
        if reader.read(value) is None:
            return None
        view = MatrixView(scalar_of(value.type), 1, 1, 0, 1)
        problem = Elementwise(view, Expression(1, 1, tuple(reader.nodes)))
        return Match(store, problem, [(pointer, view), *reader.places], reader.scalars, reader.consumed)

    def _check_overlap(self, store: Instruction, destination: Value, source: Value) -> None:
        """Check that threads do not read what others of the same copy have written already."""
        size = bytes_of(store.operands[0].type)
        is_by_one_thread = vector_columns(size, I8) == size
        if is_by_one_thread or str(destination) == str(source):
            return
        if not self._aliases.disjoint(MemoryLocation(destination, size), MemoryLocation(source, size)):
            what = "a copy between parts of memory that may overlap, which threads read and write in any order"
            raise LoweringError(f"{what}: mark the pointers 'noalias', or copy through a temporary", store.span)


@dataclass(eq=False)
class _NumberReader:
    """Reads an expression of numbers, or of vectors of one element, that a store in a block depends on."""

    definitions: Mapping[str, Instruction]
    parameters: Collection[str]
    block: list[Instruction]
    store: int
    nodes: list[Node] = field(default_factory=list[Node])
    places: list[tuple[Value, MatrixView]] = field(default_factory=list[tuple[Value, MatrixView]])
    scalars: list[Value] = field(default_factory=list[Value])
    consumed: list[Instruction] = field(default_factory=list[Instruction])

    def read(self, value: Value) -> int | None:
        """The number of a value's node; None if a kernel cannot compute it."""
        if isinstance(value, Constant):
            scalar = _element(value)
            return None if scalar is None else self._added(SplatLeaf(scalar.type, scalar))
        if not isinstance(value, Local) or _count(value) != 1:
            return None
        if value.name in self.parameters:
            if isinstance(value.type, VectorType):
                return None
            self.scalars.append(value)
            return self._added(ScalarLeaf(value.type, len(self.scalars) - 1))
        definition = self.definitions[value.name]
        self.consumed.append(definition)
        if definition.opcode == "load":
            if not _is_unchanged(self.block, definition, self.store):
                return None
            view = MatrixView(scalar_of(value.type), 1, 1, 0, 1)
            self.places.append((definition.operands[0], view))
            return self._added(MatrixLeaf(view.element, view, len(self.places) - 1))
        if definition.opcode in ("extractelement", "insertelement"):
            return self.read(definition.operands[definition.opcode == "insertelement"])
        operation = ElementwiseOp.of(definition)
        if operation is None:
            return None
        values, immediates = ElementwiseOp.operands_of(definition)
        operands = [self.read(operand) for operand in values]
        numbers = tuple(number for number in operands if number is not None)
        if len(numbers) < len(operands) or any(isinstance(number, Local) for number in immediates):
            return None
        return self._added(InstructionNode(scalar_of(value.type), operation, numbers, immediates))

    def _added(self, node: Node) -> int:
        self.nodes.append(node)
        return len(self.nodes) - 1


def _element(value: Constant) -> Value | None:
    """The only element of a constant."""
    if not isinstance(value.type, VectorType):
        return value
    if isinstance(value, Keyword) and value.word == "zeroinitializer":
        return zero(value.type.element)
    if isinstance(value, Splat):
        return value.element
    return value.elements[0] if isinstance(value, Aggregate) else None


def _count(value: Value) -> int:
    return value.type.count if isinstance(value.type, VectorType) else 1


def _is_unchanged(block: list[Instruction], load: Instruction, store: int) -> bool:
    """Whether a load is in a block, and nothing is written between it and the instruction with a number."""
    first = next((number for number, instruction in enumerate(block[:store]) if instruction is load), None)
    return first is not None and not any(map(_may_write, block[first:store]))


def _may_write(instruction: Instruction) -> bool:
    is_store = instruction.opcode == "store" or is_memory_call(instruction)
    return is_store or (is_tensor_call(instruction) and ".store" in (instruction.callee or ""))


def _bytes(size: int) -> MatrixView:
    return MatrixView(I8, 1, size, 0, 1)


def host_error(what: str, at: Instruction, remedy: str) -> LoweringError:
    """The error about something that only a processor can do."""
    reason = "the target runs fixed sequences of kernels on parameters and temporaries of constant sizes"
    return LoweringError(f"{what} cannot be launched as kernels: {reason}; {remedy}", at.span)
