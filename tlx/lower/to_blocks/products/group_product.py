"""Products of groups of warps, which read their operands from shared memory while the group copies the next stages.

    multiply stage n, without waiting         the group's sums stay in registers
    start to copy stage n + stages - 2        over stage n - 2, whose products all groups have waited for
    wait for the products of stage n - 1

A group of four warps multiplies 64 rows of the tile; warp w of it holds rows 16 w to 16 w + 15 of the sums.

Where the machine copies boxes of tensors, a thread of one more warp does nothing but start such copies. Each stage has
a barrier that counts what has arrived, and one that counts the warps that have multiplied it:

    the thread of copies                      warps of the groups
      for stages of all tiles                   for stages of all tiles
        wait until the stage is free              wait until it is full
        start to copy A and B                     start the products, wait for those of the stage before, free that

Blocks then compute several tiles one after the other: the stages of the next tile are copied while C is computed from
the sums.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from tlx.ir.types import I8, I32, I64, bytes_of
from tlx.ir.values import Value, const_int, zero
from tlx.lower.to_blocks.kernel import GridKernel, MappedPointer, all_of, as_index
from tlx.lower.to_blocks.products.epilogue import ResultPart, ThreadSums
from tlx.lower.to_blocks.products.implicit_gemm import MergedProduct
from tlx.lower.to_blocks.products.k_positions import TileSums, terms_of
from tlx.lower.to_blocks.products.staging import StagedOperand, StagedSums
from tlx.lower.to_tiles.problem import Gemm
from tlx.target.grid_unit import CHUNK_BYTES, BlockShape, GridUnit, GroupProduct, SharedOperand, TensorCopies
from tlx.target.launches import TensorMap

_BARRIER_BYTES: Final = 8
_BARRIERS_BYTES: Final = 2 * _BARRIER_BYTES
"""Bytes of a stage's barriers."""


