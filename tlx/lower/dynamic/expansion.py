"""Rewriting a function in one pass: operations on run-time extents become calls to helpers.

Loop-carried tensors of run-time size: a phi of handles owns memory, and each edge to it copies the incoming value.

loop:
  %x = phi <vscale x 1 x float> [ %a, %entry ], [ %b, %loop ]
->
entry: copy %a to new memory; free what %x.slot holds; put the new memory there
loop:
  %x.count = phi i64 [ %a's count ], [ %b's count ]
  %x = load ptr, ptr %x.slot, aligned up to a cache line
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from tlx.diagnostics import LoweringError
from tlx.ir.constant_folding import ConstantFolder
from tlx.ir.functions import Function
from tlx.ir.instructions import Block, Instruction
from tlx.ir.module import Module
from tlx.ir.rewrite import Use, add_incoming, definitions, remove_dead, rename_incoming, set_operand, uses
from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.tensors.model import (
    DynamicOp,
    DynamicTensor,
    FunctionTensors,
    Tensor,
    elementwise_operands,
    first_lane_scalar,
    is_handle_type,
)
from tlx.ir.types import I1, I8, I64, Type, VectorType, bytes_of
from tlx.ir.values import Constant, Keyword, Local, Value
from tlx.lower.dynamic.decisions import ExpansionDecisions
from tlx.lower.dynamic.elementwise import ExpressionLoops, FusedExpression, HandleOperand, UniformOperand
from tlx.lower.dynamic.heap import Heap
from tlx.lower.dynamic.helpers import HelperFunctions, NoAliasPointer, i64_parameters
from tlx.lower.dynamic.views import (
    DenseHandle,
    DynamicView,
    RuntimeChecks,
    VectorEntries,
    copy_strided,
    i64,
    product,
    row_major_strides,
)
from tlx.lower.memory.allocation import emit_release
from tlx.lower.memory.buffers import allow_heap
from tlx.lower.memory.views import Storage
from tlx.lower.operations import ElementwiseOp

_ZERO: Final = i64(0)
_BITS: Final = "tensors of i1 are not lowered yet where an extent is known only at run time: store them as i8"


@dataclass(eq=False)
class ExpansionContext:
    """What the rules that expand operations of one function share.

    Attributes:
        module: The module.
        function: The function.
        tensors: Its tensors.
        helpers: The module's helper functions.
        b: The builder, after the last instruction that was rewritten.
        handles: Handles in memory, by name.
        views: Tensors of run-time extents in memory, by the name of the token.
        last_block: For each original block its last one, now that loops have split it.
    """

    module: Module
    function: Function
    tensors: FunctionTensors
    helpers: HelperFunctions
    handles: dict[str, DenseHandle] = field(default_factory=dict[str, DenseHandle])
    views: dict[str, DynamicView] = field(default_factory=dict[str, DynamicView])
    last_block: dict[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        self.folder = ConstantFolder(self.function, self.module)
        self.decisions = ExpansionDecisions(self.module, self.function, self.tensors, self.folder)
        self.b = TensorBuilder(self.module, self.function)
        self.heap = Heap(self.b, self.helpers, self.decisions.flow)
        self.entries = VectorEntries(self.b, self.folder)
        self.checks = RuntimeChecks(self.b, self.helpers)

    def remove(self) -> None:
        """Remove the next instruction."""
        del self.b.block.instructions[self.b.index]

    # Tokens ----------------------------------------------------------------------------------------------------

    def view(self, tensor: Tensor | DynamicTensor) -> DynamicView:
        """The view of an operand's tensor in memory."""
        name = str(tensor.definition.result)
        if isinstance(tensor, DynamicTensor):
            return self.views[name]
        return self._static_view(tensor)

    def handle(self, value: Value) -> DenseHandle:
        """The memory of a handle; null in unreachable code."""
        known = self.handles.get(value.name) if isinstance(value, Local) else None
        element = getattr(value.type, "element", I8)
        return known or DenseHandle(Keyword(self.b.pointer(element), "null"), _ZERO, element)

    def view_of(self, token: DynamicTensor) -> DynamicView:
        """The view of the tensor that a token makes, whose extents are checked here."""
        if token.element == I1:
            raise LoweringError(_BITS, token.definition.span)
        shape, padding = self.entries.of(token.shape), self.entries.of(token.padding)
        for size, pad in zip(shape, padding, strict=True):
            self.checks.compare("sge", size, i64(1))
            self.checks.compare("sge", pad, _ZERO)
            if pad != _ZERO:
                self.checks.compare("slt", pad, size)
        data = [self.b.sub(s, p, "extent") for s, p in zip(shape, padding, strict=True)]
        sizes = shape if token.pitches is None else self.pitched(shape, self.entries.of(token.pitches))
        self.checks.require_countable(sizes)
        pointer = token.source
        if token.kind == "value":
            handle = self.handle(token.source)
            self.checks.compare("eq", product(self.b, shape), handle.count)
            pointer = handle.pointer
        self.checks.emit()
        strides = row_major_strides(self.b, sizes)
        is_dense = sizes == shape and data == shape
        place = Storage(pointer), token.element
        view = DynamicView(*place, tuple(shape), tuple(data), tuple(strides), token.layout, is_dense)
        return self._copied(view, token) if token.definition.result in self.decisions.copied else view

    def pitched(self, shape: list[Value], pitches: list[Value]) -> list[Value]:
        """Positions of each dimension in the enclosing array."""
        return [shape[0], *(self._pitch(s, p) for s, p in zip(shape[1:], pitches[1:], strict=True))]

    def _pitch(self, size: Value, pitch: Value) -> Value:
        self.checks.compare("sge", pitch, _ZERO)
        if not isinstance(pitch, Local):
            return size if pitch == _ZERO else pitch
        return self.b.select(self.b.icmp("eq", pitch, 0, "is.dense"), size, pitch, "pitch")

    def _copied(self, view: DynamicView, token: DynamicTensor) -> DynamicView:
        """A copy of the memory that a load reads, made at the load."""
        b = self.b
        stem = f"{token.definition.result}.copy"
        pointer = self.heap.allocate(product(b, view.data_shape), view.element, stem)
        strides = row_major_strides(b, view.data_shape)
        copy_strided(self.helpers, b, view.element, (pointer, strides), (view.pointer, view.memory_dims))
        return replace(view, storage=Storage(pointer), strides=tuple(strides), is_dense=False)

    def _static_view(self, tensor: Tensor) -> DynamicView:
        """A tensor of static extents, stored to memory unless it is there already."""
        type_ = tensor.type
        name = str(tensor.definition.result)
        pointer, pitches = tensor.source, tensor.pitches
        if tensor.kind == "value" or name in self.decisions.copied:
            pointer, pitches = self.heap.allocate(i64(type_.count), type_.element, name), None
            self.b.tensor_store(pointer, tensor.definition.value, None, type_)
        shape, data, strides = (tuple(map(i64, n)) for n in (type_.shape, type_.data_shape, type_.strides(pitches)))
        return DynamicView(Storage(pointer), type_.element, shape, data, strides, type_.layout)

    # Results ---------------------------------------------------------------------------------------------------

    def result(self, op: DynamicOp, count: Value, *, zero: bool = False) -> DenseHandle:
        """Memory for the result of an operation."""
        assert op.like is not None
        return self.new_handle(op.instruction, count, op.like.element, zero=zero)

    def new_handle(self, instruction: Instruction, count: Value, element: Type, *, zero: bool = False) -> DenseHandle:
        """Memory for a handle."""
        name = str(instruction.result)
        stem = name if not name.isdecimal() else "tensor"
        pointer = self.heap.allocate(count, element, stem)
        if zero:
            self.b.memset(pointer, 0, self.b.mul(count, bytes_of(element), "bytes"))
        handle = DenseHandle(pointer, count, element)
        self.handles[name] = handle
        return handle

    def store_strides(self, op: DynamicOp, shape: list[Value], extents: list[Value]) -> list[Value]:
        """Strides, in elements, of the memory dimensions that a store writes."""
        assert op.pitches is not None
        pitches = self.entries.of(op.pitches)
        sizes = self.pitched(shape, pitches)
        for size, extent in zip(sizes[1:], extents[1:], strict=True):
            self.checks.compare("sge", size, extent)
        self.checks.require_countable(sizes)
        self.checks.emit()
        return row_major_strides(self.b, sizes)


