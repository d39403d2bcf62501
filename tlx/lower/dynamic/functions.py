"""Functions of one tensor of run-time size: static chunks of 256 elements, the rest of a row in a chunk of zeros.

define internal void @tlx.dynamic.exp.r2.f32(ptr %to, ptr %from, i64 %e0, i64 %e1, i64 %t0, i64 %f0) {
  for each row:
    for (; j + 256 <= %e1; j += 256) store(%to + j, typeinfo(exp(load(%from + j, <256>))))
    copy what is left to a chunk of zeros, the same there, copy it back
}
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tlx.intrinsics.elementwise import ELEMENTWISE
from tlx.ir.dynamic import DynamicOp
from tlx.ir.mangle import mangle
from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.types import ArrayType, Type, bytes_of
from tlx.ir.values import Local, Value
from tlx.lower.dynamic.helpers import To, numbers
from tlx.lower.dynamic.maps import CHUNK
from tlx.lower.dynamic.numbers import number, product
from tlx.lower.dynamic.views import Dim, count_of, steps_of
from tlx.types import TensorType

if TYPE_CHECKING:
    from tlx.lower.dynamic.rewrite import Expansion

FUNCTIONS: Final = tuple(row.name for row in ELEMENTWISE)


def lower_function(e: Expansion, op: DynamicOp) -> None:
    """The function of each data element, in the operand's shape and layout; padding is zero."""
    view = e.view(op.tensors[0])
    flat = e.result(op, count_of(e.b, view), zero=view.is_padded)
    steps = steps_of(e.b, list(view.shape))
    dims = list(view.dims)
    if view.is_dense:
        dims, steps = [Dim(product(e.b, [d.extent for d in dims]), number(1))], [number(1)]
    rank = len(dims)
    outer = range(rank - 1)
    names = [*(f"e{k}" for k in range(rank)), *(f"t{k}" for k in outer), *(f"f{k}" for k in outer)]
    parameters = [("to", To(flat.element)), ("from", To(flat.element)), *numbers(*names)]
    args = [flat.pointer, view.pointer, *(d.extent for d in dims), *steps[:-1], *(d.step for d in dims[:-1])]

    def build(inner: TensorBuilder, p: dict[str, Local]) -> None:
        _Rows(inner, p, op.intrinsic.name, flat.element, rank).run()

    e.helpers.call(e.b, f"{op.intrinsic.name}.r{rank}.{mangle(flat.element)}", parameters, args, build)


@dataclass(eq=False)
class _Rows:
    """Fills the helper."""

    b: TensorBuilder
    p: dict[str, Local]
    name: str
    element: Type
    rank: int

    def run(self) -> None:
        b, p = self.b, self.p
        array = ArrayType(CHUNK, self.element)
        chunk = b.retype(b.alloca(array, "chunk"), self.element)
        result = b.retype(b.alloca(array, "chunk.result"), self.element)
        to: Value = p["to"]
        source: Value = p["from"]
        with ExitStack() as stack:
            for k in range(self.rank - 1):
                index = stack.enter_context(b.loop(0, p[f"e{k}"], name="i")).index
                to = b.gep(self.element, to, b.mul(index, p[f"t{k}"], "offset"), "to")
                source = b.gep(self.element, source, b.mul(index, p[f"f{k}"], "offset"), "from")
            count = p[f"e{self.rank - 1}"]
            full = b.binary("and", count, number(-CHUNK), "full")
            with b.loop(0, full, CHUNK, name="j") as loop:
                self._chunk(b.gep(self.element, to, loop.index, "to"), b.gep(self.element, source, loop.index, "from"))
            size = b.mul(b.sub(count, full, "left"), bytes_of(self.element), "bytes")
            rest = b.new_block("rest")
            end = b.new_block("row.end", rest)
            b.branch_if(b.icmp("sgt", size, 0, "any"), rest, end)
            b.at_end(rest)
            b.memset(chunk, 0, CHUNK * bytes_of(self.element))
            b.memcpy(chunk, b.gep(self.element, source, full, "from"), size)
            self._chunk(result, chunk)
            b.memcpy(b.gep(self.element, to, full, "to"), result, size)
            b.branch(end)
            b.at_end(end)

    def _chunk(self, to: Value, source: Value) -> None:
        b = self.b
        type_ = TensorType.dense(self.element, (CHUNK,))
        token = b.tensor_load(source, type_)
        b.tensor_store(to, b.typeinfo(b.unary(self.name, token, type_), type_))
