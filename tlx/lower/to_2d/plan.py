"""What to do with each tensor of a function, decided before anything is changed.

1. which operations are live, and which transposes are only another order of the same memory (`fusion.view_operations`);
2. which operations move down to the one store of their result and write there (`fusion.store_sinking`);
3. which memory the user's loads mean can be read where it lies, and which has to be copied at the load;
4. which values share a buffer (`memory.coalescing`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

from tlx.diagnostics import LoweringError, Span
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.analysis.control_flow import ControlFlow
from tlx.ir.functions import Function
from tlx.ir.instructions import Instruction
from tlx.ir.module import Module
from tlx.ir.tensors.analysis import analyse
from tlx.ir.tensors.model import FunctionTensors, Tensor, TensorOp
from tlx.ir.types import Type, VectorType, bytes_of
from tlx.ir.values import Keyword, Local, Value
from tlx.lower.context import LoweringContext
from tlx.lower.memory.aliases import AliasAnalysis, Position
from tlx.lower.memory.buffers import PrivateBuffers, size_text
from tlx.lower.memory.views import Storage, TensorView, storage_type, tensor_bytes
from tlx.lower.to_2d.analysis.tensor_operations import INSERT, MMA, STAGE, operation_title, with_elementwise
from tlx.lower.to_2d.analysis.values import FlatVectors
from tlx.lower.to_2d.fusion.groups import FusionGroups, StoreSink
from tlx.lower.to_2d.memory.block_access import constant_array


@dataclass(eq=False)
class Plan:
    """The decisions for one function.

    Attributes:
        module: The module.
        context: Target and remarks.
        function: The function.
        live: Results (operations and loop-carried tensors) that something needs, by name.
        lazy: Results of transposes that exist as a view of their operand only.
        sinks: By the id of the store.
        snapshots: Loads whose memory is copied when they run, by the id of the load: what to copy.
        homes: Memory of flattened vectors, by root.
        shared: Names of the values that live in the buffer of another one.
        reads: Where each place is read.
    """

    module: Module
    context: LoweringContext
    function: Function
    live: set[str] = field(default_factory=set[str])
    lazy: set[str] = field(default_factory=set[str])
    sinks: dict[int, StoreSink] = field(default_factory=dict[int, StoreSink])
    snapshots: dict[int, TensorView] = field(default_factory=dict[int, TensorView])
    homes: dict[Value, Storage] = field(default_factory=dict[Value, Storage])
    shared: set[str] = field(default_factory=set[str])
    reads: dict[Storage, list[Position]] = field(default_factory=dict[Storage, list[Position]])
    _sunk: dict[int, StoreSink] = field(default_factory=dict[int, StoreSink])
    _explained: set[int] = field(default_factory=set[int])
    _readings: dict[int, Storage] = field(default_factory=dict[int, Storage])

    # What is known ---------------------------------------------------------------------------------------------

    @cached_property
    def tensors(self) -> FunctionTensors:
        """Tokens and operations, ordinary instructions on tensors among them."""
        return with_elementwise(self.function, analyse(self.module, self.function))

    @cached_property
    def flats(self) -> FlatVectors:
        """Flattened vectors."""
        return FlatVectors(self.function, self.tensors, self.module.source)

    @cached_property
    def groups(self) -> FusionGroups:
        """What is fused into what."""
        return FusionGroups(self.tensors, self.flats, self.positions)

    @cached_property
    def flow(self) -> ControlFlow:
        """Control flow before any change."""
        return ControlFlow(self.function)

    @cached_property
    def aliases(self) -> AliasAnalysis:
        """Alias facts before any change."""
        sizes = {id(op.instruction): self.stored(op).reach for op in self.tensors.ops if op.pointer is not None}
        return AliasAnalysis(self.module, self.function, self.flow, sizes)

    @cached_property
    def buffers(self) -> PrivateBuffers:
        """The function's private memory."""
        return PrivateBuffers(self.module, self.function)

    @cached_property
    def positions(self) -> dict[int, Position]:
        """Where each instruction stands, by its id."""
        return {
            id(instruction): (block.name, index)
            for block in self.function.blocks
            for index, instruction in enumerate(block.instructions)
        }

    # Places ----------------------------------------------------------------------------------------------------

    def stored(self, op: TensorOp) -> TensorView:
        """Where a tensor store writes."""
        assert op.pointer is not None
        return TensorView.of(Storage(op.pointer), op.tensors[0].type, op.pitches)

    def view(self, tensor: Tensor) -> TensorView:
        """Where a token's tensor lies."""
        if tensor.kind == "load":
            place = self._reading(tensor.definition, tensor.source)
            return TensorView.of(place, tensor.type, None if place.is_private else tensor.pitches)
        if tensor.kind == "pointer":
            return TensorView.of(self._reading(tensor.definition, tensor.source), tensor.type)
        root = self.flats.root(tensor.source)
        if isinstance(root, Local) and root.name in self.lazy:
            return self._lazy_view(self.op_of(root), tensor.type)
        return TensorView.of(self.place_of(root), tensor.type)

    def _lazy_view(self, op: TensorOp, seen: TensorType) -> TensorView:
        """The operand's memory as the result of a transpose or a broadcast."""
        source, result = op.tensors[0], op.result
        assert result is not None
        if op.intrinsic.name == "broadcast":
            return self.view(source).broadcast(result, op.dims[1])
        if op.intrinsic.name == "reshape.permute":
            return replace(TensorView.of(self.view(source).place, result), group=source.type.shape[-1])
        type_ = seen if seen.shape == result.shape else result
        return self.view(source).reordered([source.type.position(d) for d in result.layout], type_)

    def place_of(self, root: Value) -> Storage:
        """Memory of a flattened vector: a buffer of its own, or what a load reads."""
        kind = self.flats.kind(root)
        if kind == "load" and isinstance(root, Local):
            load = self.flats.definitions[root.name]
            return self._reading(load, load.operands[0])
        if root not in self.homes:
            self.homes[root] = self._new_home(root)
        return self.homes[root]

    def share(self, value: Local, place: Storage) -> str:
        """Let a value live in another one's place; gives the name of the buffer that is not needed for it."""
        buffer = self.place_of(value).buffer
        assert buffer is not None
        self.homes[value] = place
        self.shared.add(value.name)
        return buffer.pointer.name

    def _new_home(self, root: Value) -> Storage:
        assert isinstance(root.type, VectorType)
        if not isinstance(root, (Local, Keyword)):
            return Storage(constant_array(self.module, root))
        definition = self.flats.definitions.get(root.name) if isinstance(root, Local) else None
        if definition is not None and definition.is_terminator:
            message = f"a {root.type} that {definition.opcode} returns is not lowered yet: use call"
            raise LoweringError(message, definition.span)
        stem = root.name if isinstance(root, Local) and not root.name.isdecimal() else self._stem(root)
        return self.new_place(root.type.element, root.type.count, stem)

    def _stem(self, root: Value) -> str:
        if isinstance(root, Keyword):
            return "zeros"
        op = self.op_of(root) if isinstance(root, Local) and self.flats.kind(root) == "op" else None
        return operation_title(op) if op is not None else "tensor"

    def new_place(self, element: Type, count: int, stem: str) -> Storage:
        """A buffer."""
        buffer = self.buffers.new(storage_type(element), count, stem, self.function.span)
        return Storage(buffer.pointer, None, buffer)

    def reading_place(self, definition: Instruction) -> Storage:
        """Where what a load read is now."""
        return self._readings[id(definition)]

    def _reading(self, definition: Instruction, pointer: Value) -> Storage:
        if id(definition) not in self._readings:
            self._readings[id(definition)] = Storage(pointer, definition)
        return self._readings[id(definition)]

    def op_of(self, root: Local) -> TensorOp:
        """The operation whose result a vector is."""
        op = self.tensors.op_of(self.flats.definitions[root.name])
        assert op is not None
        return op

    def is_zero(self, tensor: Tensor) -> bool:
        """Whether a tensor is a constant of zeros, or undefined, for which zeros do."""
        return tensor.kind == "value" and isinstance(self.flats.root(tensor.source), Keyword)

    def operands(self, op: TensorOp) -> list[TensorView | None]:
        """Where each operand lies; None for one that is written as zeros or as a scalar, which needs no memory."""
        fills = op.pointer is not None or op.intrinsic.name in MMA | {INSERT}
        return [
            None
            if (fills and index == 0 and self.is_zero(tensor)) or self.groups.is_written(op, tensor)
            else self.view(tensor)
            for index, tensor in enumerate(op.tensors)
        ]

    # Liveness --------------------------------------------------------------------------------------------------

    def is_live(self, op: TensorOp) -> bool:
        """Whether anything needs an operation's result in memory."""
        return op.pointer is not None or op.instruction.result in self.live

    # Sinking ---------------------------------------------------------------------------------------------------

    def note_sink(self, sink: StoreSink) -> None:
        """An operation runs where its result is stored."""
        self.sinks[id(sink.store)] = sink
        self._sunk[id(sink.op.instruction)] = sink

    def is_sunk(self, op: TensorOp) -> bool:
        """Whether an operation runs at its result's store."""
        return id(op.instruction) in self._sunk

    def explain(self, op: TensorOp, reason: str = "its result is not only stored once") -> None:
        """Say, once, why the result of an operation gets a buffer."""
        if id(op.instruction) in self._explained or op.result is None:
            return
        self._explained.add(id(op.instruction))
        message = f"temporary of {size_text(tensor_bytes(op.result))} for {operation_title(op)}, because {reason}"
        self.missed(message, op.instruction.span)

    def missed(self, message: str, span: Span | None) -> None:
        """Say what is copied that need not be in a better program."""
        self.context.remarks.add("missed", STAGE, message, span)

    def dense_operand(self, op: TensorOp) -> Callable[[Type, int, str], Storage]:
        """What gives an operation memory for an operand that no 2-D load can read, and says so."""

        def new_place(element: Type, count: int, name: str) -> Storage:
            return self.copied_operand(op, element, count, name, "its rows and columns are both strided in memory")

        return new_place

    def copied_operand(self, op: TensorOp, element: Type, count: int, name: str, reason: str) -> Storage:
        """Memory for a copy of an operand; says why it is made."""
        size = size_text(count * bytes_of(element))
        self.missed(f"copy of {size} of operand {name}, because {reason}", op.instruction.span)
        return self.new_place(element, count, name)

    def start_of(self, place: Storage) -> Position:
        """Where what a place means is read."""
        assert place.reading is not None
        return self.positions[id(place.reading)]

    # Readings --------------------------------------------------------------------------------------------------

    def position_of(self, op: TensorOp) -> Position:
        """Where an operation runs."""
        op = self.groups.root_of(op)
        sink = self._sunk.get(id(op.instruction))
        return self.positions[id(op.instruction if sink is None else sink.store)]

    def note_read(self, place: Storage, position: Position) -> None:
        """Something at a position reads a place."""
        self.reads.setdefault(place, []).append(position)
