"""BLAS instructions: `axpby`, `cumsum`, `sum`, `gemm`, `gemv`, `ger` and `hadamard`.

Each instruction is emitted by one of these strategies:

    tensors     extents and strides are known, S1 = 1 or one column, real numbers       `tensors`
    packed      gemm of known extents whose leading dimensions are unknown, S1 = 1      `dynamic`
    dynamic     gemm of unknown extents, S1 = 1, if it is large at run time             `dynamic`
    loops       everything else                                                         `loops`

One thread runs a work-group, so a collective instruction runs once. Inputs may overlap the output only where each
element of the output depends on no other element of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tlx.frontends.tensor_language.emit.blas.dynamic import emit_dynamic
from tlx.frontends.tensor_language.emit.blas.loops import emit_loops, emit_scan
from tlx.frontends.tensor_language.emit.blas.tensors import (
    Epilogue,
    Terms,
    emit_tensors,
    epilogue_of,
    fits_tensors,
    terms_of,
)
from tlx.frontends.tensor_language.emit.emitter import Emitter, Memref
from tlx.frontends.tensor_language.emit.masks import all_of, if_else
from tlx.frontends.tensor_language.operations.blas import Axpby, Cumsum, Gemm, Gemv, Ger, Hadamard, Sum
from tlx.ir.types import I64
from tlx.ir.values import ConstInt, const_int

Strategy = Callable[[Emitter, Epilogue, Terms], None]


def with_unit_strides(e: Emitter, epilogue: Epilogue, terms: Terms, strategy: Strategy) -> None:
    """Emit two versions where first strides are unknown, one of which relies on strides of 1.

    if S1(A) == 1 and S1(B) == 1: the strategy with strides 1
    else:                         the strategy with strides as they are
    """
    unknown = [m.stride[0] for m in _memrefs(epilogue, terms) if _has_unknown_first_stride(m)]
    if not unknown or epilogue.type.kind == "complex":
        strategy(e, epilogue, terms)
        return
    condition = all_of(e, [e.b.icmp("eq", stride, 1) for stride in unknown])
    factors = tuple(replace(f, memref=_unit(f.memref)) for f in terms.factors)
    unit = replace(epilogue, out=_unit(epilogue.out)), Terms(factors)
    if_else(e, condition, lambda: strategy(e, *unit), lambda: strategy(e, epilogue, terms))


def _memrefs(epilogue: Epilogue, terms: Terms) -> list[Memref]:
    return [epilogue.out, *(factor.memref for factor in terms.factors)]


def _has_unknown_first_stride(memref: Memref) -> bool:
    return bool(memref.stride) and not isinstance(memref.stride[0], ConstInt)


def _unit(memref: Memref) -> Memref:
    if not _has_unknown_first_stride(memref):
        return memref
    return replace(memref, stride=(const_int(I64, 1), *memref.stride[1:]))


def blas(e: Emitter, i: Axpby | Gemm | Gemv | Ger | Hadamard | Sum) -> None:
    """`output := alpha * sum of products + beta * output`."""
    epilogue, terms = epilogue_of(e, i), terms_of(e, i)
    if fits_tensors(epilogue, terms):
        emit_tensors(e, epilogue, terms)
    else:
        with_unit_strides(e, epilogue, terms, emit_dynamic if isinstance(i, Gemm) else emit_loops)


def cumsum(e: Emitter, i: Cumsum) -> None:
    """`cumsum[.atomic] %alpha, %A, mode, %beta, %B`."""
    emit_scan(e, epilogue_of(e, i), e.memref(i.a), i)
