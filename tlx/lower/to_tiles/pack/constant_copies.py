"""Copies of arguments that are constant over calls: the preparation makes them, in the prepared block of the argument.

Rewrite of a kernel that has been copied so that its filters are neighbours::

    %rhs.heap = malloc(...)                       %rhs.buf = %w.block + 64
    %rhs.buf = %rhs.heap + ...
    store %rhs.buf, transpose(load %w)      ->
    ... products that read %rhs.buf               ... products that read %rhs.buf

    @f.prepare:                                   store %w.prepared + 64, transpose(load %w)

A copy in loops is made with them, if their bounds are constant and they write to each element once::

    for i: store %rhs.buf + i * 24, transpose(load %w + i * 9)
                                            ->
    @f.prepare:                                   for i: store %w.prepared + 64 + i * 24, transpose(load %w + i * 9)

Nothing else may write to the buffer. A product that reads it can pack it as B: it is then at a constant distance from
the argument's block, as other constant operands are from the argument (see `prepare`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from tlx.ir.control_flow import FunctionLoops, Loop
from tlx.ir.instructions import Block, Instruction
from tlx.ir.rewrite import Use, definitions, underlying_object, uses
from tlx.ir.types import I64, bytes_of
from tlx.ir.values import ConstInt, Local, Value
from tlx.lower.memory.aliases import gep_offset, size_of
from tlx.lower.memory.allocation import is_buffer
from tlx.lower.to_tiles.expression import MatrixView
from tlx.lower.to_tiles.match.stores import Match
from tlx.lower.to_tiles.pack.prepare import ConstantPlace, CopyLoop, PreparedArguments
from tlx.lower.to_tiles.problem import Copy

_DERIVED: Final = ("getelementptr", "bitcast")
_HARMLESS = ("ptrtoint", "icmp")  # alignment, and checks for null
_LOAD = "llvm.tensor.load"


@dataclass(frozen=True, eq=False)
class ConstantCopy:
    """A copy that the preparation can make.

    Attributes:
        match: The copy.
        place: What it reads, in the first iteration of its loops.
        loops: The loops around it, outer ones first.
        allocation: The instruction that allocates the buffer that it fills, on the heap or on the stack.
        buffer: The instruction whose result is the first element of the buffer.
        size: Bytes of the buffer.
    """

    match: Match
    place: ConstantPlace
    loops: tuple[CopyLoop, ...]
    allocation: Instruction
    buffer: Instruction
    size: int


def find_constant_copies(
    prepared: PreparedArguments, loops: FunctionLoops, matches: Sequence[tuple[Match, Block]]
) -> Iterator[ConstantCopy]:
    """The copies of constant arguments to buffers to which nothing else writes.

    Args:
        prepared: The constant arguments.
        loops: The function's loops.
        matches: The function's trees, with the blocks of their stores.
    """
    candidates = [(m, b) for m, b in matches if isinstance(m.problem, Copy) and len(m.pointers) == 2 and not m.scalars]
    if not candidates:
        return
    defined, used = definitions(prepared.function), uses(prepared.function)
    for match, block in candidates:
        (to, view), (source, _) = match.pointers
        enclosing = _counted_loops(loops, block)
        if enclosing is None:
            continue
        indices = [str(loop.index.result) for loop in enclosing if loop.index is not None]
        read, written = (_affine_address(defined, pointer, indices) for pointer in (source, to))
        if read is None or written is None or written.offset:
            continue
        place = prepared.place(read.base)
        buffer = defined.get(written.base.name) if isinstance(written.base, Local) else None
        if place is None or buffer is None or not _is_buffer(defined, buffer):
            continue
        trips = [loop.trips for loop in enclosing]
        walks = tuple(CopyLoop(n, read.steps[i], written.steps[i]) for n, i in zip(trips, indices, strict=True))
        moving = tuple(walk for walk in walks if walk.source or walk.destination)
        if moving and not _is_injective(view, moving):
            continue
        allocation = underlying_object(buffer.value, defined, _DERIVED)
        assert isinstance(allocation, Local)
        size = _allocated_bytes(defined[allocation.name])
        if size is not None and _is_filled_by(used, allocation.name, match.store):
            place = replace(place, offset=place.offset + read.offset)
            yield ConstantCopy(match, place, moving, defined[allocation.name], buffer, size)


def _is_buffer(defined: Mapping[str, Instruction], address: Instruction) -> bool:
    """Whether an instruction defines the first address of a buffer, `%x.buf`: on the stack, or aligned on the heap."""
    if address.opcode == "alloca":
        return is_buffer(address)
    base = address.operands[0] if address.opcode in _DERIVED else None
    allocation = defined.get(base.name) if isinstance(base, Local) else None
    return allocation is not None and allocation.callee == "malloc" and is_buffer(allocation)


def _allocated_bytes(allocation: Instruction) -> int | None:
    """The bytes of a buffer; None if they are not constant."""
    if allocation.opcode == "alloca":
        return size_of(allocation.source_type)
    size = allocation.args[0]
    return size.value if isinstance(size, ConstInt) else None


def _counted_loops(loops: FunctionLoops, block: Block) -> list[Loop] | None:
    """The loops around a block, outer ones first; None if it may not run in each of a known number of iterations."""
    enclosing = loops.enclosing_loops(block)
    counted = [
        loop
        for loop in enclosing
        if loop.is_independent
        and loop.latch is not None
        and loop.bounds == range(loop.trips)
        and loops.flow.dominates(block.name, loop.latch.name)
    ]
    return counted if len(counted) == len(enclosing) else None


class _AffineAddress(NamedTuple):
    """An address in loops: a base, a distance, and by how many bytes each loop's index advances it, by the index."""

    base: Value
    offset: int
    steps: Mapping[str, int]


