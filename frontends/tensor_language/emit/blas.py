"""BLAS instructions: `axpby`, `cumsum`, `sum`, `gemm`, `gemv`, `ger` and `hadamard`.

One of these ways computes an instruction:

    tensors     extents and strides are known, S1 = 1 or one column, real numbers       `blas_tensors`
    packed      gemm of known extents whose leading dimensions are unknown, S1 = 1      `blas_packed`
    dynamic     gemm of unknown extents, S1 = 1, where it turns out to be large         `blas_dynamic`
    loops       everything else                                                         `blas_loops`, `blas_scan`

A work-group is run by one thread, so a collective instruction is run once. Inputs may overlap the output only where
each element of the output depends on no other element of it.
"""

from __future__ import annotations

from typing import Final

from tlx.frontends.tensor_language.ast.collective import Axpby, Blas, Cumsum, Gemm, Gemv, Ger, Hadamard, Sum
from tlx.frontends.tensor_language.emit.blas_dynamic import emit_dynamic
from tlx.frontends.tensor_language.emit.blas_epilogue import epilogue_of
from tlx.frontends.tensor_language.emit.blas_loops import emit_loops
from tlx.frontends.tensor_language.emit.blas_scan import emit_scan
from tlx.frontends.tensor_language.emit.blas_tensors import emit_tensors, fits_tensors
from tlx.frontends.tensor_language.emit.blas_terms import terms_of
from tlx.frontends.tensor_language.emit.blas_unit_strides import with_unit_strides
from tlx.frontends.tensor_language.emit.emitter import Emitter


def blas(e: Emitter, i: Blas) -> None:
    """`output := alpha * sum of products + beta * output`."""
    epilogue, terms = epilogue_of(e, i), terms_of(e, i)
    if fits_tensors(epilogue, terms):
        emit_tensors(e, epilogue, terms)
    else:
        with_unit_strides(e, epilogue, terms, emit_dynamic if isinstance(i, Gemm) else emit_loops)


def cumsum(e: Emitter, i: Cumsum) -> None:
    """`cumsum[.atomic] %alpha, %A, mode, %beta, %B`."""
    emit_scan(e, epilogue_of(e, i), e.memref(i.a), i)


RULES: Final = {Axpby: blas, Cumsum: cumsum, Gemm: blas, Gemv: blas, Ger: blas, Hadamard: blas, Sum: blas}
