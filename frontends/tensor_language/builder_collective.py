"""Methods that write the instructions that a work-group runs together."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, overload

from tlx.diagnostics import UsageError
from tlx.frontends.tensor_language.ast.base import Name
from tlx.frontends.tensor_language.ast.collective import (
    Alloca,
    Axpby,
    Cumsum,
    Foreach,
    ForeachTile,
    Gemm,
    Gemv,
    Ger,
    Hadamard,
    LifetimeStop,
    Parallel,
    Sum,
    Transpose,
)
from tlx.frontends.tensor_language.builder_core import UNWRITTEN, Core
from tlx.frontends.tensor_language.builder_types import TypeLike, dictionary_of
from tlx.frontends.tensor_language.builder_values import NoValue, Operand, Value
from tlx.frontends.tensor_language.types import INDEX, ScalarType, Type, promote


@dataclass(eq=False, slots=True, repr=False)
class Tile(NoValue):
    """The tile that the body of `foreach_tile` works on.

    Attributes:
        offset: Where it begins, a value each mode.
        size: How large it is, a value each mode.
    """

    USE: ClassVar[str] = "write .offset[mode] for where it begins, .size[mode] for how large it is"

    offset: tuple[Value, ...]
    size: tuple[Value, ...]


class Collective(Core):
    """Collective instructions. A number given as alpha or beta becomes a constant of the type it is multiplied with."""

    def alloca(self, type_: TypeLike, *, alignment: int | None = None) -> Value:
        """`alloca`: memory of the work-group, until the end of the region."""
        attributes = dictionary_of({} if alignment is None else {"alignment": alignment}, self.here())
        return self._write_one(Alloca(attributes=attributes), self._type(type_))

    def lifetime_stop(self, memref: Value) -> None:
        """`lifetime_stop`: what `alloca` gave is no longer used."""
        self._write(LifetimeStop(memref=self._name(memref)))

    def axpby(
        self, alpha: Operand, a: Value, beta: Operand, b: Value, *, transpose: Transpose = "n", atomic: bool = False
    ) -> None:
        """`axpby`: B := alpha op(A) + beta B."""
        alpha_, beta_ = self._factors(alpha, (a,), beta, b)
        a_, b_ = self._name(a), self._name(b)
        self._write(Axpby(alpha=alpha_, a=a_, beta=beta_, b=b_, transpose=transpose, atomic=atomic))

    def cumsum(self, alpha: Operand, a: Value, mode: int, beta: Operand, b: Value, *, atomic: bool = False) -> None:
        """`cumsum`: running sums of A along a mode, counted from 0."""
        alpha_, beta_ = self._factors(alpha, (a,), beta, b)
        self._write(Cumsum(alpha=alpha_, a=self._name(a), mode=mode, beta=beta_, b=self._name(b), atomic=atomic))

    def sum(
        self, alpha: Operand, a: Value, beta: Operand, b: Value, *, transpose: Transpose = "n", atomic: bool = False
    ) -> None:
        """`sum`: sums of the rows of op(A), or of a vector."""
        alpha_, beta_ = self._factors(alpha, (a,), beta, b)
        a_, b_ = self._name(a), self._name(b)
        self._write(Sum(alpha=alpha_, a=a_, beta=beta_, b=b_, transpose=transpose, atomic=atomic))

    def gemm(
        self,
        alpha: Operand,
        a: Value,
        b: Value,
        beta: Operand,
        c: Value,
        *,
        transpose_a: Transpose = "n",
        transpose_b: Transpose = "n",
        atomic: bool = False,
    ) -> None:
        """`gemm`: C := alpha op1(A) op2(B) + beta C."""
        alpha_, beta_ = self._factors(alpha, (a, b), beta, c)
        self._write(
            Gemm(
                alpha=alpha_,
                a=self._name(a),
                b=self._name(b),
                beta=beta_,
                c=self._name(c),
                transpose_a=transpose_a,
                transpose_b=transpose_b,
                atomic=atomic,
            )
        )

    def gemv(
        self,
        alpha: Operand,
        a: Value,
        b: Value,
        beta: Operand,
        c: Value,
        *,
        transpose: Transpose = "n",
        atomic: bool = False,
    ) -> None:
        """`gemv`: c := alpha op(A) b + beta c."""
        alpha_, beta_ = self._factors(alpha, (a, b), beta, c)
        a_, b_, c_ = self._name(a), self._name(b), self._name(c)
        self._write(Gemv(alpha=alpha_, a=a_, b=b_, beta=beta_, c=c_, transpose=transpose, atomic=atomic))

    def ger(self, alpha: Operand, a: Value, b: Value, beta: Operand, c: Value, *, atomic: bool = False) -> None:
        """`ger`: C := alpha a b^T + beta C."""
        alpha_, beta_ = self._factors(alpha, (a, b), beta, c)
        a_, b_, c_ = self._name(a), self._name(b), self._name(c)
        self._write(Ger(alpha=alpha_, a=a_, b=b_, beta=beta_, c=c_, atomic=atomic))

    def hadamard(self, alpha: Operand, a: Value, b: Value, beta: Operand, c: Value, *, atomic: bool = False) -> None:
        """`hadamard`: the product entry by entry."""
        alpha_, beta_ = self._factors(alpha, (a, b), beta, c)
        a_, b_, c_ = self._name(a), self._name(b), self._name(c)
        self._write(Hadamard(alpha=alpha_, a=a_, b=b_, beta=beta_, c=c_, atomic=atomic))

    @contextmanager
    def parallel(self) -> Generator[None]:
        """`parallel`: the block is an SPMD region."""
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
        """`foreach`: the block is an SPMD region for each index; several indices where sequences are given.

        with k.foreach(0, n) as i: ...
        with k.foreach((0, 0), (m, n)) as (i, j): ...
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
    ) -> Generator[Tile]:
        """`foreach_tile`: the block is an SPMD region for each tile, of at most that shape.

        with k.foreach_tile((0, 0), (m, n), (32, 32)) as tile: ... tile.offset, tile.size ...
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
            yield Tile(offset, size)
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
