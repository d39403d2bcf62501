"""Views: 2-D matrices in memory, all sizes known."""

from __future__ import annotations

from dataclasses import dataclass

from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.types import Type, bytes_of


@dataclass(frozen=True, slots=True)
class MatrixView:
    """A logical matrix in memory; strides are in elements, one of the two is 1 (or its extent is).

    With a `group` of v > 1, v rows lie interleaved (VNNI): element (k, n) is at
    `k // v * v * row_stride + n * v + k % v`. Of such a matrix `room` columns may be read, if that is more than it has.
    In strips, a few columns lie like that, and the next ones behind all of their rows: `col_stride` is then how far
    strips are apart, divided by their columns.
    """

    element: Type
    rows: int
    cols: int
    row_stride: int
    col_stride: int
    group: int = 1
    room: int = 0

    @classmethod
    def interleaved(cls, type_: TensorType, pitches: tuple[int, ...] | None) -> MatrixView:
        """The K x N matrix that a tensor of K/v x N x v is."""
        groups, columns, width = type_.data_shape
        pitch = type_.strides(pitches)[0] // width
        return cls(type_.element, groups * width, columns, pitch, width, width, type_.shape[1])

    @classmethod
    def strips(cls, type_: TensorType, columns: int) -> MatrixView:
        """The K x N matrix of `columns` columns that a dense tensor of strips x K/v x columns of a strip x v is."""
        strips, groups, line, width = type_.shape
        return cls(type_.element, groups * width, columns, line, groups * width, width, strips * line)

    @property
    def in_strips(self) -> bool:
        """Whether interleaved rows lie in strips."""
        return self.group > 1 and self.col_stride != self.group

    @classmethod
    def of(cls, type_: TensorType, pitches: tuple[int, ...] | None) -> MatrixView:
        """The view that a 2-D tensor in memory is."""
        rows, cols = type_.extents
        row_stride, col_stride = type_.logical_strides(pitches)
        return cls(type_.element, rows, cols, row_stride, col_stride)

    @property
    def is_row_major(self) -> bool:
        """Whether a row lies in one piece."""
        return self.group == 1 and (self.col_stride == 1 or self.cols == 1)

    def repeated(self) -> MatrixView:
        """The view with strides 0 along extents of 1, so that views that differ in nothing else are equal."""
        row_stride = self.row_stride if self.rows > 1 else 0
        return MatrixView(self.element, self.rows, self.cols, row_stride, self.col_stride if self.cols > 1 else 1)

    def as_row(self) -> MatrixView:
        """The view of a dense row-major matrix as one row."""
        return MatrixView(self.element, 1, self.rows * self.cols, 0, 1)

    @property
    def is_dense(self) -> bool:
        """Whether the rows follow each other without a gap."""
        return self.is_row_major and (self.rows == 1 or self.row_stride == self.cols)

    @property
    def pitch(self) -> int:
        """Elements from a row, or a column of a column-major matrix, to the next."""
        return self.row_stride if self.is_row_major else self.col_stride

    @property
    def order(self) -> str:
        """How it lies in the words of a problem: `n` row by row, `t` column by column, `v2` in pairs of rows."""
        if self.group > 1:
            return f"v{self.group}"
        return "n" if self.is_row_major else "t"

    @property
    def has_gaps(self) -> bool:
        """Whether there is something between the rows, or between the columns of a column-major matrix."""
        if self.group > 1:
            return False
        lines, length = (self.rows, self.cols) if self.is_row_major else (self.cols, self.rows)
        return lines > 1 and self.pitch != length

    @property
    def size(self) -> int:
        """Elements from the first to behind the last."""
        return (self.rows - 1) * self.row_stride + (self.cols - 1) * self.col_stride + 1

    @property
    def moves(self) -> int:
        """Bytes of all elements."""
        return self.rows * self.cols * bytes_of(self.element)

    @property
    def layout(self) -> str:
        """`32x8 f32` with what is unusual about it, for remarks."""
        order = " interleaved" if self.group > 1 else "" if self.is_row_major else " column-major"
        return f"{self.rows}x{self.cols} {self.element}{order}"
