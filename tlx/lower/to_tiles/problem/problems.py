"""Problems: a product, a copy, a shuffle, an elementwise expression, a reduction, or several on the same rows.

Two problems that are equal share one kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.types import DOUBLE, FLOAT, I32, I64, FloatType, Type, bits_of, mangle
from tlx.lower.context import MOST_INTERLEAVED_SUMS
from tlx.lower.knobs import FUSED
from tlx.lower.to_tiles.problem.expression import Expression, ProductLeaf
from tlx.lower.to_tiles.problem.view import MatrixView
from tlx.target.hardware import Sign

_EXTENDED_PRODUCT: Final = 3  # instructions: two extensions and a multiplication


@dataclass(frozen=True, slots=True)
class Gemm:
    """`C = f(A @ B)` or `C = f(Acc + A @ B)`: MxK KxN -> MxN. C and Acc are row-major; a C of A @ B alone may not be.

    Attributes:
        lhs_sign, rhs_sign: How narrow integer operands are extended; "f" for floating types.
        acc: What is added to; it may be C itself.
        epilogue: f, None where C is the product as it is.
        reduction: Operation and axis by which f's rows or columns are reduced to C.
        sums: What is added up are as many products: elements from A and B to the operands of each.
        crossed: Whether each A of the sum is multiplied by each B: sum of A times sum of B.
        batch: How it goes on in the other rounds of a loop around it.
        packings: How often B is packed, if it is, for one product: less than once where several read the same panels,
            never where the compiler packs.
    """

    a: MatrixView
    b: MatrixView
    c: MatrixView
    acc: MatrixView | None
    lhs_sign: Sign
    rhs_sign: Sign
    epilogue: Expression | None = None
    reduction: tuple[str, int] | None = None
    sums: tuple[tuple[int, int], ...] = ((0, 0),)
    crossed: bool = False
    batch: BatchStrides | None = None
    packings: float = 1.0

    @property
    def depth(self) -> int:
        """Positions of K over all operands of the sum."""
        return self.k * len(self.sums)

    @property
    def uses(self) -> int:
        """Products that each operand of the sum is part of."""
        return len(self.sums) if self.crossed else 1

    @property
    def takes_turns(self) -> bool:
        """Whether B's rows of one position of K, one of each product of a sum, lie in front of those of the next one.

        k = 0    b[0] b[1] ... b[8]        nine products of a sum, N columns each; rows of B are 9 N apart
        k = 1    b[0] b[1] ... b[8]
        """
        count = len(self.sums)
        in_order = [offset for _, offset in self.sums] == [i * self.n for i in range(count)]
        return (
            1 < count <= MOST_INTERLEAVED_SUMS
            and in_order
            and self.b.is_row_major
            and self.b.row_stride == count * self.n
        )

    @property
    def result(self) -> Type:
        """Element type of the product, before the epilogue."""
        if self.epilogue is None:
            return self.c.element
        return next(n.element for n in self.epilogue.nodes if isinstance(n, ProductLeaf))

    @property
    def m(self) -> int:
        """Rows of A."""
        return self.a.rows

    @property
    def n(self) -> int:
        """Columns of B."""
        return self.b.cols

    @property
    def k(self) -> int:
        """Columns of A, rows of B."""
        return self.a.cols

    @property
    def is_float(self) -> bool:
        """Whether the product is floating-point."""
        return isinstance(self.result, FloatType)

    @property
    def is_repeatable(self) -> bool:
        """Whether elements of C may be computed twice: nothing that is read is written, and nothing is added up."""
        return self.acc is None and self.reduction is None and self.epilogue is None

    @property
    def title(self) -> str:
        """`matmul 64x64x64 float` for names and remarks."""
        types = [str(self.a.element)]
        if self.b.element != self.a.element:
            types.append(str(self.b.element))
        if self.result != self.a.element:
            types.append(f"-> {self.result}")
        return f"matmul {self.m}x{self.n}x{self._terms('*')}{self.k} {' '.join(types)}"

    def _terms(self, separator: str) -> str:
        return f"{len(self.sums)}{separator}" * (self.uses if self.crossed else len(self.sums) > 1)

    @property
    def words(self) -> str:
        """The product as knobs name it: `matmul 64x64x64 i8 -> i32 us nt ldb=80 fused`; see `tlx.lower.knobs`."""
        layout = f"{self.a.order}{self.b.order}"
        words = [
            self.title,
            "" if self.is_float else f"{self.lhs_sign}{self.rhs_sign}",
            layout if layout != "nn" else "",
        ]
        words += [f"ld{name}={view.pitch}" for name, view in (("a", self.a), ("b", self.b)) if view.has_gaps]
        return " ".join(filter(None, [*words, FUSED if self.epilogue else ""]))

    @property
    def kernel_name(self) -> str:
        """Stem of the kernel's name."""
        signs = "" if self.is_float else f".{self.lhs_sign}{self.rhs_sign}"
        elements = ".".join(mangle(v.element) for v in (self.a, self.b, self.c))
        kind = f"reduce.{self.reduction[0]}" if self.reduction else "matmul"
        fused = ".fused" if self.epilogue else ""
        return f"tlx.{kind}.{self.m}x{self.n}x{self._terms('x')}{self.k}.{elements}{signs}{fused}"


