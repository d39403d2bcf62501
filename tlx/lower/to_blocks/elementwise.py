"""Elementwise kernels and copies: each thread computes some adjacent elements of a row at a time.

A transposition reads and writes whole sectors of memory: each thread has a small matrix in registers, and those of a
warp are beside each other.

    bytes     thread: 16 columns of 8 rows, 8 bytes each -> 8 rows of 16 bytes
              warp:   8 threads along a row of the result (128 bytes), 4 along a column (32 bytes of the source)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tlx.ir.module import Module
from tlx.ir.types import I32, Type, VectorType, bytes_of
from tlx.ir.values import Value, const_int, const_vector, zero
from tlx.lower.to_blocks.kernel import GridFacts, GridKernel, Iterations, as_index, row_tile, vector_columns
from tlx.lower.to_tiles.emit.elementwise import ExpressionEmitter
from tlx.lower.to_tiles.emit.tiles import store_tile_vector, tile_address
from tlx.lower.to_tiles.expression import Expression, MatrixLeaf, MatrixView
from tlx.lower.to_tiles.problem import Copy, Elementwise, as_long_row
from tlx.target.grid_unit import GridUnit

_VECTORS_PER_THREAD: Final = 4


def _as_expression(problem: Copy) -> Elementwise:
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
    value, destination = problem.value, problem.destination
    columns = vector_columns(value.cols, destination.element) if destination.is_row_major else 1
    per_row = value.cols // columns
    count = value.rows * per_row
    per_block = min(grid.block_threads * _VECTORS_PER_THREAD, -(-count // grid.block_threads) * grid.block_threads)
    kernel = GridKernel(
        module,
        grid,
        name,
        [destination.element, *leaves.values()],
        list(scalars.values()),
        iterations,
        -(-count // per_block),
    )
    b = kernel.b
    emitter = ExpressionEmitter(b, value, kernel.pointers[1:], kernel.scalars)
    start = b.add(b.mul(kernel.tile, per_block), kernel.thread)
    with b.loop(0, per_block // grid.block_threads, name="round") as round_:
        number = b.add(start, b.mul(b.cast("trunc", round_.index, I32), grid.block_threads))
        with b.if_block(b.icmp("ult", number, const_int(I32, count)), "in.range"):
            row, vector = kernel.divided(number, per_row)
            result_tile = row_tile(columns, as_index(b, row), as_index(b, b.mul(vector, columns)))
            address = tile_address(b, destination, kernel.pointers[0], result_tile)
            store_tile_vector(b, destination, address, result_tile, emitter.result(result_tile))
    return kernel.finish(grid.block_threads, 0)


# Transpositions ------------------------------------------------------------------------------------------------------

_READ: Final = 8
_WRITTEN: Final = 16


@dataclass(frozen=True, slots=True)
class Transposition:
    """A copy of a column-major matrix to a row-major one, by parts of warps.

    Attributes:
        source, destination: The matrix in memory, before and after.
        rows, columns: What a thread copies.
        down, across: Threads of a warp.
    """

    source: MatrixView
    destination: MatrixView
    rows: int
    columns: int
    down: int
    across: int

    @classmethod
    def of(
        cls, source: MatrixView, destination: MatrixView, alignments: tuple[int, int], grid: GridUnit
    ) -> Transposition | None:
        """The copy, if it transposes.

        Args:
            source: The matrix in memory, before.
            destination: The matrix, after.
            alignments: Those of their addresses.
            grid: The grid.
        """
        if not destination.is_row_major:
            source, destination = source.transposed, destination.transposed
        if source.is_row_major or not destination.is_row_major or min(source.rows, source.cols) == 1:
            return None
        size, warp = bytes_of(source.element), grid.warp_threads
        rows = _at_once(_READ, source.pitch, source.rows, alignments[0], size)
        columns = _at_once(_WRITTEN, destination.pitch, source.cols, alignments[1], size)
        down = min(warp, max(1, grid.sector_bytes // (rows * size)))
        return cls(source, destination, rows, columns, down, warp // down)

    @property
    def parts(self) -> int:
        """Parts of the matrix, each of which a warp copies."""
        return self._parts_across * -(-self.source.rows // (self.rows * self.down))

    @property
    def _parts_across(self) -> int:
        return -(-self.source.cols // (self.columns * self.across))

    def emit(self, kernel: GridKernel, source: Value, destination: Value) -> None:
        """Emit what a thread does, whose kernel has `tiles` blocks of the grid's threads."""
        b, warp, element = kernel.b, kernel.grid.warp_threads, self.source.element
        warps = kernel.grid.block_threads // warp
        in_block, lane = kernel.divided(kernel.thread, warp)
        part = b.add(b.mul(kernel.tile, warps), in_block)
        part_row, part_column = kernel.divided(part, self._parts_across)
        lane_column, lane_row = kernel.divided(lane, self.down)
        row = b.mul(b.add(b.mul(part_row, self.down), lane_row), self.rows)
        column = b.mul(b.add(b.mul(part_column, self.across), lane_column), self.columns)
        inside = b.binary("and", b.icmp("ult", row, self.source.rows), b.icmp("ult", column, self.source.cols))
        with b.if_block(inside, "in.matrix"):
            source_address = b.gep(element, source, b.mul(as_index(b, column), self.source.pitch))
            source_address = b.gep(element, source_address, as_index(b, row))
            destination_address = b.gep(element, destination, b.mul(as_index(b, row), self.destination.pitch))
            destination_address = b.gep(element, destination_address, as_index(b, column))
            read, written, size = _vector(element, self.rows), _vector(element, self.columns), bytes_of(element)
            loaded = [
                b.load(read, b.gep(element, source_address, k * self.source.pitch), self.rows * size)
                for k in range(self.columns)
            ]
            for i in range(self.rows):
                values = [value if self.rows == 1 else b.extract_element(value, i) for value in loaded]
                line: Value = values[0] if self.columns == 1 else const_vector([zero(element)] * self.columns)
                for k in range(self.columns if self.columns > 1 else 0):
                    line = b.insert_element(line, values[k], k)
                assert line.type == written
                b.store(line, b.gep(element, destination_address, i * self.destination.pitch), self.columns * size)


def blocks_of(transposition: Transposition, grid: GridUnit) -> int:
    """Blocks of a kernel that transposes."""
    return -(-transposition.parts * grid.warp_threads // grid.block_threads)


def copy_grid_kernel(module: Module, grid: GridUnit, problem: Copy, iterations: Iterations, name: str) -> GridFacts:
    """Add the kernel of a copy."""
    source, destination = problem.source, problem.destination
    alignments = iterations.alignments[1], iterations.alignments[0]
    transposition = Transposition.of(source, destination, alignments, grid)
    if transposition is None:
        return elementwise_grid_kernel(module, grid, _as_expression(problem), iterations, name)
    pointers = [destination.element, source.element]
    kernel = GridKernel(module, grid, name, pointers, [], iterations, blocks_of(transposition, grid))
    transposition.emit(kernel, kernel.pointers[1], kernel.pointers[0])
    return kernel.finish(grid.block_threads, 0)


def _at_once(most: int, pitch: int, count: int, alignment: int, size: int) -> int:
    """Adjacent elements that are aligned, of at most some bytes."""
    number = max(1, most // size)
    while number > 1 and (pitch % number or count % number or alignment % (number * size)):
        number //= 2
    return number


def _vector(element: Type, count: int) -> Type:
    return VectorType(count, element) if count > 1 else element
