"""Common pads: a tensor that a block pads several times in the same way is padded once.

Rewrite of two convolutions of one input, each with a border of its own::

    %p = pad(%x), 1 on each side                    %p = pad(%x), 1 on each side
    %y = convolution(%p, %v)                        %y = convolution(%p, %v)
    %q = pad(%x), 1 on each side              ->
    %z = convolution(%q, %w)                        %z = convolution(%p, %w)

Equal operations of other kinds, such as maps and products, are left to an optimiser that runs before TLX.
"""

from __future__ import annotations

from collections.abc import Mapping

from tlx.intrinsics import lookup
from tlx.ir.functions import Function
from tlx.ir.instructions import Instruction
from tlx.ir.rewrite import definitions, set_operand
from tlx.ir.types import VectorType
from tlx.ir.values import Local, Value


def merge_common_pads(function: Function) -> None:
    """Replace each pad that equals an earlier one in its block by that one."""
    if sum(_calls(instruction, "pad") for instruction in function.instructions()) < 2:
        return
    known = definitions(function)
    replaced: dict[str, Value] = {}
    for block in function.blocks:
        pads: dict[tuple[str, ...], Value] = {}
        for instruction in block.instructions:
            if _calls(instruction, "pad"):
                tensor, *others = instruction.args
                key = (*_described(known, replaced, tensor), *(value.typed for value in others))
                first = pads.setdefault(key, instruction.value)
                if first != instruction.value:
                    replaced[str(instruction.result)] = first
    if not replaced:
        return
    for block in function.blocks:
        block.instructions = [i for i in block.instructions if i.result not in replaced]
    for instruction in function.instructions():
        for index, operand in enumerate(instruction.operands):
            if isinstance(operand, Local) and operand.name in replaced:
                set_operand(instruction, index, replaced[operand.name])


def _described(known: Mapping[str, Instruction], replaced: Mapping[str, Value], tensor: Value) -> tuple[str, ...]:
    """What identifies a token's tensor: the vector and its shape, or the token itself if it reads memory."""
    definition = known.get(tensor.name) if isinstance(tensor, Local) else None
    if definition is None or not _calls(definition, "typeinfo"):
        return (str(tensor),)
    vector, *shape = definition.args
    if not isinstance(vector, Local) or not isinstance(vector.type, VectorType):
        return (str(tensor),)
    return (str(replaced.get(vector.name, vector)), *map(str, shape))


def _calls(instruction: Instruction, name: str) -> bool:
    """Whether an instruction calls a tensor intrinsic of a name."""
    intrinsic = lookup(instruction.callee or "") if instruction.callee is not None else None
    return intrinsic is not None and intrinsic.name == name
