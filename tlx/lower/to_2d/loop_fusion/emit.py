"""Emission: the loop of a group. Its operations are those of the group on tensors of a part's extents.

Rewrite, with results that others read in buffers::

    %w = fmul <3145728 x float> %s, ...              part.loop:
    %t = typeinfo(%w, <12, 512, 512>)                  %part = phi i64 [ 0, ... ]
    %e = exp(%t)                              ->       %w.1 = fmul <262144 x float> %s.1, ...
    %y = ... %e ...                                    %t.1 = typeinfo(%w.1, <1, 512, 512>)
                                                       %e.1 = exp(%t.1)
                                                       store(%e.buf + %part * 262144, typeinfo(%e.1, ...))
                                                       br ..., !tlx.independent !{}
                                                     part.end:
                                                       %e.whole = load <3145728 x float>, ptr %e.buf
                                                       %y = ... %e.whole ...
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.control_flow import INDEPENDENT_METADATA
from tlx.ir.rewrite import remove_dead, set_operand, uses
from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.tensors.model import Tensor, TensorOp
from tlx.ir.types import I1, I32, I64, TOKEN, VectorType
from tlx.ir.values import Constant, ConstInt, Keyword, Local, Splat, Value, const_ints
from tlx.lower.memory.buffers import PrivateBuffer
from tlx.lower.memory.views import pitches_of, reshaped_strides, storage_type
from tlx.lower.operations import ElementwiseOp
from tlx.lower.to_2d.analysis.facts import Facts
from tlx.lower.to_2d.analysis.tensor_operations import ORDINARY, call_operands, splat_value
from tlx.lower.to_2d.loop_fusion.profit import FusedLoop
from tlx.lower.to_2d.loop_fusion.splits import Split, operand_splits, part_dims
from tlx.lower.to_2d.memory.padding import Crop

_RENAMINGS: Final = ("freeze", "bitcast")


def emit_loops(facts: Facts, loops: Sequence[FusedLoop]) -> list[str]:
    """Replace the operations of groups by loops.

    Args:
        facts: The analyses of the function, which are invalid afterwards.
        loops: The loops, in program order; they are disjoint.

    Returns:
        The names of the blocks of their bodies.
    """
    emitters = [_LoopEmitter(facts, loop) for loop in reversed(loops)]  # positions before a loop stay valid
    bodies = [emitter.emit() for emitter in emitters]
    used = uses(facts.function)
    for emitter in emitters:
        for name, whole in emitter.wholes.items():
            for use in used.get(name, ()):
                set_operand(use.instruction, use.index, whole)
    _remove_replaced(facts, loops)
    return bodies


def _remove_replaced(facts: Facts, loops: Iterable[FusedLoop]) -> None:
    """Remove what only the operations that are in loops now have used."""
    instructions = list(facts.function.instructions())
    tokens = [tensor.definition for tensor in facts.tensors.tokens.values()]
    copies = [op.instruction for loop in loops for key, op in loop.group.ops.items() if key in loop.group.copies]
    renamings = [i for i in instructions if i.opcode in _RENAMINGS and facts.vectors.is_renaming(i)]
    loads = [i for i in instructions if i.opcode == "load" and isinstance(i.type, VectorType)]
    remove_dead(facts.function, [*tokens, *copies, *renamings, *loads])


@dataclass(eq=False)
class _LoopEmitter:
    """Emits one loop.

    Attributes:
        facts: The analyses of the function.
        loop: The loop.
        inputs: The buffers of results from outside that the loop reads part by part, by name.
        crops: The parts of larger results from outside that the loop reads part by part, by name.
        outputs: The buffers of results of the loop that others read, by name.
        wholes: These results as others read them, by name.
        values: The parts of the results, in the body of the loop, by name.
    """

    facts: Facts
    loop: FusedLoop
    inputs: dict[str, PrivateBuffer] = field(default_factory=dict[str, PrivateBuffer])
    crops: dict[str, Crop] = field(default_factory=dict[str, Crop])
    outputs: dict[str, PrivateBuffer] = field(default_factory=dict[str, PrivateBuffer])
    wholes: dict[str, Value] = field(default_factory=dict[str, Value])
    values: dict[str, Local] = field(default_factory=dict[str, Local])

    def __post_init__(self) -> None:
        self.b = TensorBuilder(self.facts.module, self.facts.function)
        self.index: Value = ConstInt(I64, 0)

    def emit(self) -> str:
        """Replace the operations; returns the name of the loop's body.

        Uses of the results outside of the loop are left for `wholes`.
        """
        placement = self.loop.placement
        block = self.facts.flow.blocks[self.loop.group.block.name]
        for name in placement.results:
            self.outputs[name] = self._buffer(name)
        self._store_inputs()
        end = block.instructions.index(placement.last) + 1
        inside = placement.inside.keys() | set(map(id, placement.moved))
        before = [i for i in block.instructions[:end] if id(i) not in inside]
        block.instructions[:end] = before
        self.b.block, self.b.index = block, len(before)
        ordered = sorted(self.loop.group.ops.values(), key=lambda op: self.facts.positions[id(op.instruction)][1])
        with self.b.loop(0, self.loop.trips, name="part") as state:
            state.mark, self.index, body = INDEPENDENT_METADATA, state.index, self.b.block.name
            for op in ordered:
                self._operation(op)
        for name in placement.results:
            self._load_result(name)
        self.b.block.instructions[self.b.index : self.b.index] = placement.moved
        return body

    # Memory at the boundary of the loop --------------------------------------------------------------------------

    def _buffer(self, name: str) -> PrivateBuffer:
        definition = self.facts.vectors.definitions[name]
        type_ = definition.type
        assert isinstance(type_, VectorType)
        return self.facts.buffers.new(storage_type(type_.element), type_.count, name, definition.span)

    def _store_inputs(self) -> None:
        """Store the results from outside that the loop reads part by part."""
        for op in self.loop.group.ops.values():
            splits = operand_splits(op, self.loop.split_of(op))
            assert splits is not None
            for tensor, part in zip(op.tensors, splits, strict=True):
                root = self.facts.vectors.root(tensor.source) if tensor.kind == "value" and part is not None else None
                is_outside = isinstance(root, Local) and root.name not in self.loop.group.splits
                if is_outside and isinstance(root, Local) and self.facts.vectors.kind(root) == "op":
                    self._store_input(root)

    def _crop_of(self, value: Local) -> tuple[Local, Crop] | None:
        """The result that an input is a part of, if it can be read there with pitches wherever the loop reads it."""
        op = self.facts.op_of(value)
        crop = Crop.of(op)
        if crop is None or op.tensors[0].kind != "value" or op.tensors[0].type.element == I1:
            return None
        source = self.facts.vectors.root(op.tensors[0].source)
        if not isinstance(source, Local) or self.facts.vectors.kind(source) != "op":
            return None
        for reader in self.loop.group.ops.values():
            for tensor in reader.tensors:
                if tensor.kind == "value" and self.facts.vectors.root(tensor.source) == value:
                    is_flat = reader.intrinsic.name == ORDINARY or tensor.type.is_padded
                    if is_flat or _crop_pitches(crop, tensor.type) is None:
                        return None
        return source, crop

    def _store_input(self, value: Local) -> None:
        if value.name in self.inputs:
            return
        cropped = self._crop_of(value)
        if cropped is not None:
            source, self.crops[value.name] = cropped
            self._store_input(source)
            self.inputs[value.name] = self.inputs[source.name]
            return
        self.inputs[value.name] = self._buffer(value.name)
        definition = self.facts.vectors.definitions[value.name]
        block = next(block for block in self.facts.function.blocks if definition in block.instructions)
        b = TensorBuilder(self.facts.module, self.facts.function, block, block.instructions.index(definition) + 1)
        b.debug, b.span = definition.debug_location, definition.span
        type_ = _flat(value)
        others = self.facts.vectors.uses.get(value.name, ())
        b.tensor_store(self.inputs[value.name].pointer, b.typeinfo(value, type_))
        if type_.element != I1:
            whole = b.load(type_.vector, self.inputs[value.name].pointer, self.inputs[value.name].align)
            for use in others:
                if id(use.instruction) not in self.loop.group.ops:
                    set_operand(use.instruction, use.index, whole)

    def _load_result(self, name: str) -> None:
        """Load a whole result after the loop."""
        buffer = self.outputs[name]
        type_ = _flat(self.facts.vectors.definitions[name].value)
        self.wholes[name] = (
            self.b.tovector(self.b.tensor_load(buffer.pointer, type_), name=f"{name}.whole")
            if type_.element == I1
            else self.b.load(type_.vector, buffer.pointer, buffer.align, f"{name}.whole")
        )

    # The body ----------------------------------------------------------------------------------------------------

    def _operation(self, op: TensorOp) -> None:
        b, instruction = self.b, op.instruction
        b.span, b.debug = instruction.span, instruction.debug_location
        split = self.loop.split_of(op)
        splits = operand_splits(op, split)
        assert splits is not None
        name = str(instruction.result)
        if op.pointer is not None:
            self._tensor_store(op, split)
            return
        if op.intrinsic.name == ORDINARY:
            assert isinstance(instruction.type, VectorType)
            operands = [
                self._vector(o, split) if isinstance(o.type, VectorType) else o for o in call_operands(instruction)
            ]
            operation = ElementwiseOp.of(instruction)
            assert operation is not None
            value = operation.emit(b, VectorType(split.part_count, instruction.type.element), operands, name)
        else:
            value = self._tensor_operation(op, split, splits)
        assert isinstance(value, Local)
        self.values[name] = value
        if name in self.outputs:
            self._store_part(value, self.outputs[name].pointer, split)
        for store in self.loop.placement.stores:
            root = self.facts.vectors.root(store.operands[0])
            if root == instruction.value:
                self._store_part(value, store.operands[1], split)

    def _tensor_operation(self, op: TensorOp, split: Split, splits: tuple[Split | None, ...]) -> Local:
        assert op.result is not None
        tensors, dims = iter(zip(op.tensors, splits, strict=True)), iter(part_dims(op, split))
        args: list[Value] = []
        for argument in op.instruction.args:
            if argument.type == TOKEN:
                tensor, part = next(tensors)
                args.append(argument if part is None else self._token(tensor, part))
            elif isinstance(argument.type, VectorType) and op.intrinsic.name != "pad":
                args.append(const_ints(I32, next(dims)))
            else:
                args.append(argument)
        return self.b.repeat(op.instruction, op.intrinsic.name, args, _part_type(op.result, split))

    def _tensor_store(self, op: TensorOp, split: Split) -> None:
        (tensor,) = op.tensors
        assert op.pointer is not None
        pointer, pitches = self._part_pointer(op.pointer, tensor.type, op.pitches, split)
        type_ = _part_type(tensor.type, split)
        self.b.tensor_store(pointer, self._token(tensor, split), pitches, type_)

    def _store_part(self, value: Local, pointer: Value, split: Split) -> None:
        """Store a part of a flattened vector to its place in the whole vector."""
        assert isinstance(value.type, VectorType)
        type_, pitches = _pieces(value.type, split)
        at = self.b.gep(storage_type(type_.element), pointer, self.b.mul(self.index, split.inner, "offset"), "part.ptr")
        self.b.tensor_store(at, self.b.typeinfo(value, type_), pitches)

    # Operands ----------------------------------------------------------------------------------------------------

    def _token(self, tensor: Tensor, split: Split) -> Local:
        """A token for a part of an operand."""
        if tensor.kind != "value":
            return self._load_part(tensor.source, tensor.type, tensor.pitches, split)
        root = self.facts.vectors.root(tensor.source)
        memory = self._memory(root)
        if memory is not None:
            crop = self.crops.get(root.name) if isinstance(root, Local) else None
            if crop is None:
                return self._load_part(memory, tensor.type, None, split)
            start = self.b.gep(tensor.type.element, memory, crop.offset, "crop")
            return self._load_part(start, tensor.type, _crop_pitches(crop, tensor.type), split)
        return self.b.typeinfo(self._vector(tensor.source, split), _part_type(tensor.type, split))

    def _vector(self, value: Value, split: Split) -> Value:
        """A part of a flattened vector, which may be another one whose elements have other types."""
        root = self.facts.vectors.root(value)
        assert isinstance(root.type, VectorType)
        assert isinstance(value.type, VectorType)
        part = self._root_vector(root, VectorType(split.part_count, root.type.element), split)
        return self.b.cast("bitcast", part, VectorType(split.part_count, value.type.element))

    def _root_vector(self, root: Value, vector: VectorType, split: Split) -> Value:
        """A part of a flattened vector that is no other one: of a result of the loop, of memory, or constant."""
        if isinstance(root, Local) and root.name in self.values:
            return self.values[root.name]
        memory = self._memory(root)
        if memory is None:
            return _splat(root, vector, self.facts)
        type_, pitches = _pieces(vector, split)
        at = self.b.gep(storage_type(type_.element), memory, self.b.mul(self.index, split.inner, "offset"), "part.ptr")
        return self.b.tovector(self.b.tensor_load(at, type_, pitches), type_)

    def _memory(self, root: Value) -> Value | None:
        """The address of a vector that is in memory; None for results of the loop and constants."""
        if not isinstance(root, Local) or root.name in self.values:
            return None
        if root.name in self.inputs:
            return self.inputs[root.name].pointer
        return self.facts.vectors.definitions[root.name].operands[0]

    def _load_part(self, pointer: Value, type_: TensorType, pitches: tuple[int, ...] | None, split: Split) -> Local:
        pointer, part_pitches = self._part_pointer(pointer, type_, pitches, split)
        return self.b.tensor_load(pointer, _part_type(type_, split), part_pitches)

    def _part_pointer(
        self, pointer: Value, type_: TensorType, pitches: tuple[int, ...] | None, split: Split
    ) -> tuple[Value, list[int]]:
        """The address of the first element of a part of a tensor in memory, and the pitches of the part."""
        k = split.position_in(type_)
        assert k is not None
        step = type_.strides(pitches)[k] * split.positions(type_, k)
        offset = self.b.mul(self.index, step, "offset")
        at = self.b.gep(storage_type(type_.element), pointer, offset, "part.ptr")
        return at, [pitch or extent for pitch, extent in zip(pitches or type_.shape, type_.shape, strict=True)]


def _crop_pitches(crop: Crop, type_: TensorType) -> tuple[int, ...] | None:
    """The pitches of a load that reads a part of a larger tensor as a tensor of a type; None if there are none."""
    strides = reshaped_strides(crop.extents, crop.strides, type_.shape)
    return None if strides is None else pitches_of(type_.shape, strides)


def _flat(value: Value) -> TensorType:
    assert isinstance(value.type, VectorType)
    return TensorType.dense(value.type.element, (value.type.count,))


def _part_type(type_: TensorType, split: Split) -> TensorType:
    if split.position_in(type_) is None:
        return TensorType.dense(type_.element, (split.part_count,))
    return split.part_of(type_)


def _pieces(vector: VectorType, split: Split) -> tuple[TensorType, list[int] | None]:
    """A part of a flattened vector as a tensor in memory: its type and pitches."""
    if split.outer == 1:
        return TensorType.dense(vector.element, (split.inner,)), None
    return TensorType.dense(vector.element, (split.outer, split.inner)), [0, split.pitch]


def _splat(value: Value, vector: VectorType, facts: Facts) -> Value:
    """A constant with equal elements, of another number of elements."""
    if isinstance(value, Keyword):
        return Keyword(vector, value.word)
    scalar = splat_value(value, facts.vectors.definitions)
    assert isinstance(scalar, Constant)
    return Splat(vector, scalar)
