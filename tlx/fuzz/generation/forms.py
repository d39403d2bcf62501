"""Forms of functions with a numpy model: products, sums in loops, data movement, overlapping arrays, run-time sizes.

Overlapping arrays: operands and results may share memory, through two pointers into one array.

    define void @f0.0(ptr %p, ptr %q, ptr %b1) {        ; %p and %q may alias
      ... loads from %p, stores to %q ...
    }
    define void @f0(ptr %b0, ptr %b1) {
      %p = getelementptr float, ptr %b0, i64 2
      %q = getelementptr float, ptr %b0, i64 7
      call void @f0.0(ptr %p, ptr %q, ptr %b1)

or, in a single function, an offset that is read from memory. The parts are disjoint, adjacent, overlapping or equal:
the lowered program has to check at run time.

Run-time sizes: extents, padding and pitches are known only at run time.

    %n1 = load i32, ptr %b0                                     ; 33
    %n2 = insertelement <2 x i32> undef, i32 %n1, i32 0
    %n3 = load i32, ptr %b1                                     ; 64
    %n4 = insertelement <2 x i32> %n2, i32 %n3, i32 1
    %t5 = call token @llvm.tensor.load(ptr elementtype(float) %b2, <2 x i32> %n4, <2 x i32> <i32 0, i32 1>, ...)
    %r6 = call <vscale x 1 x float> @llvm.tensor.matmul(token %t5, ...)

Each function of run-time sizes has one of the other forms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from tlx.fuzz.generation.model import ArrayParameter, BufferAddress, Choices, InitialContents, extent_in_memory
from tlx.fuzz.generation.profiles import Profile
from tlx.fuzz.generation.sources import Sources
from tlx.fuzz.generation.writer import TokenValue, Vector
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.types import BFLOAT, HALF, I32, I64, Type, VectorType


class FormWriter(Sources):
    """Writes one function; the public methods are the forms."""

    def product(self) -> None:
        """A product of operands from any source, and operations on its result."""
        lhs, rhs, element = self._family()
        batch, m, n, k = self.product_extents()
        if not batch and self.chance(0.5):
            self._put(self._mma(self._kind(element), (m, n, k), (lhs, rhs, element)))
            return
        a = self._token((*batch, m, k), lhs, bare=lhs == rhs == element)
        b = self._token((*batch, k, n), rhs, bare=lhs == rhs)
        self._put(self.operation("matmul", [a, b], self._result("matmul", (a, b), element)))

    def update(self) -> None:
        """`C += A @ B`, in place."""
        lhs, rhs, element = self._family()
        _, m, n, k = self.product_extents(batched=False)
        type_ = self.type_of((m, n), element, row_major=self.chance(0.8))
        pitches = self.pitches(type_, overlap=False)
        place = self.place(type_, pitches)
        acc = self.load(place, type_, pitches)
        vector = self._mma(self._kind(element), (m, n, k), (lhs, rhs, element), acc)
        token = self.typeinfo(vector, vector.type)
        if type_.is_row_major:
            self.store(place, token, (0, pitches[1] or type_.shape[1]))
        else:
            self._put_token(token)

    def chain(self) -> None:
        """Products, each of which takes the result of the previous one."""
        lhs, rhs, element = self._family()
        batch, m, n, k = self.product_extents()
        a = self._token((*batch, m, k), lhs)
        b = self._token((*batch, k, n), rhs)
        middle = self.operation("matmul", [a, b], self._result("matmul", (a, b), element))
        if self.chance(0.3):
            self._put(middle)
        wide = self._wider(element)
        token = self.typeinfo(middle, middle.type)
        width = self.limited(math.prod(batch) * m * n)
        if not batch and self.chance(0.4):
            other = self._token((width, m), element)
            last = self.operation("matmul", [other, token], self._result("matmul", (other, token), wide))
        else:
            other = self._token((*batch, n, width), element)
            last = self.operation("matmul", [token, other], self._result("matmul", (token, other), wide))
        self._put(last)

    def sums(self) -> None:
        """A sum of products in a loop: the phi is a flattened vector, its typeinfo is in the body."""
        lhs, rhs, element = self._family()
        _, m, n, k = self.product_extents(batched=False)
        rounds = self.random.randint(1, 4)
        type_ = self._sum_type((m, n), element)
        carried = self.carry(self._start(type_))
        kind = self._kind(element)
        after: TokenValue | None = None
        with self.loop(rounds, [carried]):
            acc = self.typeinfo(carried.phi, type_)
            a = self._blocks((m, k), lhs, rounds, padded=not type_.is_padded)
            b = self._blocks((k, n), rhs, rounds, padded=not type_.is_padded)
            result = self.operation(kind, [acc, a, b], type_)
            carried.following.append(result)
            if self.chance(0.5):
                after = self.typeinfo(result, type_)
        if after is not None:
            self._put_token(after)
        if after is None or self.chance(0.2):
            self._put(result)

    def _sum_type(self, extents: tuple[int, int], element: Type) -> TensorType:
        """The type of a sum, which may have padding."""
        if self.chance(0.3):
            return self.type_of(extents, element, row_major=True)
        return TensorType.dense(element, extents)

    def batch(self) -> None:
        """A loop of products on parts of arrays."""
        lhs, rhs, element = self._family()
        _, m, n, k = self.product_extents(batched=False)
        rounds = self.random.randint(1, 3)
        with self.loop(rounds):
            a = self._blocks((m, k), lhs, rounds)
            b = self._blocks((k, n), rhs, rounds)
            vector = self.operation("matmul", [a, b], self._result("matmul", (a, b), element))
            token = self.typeinfo(vector, vector.type)
            pitches = self.pitches(vector.type, overlap=False)
            size = extent_in_memory(vector.type, pitches)
            self.store(BufferAddress(self.buffer(element, size * rounds), 0, size), token, pitches)

    def transpose(self) -> None:
        """Transposes of a tensor of any rank."""
        element = self.random.choice(self.profile.families)[0]
        rank = self.random.choice([1, 2, 2, 3, 3, 4, 5])
        extents = self._some_extents(rank, self.profile.room // 4)
        token = self._token(extents, element, transposed=False)
        vector = self._reordered(token)
        if self.chance(0.3):
            vector = self._reordered(self.typeinfo(vector, vector.type))
        self._put(vector)

    def elements(self) -> None:
        """Elementwise operations and reductions of a tensor."""
        element = self.random.choice(self.profile.families)[0]
        extents = self._some_extents(self.random.choice([2, 2, 1, 3]), self.profile.room // 4)
        token = self._token(extents, element)
        vector = self.operation(self.random.choice(["relu", "tovector"]), [token], token.type)
        for _ in range(self.random.randint(1, 3)):
            vector = self._element_step(vector)
        self._put(vector)

    def _element_step(self, vector: Vector) -> Vector:
        kind = self.random.choice(["sum", "relu", "sum", "reduce", "broadcast"])
        if kind == "sum":
            return self.sum(vector, self._vector(vector.type))
        token = self.typeinfo(vector, vector.type)
        if kind == "reduce":
            return self._reduced(token)
        if kind == "broadcast" and vector.type.is_row_major and not vector.type.is_padded:
            return self.sum(vector, self._row(vector.type))
        return self.operation("relu", [token], token.type)

    def _reduced(self, token: TokenValue) -> Vector:
        """A reduction over some dimensions of a tensor; not a sum of narrow floats, which would be rounded."""
        extents, element = token.type.extents, token.type.element
        window = [extent if self.chance(0.5) else 1 for extent in extents]
        left = TensorType.dense(element, [e // w for e, w in zip(extents, window, strict=True)])
        name = self.random.choice(["max", "min"] if element in (HALF, BFLOAT) else ["add", "max", "min"])
        return self.operation(f"reduce.{name}", [token], left, [tuple(window), (1,) * len(extents)])

    def _row(self, type_: TensorType) -> Vector:
        """A row broadcast to all rows."""
        row = self._token(type_.shape[-1:], type_.element)
        return self.operation("broadcast", [row], type_, [type_.shape, (type_.rank - 1,)])

    def copy(self) -> None:
        """A copy from one array to another."""
        element = self.random.choice(self.profile.families)[0]
        extents = self._some_extents(self.random.choice([1, 2, 2, 3, 4]), self.profile.room // 4)
        token = self._token(extents, element, transposed=False)
        if self.chance(0.4):
            self._put(self.operation("tovector", [token], token.type))
        else:
            self._put_token(token)


_KINDS: Final = ("relu", "tovector", "product", "transpose", "update", "product")


class OverlapForms(FormWriter):
    """Writes functions that read and write one array through two pointers."""

    def overlaps(self) -> None:
        """Store a result computed from one part of an array in another part; sometimes store back to the first."""
        kind = self.random.choice(_KINDS)
        element = self.random.choice([lhs for lhs, rhs, to in self.profile.families if lhs == rhs == to])
        _, m, n, k = self.product_extents(batched=False)
        source = self.type_of((m, k), element)
        result = self._overlapping_result(kind, source, n)
        pitches = self.pitches(source, overlap=False), self.pitches(result, overlap=False)
        places = self._shared(source, result, pitches)
        is_separate = self.chance(0.6)
        if not is_separate:
            self._point(places)
        self._step(kind, (source, result), pitches, places)
        if kind != "product" and self.chance(0.4):
            self._back(source, result, pitches, places)
        if is_separate:
            self._call_body(places)

    def _overlapping_result(self, kind: str, source: TensorType, columns: int) -> TensorType:
        """The type of the result."""
        if kind in ("product", "update"):
            return TensorType.dense(source.element, (source.extents[0], columns))
        if kind == "transpose":
            return source.transposed(tuple(self.random.sample(range(2), 2)))
        return source

    def _shared(
        self, source: TensorType, result: TensorType, pitches: tuple[list[int], list[int]]
    ) -> tuple[BufferAddress, BufferAddress]:
        """The addresses of source and destination in a new array."""
        sizes = extent_in_memory(source, pitches[0]), extent_in_memory(result, pitches[1])
        source_is_last = self.chance(0.5)
        length = sizes[source_is_last]
        distance = self.random.choice([0, 1, 2, length // 2, length - 1, length, length + 3, source.shape[-1]])
        start = self.random.choice([0, 3])
        starts = (start + distance, start) if source_is_last else (start, start + distance)
        count = max(at + size for at, size in zip(starts, sizes, strict=True))
        buffer = self.buffer(source.element, count)
        buffer.data[:] = True
        first, second = (BufferAddress(buffer, at, pointer=name) for at, name in zip(starts, "pq", strict=True))
        return first, second

    def _step(
        self,
        kind: str,
        types: tuple[TensorType, TensorType],
        pitches: tuple[list[int], list[int]],
        places: tuple[BufferAddress, BufferAddress],
    ) -> None:
        """Read the source, compute, write the result."""
        source, result = types
        token = self.load(places[0], source, pitches[0])
        vector = self._computed(kind, token, result, places[1], pitches[1])
        self.store(places[1], self.typeinfo(vector, result), pitches[1])

    def _computed(
        self, kind: str, token: TokenValue, result: TensorType, target: BufferAddress, pitches: list[int]
    ) -> Vector:
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
        self,
        source: TensorType,
        result: TensorType,
        pitches: tuple[list[int], list[int]],
        places: tuple[BufferAddress, BufferAddress],
    ) -> None:
        """Reload the result, possibly overwritten, and store it in place of the source."""
        token = self.load(places[1], result, pitches[1])
        vector = self.operation("relu", [token], result)
        if (
            extent_in_memory(result, [0] * result.rank) <= extent_in_memory(source, pitches[0])
            and result.shape == source.shape
        ):
            self.store(places[0], self.typeinfo(vector, source), pitches[0])

    # Pointers ----------------------------------------------------------------------------------------------------

    def _point(self, places: tuple[BufferAddress, BufferAddress]) -> None:
        """Define the pointers in this function, by offsets read from memory."""
        for place in places:
            offset = self.buffer(I64, 1, InitialContents(place.start, place.start))
            offset.data[:] = True
            name = self.fresh("o")
            self.line(f"{name} = load i64, {self._pointer_type(I64)} %{offset.name}, align 8")
            self._point_to(place, name)

    def _point_to(self, place: BufferAddress, offset: object) -> None:
        element, base = place.buffer.element, f"{self._pointer_type(place.buffer.element)} %{place.buffer.name}"
        self.line(f"%{place.pointer} = getelementptr {element}, {base}, i64 {offset}")

    def _call_body(self, places: tuple[BufferAddress, BufferAddress]) -> None:
        """Move what is written so far into a function that takes the pointers, and call it."""
        shared = places[0].buffer
        type_ = self._pointer_type(shared.element)
        at = self.buffers.index(shared)
        others = [*self.buffers[:at], *self.buffers[at + 1 :]]
        parameters = [f"{type_} %p", f"{type_} %q", *self._parameters[:at], *self._parameters[at + 1 :]]
        name = self.define("void", parameters, ["entry:", *(line.strip() for line in self._lines), "ret void"])
        self._lines.clear()
        for place in places:
            self._point_to(place, place.start)
        arguments = [f"{self._pointer_type(buffer.element)} %{buffer.name}" for buffer in others]
        self.line(f"call void @{name}({', '.join([f'{type_} %p', f'{type_} %q', *arguments])})")


_RUN_TIME_FORMS: Final = (
    "product",
    "elements",
    "product",
    "update",
    "chain",
    "sums",
    "batch",
    "transpose",
    "copy",
    "elements",
)


class RunTimeForms(OverlapForms):
    """Writes functions on tensors of sizes known only at run time.

    Attributes:
        is_run_time: Whether sizes are read at run time, so that flattened vectors are handles.
    """

    def __init__(self, profile: Profile, choose: Choices, name: str, *, typed: bool, suffixes: bool) -> None:
        super().__init__(profile, choose, name, typed=typed, suffixes=suffixes)
        self.is_run_time = False
        self._sizes: dict[int, ArrayParameter] = {}

    def run_time(self) -> None:
        """Another form with sizes read from memory; with typed pointers, sizes remain constant."""
        self.is_run_time = not self.typed
        getattr(self, self.random.choice(_RUN_TIME_FORMS))()

    # Spelling ----------------------------------------------------------------------------------------------------

    def vector_type(self, type_: TensorType) -> VectorType:
        """The type of a vector, which is a scalable handle if sizes are read at run time."""
        return VectorType(1, type_.element, scalable=True) if self.is_run_time else super().vector_type(type_)

    def numbers(self, numbers: Sequence[int], *, is_shape: bool = False) -> str:
        """A vector of numbers; extents are read from memory, other numbers sometimes."""
        read = [self.is_run_time and (is_shape or self.chance(0.5)) for _ in numbers]
        if not any(read):
            return super().numbers(numbers)
        known = ", ".join(f"i32 {'undef' if one else n}" for n, one in zip(numbers, read, strict=True))
        vector, type_ = f"<{known}>", f"<{len(numbers)} x i32>"
        for at, number in enumerate(numbers):
            if read[at]:
                scalar, inserted = self._read(number), self.fresh("n")
                self.line(f"{inserted} = insertelement {type_} {vector}, i32 {scalar}, i32 {at}")
                vector = inserted
        return f"{type_} {vector}"

    def extents_or_order(self, name: str, at: int, numbers: Sequence[int]) -> str:
        """Windows and shapes are read at run time, layouts and dimension numbers are constants."""
        if at == 0 and (name.startswith("reduce.") or name == "broadcast"):
            return self.numbers(numbers, is_shape=True)
        return super().extents_or_order(name, at, numbers)

    def _read(self, number: int) -> str:
        """A scalar loaded from memory."""
        buffer = self._sizes.get(number)
        if buffer is None:
            buffer = self._sizes[number] = self.buffer(I32, 1, InitialContents(number, number))
            buffer.data[:] = True
        name = self.fresh("n")
        self.line(f"{name} = load i32, {self._pointer_type(I32)} %{buffer.name}, align 4")
        return name

    # Restrictions of handles -------------------------------------------------------------------------------------

    def reshaped(self, type_: TensorType, *, padded: bool = False) -> TensorType:
        """Another type for the same flattened vector; a handle keeps its type."""
        return type_ if self.is_run_time else super().reshaped(type_, padded=padded)

    def load_vector(self, place: BufferAddress, type_: TensorType) -> Vector:
        """A plain load, or a tensor load for a handle."""
        if not self.is_run_time:
            return super().load_vector(place, type_)
        return self.operation("tovector", [self.load(place, type_, [0] * type_.rank)], type_)

    def store_vector(self, place: BufferAddress, vector: Vector) -> None:
        """A plain store, or a tensor store for a handle."""
        if not self.is_run_time:
            super().store_vector(place, vector)
            return
        self.store(place, self.typeinfo(vector, vector.type), [0] * vector.type.rank)

    def zeros(self, type_: TensorType) -> Vector:
        """Zeros; for a handle, of a load, as there is no constant of unknown length."""
        return self._vector(type_) if self.is_run_time else super().zeros(type_)

    def _sum_type(self, extents: tuple[int, int], element: Type) -> TensorType:
        if self.is_run_time:
            return TensorType.dense(element, extents)
        return super()._sum_type(extents, element)

    def _result(self, name: str, tokens: Sequence[TokenValue], element: Type) -> TensorType:
        type_ = super()._result(name, tokens, element)
        return TensorType.dense(element, type_.extents) if self.is_run_time else type_
