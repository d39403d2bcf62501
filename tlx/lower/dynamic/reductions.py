"""Reductions of windows of run-time size: the loops of their helpers.

    define internal void @tlx.dynamic.reduce.add.r2.f32(ptr %to, ptr %from, i64 %e0, i64 %e1, ...)

for each element of the result but the last dimension:
  a window along rows:               for each element of the result: vectors along the window, combined at the end
  a window one column wide:          vectors of neighbouring elements of the result, the window's rows one after another
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tlx.ir.builder.tensors import TensorBuilder
from tlx.ir.types import FLOAT, FloatType, Type, VectorType, bits_of, bytes_of
from tlx.ir.values import Local, Value
from tlx.lower.dynamic.extents import i64
from tlx.lower.dynamic.views import Walk, each_index
from tlx.lower.operations import combine_identity, emit_portable_combine

_VECTOR_BITS: Final = 512


@dataclass(eq=False)
class WindowLoops:
    """Fills the helper; dimensions are memory dimensions of the source."""

    b: TensorBuilder
    p: dict[str, Local]
    kind: str
    element: Type
    rank: int

    def run(self) -> None:
        """Write the loops."""
        b, p = self.b, self.p
        last = self.rank - 1
        steps = [b.mul(p[f"s{k}"], p[f"f{k}"], "step") for k in range(last)]
        walks = [
            Walk(p["to"], self.element, [p[f"t{k}"] for k in range(last)], "to"),
            Walk(p["from"], self.element, steps, "from"),
        ]
        with each_index(b, [p[f"e{k}"] for k in range(last)], walks) as (to, source):
            is_thin = b.icmp("eq", p[f"w{last}"], 1, "is.thin")
            is_next = b.icmp("eq", p[f"s{last}"], 1, "is.next")
            is_dense = b.icmp("eq", p[f"t{last}"], 1, "is.dense")
            across = b.binary("and", is_thin, b.binary("and", is_next, is_dense))
            full = b.select(across, b.binary("and", p[f"e{last}"], i64(-self._lanes)), i64(0), "full")
            with b.loop(0, full, self._lanes, name="j") as loop:
                start = b.gep(self.element, source, loop.index, "from")
                result = self._window(0, self._neutral(self._lanes), lambda at, acc: self._whole(start, at, acc))
                self._put(result, b.gep(self.element, to, loop.index, "to"))
            with b.loop(full, p[f"e{last}"], name="j") as loop:
                start = b.gep(self.element, source, b.mul(loop.index, p[f"s{last}"], "offset"), "from")
                result = self._along(start)
                self._put(result, b.gep(self.element, to, b.mul(loop.index, p[f"t{last}"], "offset"), "to"))

    @property
    def _lanes(self) -> int:
        return _VECTOR_BITS // max(8, bits_of(self._working))

    @property
    def _working(self) -> Type:
        """The type of the accumulator."""
        is_narrow = isinstance(self.element, FloatType) and bits_of(self.element) < 32
        return FLOAT if is_narrow else self.element

    # Windows ---------------------------------------------------------------------------------------------------

    def _window(self, k: int, acc: Value, visit: Callable[[Value, Value], Value], offset: Value | None = None) -> Value:
        """Loops over all dimensions of the window but the last; `visit` takes a row's offset and the accumulator."""
        offset = offset if offset is not None else i64(0)
        if k == self.rank - 1:
            return visit(offset, acc)
        b = self.b
        with b.loop(0, self.p[f"w{k}"], carry=[acc], name="w") as loop:
            inner = b.add(offset, b.mul(loop.index, self.p[f"f{k}"], "offset"), "offset")
            loop.next(self._window(k + 1, loop.carried[0], visit, inner))
        return loop.results[0]

    def _whole(self, start: Value, offset: Value, acc: Value) -> Value:
        """Neighbouring columns of one row."""
        return self._joined(acc, self._get(self.b.gep(self.element, start, offset, "row"), self._lanes))

    def _along(self, start: Value) -> Value:
        """One window: vectors along its rows, then the remaining elements of the rows."""
        b = self.b
        width = self.p[f"w{self.rank - 1}"]
        full = b.binary("and", width, i64(-self._lanes), "full")

        def vectors(offset: Value, acc: Value) -> Value:
            row = b.gep(self.element, start, offset, "row")
            with b.loop(0, full, self._lanes, carry=[acc], name="v") as loop:
                loaded = self._get(b.gep(self.element, row, loop.index), self._lanes)
                loop.next(self._joined(loop.carried[0], loaded))
            return loop.results[0]

        def elements(offset: Value, acc: Value) -> Value:
            row = b.gep(self.element, start, offset, "row")
            with b.loop(full, width, carry=[acc], name="v") as loop:
                loop.next(self._joined(loop.carried[0], self._get(b.gep(self.element, row, loop.index), None)))
            return loop.results[0]

        wide = self._window(0, self._neutral(self._lanes), vectors)
        return self._window(0, self._folded(wide), elements)

    def _folded(self, value: Value) -> Value:
        """The lanes of a vector combined."""
        lanes = self._lanes
        while lanes > 1:
            lanes //= 2
            low = self.b.shuffle(value, None, range(lanes))
            high = self.b.shuffle(value, None, range(lanes, 2 * lanes))
            value = self._joined(low, high)
        return self.b.extract_element(value, 0, "reduced")

    # Elements --------------------------------------------------------------------------------------------------

    def _get(self, pointer: Value, lanes: int | None) -> Value:
        stored = VectorType(lanes, self.element) if lanes else self.element
        working = VectorType(lanes, self._working) if lanes else self._working
        return self.b.cast("fpext", self.b.load(stored, pointer, bytes_of(self.element), "x"), working)

    def _put(self, value: Value, pointer: Value) -> None:
        type_ = VectorType(value.type.count, self.element) if isinstance(value.type, VectorType) else self.element
        self.b.store(self.b.cast("fptrunc", value, type_), pointer, bytes_of(self.element))

    def _joined(self, a: Value, b: Value) -> Value:
        return emit_portable_combine(self.b, self.kind, a, b)

    def _neutral(self, lanes: int) -> Value:
        return self.b.splat(combine_identity(self.kind, self._working), lanes, "none")
