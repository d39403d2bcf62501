"""Collective operations on whole vectors and matrices.

`Blas.indices` gives the index that each mode of an operand has: an index of the output, or `K`, which is
summed. Checker and emitter derive shapes and loops from it.

    sum     b[i]   := a sum_k op(A)[i,k]              A(0, K), with .t A(K, 0)
    gemm    C[i,j] := a sum_k op1(A)[i,k] op2(B)[k,j] A(0, K) B(K, 1) C(0, 1)
    gemv    c[i]   := a sum_k op(A)[i,k] b[k]         A(0, K) b(K) c(0)
    ger     C[i,j] := a a[i] b[j]                     a(0) b(1) C(0, 1)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, TypeVar

from tlx.frontends.tensor_language.operations.core import Transpose, entry_of, flag, operation, transpose
from tlx.frontends.tensor_language.syntax.forms import Piece, comma, integer, operands
from tlx.frontends.tensor_language.syntax.nodes import Instruction, Name

_ATOMIC: Final = flag("atomic")
K: Final = -1  # the index that is summed over
Indices = tuple[int, ...]
_Node = TypeVar("_Node", bound=Instruction)


@dataclass(kw_only=True, slots=True)
class Blas(Instruction):
    """An instruction that computes `alpha * f(inputs) + beta * output` into its last operand.

    Attributes:
        atomic: Whether the output is updated atomically.
        alpha: Factor of what is computed.
        a: The first (or only) input.
        beta: Factor of what the output holds.
    """

    INDICES: ClassVar[Mapping[str, Indices]] = {}  # by operand, before it is transposed; empty where entry by entry

    atomic: bool = False
    alpha: Name
    a: Name
    beta: Name

    @property
    def inputs(self) -> tuple[str, ...]:
        """The fields of the memrefs that are read besides the output."""
        return ("a", "b") if "c" in entry_of(type(self)).fields else ("a",)

    def indices(self, field: str, order: int) -> Indices:
        """The index of each mode of an operand that has an order."""
        own = self.INDICES.get(field, tuple(range(order)))[-order:] if order else ()
        return own[::-1] if self.is_transposed(field) else own

    def is_transposed(self, field: str) -> bool:
        """Whether an operand is transposed."""
        name = self._transpose_of(field)
        return name is not None and getattr(self, name) == "t"

    def spelled(self, field: str) -> str:
        """An operand in messages: `%B`, or `op2(%B)` where it can be transposed."""
        number = "12"["ab".index(field)] if len(self.inputs) > 1 and field != "c" else ""
        name = getattr(self, field)
        return f"{name}" if self._transpose_of(field) is None else f"op{number}({name})"

    def _transpose_of(self, field: str) -> str | None:
        """The modifier that transposes an operand."""
        candidates = ("transpose", "transpose_a") if field == "a" else (f"transpose_{field}",)
        return next((m.field for m in entry_of(type(self)).modifiers or () if m.field in candidates), None)


def _of_memrefs(
    name: str, *transposes: str, mode: tuple[Piece, ...] = (), **memrefs: str
) -> Callable[[type[_Node]], type[_Node]]:
    """Enter an operation `name %alpha, %A, [%B,] %beta, %C` into the table.

    Args:
        name: Its name.
        transposes: The fields of the modifiers that transpose operands.
        mode: What follows the inputs.
        memrefs: Fields of the memrefs and their names in messages, the output last.
    """
    *inputs, output = memrefs
    before, after = {"alpha": "alpha", **{f: memrefs[f] for f in inputs}}, {"beta": "beta", output: memrefs[output]}
    return operation(
        name, *operands(**before), *mode, comma("beta"), *operands(**after),
        modifiers=(_ATOMIC, *map(transpose, transposes)), writes=output, results="none", region="collective",
    )  # fmt: skip


@_of_memrefs("axpby", "transpose", a="A", b="B")
@dataclass(kw_only=True, slots=True)
class Axpby(Blas):
    """`axpby[.atomic][.t|.n] %alpha, %A, %beta, %B`: `B := alpha op(A) + beta B`."""

    transpose: Transpose = "n"
    b: Name


@_of_memrefs("cumsum", mode=(comma("the mode"), integer("mode", "the mode of 'cumsum'")), a="A", b="B")
@dataclass(kw_only=True, slots=True)
class Cumsum(Blas):
    """`cumsum[.atomic] %alpha, %A, mode, %beta, %B`: running sums along a mode, counted from 0."""

    mode: int
    b: Name


@_of_memrefs("sum", "transpose", a="A", b="b")
@dataclass(kw_only=True, slots=True)
class Sum(Blas):
    """`sum[.atomic][.t|.n] %alpha, %A, %beta, %b`: sums of the rows of op(A), or of a vector."""

    INDICES: ClassVar[Mapping[str, Indices]] = {"a": (0, K), "b": (0,)}

    transpose: Transpose = "n"
    b: Name


@_of_memrefs("gemm", "transpose_a", "transpose_b", a="A", b="B", c="C")
@dataclass(kw_only=True, slots=True)
class Gemm(Blas):
    """`gemm[.atomic][.t|.n][.t|.n] %alpha, %A, %B, %beta, %C`: `C := alpha op1(A) op2(B) + beta C`."""

    INDICES: ClassVar[Mapping[str, Indices]] = {"a": (0, K), "b": (K, 1), "c": (0, 1)}

    transpose_a: Transpose = "n"
    transpose_b: Transpose = "n"
    b: Name
    c: Name


@_of_memrefs("gemv", "transpose", a="A", b="b", c="c")
@dataclass(kw_only=True, slots=True)
class Gemv(Blas):
    """`gemv[.atomic][.t|.n] %alpha, %A, %b, %beta, %c`: `c := alpha op(A) b + beta c`."""

    INDICES: ClassVar[Mapping[str, Indices]] = {"a": (0, K), "b": (K,), "c": (0,)}

    transpose: Transpose = "n"
    b: Name
    c: Name


@_of_memrefs("ger", a="a", b="b", c="C")
@dataclass(kw_only=True, slots=True)
class Ger(Blas):
    """`ger[.atomic] %alpha, %a, %b, %beta, %C`: `C := alpha a b^T + beta C`."""

    INDICES: ClassVar[Mapping[str, Indices]] = {"a": (0,), "b": (1,), "c": (0, 1)}

    b: Name
    c: Name


@_of_memrefs("hadamard", a="A", b="B", c="C")
@dataclass(kw_only=True, slots=True)
class Hadamard(Blas):
    """`hadamard[.atomic] %alpha, %A, %B, %beta, %C`: the product entry by entry."""

    b: Name
    c: Name
