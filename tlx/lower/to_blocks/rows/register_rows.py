"""Fused rows in registers: some threads compute a row of several trees, such as a softmax, and read it once.

    x in registers     max over the threads     e = exp(x - max)     sum over the threads     store e / sum

A thread has some vectors of the row, those of the threads side by side. The threads of a warp combine their results by
shuffles, warps through shared memory; short rows have a warp each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tlx.ir.module import Module
from tlx.ir.types import FLOAT, I16, I32, I64, Type, VectorType, bytes_of, next_power_of_two
from tlx.ir.values import Keyword, Value, const_int
from tlx.lower.operations import combine_identity
from tlx.lower.to_blocks.kernel import GridFacts, GridKernel, Iterations, all_of, as_index, row_tile, vector_columns
from tlx.lower.to_tiles.emit.elementwise import ExpressionEmitter
from tlx.lower.to_tiles.emit.reduction_operation import ReductionOperation
from tlx.lower.to_tiles.emit.tiles import ResultTile, store_tile_vector, tile, tile_address
from tlx.lower.to_tiles.expression import Expression, MatrixLeaf, MatrixView
from tlx.lower.to_tiles.match.stores import Match
from tlx.lower.to_tiles.problem import Elementwise, Reduction, RowFusion, RowFusionPart
from tlx.target.grid_unit import GridUnit

_ELEMENTS: Final = 32
"""Elements of a row that a thread holds."""
_LEAST_THREADS: Final = 128
_REGISTERS: Final = 64
"""Registers that a thread has at least, so that a multiprocessor runs several blocks at once."""
_SLOT: Final = 4
"""Bytes of a warp's result in shared memory."""


