"""Problems: what a kernel computes on 2-D views, as data.

A problem is a product, a copy, a shuffle, an elementwise expression, a reduction, or several of these on the same rows.

Equal problems share a kernel. Canonical forms:

    an elementwise problem on dense matrices        on one long row
    a reduction of dense matrices to one number     of one long row
    a reduction of column-major matrices            of A^T, along the other axis
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.types import DOUBLE, FLOAT, I32, I64, FloatType, Type, bits_of, mangle
from tlx.lower.context import MOST_INTERLEAVED_SUMS
from tlx.lower.knobs import FUSED
from tlx.lower.to_tiles.expression import Expression, MatrixLeaf, MatrixView, ProductLeaf, may_alias_leaf
from tlx.target.costs.memory import Caches, MemoryModel
from tlx.target.instructions.dots import Sign
from tlx.target.target import Target

_EXTENDED_PRODUCT: Final = 3  # instructions: two extensions and a multiply


@dataclass(frozen=True, slots=True)
class Gemm:
    """`C = f(A @ B)` or `C = f(Acc + A @ B)`: MxK KxN -> MxN. C and Acc are row-major; a C of A @ B alone may not be.

    Attributes:
        a, b, c: The operands and the result.
        acc: The matrix that the product is added to; it may be C itself.
        lhs_sign, rhs_sign: How narrow integer operands are extended; "f" for floating-point types.
        epilogue: f; None if C is the product itself.
        reduction: Operation and axis by which the rows or columns of f are reduced to C.
        term_offsets: For each product of a sum, the element offsets from A and B to its operands.
        all_pairs: Whether each A of the sum is multiplied by each B: (sum of A) @ (sum of B).
        batch: How the operands move from one iteration to the next of a loop around the product; None without a loop.
        packs_per_product: How often B is packed for one product: 1 if the product's kernel packs it, a fraction if it
            is packed before a loop, 0 if the compiler packs it.
    """

    a: MatrixView
    b: MatrixView
    c: MatrixView
    acc: MatrixView | None
    lhs_sign: Sign
    rhs_sign: Sign
    epilogue: Expression | None = None
    reduction: tuple[str, int] | None = None
    term_offsets: tuple[tuple[int, int], ...] = ((0, 0),)
    all_pairs: bool = False
    batch: BatchStrides | None = None
    packs_per_product: float = 1.0

    @property
    def total_k(self) -> int:
        """Extent of K summed over all terms."""
        return self.k * len(self.term_offsets)

    @property
    def is_b_prepacked(self) -> bool:
        """Whether the kernel is passed B in panels, if its recipe packs B."""
        return self.packs_per_product < 1

    @property
    def products_per_operand(self) -> int:
        """How many products use each operand of the sum."""
        return len(self.term_offsets) if self.all_pairs else 1

    @property
    def is_interleaved(self) -> bool:
        """Whether the terms' rows of B are interleaved: those of one position of K precede those of the next.

        k = 0    b[0] b[1] ... b[8]        nine terms, N columns each; rows of one term are 9 N elements apart
        k = 1    b[0] b[1] ... b[8]
        """
        count = len(self.term_offsets)
        in_order = [offset for _, offset in self.term_offsets] == [i * self.n for i in range(count)]
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
        """Whether elements of C may be computed twice, as by overlapping tiles: C depends only on A and B."""
        return self.acc is None and self.reduction is None and self.epilogue is None

    @property
    def title(self) -> str:
        """`matmul 64x64x64 float` for names and remarks."""
        types = list(dict.fromkeys((_type_name(self.a, self.lhs_sign), _type_name(self.b, self.rhs_sign))))
        if self.result != self.a.element:
            types.append(f"-> {self.result}")
        return f"matmul {self.m}x{self.n}x{self._terms('*')}{self.k} {' '.join(types)}"

    def _terms(self, separator: str) -> str:
        return f"{len(self.term_offsets)}{separator}" * (
            self.products_per_operand if self.all_pairs else len(self.term_offsets) > 1
        )

    @property
    def knob_key(self) -> str:
        """The product's key in a knob file: `matmul 64x64x64 i8 -> i32 us nt ldb=80 fused`; see `tlx.lower.knobs`."""
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
        source, destination: The matrix in memory, before and after.
        total_bytes: Bytes that the whole problem moves, if this is a part of a larger one; else 0.
    """

    source: MatrixView
    destination: MatrixView
    total_bytes: int = 0

    @property
    def bytes_moved(self) -> int:
        """Bytes read and written."""
        return self.source.bytes_moved + self.destination.bytes_moved

    @property
    def kernel_name(self) -> str:
        """Stem of the kernel's name."""
        kind = "copy" if self.source.is_row_major == self.destination.is_row_major else "transpose"
        return f"tlx.{kind}.{self.source.rows}x{self.source.cols}.{mangle(self.source.element)}"