def _affine_address(
    defined: Mapping[str, Instruction], pointer: Value, indices: Collection[str]
) -> _AffineAddress | None:
    """A pointer as an affine function of indices; its base is an argument or a buffer. None if it is not affine."""
    steps = Counter[str]()
    while isinstance(pointer, Local) and pointer.name in defined:
        definition = defined[pointer.name]
        if _is_buffer(defined, definition):
            break
        if definition.opcode not in _DERIVED:
            return None
        terms = _offset_terms(defined, definition, indices) if definition.opcode == "getelementptr" else {}
        if terms is None:
            return None
        steps.update(terms)
        pointer = definition.operands[0]
    return _AffineAddress(pointer, steps.pop("", 0), steps)


def _offset_terms(
    defined: Mapping[str, Instruction], address: Instruction, indices: Collection[str]
) -> dict[str, int] | None:
    """The bytes that a getelementptr adds for each index, and the constant ones by the empty name."""
    constant = gep_offset(address)
    if constant is not None:
        return {"": constant}
    step = size_of(address.source_type)
    if step is None or len(address.operands) != 2:
        return None
    terms = _affine_terms(defined, address.operands[1], indices)
    return None if terms is None else {name: n * step for name, n in terms.items()}


def _affine_terms(defined: Mapping[str, Instruction], value: Value, indices: Collection[str]) -> dict[str, int] | None:
    """The coefficients of indices in an integer, and its constant term by the empty name; None if it is not affine.

    Narrow integers count as not affine, as they may wrap around before they are extended.
    """
    if value.type != I64:
        return None
    if isinstance(value, ConstInt):
        return {"": value.value}
    definition = defined.get(value.name) if isinstance(value, Local) else None
    if definition is None:
        return None
    if definition.result in indices:
        return {str(definition.result): 1}
    if definition.opcode not in ("add", "mul"):
        return None
    first, second = (_affine_terms(defined, operand, indices) for operand in definition.operands)
    if first is None or second is None:
        return None
    if definition.opcode == "add":
        return {name: first.get(name, 0) + second.get(name, 0) for name in (*first, *second)}
    factors, terms = (first, second) if first.keys() <= {""} else (second, first)
    return {name: n * factors.get("", 0) for name, n in terms.items()} if factors.keys() <= {""} else None


def _is_injective(view: MatrixView, walks: Sequence[CopyLoop]) -> bool:
    """Whether loops that store a matrix write to no element twice."""
    if view.interleave > 1:
        return False
    size = bytes_of(view.element)
    dims = [(view.row_stride * size, view.rows), (view.col_stride * size, view.cols)]
    dims += [(walk.destination, walk.trips) for walk in walks]
    end = size
    for stride, extent in sorted(dim for dim in dims if dim[1] > 1):
        if stride < end:
            return False
        end = stride * extent
    return True


def _is_filled_by(used: Mapping[str, Sequence[Use]], name: str, store: Instruction) -> bool:
    """Whether a store is all that writes to the memory that a pointer refers to."""
    for use in used.get(name, ()):
        user = use.instruction
        if user.opcode in _DERIVED:
            if not _is_filled_by(used, str(user.result), store):
                return False
        elif user is not store and user.opcode not in _HARMLESS and not _only_reads(user):
            return False
    return True


def _only_reads(call: Instruction) -> bool:
    """Whether a call leaves the memory that its operands point to as it is, or frees it."""
    return call.callee == "free" or (call.callee or "").startswith(_LOAD)
