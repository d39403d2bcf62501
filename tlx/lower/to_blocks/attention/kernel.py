"""Attention: a block computes some rows of softmax(f(Q @ K)) @ V, with the scores in registers.

    copy the rows of Q to shared memory
    for tiles of positions        those of K, and of V, are copied to one of two stages
      S = f(Q @ K)                each warp its rows
      P = softmax of S            rows are spread over four threads
      sums += P @ V               the registers of two products, side by side, are those of a left operand

The maximum and the sum of a row are known when all of its scores are. If the program permits the division to be done
last (`reassoc`), the maximum is that of the tiles so far, and sums are scaled down when it grows:

    m' = max(m, S)    l' = l exp(m - m') + sum of exp(S - m')    sums' = sums exp(m - m') + exp(S - m') @ V

Otherwise, a pass over K computes m and l in this way, and a second one computes the scores again, and the quotients
that are narrowed and multiplied: exp(S - m) times the reciprocal of l, with an error of 2^-21.

Lines in shared memory have 128 bytes, and are swizzled as those of products (`tlx.lower.to_blocks.products.staging`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from math import prod

from tlx.ir.module import Module
from tlx.ir.types import FLOAT, I8, I32, Type, VectorType
from tlx.ir.values import Keyword, Value, const_float, const_int, zero
from tlx.lower.to_blocks.attention.copies import FragmentOffsets, OperandLines
from tlx.lower.to_blocks.attention.match import Attention
from tlx.lower.to_blocks.attention.plan import COLUMNS, DEPTH, ROWS, STAGES, AttentionPlan, unit_of
from tlx.lower.to_blocks.attention.softmax import Softmax, SoftmaxState, SoftmaxStep
from tlx.lower.to_blocks.kernel import GridFacts, GridKernel, Iterations, as_index, row_tile
from tlx.lower.to_tiles.emit.elementwise import ExpressionEmitter
from tlx.lower.to_tiles.emit.tiles import ResultTile, convert_tile, store_tile_vector, tile_address
from tlx.lower.to_tiles.expression import Expression, ProductLeaf
from tlx.lower.to_tiles.problem import Gemm
from tlx.target.grid_unit import CHUNK_BYTES, LINE_BYTES, GridUnit, SharedOperand


def attention_grid_kernel(
    module: Module, grid: GridUnit, problem: Attention, iterations: Iterations, name: str
) -> GridFacts:
    """Add the kernel of attention."""
    plan = AttentionPlan.of(grid, problem, prod(iterations.trips))
    leaves: list[Type] = []
    scalars: list[Type] = []
    for gemm in (problem.scores, problem.product):
        of_leaves, of_scalars = gemm.epilogue.parameters() if gemm.epilogue else ({}, {})
        leaves += of_leaves.values()
        scalars += of_scalars.values()
    views = problem.product.c, problem.scores.a, problem.scores.b, problem.product.b
    pointers = [*(view.element for view in views), *leaves]
    kernel = GridKernel(module, grid, name, pointers, scalars, iterations, -(-problem.scores.m // plan.rows))
    _AttentionKernel(kernel, plan).emit()
    return kernel.finish(plan.warps * grid.warp_threads, plan.shared, plan.resident(grid))


_StepEmitter = Callable[[list[list[Value]], SoftmaxState], SoftmaxStep]


def _split(values: Sequence[Value], sizes: Sequence[int]) -> list[list[Value]]:
    """Values in lists of some sizes."""
    iterator = iter(values)
    return [list(islice(iterator, size)) for size in sizes]


class _AttentionKernel:
    """Emits the kernel."""

    def __init__(self, kernel: GridKernel, plan: AttentionPlan) -> None:
        self.kernel, self.plan, self.problem = kernel, plan, plan.problem
        self.b, self.operations = kernel.b, kernel.grid.operations
        b, scores, product = self.b, self.problem.scores, self.problem.product
        unit = unit_of(kernel.grid, self.problem)
        assert unit is not None
        self.unit, self.shared = unit, self.operations.shared(b)
        self.queries = OperandLines(kernel, scores.a, 1, plan.rows, plan.warps)
        self.keys = OperandLines(kernel, scores.b.transposed, 2, plan.positions, plan.warps)
        self.values = OperandLines(kernel, product.b, 3, plan.positions, plan.warps)
        self.left, self.right = FragmentOffsets(kernel, lines_first=True), FragmentOffsets(kernel, lines_first=False)
        warp, lane = kernel.divided(kernel.thread, kernel.grid.warp_threads)
        group, quad = kernel.divided(lane, 4)
        self.softmax = Softmax(kernel, lane)
        self.warp_line = b.mul(warp, plan.fragments * ROWS)
        self.first_row = b.add(b.mul(kernel.tile, plan.rows), b.add(self.warp_line, group))
        self.column = b.mul(quad, 2)
        self.positions = plan.positions
        self.tiles = -(-scores.n // plan.positions)
        self.depth = -(-scores.k // DEPTH)
        self.outputs = -(-product.n // DEPTH) * 2
        self.query_fragments: list[list[Value]] = []

    # The kernel ------------------------------------------------------------------------------------------------

    def emit(self) -> None:
        """Emit the kernel."""
        plan, b = self.plan, self.b
        self.queries.copy(b.mul(self.kernel.tile, plan.rows), self.shared)
        if plan.group is not None:
            self.operations.commit(b)
            self.operations.wait(b, 0)
            self.operations.barrier(b)
            self.query_fragments = [self._query(0, step) for step in range(self.depth)]
        softmax, start = self.softmax, self.softmax.start(2 * plan.fragments)
        if self.problem.is_reassociated:
            sums, rows = self._pass(start, softmax.running, with_values=True)
            inverses = softmax.inverses(softmax.totals(rows))
            self._store([b.binary("fmul", value, inverses[self._row_of(k)]) for k, value in enumerate(sums)])
            return
        _, rows = self._pass(start, softmax.running, with_values=False)
        totals = softmax.totals(rows)
        inverses = softmax.inverses(totals)
        self.operations.barrier(b)
        quotients = partial(softmax.quotients, inverses=inverses)
        sums, _ = self._pass(SoftmaxState(rows.maxima, totals), quotients, with_values=True)
        self._store(sums)

    def _row_of(self, number: int) -> int:
        """Which of the thread's rows the sum with a number is in."""
        fragment, within = divmod(number, self.outputs * 4)
        return 2 * fragment + within % 4 // 2

    def _pass(self, rows: SoftmaxState, step: _StepEmitter, *, with_values: bool) -> tuple[list[Value], SoftmaxState]:
        """A pass over all positions.

        Args:
            rows: The state of the rows before.
            step: From the scores of a tile (by the thread's row) and the state of the rows: the weights, and so on.
            with_values: Whether the pass multiplies with V.

        Returns:
            The sums, none without values, and the state of the rows after.
        """
        b, first = self.b, const_int(I32, 0)
        zeros: list[Value] = [zero(FLOAT)] * (self.plan.fragments * self.outputs * 4 * with_values)
        sizes = [len(zeros), len(rows.values)]
        self._copy_keys(first)
        if with_values:
            self._copy_values(first)
        self.operations.commit(b)
        with b.loop(0, self.tiles, carry=[*zeros, *rows.values], name="tile") as loop:
            sums, state = _split(loop.carried, sizes)
            number = b.cast("trunc", loop.index, I32)
            self._wait_for_copies()
            if self.tiles > 1:
                following = b.add(number, 1)
                with b.if_block(b.icmp("ult", following, self.tiles), "copy"):
                    self._copy_keys(following)
                    if with_values:
                        self._copy_values(following)
                    self.operations.commit(b)
            scores = self._scores(self._completed(self._products(number)), b.mul(number, self.positions))
            result = step(scores, SoftmaxState.of(state))
            if with_values:
                sums = self._scaled(sums, result.factors)
                sums = self._completed([self._with_values(sums, self._fragments(result.weights), number)])[0]
            loop.next(*sums, *result.rows.values)
        sums, state = _split(loop.results, sizes)
        return sums, SoftmaxState.of(state)

    def _scaled(self, sums: list[Value], factors: list[Value]) -> list[Value]:
        """The sums times the factors of their rows, if there are any."""
        if not factors:
            return sums
        return [self.b.binary("fmul", value, factors[self._row_of(k)]) for k, value in enumerate(sums)]

    # Copies, and waiting ----------------------------------------------------------------------------------------

    def _completed(self, sums: list[list[Value]]) -> list[list[Value]]:
        """Sums when their products are complete."""
        group = self.plan.group
        return sums if group is None else [group.operations.complete(self.b, acc) for acc in sums]

    def _wait_for_copies(self) -> None:
        """Wait until copies have arrived, and until all warps have read what the next ones overwrite."""
        self.operations.wait(self.b, 0)
        if self.plan.group is not None:
            self.plan.group.operations.fence(self.b)
        self.operations.barrier(self.b)

    def _stage(self, number: Value, offset: int) -> Value:
        """The address of a tile of K, or of V at an offset, with a number (i32)."""
        b, plan = self.b, self.plan
        stage = b.binary("and", number, const_int(I32, STAGES - 1))
        return b.gep(I8, self.shared, as_index(b, b.add(b.mul(stage, plan.stage_bytes), plan.query_bytes + offset)))

    def _copy_keys(self, number: Value) -> None:
        """Start the copies of a tile of K with a number (i32)."""
        self.keys.copy(self.b.mul(number, self.positions), self._stage(number, 0))

    def _copy_values(self, number: Value) -> None:
        """Start the copies of a tile of V with a number (i32)."""
        self.values.copy(self.b.mul(number, self.positions), self._stage(number, self.plan.key_bytes))

    # Products --------------------------------------------------------------------------------------------------

    def _query(self, fragment: int, step: int) -> list[Value]:
        """The fragment of Q of some rows and 16 columns."""
        b, plan = self.b, self.plan
        tile = b.gep(I8, self.shared, as_index(b, b.mul(self.warp_line, LINE_BYTES)))
        address = self.left.address(self.kernel, tile, plan.rows, fragment * ROWS, step)
        return self.operations.load_fragments(b, address, transposed=False)

    def _products(self, number: Value) -> list[list[Value]]:
        """Start Q @ K of a tile with a number (i32): for each fragment of rows, four sums for each 8 positions."""
        b, unit, fragments, group = self.b, self.unit, range(self.plan.fragments), self.plan.group
        blocks, stage = self.positions // COLUMNS, self._stage(number, 0)
        if group is not None:
            tile = SharedOperand(stage, 0, k_lines=False, box_bytes=self.positions * LINE_BYTES, line_bytes=LINE_BYTES)
            steps = [_moved(tile, step * 2 * CHUNK_BYTES) for step in range(self.depth)]
            zeros = [zero(FLOAT)] * (4 * blocks)
            return [
                group.operations.multiply_from_registers(b, group, zeros, self.query_fragments, steps, self.positions)
            ]
        sums: list[list[Value]] = [[zero(FLOAT)] * (4 * blocks) for _ in fragments]
        for step in range(self.depth):
            rows = [self._query(fragment, step) for fragment in fragments]
            for pair in range(blocks // 2):
                address = self.right.address(self.kernel, stage, self.positions, pair * DEPTH, step)
                loaded = self.operations.load_fragments(b, address, transposed=False)
                for half in range(2):
                    at = 4 * (2 * pair + half)
                    for fragment in fragments:
                        acc = sums[fragment][at : at + 4]
                        columns = loaded[2 * half : 2 * half + 2]
                        sums[fragment][at : at + 4] = unit.multiply(b, acc, rows[fragment], columns)
        return sums

    def _with_values(self, sums: list[Value], weights: list[Value], number: Value) -> list[Value]:
        """Start to add the product of weights (as fragments of 16 positions) and a tile of V with a number (i32)."""
        b, unit, fragments, result = self.b, self.unit, range(self.plan.fragments), list(sums)
        group, steps, tile = self.plan.group, range(self.positions // DEPTH), self._stage(number, self.plan.key_bytes)
        if group is not None:
            whole = SharedOperand(tile, 0, k_lines=True, box_bytes=self.positions * LINE_BYTES, line_bytes=LINE_BYTES)
            parts = [replace(whole, offset=step * DEPTH * LINE_BYTES) for step in steps]
            left = [weights[4 * step : 4 * step + 4] for step in steps]
            return group.operations.multiply_from_registers(b, group, sums, left, parts, self.outputs * COLUMNS)
        for step in steps:
            for pair in range(self.outputs // 2):
                address = self.left.address(self.kernel, tile, self.positions, step * DEPTH, pair)
                loaded = self.operations.load_fragments(b, address, transposed=True)
                for half in range(2):
                    for fragment in fragments:
                        at = 4 * (fragment * self.outputs + 2 * pair + half)
                        columns = loaded[2 * half : 2 * half + 2]
                        first = fragment * len(weights) // self.plan.fragments + 4 * step
                        left = weights[first : first + 4]
                        result[at : at + 4] = unit.multiply(b, result[at : at + 4], left, columns)
        return result

    # Scores ----------------------------------------------------------------------------------------------------

    def _scores(self, products: list[list[Value]], first: Value) -> list[list[Value]]:
        """The scores of the thread's rows in a tile, from a position (i32) on; -inf beyond the last position."""
        b, gemm, rows = self.b, self.problem.scores, list[list[Value]]()
        for number in range(2 * self.plan.fragments):
            fragment, half = divmod(number, 2)
            line: list[Value] = []
            row = b.add(self.first_row, fragment * ROWS + half * (ROWS // 2))
            for block in range(self.positions // COLUMNS):
                column = b.add(first, b.add(self.column, block * COLUMNS))
                at = 4 * block + 2 * half
                line += self._epilogue(gemm, self.kernel.pointers[4:], row, column, products[fragment][at : at + 2])
            rows.append(line)
        return rows

    def _epilogue(
        self, gemm: Gemm, pointers: Sequence[Value], row: Value, column: Value, sums: Sequence[Value]
    ) -> list[Value]:
        """Two adjacent scores from their sums."""
        b, width = self.b, 2 if gemm.n % 2 == 0 else 1
        result: list[Value] = []
        for start in range(0, 2, width):
            at = b.add(column, start)
            is_inside = b.icmp("ult", at, gemm.n) if gemm.n % self.positions else None
            values = list(sums[start : start + width])
            if gemm.epilogue is not None:
                values = self._expression(gemm, pointers, row, at, values)
            if is_inside is not None:
                values = [b.select(is_inside, value, const_float(FLOAT, float("-inf"))) for value in values]
            result += values
        return result

    def _expression(
        self, gemm: Gemm, pointers: Sequence[Value], row: Value, column: Value, sums: Sequence[Value]
    ) -> list[Value]:
        b, width, value = self.b, len(sums), gemm.epilogue
        assert value is not None
        if gemm.m % self.plan.rows:
            row = b.umin(row, gemm.m - 1)
        if gemm.n % self.positions:
            column = b.umin(column, gemm.n - width)
        result_tile = row_tile(width, as_index(b, row), as_index(b, column))
        emitter = ExpressionEmitter(
            b, value, pointers, self.kernel.scalars, lambda _: convert_tile(b, self._vector(sums), gemm.result, "s")
        )
        vector = convert_tile(b, emitter.result(result_tile), FLOAT, "s")
        return [b.extract_element(vector, k) for k in range(width)]

    def _vector(self, values: Sequence[Value], element: Type = FLOAT) -> Value:
        vector: Value = Keyword(VectorType(len(values), element), "undef")
        for k, value in enumerate(values):
            vector = self.b.insert_element(vector, value, k)
        return vector

    def _fragments(self, rows: list[list[Value]]) -> list[Value]:
        """The rows as left operands, narrowed: for each fragment of rows, four registers for 16 positions."""
        b, element = self.b, self.problem.product.a.element
        registers: list[Value] = []
        for upper, lower in zip(rows[::2], rows[1::2], strict=True):
            for at in range(0, len(upper), 2):
                for line in (upper, lower):
                    narrow = b.cast("fptrunc", self._vector(line[at : at + 2]), VectorType(2, element))
                    registers.append(b.cast("bitcast", narrow, I32))
        return registers

    # The result ------------------------------------------------------------------------------------------------

    def _store(self, sums: list[Value]) -> None:
        """Compute O from the sums."""
        b, gemm = self.b, self.problem.product
        scores = self.problem.scores.epilogue
        leaves, scalars = (len(numbers) for numbers in scores.parameters()) if scores else (0, 0)
        value = gemm.epilogue or Expression(gemm.m, gemm.n, (ProductLeaf(gemm.c.element),))
        pointers = self.kernel.pointers[4 + leaves :]
        for number in range(2 * self.plan.fragments):
            fragment, half = divmod(number, 2)
            row = b.add(self.first_row, fragment * ROWS + half * (ROWS // 2))

            def columns(row: Value = row, fragment: int = fragment, half: int = half) -> None:
                for block in range(-(-gemm.n // COLUMNS)):
                    at = 4 * (fragment * self.outputs + block) + 2 * half
                    column = as_index(b, b.add(self.column, block * COLUMNS))
                    result_tile = row_tile(2, as_index(b, row), column)
                    pair = self._vector(sums[at : at + 2])

                    def product(_: ResultTile, pair: Value = pair) -> Value:
                        return convert_tile(b, pair, gemm.result, "s")

                    emitter = ExpressionEmitter(b, value, pointers, self.kernel.scalars[scalars:], product)
                    result = convert_tile(b, emitter.result(result_tile), gemm.c.element, "s")
                    to = tile_address(b, gemm.c, self.kernel.pointers[0], result_tile)
                    store_tile_vector(b, gemm.c, to, result_tile, result)

            if gemm.m % self.plan.rows == 0:
                columns()
                continue
            with b.if_block(b.icmp("ult", row, gemm.m), "in.matrix"):
                columns()


def _moved(tile: SharedOperand, distance: int) -> SharedOperand:
    """The part of a tile of K that begins `distance` bytes into its lines."""
    box, within = divmod(distance, LINE_BYTES)
    return replace(tile, offset=box * tile.box_bytes + within)