@dataclass(frozen=True, slots=True)
class Copy:
    """`destination = source`: the same logical matrix, possibly stored in the other order.

    Attributes:
        source, destination: Where it is.
        whole: Bytes that the problem moves of which this is a piece; 0 where it is none.
    """

    source: MatrixView
    destination: MatrixView
    whole: int = 0

    @property
    def moves(self) -> int:
        """Bytes that are read and written."""
        return self.source.moves + self.destination.moves

    @property
    def kernel_name(self) -> str:
        """Stem of the kernel's name."""
        kind = "copy" if self.source.is_row_major == self.destination.is_row_major else "transpose"
        return f"tlx.{kind}.{self.source.rows}x{self.source.cols}.{mangle(self.source.element)}"


@dataclass(frozen=True, slots=True)
class LineShuffle:
    """Elements of some lines, put together to another one; all vectors have as many elements.

    Attributes:
        lines: The types of what is loaded.
        steps: The numbers of two vectors, lines first, then what other steps made, and which elements of both are kept.
        destination: The type of what the last step's vector is stored as.
    """

    lines: tuple[TensorType, ...]
    steps: tuple[tuple[int, int, tuple[int, ...]], ...]
    destination: TensorType

    @property
    def cycles(self) -> float:
        """About how many cycles it takes."""
        return len(self.lines) + len(self.steps)

    @property
    def kernel_name(self) -> str:
        """Stem of the kernel's name."""
        return f"tlx.shuffle.{self.destination.data_shape[1]}.{mangle(self.destination.element)}"


@dataclass(frozen=True, slots=True)
class Elementwise:
    """`destination = value`, element by element; the destination is row-major and may be one of the leaves.

    Attributes:
        destination: Where the result goes.
        value: What is computed.
        whole: Bytes that the problem moves of which this is a piece; 0 where it is none.
        passed: Bytes that all rounds of a loop around it go over; 0 where there is none.
    """

    destination: MatrixView
    value: Expression
    whole: int = 0
    passed: int = 0

    @property
    def moves(self) -> int:
        """Bytes that are read and written."""
        return self.destination.moves + self.value.moves

    @property
    def kernel_name(self) -> str:
        """Stem of the kernel's name."""
        return f"tlx.map.{self.value.rows}x{self.value.cols}.{mangle(self.destination.element)}"


