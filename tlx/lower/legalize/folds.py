"""Folding registers to one number each: `reduce.*` of the columns of a tile that lies column by column.

R registers of L lanes, by halves that change places:

    a0 a1 a2 a3      a0 a1 | b2 b3      combined:  a a | b b        and so on: one register of R numbers,
    b0 b1 b2 b3  ->  a2 a3 | b0 b1                                  R - 1 steps of a blend, a shuffle and the operation
"""

from __future__ import annotations

from functools import partial
from typing import Final

from tlx.diagnostics import LoweringError
from tlx.ir.builder import Builder
from tlx.ir.tensors import TensorOp
from tlx.ir.types import I32, VectorType
from tlx.ir.values import Value, const_int
from tlx.lower.combining import combined
from tlx.lower.legalize.registers import Registers

PREFIX: Final = "reduce."


def joined_rows(op: TensorOp, tiles: list[Registers]) -> Registers:
    """`concat` of tiles as wide as each other, one below the other.

    Raises:
        LoweringError: Along another axis.
    """
    first = tiles[0]
    if op.instruction.args[-1] != const_int(I32, 0) or any(
        (t.cols, t.lanes) != (first.cols, first.lanes) for t in tiles
    ):
        msg = f"{op.intrinsic.full_name} of this form is no tile operation"
        raise LoweringError(msg, op.instruction.span)
    rows = tuple(row for tile in tiles for row in tile.regs)
    return Registers(first.element, len(rows), first.cols, first.lanes, rows)


def folded_columns(b: Builder, op: TensorOp, tile: Registers) -> Registers:
    """The row that a tile becomes, given the registers of its columns.

    Raises:
        LoweringError: Other windows than whole columns, or a column of several registers.
    """
    type_ = op.tensors[0].type
    lanes = tile.cols
    whole = type_.layout == (1, 0) and op.dims[0] == (type_.extents[0], 1) and not type_.is_padded
    if not whole or lanes & (lanes - 1) or not tile.rows <= lanes <= tile.lanes:
        msg = f"{op.intrinsic.full_name} of this form is no tile operation"
        raise LoweringError(msg, op.instruction.span)
    operation = op.intrinsic.name.removeprefix(PREFIX)
    row = _folded(b, operation, [row[0] for row in tile.regs], lanes)
    return Registers(tile.element, 1, tile.rows, tile.lanes, ((row,),))


def _folded(b: Builder, operation: str, registers: list[Value], lanes: int) -> Value:
    """One number of each register, in their order."""
    wanted = len(registers)
    count = 1 << (wanted - 1).bit_length()
    registers = [*registers, *[registers[-1]] * (count - wanted)]
    combine = partial(combined, b, operation)
    width = lanes
    while len(registers) > 1:
        width //= 2
        half = len(registers) // 2
        pairs = zip(registers[:half], registers[half:], strict=True)
        registers = [combine(*_halves(b, x, y, width)) for x, y in pairs]
    value = registers[0]
    while width > 1:
        width //= 2
        value = combine(*_parts(b, value, width))
    return b.shuffle(value, None, range(wanted)) if wanted < count else value


def _halves(b: Builder, x: Value, y: Value, width: int) -> tuple[Value, Value]:
    """Of runs of 2 `width` lanes, x's first halves and y's second ones; x's second ones and y's first ones."""
    assert isinstance(x.type, VectorType)
    lanes = x.type.count
    odd = [lane // width % 2 for lane in range(lanes)]
    kept = [lane + lanes * odd[lane] for lane in range(lanes)]
    crossed = [(lane ^ width) + lanes * odd[lane] for lane in range(lanes)]
    return b.shuffle(x, y, kept), b.shuffle(x, y, crossed)


def _parts(b: Builder, x: Value, width: int) -> tuple[Value, Value]:
    """The first halves of runs of 2 `width` lanes, and the second ones."""
    assert isinstance(x.type, VectorType)
    first = [lane for lane in range(x.type.count) if lane // width % 2 == 0]
    return b.shuffle(x, None, first), b.shuffle(x, None, [lane + width for lane in first])
