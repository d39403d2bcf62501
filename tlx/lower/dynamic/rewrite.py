"""Carrying out: one pass over a function that takes out what has run-time extents and calls helpers in its place."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from tlx.diagnostics import LoweringError
from tlx.ir.dynamic import DynamicOp, DynamicTensor
from tlx.ir.fold import Folder
from tlx.ir.module import Block, Function, Instruction, Module
from tlx.ir.rewriter import definitions
from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.tensors import FunctionTensors, Tensor
from tlx.ir.types import I1, I8, Type, bytes_of
from tlx.ir.values import Keyword, Local, Value
from tlx.lower.dynamic.copies import copy
from tlx.lower.dynamic.decisions import Decisions
from tlx.lower.dynamic.entries import Entries
from tlx.lower.dynamic.heap import Heap
from tlx.lower.dynamic.helpers import Helpers
from tlx.lower.dynamic.numbers import Checks, number, product
from tlx.lower.dynamic.views import Dim, Flat, RunView, steps_of
from tlx.lower.to_2d.attributes import allow_heap

_ZERO: Final = number(0)


@dataclass(eq=False)
class Expansion:
    """The expansion of one function.

    Attributes:
        module: The module.
        function: The function.
        tensors: Its tensors.
        helpers: The module's helper functions.
        b: Stands behind the last instruction that is done.
        flats: Handles that are in memory, by name.
        last_part: Where each block ends now that loops were put into it, by its name.
    """

    module: Module
    function: Function
    tensors: FunctionTensors
    helpers: Helpers
    flats: dict[str, Flat] = field(default_factory=dict[str, Flat])
    last_part: dict[str, str] = field(default_factory=dict[str, str])
    _views: dict[str, RunView] = field(default_factory=dict[str, RunView])

    def __post_init__(self) -> None:
        self.folder = Folder(self.function, self.module)
        self.decisions = Decisions(self.module, self.function, self.tensors, self.folder)
        self.b = TensorBuilder(self.module, self.function)
        self.heap = Heap(self.b, self.helpers)
        self.entries = Entries(self.b, self.folder, definitions(self.function))
        self.checks = Checks(self.b, self.helpers)

    def run(self) -> None:
        """Expand the function."""
        from tlx.lower.dynamic.maps import Maps
        from tlx.lower.dynamic.phis import Phis

        self.maps = Maps(self)
        self.phis = Phis(self)
        blocks = {block.name: block for block in self.function.blocks}
        reachable = [blocks[name] for name in self.decisions.flow.order]
        for block in [*reachable, *(b for n, b in blocks.items() if n not in self.decisions.flow.dominators)]:
            self._block(block)
        self.phis.emit_edges()
        self.heap.finish()
        self.maps.remove_splats()
        allow_heap(self.module, self.function)

    def _block(self, block: Block) -> None:
        self.b.block, self.b.index = block, 0
        for instruction in list(block.instructions):
            assert self.b.block.instructions[self.b.index] is instruction
            self.b.debug, self.b.span = instruction.debug_location, instruction.span
            if instruction.opcode != "phi":
                self.phis.emit_late()
            self._instruction(instruction)
        self.last_part[block.name] = self.b.block.name

    def _instruction(self, instruction: Instruction) -> None:
        dynamic = self.tensors.dynamic
        op = dynamic.op_of(instruction)
        token = dynamic.tokens.get(instruction.result or "")
        if op is not None:
            self.remove()
            self._operation(op)
        elif token is not None:
            self.remove()
            if not self.decisions.is_direct(token):
                self._views[str(instruction.result)] = self._view_of(token)
        elif instruction.result in dynamic.handles:
            self.remove()
            self.phis.head(instruction) if instruction.opcode == "phi" else self.maps.visit(instruction)
        elif instruction.opcode == "#dbg" and any(self._is_gone(o) for o in instruction.operands):
            self.remove()
        else:
            self.b.index += 1

    def _is_gone(self, value: Value) -> bool:
        return isinstance(value, Local) and value.name in self.tensors.dynamic.handles

    def remove(self) -> None:
        """Take out the next instruction."""
        del self.b.block.instructions[self.b.index]

    # Tokens ----------------------------------------------------------------------------------------------------

    def view(self, tensor: Tensor | DynamicTensor) -> RunView:
        """Where the tensor of an operand lies."""
        name = str(tensor.definition.result)
        if isinstance(tensor, DynamicTensor):
            return self._views[name]
        return self._static_view(tensor)

    def flat(self, value: Value) -> Flat:
        """Where the elements of a handle are (nowhere, in code that never runs)."""
        known = self.flats.get(value.name) if isinstance(value, Local) else None
        element = getattr(value.type, "element", I8)
        return known or Flat(Keyword(self.b.pointer(element), "null"), _ZERO, element)

    def _view_of(self, token: DynamicTensor) -> RunView:
        if token.element == I1:
            raise LoweringError("tensors of i1 are not lowered yet", token.definition.span)
        shape, padding = self.entries.of(token.shape), self.entries.of(token.padding)
        for size, pad in zip(shape, padding, strict=True):
            self.checks.compare("sge", size, number(1))
            self.checks.compare("sge", pad, _ZERO)
            if pad != _ZERO:
                self.checks.compare("slt", pad, size)
        data = [self.b.sub(s, p, "extent") for s, p in zip(shape, padding, strict=True)]
        sizes = shape if token.pitches is None else self.pitched(shape, self.entries.of(token.pitches))
        self.checks.countable(sizes)
        pointer = token.source
        if token.kind == "value":
            flat = self.flat(token.source)
            self.checks.compare("eq", product(self.b, shape), flat.count)
            pointer = flat.pointer
        self.checks.emit()
        dims = tuple(Dim(e, s) for e, s in zip(data, steps_of(self.b, sizes), strict=True))
        is_dense = sizes == shape and data == shape
        view = RunView(pointer, token.element, dims, tuple(shape), token.layout, is_dense)
        return self._copied(view, token) if token.definition.result in self.decisions.copied else view

    def pitched(self, shape: list[Value], pitches: list[Value]) -> list[Value]:
        """Positions of each dimension in the enclosing array."""
        return [shape[0], *(self._pitch(s, p) for s, p in zip(shape[1:], pitches[1:], strict=True))]

    def _pitch(self, size: Value, pitch: Value) -> Value:
        self.checks.compare("sge", pitch, _ZERO)
        if not isinstance(pitch, Local):
            return size if pitch == _ZERO else pitch
        return self.b.select(self.b.icmp("eq", pitch, 0, "is.dense"), size, pitch, "pitch")

    def _copied(self, view: RunView, token: DynamicTensor) -> RunView:
        """A copy of what a load reads, made when it runs."""
        b = self.b
        extents = [dim.extent for dim in view.dims]
        stem = f"{token.definition.result}.copy"
        pointer = self.heap.allocate(product(b, extents), view.element, stem)
        steps = steps_of(b, extents)
        copy(self.helpers, b, view.element, (pointer, steps), (view.pointer, view.dims))
        dims = tuple(Dim(e, s) for e, s in zip(extents, steps, strict=True))
        return RunView(pointer, view.element, dims, view.shape, view.layout)

    def _static_view(self, tensor: Tensor) -> RunView:
        """A tensor of known extents: where it lies, or put into memory."""
        type_ = tensor.type
        name = str(tensor.definition.result)
        pointer, pitches = tensor.source, tensor.pitches
        if tensor.kind == "value" or name in self.decisions.copied:
            pointer, pitches = self.heap.allocate(number(type_.count), type_.element, name), None
            self.b.tensor_store(pointer, tensor.definition.value, None, type_)
        dims = tuple(Dim(number(e), number(s)) for e, s in zip(type_.data_shape, type_.strides(pitches), strict=True))
        return RunView(pointer, type_.element, dims, tuple(map(number, type_.shape)), type_.layout)

    # Operations ------------------------------------------------------------------------------------------------

    def _operation(self, op: DynamicOp) -> None:
        from tlx.lower.dynamic.rules import RULES, product_into

        if op.pointer is not None:
            sunk, mapped = self.decisions.sunk(op), self.decisions.map_at(op)
            if sunk is not None:
                product_into(self, sunk, op)
            elif mapped is not None:
                self._map_into(mapped, op)
            else:
                self._store(op)
        elif self.decisions.sink(op) is None:
            RULES[op.intrinsic.name](self, op)

    def _map_into(self, name: str, store: DynamicOp) -> None:
        """An elementwise expression, written to where its only store puts it."""
        (tensor,) = store.tensors
        assert isinstance(tensor, DynamicTensor)
        assert store.pointer is not None
        if tensor.element == I1:
            raise LoweringError("tensors of i1 are not lowered yet", tensor.definition.span)
        shape = self.entries.of(tensor.shape)
        for size in shape:
            self.checks.compare("sge", size, number(1))
        self.checks.countable(shape)
        self.maps.emit_at(name, store.pointer, product(self.b, shape))

    def result(self, op: DynamicOp, count: Value, *, zero: bool = False) -> Flat:
        """Memory for what an operation returns."""
        assert op.like is not None
        return self.new_flat(op.instruction, count, op.like.element, zero=zero)

    def new_flat(self, instruction: Instruction, count: Value, element: Type, *, zero: bool = False) -> Flat:
        """Memory for a handle."""
        name = str(instruction.result)
        stem = name if not name.isdecimal() else "tensor"
        pointer = self.heap.allocate(count, element, stem)
        if zero:
            self.b.memset(pointer, 0, self.b.mul(count, bytes_of(element), "bytes"))
        flat = Flat(pointer, count, element)
        self.flats[name] = flat
        return flat

    def target(self, op: DynamicOp, shape: list[Value], extents: list[Value]) -> list[Value]:
        """Elements between neighbours along each memory dimension where a store writes."""
        assert op.pitches is not None
        pitches = self.entries.of(op.pitches)
        sizes = self.pitched(shape, pitches)
        for size, extent in zip(sizes[1:], extents[1:], strict=True):
            self.checks.compare("sge", size, extent)
        self.checks.countable(sizes)
        self.checks.emit()
        return steps_of(self.b, sizes)

    def _store(self, op: DynamicOp) -> None:
        assert op.pointer is not None
        view = self.view(op.tensors[0])
        steps = self.target(op, list(view.shape), [dim.extent for dim in view.dims])
        copy(self.helpers, self.b, view.element, (op.pointer, steps), (view.pointer, view.dims))
