"""Views of 2-D matrices in memory."""

from __future__ import annotations

from dataclasses import dataclass

from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.types import Type, bytes_of


@dataclass(frozen=True, slots=True)
class MatrixView:
    """A logical matrix in memory.

    With `interleave` v > 1, groups of v rows are interleaved (VNNI): element (k, n) is at
    `k // v * v * row_stride + n * v + k % v`. A matrix in strips stores a few columns in this layout for all rows, then
    the next few; `col_stride` is then the distance between strips divided by the columns of a strip.

    Attributes:
        element: Element type.
        rows, cols: Its extents.
        row_stride, col_stride: In elements; one of them is 1, or the extent along it is.
        interleave: Rows of a group; 1 if rows are not interleaved.
        readable_columns: Columns of an interleaved matrix that may be read, if they are more than it has.
    """

    element: Type
    rows: int
    cols: int
    row_stride: int
    col_stride: int
    interleave: int = 1
    readable_columns: int = 0

    @classmethod
    def interleaved(cls, type_: TensorType, pitches: tuple[int, ...] | None) -> MatrixView:
        """The K x N matrix of a tensor of shape K/v x N x v."""
        groups, columns, width = type_.data_shape
        pitch = type_.strides(pitches)[0] // width
        return cls(type_.element, groups * width, columns, pitch, width, width, type_.shape[1])

    @classmethod
    def strips(cls, type_: TensorType, columns: int) -> MatrixView:
        """The K x N matrix of a dense tensor of shape strips x K/v x (columns of a strip) x v."""
        strips, groups, line, width = type_.shape
        return cls(type_.element, groups * width, columns, line, groups * width, width, strips * line)

    @property
    def in_strips(self) -> bool:
        """Whether the interleaved rows are stored strip by strip."""
        return self.interleave > 1 and self.col_stride != self.interleave

    @classmethod
    def of(cls, type_: TensorType, pitches: tuple[int, ...] | None) -> MatrixView:
        """The view of a 2-D tensor in memory."""
        rows, cols = type_.extents
        row_stride, col_stride = type_.logical_strides(pitches)
        return cls(type_.element, rows, cols, row_stride, col_stride)

    @property
    def is_row_major(self) -> bool:
        """Whether each row is contiguous."""
        return self.interleave == 1 and (self.col_stride == 1 or self.cols == 1)

    def broadcast(self) -> MatrixView:
        """The view with stride 0 along extents of 1, so that equal matrices have equal views."""
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
        """The layout in a knob key: `n` row-major, `t` column-major, `v2` with interleaved pairs of rows."""
        if self.interleave > 1:
            return f"v{self.interleave}"
        return "n" if self.is_row_major else "t"

    @property
    def has_gaps(self) -> bool:
        """Whether there are gaps between the rows, or between the columns of a column-major matrix."""
        if self.interleave > 1:
            return False
        lines, length = (self.rows, self.cols) if self.is_row_major else (self.cols, self.rows)
        return lines > 1 and self.pitch != length

    @property
    def size(self) -> int:
        """Elements from the first through the last, gaps included."""
        return (self.rows - 1) * self.row_stride + (self.cols - 1) * self.col_stride + 1

    @property
    def bytes_moved(self) -> int:
        """Bytes of all elements."""
        return self.rows * self.cols * bytes_of(self.element)

    @property
    def layout(self) -> str:
        """`32x8 f32`, with the layout if it is not row-major, for remarks."""
        order = " interleaved" if self.interleave > 1 else "" if self.is_row_major else " column-major"
        return f"{self.rows}x{self.cols} {self.element}{order}"