@dataclass(eq=False)
class _CarriedHandle:
    """A phi of handles, its slot, and the phi of its count."""

    phi: Instruction
    block: Block
    slot: Local
    count: Instruction
    element: Type


@dataclass(eq=False)
class CarriedHandles:
    """The phis of handles of one function."""

    context: ExpansionContext
    _carried: list[_CarriedHandle] = field(default_factory=list[_CarriedHandle])
    _pending_handles: list[_CarriedHandle] = field(default_factory=list[_CarriedHandle])

    def replace_phi(self, phi: Instruction) -> None:
        """Replace a phi of handles by a phi of its count."""
        e = self.context
        assert isinstance(phi.type, VectorType)
        element = I8 if phi.type.element == I1 else phi.type.element
        slot = e.heap.slot(f"{phi.result}")
        name = e.function.names.fresh(f"{phi.result}.count")
        count = Instruction("phi", I64, [], f"%{name} = phi i64 ", result=name)
        e.b.block.instructions.insert(e.b.index, count)
        e.b.index += 1
        carried = _CarriedHandle(phi, e.b.block, slot, count, element)
        self._carried.append(carried)
        self._pending_handles.append(carried)

    def load_addresses(self) -> None:
        """Load the addresses of carried handles after the phis of a block."""
        for carried in self._pending_handles:
            pointer = self.context.heap.memory_of(carried.slot, carried.element)
            self.context.handles[str(carried.phi.result)] = DenseHandle(pointer, carried.count.value, carried.element)
        self._pending_handles = []

    def emit_edges(self) -> None:
        """On each edge to a block with phis of handles: copy all incoming values, then move the copies to the slots."""
        blocks = {id(c.block): c.block for c in self._carried}
        for block in blocks.values():
            carried = [c for c in self._carried if c.block is block]
            for predecessor in dict.fromkeys(name for _, name in carried[0].phi.incoming):
                self._emit_edge(block, predecessor, carried)

    def _emit_edge(self, block: Block, predecessor: str, carried: list[_CarriedHandle]) -> None:
        b = self.context.b
        origin = b.function.block(self._renamed(block, predecessor))
        edge = self._edge(origin, block)
        b.block, b.index, b.debug = edge, len(edge.instructions) - 1, edge.terminator.debug_location
        copies = [self._copied(c, next(v for v, name in c.phi.incoming if name == predecessor)) for c in carried]
        pointer = b.pointer(I8)
        for c, (fresh, count) in zip(carried, copies, strict=True):
            emit_release(b, b.load(pointer, c.slot, 8, "old"))
            b.store(b.load(pointer, fresh, 8, "carried"), c.slot, 8)
            b.store(Keyword(pointer, "null"), fresh, 8)
            add_incoming(c.count, count, edge.name)
            c.count.spans = None

    def _renamed(self, block: Block, predecessor: str) -> str:
        """The current source block of an edge: emitted loops may have split the original one."""
        names = {b.name: b for b in self.context.function.blocks}
        current = names.get(predecessor)
        if current is not None and block.name in current.terminator.successors:
            return predecessor
        return self.context.last_block[predecessor]

    def _copied(self, carried: _CarriedHandle, value: Value) -> tuple[Local, Value]:
        """A copy of an incoming value, in a slot of the edge."""
        e = self.context
        handle = e.handle(value)
        slot = e.heap.slot(f"{carried.phi.result}.next")
        memory = e.heap.allocate_in(slot, handle.count, carried.element)
        e.b.memcpy(memory, handle.pointer, e.b.mul(handle.count, bytes_of(carried.element), "bytes"))
        return slot, handle.count

    def _edge(self, origin: Block, block: Block) -> Block:
        """A block on this edge alone; a critical edge is split."""
        if set(origin.terminator.successors) == {block.name}:
            return origin
        b = self.context.b
        edge = b.new_block(f"{block.name}.entry", origin)
        rename_incoming(b.function, [block.name], origin.name, edge.name)
        terminator = origin.terminator
        for index, operand in enumerate(terminator.operands):
            if operand == block.value:
                set_operand(terminator, index, edge.value)
        b.at_end(edge)
        b.branch(block)
        return edge


