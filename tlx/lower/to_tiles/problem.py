"""What a kernel computes: 2-D views of memory and the matrix product or copy on them, all sizes known.

Two problems that are equal share one kernel.
"""

from __future__ import annotations

from dataclasses import dataclass

from tlx.ir.mangle import mangle
from tlx.ir.types import FloatType, Type
from tlx.target import Sign
from tlx.types import TensorType


@dataclass(frozen=True, slots=True)
class View:
    """A logical matrix in memory; strides are in elements, one of the two is 1 (or its extent is)."""

    element: Type
    rows: int
    cols: int
    row_stride: int
    col_stride: int

    @classmethod
    def of(cls, type_: TensorType, pitches: tuple[int, ...] | None) -> View:
        """The view that a 2-D tensor in memory is."""
        rows, cols = type_.extents
        row_stride, col_stride = type_.logical_strides(pitches)
        return cls(type_.element, rows, cols, row_stride, col_stride)

    @property
    def is_row_major(self) -> bool:
        """Whether a row lies in one piece."""
        return self.col_stride == 1 or self.cols == 1

    @property
    def size(self) -> int:
        """Elements from the first to behind the last."""
        return (self.rows - 1) * self.row_stride + (self.cols - 1) * self.col_stride + 1

    @property
    def layout(self) -> str:
        """`32x8 f32` with what is unusual about it, for remarks."""
        order = "" if self.is_row_major else " column-major"
        return f"{self.rows}x{self.cols} {self.element}{order}"


@dataclass(frozen=True, slots=True)
class Gemm:
    """`C = A @ B` or `C = Acc + A @ B`: MxK KxN -> MxN. C and Acc are row-major.

    Attributes:
        lhs_sign, rhs_sign: How narrow integer operands are extended; "f" for floating types.
        acc: What is added to; it may be C itself.
    """

    a: View
    b: View
    c: View
    acc: View | None
    lhs_sign: Sign
    rhs_sign: Sign

    @property
    def m(self) -> int:
        """Rows of A and C."""
        return self.c.rows

    @property
    def n(self) -> int:
        """Columns of B and C."""
        return self.c.cols

    @property
    def k(self) -> int:
        """Columns of A, rows of B."""
        return self.a.cols

    @property
    def is_float(self) -> bool:
        """Whether the product is floating-point."""
        return isinstance(self.c.element, FloatType)

    @property
    def title(self) -> str:
        """`matmul 64x64x64 float` for names and remarks."""
        types = [str(self.a.element)]
        if self.b.element != self.a.element:
            types.append(str(self.b.element))
        if self.c.element != self.a.element:
            types.append(f"-> {self.c.element}")
        return f"matmul {self.m}x{self.n}x{self.k} {' '.join(types)}"

    @property
    def kernel_name(self) -> str:
        """Stem of the kernel's name."""
        signs = "" if self.is_float else f".{self.lhs_sign}{self.rhs_sign}"
        elements = ".".join(mangle(v.element) for v in (self.a, self.b, self.c))
        return f"tlx.matmul.{self.m}x{self.n}x{self.k}.{elements}{signs}"


@dataclass(frozen=True, slots=True)
class Copy:
    """`destination = source`: the same logical matrix, possibly stored in the other order."""

    source: View
    destination: View

    @property
    def kernel_name(self) -> str:
        """Stem of the kernel's name."""
        kind = "copy" if self.source.is_row_major == self.destination.is_row_major else "transpose"
        return f"tlx.{kind}.{self.source.rows}x{self.source.cols}.{mangle(self.source.element)}"
