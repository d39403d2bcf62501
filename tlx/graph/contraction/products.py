"""Products: `dot_general` as one `matmul` if both operands are matrices or batches, else as `contract`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from tlx.graph.core import BOOL, listed
from tlx.graph.elementwise import ElementwiseMethods
from tlx.graph.shapes import Shapes
from tlx.graph.value import DType, Operand, Value
from tlx.intrinsics.numpy_types import is_float, small_float_of, type_of
from tlx.ir import values as ir
from tlx.ir.types import bits_of, vector_of

Side: TypeAlias = Literal["lhs", "rhs"]
_SIDES: Final[tuple[Side, Side]] = ("lhs", "rhs")


class Products(ElementwiseMethods, Shapes):
    """Matrix products and contractions."""

    def matmul(self, x: Operand, y: Operand, dtype: str | type | DType | None = None) -> Value:
        """`x @ y` as in numpy: over the last two dimensions, the others broadcast; vectors are rows or columns."""
        a, b = self._value("matmul", x), self._value("matmul", y)
        if not a.rank or not b.rank:
            self._fail("matmul", f"shapes {listed(a.shape)} and {listed(b.shape)}: multiply by a scalar with *")
        if a.rank == 1 or b.rank <= 2:
            return self.dot_general(a, b, ([a.rank - 1], [max(b.rank - 2, 0)]), dtype=dtype)
        outer = self._common_shape("matmul", [self._outer(a), self._outer(b)])
        batch = list(range(len(outer)))
        wide = [self.broadcast(v, (*outer, *v.shape[-2:])) if v.rank > 1 else v for v in (a, b)]
        axis = len(outer)
        return self.dot_general(wide[0], wide[1], ([axis + 1], [axis]), (batch, batch), dtype)

    def dot_general(
        self,
        x: Operand,
        y: Operand,
        contracting: tuple[Sequence[int], Sequence[int]],
        batch: tuple[Sequence[int], Sequence[int]] = ((), ()),
        dtype: str | type | DType | None = None,
    ) -> Value:
        """Multiply two tensors and sum over pairs of dimensions (XLA's operation of that name).

        Args:
            x: The left operand.
            y: The right operand, of the same element type.
            contracting: Dimensions of `x`, and those of `y` that they are paired with, to sum over.
            batch: Dimensions of both that are paired without a sum.
            dtype: Element type of the sums, at least as wide; that of the operands by default. Sums of products of
                8-bit floats are computed in float, then rounded; these operands may have different formats.

        Returns:
            A tensor of the batch dimensions, those of `x` that are left, and those of `y` that are left.
        """
        a, b = self._value("dot_general", x), self._value("dot_general", y)
        if small_float_of(a.dtype) is not None and small_float_of(b.dtype) is not None:
            to = a.dtype if dtype is None else self._dtype("dot_general", dtype)
            exact = "float16" if to.name == "float16" else "bfloat16"
            wide = "float32" if small_float_of(to) is not None else to
            product = self.dot_general(self.convert(a, exact), self.convert(b, exact), contracting, batch, wide)
            return self.convert(product, to)
        a, b = self._common_type("dot_general", x, y)
        pairs = self._pairs("contracting", a, b, contracting)
        shared = self._pairs("batch", a, b, batch)
        for k, name in enumerate(_SIDES):
            used = [pair[k] for pair in (*pairs, *shared)]
            if len(set(used)) < len(used):
                self._fail("dot_general", f"a dimension of {name} is named twice in {listed(used)}")
        to = a.dtype if dtype is None else self._dtype("dot_general", dtype)
        a, b = self._widened(a, to), self._widened(b, to)
        return self._product(a, b, pairs, shared, to)

    def _outer(self, x: Value) -> Value:
        """A value whose shape is the batch dimensions of a product's operand."""
        return self._with_view(x, x.view.permuted(range(max(x.rank - 2, 0))))

    def _pairs(
        self, name: str, a: Value, b: Value, dimensions: tuple[Sequence[int], Sequence[int]]
    ) -> list[tuple[int, int]]:
        left, right = (list(side) for side in dimensions)
        if len(left) != len(right):
            self._fail("dot_general", f"{name} dimensions {listed(left)} and {listed(right)} must come in pairs")
        pairs = [
            (self._axis("dot_general", i, a.rank, name), self._axis("dot_general", j, b.rank, name))
            for i, j in zip(left, right, strict=True)
        ]
        for i, j in pairs:
            if a.shape[i] != b.shape[j]:
                self._fail(
                    "dot_general",
                    f"{name} sizes {a.shape[i]} and {b.shape[j]} differ; lhs {listed(a.shape)}, rhs {listed(b.shape)}",
                )
        return pairs

    def _widened(self, x: Value, to: DType) -> Value:
        """An operand whose product may have another element type: the intrinsics extend signed integers and floats."""
        if x.dtype == BOOL or (x.dtype.kind == "u" and x.dtype != to):
            return self.convert(x, to)
        source, wide = type_of(x.dtype), type_of(to)
        is_wider = bits_of(wide) > bits_of(source) or source == wide
        if is_float(x.dtype) != is_float(to) or not is_wider:
            self._fail("dot_general", f"sums of {x.dtype.name} products cannot be {to.name}: convert the operands")
        return x

    def _product(
        self, a: Value, b: Value, pairs: list[tuple[int, int]], shared: list[tuple[int, int]], to: DType
    ) -> Value:
        """The product; dimensions that an operand repeats are left out of it.

        A repeated batch dimension of one operand is a free dimension of the other:

            lhs[b, m, k] rhs[k, n], repeated b times   ->   lhs[(b, m), k] rhs[k, n]
        """
        free = [
            [d for d in range(v.rank) if d not in [pair[k] for pair in (*pairs, *shared)]] for k, v in enumerate((a, b))
        ]
        labels = [
            *(("batch", i, j) for i, j in shared),
            *(("lhs", i, -1) for i in free[0]),
            *(("rhs", -1, j) for j in free[1]),
        ]
        shape = [a.shape[i] if i >= 0 else b.shape[j] for _, i, j in labels]
        if not (a.view.count and b.view.count):
            return self.full(shape, 0, to)
        if any(i in a.view.repeated for i, _ in pairs):
            a = self._dense(a)
        if any(j in b.view.repeated for _, j in pairs):
            b = self._dense(b)
        left_out = set(a.view.repeated), set(b.view.repeated)
        batches = [
            n
            for n, (kind, i, j) in enumerate(labels)
            if kind == "batch" and i not in left_out[0] and j not in left_out[1]
        ]
        rows = [
            n
            for n, (_, i, j) in enumerate(labels)
            if i >= 0 and i not in left_out[0] and n not in batches and (j < 0 or j in left_out[1])
        ]
        columns = [
            n
            for n, (_, i, j) in enumerate(labels)
            if j >= 0 and j not in left_out[1] and n not in batches and (i < 0 or i in left_out[0])
        ]
        left = [[labels[n][1] for n in batches], [labels[n][1] for n in rows], [i for i, _ in pairs]]
        right = [[labels[n][2] for n in batches], [labels[n][2] for n in columns], [j for _, j in pairs]]
        if _is_column_major(a, left[1], left[2]) and _is_column_major(b, right[2], right[1]):
            a, left, rows, b, right, columns = b, right, columns, a, left, rows
        lhs = self._grouped(a, left)
        rhs = self._grouped(b, [right[0], right[2], right[1]])
        order = [*batches, *rows, *columns]
        extents = [shape[n] for n in order]
        vector = self._emit_product(
            lhs, rhs, [len(batches), len(rows), len(columns), len(pairs)], to, math.prod(extents)
        )
        result = self._of_vector(vector, extents, to)
        return self._with_view(result, result.view.broadcast(shape, order))

    def _grouped(self, x: Value, groups: Sequence[Sequence[int]]) -> Value:
        """The value with its dimensions in the order of groups; other dimensions, which are repeated, are left out."""
        once = self._without_repeats(x)
        listed_dimensions = [d for group in groups for d in group]
        return self._with_view(x, once.view.permuted(listed_dimensions))

    def _emit_product(self, lhs: Value, rhs: Value, counts: Sequence[int], to: DType, count: int) -> ir.Value:
        """`matmul` of operands with their groups of dimensions merged; `contract` where merging them takes a copy.

        Args:
            lhs: Dimensions batch, rows, inner.
            rhs: Dimensions batch, inner, columns.
            counts: How many dimensions are batch, rows, columns, inner.
            to: Element type of the result.
            count: Its number of elements.
        """
        batch, rows, columns, inner = counts
        result = vector_of(count, type_of(to))
        merged = [
            self._merged(lhs, (batch, rows, inner)),
            self._merged(rhs, (batch, inner, columns)),
        ]
        tokens = [self._token(v) if v is not None else None for v in merged]
        whole = [t is not None and t[1] == tuple(range(batch + 2)) for t in tokens]
        if inner and all(whole):
            (left, _), (right, _) = (t for t in tokens if t is not None)
            return self._builder.matmul(left, right, result)
        (left, of_left), (right, of_right) = self._token(lhs), self._token(rhs)
        axes_a = [of_left.index(d) for d in range(batch + rows, batch + rows + inner)]
        axes_b = [of_right.index(d) for d in range(batch, batch + inner)]
        pairs = ([of_left.index(d) for d in range(batch)], [of_right.index(d) for d in range(batch)])
        return self._builder.contract(left, right, axes_a, axes_b, pairs if batch else None, result)

    def _merged(self, x: Value, counts: Sequence[int]) -> Value | None:
        """The value as a batch of matrices: the second and the third group of dimensions are merged into one each."""
        batch, first, second = counts
        middle = batch + first
        shape = (*x.shape[:batch], math.prod(x.shape[batch:middle]), math.prod(x.shape[middle : middle + second]))
        parts = [
            x.view.permuted(range(batch)),
            x.view.permuted(range(batch, middle)),
            x.view.permuted(range(middle, x.rank)),
        ]
        merged = [parts[1].reshaped([shape[-2]]), parts[2].reshaped([shape[-1]])]
        if merged[0] is None or merged[1] is None:
            return None
        strides = (*parts[0].strides, *merged[0].strides, *merged[1].strides)
        return self._with_view(x, type(x.view)(shape, strides, x.view.offset))


def _is_column_major(x: Value, rows: Sequence[int], columns: Sequence[int]) -> bool:
    """Whether the rows of a matrix of these dimensions lie closer together than its columns."""
    strides = [[x.view.strides[d] for d in dimensions if x.shape[d] > 1] for dimensions in (rows, columns)]
    return all(strides) and max(strides[0]) < min(strides[1])
