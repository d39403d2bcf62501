"""Collective operations on whole vectors and matrices.

`Blas.indices` gives the index that each mode of an operand has: an index of the output, or `K`, which is
summed. Checker and emitter derive shapes and loops from it.

    sum     b[i]   := a sum_k op(A)[i,k]              A(0, K), with .t A(K, 0)
    gemm    C[i,j] := a sum_k op1(A)[i,k] op2(B)[k,j] A(0, K) B(K, 1) C(0, 1)
    gemv    c[i]   := a sum_k op(A)[i,k] b[k]         A(0, K) b(K) c(0)
    ger     C[i,j] := a a[i] b[j]                     a(0) b(1) C(0, 1)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from tlx.frontends.tensor_language.operations.core import Transpose, entry_of, flag, operation, transpose
from tlx.frontends.tensor_language.syntax.forms import comma, integer, operands
from tlx.frontends.tensor_language.syntax.nodes import Instruction, Name

_ATOMIC: Final = flag("atomic")
K: Final = -1  # the index that is summed over
Indices = tuple[int, ...]


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


@operation(
    "axpby",
    *operands(alpha="alpha", a="A", beta="beta", b="B"),
    modifiers=(_ATOMIC, transpose()),
    writes="b",
    results="none",
    region="collective",
)
@dataclass(kw_only=True, slots=True)
class Axpby(Blas):
    """`axpby[.atomic][.t|.n] %alpha, %A, %beta, %B`: `B := alpha op(A) + beta B`."""

    transpose: Transpose = "n"
    b: Name


@operation(
    "cumsum", *operands(alpha="alpha", a="A"), comma("the mode"), integer("mode", "the mode of 'cumsum'"),
    comma("beta"), *operands(beta="beta", b="B"), modifiers=(_ATOMIC,), writes="b", results="none", region="collective",
)  # fmt: skip
@dataclass(kw_only=True, slots=True)
class Cumsum(Blas):
    """`cumsum[.atomic] %alpha, %A, mode, %beta, %B`: running sums along a mode, counted from 0."""

    mode: int
    b: Name


@operation(
    "sum",
    *operands(alpha="alpha", a="A", beta="beta", b="b"),
    modifiers=(_ATOMIC, transpose()),
    writes="b",
    results="none",
    region="collective",
)
@dataclass(kw_only=True, slots=True)
class Sum(Blas):
    """`sum[.atomic][.t|.n] %alpha, %A, %beta, %b`: sums of the rows of op(A), or of a vector."""

    INDICES: ClassVar[Mapping[str, Indices]] = {"a": (0, K), "b": (0,)}

    transpose: Transpose = "n"
    b: Name


@operation(
    "gemm",
    *operands(alpha="alpha", a="A", b="B", beta="beta", c="C"),
    modifiers=(_ATOMIC, transpose("transpose_a"), transpose("transpose_b")),
    writes="c",
    results="none",
    region="collective",
)
@dataclass(kw_only=True, slots=True)
class Gemm(Blas):
    """`gemm[.atomic][.t|.n][.t|.n] %alpha, %A, %B, %beta, %C`: `C := alpha op1(A) op2(B) + beta C`."""

    INDICES: ClassVar[Mapping[str, Indices]] = {"a": (0, K), "b": (K, 1), "c": (0, 1)}

    transpose_a: Transpose = "n"
    transpose_b: Transpose = "n"
    b: Name
    c: Name


@operation(
    "gemv",
    *operands(alpha="alpha", a="A", b="b", beta="beta", c="c"),
    modifiers=(_ATOMIC, transpose()),
    writes="c",
    results="none",
    region="collective",
)
@dataclass(kw_only=True, slots=True)
class Gemv(Blas):
    """`gemv[.atomic][.t|.n] %alpha, %A, %b, %beta, %c`: `c := alpha op(A) b + beta c`."""

    INDICES: ClassVar[Mapping[str, Indices]] = {"a": (0, K), "b": (K,), "c": (0,)}

    transpose: Transpose = "n"
    b: Name
    c: Name


@operation(
    "ger",
    *operands(alpha="alpha", a="a", b="b", beta="beta", c="C"),
    modifiers=(_ATOMIC,),
    writes="c",
    results="none",
    region="collective",
)
@dataclass(kw_only=True, slots=True)
class Ger(Blas):
    """`ger[.atomic] %alpha, %a, %b, %beta, %C`: `C := alpha a b^T + beta C`."""

    INDICES: ClassVar[Mapping[str, Indices]] = {"a": (0,), "b": (1,), "c": (0, 1)}

    b: Name
    c: Name


@operation(
    "hadamard",
    *operands(alpha="alpha", a="A", b="B", beta="beta", c="C"),
    modifiers=(_ATOMIC,),
    writes="c",
    results="none",
    region="collective",
)
@dataclass(kw_only=True, slots=True)
class Hadamard(Blas):
    """`hadamard[.atomic] %alpha, %A, %B, %beta, %C`: the product entry by entry."""

    b: Name
    c: Name
