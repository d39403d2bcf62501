"""Groups: operations of a block that one loop over parts of their results computes.

A group grows from a result that is too large for a cache, split along one of its dimensions. An operation joins if it
reads a result of the group part by part, or if the group reads its result part by part and nothing else does. The
operations that stage 1 fuses into one tree join together::

    %s = contract %q, %k                   batch dimension 0            joins: produces %w part by part
    %w = fmul %s, 0.125                    12 x 512 x 512, 12 MiB       the group grows from here
    %m = reduce.max %w                     window 1 x 1 x 512           joins: reads %w part by part
    ...
    %o = contract %p, %v                   batch dimension 0            joins
    %y = contract %o as 512 x 768, %weights                             does not join: sums over all parts of %o

Broadcasts and other views are computed for each part, even if others read them, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple

from tlx.ir.instructions import Instruction
from tlx.ir.tensors.model import Tensor, TensorOp
from tlx.ir.types import VOID
from tlx.ir.values import Constant, Local, Value
from tlx.lower.memory.aliases import Position
from tlx.lower.memory.views import tensor_bytes
from tlx.lower.to_2d.analysis.facts import Facts, is_i1_vector
from tlx.lower.to_2d.analysis.tensor_operations import PRODUCTS, splat_value
from tlx.lower.to_2d.decisions import is_only_view
from tlx.lower.to_2d.fusion import FusionGroups
from tlx.lower.to_2d.loop_fusion.splits import OperandSplits, Split, operand_splits, result_splits

VIEWS: Final = frozenset({"broadcast", "transpose", "tovector"})
"""Operations that are cheap to compute again for each part."""
_NOT_SPLIT: Final = frozenset({"convolution", "reshape.block"})


class _Operand(NamedTuple):
    """An operand of an operation.

    Attributes:
        tensor: Its tensor.
        inner: The operation of the same tree whose result it is; None if it is read from memory.
        source: The vector that it is an alias of; None if it is read through a pointer.
    """

    tensor: Tensor
    inner: TensorOp | None
    source: Value | None


@dataclass(frozen=True, eq=False)
class BlockOperations:
    """The operations of a block, and facts about its function.

    A group grows from every large result, mostly through the same operations: what is asked for each is kept.

    Attributes:
        facts: The analyses of the function.
        groups: Its fusion groups.
        live: Names of the results that are needed in memory.
        name: The block's name.
        ops: Its operations, in order.
    """

    facts: Facts
    groups: FusionGroups
    live: AbstractSet[str]
    name: str
    ops: Sequence[TensorOp]
    _members: dict[int, list[TensorOp]] = field(default_factory=dict[int, list[TensorOp]])
    _operands: dict[int, list[_Operand]] = field(default_factory=dict[int, list[_Operand]])
    _readers: dict[str, list[Instruction]] = field(default_factory=dict[str, list[Instruction]])
    _operand_splits: dict[tuple[int, Split], OperandSplits | None] = field(
        default_factory=dict[tuple[int, Split], OperandSplits | None]
    )
    _result_splits: dict[tuple[int, int, Split], Split | None] = field(
        default_factory=dict[tuple[int, int, Split], Split | None]
    )

    @cached_property
    def roots(self) -> list[TensorOp]:
        """The operations of the block that are not fused into others, in order."""
        return [op for op in self.ops if not self.groups.is_fused(op)]

    def position(self, instruction: Instruction) -> Position:
        """Block and index of an instruction."""
        return self.facts.positions[id(instruction)]

    def readers(self, name: str) -> list[Instruction]:
        """The instructions that use a vector: through its aliases and tokens, too, but without these."""
        if name not in self._readers:
            self._readers[name] = self._find_readers(name)
        return self._readers[name]

    def _find_readers(self, name: str) -> list[Instruction]:
        readers: list[Instruction] = []
        names = [name]
        for current in names:
            for use in self.facts.vectors.uses.get(current, ()):
                user = use.instruction
                is_token = user.result in self.facts.tensors.tokens
                if is_token or (user.opcode != "phi" and self.facts.vectors.is_renaming(user)):
                    names.extend({str(user.result)} - set(names))
                else:
                    readers.append(user)
        return readers

    def members(self, root: TensorOp) -> list[TensorOp]:
        """The operations of a tree in the order in which they are computed, the root last."""
        key = id(root.instruction)
        if key not in self._members:
            self._members[key] = self.groups.members(root)
        return self._members[key]

    def operands(self, op: TensorOp) -> list[_Operand]:
        """The operands of an operation."""
        key = id(op.instruction)
        if key not in self._operands:
            self._operands[key] = [
                _Operand(tensor, self.groups.inner(tensor), self._source(tensor)) for tensor in op.tensors
            ]
        return self._operands[key]

    def _source(self, tensor: Tensor) -> Value | None:
        return self.facts.vectors.root(tensor.source) if tensor.kind == "value" else None

    def operand_splits(self, op: TensorOp, split: Split) -> OperandSplits | None:
        """The splits of an operation's operands, given that of its result; see `operand_splits`."""
        key = id(op.instruction), split
        if key not in self._operand_splits:
            self._operand_splits[key] = operand_splits(op, split) if op.intrinsic.name not in _NOT_SPLIT else None
        return self._operand_splits[key]

    def result_split(self, op: TensorOp, operand: int, split: Split) -> Split | None:
        """The split of an operation's result for which it reads an operand in parts; None if there is none."""
        key = id(op.instruction), operand, split
        if key not in self._result_splits:
            self._result_splits[key] = next(result_splits(op, operand, split), None)
        return self._result_splits[key]


