"""Copies of arguments that are constant over calls: the preparation makes them, in the prepared block of the argument.

Rewrite of a kernel that has been copied so that its filters are neighbours::

    %rhs.heap = malloc(...)                       %rhs.buf = %w.block + 64
    %rhs.buf = %rhs.heap + ...
    store %rhs.buf, transpose(load %w)      ->
    ... products that read %rhs.buf               ... products that read %rhs.buf

    @f.prepare:                                   store %w.prepared + 64, transpose(load %w)

Nothing else may write to the buffer. A product that reads it can pack it as B: it is then at a constant distance from
the argument's block, as other constant operands are from the argument (see `prepare`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tlx.ir.instructions import Instruction
from tlx.ir.rewrite import Use, definitions, underlying_object, uses
from tlx.ir.values import ConstInt, Local, Value
from tlx.lower.memory.aliases import gep_offset
from tlx.lower.memory.allocation import is_buffer
from tlx.lower.to_tiles.match.stores import Match
from tlx.lower.to_tiles.pack.prepare import ConstantPlace, PreparedArguments
from tlx.lower.to_tiles.problem import Copy

_DERIVED = ("getelementptr", "bitcast")
_HARMLESS = ("ptrtoint", "icmp")  # alignment, and checks for null
_LOAD = "llvm.tensor.load"


@dataclass(frozen=True, eq=False)
class ConstantCopy:
    """A copy that the preparation can make.

    Attributes:
        match: The copy.
        place: What it reads.
        allocation: The call that allocates the buffer that it fills.
        buffer: The instruction whose result is the first element of the buffer.
        size: Bytes of the buffer.
    """

    match: Match
    place: ConstantPlace
    allocation: Instruction
    buffer: Instruction
    size: int


def find_constant_copies(prepared: PreparedArguments, matches: Sequence[Match]) -> Iterator[ConstantCopy]:
    """The copies of constant arguments to heap buffers to which nothing else writes."""
    candidates = [m for m in matches if isinstance(m.problem, Copy) and len(m.pointers) == 2 and not m.scalars]
    if not candidates:
        return
    defined, used = definitions(prepared.function), uses(prepared.function)
    for match in candidates:
        place = prepared.place(match.pointers[1][0])
        buffer = _buffer(defined, match.pointers[0][0]) if place is not None else None
        if place is None or buffer is None:
            continue
        allocation = underlying_object(buffer.value, defined, _DERIVED)
        assert isinstance(allocation, Local)
        call = defined[allocation.name]
        size = call.args[0]
        if isinstance(size, ConstInt) and _is_filled_by(used, allocation.name, match.store):
            yield ConstantCopy(match, place, call, buffer, size.value)


def _buffer(defined: Mapping[str, Instruction], pointer: Value) -> Instruction | None:
    """The aligned address in an allocation, `%x.buf`, that a pointer equals; None for other pointers."""
    while isinstance(pointer, Local) and pointer.name in defined:
        definition = defined[pointer.name]
        if definition.opcode not in _DERIVED:
            return None
        base = definition.operands[0]
        allocation = defined.get(base.name) if isinstance(base, Local) else None
        if allocation is not None and allocation.callee == "malloc" and is_buffer(allocation):
            return definition
        if definition.opcode == "getelementptr" and gep_offset(definition) != 0:
            return None
        pointer = base
    return None


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
