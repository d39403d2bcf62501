"""Memrefs with a first stride that is known only when the kernel runs: code for stride 1, and code for any."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tlx.frontends.tensor_language.emit.blas_epilogue import Epilogue
from tlx.frontends.tensor_language.emit.blas_terms import Terms
from tlx.frontends.tensor_language.emit.branches import all_of, if_else
from tlx.frontends.tensor_language.emit.emitter import Emitter
from tlx.frontends.tensor_language.emit.values import Memref
from tlx.ir.types import I64
from tlx.ir.values import ConstInt, const_int

Way = Callable[[Emitter, Epilogue, Terms], None]


def with_unit_strides(e: Emitter, epilogue: Epilogue, terms: Terms, way: Way) -> None:
    """Write code that may rely on first strides of 1 where they are, if there are any to ask about.

    if S1(A) == 1 and S1(B) == 1: the way with strides 1
    else:                         the way with strides as they are
    """
    asked = [m.stride[0] for m in _memrefs(epilogue, terms) if _is_asked(m)]
    if not asked or epilogue.type.kind == "complex":
        way(e, epilogue, terms)
        return
    condition = all_of(e, [e.b.icmp("eq", stride, 1) for stride in asked])
    factors = tuple(replace(f, memref=_unit(f.memref)) for f in terms.factors)
    unit = replace(epilogue, out=_unit(epilogue.out)), Terms(factors)
    if_else(e, condition, lambda: way(e, *unit), lambda: way(e, epilogue, terms))


def _memrefs(epilogue: Epilogue, terms: Terms) -> list[Memref]:
    return [epilogue.out, *(factor.memref for factor in terms.factors)]


def _is_asked(memref: Memref) -> bool:
    return bool(memref.stride) and not isinstance(memref.stride[0], ConstInt)


def _unit(memref: Memref) -> Memref:
    if not _is_asked(memref):
        return memref
    return replace(memref, stride=(const_int(I64, 1), *memref.stride[1:]))
