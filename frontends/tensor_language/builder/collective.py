"""Methods for collective instructions, which a work-group runs as one."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Final, overload

from tlx.diagnostics import UsageError
from tlx.frontends.tensor_language.builder.core import UNWRITTEN, KernelBase, document, method
from tlx.frontends.tensor_language.builder.values import NoValue, Operand, TypeLike, Value, dictionary_of
from tlx.frontends.tensor_language.operations import OPERATIONS
from tlx.frontends.tensor_language.operations.control import Foreach, ForeachTile, Parallel
from tlx.frontends.tensor_language.operations.core import Transpose
from tlx.frontends.tensor_language.operations.memory import Alloca, LifetimeStop
from tlx.frontends.tensor_language.syntax.nodes import Name
from tlx.frontends.tensor_language.types import INDEX, ScalarType, Type, promote


@dataclass(eq=False, slots=True, repr=False)
class ForeachTileBody(NoValue):
    """The tile that the body of `foreach_tile` works on.

    Attributes:
        offset: Where it begins, a value for each mode.
        size: Its extents, a value for each mode.
    """

    USE: ClassVar[str] = "write .offset[mode] for where it begins, .size[mode] for how large it is"

    offset: tuple[Value, ...]
    size: tuple[Value, ...]


_TRANSPOSED: Final = "Whether op(A) is A ('n') or its transpose ('t')."
_BLAS: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "axpby": (
        "B := alpha op(A) + beta B.",
        {
            "a": "Memref of order 0, 1 or 2.",
            "b": "The output, a memref of the shape of op(A).",
            "transpose": "Whether op(A) is A ('n') or its transpose ('t'); vectors stay.",
        },
    ),
    "cumsum": (
        "running sums, B[.., i, ..] := alpha (A[.., 0, ..] + ... + A[.., i, ..]) + beta B[.., i, ..].",
        {
            "a": "Memref of order 1 or more.",
            "mode": "The mode along which sums run, counted from 0.",
            "b": "The output, a memref of A's shape.",
        },
    ),
    "sum": (
        "sums of rows, b[i] := alpha sum_k op(A)[i, k] + beta b[i], or of a vector.",
        {
            "a": "Memref of order 2 with op(A) of shape M x K, or a vector of K entries.",
            "b": "The output: a vector of M entries, or a memref of order 0.",
            "transpose": _TRANSPOSED,
        },
    ),
    "gemm": (
        "the product of matrices, C := alpha op1(A) op2(B) + beta C.",
        {
            "a": "Memref of order 2; op1(A) is M x K.",
            "b": "Memref of order 2; op2(B) is K x N.",
            "c": "The output, a memref of shape M x N.",
            "transpose_a": "Whether op1(A) is A ('n') or its transpose ('t').",
            "transpose_b": "The same of op2(B).",
        },
    ),
    "gemv": (
        "the product of a matrix and a vector, c := alpha op(A) b + beta c.",
        {
            "a": "Memref of order 2; op(A) is M x K.",
            "b": "Memref with K entries.",
            "c": "The output, a memref with M entries.",
            "transpose": _TRANSPOSED,
        },
    ),
    "ger": (
        "the outer product, C := alpha a b^T + beta C.",
        {"a": "Memref with M entries.", "b": "Memref with N entries.", "c": "The output, a memref of shape M x N."},
    ),
    "hadamard": (
        "the product entry by entry, C := alpha A B + beta C.",
        {"a": "Memref of order 1 or 2.", "b": "Memref of A's shape.", "c": "The output, a memref of A's shape."},
    ),
}
_FACTORS: Final = {
    "alpha": "Factor of what is computed: a value, or a Python number.",
    "beta": "Factor of what the output holds: a value, or a Python number. It is multiplied even where it is 0.",
    "atomic": "Whether other work-groups may update the output at once; beta must be 0 or 1 then.",
}


def _blas(name: str) -> str:
    text, memrefs = _BLAS[name]
    meanings = {**_FACTORS, **memrefs}
    entry = OPERATIONS[name]
    modifiers = [m.field for m in entry.modifiers or ()]
    refused = "An order or a shape does not fit, a type cannot be promoted, or beta does not fit atomic"
    no_mode = ", or there is no such mode" if name == "cumsum" else ""
    return document(
        text, {f: meanings[f] for f in (*entry.fields, *modifiers[1:], *modifiers[:1])}, f"{refused}{no_mode}."
    )


class Collective(KernelBase):
    """Collective instructions. A Python number as alpha or beta becomes a constant of the type that it multiplies."""

    def alloca(self, type_: TypeLike, *, alignment: int | None = None) -> Value:
        """`alloca`: local memory of the work-group, until the region ends.

        Args:
            type_: A memref in local memory whose shape and stride are known.
            alignment: Bytes; a power of two up to 128 and a multiple of the element's size. 64 by default.

        Raises:
            TlxError: The type is not such a memref, or the alignment is not such a power.
        """
        attributes = dictionary_of({} if alignment is None else {"alignment": alignment}, self.here())
        return self._write_one(Alloca(attributes=attributes), self._type(type_))

    def lifetime_stop(self, memref: Value) -> None:
        """`lifetime_stop`: states that local memory is no longer used.

        Args:
            memref: The result of an `alloca`.

        Raises:
            TlxError: It is not the result of an `alloca`.
        """
        self._write(LifetimeStop(memref=self._name(memref)))

    def _one_input(
        self, name: str, alpha: Operand, a: Value, beta: Operand, b: Value, *, transpose: Transpose = "n",
        atomic: bool = False,
    ) -> None:  # fmt: skip
        self._write_blas(name, alpha, (a,), beta, b, transpose=transpose, atomic=atomic)

    def _running(
        self, name: str, alpha: Operand, a: Value, mode: int, beta: Operand, b: Value, *, atomic: bool = False
    ) -> None:
        self._write_blas(name, alpha, (a,), beta, b, mode=mode, atomic=atomic)

    def _of_matrices(
        self, name: str, alpha: Operand, a: Value, b: Value, beta: Operand, c: Value, *, transpose_a: Transpose = "n",
        transpose_b: Transpose = "n", atomic: bool = False,
    ) -> None:  # fmt: skip
        transposes = {"transpose_a": transpose_a, "transpose_b": transpose_b}
        self._write_blas(name, alpha, (a, b), beta, c, **transposes, atomic=atomic)

    def _of_matrix_and_vector(
        self, name: str, alpha: Operand, a: Value, b: Value, beta: Operand, c: Value, *, transpose: Transpose = "n",
        atomic: bool = False,
    ) -> None:  # fmt: skip
        self._write_blas(name, alpha, (a, b), beta, c, transpose=transpose, atomic=atomic)

    def _two_inputs(
        self, name: str, alpha: Operand, a: Value, b: Value, beta: Operand, c: Value, *, atomic: bool = False
    ) -> None:
        self._write_blas(name, alpha, (a, b), beta, c, atomic=atomic)

    axpby = method(_one_input, "axpby", _blas)
    cumsum = method(_running, "cumsum", _blas)
    sum = method(_one_input, "sum", _blas)
    gemm = method(_of_matrices, "gemm", _blas)
    gemv = method(_of_matrix_and_vector, "gemv", _blas)
    ger = method(_two_inputs, "ger", _blas)
    hadamard = method(_two_inputs, "hadamard", _blas)

    def _write_blas(
        self, name: str, alpha: Operand, inputs: Sequence[Value], beta: Operand, output: Value, **fields: Any
    ) -> None:
        alpha_, beta_ = self._factors(alpha, inputs, beta, output)
        memrefs = {field: self._name(value) for field, value in zip("abc", (*inputs, output), strict=False)}
        self._write(self._node(name, alpha=alpha_, beta=beta_, **memrefs, **fields))

    @contextmanager
    def parallel(self) -> Generator[None]:
        """`parallel`: the block is an SPMD region, which each work-item of the work-group runs once.

        Raises:
            TlxError: It is in an SPMD region.
        """
        span = self.here()
        with self._region() as frame:
            yield
        self._add(Parallel(body=frame.region), (), span)

    @overload
    def foreach(self, start: Operand, stop: Operand) -> AbstractContextManager[Value]: ...

    @overload
    def foreach(
        self, start: Sequence[Operand], stop: Sequence[Operand]
    ) -> AbstractContextManager[tuple[Value, ...]]: ...

    def foreach(
        self, start: Operand | Sequence[Operand], stop: Operand | Sequence[Operand]
    ) -> AbstractContextManager[Any]:
        """`foreach`: the block is an SPMD region for each index, in any order.

        with k.foreach(0, n) as i:
            k.x[i] = 0.0
        with k.foreach((0, 0), (m, n)) as (i, j):
            k.A[i, j] = 0.0

        Args:
            start: The first index, a value or a Python number; a sequence for several indices.
            stop: The index after the last, or a sequence of them; of the type of start.

        Raises:
            TlxError: Bounds are not integers of one type, or it is in an SPMD region.
        """
        return self._foreach(start, stop)

    @contextmanager
    def _foreach(self, start: Operand | Sequence[Operand], stop: Operand | Sequence[Operand]) -> Generator[Any]:
        span = self.here()
        starts, stops, types = self._ranges(start, stop)
        with self._region() as frame:
            variables = tuple(self._value(type_) for type_ in types)
            names = tuple(v.name for v in variables)
            written = Foreach(variables=names, starts=starts, stops=stops, body=UNWRITTEN)
            self._check(written, (), span)
            yield variables if isinstance(start, Sequence) or isinstance(stop, Sequence) else variables[0]
        written.body = frame.region
        self._add(written, (), span)

    @contextmanager
    def foreach_tile(
        self, start: Operand | Sequence[Operand], stop: Operand | Sequence[Operand], tile_shape: int | Sequence[int]
    ) -> Generator[ForeachTileBody]:
        """`foreach_tile`: the block is an SPMD region for each tile of at most that shape, in any order.

        with k.foreach_tile((0, 0), (m, n), (32, 32)) as tile:
            k.cooperative_matrix_store(c, k.C, *tile.offset, checked="both_checked")

        Args:
            start: Where the tiles begin: an integer, or a sequence with one for each mode.
            stop: Where they end, as start.
            tile_shape: Extents of a tile, the first a multiple of the subgroup size.

        Raises:
            TlxError: Bounds are not integers of one type, an extent does not fit, or it is in an SPMD region.
        """
        span = self.here()
        starts, stops, types = self._ranges(start, stop)
        shape = tuple(tile_shape) if isinstance(tile_shape, Sequence) else (tile_shape,)
        if len(shape) != len(starts):
            raise UsageError(f"expected a tile shape of {len(starts)} modes, got {len(shape)}", span)
        with self._region() as frame:
            offset = tuple(self._value(type_) for type_ in types)
            size = tuple(self._value(type_) for type_ in types)
            written = ForeachTile(
                variables=tuple(v.name for v in offset),
                starts=starts,
                stops=stops,
                sizes=tuple(v.name for v in size),
                tile_shape=shape,
                body=UNWRITTEN,
            )
            self._check(written, (), span)
            yield ForeachTileBody(offset, size)
        written.body = frame.region
        self._add(written, (), span)

    def _factors(self, alpha: Operand, inputs: Sequence[Value], beta: Operand, output: Value) -> tuple[Name, Name]:
        """Names of alpha and beta."""
        elements = [self._memref(value, "an input").element for value in inputs]
        computed: ScalarType | None = elements[0]
        for element in elements[1:]:
            computed = promote(computed, element) if computed else None
        if computed is None:
            types = " and ".join(map(str, elements))
            message = f"elements {types} cannot be promoted to a common type: neither holds all values of the other"
            raise UsageError(message, self.here())
        return self._operand(alpha, computed), self._operand(beta, self._memref(output, "the output").element)

    def _ranges(
        self, start: Operand | Sequence[Operand], stop: Operand | Sequence[Operand]
    ) -> tuple[tuple[Name, ...], tuple[Name, ...], list[Type]]:
        """Names of the bounds of loops, and the type of each loop's variable."""
        starts = list(start) if isinstance(start, Sequence) else [start]
        stops = list(stop) if isinstance(stop, Sequence) else [stop]
        if len(starts) != len(stops):
            message = f"expected as many lower bounds as upper ones, got {len(starts)} and {len(stops)}"
            raise UsageError(message, self.here())
        types = [self._common_type(pair, INDEX) or INDEX for pair in zip(starts, stops, strict=True)]
        first = tuple(self._operand(v, t) for v, t in zip(starts, types, strict=True))
        last = tuple(self._operand(v, t) for v, t in zip(stops, types, strict=True))
        return first, last, types
