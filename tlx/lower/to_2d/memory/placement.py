"""Placement: the memory of each vector, by the decisions."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from tlx.diagnostics import LoweringError
from tlx.ir.instructions import Instruction
from tlx.ir.prepared import CONSTANT
from tlx.ir.rewrite import underlying_object
from tlx.ir.types import Type, VectorType
from tlx.ir.values import Keyword, Local, Value
from tlx.lower.memory.buffers import PrivateBuffers
from tlx.lower.memory.views import Storage, storage_type
from tlx.lower.to_2d.analysis.facts import Facts
from tlx.lower.to_2d.analysis.tensor_operations import operation_title
from tlx.lower.to_2d.decisions import Decisions
from tlx.lower.to_2d.memory.copies import constant_array


@dataclass(frozen=True, eq=False)
class Placement:
    """Storage of one function: buffers, constants, and the user's own memory.

    Attributes:
        facts: What is known about the function.
        decisions: Which loads are copied, and which vectors share a buffer.
        buffers: The private buffers of the function.
        vectors: The storage of each vector that has one.
        loads: The storage of what each load reads, by the load's id.
    """

    facts: Facts
    decisions: Decisions
    buffers: PrivateBuffers
    vectors: dict[Value, Storage] = field(default_factory=dict[Value, Storage])
    loads: dict[int, Storage] = field(default_factory=dict[int, Storage])

    @classmethod
    def of(cls, facts: Facts, decisions: Decisions) -> Placement:
        """Place the vectors and the copies of loads that the decisions list.

        Raises:
            LoweringError: A vector cannot have a buffer, or the module's malloc is another function.
        """
        placement = cls(facts, decisions, facts.buffers)
        for root in decisions.vectors:
            if root not in decisions.coalesced:
                placement.of_vector(root)
        for snapshot in decisions.snapshots.values():
            load, view = snapshot.load, snapshot.source
            stem = "copy" if load.result is None or load.result.isdecimal() else f"{load.result}.copy"
            buffer = placement.buffers.new(view.element, snapshot.count, stem, load.span)
            placement.loads[id(load)] = Storage(buffer.pointer, load, buffer)
        return placement

    def of_vector(self, root: Value) -> Storage:
        """The memory of a flattened vector that no load defines."""
        if root not in self.vectors:
            shared = self.decisions.coalesced.get(root)
            self.vectors[root] = self._new(root) if shared is None else self.of_vector(shared)
        return self.vectors[root]

    def of_load(self, load: Instruction, pointer: Value) -> Storage:
        """The user's memory, or the copy that is made when the load runs."""
        if id(load) not in self.loads:
            self.loads[id(load)] = Storage(pointer, load, is_constant=self._is_constant(pointer))
        return self.loads[id(load)]

    def _is_constant(self, pointer: Value) -> bool:
        """Whether a pointer is derived from an argument that is constant over calls."""
        base = underlying_object(pointer, self.facts.vectors.definitions, ("getelementptr", "bitcast"))
        return base in self._constants

    @cached_property
    def _constants(self) -> frozenset[Value]:
        """The arguments that are constant over calls."""
        return frozenset(a.value for a in self.facts.function.arguments if CONSTANT in a.attributes)

    def allocate(self, element: Type, count: int, stem: str) -> Storage:
        """A buffer."""
        buffer = self.buffers.new(storage_type(element), count, stem, self.facts.function.span)
        return Storage(buffer.pointer, None, buffer)

    def _new(self, root: Value) -> Storage:
        assert isinstance(root.type, VectorType)
        if not isinstance(root, (Local, Keyword)):
            return Storage(constant_array(self.facts.module, root))
        definition = self.facts.vectors.definitions.get(root.name) if isinstance(root, Local) else None
        if definition is not None and definition.is_terminator:
            message = f"a {root.type} that {definition.opcode} returns is not lowered yet: use call"
            raise LoweringError(message, definition.span)
        return self.allocate(root.type.element, root.type.count, self._stem(root))

    def _stem(self, root: Local | Keyword) -> str:
        if isinstance(root, Keyword):
            return "zeros"
        if not root.name.isdecimal():
            return root.name
        return operation_title(self.facts.op_of(root)) if self.facts.vectors.kind(root) == "op" else "tensor"
