"""`cumsum`: running sums along a mode.

mode 0             for outer: sum = 0; for i: sum += A[i,...]; B[i,...] := alpha * sum + beta * B[i,...]
any other mode m   for outer: for i in 0, V, ...: <V x T> sums = 0; for j: sums += A[i:i+V,..,j,..]; ...
"""

from __future__ import annotations

from tlx.frontends.tensor_language.ast.collective import Cumsum
from tlx.frontends.tensor_language.emit.arithmetic import binary
from tlx.frontends.tensor_language.emit.blas_elements import Lanes, read
from tlx.frontends.tensor_language.emit.blas_epilogue import Epilogue, summed_in
from tlx.frontends.tensor_language.emit.blas_loops import each, finish, lanes_of, zeros
from tlx.frontends.tensor_language.emit.blas_terms import Factor
from tlx.frontends.tensor_language.emit.conversions import convert
from tlx.frontends.tensor_language.emit.emitter import Emitter
from tlx.frontends.tensor_language.emit.values import Memref
from tlx.ir.values import Value


def emit_scan(e: Emitter, epilogue: Epilogue, a: Memref, i: Cumsum) -> None:
    """Compute all running sums."""
    mode, out = i.mode, epilogue.out
    others = [extent for k, extent in enumerate(out.shape) if k != mode]
    type_ = summed_in(epilogue.type, [a.type.element])

    def body(indices: tuple[Value, ...], lanes: Lanes) -> None:
        with e.b.loop(0, out.shape[mode], carry=zeros(type_, lanes.count), name="scan") as loop:
            places = (*indices[:mode], loop.index, *indices[mode:])
            sums = binary(e, "add", type_, tuple(loop.carried), read(e, a, places, type_, lanes))
            finish(e, epilogue, convert(e, sums, type_, epilogue.type), places, lanes)
            loop.next(*sums)

    each(e, others, _lanes(epilogue, a, mode), body)


def _lanes(epilogue: Epilogue, a: Memref, mode: int) -> int:
    """How many neighbours along mode 0 are summed side by side."""
    if mode == 0 or epilogue.atomic or epilogue.type.kind == "complex":
        return 1
    modes = tuple(range(a.type.order))
    contiguous = all(Factor(memref, modes).is_contiguous(0) for memref in (a, epilogue.out))
    return lanes_of(epilogue.type) if contiguous else 1