@dataclass(frozen=True, slots=True)
class LineShuffle:
    """Shuffles elements of several lines into one; all vectors have the same number of elements.

    Attributes:
        lines: Types of the loaded lines.
        steps: Two-operand shuffles: the numbers of two vectors (the lines come first, then the results of earlier
            steps), and the mask.
        destination: Type of the last step's result in memory.
    """

    lines: tuple[TensorType, ...]
    steps: tuple[tuple[int, int, tuple[int, ...]], ...]
    destination: TensorType

    @property
    def cycles(self) -> float:
        """Estimated cycles."""
        return len(self.lines) + len(self.steps)

    @property
    def kernel_name(self) -> str:
        """Stem of the kernel's name."""
        return f"tlx.shuffle.{self.destination.data_shape[1]}.{mangle(self.destination.element)}"


@dataclass(frozen=True, slots=True)
class Elementwise:
    """`destination = value`, element by element; the destination is row-major and may be one of the leaves.

    Attributes:
        destination: The matrix in memory that is written.
        value: The expression.
        total_bytes: Bytes that the whole problem moves, if this is a part of a larger one; else 0.
        streamed_bytes: Bytes that all iterations of the loop around it move together; 0 without a loop.
    """

    destination: MatrixView
    value: Expression
    total_bytes: int = 0
    streamed_bytes: int = 0

    @property
    def bytes_moved(self) -> int:
        """Bytes read and written."""
        return self.destination.bytes_moved + self.value.bytes_moved

    @property
    def kernel_name(self) -> str:
        """Stem of the kernel's name."""
        return f"tlx.map.{self.value.rows}x{self.value.cols}.{mangle(self.destination.element)}"


@dataclass(frozen=True, slots=True)
class RowFusionPart:
    """One of the problems of a row fusion.

    Attributes:
        problem: An elementwise problem, or a reduction of rows, with the fusion's number of rows.
        pointers: Positions of its result and leaves among the kernel's pointers.
        scalars: Positions of its scalars among the kernel's.
        is_disjoint: Whether the result overlaps none of its operands, and no later part reads it.
    """

    problem: Elementwise | Reduction
    pointers: tuple[int, ...]
    scalars: tuple[int, ...]
    is_disjoint: bool


@dataclass(frozen=True, slots=True)
class RowFusion:
    """Problems computed one after the other, a few rows at a time, so that intermediate rows stay in the caches.

    Attributes:
        rows: Number of rows.
        parts: The problems, in order.
        pointers: Element type of each pointer.
        scalars: Type of each scalar.
        scratch_pointers: Pointers to intermediate matrices that nothing else uses; they need memory for a few rows.
    """

    rows: int
    parts: tuple[RowFusionPart, ...]
    pointers: tuple[Type, ...]
    scalars: tuple[Type, ...]
    scratch_pointers: frozenset[int]

    @property
    def kernel_name(self) -> str:
        """Stem of the kernel's name."""
        last = self.parts[-1].problem
        return f"tlx.rows.{self.rows}x{last.value.cols}.{mangle(last.destination.element)}"


