"""Sizes, alignments and offsets of types in memory, by LLVM's data layout for x86-64."""

from __future__ import annotations

from collections.abc import Mapping

from tlx.diagnostics import EvaluationError
from tlx.ir.types import ArrayType, FloatType, IntType, NamedType, PointerType, SimpleType, StructType, Type, VectorType

POINTER_BYTES = 8
UNDEFINED = 0xFF
"""Each byte of what LLVM leaves undefined, unless something else is asked for; a float of such bytes is NaN."""


def round_up(number: int, step: int) -> int:
    """The next multiple of `step`."""
    return -(-number // step) * step


def power_of_two(number: int) -> int:
    """The next power of two."""
    return 1 << max(number - 1, 0).bit_length()


class Layout:
    """Where types lie in memory.

    Args:
        named: Bodies of the module's `%name = type ...`.
        wide_alignment: Alignment of integers above 64 bits: 16 since LLVM 18, 8 before.
        undefined: Each byte of what LLVM leaves undefined: 255 or 0.
    """

    def __init__(
        self, named: Mapping[str, Type] | None = None, wide_alignment: int = 16, undefined: int = UNDEFINED
    ) -> None:
        self.named = named or {}
        self.wide_alignment = wide_alignment
        self.undefined = undefined
        self._sizes: dict[Type, int] = {}

    def resolve(self, type_: Type) -> Type:
        """The body of a named type, any other type itself.

        Raises:
            EvaluationError: The module does not say what the named type is.
        """
        while isinstance(type_, NamedType):
            if type_.name not in self.named:
                raise EvaluationError(f"type {type_} is not defined in this module")
            type_ = self.named[type_.name]
        return type_

    def bits(self, type_: Type) -> int:
        """Width of a scalar or a fixed vector of them.

        Raises:
            EvaluationError: The type has no fixed width.
        """
        if isinstance(type_, (IntType, FloatType)):
            return type_.bits
        if isinstance(type_, PointerType):
            return 8 * POINTER_BYTES
        if isinstance(type_, VectorType) and not type_.scalable:
            return type_.count * self.bits(type_.element)
        raise EvaluationError(f"a value of type {type_} has no fixed width in memory")

    def store_size(self, type_: Type) -> int:
        """Bytes a load or store of the type touches."""
        type_ = self.resolve(type_)
        if isinstance(type_, (StructType, ArrayType)):
            return self.size(type_)
        if type_ == SimpleType("x86_amx"):
            return 1024
        return (self.bits(type_) + 7) // 8

    def size(self, type_: Type) -> int:
        """Distance between neighbours of the type in an array."""
        if type_ not in self._sizes:
            self._sizes[type_] = self._size(self.resolve(type_))
        return self._sizes[type_]

    def _size(self, type_: Type) -> int:
        if isinstance(type_, ArrayType):
            return type_.count * self.size(type_.element)
        if isinstance(type_, StructType):
            return self.fields(type_)[1]
        return round_up(self.store_size(type_), self.align(type_))

    def align(self, type_: Type) -> int:
        """Natural alignment in bytes."""
        type_ = self.resolve(type_)
        if isinstance(type_, ArrayType):
            return self.align(type_.element)
        if isinstance(type_, StructType):
            return 1 if type_.packed else max((self.align(e) for e in type_.elements), default=1)
        if isinstance(type_, IntType) and type_.bits > 64:
            return self.wide_alignment
        return power_of_two(self.store_size(type_))

    def fields(self, type_: StructType) -> tuple[tuple[int, ...], int]:
        """Offset of each field of a struct, and the size of the struct."""
        offsets: list[int] = []
        position = 0
        for element in type_.elements:
            position = round_up(position, 1 if type_.packed else self.align(element))
            offsets.append(position)
            position += self.size(element)
        return tuple(offsets), round_up(position, self.align(type_))
