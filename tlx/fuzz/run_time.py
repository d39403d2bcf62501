"""The form of functions whose extents, padding and pitches are known only when the program runs.

    %n1 = load i32, ptr %b0                                     ; 33
    %n2 = insertelement <2 x i32> undef, i32 %n1, i32 0
    %n3 = load i32, ptr %b1                                     ; 64
    %n4 = insertelement <2 x i32> %n2, i32 %n3, i32 1
    %t5 = call token @llvm.tensor.load(ptr elementtype(float) %b2, <2 x i32> %n4, <2 x i32> <i32 0, i32 1>, ...)
    %r6 = call <vscale x 1 x float> @llvm.tensor.matmul(token %t5, ...)

Each is one of the other forms, written so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tlx.fuzz.arrays import Buffer, Contents
from tlx.fuzz.choices import Choices
from tlx.fuzz.model import Place
from tlx.fuzz.overlaps import Overlaps
from tlx.fuzz.profiles import Profile
from tlx.fuzz.writer import Token, Vector
from tlx.ir.types import I32, Type
from tlx.types import TensorType

_FORMS: Final = ("product", "elements", "product", "update", "chain", "sums", "batch", "transpose", "copy", "elements")


class RunTime(Overlaps):
    """Makes functions of tensors of unknown size."""

    def __init__(self, profile: Profile, choose: Choices, name: str, *, typed: bool, suffixes: bool) -> None:
        super().__init__(profile, choose, name, typed=typed, suffixes=suffixes)
        self._is_run_time = False
        self._sizes: dict[int, Buffer] = {}

    def run_time(self) -> None:
        """Another form with sizes that are read from memory; with those it knows where pointers have types."""
        self._is_run_time = not self.typed
        getattr(self, self.random.choice(_FORMS))()

    # Spelling ----------------------------------------------------------------------------------------------------

    def vector_type(self, type_: TensorType) -> str:
        """A handle, where sizes are read."""
        return f"<vscale x 1 x {type_.element}>" if self._is_run_time else super().vector_type(type_)

    def numbers(self, numbers: Sequence[int], *, is_shape: bool = False) -> str:
        """A vector of numbers; extents are read from memory, and so is some of what else there is."""
        read = [self._is_run_time and (is_shape or self.chance(0.5)) for _ in numbers]
        if not any(read):
            return super().numbers(numbers)
        known = ", ".join(f"i32 {'undef' if one else n}" for n, one in zip(numbers, read, strict=True))
        vector, type_ = f"<{known}>", f"<{len(numbers)} x i32>"
        for at, number in enumerate(numbers):
            if read[at]:
                scalar, made = self._read(number), self.fresh("n")
                self.line(f"{made} = insertelement {type_} {vector}, i32 {scalar}, i32 {at}")
                vector = made
        return f"{type_} {vector}"

    def extents_or_order(self, name: str, at: int, numbers: Sequence[int]) -> str:
        """Windows and shapes are read, layouts and dimensions are not."""
        if at == 0 and (name.startswith("reduce.") or name == "broadcast"):
            return self.numbers(numbers, is_shape=True)
        return super().extents_or_order(name, at, numbers)

    def _read(self, number: int) -> str:
        """A scalar of which nobody knows the value."""
        buffer = self._sizes.get(number)
        if buffer is None:
            buffer = self._sizes[number] = self.buffer(I32, 1, Contents(number, number))
            buffer.data[:] = True
        name = self.fresh("n")
        self.line(f"{name} = load i32, {self._pointer_type(I32)} %{buffer.name}, align 4")
        return name

    # What handles cannot do --------------------------------------------------------------------------------------

    def reshaped(self, type_: TensorType, *, padded: bool = False) -> TensorType:
        """Another type for the same flattened vector; a handle keeps its own."""
        return type_ if self._is_run_time else super().reshaped(type_, padded=padded)

    def load_vector(self, place: Place, type_: TensorType) -> Vector:
        """A plain load, or that of a tensor as a handle."""
        if not self._is_run_time:
            return super().load_vector(place, type_)
        return self.operation("tovector", [self.load(place, type_, [0] * type_.rank)], type_)

    def store_vector(self, place: Place, vector: Vector) -> None:
        """A plain store, or that of the tensor that a handle is."""
        if not self._is_run_time:
            super().store_vector(place, vector)
            return
        self.store(place, self.typeinfo(vector, vector.type), [0] * vector.type.rank)

    def zeros(self, type_: TensorType) -> Vector:
        """Zeros; there is no constant of unknown length."""
        return self._vector(type_) if self._is_run_time else super().zeros(type_)

    def _sum_type(self, extents: tuple[int, int], element: Type) -> TensorType:
        if self._is_run_time:
            return TensorType.dense(element, extents)
        return super()._sum_type(extents, element)

    def _result(self, name: str, tokens: Sequence[Token], element: Type) -> TensorType:
        found = super()._result(name, tokens, element)
        return TensorType.dense(element, found.extents) if self._is_run_time else found
