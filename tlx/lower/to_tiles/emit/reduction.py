"""The kernels of reductions of an expression: rows to a column, or columns to a row.

rows to a column                                        columns to a row
  for rows                                                for columns, a few registers at a time
    acc = identity                                          acc = identity
    for columns: acc = acc op tile                          for rows: acc = acc op tile
    store acc reduced to one number                         store acc

A tile is a few registers with independent sums: of one long row, or of several rows if rows are short or share an
operand row (a matrix times a vector). Padding becomes the identity.

Short rows are reduced without a loop, several together: each yields a register, and a horizontal reduction in pairs
(`tlx/lower/legalize/reductions.py`) combines the registers into one that is stored.

Columns of a cached matrix are reduced a few registers at a time, down all rows. A larger matrix is reduced a strip of
columns at a time, over blocks of rows:

    for strips of columns whose sums fill half of the L1 cache
      sums = rows 0 to 3 of the strip, added
      for blocks of 4 rows
        for tiles of the strip: sums = sums op tile         4 streams, each as long as the strip
      store sums

That reads memory sequentially; going down a few columns would touch a new page in each row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from tlx.ir.functions import Function
from tlx.ir.module import Module
from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.types import BFLOAT, FLOAT, I64, bits_of, bytes_of
from tlx.ir.values import Value, const_int
from tlx.lower.to_tiles.emit.elementwise import ExpressionEmitter
from tlx.lower.to_tiles.emit.kernel import Scratch, expression_parameters, new_kernel
from tlx.lower.to_tiles.emit.reduction_operation import ReductionOperation, RunningReduction
from tlx.lower.to_tiles.emit.tiles import (
    ResultTile,
    column_tile,
    load_tile_vector,
    store_tile_vector,
    tile,
    tile_address,
)
from tlx.lower.to_tiles.expression import Expression, MatrixLeaf, MatrixView, ProductLeaf, may_alias_leaf
from tlx.lower.to_tiles.prefetch import RowPrefetch, prefetch_rows
from tlx.lower.to_tiles.problem import Reduction, as_row_view, canonical_reduction
from tlx.lower.to_tiles.select.elementwise import COSTLY, TileShape, needs_transpose, square_tile
from tlx.lower.to_tiles.select.recipe import EqualTiles, padded_tiles
from tlx.target.costs.memory import Caches
from tlx.target.target import Target


def reduce_kernel(module: Module, problem: Reduction, target: Target) -> Function:
    """Add the kernel for a reduction to the module: a function of the destination, leaves and scalars."""
    parameters, scalars = expression_parameters(problem.value)
    to = ("to", problem.destination.element, "noalias")
    if problem.epilogue is not None:
        others, scalars = expression_parameters(problem.epilogue)
        parameters += others
        to = (*to[:2], "" if may_alias_leaf(problem.epilogue, as_row_view(problem.destination)) else "noalias")
    function = new_kernel(module, target, problem.kernel_name, [to, *parameters], scalars)
    b = TensorBuilder(module, function)
    arguments = [argument.value for argument in function.arguments]
    count = 1 + len(parameters)
    emit_reduction(b, problem, arguments[0], arguments[1:count], arguments[count:], target)
    b.ret()
    return function


def emit_reduction(
    b: TensorBuilder,
    problem: Reduction,
    base: Value,
    pointers: Sequence[Value],
    scalars: Sequence[Value],
    target: Target,
) -> None:
    """Emit the loops of a reduction to `base`."""
    problem = canonical_reduction(problem)
    evaluator = ExpressionEmitter(b, problem.value, pointers, scalars)
    combine = ReductionOperation(problem.operation, problem.value.element)
    shape = _reduction_tile(problem, combine, target)
    to = problem.destination
    if problem.axis == 0 and exceeds_l2(evaluator, target.caches) and not needs_transpose(problem.value):
        StripedColumnReduction(b, evaluator, combine, to, base, shape.lanes, target).emit()
        return
    if problem.axis == 0:
        ColumnReduction(b, evaluator, combine, to, base, shape).emit()
        return
    kernel = RowReduction(b, evaluator, combine, to, base, shape, target, problem.products)
    if problem.products:
        kernel.prefetches = _next_rows(problem, shape, pointers, target.caches)
    if problem.epilogue is not None:
        kernel.epilogue = ExpressionEmitter(b, problem.epilogue, pointers, scalars)
    if problem.offset_row is not None:
        excess = ExpressionEmitter(b, problem.offset_row, pointers, scalars)
        kernel.excess = replace(kernel, evaluator=excess, prefetches=()).first_line()
    kernel.emit()


def _next_rows(
    problem: Reduction, shape: TileShape, pointers: Sequence[Value], caches: Caches
) -> tuple[RowPrefetch, ...]:
    """Prefetches of the rows after a tile's, if the matrix misses L2 and L1 holds both.

    The hardware prefetcher follows rows within a page and restarts with each tile. With these prefetches, 1024x1024
    bfloat, which just fit L2, are read 1.25 times as fast (Emerald Rapids, one core; 1.4 on a Xeon with AMX-FP16), and
    16 MB 1.08 times.
    """
    leaf = next(leaf for leaf in problem.value.leaves() if leaf.view.rows == problem.value.rows)
    distance = shape.rows * leaf.view.row_stride * bytes_of(leaf.element)
    is_far = leaf.view.bytes_moved > caches.l2 * 3 // 4
    if not is_far or 2 * distance > caches.l1 or problem.value.rows == 1:
        return ()
    return (RowPrefetch(pointers[leaf.pointer], leaf.view, distance, caches.line_bytes),)


def _shares_a_row(value: Expression) -> bool:
    """Whether all rows share an operand row, which a tile of many rows loads and converts once."""
    rows = (node for number in value.row_invariant if isinstance(node := value.nodes[number], MatrixLeaf))
    return any(leaf.view.cols > 1 for leaf in rows)


def _reduction_tile(problem: Reduction, combine: ReductionOperation, target: Target) -> TileShape:
    """A tile of as many registers as there are independent sums."""
    value = problem.value
    lanes = max(1, target.vector_bytes * 8 // max(value.bits(target), bits_of(combine.partial_element)))
    if needs_transpose(value):
        return square_tile(value, lanes, target.registers)
    wide = lanes * max(1, problem.products)
    limits = target.core.limits.elementwise
    most = limits.max_masked_sum_registers if combine.uses_ordered_integers else limits.max_sum_registers
    registers = max(1, min(most, target.registers // (2 * value.max_live + 2)))
    if value.cost(target) >= COSTLY:
        registers = 1
    elif problem.axis == 1 and value.rows > 1 and _shares_a_row(value):
        upright = min(limits.max_sum_registers, max(1, (target.registers - value.max_live) // 2))
        return TileShape(min(value.rows, 1 << (upright.bit_length() - 1)), wide, lanes)
    across = min(registers, -(-value.cols // wide))
    across = 1 << (across.bit_length() - 1)
    return TileShape(min(value.rows, max(1, registers // across)), across * wide, lanes)


@dataclass(frozen=True, slots=True)
class _TileRows:
    """Tiles of one height: their rows, their columns, and the nodes that all tiles of a width share."""

    rows: EqualTiles
    columns: list[EqualTiles]
    parts: list[ResultTile]
    known: list[dict[int, Value]]


@dataclass(eq=False)
class _ReductionLoops:
    """What the loops of a reduction read and write.

    Attributes:
        b: The builder.
        evaluator: Emits the expression that is reduced.
        combine: The operation.
        to, base: View and address of the result.
    """

    b: TensorBuilder
    evaluator: ExpressionEmitter
    combine: ReductionOperation
    to: MatrixView
    base: Value


@dataclass(eq=False)
class RowReduction(_ReductionLoops):
    """Emits a reduction of rows to a column.

    Attributes:
        shape: The tile.
        target: The machine.
        products: Adjacent elements that one instruction sums; 0 if tiles are combined as they are.
        excess: A register that is subtracted from each row's sums.
        prefetches: Rows to prefetch.
        epilogue: Emits the epilogue of some adjacent results.
    """

    shape: TileShape
    target: Target
    products: int
    excess: Value | None = None
    prefetches: Sequence[RowPrefetch] = ()
    epilogue: ExpressionEmitter | None = None

    def emit(self) -> None:
        """Emit the loops over rows, a few at a time; adjacent rows share a horizontal reduction."""
        value, shape = self.evaluator.expression, self.shape
        together = _max_lines(shape.lanes, self.target.registers) if self._are_adjacent() and value.rows > 1 else 1
        height, size = shape.rows, shape.rows
        if together > 1 and self._is_short():
            height, size = min(height, together), max(height, together)
        for group in padded_tiles(value.rows, size, 1):
            tiles = [self._tiles(rows) for rows in padded_tiles(group.size, height, 1)]
            with self.b.loop(0, group.count, name="i") as i:
                row = group.start_of(self.b, i.index)
                lines = [line for tile in tiles for line in self._lines(tile, row)]
                if together == 1 or len(lines) == 1:
                    self._store_each(lines, row)
                    continue
                for start in range(0, len(lines), together):
                    self._store_together(lines[start : start + together], self.b.add(row, start))

    def _are_adjacent(self) -> bool:
        """Whether results, and the leaves of their epilogue, are adjacent in memory."""
        others = self.epilogue.expression.leaves() if self.epilogue is not None else ()
        return self.to.row_stride == 1 and all(leaf.view.col_stride == 1 for leaf in others)

    def _is_short(self) -> bool:
        """Whether a row is reduced without a loop."""
        columns = padded_tiles(self.evaluator.expression.cols, self.shape.cols, self.shape.cols)
        return all(c.count == 1 for c in columns)

    def first_line(self) -> Value:
        """A register whose sum is that of the first row."""
        return self._lines_of_tile(self._tiles(EqualTiles(0, 1, 1)), None)[0]

    def _tiles(self, rows: EqualTiles) -> _TileRows:
        cols = self.shape.cols
        columns = padded_tiles(self.evaluator.expression.cols, cols, cols)
        parts = [ResultTile(rows.size, c.size, c.padding) for c in columns]
        return _TileRows(rows, columns, parts, [self.evaluator.compute(part, 0) for part in parts])

    def _lines(self, tiles: _TileRows, first: Value) -> list[Value]:
        """A register for each row, whose horizontal reduction is the result."""
        return [
            line
            for i in range(tiles.rows.count)
            for line in self._lines_of_tile(tiles, self.b.add(first, tiles.rows.start + i * tiles.rows.size))
        ]

    def _lines_of_tile(self, tiles: _TileRows, row: Value | None) -> list[Value]:
        whole = tiles.parts[0]
        if self.products:
            whole = replace(whole, cols=whole.cols // self.products)
        running = RunningReduction.along_columns(self.combine, whole, self.shape.lanes)
        state: list[Value] = []
        for columns, part, shared in zip(tiles.columns, tiles.parts, tiles.known, strict=True):
            result_tile = replace(part, row=row)
            known = self.evaluator.compute(result_tile, 1, shared)
            if columns.count == len(tiles.parts) == 1 and not self.products:
                return running.lines_of_single_tile(
                    self.b, self._tile(replace(result_tile, column=const_int(I64, columns.start)), known)
                )
            state = self._along_columns(running, columns, result_tile, known, state)
        lines = running.lines(self.b, state)
        return lines if self.excess is None else [self.b.binary("sub", line, self.excess) for line in lines]

    def _along_columns(
        self,
        running: RunningReduction,
        columns: EqualTiles,
        result_tile: ResultTile,
        known: dict[int, Value],
        state: list[Value],
    ) -> list[Value]:
        b = self.b
        if columns.count == 1:
            tile = self._tile(replace(result_tile, column=const_int(I64, columns.start)), known)
            state = state or (running.start() if self.products else [])
            return running.add(b, state, tile) if state else running.first(b, tile)
        with b.loop(0, columns.count, carry=state or running.start(), name="j") as j:
            at = replace(result_tile, column=columns.start_of(self.b, j.index))
            prefetch_rows(b, self.prefetches, at)
            j.next(*running.add(b, j.carried, self._tile(at, known)))
        return j.results

    def _tile(self, result_tile: ResultTile, known: dict[int, Value]) -> Value:
        value = self.evaluator.result(result_tile, known)
        if self.products:
            return self._sums_of_adjacent(value, result_tile)
        if self._are_pairs(result_tile):
            return self.combine.widened_pairs(self.b, value, result_tile.rows, self.shape.lanes)
        return self.combine.masked(self.b, self.combine.widened(self.b, value), result_tile)

    def _sums_of_adjacent(self, value: Value, result_tile: ResultTile) -> Value:
        """Sums of adjacent elements, by one instruction; padding was multiplied as zero."""
        token = self.b.typeinfo(
            value, tile(self.combine.partial_element, result_tile.rows, result_tile.cols), "products"
        )
        return self.b.reduce("add", token, (1, self.products), (1, self.products))

    def _are_pairs(self, result_tile: ResultTile) -> bool:
        """Whether a row is whole registers of bfloat, whose even and odd elements may be combined separately."""
        if (
            self.combine.element != BFLOAT
            or self.combine.partial_element != FLOAT
            or self.evaluator.expression.bits(self.target) > bits_of(BFLOAT)
        ):
            return False
        return not result_tile.padding and result_tile.cols % (2 * self.shape.lanes) == 0

    def _store_each(self, lines: list[Value], row: Value) -> None:
        b = self.b
        for number, line in enumerate(lines):
            at = ResultTile(1, 1, 0, b.add(row, number))
            one = self._finished(self.combine.reduce_row(b, line, self.shape.lanes), 1, b.add(row, number))
            store_tile_vector(b, self.to, tile_address(b, self.to, self.base, at), at, one)

    def _store_together(self, lines: list[Value], row: Value) -> None:
        b, element, lanes = self.b, self.combine.partial_element, self.shape.lanes
        lines = [self.combine.in_signed_order(b, line) for line in lines]
        tokens = [b.typeinfo(line, tile(element, 1, lanes), "line") for line in lines]
        joined = b.concat(tokens, 0, tile(element, len(lines), lanes), "lines") if len(lines) > 1 else lines[0]
        token = b.typeinfo(joined, column_tile(element, lanes, len(lines)), "columns")
        totals = b.reduce(self.combine.partial_operation, token, (lanes, 1), None, tile(element, 1, len(lines)))
        results = self._finished(self.combine.in_signed_order(b, totals), len(lines), row)
        start = tile_address(b, self.to, self.base, ResultTile(1, 1, 0, row))
        store_tile_vector(b, self.to.as_row(), start, ResultTile(1, len(lines), 0), results)

    def _finished(self, results: Value, count: int, first: Value) -> Value:
        """Some adjacent results, after the epilogue."""
        results = self.combine.narrowed(self.b, results)
        if self.epilogue is None:
            return results
        known = {n: results for n, node in enumerate(self.epilogue.expression.nodes) if isinstance(node, ProductLeaf)}
        return self.epilogue.result(ResultTile(1, count, 0, None, first), known)


def _max_lines(lanes: int, registers: int) -> int:
    """How many registers are reduced together: at most a quarter of the registers, and one register of results."""
    return max(1, min(lanes, registers // 4))


_ROWS_PER_BLOCK: Final = 4
_REGISTERS_ACROSS: Final = 2  # registers


def exceeds_l2(evaluator: ExpressionEmitter, caches: Caches) -> bool:
    """Whether the matrix exceeds L2 and has enough rows for blocks of rows."""
    value = evaluator.expression
    size = sum(leaf.view.rows * leaf.view.cols * bytes_of(leaf.element) for leaf in value.leaves())
    return size > caches.l2 and value.rows >= 2 * _ROWS_PER_BLOCK


@dataclass(eq=False)
class StripedColumnReduction(_ReductionLoops):
    """Emits a reduction of columns to a row, in strips over blocks of rows.

    Attributes:
        lanes: Elements of a register.
        target: The machine.
    """

    lanes: int
    target: Target

    def emit(self) -> None:
        """Emit the loops over all strips."""
        b, width = self.b, self.lanes * _REGISTERS_ACROSS
        cols = self.evaluator.expression.cols
        most = max(width, self.target.caches.l1 // 2 // bytes_of(self.combine.partial_element) // width * width)
        scratch = Scratch()
        sums = scratch.reserve(self.combine.partial_element, min(most, -(-cols // width) * width))
        scratch.allocate(b)
        for strip in padded_tiles(cols, most, 1):
            with b.loop(0, strip.count, name="strip") as loop:
                self._strip(strip.size, strip.start_of(b, loop.index), sums.pointer)
        scratch.release(b)

    def _strip(self, size: int, first: Value, sums: Value) -> None:
        rows = self.evaluator.expression.rows
        (head, *rest) = padded_tiles(rows, _ROWS_PER_BLOCK, 1)
        self._block(size, first, sums, const_int(I64, 0), _ROWS_PER_BLOCK, is_first=True)
        blocks = [EqualTiles(_ROWS_PER_BLOCK, head.count - 1, _ROWS_PER_BLOCK), *rest]
        for block in blocks:
            with self.b.loop(0, block.count, name="i") as i:
                row = block.start_of(self.b, i.index)
                self._block(size, first, sums, row, block.size, is_first=False)
        view = self._sums(size)
        for columns in padded_tiles(size, self.lanes * _REGISTERS_ACROSS, self.lanes):
            with self.b.loop(0, columns.count, name="c") as c:
                at = columns.start_of(self.b, c.index)
                result_tile = ResultTile(1, columns.size, columns.padding, None, at)
                value = load_tile_vector(self.b, view, tile_address(self.b, view, sums, result_tile), result_tile)
                self._store(replace(result_tile, column=self.b.add(first, at)), value)

    def _block(self, size: int, first: Value, sums: Value, row: Value, rows: int, *, is_first: bool) -> None:
        """Combine a block of rows of a strip with its sums."""
        b, view = self.b, self._sums(size)
        for columns in padded_tiles(size, self.lanes * _REGISTERS_ACROSS, self.lanes):
            with b.loop(0, columns.count, name="j") as j:
                at = columns.start_of(b, j.index)
                result_tile = ResultTile(rows, columns.size, columns.padding, row, b.add(first, at))
                running = RunningReduction.along_rows(self.combine, result_tile)
                tile = self.combine.widened(b, self.evaluator.result(result_tile))
                (total,) = running.lines(b, running.first(b, tile))
                part = ResultTile(1, columns.size, columns.padding, None, at)
                address = tile_address(b, view, sums, part)
                if not is_first:
                    total = self.combine.apply(b, load_tile_vector(b, view, address, part), total)
                store_tile_vector(b, view, address, part, total)

    def _sums(self, size: int) -> MatrixView:
        return MatrixView(self.combine.partial_element, 1, size, 0, 1)

    def _store(self, result_tile: ResultTile, value: Value) -> None:
        address = tile_address(self.b, self.to, self.base, result_tile)
        store_tile_vector(self.b, self.to, address, result_tile, self.combine.narrowed(self.b, value))


@dataclass(eq=False)
class ColumnReduction(_ReductionLoops):
    """Emits a reduction of columns to a row: a few registers of columns at a time, down all rows.

    Attributes:
        shape: The tile.
    """

    shape: TileShape

    def emit(self) -> None:
        """Emit the loops over columns, and in them over rows."""
        value, shape = self.evaluator.expression, self.shape
        for columns in padded_tiles(value.cols, shape.cols, shape.lanes):
            with self.b.loop(0, columns.count, name="j") as j:
                column = columns.start_of(self.b, j.index)
                result_tile = ResultTile(1, columns.size, columns.padding, None, column)
                parts = padded_tiles(value.rows, shape.rows, 1)
                lines = [self._along_rows(rows, replace(result_tile, rows=rows.size)) for rows in parts]
                result = self.combine.narrowed(self.b, self.combine.combine_all(self.b, lines))
                store_tile_vector(
                    self.b, self.to, tile_address(self.b, self.to, self.base, result_tile), result_tile, result
                )

    def _along_rows(self, rows: EqualTiles, result_tile: ResultTile) -> Value:
        """The reduction of rows of one tile height."""
        b = self.b
        known = self.evaluator.compute(result_tile, 0)
        running = RunningReduction.along_rows(self.combine, result_tile)
        if rows.count == 1:
            result_tile = replace(result_tile, row=const_int(I64, rows.start))
            tile = self.combine.widened(b, self.evaluator.result(result_tile, known))
            return running.lines(b, running.first(b, tile))[0]
        with b.loop(0, rows.count, carry=running.start(), name="i") as i:
            at = replace(result_tile, row=rows.start_of(self.b, i.index))
            value = self.combine.widened(b, self.evaluator.result(at, known))
            i.next(*running.add(b, i.carried, value))
        return running.lines(b, i.results)[0]
