"""Schedule: which operations run, and where: in their own place, or sunk to the store of their result.

`memory.store_sinking` chooses the operations that are sunk.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from tlx.ir.instructions import Instruction
from tlx.ir.tensors.model import TensorOp
from tlx.lower.memory.aliases import MemoryLocation, Position
from tlx.lower.memory.views import TensorView, tensor_bytes
from tlx.lower.to_2d.analysis.facts import Facts
from tlx.lower.to_2d.memory.derived_views import Part
from tlx.lower.to_2d.memory.operand_views import OperandViews


@dataclass(frozen=True)
class SunkStore:
    """An operation that runs where its result is stored, and writes there.

    Attributes:
        op: The operation.
        store: The store of its result.
        destination: The memory that it writes.
        writes_padding: Whether it writes zeros to the padding, because the whole flattened vector is stored.
        possible_overlaps: Operands that may overlap the destination, which is checked at run time.
        in_place: Whether an operand may be overwritten by the result.
        permutations: The permutations between the operation and the store, expressed by the destination's strides.
        parts: The operands of a concatenation that are computed at the store, too, and written where they belong.
    """

    op: TensorOp
    store: Instruction
    destination: TensorView
    writes_padding: bool
    possible_overlaps: tuple[TensorView, ...] = ()
    in_place: bool = False
    permutations: tuple[TensorOp, ...] = ()
    parts: tuple[SunkStore, ...] = ()

    @property
    def range(self) -> MemoryLocation:
        """The bytes that the operation writes."""
        assert self.op.result is not None
        written = tensor_bytes(self.op.result) if self.writes_padding else self.destination.spanned_bytes
        return MemoryLocation(self.destination.storage.pointer, written)


@dataclass(frozen=True, eq=False)
class SunkStores:
    """The operations of a function that are sunk to stores.

    Attributes:
        by_store: The operation that runs in place of a store, by the id of the store.
        by_op: The same, by the id of the operation's instruction.
        explained: Ids of the instructions that are not sunk, for which a remark has said why.
        permuted: Names of the permutations whose results are only written by the operations that are sunk.
        parts: The operands of concatenations that are sunk with these, by the id of their instruction.
    """

    by_store: Mapping[int, SunkStore]
    by_op: Mapping[int, SunkStore]
    explained: AbstractSet[int]
    permuted: AbstractSet[str]
    parts: Mapping[int, Part]


@dataclass(frozen=True, eq=False)
class Schedule:
    """Which operations run, and where.

    Attributes:
        operands: The operands of all operations, in symbolic storage.
        live: Names of the results, of operations and loop-carried tensors, that are needed in memory.
        sunk_stores: The operations that run where their result is stored.
    """

    operands: OperandViews
    live: AbstractSet[str]
    sunk_stores: SunkStores

    @property
    def facts(self) -> Facts:
        """The function's analyses."""
        return self.operands.facts

    @property
    def parts(self) -> Mapping[int, Part]:
        """The operations that write their result to a part of another result, by the id of their instruction."""
        return self.operands.parts

    def has_buffer(self, op: TensorOp) -> bool:
        """Whether an operation writes its result to a buffer: it is live, not a view, and not sunk to a store."""
        name = str(op.instruction.result)
        is_sunk = id(op.instruction) in self.sunk_stores.by_op
        return name in self.live and name not in self.operands.views and not is_sunk

    def position_of(self, op: TensorOp) -> Position:
        """The position at which an operation runs."""
        op = self.operands.groups.root_of(op)
        sunk = self.sunk_stores.by_op.get(id(op.instruction))
        return self.facts.positions[id(op.instruction if sunk is None else sunk.store)]