class GroupSums(StagedSums):
    """Emits the sums of a tile by products of groups; see the module's description."""

    busy_stages = 2  # the one that is multiplied, and the one before, whose products may not be complete
    rows = 16

    def __init__(self, kernel: GridKernel, tile: TileSums, product: GroupProduct) -> None:
        super().__init__(kernel, tile)
        self.product = product
        warps = product.rows // self.rows
        self.group, _ = kernel.divided(kernel.thread, warps * kernel.grid.warp_threads)

    def before_barrier(self) -> None:
        """Make what was copied visible to products."""
        self.product.operations.fence(self.b)

    def after_copies(self) -> None:
        """Wait for the products of the stage before."""
        self.product.operations.wait(self.b)

    def finished(self, acc: list[Value]) -> list[Value]:
        """The sums, when the last products are complete."""
        return self.product.operations.complete(self.b, acc)

    def multiplied(self, acc: list[Value], stage: Value) -> list[Value]:
        """Start the products of a stage."""
        product, b = self.product, self.b
        down = self.lhs.box_bytes if self.lhs.k_lines else product.rows * self.lhs.box_chunks * CHUNK_BYTES
        rhs = self._steps(self.rhs, b.add(stage, self.rhs.offset))
        lhs = self._steps(self.lhs, b.add(b.add(stage, self.lhs.offset), b.mul(self.group, down)))
        return product.operations.multiply(b, product, acc, lhs, rhs, self.shape.columns)

    def _steps(self, operand: StagedOperand, start: Value) -> list[SharedOperand]:
        """The parts of an operand for the steps along K, the first one at an offset (i32) in shared memory."""
        b, depth = self.b, self.product.depth
        first = b.gep(I8, self.shared, as_index(b, start))
        steps = range(self.shape.depth // depth)
        return [_part(operand, first, k * depth * _step(operand)) for k in steps]


@dataclass(frozen=True)
class MappedOperands:
    """The operands of a product as tensor maps.

    Attributes:
        copies: Emits the copies.
        pointers: The maps of A and B.
        loops: For each of the two, the loops that are its dimensions beside rows and columns.
    """

    copies: TensorCopies
    pointers: tuple[MappedPointer, MappedPointer]
    loops: tuple[tuple[int, ...], tuple[int, ...]]

    @classmethod
    def of(
        cls, grid: GridUnit, merged: MergedProduct, shape: BlockShape, in_workspace: dict[int, int]
    ) -> MappedOperands | None:
        """The maps, unless the machine has none, or they cannot describe the operands."""
        copies, gemm = grid.tensor_copies, merged.gemm
        if copies is None or len(terms_of(gemm)) > 1:
            return None
        found = [_mapped(copies, merged, shape, number, in_workspace.get(number)) for number in (1, 2)]
        (a, b) = found
        if a is None or b is None:
            return None
        return cls(copies, (a[0], b[0]), (a[1], b[1]))


def _mapped(
    copies: TensorCopies, merged: MergedProduct, shape: BlockShape, number: int, workspace: int | None
) -> tuple[MappedPointer, tuple[int, ...]] | None:
    """The map of an operand, and the loops that are its last dimensions."""
    gemm, outer, is_lhs = merged.gemm, merged.outer, number == 1
    view = gemm.a if is_lhs else gemm.b
    size, pitch = bytes_of(view.element), view.pitch * bytes_of(view.element)
    k_lines, across = view.is_row_major != is_lhs, merged.rows if is_lhs else merged.columns
    extents = (across, gemm.k) if k_lines else (gemm.k, across)
    loops = tuple(loop for loop, step in enumerate(outer.steps[number]) if step)
    steps = [pitch, *(outer.steps[number][loop] for loop in reversed(loops))]
    if k_lines and size not in GroupSums.transposable:
        return None
    if outer.constants[number] is not None and workspace is None:
        return None
    if merged.by_rows == is_lhs and not _is_dense(merged, number, (gemm.m if is_lhs else gemm.n) * pitch, k_lines):
        return None
    if len(steps) >= copies.most_dimensions or outer.alignments[number] % CHUNK_BYTES:
        return None
    if any(step <= 0 or step % CHUNK_BYTES for step in steps):
        return None
    lines = shape.depth if k_lines else (shape.rows if is_lhs else shape.columns)
    box = (copies.line_bytes // size, lines, *[1] * len(loops))
    extents = (*extents, *(outer.trips[loop] for loop in reversed(loops)))
    tensor_map = TensorMap(str(view.element), extents, tuple(steps), box, copies.line_bytes)
    return MappedPointer(number, tensor_map, workspace), loops


def _is_dense(merged: MergedProduct, number: int, size: int, k_lines: bool) -> bool:
    """Whether the lines of merged iterations, each of some bytes, follow each other in memory."""
    inner = merged.inner
    for trips, step in zip(reversed(inner.trips), reversed(inner.steps[number]), strict=True):
        if step != size or k_lines:
            return False
        size *= trips
    return True


@dataclass(frozen=True, slots=True)
class MappedMemory:
    """Shared memory of a block that copies by maps: stages, barriers, and a part of C for each warp.

    Attributes:
        barriers: Bytes before the barriers.
        parts: Bytes before the parts.
        part: A part.
        size: All bytes.
    """

    barriers: int
    parts: int
    part: ResultPart
    size: int

    @classmethod
    def of(cls, shape: BlockShape, gemm: Gemm) -> MappedMemory:
        """The memory for a product."""
        stages = (shape.rows + shape.columns) * shape.depth * bytes_of(gemm.a.element) * shape.stages
        parts = stages + _BARRIERS_BYTES * shape.stages
        part = ResultPart.of(gemm.c.element, GroupSums.rows, shape.columns)
        return cls(stages, parts, part, parts + shape.warps * part.size)


class MappedGroupSums(GroupSums):
    """Emits the sums of tiles whose operands are copied by their maps; see the module's description.

    Args:
        mapped: The maps.
        blocks: Blocks of the grid.
    """

    def __init__(
        self, kernel: GridKernel, tile: TileSums, product: GroupProduct, mapped: MappedOperands, blocks: int
    ) -> None:
        super().__init__(kernel, tile, product)
        self.mapped, self.copies, self.blocks = mapped, mapped.copies, blocks
        self.memory = MappedMemory.of(tile.shape, tile.merged.gemm)

    def emit_tiles(self, place: Callable[[], tuple[Value, Value]], use: Callable[[ThreadSums], None]) -> None:
        """Compute the block's tiles.

        Args:
            place: Emits the first row and column (i32) of the kernel's tile.
            use: Emits what becomes of the sums.
        """
        b, kernel = self.b, self.kernel
        self._make_barriers()
        copying, multiplying = b.if_else_blocks(b.icmp("uge", kernel.thread, self.threads), ("copying", "multiplying"))
        b.at_end(multiplying)
        self._for_tiles(lambda carried: self._multiply_tile(carried, place, use), 0)
        done = b.new_block("done")
        b.branch(done)
        b.at_end(copying)
        with b.if_block(b.icmp("eq", kernel.thread, self.threads), "copies"):
            self._for_tiles(lambda carried: self._copy_tile(carried, place()), 1)
        b.branch(done)
        b.at_end(done)

    def _make_barriers(self) -> None:
        b = self.b
        with b.if_block(b.icmp("eq", self.kernel.thread, 0), "barriers"):
            for slot in range(self.shape.stages):
                self.copies.make_barrier(b, self._full(const_int(I32, slot)), 1)
                self.copies.make_barrier(b, self._free(const_int(I32, slot)), self.shape.warps)
            self.copies.publish_barriers(b)
        self.operations.barrier(b)

    def _full(self, slot: Value) -> Value:
        """The barrier that counts what has arrived of a stage."""
        at = self.b.add(self.b.mul(slot, _BARRIERS_BYTES), self.memory.barriers)
        return self.b.gep(I8, self.shared, as_index(self.b, at))

    def _free(self, slot: Value) -> Value:
        """The barrier that counts the warps that have multiplied it."""
        return self.b.gep(I8, self._full(slot), _BARRIER_BYTES)

    def _for_tiles(self, body: Callable[[list[Value]], list[Value]], parity: int) -> None:
        """Emit a body for the block's tiles, from a stage and its parity, the first of which is given, to the next."""
        b, kernel, total, start = self.b, self.kernel, self.kernel.all_tiles, self.kernel.block
        first = [const_int(I32, 0), const_int(I32, parity)]
        if total <= self.blocks:
            kernel.move_to(start)
            body([*first])
            return
        bounds = as_index(b, start), const_int(I64, total)
        with b.loop(*bounds, self.blocks, carry=first, name="tile", nonempty=True) as loop:
            kernel.move_to(b.cast("trunc", loop.index, I32))
            loop.next(*body(loop.carried))

    def _after(self, slot: Value, parity: Value) -> tuple[Value, Value]:
        """The stage after one, and its parity."""
        b, following = self.b, self.b.add(slot, 1)
        wraps = b.icmp("eq", following, self.shape.stages)
        return b.select(wraps, const_int(I32, 0), following), b.binary("xor", parity, b.cast("zext", wraps, I32))

    # Copies ----------------------------------------------------------------------------------------------------

    def _copy_tile(self, carried: list[Value], origin: tuple[Value, Value]) -> list[Value]:
        """Start the copies of all stages of a tile."""
        b = self.b
        with b.loop(0, self.positions.stages, carry=carried, name="stage") as loop:
            slot, parity = loop.carried
            self.copies.wait(b, self._free(slot), parity)
            full, stage = self._full(slot), b.mul(slot, self.stage_bytes)
            self.copies.expect(b, full, self.stage_bytes)
            k = self.positions.first(b.cast("trunc", loop.index, I32), self.shape.depth).number
            for operand, across in zip((self.lhs, self.rhs), origin, strict=True):
                self._copy_boxes(operand, stage, (k, across), full)
            loop.next(*self._after(slot, parity))
        return loop.results

    def _copy_boxes(self, operand: StagedOperand, stage: Value, position: tuple[Value, Value], barrier: Value) -> None:
        """Start to copy a tile, from a position of K and a row or column on."""
        b, (k, across), number = self.b, position, 0 if operand.is_lhs else 1
        loops = self._indices(self.mapped.loops[number])
        length = operand.box_chunks * operand.per_chunk
        for box in range(operand.length // length):
            to = b.gep(I8, self.shared, as_index(b, b.add(stage, operand.offset + box * operand.box_bytes)))
            at = (b.add(across, box * length), k) if operand.k_lines else (b.add(k, box * length), across)
            self.copies.copy(b, to, self.kernel.maps[number], [*at, *loops], barrier)

    def _indices(self, loops: Sequence[int]) -> list[Value]:
        """The indices (i32) of some loops, the inner ones first."""
        kernel, found = self.kernel, dict[int, Value]()
        trips, iteration = self.merged.outer.trips, kernel.iteration
        for loop in reversed(range(len(trips))):
            iteration, found[loop] = kernel.divided(iteration, trips[loop])
        return [found[loop] for loop in reversed(loops)]

    # Products --------------------------------------------------------------------------------------------------

    def _multiply_tile(
        self, carried: list[Value], place: Callable[[], tuple[Value, Value]], use: Callable[[ThreadSums], None]
    ) -> list[Value]:
        """Multiply all stages of a tile, and use its sums."""
        b, product, (slot, parity) = self.b, self.product, carried
        per_warp = self.shape.warp_rows * self.shape.warp_columns // self.kernel.grid.warp_threads
        carry = [slot, parity, slot, *[zero(self.accumulator)] * per_warp]
        with b.loop(0, self.positions.stages, carry=carry, name="stage") as loop:
            slot, parity, before, *acc = loop.carried
            self.copies.wait(b, self._full(slot), parity)
            acc = self.multiplied(acc, b.mul(slot, self.stage_bytes))
            product.operations.wait(b)
            if self.positions.stages > 1:
                self._release(before, b.icmp("ne", loop.index, 0))
            loop.next(*self._after(slot, parity), slot, *acc)
        slot, parity, last, *acc = loop.results

        def complete() -> list[Value]:
            sums = self.finished(acc)
            self._release(last)
            return sums

        use(self.thread_sums(complete, place(), self.memory_of_warp(self.memory.part, self.memory.parts)))
        return [slot, parity]

    def _release(self, slot: Value, condition: Value | None = None) -> None:
        """Say that the warp has multiplied a stage, if a condition holds."""
        b = self.b
        checks = [b.icmp("eq", self.lane, 0), *([condition] if condition is not None else [])]
        with b.if_block(all_of(b, checks) or checks[0], "release"):
            self.copies.arrive(b, self._free(slot))


def _step(operand: StagedOperand) -> int:
    """Bytes from one position of K to the next in a box."""
    return operand.box_chunks * CHUNK_BYTES if operand.k_lines else CHUNK_BYTES // operand.per_chunk


def _part(operand: StagedOperand, address: Value, offset: int) -> SharedOperand:
    return SharedOperand(address, offset, operand.k_lines, operand.box_bytes, operand.box_chunks * CHUNK_BYTES)
