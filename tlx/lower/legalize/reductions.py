"""Reductions within registers: sums of adjacent products by dot products, and registers folded to one number each.

`reduce.*` of the columns of a column-major tile folds R registers of L lanes, in steps that exchange halves:

    a0 a1 a2 a3      a0 a1 | b2 b3      combined:  a a | b b        and so on: one register of R numbers,
    b0 b1 b2 b3  ->  a2 a3 | b0 b1                                  R - 1 steps of a blend, a shuffle and the operation

Sums of adjacent products: one instruction multiplies, sums v adjacent products and accumulates.

Rewrite, v adjacent elements of a row (v = 2 for bfloat, 4 for bytes):
    %x = fpext R x L*v %a    %y = fpext R x L*v %b    %p = fmul %x, %y
    %s = reduce.add(typeinfo(%p), <1, v>, <1, v>)
    %n = fadd R x L %acc, %s
    ->
    %n = vdpbf16ps %acc, %a, %b

With v = 1 it is a multiply-add. Without a dot product for pairs of bfloat, it is two multiply-adds, of the even and of
the odd elements. On other targets the operations stay, and adjacent elements are distributed over v registers and
added. Stage 2 writes windows of this form only for matrix-vector products, whose sums may be reordered and are not
rounded in between.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from tlx.diagnostics import LoweringError
from tlx.ir.builder import Builder
from tlx.ir.functions import Function
from tlx.ir.instructions import Instruction
from tlx.ir.rewrite import Use, definitions, uses
from tlx.ir.tensors.model import FunctionTensors, TensorOp
from tlx.ir.types import I32, FloatType, Type, VectorType, next_power_of_two, scalar_of
from tlx.ir.values import Local, Value, const_int
from tlx.lower.legalize.conversions import even_and_odd
from tlx.lower.legalize.elementwise import with_nan
from tlx.lower.legalize.registers import Gather, Registers, as_words, with_lanes
from tlx.lower.legalize.vnni import permuted_columns
from tlx.lower.operations import MIN_MAX, emit_combine
from tlx.target.instructions.compilers import LlvmBackend
from tlx.target.instructions.dots import Dot, Sign
from tlx.target.instructions.vectors import VectorInstructions
from tlx.target.target import Target

REDUCE_PREFIX: Final = "reduce."


def concatenated_rows(op: TensorOp, tiles: list[Registers]) -> Registers:
    """`concat` of equally wide tiles along rows.

    Raises:
        LoweringError: The axis is another one.
    """
    first = tiles[0]
    if op.instruction.args[-1] != const_int(I32, 0) or any(
        (t.cols, t.lanes) != (first.cols, first.lanes) for t in tiles
    ):
        message = f"{op.intrinsic.full_name} of this form is not a tile operation"
        raise LoweringError(message, op.instruction.span)
    rows = tuple(row for tile in tiles for row in tile.regs)
    return Registers(first.element, len(rows), first.cols, first.lanes, rows)


def reduced_columns(b: Builder, op: TensorOp, tile: Registers, target: Target) -> Registers:
    """The columns of a tile, each a register, reduced to a row.

    Raises:
        LoweringError: A window is not a whole column, or a column has several registers.
    """
    type_ = op.tensors[0].type
    lanes = tile.cols
    whole = type_.layout == (1, 0) and op.dims[0] == (type_.extents[0], 1) and not type_.is_padded
    if not whole or lanes & (lanes - 1) or not tile.rows <= lanes <= tile.lanes:
        message = f"{op.intrinsic.full_name} of this form is not a tile operation"
        raise LoweringError(message, op.instruction.span)
    operation = op.intrinsic.name.removeprefix(REDUCE_PREFIX)
    combine = partial(_combined, b, target.backend, operation)
    row = _horizontal_reduction(b, combine, [row[0] for row in tile.regs], lanes)
    return Registers(tile.element, 1, tile.rows, tile.lanes, ((row,),))


def _combined(b: Builder, backend: LlvmBackend, operation: str, x: Value, y: Value) -> Value:
    """Two registers combined; a maximum or minimum is NaN where one of them is."""
    result = emit_combine(b, operation, x, y)
    if backend.keeps_selected_nan or operation not in MIN_MAX or not isinstance(scalar_of(x.type), FloatType):
        return result
    return with_nan(b, result, y, y)


def _horizontal_reduction(
    b: Builder, combine: Callable[[Value, Value], Value], registers: list[Value], lanes: int
) -> Value:
    """Reduce each register to one number; returns the numbers in order, as a register."""
    count = len(registers)
    padded = next_power_of_two(count)
    registers = [*registers, *[registers[-1]] * (padded - count)]
    width = lanes
    while len(registers) > 1:
        width //= 2
        half = len(registers) // 2
        pairs = zip(registers[:half], registers[half:], strict=True)
        registers = [combine(*_halves(b, x, y, width)) for x, y in pairs]
    value = registers[0]
    while width > 1:
        width //= 2
        value = combine(*_first_and_second_halves(b, value, width))
    return b.shuffle(value, None, range(count)) if count < padded else value


def _halves(b: Builder, x: Value, y: Value, width: int) -> tuple[Value, Value]:
    """In runs of 2 `width` lanes: x's first and y's second halves; x's second and y's first halves."""
    assert isinstance(x.type, VectorType)
    lanes = x.type.count
    odd = [lane // width % 2 for lane in range(lanes)]
    blend = [lane + lanes * odd[lane] for lane in range(lanes)]
    exchange = [(lane ^ width) + lanes * odd[lane] for lane in range(lanes)]
    return b.shuffle(x, y, blend), b.shuffle(x, y, exchange)


def _first_and_second_halves(b: Builder, x: Value, width: int) -> tuple[Value, Value]:
    """The first and the second halves of runs of 2 `width` lanes."""
    assert isinstance(x.type, VectorType)
    first = [lane for lane in range(x.type.count) if lane // width % 2 == 0]
    return b.shuffle(x, None, first), b.shuffle(x, None, [lane + width for lane in first])


_SIGNS: Final[dict[str, Sign]] = {"fpext": "f", "sext": "s", "zext": "u"}
_ADDITIONS: Final = ("fadd", "add")


_Kind = tuple[str, Sign]
_BFLOAT: Final[_Kind] = ("bfloat", "f")


@dataclass(frozen=True, slots=True)
class LaneProduct:
    """A sum of products that maps to an instruction.

    Attributes:
        sum: The accumulator.
        factors: The factors; those of a dot product are not extended yet.
        width: Adjacent products that are summed.
        dot: The instruction; None for multiply-adds.
    """

    sum: Value
    factors: tuple[Value, Value]
    width: int
    dot: Dot | None


@dataclass(frozen=True)
class LaneProducts:
    """A kernel's sums of products that map to instructions.

    Attributes:
        by_result: The sums, by the result's name.
        absorbed: Names of values that only these sums use: they are not computed.
    """

    by_result: dict[str, LaneProduct]
    absorbed: frozenset[str]


def lane_products(function: Function, tensors: FunctionTensors, target: Target) -> LaneProducts:
    """The sums of products of a kernel that map to a target's instructions."""
    products: dict[str, LaneProduct] = {}
    absorbed: set[str] = set()
    sums = [op for op in tensors.ops if is_group_sum(op)]
    if sums:
        search = _LaneProductSearch(target, definitions(function), uses(function))
        for op in sums:
            search.add(op, products, absorbed)
    return LaneProducts(products, frozenset(absorbed))


