"""The form of functions whose operands and results may share memory: two pointers into one array.

    define void @f0.0(ptr %p, ptr %q, ptr %b1) {        ; nothing says how %p and %q lie to each other
      ... loads from %p, stores to %q ...
    }
    define void @f0(ptr %b0, ptr %b1) {
      %p = getelementptr float, ptr %b0, i64 2
      %q = getelementptr float, ptr %b0, i64 7
      call void @f0.0(ptr %p, ptr %q, ptr %b1)

or, in one function, an offset that is read from memory. They lie apart, next to each other, overlap, or are the same:
the lowered program has to find out when it runs.
"""

from __future__ import annotations

from typing import Final

from tlx.fuzz.arrays import Contents
from tlx.fuzz.forms import Forms
from tlx.fuzz.model import Place, reach
from tlx.fuzz.writer import Token, Vector
from tlx.ir.types import I64
from tlx.types import TensorType

_KINDS: Final = ("relu", "tovector", "product", "transpose", "update", "product")


class Overlaps(Forms):
    """Makes functions that read and write one array through two pointers."""

    def overlaps(self) -> None:
        """What is computed of one part of an array is stored to another part of it, once or there and back."""
        kind = self.random.choice(_KINDS)
        element = self.random.choice([lhs for lhs, rhs, to in self.profile.families if lhs == rhs == to])
        _, m, n, k = self.product_extents(batched=False)
        source = self.type_of((m, k), element)
        result = self._overlapping_result(kind, source, n)
        pitches = self.pitches(source, overlap=False), self.pitches(result, overlap=False)
        places = self._shared(source, result, pitches)
        is_apart = self.chance(0.6)
        if not is_apart:
            self._point(places)
        self._step(kind, (source, result), pitches, places)
        if kind != "product" and self.chance(0.4):
            self._back(source, result, pitches, places)
        if is_apart:
            self._call_body(places)

    def _overlapping_result(self, kind: str, source: TensorType, columns: int) -> TensorType:
        """The type of what becomes of the source."""
        if kind in ("product", "update"):
            return TensorType.dense(source.element, (source.extents[0], columns))
        if kind == "transpose":
            return source.transposed(tuple(self.random.sample(range(2), 2)))
        return source

    def _shared(
        self, source: TensorType, result: TensorType, pitches: tuple[list[int], list[int]]
    ) -> tuple[Place, Place]:
        """Two places in a new array: what is read, and what is written."""
        sizes = reach(source, pitches[0]), reach(result, pitches[1])
        is_behind = self.chance(0.5)
        length = sizes[is_behind]
        distance = self.random.choice([0, 1, 2, length // 2, length - 1, length, length + 3, source.shape[-1]])
        start = self.random.choice([0, 3])
        starts = (start + distance, start) if is_behind else (start, start + distance)
        count = max(at + size for at, size in zip(starts, sizes, strict=True))
        buffer = self.buffer(source.element, count)
        buffer.data[:] = True
        first, second = (Place(buffer, at, pointer=name) for at, name in zip(starts, "pq", strict=True))
        return first, second

    def _step(
        self,
        kind: str,
        types: tuple[TensorType, TensorType],
        pitches: tuple[list[int], list[int]],
        places: tuple[Place, Place],
    ) -> None:
        """Read the source, compute, write the result."""
        source, result = types
        token = self.load(places[0], source, pitches[0])
        vector = self._computed(kind, token, result, places[1], pitches[1])
        self.store(places[1], self.typeinfo(vector, result), pitches[1])

    def _computed(self, kind: str, token: Token, result: TensorType, target: Place, pitches: list[int]) -> Vector:
        if kind == "transpose":
            return self.operation("transpose", [token], result, [result.layout])
        if kind not in ("product", "update"):
            return self.operation(kind, [token], result)
        other = self._token((token.type.extents[1], result.extents[1]), token.type.element)
        if kind == "product":
            return self.operation("matmul", [token, other], result)
        acc = self.load(target, result, pitches)
        return self.operation(self._kind(result.element), [acc, token, other], result)

    def _back(
        self, source: TensorType, result: TensorType, pitches: tuple[list[int], list[int]], places: tuple[Place, Place]
    ) -> None:
        """Write the result, or what it was overwritten with, to the place of the source as well."""
        token = self.load(places[1], result, pitches[1])
        vector = self.operation("relu", [token], result)
        if reach(result, [0] * result.rank) <= reach(source, pitches[0]) and result.shape == source.shape:
            self.store(places[0], self.typeinfo(vector, source), pitches[0])

    # Pointers ----------------------------------------------------------------------------------------------------

    def _point(self, places: tuple[Place, Place]) -> None:
        """Set the pointers in this function, by offsets that are read from memory."""
        for place in places:
            offset = self.buffer(I64, 1, Contents(place.start, place.start))
            offset.data[:] = True
            name = self.fresh("o")
            self.line(f"{name} = load i64, {self._pointer_type(I64)} %{offset.name}, align 8")
            self._point_to(place, name)

    def _point_to(self, place: Place, offset: object) -> None:
        element, base = place.buffer.element, f"{self._pointer_type(place.buffer.element)} %{place.buffer.name}"
        self.line(f"%{place.pointer} = getelementptr {element}, {base}, i64 {offset}")

    def _call_body(self, places: tuple[Place, Place]) -> None:
        """Make what is written so far a function that takes the pointers, and call it."""
        shared = places[0].buffer
        type_ = self._pointer_type(shared.element)
        at = self.buffers.index(shared)
        others = [*self.buffers[:at], *self.buffers[at + 1 :]]
        parameters = [f"{type_} %p", f"{type_} %q", *self._parameters[:at], *self._parameters[at + 1 :]]
        name = self.define("void", parameters, ["entry:", *(line.strip() for line in self._lines), "ret void"])
        self._lines.clear()
        for place in places:
            self._point_to(place, place.start)
        given = [f"{self._pointer_type(buffer.element)} %{buffer.name}" for buffer in others]
        self.line(f"call void @{name}({', '.join([f'{type_} %p', f'{type_} %q', *given])})")
