"""The functions that hold kernels: their names, parameters, tile ranges and working memory.

A kernel computes all of its tiles, or the range that its last parameters delimit:

define internal void @K.part(args, i64 %row, i64 %row.end, i64 %column, i64 %column.end)

A kernel that packs B may also be passed the memory for its panels, and whether an earlier call has packed them there:

define internal void @K.part(args, i64 %row, i64 %row.end, i64 %column, i64 %column.end, ptr %memory, i64 %packed)

Packed panels, partial results and other buffers of a kernel share one block of working memory, its `Scratch`.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from tlx.ir.builder import Builder, as_value, new_function, partition
from tlx.ir.functions import Function
from tlx.ir.module import Module
from tlx.ir.types import I8, I16, I64, VOID, ArrayType, FunctionType, PointerType, Type, VectorType, bytes_of
from tlx.ir.values import Global, Keyword, Value, const_int
from tlx.lower.context import STAGE_ATTRIBUTE, TARGET_ATTRIBUTE
from tlx.lower.memory.allocation import (
    CACHE_LINE,
    buffer_metadata,
    emit_allocation,
    emit_release,
    frame_metadata,
    trap_if_null,
)
from tlx.lower.to_tiles.expression import Expression, scalar_parameter_type
from tlx.lower.to_tiles.select.recipe import EqualTiles
from tlx.target.target import Target


def new_kernel(
    module: Module,
    target: Target,
    stem: str,
    parameters: Sequence[tuple[str, Type, str]],
    scalars: Sequence[tuple[str, Type]] = (),
    *,
    parts: bool = False,
    caches_panels: bool = False,
) -> Function:
    """An internal function on pointers, to hold tile code.

    Args:
        module: Where it is added.
        target: The machine it is for, whose features it carries.
        stem: Its name, to which a suffix may be added.
        parameters: Name, element type and attributes of each pointer parameter.
        scalars: Name and type of each scalar parameter, after the pointers.
        parts: Whether it computes a range of its tiles, whose bounds are its last parameters.
        caches_panels: Whether further parameters describe a cache of packed panels of B across calls.
    """
    version = f".{target.name}" if target.level else ""
    name = module.global_names.fresh(f"{stem}{version}{PART_SUFFIX if parts else ''}")
    spelled = [(module.pointer_to(element), attributes, parameter) for parameter, element, attributes in parameters]
    own = tile_range_parameters(module, caches_panels=caches_panels) if parts else ()
    spelled += [(type_, "", parameter) for parameter, type_ in (*scalars, *own)]
    features = f' "target-features"="{",".join(target.features)}"' if target.features else ""
    features += f' "{TARGET_ATTRIBUTE}"="{target.name}"' if target.level else ""
    return new_function(module, name, spelled, f'nounwind noinline "{STAGE_ATTRIBUTE}"="tiles"{features}')


def expression_parameters(value: Expression) -> tuple[list[tuple[str, Type, str]], list[tuple[str, Type]]]:
    """Parameters of a kernel for the leaves and for the scalars of an expression."""
    leaves, scalars = value.parameters()
    pointers = [(f"x{number}", element, "") for number, element in leaves.items()]
    return pointers, [(f"s{number}", scalar_parameter_type(element)) for number, element in scalars.items()]


def kernel_scalar(b: Builder, scalar: Value) -> Value:
    """A scalar in the type that kernels take."""
    if scalar_parameter_type(scalar.type) == scalar.type:
        return scalar
    one = VectorType(1, scalar.type)
    vector = b.insert_element(Keyword(one, "undef"), scalar, 0)
    return b.extract_element(b.cast("bitcast", vector, VectorType(1, I16)), 0)


def call_function(b: Builder, callee: Function, args: Sequence[Value]) -> None:
    """Call a function of the module that returns nothing; pointers become those in its parameters' address spaces."""
    args = [_in_space_of(b, p.type, a) for p, a in zip(callee.arguments, args, strict=True)]
    type_ = FunctionType(VOID, tuple(a.type for a in args))
    b.call(Global(b.module.pointer_to(type_), callee.name), type_, args)


def _in_space_of(b: Builder, to: Type, value: Value) -> Value:
    type_ = value.type
    if isinstance(type_, PointerType) and isinstance(to, PointerType) and type_.addrspace != to.addrspace:
        return b.cast("addrspacecast", value, PointerType(type_.pointee, to.addrspace))
    return value


PART_SUFFIX: Final = ".part"
BOUND_PARAMETERS: Final[list[tuple[str, Type]]] = [(name, I64) for name in ("row", "row.end", "column", "column.end")]
"""Parameters of a kernel that computes a part of the tiles."""
PANEL_CACHE_PARAMETERS: Final = ("memory", "packed")
"""The parameters that follow if panels are cached across calls."""


@dataclass(frozen=True, slots=True)
class AxisBounds:
    """Which tiles of an axis a call computes: all, or the half-open range from `first` to `end`."""

    first: Value | None = None
    end: Value | None = None

    def of(self, b: Builder, ranges: Sequence[EqualTiles], range_: EqualTiles) -> tuple[int | Value, int | Value]:
        """Bounds of a loop over the tiles in one of the ranges that an axis is cut into."""
        if self.first is None or self.end is None:
            return 0, range_.count
        if len(ranges) == 1:
            return self.first, self.end
        before = sum(r.count for r in ranges if r.start < range_.start)
        first, end = (_clamped(b, b.sub(place, before), range_.count) for place in (self.first, self.end))
        return first, end