@dataclass(frozen=True, slots=True)
class RegisterPlan:
    """How rows are spread over threads.

    Attributes:
        columns: Columns of a row.
        width: Elements of a vector.
        share: Threads of a row.
        per_block: Rows of a block.
    """

    columns: int
    width: int
    share: int
    per_block: int

    @property
    def vectors(self) -> int:
        """Vectors of a row."""
        return self.columns // self.width

    @property
    def rounds(self) -> int:
        """Vectors of a thread; not all threads may have the last one."""
        return -(-self.vectors // self.share)

    @classmethod
    def of(cls, fusion: RowFusion, grid: GridUnit) -> RegisterPlan | None:
        """The plan; None if rows are too long, or of several lengths, or of types that threads do not exchange."""
        columns = max(part.problem.value.cols for part in fusion.parts)
        if any(part.problem.value.cols not in (1, columns) for part in fusion.parts) or columns == 1:
            return None
        if not all(_is_exchanged(part.problem, columns) for part in fusion.parts):
            return None
        views = [view for part in fusion.parts for view in _views(part.problem) if view.cols == columns]
        if any(view.col_stride != 1 for view in views):
            return None
        width = max(vector_columns(columns, view.element) for view in views)
        share = max(grid.warp_threads, next_power_of_two(-(-columns // _ELEMENTS)))
        plan = cls(columns, width, share, max(1, _LEAST_THREADS // share))
        return plan if share <= grid.max_block_threads and plan.rounds * width <= _ELEMENTS else None


def _views(problem: Elementwise | Reduction) -> list[MatrixView]:
    return [problem.destination, *(leaf.view for leaf in problem.value.leaves())]


def _is_exchanged(problem: Elementwise | Reduction, columns: int) -> bool:
    if not isinstance(problem, Reduction):
        return True
    operation = ReductionOperation(problem.operation, problem.value.element, by_intrinsic=True)
    return problem.value.cols == columns and operation.partial_element in (FLOAT, I32, I16)


def register_rows_kernel(
    module: Module,
    grid: GridUnit,
    match: Match,
    plan: RegisterPlan,
    private: dict[int, int],
    iterations: Iterations,
    name: str,
) -> GridFacts:
    """Add the kernel of fused rows.

    Args:
        module: The module.
        grid: The grid.
        match: The trees, with the pointers of all.
        plan: How rows are spread over threads.
        private: The pointers to intermediate rows, which are no parameters.
        iterations: The loops around them, for the other pointers.
        name: Stem of the kernel's name.
    """
    fusion = match.problem
    assert isinstance(fusion, RowFusion)
    passed = [number for number in range(len(match.pointers)) if number not in private]
    types = [fusion.pointers[number] for number in passed]
    tiles = -(-fusion.rows // plan.per_block)
    kernel = GridKernel(module, grid, name, types, list(fusion.scalars), iterations, tiles)
    rows = _RowEmitter(kernel, plan, fusion)
    for number, pointer in zip(passed, kernel.pointers, strict=True):
        rows.add_pointer(number, match.pointers[number][1], pointer)
    for part in fusion.parts:
        rows.emit(part)
    threads = plan.share * plan.per_block
    return kernel.finish(threads, rows.shared_bytes, max(1, grid.registers // _REGISTERS // threads))


class _RowEmitter:
    """Emits the parts of a kernel, one after the other."""

    def __init__(self, kernel: GridKernel, plan: RegisterPlan, fusion: RowFusion) -> None:
        self.kernel, self.plan, self.b, self.grid = kernel, plan, kernel.b, kernel.grid
        b = self.b
        local, self.member = kernel.divided(kernel.thread, plan.share)
        _, self.lane = kernel.divided(kernel.thread, kernel.grid.warp_threads)
        row = b.add(b.mul(kernel.tile, plan.per_block), local)
        checks = [b.icmp("ult", row, fusion.rows)] if fusion.rows % plan.per_block else []
        self.row_is_valid = all_of(b, checks)
        self.row = b.umin(row, fusion.rows - 1) if checks else row
        self.shared = self.grid.operations.shared(b)
        self.shared_bytes = 0
        self.bases: dict[int, Value] = {}
        self.loaded: dict[tuple[int, bool], list[Value]] = {}
        self.places: list[ResultTile] = []
        self.are_valid: list[Value | None] = []
        for number in range(plan.rounds):
            vector, valid = b.add(self.member, number * plan.share), None
            if (number + 1) * plan.share > plan.vectors:
                valid = b.icmp("ult", vector, plan.vectors)
                vector = b.umin(vector, plan.vectors - 1)
            column = as_index(b, b.mul(vector, plan.width))
            self.places.append(row_tile(plan.width, const_int(I32, 0), column))
            self.are_valid.append(valid)
        self.places = [ResultTile(1, p.cols, 0, const_int(I64, 0), p.column) for p in self.places]
        self.single = ResultTile(1, 1, 0, const_int(I64, 0), const_int(I64, 0))

    def add_pointer(self, number: int, view: MatrixView, pointer: Value) -> None:
        """Note a pointer to memory, and where its row starts."""
        step = self.b.mul(as_index(self.b, self.row), view.row_stride) if view.rows > 1 else 0
        self.bases[number] = self.b.gep(view.element, pointer, step)

    def emit(self, part: RowFusionPart) -> None:
        """Emit a part."""
        problem = part.problem
        if isinstance(problem, Reduction):
            self._keep_result(part, [self._reduced(part, problem)], is_row=False)
        elif problem.value.cols == 1:
            self._keep_result(part, [self._value(part, problem.value, 0, self.single)], is_row=False)
        else:
            values = [self._value(part, problem.value, k, place) for k, place in enumerate(self.places)]
            self._keep_result(part, values, is_row=True)

    # Values ----------------------------------------------------------------------------------------------------

    def _value(self, part: RowFusionPart, value: Expression, number: int, result_tile: ResultTile) -> Value:
        """An expression at the thread's place with a number."""
        bases = [self.bases.get(pointer, self.shared) for pointer in part.pointers[1:]]
        scalars = [self.kernel.scalars[scalar] for scalar in part.scalars]
        emitter = ExpressionEmitter(self.b, value, bases, scalars)
        known = {
            at: self._leaf(part, emitter, node, number, result_tile)
            for at, node in enumerate(value.nodes)
            if isinstance(node, MatrixLeaf)
        }
        return emitter.result(result_tile, known)

    def _leaf(
        self, part: RowFusionPart, emitter: ExpressionEmitter, leaf: MatrixLeaf, number: int, result_tile: ResultTile
    ) -> Value:
        """A leaf: what the thread holds, or what it loads, and holds for the parts that follow."""
        pointer, is_row = part.pointers[1 + leaf.pointer], leaf.view.cols > 1
        if (pointer, is_row) not in self.loaded:
            places = self.places if is_row else [self.single]
            source = Expression(leaf.view.rows, leaf.view.cols, (leaf,))
            loader = ExpressionEmitter(self.b, source, emitter.pointers, emitter.scalars)
            self.loaded[pointer, is_row] = [loader.result(each) for each in places]
        values = self.loaded[pointer, is_row]
        if is_row or result_tile.cols == 1:
            return values[number if is_row else 0]
        token = self.b.typeinfo(values[0], tile(leaf.element, 1, 1), "scalar")
        return self.b.broadcast(token, (1, result_tile.cols), (0, 1), tile(leaf.element, 1, result_tile.cols))

    def _keep_result(self, part: RowFusionPart, values: list[Value], *, is_row: bool) -> None:
        """Note the result of a part, and store it if it is not private."""
        pointer, view, b = part.pointers[0], part.problem.destination, self.b
        self.loaded[pointer, is_row] = values
        if pointer not in self.bases:
            return
        places, are_valid = (self.places, self.are_valid) if is_row else ([self.single], [b.icmp("eq", self.member, 0)])
        for value, place, valid in zip(values, places, are_valid, strict=True):
            address = tile_address(b, view, self.bases[pointer], place)
            condition = all_of(b, [check for check in (valid, self.row_is_valid) if check is not None])
            if condition is None:
                store_tile_vector(b, view, address, place, value)
                continue
            with b.if_block(condition, "in.row"):
                store_tile_vector(b, view, address, place, value)

    # Reductions ------------------------------------------------------------------------------------------------

    def _reduced(self, part: RowFusionPart, problem: Reduction) -> Value:
        """The result of a reduction, a tile of one element."""
        b, plan, value = self.b, self.plan, problem.value
        operation = ReductionOperation(problem.operation, value.element, by_intrinsic=True)
        element = operation.partial_element
        values = [operation.widened(b, self._value(part, value, k, place)) for k, place in enumerate(self.places)]
        last = self.are_valid[-1]
        whole = values if last is None else values[:-1]
        totals: list[Value] = []
        if whole:
            total = operation.combine_all(b, list(whole))
            totals.append(b.extract_element(operation.reduce_row(b, total, plan.width), 0))
        if last is not None:
            own = b.extract_element(operation.reduce_row(b, values[-1], plan.width), 0)
            totals.append(b.select(last, own, self._identity(operation)))
        result = totals[0] if len(totals) == 1 else self._combined(operation, *totals)
        warp = self.grid.warp_threads
        result = self._over_lanes(operation, result, warp)
        if plan.share > warp:
            slot = self.b.gep(element, self.shared, self.shared_bytes // bytes_of(element))
            warps = plan.share * plan.per_block // warp
            self.shared_bytes += -(-warps * bytes_of(element) // _SLOT) * _SLOT
            number, _ = self.kernel.divided(self.kernel.thread, warp)
            with b.if_block(b.icmp("eq", self.lane, 0), "first"):
                b.store(result, b.gep(element, slot, as_index(b, number)), bytes_of(element))
            self.grid.operations.barrier(b)
            of_row = plan.share // warp
            first = b.binary("and", number, const_int(I32, -of_row))
            own_slot = b.add(first, b.binary("and", self.lane, const_int(I32, of_row - 1)))
            result = b.load(element, b.gep(element, slot, as_index(b, own_slot)), bytes_of(element))
            result = self._over_lanes(operation, result, of_row)
        return operation.narrowed(b, self._tile(result))

    def _identity(self, operation: ReductionOperation) -> Value:
        if operation.uses_ordered_integers:
            return const_int(I16, -0x8000 if operation.operation == "max" else 0)
        return combine_identity(operation.operation, operation.partial_element)

    def _over_lanes(self, operation: ReductionOperation, value: Value, count: int) -> Value:
        """A number combined over so many adjacent lanes."""
        b, distance = self.b, 1
        while distance < count:
            lane = b.binary("xor", self.lane, const_int(I32, distance))
            word = b.cast("zext", value, I32) if value.type == I16 else b.cast("bitcast", value, I32)
            word = self.grid.operations.shuffle(b, word, lane, self.grid.warp_threads)
            other = b.cast("trunc", word, I16) if value.type == I16 else b.cast("bitcast", word, value.type)
            value = self._combined(operation, value, other)
            distance *= 2
        return value

    def _tile(self, number: Value) -> Value:
        undefined: Type = VectorType(1, number.type)
        return self.b.insert_element(Keyword(undefined, "undef"), number, 0)

    def _combined(self, operation: ReductionOperation, x: Value, y: Value) -> Value:
        """Two numbers combined."""
        return self.b.extract_element(operation.apply(self.b, self._tile(x), self._tile(y)), 0)
