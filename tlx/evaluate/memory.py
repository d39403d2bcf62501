"""The evaluator's memory: regions with bounds, and how values of each type are laid out in them."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Final

from tlx.diagnostics import EvaluationError
from tlx.ir.types import (
    ArrayType,
    FloatType,
    IntType,
    NamedType,
    PointerType,
    SimpleType,
    StructType,
    Type,
    VectorType,
    next_power_of_two,
)

POINTER_BYTES = 8
UNDEFINED = 0xFF
"""The default byte of undefined values; a float of such bytes is NaN."""


def round_up(number: int, step: int) -> int:
    """The next multiple of `step`."""
    return -(-number // step) * step


class Layout:
    """Sizes, alignments and field offsets of types.

    Args:
        named: Bodies of the module's `%name = type ...`.
        wide_alignment: Alignment of integers above 64 bits: 16 since LLVM 18, 8 before.
        undefined: Each byte of undefined values: 255 or 0.
        registers: Returns the shapes of the targets' register types, by name; called when a program first uses one.
        is_big_endian: Whether the first lane of a vector has the most significant bits of an integer of its size.
    """

    def __init__(
        self,
        named: Mapping[str, Type] | None = None,
        wide_alignment: int = 16,
        undefined: int = UNDEFINED,
        registers: Callable[[], Mapping[str, tuple[int, ...]]] = dict,
        *,
        is_big_endian: bool = False,
    ) -> None:
        self.named = named or {}
        self.wide_alignment = wide_alignment
        self.undefined = undefined
        self.is_big_endian = is_big_endian
        self._registers = registers
        self._sizes: dict[Type, int] = {}

    def resolve(self, type_: Type) -> Type:
        """The body of a named type, any other type itself.

        Raises:
            EvaluationError: The module does not define the named type.
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

    def register_shape(self, type_: Type) -> tuple[int, ...] | None:
        """Shape of the array of bytes that represents a target's register type; None for all other types."""
        return self._registers().get(type_.word) if isinstance(type_, SimpleType) else None

    def store_size(self, type_: Type) -> int:
        """Number of bytes that a load or store of the type accesses."""
        type_ = self.resolve(type_)
        if isinstance(type_, (StructType, ArrayType)):
            return self.size(type_)
        if (shape := self.register_shape(type_)) is not None:
            return prod(shape)
        return (self.bits(type_) + 7) // 8

    def size(self, type_: Type) -> int:
        """Number of bytes from one element of the type to the next in an array."""
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
        return next_power_of_two(self.store_size(type_))

    def fields(self, type_: StructType) -> tuple[tuple[int, ...], int]:
        """Offset of each field of a struct, and the size of the struct."""
        offsets: list[int] = []
        position = 0
        for element in type_.elements:
            position = round_up(position, 1 if type_.packed else self.align(element))
            offsets.append(position)
            position += self.size(element)
        return tuple(offsets), round_up(position, self.align(type_))


_FIRST: Final = 1 << 32
_GAP: Final = 1 << 20
_MAX_DEAD_REGIONS: Final = 4096


@dataclass(eq=False, slots=True)
class MemoryRegion:
    """A piece of memory.

    Attributes:
        base: Its address.
        end: Address after its last byte; `base - 1` once the region is dead, so that no access fits.
        data: Its bytes.
        label: Its name in errors.
        size: Its size in bytes.
        writable: Whether it may be written.
        death: Why it is no longer valid; empty while it is.
        owner: Keeps the memory of `data` alive.
    """

    base: int
    end: int
    data: memoryview
    label: str
    size: int
    writable: bool = True
    death: str = ""
    owner: object = None

    def kill(self, why: str) -> None:
        """Make every later access an error."""
        self.end = self.base - 1
        self.death = why

    def revive(self, undefined: int) -> None:
        """Make it valid again, with undefined bytes (`llvm.lifetime.start`)."""
        self.end = self.base + self.size
        self.death = ""
        self.data[:] = bytes([undefined]) * self.size


