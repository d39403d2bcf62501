"""The flattened vectors of a kernel as registers: how many elements one has, and how a vector or a tile is read.

Rewrite, 2x32 accumulator with 16 lanes:

    %acc = phi <64 x float> [ zeroinitializer, %e ], [ %n, %l ]    ->    four phis of <16 x float>
"""

from __future__ import annotations

from tlx.diagnostics import LoweringError
from tlx.ir.analysis import analyse
from tlx.ir.builder import Builder
from tlx.ir.module import Function, Instruction, Module
from tlx.ir.rewriter import add_incoming
from tlx.ir.tensors import FunctionTensors, Tensor
from tlx.ir.types import Type, bits_of
from tlx.ir.values import Aggregate, Constant, Keyword, Local, Splat, Value
from tlx.lower.legalize.dealt import dealt
from tlx.lower.legalize.lane_transposes import load_transposed, transposed_lanes
from tlx.lower.legalize.memory import load_tile
from tlx.lower.legalize.permute import gatherer
from tlx.lower.legalize.registers import Registers, constant_registers
from tlx.lower.legalize.shapes import tile_shapes
from tlx.lower.legalize.shuffles import relaned, reshaped, transposed
from tlx.lower.stage import Context
from tlx.target import Target


class TileValues:
    """The registers of a kernel's flattened vectors.

    Attributes:
        b: Builder at the place of the instruction at hand.
        tensors: The kernel's tensor operations.
        tiles: Registers of every flattened vector so far, by name.
        permuted: What was permuted to make a vector whose columns are dealt out, by its name.
        phis: Phis of vectors, each with those of its registers.
        ends: The last part of each block that was cut, by its name.
        shapes: What each flattened vector is; see `tile_shapes`.
        lane_counts: Elements that a register of a vector has, where users and makers decide.
        gather: Gathers elements of registers, where an instruction does.
    """

    def __init__(self, module: Module, function: Function, context: Context) -> None:
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
        self.shapes = tile_shapes(function, self.tensors)
        self.lane_counts: dict[str, int] = {}
        self.gather = gatherer(self.b, self.target)

    def _keep(self, instruction: Instruction) -> None:
        self.b.block.instructions.append(instruction)
        self.b.index = len(self.b.block.instructions)

    def lanes(self, element: Type) -> int:
        """Elements per register."""
        return self.lanes_of_bits(max(8, bits_of(element)))

    def lanes_of_bits(self, bits: int) -> int:
        """Elements of so many bits per register."""
        return max(1, self.target.vector_bytes * 8 // bits)

    def lanes_for(self, value: Value, element: Type) -> int:
        """Elements per register that a flattened vector has, or that its users want."""
        known = self.lane_counts.get(value.name) if isinstance(value, Local) else None
        return known or self.lanes(element)

    def set(self, instruction: Instruction, tile: Registers) -> None:
        """Note the registers of a result."""
        if instruction.result is not None:
            self.tiles[instruction.result] = tile

    def flat(self, value: Value, element: Type, rows: int, cols: int, lanes: int | None = None) -> Registers:
        """Registers of a flattened vector, seen as rows x cols; constants come in registers of `lanes`."""
        if isinstance(value, Keyword | Splat | Aggregate):
            return constant_registers(value, element, rows, cols, lanes or self.lanes(element))
        if isinstance(value, Local) and (source := self.permuted.get(str(value))) is not None:
            self.tiles[value.name] = dealt(self.b, self.registers(source), source.type.shape, self.gather)
        tile = self.tiles.get(value.name) if isinstance(value, Local) else None
        if tile is None:
            raise LoweringError(f"{value} is no result of a tile operation", self.function.span)
        if (tile.rows, tile.cols) == (rows, cols):
            return tile
        if (found := reshaped(self.b, tile, rows, cols)) is None:
            msg = f"a {tile.rows}x{tile.cols} tile is read as {rows}x{cols}"
            raise LoweringError(msg, self.function.span)
        return found

    def registers(self, tensor: Tensor, result: Value | None = None) -> Registers:
        """Registers of a token, rows and columns in memory order, as wide as those of `result` where it is loaded."""
        type_ = tensor.type
        lanes = self.lanes_for(result or tensor.source, type_.element)
        if tensor.kind == "value":
            return self.flat(tensor.source, type_.element, type_.shape[0], type_.count // type_.shape[0], lanes)
        return load_tile(self.b, self.target, tensor.source, type_, tensor.pitches, lanes)

    def transposed(self, tensor: Tensor) -> Registers:
        """A tile in the other order."""
        lanes = self.lanes_for(tensor.source, tensor.type.element)
        place = tensor.source, tensor.type, tensor.pitches
        if tensor.kind != "value":
            made = load_transposed(self.b, self.target, *place, lanes)
            return made or transposed(self.b, self.registers(tensor))
        tile = self.registers(tensor)
        return transposed_lanes(self.b, tile) or transposed(self.b, tile)

    def phi(self, instruction: Instruction, element: Type, rows: int, cols: int) -> None:
        """One phi a register; their operands are filled in at the end."""
        lanes = self.lanes_for(instruction.value, element)
        sample = constant_registers(_zero_of(instruction.type), element, rows, cols, lanes)
        name = instruction.result or ""
        made = [self.b.emit("phi", r.type, [], f"phi {r.type} ", name) for r in sample.flat()]
        self.phis.append((instruction, made))
        self.set(instruction, sample.replaced([m.value for m in made]))

    def _finish_phis(self) -> None:
        for phi, made in self.phis:
            element, rows, cols = self.shapes[phi.result or ""]
            for value, block in phi.incoming:
                block = self.ends.get(block, block)
                lanes = self.lanes_for(phi.value, element)
                place = self.function.block(block)
                self.b.block, self.b.index = place, len(place.instructions) - 1
                tile = relaned(self.b, self.flat(value, element, rows, cols, lanes), lanes)
                for instruction, register in zip(made, tile.flat(), strict=True):
                    add_incoming(instruction, register, block)


def _zero_of(type_: Type) -> Constant:
    return Keyword(type_, "zeroinitializer")
