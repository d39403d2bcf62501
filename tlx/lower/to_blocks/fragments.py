"""Products of fragments: operands in swizzled stages of shared memory, sums in the registers of warps.

A stage has a tile of A and one of B as they lie in memory: lines of 16-byte chunks. Chunk c of line l is at position
c xor (l mod 8), so that the eight lines that a fragment reads are in different banks:

    line 0   c0 c1 c2 c3 c4 c5 c6 c7
    line 1   c1 c0 c3 c2 c5 c4 c7 c6          lines of four chunks: c xor (l / 2 mod 4)
    line 2   c2 c3 c0 c1 c6 c7 c4 c5

    copy stages 0 .. S-2
    for stages             wait for the stage; barrier; start to copy stage + S-1, over the one multiplied last
      for 16 of K          load fragments, multiply
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tlx.ir.types import I8, I32, Type, bytes_of
from tlx.ir.values import Value, const_int, zero
from tlx.lower.to_blocks.kernel import GridKernel, all_of, as_index
from tlx.lower.to_tiles.expression import MatrixView
from tlx.lower.to_tiles.problem import Gemm
from tlx.target.grid_unit import BlockShape, FragmentProduct

_CHUNK: Final = 16
_LINES: Final = 8


@dataclass(frozen=True, slots=True)
class StagedOperand:
    """A tile of an operand in each stage.

    Attributes:
        view: The operand.
        pointer: Its first element.
        lines, length: Lines of the tile, and elements of a line.
        offset: Bytes from the start of a stage.
        k_lines: Whether lines follow each other along K.
        is_lhs: Whether it is A.
    """

    view: MatrixView
    pointer: Value
    lines: int
    length: int
    offset: int
    k_lines: bool
    is_lhs: bool

    @property
    def per_chunk(self) -> int:
        """Elements of a chunk."""
        return _CHUNK // bytes_of(self.view.element)

    @property
    def chunks(self) -> int:
        """Chunks of a line."""
        return self.length // self.per_chunk

    @property
    def size(self) -> int:
        """Bytes of the tile."""
        return self.lines * self.length * bytes_of(self.view.element)

    @property
    def extents(self) -> tuple[int, int]:
        """Lines of the whole operand, and elements of its lines."""
        view = self.view
        return (view.rows, view.cols) if view.is_row_major else (view.cols, view.rows)


@dataclass(eq=False)
class FragmentSums:
    """Emits the sums of a tile; see the module's description."""

    kernel: GridKernel
    gemm: Gemm
    shape: BlockShape
    fragments: FragmentProduct | None
    shared: Value
    accumulator: Type

    def __post_init__(self) -> None:
        assert self.fragments is not None
        self.b, self.product, self.operations = self.kernel.b, self.fragments, self.kernel.grid.operations
        shape, pointers = self.shape, self.kernel.pointers
        a, b = self.gemm.a, self.gemm.b
        sizes = (shape.rows, shape.depth) if a.is_row_major else (shape.depth, shape.rows)
        self.lhs = StagedOperand(a, pointers[1], *sizes, 0, not a.is_row_major, True)
        sizes = (shape.depth, shape.columns) if b.is_row_major else (shape.columns, shape.depth)
        self.rhs = StagedOperand(b, pointers[2], *sizes, self.lhs.size, b.is_row_major, False)
        self.stage_bytes = self.lhs.size + self.rhs.size
        self.threads = shape.warps * self.kernel.grid.warp

    def emit(self, row: Value, column: Value, sums: MatrixView) -> None:
        """Compute the tile at a place of C into shared memory.

        Args:
            row: The tile's first row, i32.
            column: Its first column.
            sums: Where the sums are put.
        """
        b, shape, stages = self.b, self.shape, self.shape.stages
        count = -(-self.gemm.k // shape.depth)
        for number in range(stages - 1):
            if number < count:
                self._copy_stage(const_int(I32, number), const_int(I32, number * self.stage_bytes), row, column)
            self.operations.commit(b)
        self._place_warp()
        height, width = shape.warp_rows // self.product.rows, shape.warp_columns // self.product.columns
        per_fragment = self.product.rows * self.product.columns // self.kernel.grid.warp
        carry: list[Value] = [zero(self.accumulator)] * (height * width * per_fragment)
        first = const_int(I32, 0)
        behind = const_int(I32, (stages - 1) * self.stage_bytes)
        with b.loop(0, count, carry=[first, behind, *carry], name="stage") as loop:
            at, ahead, *acc = loop.carried
            self.operations.wait(b, stages - 2)
            self.operations.barrier(b)
            if count > stages - 1:
                following = b.add(b.cast("trunc", loop.index, I32), stages - 1)
                with b.if_block(b.icmp("ult", following, count), "copy"):
                    self._copy_stage(following, ahead, row, column)
            self.operations.commit(b)
            for step in range(shape.depth // self.product.depth):
                acc = self._multiplied(acc, step, at)
            loop.next(self._next(at), self._next(ahead), *acc)
        self.operations.wait(b, 0)
        self.operations.barrier(b)
        self._store(loop.results[2:], sums)

    def _next(self, offset: Value) -> Value:
        """The offset of the stage after one."""
        b = self.b
        following = b.add(offset, self.stage_bytes)
        return b.select(b.icmp("eq", following, self.stage_bytes * self.shape.stages), const_int(I32, 0), following)

    # Copies ----------------------------------------------------------------------------------------------------

    def _copy_stage(self, number: Value, offset: Value, row: Value, column: Value) -> None:
        """Start the copies of a stage (i32) to an offset in shared memory (i32)."""
        start = self.b.mul(number, self.shape.depth)
        for operand, origin in ((self.lhs, row), (self.rhs, column)):
            lines, elements = (start, origin) if operand.k_lines else (origin, start)
            self._copy(operand, offset, lines, elements)

    def _copy(self, operand: StagedOperand, offset: Value, line0: Value, element0: Value) -> None:
        b, view, kernel = self.b, operand.view, self.kernel
        base = b.gep(I8, self.shared, as_index(b, b.add(offset, operand.offset)))
        asynchronous = self._is_aligned(operand)

        def chunk(number: Value) -> None:
            line, position = kernel.divided(number, operand.chunks)
            swizzled = b.binary("xor", position, self._swizzle(line, operand.chunks))
            to = b.add(b.mul(line, operand.chunks * _CHUNK), b.mul(swizzled, _CHUNK))
            row, element = b.add(line0, line), b.add(element0, b.mul(position, operand.per_chunk))
            address = b.gep(view.element, operand.pointer, b.mul(as_index(b, row), view.pitch))
            address = b.gep(view.element, address, as_index(b, element))
            self._copy_chunk(operand, b.gep(I8, base, as_index(b, to)), address, (row, element), asynchronous)

        kernel.for_each(operand.lines * operand.chunks, self.threads, chunk, unrolled=True)

    def _is_aligned(self, operand: StagedOperand) -> bool:
        """Whether each chunk of a line is aligned in memory."""
        number = 1 if operand.is_lhs else 2
        aligned = self.kernel.iterations.alignments[number] % _CHUNK == 0
        steps = all(step % _CHUNK == 0 for step in self.kernel.iterations.steps[number])
        return aligned and steps and operand.view.pitch % operand.per_chunk == 0

    def _copy_chunk(
        self,
        operand: StagedOperand,
        to: Value,
        source: Value,
        at: tuple[Value, Value],
        asynchronous: bool,
    ) -> None:
        """Copy a chunk; what is outside of the matrix becomes zero."""
        b, (lines, length) = self.b, operand.extents
        inside = b.icmp("ult", at[0], lines) if lines % operand.lines else None
        size = bytes_of(operand.view.element)
        if asynchronous:
            valid: Value | None = None
            if length % operand.length:
                left = b.umin(b.sub(const_int(I32, length), b.umin(at[1], length)), operand.per_chunk)
                valid = b.mul(left, size)
            if inside is not None:
                valid = b.select(inside, valid or const_int(I32, _CHUNK), const_int(I32, 0))
            if valid is not None:
                is_some = b.icmp("ne", valid, 0)
                source = b.select(is_some, source, operand.pointer)
            self.operations.copy(b, to, source, valid)
            return
        for k in range(operand.per_chunk):
            checks = [] if inside is None else [inside]
            if length % operand.length:
                checks.append(b.icmp("ult", b.add(at[1], k), length))
            place = b.gep(operand.view.element, to, k)
            both = all_of(b, checks)
            if both is None:
                b.store(b.load(operand.view.element, b.gep(operand.view.element, source, k), size), place, size)
                continue
            address = b.select(both, b.gep(operand.view.element, source, k), operand.pointer)
            loaded = b.load(operand.view.element, address, size)
            b.store(b.select(both, loaded, zero(operand.view.element)), place, size)

    def _swizzle(self, line: Value, chunks: int) -> Value:
        """What the chunks of a line are moved by."""
        b, period = self.b, min(chunks, _LINES)
        shift = (_LINES // period).bit_length() - 1
        return b.binary("and", b.binary("lshr", line, const_int(I32, shift)), const_int(I32, period - 1))

    # Products --------------------------------------------------------------------------------------------------

    def _place_warp(self) -> None:
        b, shape = self.b, self.shape
        warp, self.lane = self.kernel.divided(self.kernel.thread, self.kernel.grid.warp)
        down, across = self.kernel.divided(warp, shape.columns // shape.warp_columns)
        self.warp_row, self.warp_column = b.mul(down, shape.warp_rows), b.mul(across, shape.warp_columns)

    def _multiplied(self, acc: list[Value], step: int, stage: Value) -> list[Value]:
        """The sums with the products of one depth of fragments added."""
        product, shape = self.product, self.shape
        height, width = shape.warp_rows // product.rows, shape.warp_columns // product.columns
        size = len(acc) // (height * width)
        k = step * product.depth
        lhs = [self._load(self.lhs, stage, self.warp_row, i * product.rows, k) for i in range(height)]
        pairs = [self._load(self.rhs, stage, self.warp_column, 2 * j * product.columns, k) for j in range(width // 2)]
        rhs = [half for pair in pairs for half in (pair[:2], pair[2:])]
        result = list(acc)
        for i in range(height):
            for j in range(width) if i % 2 == 0 else reversed(range(width)):
                at = (i * width + j) * size
                result[at : at + size] = product.multiply(self.b, result[at : at + size], lhs[i], rhs[j])
        return result

    def _load(self, operand: StagedOperand, stage: Value, origin: Value, place: int, k: int) -> list[Value]:
        """Fragments of 16 x 16 elements: of A rows by K, of B K by columns.

        Args:
            operand: A or B.
            stage: Offset of the stage, i32.
            origin: First row or column of the warp.
            place: First row or column in the warp's part.
            k: First position of K in the stage.
        """
        b, lane = self.b, self.lane
        low = b.binary("and", lane, const_int(I32, 7))
        eight, sixteen = (
            b.binary("and", b.binary("lshr", lane, const_int(I32, shift)), const_int(I32, 1)) for shift in (3, 4)
        )
        swapped = operand.is_lhs == operand.k_lines
        high_line, high_chunk = (sixteen, eight) if swapped else (eight, sixteen)
        line, chunk = b.add(low, b.mul(high_line, _LINES)), high_chunk
        moved = b.binary("udiv", origin, const_int(I32, operand.per_chunk))
        if operand.k_lines:
            line, chunk = b.add(line, k), b.add(b.add(chunk, place // operand.per_chunk), moved)
        else:
            line, chunk = b.add(line, b.add(origin, place)), b.add(chunk, k // operand.per_chunk)
        swizzled = b.binary("xor", chunk, self._swizzle(line, operand.chunks))
        at = b.add(b.mul(line, operand.chunks * _CHUNK), b.mul(swizzled, _CHUNK))
        address = b.gep(I8, self.shared, as_index(b, b.add(b.add(stage, operand.offset), at)))
        return self.operations.load_fragments(b, address, transposed=operand.k_lines)

    # Sums ------------------------------------------------------------------------------------------------------

    def _store(self, acc: list[Value], sums: MatrixView) -> None:
        b, product, shape = self.b, self.product, self.shape
        height, width = shape.warp_rows // product.rows, shape.warp_columns // product.columns
        size = len(acc) // (height * width)
        group, quad = self.kernel.divided(self.lane, 4)
        row, column = b.add(self.warp_row, group), b.add(self.warp_column, b.mul(quad, 2))
        base = b.gep(sums.element, self.shared, as_index(b, b.add(b.mul(row, sums.row_stride), column)))
        for number, value in enumerate(acc):
            (i, j), k = divmod(number // size, width), number % size
            down = i * product.rows + k // 2 * (product.rows // 2)
            across = j * product.columns + k % 2
            b.store(value, b.gep(sums.element, base, down * sums.row_stride + across), bytes_of(sums.element))
