"""The flattened vectors of a kernel as registers: the shape of each vector, and the lanes of its registers.

A vector's rows and columns come from the operations that define or read it, and propagate to the others.

Vectors that are computed from each other have registers of the same number of lanes, that of the widest element:

    %x = i8 tile     %w = sext %x to i32    %y = fptrunc %z to bfloat        16 lanes each, with 512 bits

So registers are not split or joined in between: 16 bytes are loaded and extended at once. Sums of products keep whole
registers.

Rewrite, 2x32 accumulator with 16 lanes:

    %acc = phi <64 x float> [ zeroinitializer, %e ], [ %n, %l ]    ->    four phis of <16 x float>
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from tlx.diagnostics import LoweringError
from tlx.ir.builder import Builder
from tlx.ir.functions import Function
from tlx.ir.instructions import Instruction
from tlx.ir.module import Module
from tlx.ir.rewrite import add_incoming
from tlx.ir.tensors.inference import analyse
from tlx.ir.tensors.model import FunctionTensors, Tensor, TensorOp
from tlx.ir.types import Type, VectorType, bits_of, scalar_of
from tlx.ir.values import Aggregate, Keyword, Local, Splat, Value, zero
from tlx.lower.context import LoweringContext
from tlx.lower.legalize.memory import load_tile, load_transposed, transposed_lanes
from tlx.lower.legalize.registers import Registers, constant_registers, gatherer, reshaped, transposed, with_lanes
from tlx.lower.legalize.vnni import permuted_columns
from tlx.lower.operations import MMA_SIGNS, UNARY_INTRINSICS, ElementwiseOp, unary_bits, working_bits
from tlx.target.target import Target

TileShapes = dict[str, tuple[Type, int, int]]


def value_shapes(function: Function, tensors: FunctionTensors) -> TileShapes:
    """Element type, rows and columns of every flattened tile value, by name.

    A vector has the shape of the operation that defines it, or of the typeinfo that reads it.
    """
    shapes: TileShapes = {}
    for name, type_ in tensors.result_types().items():
        shapes[name] = type_.element, type_.shape[0], type_.count // type_.shape[0]
    for tensor in tensors.tokens.values():
        if tensor.kind == "value" and isinstance(tensor.source, Local):
            type_ = tensor.type
            shapes.setdefault(tensor.source.name, (type_.element, type_.shape[0], type_.count // type_.shape[0]))
    for instruction in function.instructions():
        if instruction.opcode == "shufflevector" and isinstance(instruction.type, VectorType):
            shapes[instruction.result or ""] = instruction.type.element, 1, instruction.type.count
    return _propagate_shapes(function, shapes)


def _propagate_shapes(function: Function, shapes: TileShapes) -> TileShapes:
    """Propagate shapes through phis, casts and arithmetic, in both directions."""
    groups = list(_vectors_of_one_shape(function))
    changed = True
    while changed:
        changed = False
        groups = [group for group in groups if any(value.name not in shapes for value in group)]
        for group in groups:
            shape = next((shapes[value.name] for value in group if value.name in shapes), None)
            for value in group:
                if shape is not None and value.name not in shapes:
                    shapes[value.name] = scalar_of(value.type), shape[1], shape[2]
                    changed = True
    return shapes


def _vectors_of_one_shape(function: Function) -> Iterator[list[Local]]:
    """The vectors that each phi, cast and elementwise instruction reads, and the one that it defines."""
    for instruction in function.instructions():
        if instruction.opcode == "phi" or ElementwiseOp.of(instruction) is not None:
            values = [*instruction.operands, *([instruction.value] if instruction.result else [])]
            vectors = [value for value in values if isinstance(value, Local) and isinstance(value.type, VectorType)]
            if len(vectors) > 1:
                yield vectors


def lanes_of_bits(vector_bytes: int, bits: int) -> int:
    """Elements of `bits` bits per register; i1 takes a byte."""
    return max(1, vector_bytes * 8 // max(8, bits))


_LOADS: Final = frozenset({"tovector", "broadcast", "transpose"})


def lane_counts(
    function: Function,
    tensors: FunctionTensors,
    tiles: set[str],
    target: Target,
    converts_pairs: Callable[[Instruction], bool],
) -> dict[str, int]:
    """Lanes of the registers of flattened vectors, by name, where operations on them determine the number.

    Args:
        function: The kernel.
        tensors: Its tensors.
        tiles: Names of its flattened vectors.
        target: The machine.
        converts_pairs: Whether an instruction converts a whole register of bfloats to two of floats, or back; both may
            be computed on whole registers then.
    """
    groups = _WidthGroups(target)
    sums = _sums(tensors)
    for instruction in function.instructions():
        if instruction.result in tiles and instruction.result not in sums:
            if converts_pairs(instruction):
                groups.begin(instruction)
            else:
                groups.add(instruction, tensors.op_of(instruction), sums)
    return {name: lanes_of_bits(target.vector_bytes, groups.bits[groups.root(name)]) for name in groups.parents}


def _sums(tensors: FunctionTensors) -> set[str]:
    """Names of the sums of products."""
    names: set[str] = set()
    for op in tensors.ops:
        if op.intrinsic.name in MMA_SIGNS:
            names.add(op.instruction.result or "")
            source = op.tensors[0].source
            names |= {source.name} if isinstance(source, Local) else set()
    return names


@dataclass(eq=False)
class _WidthGroups:
    """Sets of values that are computed from each other (union-find), with the widest element of each."""

    target: Target
    parents: dict[str, str] = field(default_factory=dict[str, str])
    bits: dict[str, int] = field(default_factory=dict[str, int])

    def root(self, name: str) -> str:
        while self.parents[name] != name:
            self.parents[name] = self.parents[self.parents[name]]
            name = self.parents[name]
        return name

    def begin(self, instruction: Instruction) -> None:
        """Begin a group with an instruction, apart from those of its operands."""
        name = instruction.value.name
        self._join(name, name, working_bits(instruction.type, moved=True))

    def add(self, instruction: Instruction, op: TensorOp | None, sums: set[str]) -> None:
        """Join an instruction to the groups of its operands."""
        if op is not None:
            bits = self._bits_of_op(op)
            names = [t.source.name for t in op.tensors if t.kind == "value" and isinstance(t.source, Local)]
            names = [] if op.intrinsic.name == "broadcast" else names
        else:
            bits = self._bits_of_instruction(instruction)
            names = [o.name for o in instruction.operands if isinstance(o, Local) and isinstance(o.type, VectorType)]
        if bits is not None and instruction.result is not None:
            for name in [instruction.result, *names]:
                if name not in sums:
                    self._join(instruction.result, name, bits)

    def _bits_of_op(self, op: TensorOp) -> int | None:
        name = op.intrinsic.name
        if name not in UNARY_INTRINSICS | _LOADS:
            return None
        return (
            working_bits(op.instruction.type, moved=True)
            if name in _LOADS
            else unary_bits(name, op.instruction.type, self.target)
        )

    def _bits_of_instruction(self, instruction: Instruction) -> int | None:
        operation = ElementwiseOp.of(instruction)
        vectors = [v.type for v in [*instruction.operands, instruction.value] if isinstance(v.type, VectorType)]
        if operation is not None:
            return operation.bits([scalar_of(v) for v in vectors], self.target)
        return working_bits(instruction.type, moved=True) if instruction.opcode == "phi" else None

    def _join(self, first: str, second: str, bits: int) -> None:
        for name in (first, second):
            self.parents.setdefault(name, name)
            self.bits.setdefault(name, 8)
        one, other = self.root(first), self.root(second)
        self.parents[other] = one
        self.bits[one] = max(self.bits[one], self.bits[other], bits)


class TileValues:
    """The registers of a kernel's flattened vectors.

    Attributes:
        b: Builder at the current instruction.
        tensors: The kernel's tensor operations.
        tiles: Registers of the flattened vectors emitted so far, by name.
        permuted: The source of each vector with permuted columns, by name.
        phis: Phis of vectors, each with those of its registers.
        ends: Name of the last part of each block that was split, by the block's name.
        shapes: The shape of each flattened vector; see `value_shapes`.
        lane_counts: Lanes of a vector's registers; see `lane_counts`.
        gather: Gathers elements of registers, if the target has an instruction.
    """

    def __init__(self, module: Module, function: Function, context: LoweringContext) -> None:
        self.module = module
        self.function = function
        self.context = context
        self.target: Target = context.target
        self.tensors: FunctionTensors = analyse(module, function)
        self.b = Builder(module, function)
        self.tiles: dict[str, Registers] = {}
        self.permuted: dict[str, Tensor] = {}
        self.phis: list[tuple[Instruction, list[Instruction]]] = []
        self.ends: dict[str, str] = {}
        self.shapes = value_shapes(function, self.tensors)
        self.lane_counts: dict[str, int] = {}
        self.gather = gatherer(self.b, self.target)

    def _keep(self, instruction: Instruction) -> None:
        self.b.block.instructions.append(instruction)
        self.b.index = len(self.b.block.instructions)

    def lanes(self, element: Type) -> int:
        """Elements per register."""
        return lanes_of_bits(self.target.vector_bytes, bits_of(element))

    def lanes_for(self, value: Value, element: Type) -> int:
        """Elements per register of a flattened vector: see `lane_counts`, else as many as a register holds."""
        count = self.lane_counts.get(value.name) if isinstance(value, Local) else None
        return count or self.lanes(element)

    def set(self, instruction: Instruction, tile: Registers) -> None:
        """Set the registers of a result."""
        if instruction.result is not None:
            self.tiles[instruction.result] = tile

    def flat(self, value: Value, element: Type, rows: int, cols: int, lanes: int | None = None) -> Registers:
        """Registers of a flattened vector, as rows x cols; constants have registers of `lanes`."""
        if isinstance(value, Keyword | Splat | Aggregate):
            return constant_registers(value, element, rows, cols, lanes or self.lanes(element))
        if isinstance(value, Local) and (source := self.permuted.get(str(value))) is not None:
            self.tiles[value.name] = permuted_columns(self.b, self.registers(source), source.type.shape, self.gather)
        tile = self.tiles.get(value.name) if isinstance(value, Local) else None
        if tile is None:
            raise LoweringError(f"{value} is not the result of a tile operation", self.function.span)
        if (tile.rows, tile.cols) == (rows, cols):
            return tile
        if (reshaped_tile := reshaped(self.b, tile, rows, cols)) is None:
            message = f"a {tile.rows}x{tile.cols} tile is read as {rows}x{cols}"
            raise LoweringError(message, self.function.span)
        return reshaped_tile

    def registers(self, tensor: Tensor, result: Value | None = None) -> Registers:
        """Registers of a token, rows and columns in memory order; a load has registers as wide as those of `result`."""
        type_ = tensor.type
        lanes = self.lanes_for(result or tensor.source, type_.element)
        if tensor.kind == "value":
            return self.flat(tensor.source, type_.element, type_.shape[0], type_.count // type_.shape[0], lanes)
        return load_tile(self.b, self.target, tensor.source, type_, tensor.pitches, lanes)

    def transposed(self, tensor: Tensor) -> Registers:
        """A tile in the other order."""
        lanes = self.lanes_for(tensor.source, tensor.type.element)
        if tensor.kind != "value":
            loaded = load_transposed(self.b, self.target, tensor.source, tensor.type, tensor.pitches, lanes)
            return loaded or transposed(self.b, self.registers(tensor), self.target)
        tile = self.registers(tensor)
        return transposed_lanes(self.b, tile) or transposed(self.b, tile, self.target)

    def phi(self, instruction: Instruction, element: Type, rows: int, cols: int) -> None:
        """Emit one phi for each register; `_finish_phis` adds the incoming values."""
        lanes = self.lanes_for(instruction.value, element)
        sample = constant_registers(zero(instruction.type), element, rows, cols, lanes)
        name = instruction.result or ""
        phis = [self.b.emit("phi", r.type, [], f"phi {r.type} ", name) for r in sample.flat()]
        self.phis.append((instruction, phis))
        self.set(instruction, sample.replaced([phi.value for phi in phis]))

    def _finish_phis(self) -> None:
        for phi, register_phis in self.phis:
            element, rows, cols = self.shapes[phi.result or ""]
            for value, block in phi.incoming:
                block = self.ends.get(block, block)
                lanes = self.lanes_for(phi.value, element)
                source = self.function.block(block)
                self.b.block, self.b.index = source, len(source.instructions) - 1
                tile = with_lanes(self.b, self.flat(value, element, rows, cols, lanes), lanes)
                for instruction, register in zip(register_phis, tile.flat(), strict=True):
                    add_incoming(instruction, register, block)
