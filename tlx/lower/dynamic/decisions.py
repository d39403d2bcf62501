"""Decisions before a function is changed: which loads are copied, and which results are written by their store.

A load is not copied if nothing may change its memory before its last use. A product or an elementwise expression that
is only stored, in the same block, is sunk to the store and needs no memory of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

from tlx.ir.constant_folding import ConstantFolder
from tlx.ir.control_flow import ControlFlow
from tlx.ir.functions import Function
from tlx.ir.instructions import Instruction
from tlx.ir.module import Module
from tlx.ir.rewrite import only_user, uses
from tlx.ir.tensors.model import DynamicOp, DynamicTensor, FunctionTensors, Tensor
from tlx.ir.values import Local
from tlx.lower.dynamic.views import entry_symbol
from tlx.lower.memory.aliases import AliasAnalysis, MemoryLocation, Position, instruction_positions
from tlx.lower.operations import MMA_SIGNS

MMA_INTRINSICS: Final = MMA_SIGNS.keys() - {"mma"}
"""Products of run-time sizes that add to an accumulator."""


@dataclass(eq=False)
class ExpansionDecisions:
    """The decisions for one function.

    Attributes:
        copied: Names of the tokens of loads that are copied.
        sunk_stores: The store that a product or an elementwise instruction is sunk to, by the name of its result.
        aliases: Names of the results of `tovector` that need no copy of the loaded memory.
    """

    module: Module
    function: Function
    tensors: FunctionTensors
    folder: ConstantFolder

    def __post_init__(self) -> None:
        self.flow = ControlFlow(self.function)
        self._uses = uses(self.function)
        self.sunk_stores = self._sink_stores()
        self._by_store = {id(store.instruction): name for name, store in self.sunk_stores.items()}
        self.copied = {name for op in self.tensors.dynamic.ops for name in self._copied_for(op)}
        self.aliases = {str(op.instruction.result) for op in self.tensors.dynamic.ops if self._may_alias(op)}

    def sunk(self, store: DynamicOp) -> Instruction | None:
        """The product or the elementwise instruction that is sunk to a store."""
        return self.tensors.dynamic.handles.get(self._by_store.get(id(store.instruction), ""))

    def is_direct(self, token: DynamicTensor) -> bool:
        """Whether a token only connects an instruction to the store that it is sunk to."""
        return isinstance(token.source, Local) and token.source.name in self.sunk_stores

    @cached_property
    def positions(self) -> dict[int, Position]:
        """The position of each instruction, by its id."""
        return instruction_positions(self.function)

    @cached_property
    def _alias_analysis(self) -> AliasAnalysis:
        return AliasAnalysis(self.module, self.function, self.flow)

    # Copies ----------------------------------------------------------------------------------------------------

    def _copied_for(self, op: DynamicOp) -> list[str]:
        """The tokens that an operation needs copies of."""
        sink = self.sunk_stores.get(op.instruction.result or "")
        position = self.positions[id((sink or op).instruction)]
        writer = op.instruction if op.pointer is not None else None
        if sink is not None and op.intrinsic.name in MMA_INTRINSICS and not _is_in_place(op, sink):
            writer = sink.instruction
        return [
            str(tensor.definition.result)
            for number, tensor in enumerate(op.tensors)
            if tensor.kind != "value" and self._changes(tensor, position, writer if number == 0 else None)
        ]

    def _changes(self, tensor: Tensor | DynamicTensor, end: Position, writer: Instruction | None) -> bool:
        """Whether a load's memory may change before its use, or be written by its user."""
        if end[0] not in self.flow.dominators or self.positions[id(tensor.definition)][0] not in self.flow.dominators:
            return False
        memory = MemoryLocation(tensor.source, None)
        if writer is not None and self._alias_analysis.writes(writer, memory):
            return True
        return (
            self._alias_analysis.clobbering_instruction(memory, self.positions[id(tensor.definition)], end) is not None
        )

    # Aliases ---------------------------------------------------------------------------------------------------

    def _may_alias(self, op: DynamicOp) -> bool:
        """Whether the memory that a `tovector` reads is unchanged until the last use of its result."""
        tensor = op.tensors[0]
        if op.intrinsic.name != "tovector" or tensor.kind == "value" or tensor.definition.result in self.copied:
            return False
        readers = self._readers(str(op.instruction.result))
        return readers is not None and not any(self._changes(tensor, at, writer) for at, writer in readers)

    def _readers(self, handle: str) -> list[tuple[Position, Instruction | None]] | None:
        """The positions, with their stores, that read a handle or a value derived from it; None if unknown."""
        readers: list[tuple[Position, Instruction | None]] = []
        dynamic = self.tensors.dynamic
        for use in self._uses.get(handle, []):
            user = use.instruction
            name = user.result or ""
            if name in dynamic.tokens:
                readers += [self._reader(dynamic.op_of(u.instruction), u.instruction) for u in self._uses.get(name, [])]
            elif user.opcode == "phi":
                return None
            elif name in dynamic.handles:
                inner = self._readers(name)
                if inner is None:
                    return None
                readers += [(self.positions[id(user)], None), *inner]
        return readers

    def _reader(self, op: DynamicOp | None, user: Instruction) -> tuple[Position, Instruction | None]:
        sink = self.sunk_stores.get(op.instruction.result or "") if op is not None else None
        store = sink if sink is not None else op if op is not None and op.pointer is not None else None
        at = store.instruction if store is not None else user
        return self.positions[id(at)], store.instruction if store is not None else None

    # Store sinking ---------------------------------------------------------------------------------------------

    def _sink_stores(self) -> dict[str, DynamicOp]:
        """Products and elementwise instructions that can write their result to where it is stored."""
        sunk: dict[str, DynamicOp] = {}
        for name, instruction in self.tensors.dynamic.handles.items():
            block = self.positions[id(instruction)][0]
            user = only_user(self._uses, instruction, block)
            tensor = self.tensors.dynamic.tokens.get(user.result or "") if user is not None else None
            reader = only_user(self._uses, tensor.definition, block) if tensor is not None else None
            store = self.tensors.dynamic.op_of(reader) if reader is not None else None
            if tensor is None or store is None or store.pitches is None:
                continue
            if any(self.folder.ints(tensor.padding) or (1,)):
                continue
            op = self.tensors.dynamic.op_of(instruction)
            if self._is_stored_dense(instruction, store) if op is None else self._is_stored_matrix(op, tensor):
                sunk[name] = store
        return sunk

    def _is_stored_dense(self, instruction: Instruction, store: DynamicOp) -> bool:
        """Whether the result of an elementwise instruction is stored without gaps."""
        assert store.pitches is not None
        return instruction.opcode != "phi" and not any(self.folder.ints(store.pitches) or (1,))

    def _is_stored_matrix(self, op: DynamicOp, tensor: DynamicTensor) -> bool:
        """Whether an operation is a product of matrices, stored in row-major order."""
        is_product = op.intrinsic.name in ("matmul", *MMA_INTRINSICS) and op.like is not None and op.like.rank == 2
        return is_product and tensor.layout == (0, 1) and self._has_shape(op, tensor)

    def _has_shape(self, op: DynamicOp, result: DynamicTensor) -> bool:
        """Whether the shape of a token is provably that of a product of matrices."""
        lhs, rhs = op.tensors[-2:]
        rows, columns = self._extent(result, 0), self._extent(result, 1)
        return None not in (rows, columns) and (rows, columns) == (self._extent(lhs, 0), self._extent(rhs, 1))

    def _extent(self, tensor: Tensor | DynamicTensor, dimension: int) -> str | int | None:
        """The symbol of a logical extent; None if it may be less than the shape by padding."""
        if not isinstance(tensor, DynamicTensor):
            return tensor.type.extents[dimension]
        place = tensor.layout.index(dimension)
        if (self.folder.integer_lanes(tensor.padding) or {place: None})[place] != 0:
            return None
        return entry_symbol(self.folder, tensor.shape, place)


def _is_in_place(op: DynamicOp, store: DynamicOp) -> bool:
    """Whether a product is stored over exactly its accumulator, so that each element is read before it is written."""
    acc, result = op.tensors[0], store.tensors[0]
    if not (isinstance(acc, DynamicTensor) and isinstance(result, DynamicTensor) and isinstance(acc.source, Local)):
        return False
    same_memory = acc.source == store.pointer and acc.pitches == store.pitches and acc.layout == (0, 1)
    return same_memory and acc.shape == result.shape and acc.padding == result.padding
