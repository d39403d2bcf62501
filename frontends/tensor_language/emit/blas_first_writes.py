"""Which BLAS instructions are the first to write memory that an `alloca` has just given.

What such memory holds is undefined, so `beta` constant zero need not read it:

    %t = alloca : memref<f32x8x8,local>
    gemm %one, %A, %B, %zero, %t            is the first use of %t in the region of its alloca

Anything else that names the memory or a view of it in between ends the search, regions of loops and branches included:
only sizes are asked for without a look at the memory.
"""

from __future__ import annotations

from collections.abc import Iterator

from tlx.frontends.tensor_language.ast.base import Function, Instruction, Name, Region
from tlx.frontends.tensor_language.ast.collective import Alloca, Blas, Gemm, Gemv, Ger, Hadamard
from tlx.frontends.tensor_language.ast.mixed import Associated, Expand, Fuse, Size, Subview
from tlx.frontends.tensor_language.uses import written_operand


def first_writes(function: Function) -> frozenset[int]:
    """Ids of the instructions that write what nothing has written before."""
    return frozenset(id(i) for region in _regions(function.body) for i in _of_region(region.instructions))


def output(i: Blas) -> Name:
    """The operand that a BLAS instruction writes."""
    name = written_operand(i)
    assert name is not None
    return name


def _inputs(i: Blas) -> tuple[Name, ...]:
    """The memrefs that it reads beside its output."""
    return (i.a, i.b) if isinstance(i, (Gemm, Gemv, Ger, Hadamard)) else (i.a,)


def _regions(region: Region) -> Iterator[Region]:
    yield region
    for i in region.instructions:
        for inner in i.regions():
            yield from _regions(inner)


def _of_region(instructions: list[Instruction]) -> Iterator[Blas]:
    for position, i in enumerate(instructions):
        if isinstance(i, Alloca):
            found = _first_use(i.result.text, instructions[position + 1 :])
            if found is not None:
                yield found


def _first_use(memory: str, following: list[Instruction]) -> Blas | None:
    """The first instruction that touches an alloca's memory, where it is one that writes it only."""
    views = {memory}
    for i in following:
        if not views.intersection(_used(i)):
            continue
        if isinstance(i, (Subview, Expand, Fuse)):
            views.add(i.result.text)
        elif isinstance(i, Blas):
            read = {name.text for name in _inputs(i)}
            return i if output(i).text in views and not views & read else None
        elif not isinstance(i, (Size, Associated)):
            return None
    return None


def _used(i: Instruction) -> Iterator[str]:
    """Names that an instruction and its regions use."""
    yield from (name.text for name in i.operands())
    for region in i.regions():
        for inner in region.instructions:
            yield from _used(inner)