class AddressSpace:
    """All regions of a machine.

    Attributes:
        last: The region that was looked up last; callers try it first.
        undefined: The value of uninitialised bytes.
    """

    def __init__(self, undefined: int = UNDEFINED) -> None:
        self.undefined = undefined
        self._next = _FIRST
        self._bases: list[int] = []
        self._regions: list[MemoryRegion] = []
        self._dead = 0
        self.last = MemoryRegion(0, -1, memoryview(b""), "nothing", 0)

    def add(
        self,
        data: memoryview,
        label: str,
        align: int = 16,
        *,
        writable: bool = True,
        owner: object = None,
        skew: int = 0,
    ) -> MemoryRegion:
        """Give bytes an address: a multiple of `align` but not of `2 * align`, plus `skew`."""
        base = round_up(self._next, 2 * align) + align + skew
        size = len(data)
        region = MemoryRegion(base, base + size, data, label, size, writable, owner=owner)
        self._next = base + size + _GAP
        self._bases.append(base)
        self._regions.append(region)
        return region

    def allocate(self, size: int, label: str, align: int = 16) -> MemoryRegion:
        """A new region of undefined bytes.

        Raises:
            EvaluationError: The size is too large.
        """
        if size > 1 << 40:
            raise EvaluationError(f"{label} of {size} bytes is too large")
        return self.add(memoryview(bytearray([self.undefined]) * size), label, align)

    def release(self, region: MemoryRegion, why: str) -> None:
        """Make a region invalid and free its memory."""
        region.kill(why)
        region.owner = None
        region.data = memoryview(b"")
        self._dead += 1
        if self._dead > _MAX_DEAD_REGIONS:
            self._forget()

    def _forget(self) -> None:
        """Drop dead regions; accesses to them are still errors, but their messages say less."""
        self._regions = [r for r in self._regions if not r.death or r.data.nbytes]
        self._bases = [r.base for r in self._regions]
        self._dead = 0

    def nearest(self, address: int) -> MemoryRegion | None:
        """The last region that begins at or below an address."""
        index = bisect.bisect_right(self._bases, address) - 1
        return self._regions[index] if index >= 0 else None

    def region(self, address: int, size: int, access: str) -> MemoryRegion:
        """The region that holds `size` bytes at `address`.

        Args:
            address: Address of the first byte.
            size: Number of bytes.
            access: What is done to them, for the message: `load of 4 bytes`.

        Raises:
            EvaluationError: No living region holds them all.
        """
        region = self.last
        if region.base <= address and address + size <= region.end:
            return region
        region = self.nearest(address)
        if region is None or address + size > region.end:
            raise EvaluationError(self._complaint(address, size, access, region))
        self.last = region
        return region

    def _complaint(self, address: int, size: int, access: str, region: MemoryRegion | None) -> str:
        if address < 4096:
            where = "a null pointer" if address == 0 else f"address {address}: an offset from a null pointer"
            return f"{access} through {where}"
        start = f"{access} at {address:#x}"
        index = bisect.bisect_right(self._bases, address)
        if index < len(self._bases) and address + _GAP >= self._bases[index] > address:
            after = self._regions[index]
            return f"{start} begins {after.base - address} bytes before {after.label}, which has {after.size} bytes"
        if region is None or address > region.base + region.size + _GAP:
            return f"{start} is outside all memory"
        if region.death:
            return f"{start} is in {region.label}, which {region.death}"
        offset = address - region.base
        return f"{start} covers bytes {offset} to {offset + size - 1} of {region.label}, which has {region.size} bytes"

    def read(self, address: int, size: int, access: str = "read") -> bytes:
        """Copy bytes out."""
        if size == 0:
            return b""
        region = self.region(address, size, f"{access} of {size} bytes")
        at = address - region.base
        return bytes(region.data[at : at + size])

    def writable(self, address: int, size: int, access: str) -> MemoryRegion:
        """The region of an access that writes.

        Raises:
            EvaluationError: As `region`, or the memory is constant.
        """
        region = self.region(address, size, access)
        if not region.writable:
            raise EvaluationError(f"{access} at {address:#x} is in {region.label}, which is constant")
        return region

    def write(self, address: int, data: bytes, access: str = "write") -> None:
        """Copy bytes in."""
        if not data:
            return
        region = self.writable(address, len(data), f"{access} of {len(data)} bytes")
        at = address - region.base
        region.data[at : at + len(data)] = data


AddressCheck = Callable[[int], None]


def alignment_check(align: int | None, access: str) -> AddressCheck | None:
    """A function that raises an error if an address lacks the alignment that an access promises; None if any fits."""
    if align is None or align <= 1:
        return None
    mask = align - 1

    def check(address: int) -> None:
        if address & mask:
            raise EvaluationError(
                f"{access} at {address:#x} says align {align}, but the address is not a multiple of it"
            )

    return check
