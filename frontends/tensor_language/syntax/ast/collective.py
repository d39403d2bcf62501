"""Instructions that a work-group runs together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from tlx.frontends.tensor_language.syntax.ast.base import Dictionary, Instruction, Name, Region

Transpose = Literal["n", "t"]


@dataclass(kw_only=True, slots=True)
class Alloca(Instruction):
    """`%r = alloca {attributes} : memref-type`."""

    attributes: Dictionary = field(default_factory=Dictionary)


@dataclass(kw_only=True, slots=True)
class LifetimeStop(Instruction):
    """`lifetime_stop %memref`."""

    memref: Name


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


@dataclass(kw_only=True, slots=True)
class Axpby(Blas):
    """`axpby[.atomic][.t|.n] %alpha, %A, %beta, %B`: `B := alpha op(A) + beta B`."""

    transpose: Transpose = "n"
    b: Name


@dataclass(kw_only=True, slots=True)
class Cumsum(Blas):
    """`cumsum[.atomic] %alpha, %A, mode, %beta, %B`: running sums along a mode, counted from 0."""

    mode: int
    b: Name


@dataclass(kw_only=True, slots=True)
class Sum(Blas):
    """`sum[.atomic][.t|.n] %alpha, %A, %beta, %b`: sums of the rows of op(A), or of a vector."""

    transpose: Transpose = "n"
    b: Name


@dataclass(kw_only=True, slots=True)
class Gemm(Blas):
    """`gemm[.atomic][.t|.n][.t|.n] %alpha, %A, %B, %beta, %C`: `C := alpha op1(A) op2(B) + beta C`."""

    transpose_a: Transpose = "n"
    transpose_b: Transpose = "n"
    b: Name
    c: Name


@dataclass(kw_only=True, slots=True)
class Gemv(Blas):
    """`gemv[.atomic][.t|.n] %alpha, %A, %b, %beta, %c`: `c := alpha op(A) b + beta c`."""

    transpose: Transpose = "n"
    b: Name
    c: Name


@dataclass(kw_only=True, slots=True)
class Ger(Blas):
    """`ger[.atomic] %alpha, %a, %b, %beta, %C`: `C := alpha a b^T + beta C`."""

    b: Name
    c: Name


@dataclass(kw_only=True, slots=True)
class Hadamard(Blas):
    """`hadamard[.atomic] %alpha, %A, %B, %beta, %C`: the product entry by entry."""

    b: Name
    c: Name


@dataclass(kw_only=True, slots=True)
class Parallel(Instruction):
    """`parallel { ... }`: an SPMD region."""

    body: Region


@dataclass(kw_only=True, slots=True)
class Foreach(Instruction):
    """`foreach (%i,...)=(%from,...),(%to,...) { ... }`: an SPMD region for each index, in any order."""

    variables: tuple[Name, ...]
    starts: tuple[Name, ...]
    stops: tuple[Name, ...]
    body: Region


@dataclass(kw_only=True, slots=True)
class ForeachTile(Instruction):
    """`foreach_tile (%i,...)=(%from,...),(%to,...) as (%ti,...)<=(32,...) { ... }`: an SPMD region for each tile."""

    variables: tuple[Name, ...]
    starts: tuple[Name, ...]
    stops: tuple[Name, ...]
    sizes: tuple[Name, ...]
    tile_shape: tuple[int, ...]
    body: Region