@dataclass(eq=False)
class LoopGroup:
    """Operations that are computed in one loop over parts.

    Attributes:
        block: The operations of the block.
        parts: The number of parts.
        whole_limit: Bytes of the operands of products that every part may read as a whole.
        splits: The split of each result of the group, by name.
        ops: The operations, by the id of their instruction.
        copies: Ids of the operations of which the loop computes a copy for each part.
        whole_bytes: Bytes of the operands of products that every part reads as a whole.
    """

    block: BlockOperations
    parts: int
    whole_limit: int
    splits: dict[str, Split] = field(default_factory=dict[str, Split])
    ops: dict[int, TensorOp] = field(default_factory=dict[int, TensorOp])
    copies: set[int] = field(default_factory=set[int])
    whole_bytes: int = 0
    _wanted: dict[str, Split | None] = field(default_factory=dict[str, Split | None])
    _read_whole: set[str] = field(default_factory=set[str])

    @classmethod
    def grown(
        cls, block: BlockOperations, root: TensorOp, split: Split, whole_limit: int, refused: AbstractSet[int]
    ) -> LoopGroup | None:
        """The largest group with an operation whose result is split in a given way; None if there is none.

        Args:
            block: The operations of the block.
            root: The operation, which is not fused into another one.
            split: The split of its result.
            whole_limit: Bytes of the operands of products that every part may read as a whole.
            refused: Ids of the instructions that must not join.
        """
        group = cls(block, split.parts, whole_limit)
        if id(root.instruction) in refused or not group._join(root, split):
            return None
        pending = [root]
        while pending:
            for candidate in group._neighbours(pending.pop()):
                is_new = id(candidate.instruction) not in group.ops and id(candidate.instruction) not in refused
                if is_new and group._join_if_connected(candidate):
                    pending.append(candidate)
        group.copies = {key for key in group.copies if not group._is_read_here(group.ops[key].instruction)}
        return group

    @property
    def members(self) -> list[TensorOp]:
        """The operations that are moved to the loop: all but the copies."""
        return [op for key, op in self.ops.items() if key not in self.copies]

    def split_of(self, op: TensorOp) -> Split:
        """The split of the result of an operation; of a store, that of what it stores."""
        if op.result is not None:
            return self.splits[str(op.instruction.result)]
        split = self._own(self.block.operands(op)[0])
        assert split is not None
        return split

    @property
    def has_products(self) -> bool:
        """Whether any operation multiplies and adds."""
        return any(op.intrinsic.name in PRODUCTS for op in self.members)

    @cached_property
    def internal(self) -> list[int]:
        """Bytes of the results in memory that only the group reads, the largest first."""
        return sorted((size for size, is_internal in self._results if is_internal), reverse=True)

    @cached_property
    def largest_output(self) -> int:
        """Bytes of the largest result that others read."""
        return max((size for size, is_internal in self._results if not is_internal), default=0)

    @cached_property
    def _results(self) -> list[tuple[int, bool]]:
        """The results in memory: their bytes, and whether only the group's computations read them."""
        results: list[tuple[int, bool]] = []
        for op in self.members:
            name = str(op.instruction.result)
            is_live = op.result is not None and name in self.block.live and not is_only_view(self.block.facts, op)
            if op.result is not None and is_live:
                readers = self.block.readers(name)
                is_stored = any(
                    (reader := self.ops.get(id(r))) is not None and reader.pointer is not None for r in readers
                )
                is_internal = not is_stored and all(map(self._is_read_here, readers))
                results.append((tensor_bytes(op.result), is_internal))
        return results

    @property
    def inputs(self) -> list[str]:
        """Names of the results from outside that are read part by part."""
        return [name for name in self._wanted if name not in self.splits]

    def reads_views(self) -> bool:
        """Whether the loop would read a view from outside part by part, which is not in memory."""
        ops = [self.block.facts.op_of(Local(VOID, name)) for name in self.inputs]
        return any(op.intrinsic.name in VIEWS or str(op.instruction.result) not in self.block.live for op in ops)

    # Growth ------------------------------------------------------------------------------------------------------

    def _neighbours(self, root: TensorOp) -> Iterator[TensorOp]:
        """The trees of the block that read a tree's result, and those whose results the group reads part by part."""
        for reader in self.block.readers(str(root.instruction.result)):
            op = self.block.facts.tensors.op_of(reader)
            if op is not None and self.block.position(reader)[0] == self.block.name:
                yield self.block.groups.root_of(op)
        for name in self.inputs:
            op = self.block.facts.op_of(Local(VOID, name))
            if self.block.position(op.instruction)[0] == self.block.name:
                yield op

    def _join_if_connected(self, root: TensorOp) -> bool:
        """Add a tree if it reads results of the group part by part, or only the group reads its result."""
        name = str(root.instruction.result)
        split, wanted = self._forward(root), self._wanted.get(name)
        if split is not None:
            return (name not in self._wanted or wanted == split) and self._join(root, split)
        if wanted is None:
            return False
        if root.intrinsic.name in VIEWS:
            return self._join(root, wanted, is_copy=True)
        return all(map(self._is_read_here, self.block.readers(name))) and self._join(root, wanted)

    def _is_read_here(self, reader: Instruction) -> bool:
        """Whether what reads a result is in the group; a copy is if the group alone reads its result."""
        if id(reader) not in self.copies:
            return id(reader) in self.ops
        return all(map(self._is_read_here, self.block.readers(str(reader.result))))

    def _own(self, operand: _Operand) -> Split | None:
        """The split of an operand that is a result of the group."""
        return self.splits.get(operand.source.name) if isinstance(operand.source, Local) else None

    def _forward(self, root: TensorOp) -> Split | None:
        """The split of a tree's result for which it reads the group's results part by part."""
        known: dict[str, Split] = {}
        for op in self.block.members(root):
            for index, operand in enumerate(self.block.operands(op)):
                inner = operand.inner
                split = known.get(str(inner.instruction.result)) if inner is not None else self._own(operand)
                result = self.block.result_split(op, index, split) if split is not None else None
                if result is not None:
                    known[str(op.instruction.result)] = result
                    break
        return known.get(str(root.instruction.result))

    def _join(self, root: TensorOp, split: Split, *, is_copy: bool = False) -> bool:
        """Add a tree if its operands can be read part by part."""
        splits = {id(root.instruction): split}
        wanted: dict[str, Split | None] = {}
        whole: list[tuple[TensorOp, _Operand]] = []
        members = self.block.members(root)
        ids = {id(op.instruction) for op in members}
        for op in reversed(members):
            own = splits.get(id(op.instruction))
            parts = self.block.operand_splits(op, own) if own is not None else None
            if parts is None:
                return False
            for operand, part in zip(self.block.operands(op), parts, strict=True):
                inner = operand.inner
                if inner is not None and id(inner.instruction) in ids:
                    if part is None or splits.setdefault(id(inner.instruction), part) != part:
                        return False
                elif part is None:
                    whole.append((op, operand))
                elif not self._reads_part(operand, part, wanted):
                    return False
        return self._accept(members, splits, whole, wanted, is_copy=is_copy)

    def _accept(
        self,
        members: Iterable[TensorOp],
        splits: Mapping[int, Split],
        whole: Iterable[tuple[TensorOp, _Operand]],
        wanted: Mapping[str, Split | None],
        *,
        is_copy: bool,
    ) -> bool:
        """Add a tree, unless every part would read a result of the group, or too much memory, as a whole."""
        size = self.whole_bytes
        names = {str(op.instruction.result) for op in members}
        for op, operand in whole:
            source = operand.source
            if isinstance(source, Local) and (source.name in self.splits or source.name in names):
                return False
            size += tensor_bytes(operand.tensor.type) if op.intrinsic.name in PRODUCTS else 0
        if size > self.whole_limit or names & self._read_whole:
            return False
        self.whole_bytes = size
        self._read_whole |= {operand.source.name for _, operand in whole if isinstance(operand.source, Local)}
        for op in members:
            self.ops[id(op.instruction)] = op
            if op.result is not None:
                self.splits[str(op.instruction.result)] = splits[id(op.instruction)]
            if is_copy:
                self.copies.add(id(op.instruction))
        for name, part in wanted.items():
            self._wanted[name] = part if self._wanted.get(name, part) == part else None
        return True

    def _reads_part(self, operand: _Operand, part: Split, wanted: dict[str, Split | None]) -> bool:
        """Whether parts of an operand can be read: of the group's results as they are split, or of memory."""
        tensor, root = operand.tensor, operand.source
        if root is None:
            return part.position_in(tensor.type) is not None
        vectors = self.block.facts.vectors
        if isinstance(root, Constant):
            return isinstance(splat_value(root, vectors.definitions), Constant)
        if not isinstance(root, Local) or root.type != tensor.source.type:
            return False
        if root.name in self.splits:
            return self.splits[root.name] == part
        kind = vectors.kind(root)
        if kind == "op":
            if self.block.groups.is_fused(self.block.facts.op_of(root)):
                return False
            wanted[root.name] = part if wanted.get(root.name, part) == part else None
        return kind == "op" or (kind == "load" and not is_i1_vector(root.type))
