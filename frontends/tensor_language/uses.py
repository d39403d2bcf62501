"""What a kernel does with the memory that its parameters point to."""

from __future__ import annotations

from dataclasses import dataclass, field

from tlx.frontends.tensor_language.ast.base import Function, Instruction, Name, Region
from tlx.frontends.tensor_language.ast.collective import Axpby, Blas, Cumsum, Gemm, Gemv, Ger, Hadamard, Sum
from tlx.frontends.tensor_language.ast.mixed import (
    Associated,
    AtomicStore,
    AtomicUpdate,
    Expand,
    Fuse,
    Load,
    Store,
    Subview,
)
from tlx.frontends.tensor_language.ast.spmd import CooperativeMatrixAtomicUpdate, CooperativeMatrixStore


@dataclass(slots=True)
class Uses:
    """Positions of parameters.

    Attributes:
        written: Those whose memory the kernel changes.
        tested: Those that it asks whether they are null.
    """

    written: set[int] = field(default_factory=set[int])
    tested: set[int] = field(default_factory=set[int])


def uses(function: Function) -> Uses:
    """What a kernel does with its parameters, through all views of them."""
    found = Uses()
    _visit(function.body, {p.name.text: i for i, p in enumerate(function.parameters)}, found)
    return found


def _visit(region: Region, roots: dict[str, int], found: Uses) -> None:
    roots = dict(roots)  # a name may mean another thing in the next region
    for instruction in region.instructions:
        viewed = _viewed(instruction)
        if viewed is not None and viewed.text in roots:
            roots[instruction.result.text] = roots[viewed.text]
        target = written_operand(instruction)
        if target is not None and target.text in roots:
            found.written.add(roots[target.text])
        if isinstance(instruction, Associated) and instruction.operand.text in roots:
            found.tested.add(roots[instruction.operand.text])
        for inner in instruction.regions():
            _visit(inner, roots, found)


def _viewed(instruction: Instruction) -> Name | None:
    """What a view looks at; a load from a group is one."""
    if isinstance(instruction, (Subview, Expand, Fuse)):
        return instruction.operand
    return instruction.source if isinstance(instruction, Load) else None


def written_operand(instruction: Instruction) -> Name | None:
    """The memref whose memory an instruction changes; None for instructions that change none."""
    if isinstance(instruction, (Gemm, Gemv, Ger, Hadamard)):
        return instruction.c
    if isinstance(instruction, (Axpby, Cumsum, Sum)):
        return instruction.b
    assert not isinstance(instruction, Blas), "every such instruction has a line above"
    if isinstance(
        instruction, (Store, AtomicStore, AtomicUpdate, CooperativeMatrixStore, CooperativeMatrixAtomicUpdate)
    ):
        return instruction.target
    return None
