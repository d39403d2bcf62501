"""Elementwise kernels and copies: each thread computes some adjacent elements of a row at a time."""

from __future__ import annotations

from typing import Final

from tlx.ir.module import Module
from tlx.ir.types import I32
from tlx.ir.values import const_int
from tlx.lower.to_blocks.kernel import GridFacts, GridKernel, Iterations, as_index, row_tile, vector_columns
from tlx.lower.to_tiles.emit.elementwise import ExpressionEmitter
from tlx.lower.to_tiles.emit.tiles import store_tile_vector, tile_address
from tlx.lower.to_tiles.expression import Expression, MatrixLeaf
from tlx.lower.to_tiles.problem import Copy, Elementwise, as_long_row
from tlx.target.grid_unit import GridUnit

_VECTORS_PER_THREAD: Final = 4


def copy_as_expression(problem: Copy) -> Elementwise:
    """A copy as an expression that is its only leaf."""
    source = problem.source
    leaf = MatrixLeaf(source.element, source.broadcast(), 0)
    return Elementwise(problem.destination, Expression(source.rows, source.cols, (leaf,)))


def elementwise_grid_kernel(
    module: Module, grid: GridUnit, problem: Elementwise, iterations: Iterations, name: str
) -> GridFacts:
    """Add the kernel of an expression."""
    leaves, scalars = problem.value.parameters()
    problem = as_long_row(problem)
    value, to = problem.value, problem.destination
    columns = vector_columns(value.cols, to.element) if to.is_row_major else 1
    per_row = value.cols // columns
    count = value.rows * per_row
    per_block = min(grid.threads * _VECTORS_PER_THREAD, -(-count // grid.threads) * grid.threads)
    kernel = GridKernel(
        module,
        grid,
        name,
        [to.element, *leaves.values()],
        list(scalars.values()),
        iterations,
        -(-count // per_block),
    )
    b = kernel.b
    emitter = ExpressionEmitter(b, value, kernel.pointers[1:], kernel.scalars)
    start = b.add(b.mul(kernel.tile, per_block), kernel.thread)
    with b.loop(0, per_block // grid.threads, name="round") as round_:
        number = b.add(start, b.mul(b.cast("trunc", round_.index, I32), grid.threads))
        with b.if_block(b.icmp("ult", number, const_int(I32, count)), "in.range"):
            row, vector = kernel.divided(number, per_row)
            place = row_tile(columns, as_index(b, row), as_index(b, b.mul(vector, columns)))
            address = tile_address(b, to, kernel.pointers[0], place)
            store_tile_vector(b, to, address, place, emitter.result(place))
    return kernel.finish(grid.threads, 0)
