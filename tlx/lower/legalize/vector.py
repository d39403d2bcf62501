"""Legalises a kernel's tile operations to vector registers.

Every flattened tile value becomes a list of registers; a phi becomes one phi for each register; loads, stores and
products become instructions on registers. Rewrite, 2x32 accumulator with 16 lanes:

    %acc = phi <64 x float> [ zeroinitializer, %e ], [ %n, %l ]     four phis of <16 x float>
    %t = typeinfo(%acc, <2, 32>)
    %a = load(%pa, <2, 1>)  %b = load(%pb, <1, 32>)           ->    2 loads of B, 2 scalar loads of A, 2 splats
    %n = smma(%t, %a, %b)                                           4 llvm.fma.v16f32
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tlx.diagnostics import LoweringError
from tlx.ir.functions import Function
from tlx.ir.instructions import Block, Instruction
from tlx.ir.module import Module, has_no_subnormals, is_nontemporal
from tlx.ir.rewrite import remove_dead, rename_incoming, uses
from tlx.ir.tensors.model import Tensor, TensorOp
from tlx.ir.types import BFLOAT, FLOAT, HALF, I32, Type, VectorType, scalar_of
from tlx.ir.values import ConstInt, Local, Value, const_int
from tlx.lower.context import LoweringContext
from tlx.lower.legalize.conversions import bfloats_with_subnormals, halves_of_pair
from tlx.lower.legalize.elementwise import emit_elementwise, emit_unary, library_call, nan_operands, with_nan
from tlx.lower.legalize.math.arithmetic import lanes_of
from tlx.lower.legalize.math.exponential import lowered_bfloats, raised_exp
from tlx.lower.legalize.memory import store_tile
from tlx.lower.legalize.multiply import (
    LeftInMemory,
    LeftInRegisters,
    LeftOperand,
    RightInMemory,
    RightInRegisters,
    RightInVnniPanel,
    RightOperand,
    multiply,
)
from tlx.lower.legalize.reductions import (
    REDUCE_PREFIX,
    LaneProduct,
    concatenated_rows,
    emit_lane_product,
    group_sums,
    is_group_sum,
    lane_products,
    reduced_columns,
)
from tlx.lower.legalize.registers import (
    Registers,
    block_columns,
    columns_repeated,
    emit_interleaved,
    shuffled,
    split_rows,
    with_lanes,
)
from tlx.lower.legalize.scheduling.software_pipelining import pipeline_loads
from tlx.lower.legalize.strength_reduction import (
    divided,
    i16_factors,
    i16_products,
    is_by_row,
    products_with_subnormals,
    quotients_only_rounded,
    rounded_quotients,
    row_quotients,
)
from tlx.lower.legalize.tile_values import TileValues, lane_counts
from tlx.lower.legalize.vnni import COLUMN_PERMUTATION, RightWithPermutedColumns, permuted_bfloat_as_float, vnni_packed
from tlx.lower.operations import MMA_SIGNS, UNARY_INTRINSICS, Accuracy, ElementwiseOp


class VectorLegalizer(TileValues):
    """Legalises one kernel to vector registers; `MatrixLegalizer` overrides what runs on a matrix unit.

    Attributes:
        factor_ranks: Ranks of vectors of i32 extended from at most 16 bits; see `i16_factors`.
        products: Sums of adjacent products that map to instructions.
        rounded_quotients: Divisions of rows that are only rounded, by the rounding's result.
        rounded_powers: Powers e^x of x that are not above 0 and that are only rounded, by the rounding's result.
        product_blocks: Blocks with products of tiles.
        nan_operands: Selects whose NaN LLVM would lose; see the function.
    """

    def __init__(self, module: Module, function: Function, context: LoweringContext) -> None:
        super().__init__(module, function, context)
        self.factor_ranks = i16_factors(function, self.tensors)
        self.products = lane_products(function, self.tensors, self.target)
        self.nan_operands = {} if self.target.backend.keeps_selected_nan else nan_operands(function)
        self.rounded_quotients = {
            result: division
            for result, division in quotients_only_rounded(function, self.tensors, self.target.instructions).items()
            if self.shapes[result][2] % self.lanes(FLOAT) == 0
        }
        self.rounded_powers = self._powers_only_rounded()
        rounded = {division.result or "" for division in self.rounded_quotients.values()}
        rounded |= {power.instruction.result or "" for power in self.rounded_powers.values()}
        self.absorbed = self.products.absorbed | rounded
        computed = set(self.shapes) - self.products.absorbed
        self.product_blocks: list[Block] = []
        self.lane_counts = lane_counts(function, self.tensors, computed, self.target, self._converts_pairs)

    def run(self) -> None:
        """Legalise the function in place."""
        for block in list(self.function.blocks):
            instructions = block.instructions
            block.instructions = []
            self.b.at_end(block)
            for instruction in instructions:
                if not self.legalize(instruction):
                    self._keep(instruction)
            self._note_end(block)
        self._finish_phis()
        if self.b.bypassed:
            remove_dead(self.function, self.b.bypassed)
        pipeline_loads(self.module, self.function, self.product_blocks, self.target)

    def _note_end(self, block: Block) -> None:
        """Note the last part of a block that was split, and make it the source of the block's outgoing edges."""
        end = self.b.block
        if end is not block:
            self.ends[block.name] = end.name
            rename_incoming(self.function, end.terminator.successors, block.name, end.name)

    # One instruction -------------------------------------------------------------------------------------------

    def legalize(self, instruction: Instruction) -> bool:
        """Replace an instruction; return False if it stays."""
        op = self.tensors.op_of(instruction)
        if instruction.result in self.absorbed:
            return True
        if op is not None:
            self.operation(op)
            return True
        if instruction.result is not None and instruction.result in self.tensors.tokens:
            return True
        if instruction.result is not None and instruction.result in self.shapes:
            self.plain(instruction)
            return True
        if instruction.opcode == "extractelement" and str(instruction.operands[0])[1:] in self.shapes:
            self._keep(self._extracted(instruction))
            return True
        return False

    def _is_gathered(self, instruction: Instruction, rows: int, cols: int) -> bool:
        """Whether an insertelement makes a register of numbers, rather than change a tile."""
        is_register = rows == 1 and cols <= self.lanes(scalar_of(instruction.type))
        return is_register and str(instruction.operands[0])[1:] not in self.shapes

    def _extracted(self, instruction: Instruction) -> Instruction:
        """The extraction of an element of a tile from the register that has it."""
        source, place = instruction.operands
        tile = self.flat(source, *self.shapes[str(source)[1:]])
        assert isinstance(place, ConstInt)
        assert tile.rows == 1
        index, lane = divmod(place.value, tile.lanes)
        register, at = tile.flat()[index], const_int(I32, lane)
        text = f"%{instruction.result} = extractelement {register.typed}, {at.typed}"
        return Instruction("extractelement", instruction.type, [register, at], text, instruction.result)

    def operation(self, op: TensorOp) -> None:
        """Legalise a tensor operation."""
        name = op.intrinsic.name
        if name == "store":
            self.store(op)
        elif name in MMA_SIGNS:
            self.set(op.instruction, self.mma(op))
        elif name == "tovector":
            self.set(op.instruction, self.registers(op.tensors[0], op.instruction.value))
        elif name in UNARY_INTRINSICS:
            self.set(op.instruction, self.unary(op))
        elif name == "transpose":
            self.set(op.instruction, self.transpose(op))
        elif name == "reshape.block":
            self.set(op.instruction, self.block(op))
        elif name == "broadcast":
            self.set(op.instruction, self.broadcast(op))
        elif name == "concat":
            self.set(op.instruction, concatenated_rows(op, [self.registers(tensor) for tensor in op.tensors]))
        elif name.startswith(REDUCE_PREFIX):
            self.set(op.instruction, self.reduce(op))
        elif name == "reshape.permute" and op.dims[0] == COLUMN_PERMUTATION:
            self.permuted[str(op.instruction.value)] = op.tensors[0]
        elif name != "reshape.permute":
            raise LoweringError(f"{op.intrinsic.full_name} is not a tile operation", op.instruction.span)

    # Tile operations -------------------------------------------------------------------------------------------

    def store(self, op: TensorOp) -> None:
        """Store a tile."""
        assert op.pointer is not None
        tensor = op.tensors[0]
        nontemporal = is_nontemporal(op.instruction)
        tile = self.registers(tensor)
        if nontemporal:
            tile = with_lanes(self.b, tile, self.lanes(tile.element))
        store_tile(self.b, self.target, op.pointer, tile, tensor.type, op.pitches, nontemporal=nontemporal)

    def mma(self, op: TensorOp) -> Registers:
        """A tile product."""
        acc_tensor, lhs, rhs = op.tensors
        acc = with_lanes(self.b, self.registers(acc_tensor), self.lanes(acc_tensor.type.element))
        k = lhs.type.extents[1]
        self.product_blocks.append(self.b.block)
        return multiply(self.b, self.target, op.intrinsic.name, acc, self.left(lhs), self.right(rhs, acc.lanes), k)

    def left(self, tensor: Tensor) -> LeftOperand:
        """The left operand of a product."""
        if tensor.kind != "value" and not tensor.type.is_padded:
            return LeftInMemory(tensor.source, tensor.type, tensor.pitches)
        return LeftInRegisters(self.registers(tensor) if tensor.type.is_row_major else self.transposed(tensor))

    def right(self, tensor: Tensor, lanes: int) -> RightOperand:
        """The right operand of a product, in registers of the accumulator's lanes."""
        permuted = self.permuted.get(str(tensor.source))
        if permuted is not None:
            tile = with_lanes(self.b, self.registers(permuted), self.lanes(tensor.type.element))
            return RightWithPermutedColumns(
                tile, permuted.type.shape, lanes, self.target.vector_bytes * 8, self.target.big_endian
            )
        vnni = self._vnni(tensor)
        if vnni is not None:
            source, factor = vnni
            return RightInVnniPanel(source.source, tensor.type.element, tensor.type.extents[1], factor, lanes)
        if tensor.kind != "value" and tensor.type.is_row_major:
            return RightInMemory(self.target, tensor.source, tensor.type, tensor.pitches, lanes)
        tile = self.registers(tensor) if tensor.type.is_row_major else self.transposed(tensor)
        return RightInRegisters(with_lanes(self.b, tile, lanes))

    def _vnni(self, tensor: Tensor) -> tuple[Tensor, int] | None:
        """The packed load that defines a token, and its VNNI factor, if the token is a packed tile."""
        op = self.tensors.definition(tensor)
        if op is None or op.intrinsic.name != "reshape.permute":
            return None
        source = op.tensors[0]
        if source.kind == "value" or source.type.rank != 3 or op.dims[0] != (0, 2, 1):
            raise LoweringError("reshape.permute of this form is not a tile operation", op.instruction.span)
        return source, source.type.shape[2]

    def transpose(self, op: TensorOp) -> Registers:
        """A tile in the other order."""
        tensor = op.tensors[0]
        assert op.result is not None
        return self.registers(tensor) if op.result.layout == tensor.type.layout else self.transposed(tensor)

    def block(self, op: TensorOp) -> Registers:
        """`reshape.block` of the rows: VNNI packing."""
        tensor = op.tensors[0]
        if op.dims[0] != (0,):
            raise LoweringError(
                "reshape.block of a dimension other than rows is not a tile operation", op.instruction.span
            )
        width = op.dims[1][0]
        tile = self.registers(tensor)
        if not tensor.type.is_row_major:
            return block_columns(self.b, tile, width, self.target)
        return vnni_packed(self.b, with_lanes(self.b, tile, self.lanes(tile.element)), width, self.target)

    def broadcast(self, op: TensorOp) -> Registers:
        """A row or a column broadcast to a tile."""
        assert op.result is not None
        rows, cols = op.result.shape
        tile = self.registers(op.tensors[0], op.instruction.value)
        if tile.rows == 1 and tile.cols == cols:
            return Registers(tile.element, rows, cols, tile.lanes, tile.regs * rows)
        if tile.cols != 1 or tile.rows not in (1, rows) or op.dims[1] != (0, 1):
            raise LoweringError("broadcast of this form is not a tile operation", op.instruction.span)
        return columns_repeated(self.b, tile, rows, cols, self.lanes_for(op.instruction.value, tile.element))

    def reduce(self, op: TensorOp) -> Registers:
        """A reduction of groups of adjacent elements, or of columns."""
        tile, width = self.registers(op.tensors[0]), op.dims[0][-1]
        if is_group_sum(op):
            return group_sums(self.b, tile, width, self.lanes(tile.element), self.gather)
        return reduced_columns(self.b, op, tile, self.target)

    def unary(self, op: TensorOp) -> Registers:
        """relu, tanh, ... of a tile."""
        tile = self.registers(op.tensors[0], op.instruction.value)
        tile = with_lanes(self.b, tile, self.lanes_for(op.instruction.value, tile.element))
        name = op.intrinsic.name
        emit = partial(emit_unary, self.b, self.target, name, tile.element, accuracy=Accuracy.of(op.instruction))
        emitters = [partial(emit, r) for r in tile.flat()]
        return tile.replaced(emit_interleaved(self.b, emitters))

    # Ordinary instructions on flattened tiles ------------------------------------------------------------------

    def plain(self, instruction: Instruction) -> None:
        """Legalise an ordinary instruction whose result is a flattened tile."""
        if instruction.result is None:
            return
        element, rows, cols = self.shapes[instruction.result]
        if (product := self.products.by_result.get(instruction.result)) is not None:
            self.set(instruction, self._lane_product(product, element, rows, cols))
        elif instruction.opcode == "phi":
            self.phi(instruction, element, rows, cols)
        elif (operation := ElementwiseOp.of(instruction)) is not None:
            self.set(instruction, self._elementwise(instruction, operation, rows, cols))
        elif instruction.opcode == "shufflevector":
            self.set(instruction, self._shuffled(instruction))
        elif instruction.opcode == "insertelement" and self._is_gathered(instruction, rows, cols):
            self._keep(instruction)
            self.set(instruction, Registers(element, 1, cols, self.lanes(element), ((instruction.value,),)))
        else:
            raise LoweringError(f"'{instruction.opcode}' on a tile is not legalised", instruction.span)

    def _elementwise(self, instruction: Instruction, operation: ElementwiseOp, rows: int, cols: int) -> Registers:
        element = scalar_of(instruction.type)
        source = self.permuted.get(str(instruction.operands[0])) if operation.opcode == "fpext" else None
        if source:
            tile, big_endian = self.registers(source), self.target.big_endian
            if floats := permuted_bfloat_as_float(self.b, tile, source.type.shape, big_endian=big_endian):
                return floats
        if library_call(self.target.instructions, operation, element):
            text = f"{operation.title} of {element}: {self.target.name} has no vector code; the C library is called"
            self.context.remarks.add("missed", "legalize", text, instruction.span)
        if (division := self.rounded_quotients.get(instruction.result or "")) is not None:
            return self._rounded_quotients(division, element, rows, cols)
        if (power := self.rounded_powers.get(instruction.result or "")) is not None:
            return self._rounded_powers(power, rows, cols)
        if self._rounds_pairs(instruction):
            return self._rounded_pairs(instruction.operands[0], element, rows, cols)
        lanes = self.lanes_for(instruction.value, element)
        values = instruction.args if operation.opcode == "call" else instruction.operands
        sources = [scalar_of(v.type) for v in values]
        tiles = [
            with_lanes(self.b, self.flat(v, s, rows, cols, lanes), lanes).flat() if _is_vector(v.type) else v
            for v, s in zip(values, sources, strict=True)
        ]
        sample = next(t for t in tiles if isinstance(t, list))
        registers = self._quotients(instruction, operation, tiles)
        registers = registers or self._products_with_subnormals(operation, element, values, tiles)
        registers = registers or i16_products(
            self.b, self.target, operation, list(zip(values, tiles, strict=True)), self.factor_ranks
        )
        registers = registers or [
            emit_elementwise(
                self.b, self.target, operation, element, sources, [t[i] if isinstance(t, list) else t for t in tiles]
            )
            for i in range(len(sample))
        ]
        if operand := self.nan_operands.get(instruction.result or ""):
            may_be_nan = tiles[operand]
            assert isinstance(may_be_nan, list)
            registers = [with_nan(self.b, r, x, x) for r, x in zip(registers, may_be_nan, strict=True)]
        return Registers(element, rows, cols, lanes, split_rows(registers, -(-cols // lanes)))

    def _rounds_pairs(self, instruction: Instruction) -> bool:
        """Whether an instruction rounds floats to bfloats or halves that become so two registers at a time."""
        return instruction.opcode == "fptrunc" and self._converts_pairs(instruction)

    def _converts_pairs(self, instruction: Instruction) -> bool:
        """Whether an instruction converts two registers of floats to one of bfloats or halves, or back.

        Numbers from memory are extended as they are loaded.
        """
        if instruction.opcode not in ("fptrunc", "fpext"):
            return False
        operand = instruction.operands[0]
        is_loaded = instruction.opcode == "fpext" and self.tensors.definition_of(operand) is not None
        types = {scalar_of(operand.type), scalar_of(instruction.type)}
        columns = self.shapes[instruction.value.name][2]
        fills_registers = (types == {FLOAT, BFLOAT} and self.target.can_round_pairs) or (
            types == {FLOAT, HALF} and self.target.computes_half
        )
        return fills_registers and not is_loaded and columns % (2 * self.lanes(FLOAT)) == 0

    def _rounded_pairs(self, floats: Value, element: Type, rows: int, cols: int) -> Registers:
        lanes = self.lanes(FLOAT)
        if element == HALF:
            emit = partial(halves_of_pair, target=self.target)
        else:
            assert self.target.narrow_floats.pair_rounding is not None
            emit = self.target.narrow_floats.pair_rounding.emit
            if not self.has_no_subnormals(floats):
                emit = partial(bfloats_with_subnormals, emit)
        tile = with_lanes(self.b, self.flat(floats, FLOAT, rows, cols), lanes)
        pairs = tuple(tuple(emit(self.b, row[i], row[i + 1]) for i in range(0, len(row), 2)) for row in tile.regs)
        return Registers(element, rows, cols, 2 * lanes, pairs)

    def _powers_only_rounded(self) -> dict[str, TensorOp]:
        """Calls of `exp` of numbers that are not above 0 whose only use rounds pairs to bfloat, by the use's result."""
        found: dict[str, TensorOp] = {}
        powers = [op for op in self.tensors.ops if op.intrinsic.name == "exp" and _is_short_and_nonpositive(op)]
        if not powers or self.target.instructions.functions is None:
            return found
        used = uses(self.function)
        for power in powers:
            users = [use.instruction for use in used.get(power.instruction.result or "", ())]
            if len(users) == 1 and scalar_of(users[0].type) == BFLOAT and self._rounds_pairs(users[0]):
                found[users[0].result or ""] = power
        return found

    def _rounded_powers(self, power: TensorOp, rows: int, cols: int) -> Registers:
        functions, pair_rounding = self.target.instructions.functions, self.target.narrow_floats.pair_rounding
        assert functions is not None
        assert pair_rounding is not None
        b, lanes = self.b, self.lanes(FLOAT)
        tile = with_lanes(b, self.flat(power.tensors[0].source, FLOAT, rows, cols, lanes), lanes)
        emitters = [partial(raised_exp, lanes_of(b, self.target, x, FLOAT), functions, x) for x in tile.flat()]
        raised = emit_interleaved(b, emitters)
        pairs = [pair_rounding.emit(b, *pair) for pair in zip(raised[::2], raised[1::2], strict=True)]
        registers = [lowered_bfloats(b, bits) for bits in pairs]
        return Registers(BFLOAT, rows, cols, 2 * lanes, split_rows(registers, cols // (2 * lanes)))

    def has_no_subnormals(self, value: Value) -> bool:
        """Whether a vector has no subnormal floats: loads that are marked so, and relu of them."""
        op = self.tensors.definition_of(value)
        if op is None or op.intrinsic.name not in ("tovector", "relu"):
            return False
        tensor = op.tensors[0]
        return has_no_subnormals(tensor.definition) if tensor.kind == "load" else self.has_no_subnormals(tensor.source)

    def _lane_product(self, product: LaneProduct, element: Type, rows: int, cols: int) -> Registers:
        """A sum of adjacent products, in whole registers."""
        total = with_lanes(self.b, self.flat(product.sum, element, rows, cols), self.lanes(element))
        factors: list[Registers] = []
        for value in product.factors:
            narrow = scalar_of(value.type)
            tile = self.flat(value, narrow, rows, cols * product.width)
            factors.append(with_lanes(self.b, tile, self.lanes(element) * product.width))
        return emit_lane_product(self.b, self.target.instructions, product, total, factors)

    def _quotients(
        self, instruction: Instruction, operation: ElementwiseOp, tiles: Sequence[list[Value] | Value]
    ) -> list[Value]:
        """A division, each row by one number computed by products; empty for other operations."""
        if operation.opcode != "fdiv":
            return []
        element = scalar_of(instruction.type)
        numerators, divisors = (t for t in tiles if isinstance(t, list))
        if is_by_row(instruction, self.tensors):
            products = row_quotients(self.b, self.target, element, numerators, divisors)
            if products:
                return products
        return divided(self.b, self.target, operation, element, numerators, divisors)

    def _rounded_quotients(self, division: Instruction, element: Type, rows: int, cols: int) -> Registers:
        """A division of rows by a number each, rounded to bfloat or half."""
        lanes = self.lanes(FLOAT)
        numerators, divisors = (
            with_lanes(self.b, self.flat(value, FLOAT, rows, cols, lanes), lanes).flat() for value in division.operands
        )
        registers = rounded_quotients(self.b, self.target, numerators, divisors, element)
        return Registers(element, rows, cols, lanes, split_rows(registers, -(-cols // lanes)))

    def _products_with_subnormals(
        self, operation: ElementwiseOp, element: Type, values: Sequence[Value], tiles: Sequence[list[Value] | Value]
    ) -> list[Value]:
        """A product by a sigmoid or an erfc, which may be subnormal; empty for other operations."""
        if operation.opcode != "fmul":
            return []
        index = next((i for i, value in enumerate(values) if self._may_be_subnormal(value)), None)
        if index is None:
            return []
        registers = [tile for tile in tiles if isinstance(tile, list)]
        factors, numbers = registers[index], registers[1 - index]
        return products_with_subnormals(self.b, self.target, operation, element, factors, numbers)

    def _may_be_subnormal(self, value: Value) -> bool:
        """Whether a value is that of a function from 0 whose results may be subnormal where its arguments are not."""
        op = self.tensors.definition_of(value)
        if op is None or op.intrinsic.name not in ("sigmoid", "erfc"):
            return False
        return op.intrinsic.name == "sigmoid" or not has_no_subnormals(op.instruction)

    def _shuffled(self, instruction: Instruction) -> Registers:
        """A shufflevector: adjacent elements of a tile's row, or any elements of one or two registers."""
        sources = [o for o in instruction.operands[:2] if isinstance(o, Local) and o.name in self.shapes]
        tiles = [self.flat(source, *self.shapes[source.name]) for source in sources]
        tile = shuffled(self.b, tiles, instruction) if tiles else None
        if tile is None:
            raise LoweringError("shufflevector of this form is not a tile operation", instruction.span)
        return tile


def _is_short_and_nonpositive(power: TensorOp) -> bool:
    accuracy = Accuracy.of(power.instruction)
    return accuracy.short and accuracy.nonpositive


def _is_vector(type_: Type) -> bool:
    return isinstance(type_, VectorType)