@dataclass(eq=False)
class FusedLoops:
    """The elementwise instructions of one function."""

    context: ExpansionContext
    _pending: dict[str, Instruction] = field(default_factory=dict[str, Instruction])
    _uniforms: dict[str, Value] = field(default_factory=dict[str, Value])

    def __post_init__(self) -> None:
        self._definitions = definitions(self.context.function)
        self._uses = uses(self.context.function)
        self._blocks = {id(i): b.name for b in self.context.function.blocks for i in b.instructions}

    def visit(self, instruction: Instruction) -> None:
        """Emit an instruction now, or fused with its only user."""
        if self._is_fused(instruction) or instruction.result in self.context.decisions.sunk_stores:
            self._pending[str(instruction.result)] = instruction
        elif self._uses.get(str(instruction.result)):
            self._emit(instruction)

    def _is_fused(self, instruction: Instruction) -> bool:
        """Whether the only user is an elementwise instruction in the same block."""
        used: list[Use] = self._uses.get(str(instruction.result), [])
        if len(used) != 1 or used[0].instruction.opcode == "phi":
            return False
        user = used[0].instruction
        handles, dynamic = self.context.tensors.dynamic.handles, self.context.tensors.dynamic
        same_block = self._blocks[id(user)] == self._blocks[id(instruction)]
        return same_block and user.result in handles and dynamic.op_of(user) is None and self._size(instruction) < 32

    def _size(self, instruction: Instruction) -> int:
        """Number of instructions in an expression."""
        fused = [self._pending.get(o.name) for o in instruction.operands if isinstance(o, Local)]
        return 1 + sum(self._size(operand) for operand in fused if operand is not None)

    def emit_at(self, name: str, pointer: Value, count: Value) -> None:
        """Emit an instruction that is sunk to its store.

        Args:
            name: Name of the instruction.
            pointer: The address that the store writes to.
            count: How many elements it writes.
        """
        self._emit(self._pending.pop(name), pointer, count)

    def _emit(self, root: Instruction, destination: Value | None = None, count: Value | None = None) -> None:
        e = self.context
        expression = FusedExpression([], [], [])
        self._collect(root, expression)
        handles = [e.handles[leaf.name] for leaf in expression.leaves]
        for handle in handles[1:]:
            e.checks.compare("eq", handles[0].count, handle.count)
        if count is not None:
            e.checks.compare("eq", handles[0].count, count)
        e.checks.emit()
        assert isinstance(root.type, VectorType)
        element = I8 if root.type.element == I1 else root.type.element
        out = (
            e.new_handle(root, handles[0].count, element)
            if destination is None
            else DenseHandle(destination, handles[0].count, element)
        )
        parameters: list[tuple[str, Type | NoAliasPointer]] = [("to", NoAliasPointer(out.element))]
        parameters += [(f"leaf{k}", NoAliasPointer(handle.element)) for k, handle in enumerate(handles)]
        parameters += [*i64_parameters("count"), *((f"s{k}", s.value.type) for k, s in enumerate(expression.scalars))]
        args = [out.pointer, *(f.pointer for f in handles), out.count, *(s.value for s in expression.scalars)]

        def build(inner: TensorBuilder, p: dict[str, Local]) -> None:
            ExpressionLoops(inner, p, expression, root).run()

        name = f"map.{e.function.name}.{root.result}".replace('"', "")
        e.helpers.call(e.b, name, parameters, args, build)

    def _collect(self, instruction: Instruction, expression: FusedExpression) -> None:
        """Add an instruction and those that are fused into it to an expression, operands first."""
        for operand in elementwise_operands(instruction):
            fused = self._pending.pop(operand.name, None) if isinstance(operand, Local) else None
            if fused is not None:
                self._collect(fused, expression)
            elif isinstance(operand, Local) and operand.name in self.context.tensors.dynamic.handles:
                self.context.handles.setdefault(operand.name, self.context.handle(operand))
                expression.add_leaf(HandleOperand(operand.name, operand.type))
            else:
                self._add_scalar(operand, expression)
        expression.nodes.append(instruction)

    def add_uniform(self, instruction: Instruction) -> None:
        """Compute an instruction on splats once, on their scalars."""
        if instruction.opcode == "shufflevector":
            self._uniforms[str(instruction.result)] = self._scalar(instruction.operands[0])
            return
        operation = ElementwiseOp.of(instruction)
        assert operation is not None, instruction.text
        assert isinstance(instruction.type, VectorType)
        scalars = [self._scalar(operand) for operand in elementwise_operands(instruction)]
        name = str(instruction.result)
        self._uniforms[name] = operation.emit(self.context.b, instruction.type.element, scalars, name)

    def _scalar(self, operand: Value) -> Value:
        """The scalar of a splat, and any other operand itself."""
        if isinstance(operand, Local) and operand.name in self._uniforms:
            return self._uniforms[operand.name]
        scalar = first_lane_scalar(operand, self._definitions) if is_handle_type(operand.type) else operand
        assert scalar is not None, operand
        return scalar

    def _add_scalar(self, operand: Value, expression: FusedExpression) -> None:
        scalar = self._scalar(operand)
        if isinstance(scalar, Constant):
            expression.constants[str(operand.typed)] = scalar
        else:
            expression.add_scalar(UniformOperand(str(operand.typed), scalar))

    def remove_uniforms(self) -> None:
        """Remove the scalable vectors, splats and instructions on them, that nothing but handles used."""
        function, uniforms = self.context.function, self.context.tensors.dynamic.uniforms
        remove_dead(function, [i for i in function.instructions() if i.result in uniforms or _makes_splat(i)])


