"""Operands of attention in shared memory: lines of 128 bytes, swizzled as those of products.

See `tlx.lower.to_blocks.products.staging`.
"""

from __future__ import annotations

from typing import Final

from tlx.ir.types import I8, I32, VectorType, bytes_of
from tlx.ir.values import Value, const_int, zero
from tlx.lower.to_blocks.kernel import GridKernel, all_of, as_index
from tlx.lower.to_tiles.expression import MatrixView
from tlx.target.grid_unit import CHUNK_BYTES, LINE_BYTES

PER_CHUNK: Final = 8
LINE_CHUNKS: Final = LINE_BYTES // CHUNK_BYTES


def boxes_of(columns: int) -> int:
    """The number of 128-byte lines that hold some columns."""
    return -(-columns // (LINE_CHUNKS * PER_CHUNK))


class OperandLines:
    """Lines of an operand in memory, and how the block's threads copy them to shared memory.

    Args:
        kernel: The kernel.
        view: The operand, whose rows are the lines.
        number: Position among the kernel's pointers.
        count: Lines of a tile.
        warps: Warps of the block.
    """

    def __init__(self, kernel: GridKernel, view: MatrixView, number: int, count: int, warps: int) -> None:
        self.kernel, self.view, self.pointer, self.count = kernel, view, kernel.pointers[number], count
        self.alignment = min(CHUNK_BYTES, kernel.iterations.alignments[number])
        b, threads = kernel.b, warps * kernel.grid.warp_threads
        self.boxes = boxes_of(view.cols)
        self.line, self.chunk = kernel.divided(kernel.thread, LINE_CHUNKS)
        self.step = threads // LINE_CHUNKS
        low = b.binary("and", self.line, const_int(I32, LINE_CHUNKS - 1))
        at = b.mul(b.binary("xor", self.chunk, low), CHUNK_BYTES)
        self.within = b.add(b.mul(self.line, LINE_BYTES), at)
        self.first = b.gep(view.element, self.pointer, as_index(b, b.mul(self.chunk, PER_CHUNK)))

    def copy(self, first: Value, destination: Value) -> None:
        """Start the copies of a tile, from a line (i32) on, to an address; lines beyond the last one become zero."""
        b, view = self.kernel.b, self.view
        line = b.add(first, self.line)
        start = b.gep(view.element, self.first, b.mul(as_index(b, line), view.row_stride))
        destination = b.gep(I8, destination, as_index(b, self.within))
        size = bytes_of(view.element)
        for number in range(self.count // self.step):
            down = number * self.step
            for box in range(self.boxes):
                across = box * LINE_CHUNKS * PER_CHUNK
                source = b.gep(view.element, start, down * view.row_stride + across)
                checks: list[Value] = []
                if view.rows % self.count:
                    checks.append(b.icmp("ult", b.add(line, down), view.rows))
                if view.cols - across < LINE_BYTES // size:
                    checks.append(b.icmp("ult", self.chunk, (view.cols - across) // PER_CHUNK))
                inside = all_of(b, checks)
                if inside is not None:
                    source = b.select(inside, source, self.pointer)
                self._copy_chunk(b.gep(I8, destination, (box * self.count + down) * LINE_BYTES), source, inside)

    def _copy_chunk(self, destination: Value, source: Value, inside: Value | None) -> None:
        """Copy a chunk, or zeros if it is not inside; asynchronously if it is aligned in memory."""
        b, element = self.kernel.b, self.view.element
        if self.alignment == CHUNK_BYTES:
            valid = None if inside is None else b.select(inside, const_int(I32, CHUNK_BYTES), const_int(I32, 0))
            self.kernel.grid.operations.copy(b, destination, source, valid)
            return
        part = VectorType(self.alignment // bytes_of(element), element)
        for at in range(0, CHUNK_BYTES, self.alignment):
            value: Value = b.load(part, b.gep(I8, source, at), self.alignment)
            if inside is not None:
                value = b.select(inside, value, zero(part))
            b.store(value, b.gep(I8, destination, at), self.alignment)


class FragmentOffsets:
    """Offsets in shared memory of the fragments that a thread loads: of 16 lines, and of two chunks of these.

    Args:
        kernel: The kernel.
        lines_first: Whether the second of the four matrices has the next eight lines, rather than the next chunk.
    """

    def __init__(self, kernel: GridKernel, *, lines_first: bool) -> None:
        b = kernel.b
        _, lane = kernel.divided(kernel.thread, kernel.grid.warp_threads)
        low, second, third = (
            b.binary("and", b.binary("lshr", lane, const_int(I32, shift)), const_int(I32, mask))
            for shift, mask in ((0, 7), (3, 1), (4, 1))
        )
        lines, chunk = (second, third) if lines_first else (third, second)
        line = b.mul(b.add(low, b.mul(lines, LINE_CHUNKS)), LINE_BYTES)
        swizzled = b.mul(b.binary("xor", low, chunk), CHUNK_BYTES)
        self.offsets = [
            b.add(line, b.binary("xor", swizzled, const_int(I32, pair * 2 * CHUNK_BYTES)))
            for pair in range(LINE_CHUNKS // 2)
        ]

    def address(self, kernel: GridKernel, tile: Value, lines: int, line: int, pair: int) -> Value:
        """Address of what the thread loads.

        Args:
            kernel: The kernel.
            tile: Address of the tile.
            lines: Its lines.
            line: The first line.
            pair: Number of the pair of chunks.
        """
        box, within = divmod(pair, len(self.offsets))
        start = kernel.b.gep(I8, tile, as_index(kernel.b, self.offsets[within]))
        return kernel.b.gep(I8, start, (box * lines + line) * LINE_BYTES)