@dataclass(frozen=True, slots=True)
class Reduction:
    """`destination = value`, reduced along an axis: 0 leaves one row, 1 one column.

    Attributes:
        destination: The matrix in memory that is written.
        value: The expression that is reduced.
        operation: add, mul, max, min, and, or, xor.
        axis: The axis along which it is reduced.
        products: How many adjacent products one instruction of the target sums, if the sum may be rounded as a matrix
            product; else 0.
        offset_row: A row of products whose sum is subtracted from each result; None for none.
        epilogue: Applied to the row of results, which is its `ProductLeaf`; its leaves follow those of the value.
    """

    destination: MatrixView
    value: Expression
    operation: str
    axis: int
    products: int = 0
    offset_row: Expression | None = None
    epilogue: Expression | None = None

    @property
    def bytes_moved(self) -> int:
        """Bytes read and written."""
        return (
            self.destination.bytes_moved + self.value.bytes_moved + (self.epilogue.bytes_moved if self.epilogue else 0)
        )

    def cost(self, target: Target) -> float:
        """Instructions per register of values, loads not counted.

        The sum includes the multiplication and, if one instruction sums several products, the extension of both
        factors; the other instructions work on registers of narrow factors.
        """
        product = _EXTENDED_PRODUCT if self.products > 1 else self.products
        return (self.value.cost(target) - product + 1) / max(1, self.products)

    @property
    def kernel_name(self) -> str:
        """Stem of the kernel's name."""
        extents = f"{self.value.rows}x{self.value.cols}"
        kind = "columns" if self.axis == 0 else "rows"
        return f"tlx.reduce.{self.operation}.{kind}.{extents}.{mangle(self.destination.element)}"


@dataclass(frozen=True, slots=True)
class BatchStrides:
    """How a kernel's pointers advance in the loop around its call.

    Attributes:
        steps: Byte distance from one iteration to the next, for each pointer, the result's first.
        sizes: Bytes of each matrix, if it is contiguous; else 0.
        total: Bytes that all iterations move; None where the trip count is unknown.
    """

    steps: tuple[int, ...]
    sizes: tuple[int, ...]
    total: int | None

    @property
    def read(self) -> tuple[tuple[int, int, int], ...]:
        """Position, step and size of each operand that advances."""
        operands = enumerate(zip(self.steps, self.sizes, strict=True))
        return tuple((number, step, size) for number, (step, size) in operands if number and step and size)

    def exceeds_caches(self, caches: Caches, memory: MemoryModel) -> bool:
        """Whether all iterations together move more than the last-level cache holds for one program."""
        return self.total is not None and self.total > memory.retained_l3_bytes(caches)


def _type_name(operand: MatrixView, sign: Sign) -> str:
    """The type of an operand's numbers: that of its elements, or the format of bytes that are floats."""
    return str(operand.element) if sign in ("s", "u", "f") else sign


def gemm_accumulator_type(gemm: Gemm) -> Type:
    """The type that products are accumulated in: at least as precise as the result's."""
    widest = max(bits_of(element) for element in (gemm.a.element, gemm.b.element, gemm.result))
    if gemm.is_float:
        return DOUBLE if widest > 32 else FLOAT
    return I64 if widest > 32 else I32


def partial_sums(gemm: Gemm, accumulator: Type) -> MatrixView:
    """The matrix that holds sums between passes over K: C if `c_holds_sums`, else a dense one of the accumulator's."""
    return gemm.c if c_holds_sums(gemm, accumulator) else MatrixView(accumulator, gemm.m, gemm.n, gemm.n, 1)


def c_holds_sums(gemm: Gemm, accumulator: Type) -> bool:
    """Whether C can hold partial sums: row-major, of the accumulator's type, and none of the epilogue's leaves."""
    fits = gemm.c.element == accumulator and gemm.c.is_row_major and gemm.reduction is None
    return fits and not (gemm.epilogue is not None and may_alias_leaf(gemm.epilogue, gemm.c))


Problem = Gemm | Copy | Elementwise | Reduction | RowFusion | LineShuffle


@dataclass(frozen=True, slots=True)
class KernelOperand:
    """A matrix that a kernel is passed: a matrix of the product it serves or a part of one, or a temporary.

    Attributes:
        view: The matrix.
        number: Which pointer of the product's match it is reached from, or which temporary.
        offset: Elements from there to the matrix.
        is_temporary: Whether the number is that of a temporary.
    """

    view: MatrixView
    number: int
    offset: int = 0
    is_temporary: bool = False


@dataclass(frozen=True, slots=True)
class KernelStep:
    """A kernel's problem and its leading operands; an epilogue's leaves and scalars follow as they are matched."""

    problem: Elementwise | Gemm
    operands: tuple[KernelOperand, ...]


