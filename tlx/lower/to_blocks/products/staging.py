"""Operands of products in stages of shared memory, copied asynchronously.

A stage has a tile of A and one of B laid out as in memory. A tile consists of boxes: all its lines, each with at most
eight chunks of 16 bytes. Chunk c of line l is at position c xor (l mod 8) of the line, so that the chunks c of eight
lines are in different banks:

    line 0   c0 c1 c2 c3 c4 c5 c6 c7
    line 1   c1 c0 c3 c2 c5 c4 c7 c6          lines of four chunks: c xor (l / 2 mod 4)
    line 2   c2 c3 c0 c1 c6 c7 c4 c5

Lines along K of doubles are in the order 0, 4, 1, 5, 2, ... of these.

    copy the first stages
    for stages             wait for the stage; barrier
      sums += A @ B        and start to copy a stage over one that has been multiplied
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from tlx.ir.types import I8, I32, bytes_of
from tlx.ir.values import Value, const_int, const_vector, zero
from tlx.lower.to_blocks.kernel import GridKernel, all_of, as_index
from tlx.lower.to_blocks.products.epilogue import ResultPart, RowSegment, ThreadSums, WarpMemory
from tlx.lower.to_blocks.products.implicit_gemm import MergedProduct
from tlx.lower.to_blocks.products.k_positions import KPosition, KPositions, TileSums, terms_of
from tlx.lower.to_tiles.expression import MatrixView
from tlx.target.grid_unit import CHUNK_BYTES, LINE_BYTES, BlockShape

_LINE_CHUNKS: Final = LINE_BYTES // CHUNK_BYTES
_PAIR: Final = 2


@dataclass(frozen=True, slots=True)
class StagedOperand:
    """A tile of an operand in each stage.

    Attributes:
        view: The operand.
        pointer: Its first element.
        lines, length: Lines of the tile, and elements of a line.
        offset: Bytes from the start of a stage.
        k_lines: Whether lines follow each other along K.
        is_transposed: Whether lines are those of memory transposed.
        is_lhs: Whether it is A.
    """

    view: MatrixView
    pointer: Value
    lines: int
    length: int
    offset: int
    k_lines: bool
    is_transposed: bool
    is_lhs: bool

    @classmethod
    def of(
        cls, view: MatrixView, pointer: Value, shape: BlockShape, offset: int, *, is_lhs: bool, may_follow_k: bool
    ) -> StagedOperand:
        """A tile in its layout in memory, or transposed if its lines would follow K and must not."""
        follows_k = view.is_row_major != is_lhs
        k_lines, across = follows_k and may_follow_k, shape.rows if is_lhs else shape.columns
        sizes = (shape.depth, across) if k_lines else (across, shape.depth)
        return cls(view, pointer, *sizes, offset, k_lines, follows_k != k_lines, is_lhs)

    @property
    def number(self) -> int:
        """Position among the kernel's pointers, and one more than that among the operands."""
        return 1 if self.is_lhs else 2

    @property
    def per_chunk(self) -> int:
        """Elements of a chunk."""
        return CHUNK_BYTES // bytes_of(self.view.element)

    @property
    def chunks(self) -> int:
        """Chunks of a line."""
        return self.length // self.per_chunk

    @property
    def box_chunks(self) -> int:
        """Chunks of a line of a box."""
        return min(self.chunks, _LINE_CHUNKS)

    @property
    def box_bytes(self) -> int:
        """Bytes of a box."""
        return self.lines * self.box_chunks * CHUNK_BYTES

    @property
    def size(self) -> int:
        """Bytes of the tile."""
        return self.lines * self.length * bytes_of(self.view.element)

    def chunk_offset(self, kernel: GridKernel, line: Value, chunk: Value) -> Value:
        """Bytes from the start of the tile to a chunk of a line; all are i32."""
        b, width = kernel.b, self.box_chunks
        box, within = kernel.divided(chunk, width) if self.chunks > width else (const_int(I32, 0), chunk)
        shift = (_LINE_CHUNKS // width).bit_length() - 1
        swizzle = b.binary("and", b.binary("lshr", line, const_int(I32, shift)), const_int(I32, width - 1))
        if self.per_chunk == _PAIR and not self.k_lines:  # four threads read adjacent chunks of a line
            odd = b.binary("and", swizzle, const_int(I32, 1))
            swizzle = b.add(b.mul(odd, width // 2), b.binary("lshr", swizzle, const_int(I32, 1)))
        at = b.add(b.mul(line, width * CHUNK_BYTES), b.mul(b.binary("xor", within, swizzle), CHUNK_BYTES))
        return b.add(b.mul(box, self.box_bytes), at)


@dataclass(frozen=True, slots=True)
class StageCopies:
    """Emits the copies of both operands to stages.

    Attributes:
        kernel: The kernel.
        merged: The product.
        positions: The positions along K.
        depth: Positions of a stage.
        shared: The block's shared memory.
        operands: A and B.
        threads: Threads that copy.
    """

    kernel: GridKernel
    merged: MergedProduct
    positions: KPositions
    depth: int
    shared: Value
    operands: tuple[StagedOperand, StagedOperand]
    threads: int

    def start(self, number: Value, offset: Value, row: Value, column: Value) -> None:
        """Start the copies of a stage (i32) to an offset in shared memory (i32)."""
        first = self.positions.first(number, self.depth)
        for operand, origin in zip(self.operands, (row, column), strict=True):
            self._copy(operand, offset, first, origin)

    def _copy(self, operand: StagedOperand, offset: Value, first: KPosition, origin: Value) -> None:
        """Start the copies of a tile.

        Args:
            operand: A or B.
            offset: Offset of the stage in shared memory, i32.
            first: The first position of the stage.
            origin: First row of A, or column of B.
        """
        b, kernel = self.kernel.b, self.kernel
        base = b.gep(I8, self.shared, as_index(b, b.add(offset, operand.offset)))
        asynchronous = self._is_aligned(operand)

        def chunk(number: Value) -> None:
            if operand.is_transposed:  # adjacent threads have adjacent elements of memory
                place, line = kernel.divided(number, operand.lines)
            else:
                line, place = kernel.divided(number, operand.chunks)
            to = b.gep(I8, base, as_index(b, operand.chunk_offset(kernel, line, place)))
            element = b.mul(place, operand.per_chunk)
            along, across = (line, element) if operand.k_lines else (element, line)
            if asynchronous:
                self._copy_chunk(operand, to, self.positions.after(first, along), b.add(origin, across))
                return
            values: Value = const_vector([zero(operand.view.element)] * operand.per_chunk)
            for k in range(operand.per_chunk):
                at = b.add(along, 0 if operand.k_lines else k), b.add(across, k if operand.k_lines else 0)
                loaded = self._element(operand, self.positions.after(first, at[0]), b.add(origin, at[1]))
                values = b.insert_element(values, loaded, k)
            b.store(values, to, CHUNK_BYTES)

        kernel.for_each(operand.lines * operand.chunks, self.threads, chunk, unrolled=True)

    def _is_aligned(self, operand: StagedOperand) -> bool:
        """Whether each chunk of a line is aligned in memory, and belongs to one product."""
        number, merged = operand.number, self.merged
        terms, gemm = terms_of(merged.gemm), merged.gemm
        aligned = [self.kernel.iterations.alignments[number], operand.view.pitch * bytes_of(operand.view.element)]
        aligned += [term[number - 1] * bytes_of(operand.view.element) for term in terms]
        lengths = [gemm.k] if len(terms) > 1 and not operand.k_lines else []
        if operand.is_transposed:
            return False
        if operand.k_lines and merged.inner.trips and merged.by_rows == operand.is_lhs:
            lengths.append(gemm.m if operand.is_lhs else gemm.n)
        return not any(n % CHUNK_BYTES for n in aligned) and not any(n % operand.per_chunk for n in lengths)

    def _extent_across_k(self, operand: StagedOperand) -> int:
        """Rows of A, or columns of B."""
        return self.merged.rows if operand.is_lhs else self.merged.columns

    def _source(self, operand: StagedOperand, at: KPosition, across: Value) -> Value:
        """The address of an element."""
        b, view, merged = self.kernel.b, operand.view, self.merged
        base = operand.pointer
        if merged.by_rows == operand.is_lhs:
            iteration, row, column = merged.position_of(self.kernel, across, across)
            base, across = merged.moved(self.kernel, base, operand.number, iteration), row if merged.by_rows else column
        if at.offsets is not None:
            base = b.gep(view.element, base, at.offsets[operand.number - 1])
        line, element = (at.k, across) if operand.k_lines != operand.is_transposed else (across, at.k)
        address = b.gep(view.element, base, b.mul(as_index(b, line), view.pitch))
        return b.gep(view.element, address, as_index(b, element))

    def _copy_chunk(self, operand: StagedOperand, destination: Value, at: KPosition, across: Value) -> None:
        """Start to copy a chunk, from its first element on; what is outside of the matrix becomes zero."""
        b, extent = self.kernel.b, self._extent_across_k(operand)
        along, count = (across, extent) if operand.k_lines else (at.number, self.positions.count)
        line, lines = (at.number, self.positions.count) if operand.k_lines else (across, extent)
        source, valid = self._source(operand, at, across), None
        if count % operand.length:
            left = b.umin(b.sub(const_int(I32, count), b.umin(along, count)), operand.per_chunk)
            valid = b.mul(left, bytes_of(operand.view.element))
        if lines % operand.lines:
            inside = b.icmp("ult", line, lines)
            valid = b.select(inside, valid or const_int(I32, CHUNK_BYTES), const_int(I32, 0))
        if valid is not None:
            source = b.select(b.icmp("ne", valid, 0), source, operand.pointer)
        self.kernel.grid.operations.copy(b, destination, source, valid)

    def _element(self, operand: StagedOperand, at: KPosition, across: Value) -> Value:
        """An element; zero outside of the matrix."""
        b, element = self.kernel.b, operand.view.element
        size, source = bytes_of(element), self._source(operand, at, across)
        extent = operand.lines if not operand.k_lines else operand.length
        checks = [b.icmp("ult", at.number, self.positions.count)] if self.positions.count % self.depth else []
        count = self._extent_across_k(operand)
        checks += [b.icmp("ult", across, count)] if count % extent else []
        inside = all_of(b, checks)
        if inside is None:
            return b.load(element, source, size)
        loaded = b.load(element, b.select(inside, source, operand.pointer), size)
        return b.select(inside, loaded, zero(element))


class StagedSums(ABC):
    """Emits the sums of a tile; see the module's description.

    Args:
        kernel: The kernel.
        tile: What it computes.

    Attributes:
        ahead: Stages that are copied ahead: all, if shared memory has room for them.
    """

    rows: int
    """Rows of the sums that a warp holds together, in two halves."""
    columns: int = 8
    """Columns of such sums."""
    busy_stages: int
    """Stages that may still be read while the next one is copied."""
    transposable: tuple[int, ...] = (2,)
    """Bytes of elements whose lines in shared memory may follow each other along K."""

    def __init__(self, kernel: GridKernel, tile: TileSums) -> None:
        merged, shape = tile.merged, tile.shape
        self.kernel, self.merged, self.shape, self.shared = kernel, merged, shape, tile.shared
        self.accumulator, self.positions = tile.accumulator, tile.positions
        self.b, self.operations = kernel.b, kernel.grid.operations
        a, b = merged.gemm.a, merged.gemm.b
        free = bytes_of(a.element) in self.transposable
        self.lhs = StagedOperand.of(a, kernel.pointers[1], shape, 0, is_lhs=True, may_follow_k=free)
        self.rhs = StagedOperand.of(b, kernel.pointers[2], shape, self.lhs.size, is_lhs=False, may_follow_k=free)
        self.stage_bytes = self.lhs.size + self.rhs.size
        self.threads = shape.warps * kernel.grid.warp_threads
        operands = self.lhs, self.rhs
        self._copies = StageCopies(kernel, merged, tile.positions, shape.depth, tile.shared, operands, self.threads)
        count = tile.positions.stages
        self.ahead = count if count <= shape.stages else shape.stages - self.busy_stages
        warp, self.lane = kernel.divided(kernel.thread, kernel.grid.warp_threads)
        down, across = kernel.divided(warp, shape.columns // shape.warp_columns)
        self.warp_row, self.warp_column = self.b.mul(down, shape.warp_rows), self.b.mul(across, shape.warp_columns)

    @abstractmethod
    def multiplied(self, acc: list[Value], stage: Value) -> list[Value]:
        """The sums with the products of a stage, at an offset (i32) in shared memory, added."""

    def before_barrier(self) -> None:
        """Emit what a thread does after its copies have arrived; by default nothing."""
        return

    def after_copies(self) -> None:
        """Emit what a thread does after it has started the copies of a stage; by default nothing."""
        return

    def finished(self, acc: list[Value]) -> list[Value]:
        """The sums, when all products are added."""
        return acc

    def emit(self, row: Value, column: Value) -> ThreadSums:
        """Compute the tile whose first row and column in C are given, i32."""
        b, shape, ahead = self.b, self.shape, self.ahead
        assert ahead > 0, (
            f"{shape.stages} stages are too few: the next one is copied while {self.busy_stages} may be read"
        )
        count = self.positions.stages
        for number in range(ahead):
            self._copies.start(const_int(I32, number), const_int(I32, number * self.stage_bytes), row, column)
            self.operations.commit(b)
        per_warp = shape.warp_rows * shape.warp_columns // self.kernel.grid.warp_threads
        offsets = [const_int(I32, 0), const_int(I32, ahead * self.stage_bytes)]
        with b.loop(0, count, carry=[*offsets, *[zero(self.accumulator)] * per_warp], name="stage") as loop:
            at, free, *acc = loop.carried
            self.operations.wait(b, ahead - 1)
            self.before_barrier()
            self.operations.barrier(b)
            acc = self.multiplied(acc, at)
            if count > ahead:
                following = b.add(b.cast("trunc", loop.index, I32), ahead)
                with b.if_block(b.icmp("ult", following, count), "copy"):
                    self._copies.start(following, free, row, column)
            self.operations.commit(b)
            self.after_copies()
            loop.next(self._next(at), self._next(free), *acc)
        part = ResultPart.of(self.merged.gemm.c.element, self.rows, shape.warp_columns)

        def complete() -> list[Value]:
            acc = self.finished(loop.results[2:])
            self.operations.wait(b, 0)
            self.operations.barrier(b)
            return acc

        return self.thread_sums(complete, (row, column), self.memory_of_warp(part, 0))

    def _next(self, offset: Value) -> Value:
        """The offset of the stage after one."""
        b = self.b
        following = b.add(offset, self.stage_bytes)
        return b.select(b.icmp("eq", following, self.stage_bytes * self.shape.stages), const_int(I32, 0), following)

    def thread_sums(
        self, complete: Callable[[], Sequence[Value]], origin: tuple[Value, Value], memory: WarpMemory
    ) -> ThreadSums:
        """The thread's sums of a tile, whose first row and column in C are given."""
        b, size = self.b, self.rows * self.columns // self.kernel.grid.warp_threads
        width, segments = self.shape.warp_columns // self.columns, list[RowSegment]()
        group, quad = self.kernel.divided(self.lane, 4)
        per_warp = self.shape.warp_rows * self.shape.warp_columns // self.kernel.grid.warp_threads
        for number in range(0, per_warp, _PAIR):
            (i, j), k = divmod(number // size, width), number % size
            down = i * self.rows + k // _PAIR * (self.rows // 2)
            segments.append(RowSegment(down, j * self.columns, number, _PAIR))
        place = b.add(self.warp_row, group), b.add(self.warp_column, b.mul(quad, _PAIR))
        return ThreadSums(origin, place, tuple(segments), complete, memory)

    def memory_of_warp(self, part: ResultPart, offset: int) -> WarpMemory:
        """The warp's part of shared memory, where those of all warps begin some bytes after its start."""
        b = self.b
        warp, _ = self.kernel.divided(self.kernel.thread, self.kernel.grid.warp_threads)
        base = b.gep(I8, self.shared, as_index(b, b.add(b.mul(warp, part.size), offset)))
        return WarpMemory(part, base, (self.warp_row, self.warp_column), self.lane)
