"""Arithmetic, constants and casts on cooperative matrices, entry by entry."""

from __future__ import annotations

from tlx.diagnostics import LoweringError
from tlx.frontends.tensor_language.ast.mixed import ArithBinary, ArithUnary, Cast, Constant
from tlx.frontends.tensor_language.emit.emitter import Emitter


def arith_binary(_e: Emitter, i: ArithBinary) -> None:
    """`%r = add %a, %b : coopmatrix-type`."""
    raise LoweringError("to come", i.span)


def arith_unary(_e: Emitter, i: ArithUnary) -> None:
    """`%r = neg %a : coopmatrix-type`."""
    raise LoweringError("to come", i.span)


def constant(_e: Emitter, i: Constant) -> None:
    """`%r = constant 1.0 : coopmatrix-type`."""
    raise LoweringError("to come", i.span)


def cast(_e: Emitter, i: Cast) -> None:
    """`%r = cast %a : coopmatrix-type`."""
    raise LoweringError("to come", i.span)
