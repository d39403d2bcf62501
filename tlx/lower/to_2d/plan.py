"""What to do with each tensor of a function, decided before anything is changed.

1. which operations are live, and which transposes are only another order of the same memory (`lazy`);
2. which operations move down to the one store of their result and write there (`sinks`);
3. which memory the user's loads mean can be read where it lies, and which has to be copied at the load (`snapshots`);
4. which results share the buffer of the loop-carried tensor they become (`tlx.lower.to_2d.phis`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, Literal

from tlx.diagnostics import LoweringError
from tlx.ir.analysis import analyse
from tlx.ir.dominance import ControlFlow
from tlx.ir.module import Function, Instruction, Module, Raw
from tlx.ir.tensors import FunctionTensors, Tensor, TensorOp
from tlx.ir.types import I1, I8, ArrayType, Type, VectorType, bytes_of
from tlx.ir.values import Aggregate, ConstInt, Global, Keyword, Local, Splat, Value
from tlx.lower.ordinary import UNARY
from tlx.lower.stage import Context
from tlx.lower.to_2d.buffers import Buffer, Buffers, size_text
from tlx.lower.to_2d.contraction import MMA
from tlx.lower.to_2d.elementwise import NAME, with_elementwise
from tlx.lower.to_2d.groups import POINTWISE, PRODUCTS, Groups
from tlx.lower.to_2d.safety import Aliases, Position, Range, shortened
from tlx.lower.to_2d.sinks import Sink, find_sink
from tlx.lower.to_2d.values import Flats
from tlx.lower.to_2d.views import Place, View, stored, tensor_bytes
from tlx.lower.to_2d.vnni import is_interleaved, multiplies
from tlx.types import TensorType

STAGE: Final = "to-2d"
_VIEWS: Final = frozenset({"transpose", "tovector"})


@dataclass(frozen=True)
class Reading:
    """A view that an operation reads.

    Attributes:
        view: The view.
        role: `leaf`: each position in memory order is read before the result at that position is written, and not
            again; `acc`: each logical position likewise; `factor`: at any time.
    """

    view: View
    role: Literal["leaf", "acc", "factor"]

    def allows(self, target: View) -> bool:
        """Whether the result may be written over what is read."""
        if self.role == "leaf":
            return self.view.is_pointwise(target)
        return self.role == "acc" and self.view.is_same(target)


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
        shared: Results that live in the buffer of a loop-carried tensor, and where they are read, by name.
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
    shared: dict[str, list[Position]] = field(default_factory=dict[str, list[Position]])
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
        return Flats(self.function, self.tensors)

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

    def share(self, value: Local, place: Place) -> None:
        """Let a result live in another value's place."""
        self.shared[value.name] = self.reads.get(self.homes[value], [])
        self.homes[value] = place

    def reads_of(self, value: Value) -> list[Position]:
        """Where a flattened vector with a home is read."""
        if isinstance(value, Local) and value.name in self.shared:
            return self.shared[value.name]
        return self.reads.get(self.place_of(value), [])

    def _new_home(self, root: Value) -> Place:
        assert isinstance(root.type, VectorType)
        if not isinstance(root, (Local, Keyword)):
            return Place(self._constant(root))
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

    def _constant(self, value: Value) -> Global:
        """A constant vector as an array: LLVM aligns vectors to their size, which linkers refuse where it is large."""
        name = self.module.global_names.fresh("tensor.constant")
        type_ = value.type
        assert isinstance(type_, VectorType)
        if isinstance(value, (Aggregate, Splat)):
            elements = value.elements if isinstance(value, Aggregate) else (value.element,) * type_.count
            if type_.element == I1:
                elements = tuple(ConstInt(I8, int(str(e) in ("1", "-1", "true"))) for e in elements)
            value = Aggregate(ArrayType(type_.count, stored(type_.element)), elements, "[")
        text = f"\n\n@{name} = private unnamed_addr constant {value.typed}, align 64"
        self.module.append(Raw(text))
        return Global(self.module.pointer_to(value.type), name)

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
        """Where each operand lies; None for one that is written as zeros, which needs no memory."""
        fills = op.pointer is not None or op.intrinsic.name in MMA
        return [
            None if fills and index == 0 and self.is_zero(tensor) else self.view(tensor)
            for index, tensor in enumerate(op.tensors)
        ]

    def readings(self, op: TensorOp) -> list[Reading]:
        """What an operation reads from memory, with all that is fused into it."""
        product = self.groups.product_of(op) or (None if self.groups.is_group(op) else op)
        found = [Reading(self.view(tensor), "leaf") for tensor in self.groups.leaves(op)]
        if product is not None:
            acc, *factors = self.operands(product) if product.intrinsic.name in MMA else [None, *self.operands(product)]
            if acc is not None:
                found.append(Reading(acc, "acc") if product is op else Reading(acc.row_major, "leaf"))
            found.extend(Reading(view, "factor") for view in factors if view is not None)
        return found

    # Decisions -------------------------------------------------------------------------------------------------

    def decide(self) -> None:
        """Make all decisions.

        Raises:
            LoweringError: Something in the function is not lowered.
        """
        from tlx.lower.to_2d.phis import note_edges, share_buffers

        self._check()
        self.lazy = {str(op.instruction.result) for op in self.tensors.ops if self._is_lazy(op)}
        self.groups.find()
        self._find_live()
        for op in self.tensors.ops:
            sink = find_sink(self, op)
            if sink is not None:
                self.sinks[id(sink.store)] = sink
                self._sunk[id(op.instruction)] = sink
        self._note_reads()
        note_edges(self)
        for place in list(self.reads):
            self._settle(place)
        share_buffers(self)

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

    def _find_live(self) -> None:
        pending: list[Value] = []
        seen: set[str] = set()
        for instruction in self.function.instructions():
            op = self.tensors.op_of(instruction)
            if op is not None and op.pointer is not None:
                pending.extend(t.source for t in op.tensors if t.kind == "value")
            elif self.flats.is_memory_store(instruction) or self.flats.is_memory_extract(instruction):
                pending.append(instruction.operands[0])
            elif instruction.result is not None and self._is_home(instruction.value):
                pending.extend([instruction.value] if self.flats.needs_ssa(instruction.result) else [])
        while pending:
            root = self.flats.root(pending.pop())
            if not isinstance(root, Local) or root.name in seen or not self._is_home(root):
                continue
            seen.add(root.name)
            if self.flats.kind(root) == "phi":
                self.live.add(root.name)
                pending.extend(v for v, _ in self.flats.definitions[root.name].incoming)
                continue
            op = self.op_of(root)
            if not self.groups.is_fused(op):
                self.live.add(root.name)
            scalars = op.intrinsic.name in POINTWISE
            pending.extend(
                t.source
                for t in op.tensors
                if t.kind == "value" and not (scalars and self.groups.scalar(t) is not None)
            )

    def _is_home(self, value: Value) -> bool:
        return isinstance(value.type, VectorType) and self.flats.kind(value) in ("op", "phi")

    def _is_lazy(self, op: TensorOp) -> bool:
        """Whether every use of a transpose or a broadcast sees the same elements in its operand's memory."""
        if op.result is None or op.scalars or op.intrinsic.name not in _VIEWS | {"broadcast", "reshape.permute"}:
            return False
        users = [u.instruction for u in self.flats.uses.get(str(op.instruction.result), [])]
        if op.intrinsic.name == "reshape.permute":
            target = self.context.target_of(self.module, self.function)
            return is_interleaved(op, target) and all(self._multiplies(user, op.result) for user in users)
        return all(self._sees_view(user, op.result, op.intrinsic.name == "broadcast") for user in users)

    def _multiplies(self, user: Instruction, result: TensorType) -> bool:
        """Whether a use reads interleaved rows as the right operand of products only."""
        token = self.tensors.tokens.get(user.result or "")
        if token is None or token.kind != "value" or token.type != result:
            return False
        readers = [self.tensors.op_of(u.instruction) for u in self.flats.uses.get(str(user.result), [])]
        return all(multiplies(reader, token) for reader in readers)

    def _sees_view(self, user: Instruction, result: TensorType, repeats: bool) -> bool:
        """Whether one use does; what is repeated can only be read pointwise."""
        own = self.tensors.op_of(user)
        if own is not None:
            return own.intrinsic.name == NAME and not result.is_padded
        token = self.tensors.tokens.get(user.result or "")
        if token is None or token.kind != "value" or not _lies_like(token.type, result):
            return False
        if not repeats:
            return True
        readers = [self.tensors.op_of(u.instruction) for u in self.flats.uses.get(str(user.result), [])]
        return not result.is_padded and all(r is not None and r.intrinsic.name in UNARY for r in readers)

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
        self.context.remarks.add("missed", STAGE, message, op.instruction.span)

    def dense_operand(self, op: TensorOp) -> Callable[[Type, int, str], Place]:
        """What gives an operation memory for an operand that no 2-D load can read, and says so."""

        def new_place(element: Type, count: int, name: str) -> Place:
            size = size_text(count * bytes_of(element))
            message = f"copy of {size} of operand {name}, because its rows and columns are both strided in memory"
            self.context.remarks.add("missed", STAGE, message, op.instruction.span)
            return self.new_place(element, count, name)

        return new_place

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

    def _note_reads(self) -> None:
        for op in self.tensors.ops:
            if not self.is_live(op) or str(op.instruction.result) in self.lazy or id(op.instruction) in self.sinks:
                continue
            for reading in self.readings(op):
                self.note_read(reading.view.place, self.position_of(op))
        for instruction in self.function.instructions():
            if id(instruction) in self.sinks:
                continue
            is_store = self.flats.is_memory_store(instruction)
            if is_store or self.flats.is_memory_extract(instruction):
                root = self.flats.root(instruction.operands[0])
                if not (is_store and isinstance(root, Keyword)):
                    self.note_read(self.place_of(root), self.positions[id(instruction)])

    def _settle(self, place: Place) -> None:
        """Leave what a load reads where it is, or have it copied when the load runs."""
        if place.reading is None:
            return
        start = self.start_of(place)
        view = self._read_view(place)
        for position in self.reads[place]:
            writer = self.aliases.clobbered(Range.of(view), start, position)
            if writer is not None:
                self._snapshot(place, view, writer)
                return

    def _read_view(self, place: Place) -> View:
        """What a load reads: its tensor, or the whole flattened vector."""
        assert place.reading is not None
        tensor = self.tensors.tokens.get(place.reading.result or "")
        if tensor is None:
            type_ = place.reading.type
            assert isinstance(type_, VectorType)
            return View.of(place, TensorType.dense(type_.element, (type_.count,)))
        if tensor.kind == "load":
            return View.of(place, tensor.type, tensor.pitches)
        return View.of(place, TensorType.dense(tensor.type.element, (tensor.type.count,)))

    def _snapshot(self, place: Place, view: View, writer: Instruction) -> None:
        assert place.reading is not None
        tensor = self.tensors.tokens.get(place.reading.result or "")
        count = tensor.type.count if tensor is not None else len_of(place.reading.type)
        name = place.reading.result or "tensor"
        stem = f"{name}.copy" if not name.isdecimal() else "copy"
        span = place.reading.span
        buffer: Buffer = self.buffers.new(view.element, count, stem, span)
        source = View(Place(place.pointer), view.element, view.sizes, view.data, view.steps, view.layout)
        self.snapshots[id(place.reading)] = source
        place.move(buffer)
        message = f"copy of {size_text(buffer.bytes)}, because '{shortened(writer)}' may change {source.place.pointer}"
        self.context.remarks.add("missed", STAGE, message, span)


def _lies_like(type_: TensorType, result: TensorType) -> bool:
    """Whether a token on a result reads no padding of the result as data, dimension by dimension."""
    pairs = zip(type_.padding, result.padding, strict=False)
    return type_.shape == result.shape and all(mine >= its for mine, its in pairs)


def title(op: TensorOp) -> str:
    """What remarks call an operation: its intrinsic, or the opcode of an ordinary instruction."""
    return op.instruction.opcode if op.intrinsic.name == NAME else op.intrinsic.name


def len_of(type_: Type) -> int:
    """Elements of a vector."""
    return type_.count if isinstance(type_, VectorType) else 1
