"""What dot products of bytes with flipped signs add too much, or too little: sums of the packed operands.

B by columns, where A is xored with 128:  (A + 128) @ B = A @ B + 128 * colsum(B)
A by rows, where B is:                    A @ (B - 128) = A @ B - 128 * rowsum(A)
"""

from __future__ import annotations

from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.types import I8, Type, VectorType
from tlx.ir.values import Value, const_ints, zero
from tlx.lower.to_tiles.packing import load_vnni
from tlx.lower.to_tiles.recipe import Recipe
from tlx.lower.to_tiles.tiles import tile


def column_sums(
    b: TensorBuilder, panel: Value, out: Value, size: int, groups: int, width: int, accumulator: Type
) -> None:
    """`out[n] = -128 * sum_k panel[k][n]`, by the same dot product the kernel uses: 128 (u8) times B."""
    type_ = VectorType(size, accumulator)
    acc_type = tile(accumulator, 1, size)
    with b.loop(0, groups, carry=[zero(type_)], name="k") as loop:
        acc = b.typeinfo(loop.carried[0], acc_type, "sum")
        ones = b.typeinfo(const_ints(I8, [-128] * width), tile(I8, 1, width), "x128")
        rows = load_vnni(b, I8, b.gep(I8, panel, b.mul(loop.index, size * width)), width, size, width)
        loop.next(b.mma("usmma", acc, ones, rows, acc_type))
    negated = b.binary("sub", zero(type_), loop.results[0])
    b.tensor_store(out, b.typeinfo(negated, acc_type, "colsum"))


def row_sums(b: TensorBuilder, panel: Value, out: Value, shape: tuple[int, int, int], recipe: Recipe) -> None:
    """What B's flipped bytes add too little or too much; `shape` are the extents of the panel of A.

    out[m] =  128 * sum_sk panel[s][m][k]      u8 by B - 128: A times 64, twice
    out[m] = -128 * sum_sk panel[s][m][k]      s8 by B + 128: A times 128 (u8), taken off
    """
    width, lanes, accumulator = recipe.width, recipe.lanes, recipe.accumulator
    type_ = VectorType(lanes, accumulator)
    factor = 64 if recipe.mma == "usmma" else -128
    acc_type = tile(accumulator, 1, lanes)
    terms, rows, depth = shape
    with b.loop(0, rows, name="r") as row:
        with b.loop(0, terms, carry=[zero(type_)], name="s") as term:
            start = b.mul(b.add(b.mul(term.index, rows), row.index), depth)
            with b.loop(0, depth // width, carry=[term.carried[0]], name="k") as loop:
                acc = b.typeinfo(loop.carried[0], acc_type, "sum")
                address = b.gep(I8, panel, b.add(start, b.mul(loop.index, width)))
                bytes_ = b.tensor_load(address, tile(I8, 1, width), None, "a")
                factors = b.typeinfo(const_ints(I8, [factor] * width * lanes), tile(I8, width, lanes), "factor")
                loop.next(b.mma(recipe.mma, acc, bytes_, factors, acc_type))
            term.next(loop.results[0])
        total = term.results[0]
        wanted = b.binary("add", total, total) if recipe.mma == "usmma" else b.binary("sub", zero(type_), total)
        one = b.typeinfo(wanted, tile(accumulator, 1, lanes, (0, lanes - 1)), "rowsum")
        b.tensor_store(b.gep(accumulator, out, row.index), one)