@dataclass(frozen=True, slots=True)
class KernelSequence:
    """Kernels that compute a product one after the other.

    Attributes:
        steps: The kernels; the last one has the product's epilogue.
        temporaries: Element type and number of elements of each temporary.
    """

    steps: tuple[KernelStep, ...]
    temporaries: tuple[tuple[Type, int], ...] = ()

    @classmethod
    def of(cls, gemm: Gemm) -> KernelSequence:
        """The product as it is."""
        views = (gemm.c, gemm.a, gemm.b, *((gemm.acc,) if gemm.acc is not None else ()))
        return cls((KernelStep(gemm, tuple(KernelOperand(view, number) for number, view in enumerate(views))),))


def as_long_row(problem: Elementwise) -> Elementwise:
    """The problem on one long row, where every matrix in it is dense."""
    value, to = problem.value, problem.destination
    if not to.is_dense or not all(_is_mergeable(leaf, value) for leaf in value.leaves()):
        return problem
    return replace(problem, destination=to.as_row(), value=_as_row(value))


def canonical_reduction(problem: Reduction) -> Reduction:
    """The problem on one long row where possible, or transposed where all its matrices are column-major."""
    value, to = problem.value, problem.destination
    if to.rows == to.cols == 1 and all(_is_mergeable(leaf, value) for leaf in value.leaves()):
        return replace(problem, value=_as_row(value), axis=1)
    transposed = _transposed(value)
    if transposed is None or not to.is_dense:
        return problem
    to = MatrixView(to.element, to.cols, to.rows, 1, 1)
    return replace(problem, destination=to, value=transposed, axis=1 - problem.axis)


def _is_mergeable(leaf: MatrixLeaf, value: Expression) -> bool:
    """Whether a leaf is dense or a single element."""
    return (leaf.view.is_dense and value.is_full(leaf.view)) or leaf.view.rows * leaf.view.cols == 1


def _as_row(value: Expression) -> Expression:
    """The expression on dense leaves as one on long rows."""
    nodes = tuple(replace(n, view=n.view.as_row()) if isinstance(n, MatrixLeaf) else n for n in value.nodes)
    return Expression(1, value.rows * value.cols, nodes)


def _transposed(value: Expression) -> Expression | None:
    """The transposed expression, where every full matrix in it is column-major."""
    views = [leaf.view for leaf in value.leaves() if value.is_full(leaf.view) and min(value.rows, value.cols) > 1]
    broadcast = [leaf.view for leaf in value.leaves() if not value.is_full(leaf.view)]
    if not views or not all(view.row_stride == 1 and view.col_stride > 1 for view in views):
        return None
    if not all(view.rows == 1 or view.row_stride == 1 for view in broadcast):
        return None
    nodes = tuple(replace(n, view=_transposed_view(n.view)) if isinstance(n, MatrixLeaf) else n for n in value.nodes)
    return Expression(value.cols, value.rows, nodes)


def as_row_view(view: MatrixView) -> MatrixView:
    """A column, or a row, as a row."""
    return _transposed_view(view) if view.rows > 1 else view.broadcast()


def _transposed_view(view: MatrixView) -> MatrixView:
    return MatrixView(view.element, view.cols, view.rows, view.col_stride, view.row_stride).broadcast()


def pointer_views(problem: Elementwise | Reduction) -> list[MatrixView]:
    """The view of the result, and for each pointer that of its first leaf."""
    views = {leaf.pointer: leaf.view for leaf in reversed(list(problem.value.leaves()))}
    return [problem.destination, *(views[number] for number in sorted(views))]


def take_rows(problem: Elementwise | Reduction, rows: int) -> Elementwise | Reduction:
    """The problem on `rows` of its rows."""
    all_rows = problem.value.rows

    def first_rows(view: MatrixView) -> MatrixView:
        return replace(view, rows=rows).broadcast() if view.rows == all_rows else view

    nodes = tuple(replace(n, view=first_rows(n.view)) if isinstance(n, MatrixLeaf) else n for n in problem.value.nodes)
    value = Expression(rows, problem.value.cols, nodes)
    to = replace(problem.destination, rows=rows)
    if isinstance(problem, Elementwise):
        return Elementwise(to, value, problem.total_bytes or problem.bytes_moved)
    return Reduction(to, value, problem.operation, 1)
