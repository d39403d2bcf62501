"""What to do with each tensor of a function, decided before anything is changed.

1. which operations are live, and which transposes are only another order of the same memory (`lazy`);
2. which operations move down to the one store of their result and write there (`sinks`);
3. which memory the user's loads mean can be read where it lies, and which has to be copied at the load (`snapshots`);
4. which values share a buffer (`tlx.lower.to_2d.coalescing`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

from tlx.diagnostics import LoweringError, Span
from tlx.ir.analysis import analyse
from tlx.ir.dominance import ControlFlow
from tlx.ir.module import Function, Instruction, Module
from tlx.ir.tensors import FunctionTensors, Tensor, TensorOp
from tlx.ir.types import I1, Type, VectorType, bytes_of
from tlx.ir.values import Keyword, Local, Value
from tlx.lower.ordinary import UNARY, Operation
from tlx.lower.stage import Context
from tlx.lower.to_2d.buffers import Buffers, size_text
from tlx.lower.to_2d.constants import constant_array
from tlx.lower.to_2d.contraction import MMA
from tlx.lower.to_2d.elementwise import INSERT, NAME, with_elementwise
from tlx.lower.to_2d.groups import PRODUCTS, Groups
from tlx.lower.to_2d.lazy import is_lazy
from tlx.lower.to_2d.live import find_live
from tlx.lower.to_2d.readings import note_reads, settle
from tlx.lower.to_2d.safety import Aliases, Position
from tlx.lower.to_2d.sinks import Sink, find_sink
from tlx.lower.to_2d.values import Flats
from tlx.lower.to_2d.views import Place, View, stored, tensor_bytes
from tlx.types import TensorType

STAGE: Final = "to-2d"


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
    context: Context
    function: Function
    live: set[str] = field(default_factory=set[str])
    lazy: set[str] = field(default_factory=set[str])
    sinks: dict[int, Sink] = field(default_factory=dict[int, Sink])
    snapshots: dict[int, View] = field(default_factory=dict[int, View])
    homes: dict[Value, Place] = field(default_factory=dict[Value, Place])
    shared: set[str] = field(default_factory=set[str])
    reads: dict[Place, list[Position]] = field(default_factory=dict[Place, list[Position]])
    _sunk: dict[int, Sink] = field(default_factory=dict[int, Sink])
    _explained: set[int] = field(default_factory=set[int])
    _readings: dict[int, Place] = field(default_factory=dict[int, Place])

    # What is known ---------------------------------------------------------------------------------------------

    @cached_property
    def tensors(self) -> FunctionTensors:
        """Tokens and operations, ordinary instructions on tensors among them."""
        return with_elementwise(self.function, analyse(self.module, self.function))

    @cached_property
    def flats(self) -> Flats:
        """Flattened vectors."""
        return Flats(self.function, self.tensors, self.module.source)

    @cached_property
    def groups(self) -> Groups:
        """What is fused into what."""
        return Groups(self)

    @cached_property
    def flow(self) -> ControlFlow:
        """Control flow before any change."""
        return ControlFlow(self.function)

    @cached_property
    def aliases(self) -> Aliases:
        """Alias facts before any change."""
        sizes = {id(op.instruction): self.stored(op).reach for op in self.tensors.ops if op.pointer is not None}
        return Aliases(self.module, self.function, self.flow, sizes)

    @cached_property
    def buffers(self) -> Buffers:
        """The function's private memory."""
        return Buffers(self.module, self.function)

    @cached_property
    def positions(self) -> dict[int, Position]:
        """Where each instruction stands, by its id."""
        return {
            id(instruction): (block.name, index)
            for block in self.function.blocks
            for index, instruction in enumerate(block.instructions)
        }

    # Places ----------------------------------------------------------------------------------------------------

    def stored(self, op: TensorOp) -> View:
        """Where a tensor store writes."""
        assert op.pointer is not None
        return View.of(Place(op.pointer), op.tensors[0].type, op.pitches)

    def view(self, tensor: Tensor) -> View:
        """Where a token's tensor lies."""
        if tensor.kind == "load":
            place = self._reading(tensor.definition, tensor.source)
            return View.of(place, tensor.type, None if place.is_private else tensor.pitches)
        if tensor.kind == "pointer":
            return View.of(self._reading(tensor.definition, tensor.source), tensor.type)
        root = self.flats.root(tensor.source)
        if isinstance(root, Local) and root.name in self.lazy:
            return self._lazy_view(self.op_of(root), tensor.type)
        return View.of(self.place_of(root), tensor.type)

    def _lazy_view(self, op: TensorOp, seen: TensorType) -> View:
        """The operand's memory as the result of a transpose or a broadcast."""
        source, result = op.tensors[0], op.result
        assert result is not None
        if op.intrinsic.name == "broadcast":
            return self.view(source).broadcast(result, op.dims[1])
        if op.intrinsic.name == "reshape.permute":
            return replace(View.of(self.view(source).place, result), group=source.type.shape[-1])
        type_ = seen if seen.shape == result.shape else result
        return self.view(source).reordered([source.type.position(d) for d in result.layout], type_)

    def place_of(self, root: Value) -> Place:
        """Memory of a flattened vector: a buffer of its own, or what a load reads."""
        kind = self.flats.kind(root)
        if kind == "load" and isinstance(root, Local):
            load = self.flats.definitions[root.name]
            return self._reading(load, load.operands[0])
        if root not in self.homes:
            self.homes[root] = self._new_home(root)
        return self.homes[root]

    def share(self, value: Local, place: Place) -> str:
        """Let a value live in another one's place; gives the name of the buffer that is not needed for it."""
        buffer = self.place_of(value).buffer
        assert buffer is not None
        self.homes[value] = place
        self.shared.add(value.name)
        return buffer.pointer.name

    def _new_home(self, root: Value) -> Place:
        assert isinstance(root.type, VectorType)
        if not isinstance(root, (Local, Keyword)):
            return Place(constant_array(self.module, root))
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
        return title(op) if op is not None else "tensor"

    def new_place(self, element: Type, count: int, stem: str) -> Place:
        """A buffer."""
        buffer = self.buffers.new(stored(element), count, stem, self.function.span)
        return Place(buffer.pointer, None, buffer)

    def reading_place(self, definition: Instruction) -> Place:
        """Where what a load read is now."""
        return self._readings[id(definition)]

    def _reading(self, definition: Instruction, pointer: Value) -> Place:
        if id(definition) not in self._readings:
            self._readings[id(definition)] = Place(pointer, definition)
        return self._readings[id(definition)]

    def op_of(self, root: Local) -> TensorOp:
        """The operation whose result a vector is."""
        op = self.tensors.op_of(self.flats.definitions[root.name])
        assert op is not None
        return op

    def is_zero(self, tensor: Tensor) -> bool:
        """Whether a tensor is a constant of zeros, or undefined, for which zeros do."""
        return tensor.kind == "value" and isinstance(self.flats.root(tensor.source), Keyword)

    def operands(self, op: TensorOp) -> list[View | None]:
        """Where each operand lies; None for one that is written as zeros or as a scalar, which needs no memory."""
        fills = op.pointer is not None or op.intrinsic.name in MMA | {INSERT}
        return [
            None
            if (fills and index == 0 and self.is_zero(tensor)) or self.groups.is_written(op, tensor)
            else self.view(tensor)
            for index, tensor in enumerate(op.tensors)
        ]

    # Decisions -------------------------------------------------------------------------------------------------

    def decide(self) -> None:
        """Make all decisions.

        Raises:
            LoweringError: Something in the function is not lowered.
        """
        from tlx.lower.to_2d.coalescing import coalesce
        from tlx.lower.to_2d.phis import note_edges

        self._check()
        self.lazy = {str(op.instruction.result) for op in self.tensors.ops if is_lazy(self, op)}
        self.groups.find()
        self.live = find_live(self)
        for op in self.tensors.ops:
            sink = find_sink(self, op)
            if sink is not None:
                self.sinks[id(sink.store)] = sink
                self._sunk[id(op.instruction)] = sink
        note_reads(self)
        note_edges(self)
        for place in list(self.reads):
            settle(self, place)
        coalesce(self)

    def _check(self) -> None:
        from tlx.lower.to_2d.rules import RULES

        for op in self.tensors.ops:
            if op.pointer is None and op.intrinsic.name not in RULES:
                raise LoweringError(f"{op.intrinsic.full_name} is not lowered yet", op.instruction.span)
            if op.intrinsic.name in PRODUCTS | UNARY and any(t.type.element == I1 for t in op.tensors):
                message = f"{op.intrinsic.full_name} of i1 is not lowered: convert the operands, to i8 for instance"
                raise LoweringError(message, op.instruction.span)
        self.flats.check()

    def is_live(self, op: TensorOp) -> bool:
        """Whether anything needs an operation's result in memory."""
        return op.pointer is not None or op.instruction.result in self.live

    # Sinking ---------------------------------------------------------------------------------------------------

    def is_sunk(self, op: TensorOp) -> bool:
        """Whether an operation runs at its result's store."""
        return id(op.instruction) in self._sunk

    def explain(self, op: TensorOp, reason: str = "its result is not only stored once") -> None:
        """Say, once, why the result of an operation gets a buffer."""
        if id(op.instruction) in self._explained or op.result is None:
            return
        self._explained.add(id(op.instruction))
        message = f"temporary of {size_text(tensor_bytes(op.result))} for {title(op)}, because {reason}"
        self.missed(message, op.instruction.span)

    def missed(self, message: str, span: Span | None) -> None:
        """Say what is copied that need not be in a better program."""
        self.context.remarks.add("missed", STAGE, message, span)

    def dense_operand(self, op: TensorOp) -> Callable[[Type, int, str], Place]:
        """What gives an operation memory for an operand that no 2-D load can read, and says so."""

        def new_place(element: Type, count: int, name: str) -> Place:
            return self.copied_operand(op, element, count, name, "its rows and columns are both strided in memory")

        return new_place

    def copied_operand(self, op: TensorOp, element: Type, count: int, name: str, reason: str) -> Place:
        """Memory for a copy of an operand; says why it is made."""
        size = size_text(count * bytes_of(element))
        self.missed(f"copy of {size} of operand {name}, because {reason}", op.instruction.span)
        return self.new_place(element, count, name)

    def start_of(self, place: Place) -> Position:
        """Where what a place means is read."""
        assert place.reading is not None
        return self.positions[id(place.reading)]

    # Readings --------------------------------------------------------------------------------------------------

    def position_of(self, op: TensorOp) -> Position:
        """Where an operation runs."""
        op = self.groups.root_of(op)
        sink = self._sunk.get(id(op.instruction))
        return self.positions[id(op.instruction if sink is None else sink.store)]

    def note_read(self, place: Place, position: Position) -> None:
        """Something at a position reads a place."""
        self.reads.setdefault(place, []).append(position)


def title(op: TensorOp) -> str:
    """What remarks call an operation: its intrinsic, or an ordinary instruction's opcode or `llvm.*` function."""
    if op.intrinsic.name != NAME:
        return op.intrinsic.name
    operation = Operation.of(op.instruction)
    return operation.title if operation is not None else op.instruction.opcode