@dataclass(frozen=True, slots=True)
class CachedPanels:
    """The memory of panels that stay from one call to the next, and whether (i64) an earlier call packed them."""

    memory: Value
    packed: Value


@dataclass(frozen=True, slots=True)
class TileRange:
    """Which tiles a call to a kernel computes, and the cached panels that it is passed, if any."""

    rows: AxisBounds = AxisBounds()
    columns: AxisBounds = AxisBounds()
    cached_panels: CachedPanels | None = None


ALL_TILES: Final = TileRange()


def arguments_and_tile_range(function: Function) -> tuple[list[Value], TileRange]:
    """A kernel's arguments without the bounds of its tile range, and the tile range."""
    values: list[Value] = [argument.value for argument in function.arguments]
    names, cached = [argument.name for argument in function.arguments], None
    if tuple(names[-len(PANEL_CACHE_PARAMETERS) :]) == PANEL_CACHE_PARAMETERS:
        *values, memory, packed = values
        names, cached = names[: -len(PANEL_CACHE_PARAMETERS)], CachedPanels(memory, packed)
    if names[-len(BOUND_PARAMETERS) :] != [name for name, _ in BOUND_PARAMETERS]:
        return values, ALL_TILES
    *values, row, row_end, column, column_end = values
    return values, TileRange(AxisBounds(row, row_end), AxisBounds(column, column_end), cached)


def tile_range_parameters(module: Module, *, caches_panels: bool) -> list[tuple[str, Type]]:
    """Name and type of the parameters that delimit a kernel's tile range."""
    memory, packed = PANEL_CACHE_PARAMETERS
    return [*BOUND_PARAMETERS, (memory, module.pointer_to(I8)), (packed, I64)] if caches_panels else BOUND_PARAMETERS


@contextmanager
def loop_over_blocks(
    b: Builder, bounds: tuple[int | Value, int | Value], most: int, name: str
) -> Generator[tuple[Value, Value]]:
    """A loop over blocks of up to `most` adjacent tiles; yields a block's first tile and its number of tiles.

    In a range known only at run time, blocks differ in size by at most one tile: 57 tiles by at most 14 are 11, 11, 12,
    11, 12 rather than 14, 14, 14, 14, 1, whose last block would read all of the other operand for a single tile.
    """
    first, end = bounds
    if isinstance(first, int) or most == 1:
        with b.loop(first, end, most, name=name) as loop:
            is_whole = most == 1 or (isinstance(first, int) and isinstance(end, int) and (end - first) % most == 0)
            left = const_int(I64, most) if is_whole else b.umin(b.sub(as_value(end, I64), loop.index), most)
            yield loop.index, left
        return
    total = b.sub(as_value(end, I64), first)
    count = b.binary("sdiv", b.add(total, most - 1), const_int(I64, most))
    with b.loop(0, count, name=name) as loop:
        start, stop = partition(b, total, loop.index, count)
        yield b.add(first, start), b.sub(stop, start)


def _clamped(b: Builder, value: Value, most: int) -> Value:
    """A signed number clamped to the range from 0 to `most`."""
    limit, zero = const_int(I64, most), const_int(I64, 0)
    below = b.select(b.icmp("slt", value, limit), value, limit)
    return b.select(b.icmp("sgt", below, zero), below, zero)


STACK_LIMIT: Final = 32 << 10
"""Bytes up to which working memory is on the stack."""


@dataclass(eq=False, slots=True)
class ScratchBuffer:
    """Memory of a kernel.

    Attributes:
        address: Its first element; None until the scratch memory that it is part of is allocated.
    """

    address: Value | None = None

    @property
    def pointer(self) -> Value:
        """Its first element."""
        assert self.address is not None
        return self.address


@dataclass(eq=False)
class Scratch:
    """Working memory of a kernel: one 64-byte aligned block for all its buffers.

    `reserve` adds a buffer, `allocate` makes the block, and `release` frees it.

    Attributes:
        size: Bytes reserved so far.
        joins: Whether the memory planner may have callers provide heap memory; otherwise each call allocates it.
        provided: Memory of the caller to use instead: aligned, with at least `size` bytes.
    """

    size: int = 0
    joins: bool = True
    provided: Value | None = None
    _buffers: list[tuple[ScratchBuffer, int, Type]] = field(default_factory=list[tuple[ScratchBuffer, int, Type]])
    _block: Value | None = None

    def reserve(self, element: Type, count: int) -> ScratchBuffer:
        """Reserve a buffer of `count` elements, which has an address once memory is allocated."""
        buffer = ScratchBuffer()
        self._buffers.append((buffer, self.size, element))
        self.size += -(-count * bytes_of(element) // CACHE_LINE) * CACHE_LINE
        return buffer

    def allocate(self, b: Builder) -> None:
        """Allocate all reserved buffers."""
        if not self._buffers:
            return
        if self.provided is not None:
            base = self.provided
        elif self.size <= STACK_LIMIT:
            base: Value = b.retype(b.alloca(ArrayType(self.size, I8), "scratch", CACHE_LINE), I8)
        else:
            mark = buffer_metadata() if self.joins else frame_metadata()
            self._block = emit_allocation(b, const_int(I64, self.size + CACHE_LINE), "scratch.heap", mark)
            trap_if_null(b, [self._block])
            base = b.align_up(self._block, CACHE_LINE)
        for buffer, offset, element in self._buffers:
            buffer.address = b.retype(b.gep(I8, base, offset), element)

    def release(self, b: Builder) -> None:
        """Free heap memory."""
        if self._block is not None:
            emit_release(b, self._block, "" if self.joins else frame_metadata())
