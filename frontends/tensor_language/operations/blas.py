"""Collective operations on whole vectors and matrices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tlx.frontends.tensor_language.operations.core import Transpose, flag, operation, transpose
from tlx.frontends.tensor_language.syntax.forms import comma, integer, operands
from tlx.frontends.tensor_language.syntax.nodes import Instruction, Name

_ATOMIC: Final = flag("atomic")


@dataclass(kw_only=True, slots=True)
class Blas(Instruction):
    """An instruction that computes `alpha * f(inputs) + beta * output` into its last operand.

    Attributes:
        atomic: Whether the output is updated atomically.
        alpha: Factor of what is computed.
        a: The first (or only) input.
        beta: Factor of what the output holds.
    """

    atomic: bool = False
    alpha: Name
    a: Name
    beta: Name


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