def is_group_sum(op: TensorOp) -> bool:
    """Whether a reduction sums groups of adjacent elements of rows."""
    if op.intrinsic.name != "reduce.add":
        return False
    type_, width = op.tensors[0].type, op.dims[0][-1]
    rows = type_.is_row_major and type_.rank == 2 and not type_.is_padded and type_.extents[-1] % width == 0
    return rows and op.dims == ((1, width), (1, width))


@dataclass(eq=False)
class _LaneProductSearch:
    target: Target
    definitions: dict[str, Instruction]
    uses: dict[str, list[Use]]

    def add(self, op: TensorOp, products: dict[str, LaneProduct], absorbed: set[str]) -> None:
        """Note the sum that accumulates a reduction of products, and the values that it makes unnecessary."""
        product, total = self._definition(op.tensors[0].source), self._only_user(op.instruction)
        width = op.dims[0][1]
        if product is None or total is None or total.opcode not in _ADDITIONS or product.opcode not in ("fmul", "mul"):
            return
        if self._users(product) != 1 or total.result is None:
            return
        other = next(o for o in total.operands if str(o) != str(op.instruction.value))
        extensions = [self._definition(factor) for factor in product.operands]
        kinds = [_kind(extension) for extension in extensions]
        dot = self._dot(kinds, scalar_of(product.type), width)
        if dot is not None or (width == len(kinds) and set(kinds) == {_BFLOAT}):
            x, y = (e.operands[0] for e in extensions if e is not None)
            absorbed |= {e.result or "" for e in extensions if e is not None and self._users(e) == 1}
        elif width == 1 and isinstance(scalar_of(product.type), FloatType):
            x, y = product.operands
        else:
            return
        absorbed |= {product.result or "", op.instruction.result or ""}
        products[total.result] = LaneProduct(other, (x, y), width, dot)

    def _dot(self, kinds: Sequence[_Kind | None], accumulator: Type, width: int) -> Dot | None:
        """The dot product for extended factors."""
        types = (kinds[0], kinds[1], str(accumulator), width)
        dots = (d for d in self.target.usable_dots if d.widening_loads is None)
        return next((d for d in dots if (d.lhs, d.rhs, d.accumulator, d.width) == types), None)

    def _definition(self, value: Value) -> Instruction | None:
        return self.definitions.get(value.name) if isinstance(value, Local) else None

    def _users(self, instruction: Instruction) -> int:
        return len(self.uses.get(instruction.result or "", ()))

    def _only_user(self, instruction: Instruction) -> Instruction | None:
        users = self.uses.get(instruction.result or "", [])
        return users[0].instruction if len(users) == 1 else None