@dataclass(eq=False)
class FunctionExpansion:
    """Rewrites one function.

    Attributes:
        context: What the rules share.
        rules: How each operation is expanded, by the intrinsic's name.
        product_into: Expands a product that is sunk to its only store.
    """

    context: ExpansionContext
    rules: Mapping[str, Callable[[ExpansionContext, DynamicOp], None]]
    product_into: Callable[[ExpansionContext, DynamicOp, DynamicOp], None]

    def __post_init__(self) -> None:
        self.fused_loops = FusedLoops(self.context)
        self.phis = CarriedHandles(self.context)

    def run(self) -> None:
        """Expand the function."""
        e = self.context
        blocks, flow = {block.name: block for block in e.function.blocks}, e.decisions.flow
        reachable = [blocks[name] for name in flow.order]
        for block in [*reachable, *(b for n, b in blocks.items() if n not in flow.dominators)]:
            self._block(block)
        e.heap.block = ""
        self.phis.emit_edges()
        e.heap.finish()
        self.fused_loops.remove_uniforms()
        allow_heap(e.module, e.function)

    def _block(self, block: Block) -> None:
        b = self.context.b
        b.block, b.index = block, 0
        self.context.heap.block = block.name
        for instruction in list(block.instructions):
            assert b.block.instructions[b.index] is instruction
            b.debug, b.span = instruction.debug_location, instruction.span
            if instruction.opcode != "phi":
                self.phis.load_addresses()
            self._instruction(instruction)
        self.context.last_block[block.name] = b.block.name

    def _instruction(self, instruction: Instruction) -> None:
        dynamic = self.context.tensors.dynamic
        op = dynamic.op_of(instruction)
        token = dynamic.tokens.get(instruction.result or "")
        if op is not None:
            self.context.remove()
            self._operation(op)
        elif token is not None:
            self.context.remove()
            if not self.context.decisions.is_direct(token):
                self.context.views[str(instruction.result)] = self.context.view_of(token)
        elif instruction.result in dynamic.handles:
            self.context.remove()
            self.phis.replace_phi(instruction) if instruction.opcode == "phi" else self.fused_loops.visit(instruction)
        else:
            if instruction.result in dynamic.uniforms:
                self.fused_loops.add_uniform(instruction)
            self.context.b.index += 1

    def _operation(self, op: DynamicOp) -> None:
        if op.pointer is not None:
            sunk = self.context.decisions.sunk(op)
            product_ = self.context.tensors.dynamic.op_of(sunk) if sunk is not None else None
            if product_ is not None:
                self.product_into(self.context, product_, op)
            elif sunk is not None:
                self._map_into(str(sunk.result), op)
            else:
                self._store(op)
        elif op.instruction.result not in self.context.decisions.sunk_stores:
            self.rules[op.intrinsic.name](self.context, op)

    def _map_into(self, name: str, store: DynamicOp) -> None:
        """An elementwise expression that is sunk to its only store."""
        (tensor,) = store.tensors
        assert isinstance(tensor, DynamicTensor)
        assert store.pointer is not None
        if tensor.element == I1:
            raise LoweringError(_BITS, tensor.definition.span)
        e = self.context
        shape = e.entries.of(tensor.shape)
        for size in shape:
            e.checks.compare("sge", size, i64(1))
        e.checks.require_countable(shape)
        self.fused_loops.emit_at(name, store.pointer, product(e.b, shape))

    def _store(self, op: DynamicOp) -> None:
        assert op.pointer is not None
        e = self.context
        view = e.view(op.tensors[0])
        steps = e.store_strides(op, list(view.shape), list(view.data_shape))
        copy_strided(e.helpers, e.b, view.element, (op.pointer, steps), (view.pointer, view.memory_dims))


def _makes_splat(instruction: Instruction) -> bool:
    return instruction.opcode in ("insertelement", "shufflevector") and is_handle_type(instruction.type)