@dataclass(frozen=True, slots=True)
class RowFusionPart:
    """One of several problems that are computed row by row.

    Attributes:
        problem: A map of as many rows as the others have, or a reduction of such rows.
        pointers: Numbers of the kernel's pointers that its result and its leaves have.
        scalars: Numbers of the kernel's scalars that its scalars have.
        is_apart: Whether the result is no operand, and nothing behind reads it.
    """

    problem: Elementwise | Reduction
    pointers: tuple[int, ...]
    scalars: tuple[int, ...]
    is_apart: bool


@dataclass(frozen=True, slots=True)
class RowFusion:
    """Problems in a row, computed for some rows, then for the next ones, so that what is between stays in the caches.

    Attributes:
        rows: How many there are.
        parts: The problems.
        pointers: Element type of each pointer.
        scalars: Type of each scalar.
        private: Pointers to memory that nothing else uses; the same rows of it serve all rows.
    """

    rows: int
    parts: tuple[RowFusionPart, ...]
    pointers: tuple[Type, ...]
    scalars: tuple[Type, ...]
    private: frozenset[int]

    @property
    def kernel_name(self) -> str:
        """Stem of the kernel's name."""
        last = self.parts[-1].problem
        return f"tlx.rows.{self.rows}x{last.value.cols}.{mangle(last.destination.element)}"


@dataclass(frozen=True, slots=True)
class Reduction:
    """`destination = value`, reduced along an axis: 0 leaves one row, 1 one column.

    Attributes:
        destination: Where the result goes.
        value: What is reduced.
        operation: add, mul, max, min, and, or, xor.
        axis: Which.
        products: Where rows of products are added up, which may be rounded as those of a matrix product: how many
            neighbours an instruction of the target adds up; else 0.
        excess: A row of products by whose sum each result is less than the sum of its own.
        finish: What is computed of the results, in one row: they are its `ProductLeaf`. Its leaves come behind the
            value's.
    """

    destination: MatrixView
    value: Expression
    operation: str
    axis: int
    products: int = 0
    excess: Expression | None = None
    finish: Expression | None = None

    @property
    def moves(self) -> int:
        """Bytes that are read and written."""
        return self.destination.moves + self.value.moves + (self.finish.moves if self.finish else 0)

    @property
    def cost(self) -> float:
        """Instructions for as many values as a register holds, beyond loads.

        Multiplying is part of adding, and so is extending both factors where several neighbours are added up; all else
        happens to registers of narrow factors.
        """
        part = _EXTENDED_PRODUCT if self.products > 1 else self.products
        return (self.value.cost - part + 1) / max(1, self.products)

    @property
    def kernel_name(self) -> str:
        """Stem of the kernel's name."""
        extents = f"{self.value.rows}x{self.value.cols}"
        kind = "columns" if self.axis == 0 else "rows"
        return f"tlx.reduce.{self.operation}.{kind}.{extents}.{mangle(self.destination.element)}"


@dataclass(frozen=True, slots=True)
class BatchStrides:
    """What a kernel's pointers point to, in a loop of many rounds.

    Attributes:
        steps: Bytes from one round's to the next one's, for each pointer, that of the result first.
        sizes: Bytes of each, where they follow each other without a gap; 0 where they do not.
        total: Bytes of all rounds; None where it is not known how many there are.
    """

    steps: tuple[int, ...]
    sizes: tuple[int, ...]
    total: int | None

    @property
    def read(self) -> tuple[tuple[int, int, int], ...]:
        """Number, step and size of each pointer behind the result's that other rounds find elsewhere."""
        places = enumerate(zip(self.steps, self.sizes, strict=True))
        return tuple((number, step, size) for number, (step, size) in places if number and step and size)


def gemm_accumulator_type(gemm: Gemm) -> Type:
    """The type products are added up in: at least as precise as the result's."""
    widest = max(bits_of(element) for element in (gemm.a.element, gemm.b.element, gemm.result))
    if gemm.is_float:
        return DOUBLE if widest > 32 else FLOAT
    return I64 if widest > 32 else I32


Problem = Gemm | Copy | Elementwise | Reduction | RowFusion | LineShuffle