def emit_lane_product(
    b: Builder, instructions: VectorInstructions, product: LaneProduct, total: Registers, factors: Sequence[Registers]
) -> Registers:
    """Emit a sum of products.

    Args:
        b: The builder.
        instructions: The machine's vector instructions.
        product: The sum of products.
        total: The accumulator.
        factors: The factors, with as many registers as the accumulator.
    """
    registers = zip(total.flat(), *(tile.flat() for tile in factors), strict=True)
    return total.replaced([_added_products(b, instructions, product, c, x, y) for c, x, y in registers])


def _added_products(
    b: Builder, instructions: VectorInstructions, product: LaneProduct, total: Value, x: Value, y: Value
) -> Value:
    """One register of the new sums."""
    dot, width = product.dot, product.width
    if dot is not None:
        return dot.emit(b, total, as_words(b, x, width), as_words(b, y, width))
    pairs = [(x, y)] if width == 1 else zip(even_and_odd(b, x), even_and_odd(b, y), strict=True)
    name = "llvm.fma" if instructions.has_fma else "llvm.fmuladd"
    for lhs, rhs in pairs:
        total = b.call_intrinsic(name, [total.type], total.type, [lhs, rhs, total], "acc")
    return total


def _kind(extension: Instruction | None) -> _Kind | None:
    """The source type of an extension and its kind; None for other instructions."""
    if extension is None or extension.opcode not in _SIGNS:
        return None
    return str(scalar_of(extension.operands[0].type)), _SIGNS[extension.opcode]


def group_sums(b: Builder, tile: Registers, width: int, lanes: int, gather: Gather | None) -> Registers:
    """Sums of `width` adjacent elements: RxC -> R x C/width."""
    cols = tile.cols // width
    if width == 1:
        return tile
    lanes = min(lanes, cols)
    tile = with_lanes(b, tile, lanes)
    permuted = permuted_columns(b, tile, (tile.rows, cols // lanes, lanes, width, 1), gather)
    opcode = "fadd" if isinstance(tile.element, FloatType) else "add"
    rows: list[tuple[Value, ...]] = []
    for row in permuted.regs:
        groups = [row[i : i + width] for i in range(0, len(row), width)]
        rows.append(tuple(_added(b, opcode, group) for group in groups))
    return Registers(tile.element, tile.rows, cols, lanes, tuple(rows))


def _added(b: Builder, opcode: str, registers: Sequence[Value]) -> Value:
    first, *others = registers
    for other in others:
        first = b.binary(opcode, first, other, "acc")
    return first
