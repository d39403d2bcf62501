"""Conversion sinking: a tensor that is only broadcast is converted after the broadcast, and needs no memory of its own.

Rewrite of the scale of a layer norm, which all rows share::

    %w = fpext <768 x bfloat> %s to <768 x float>           %t = typeinfo(<768 x bfloat> %s, <768>, ...)
    %t = typeinfo(<768 x float> %w, <768>, ...)        ->   %n = broadcast(%t, <512, 768>, <1>)
    %v = broadcast(%t, <512, 768>, <1>)                     %v = fpext <393216 x bfloat> %n to <393216 x float>

This is done for grids only, where a separate tree for the conversion would split a kernel on rows in two, and where
conversions cost next to nothing. CPUs convert such a tensor once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tlx.ir.functions import Function
from tlx.ir.instructions import Instruction
from tlx.ir.module import Module
from tlx.ir.rewrite import Use, remove_dead, replace_uses, uses
from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.tensors.inference import analyse
from tlx.ir.tensors.model import FunctionTensors, TensorOp
from tlx.ir.types import FloatType, VectorType


def sink_conversions(module: Module, function: Function) -> None:
    """Move each `fpext` after the broadcasts of its result, if it has no other use."""
    widened = [i for i in function.instructions() if i.opcode == "fpext" and isinstance(i.type, VectorType)]
    if not widened:
        return
    tensors, used = analyse(module, function), uses(function)
    moved = [(i, broadcasts) for i in widened if (broadcasts := _broadcasts(tensors, used, i))]
    for widening, broadcasts in moved:
        for broadcast in broadcasts:
            _move(module, function, widening, broadcast)
    dead = [t.definition for _, broadcasts in moved for broadcast in broadcasts for t in broadcast.tensors]
    remove_dead(function, {id(i): i for i in (*(widening for widening, _ in moved), *dead)}.values())


def _broadcasts(
    tensors: FunctionTensors, used: Mapping[str, Sequence[Use]], widening: Instruction
) -> list[TensorOp] | None:
    """The broadcasts that use a widened vector; None if anything else does."""
    broadcasts: list[TensorOp] = []
    for token in (use.instruction for use in used.get(str(widening.result), [])):
        if token.result not in tensors.tokens:
            return None
        readers = [tensors.op_of(use.instruction) for use in used.get(str(token.result), [])]
        for reader in readers:
            if reader is None or reader.intrinsic.name != "broadcast":
                return None
            broadcasts.append(reader)
    return broadcasts


def _move(module: Module, function: Function, widening: Instruction, broadcast: TensorOp) -> None:
    """Replace a broadcast of a widened vector by the widened broadcast."""
    old, (tensor,), result, (source,) = broadcast.instruction, broadcast.tensors, broadcast.result, widening.operands
    assert result is not None
    assert isinstance(source.type, VectorType)
    assert isinstance(source.type.element, FloatType)
    block = next(block for block in function.blocks if old in block.instructions)
    b = TensorBuilder(module, function, block, block.instructions.index(old))
    b.debug, b.span = old.debug_location, old.span
    narrow = b.typeinfo(source, replace(tensor.type, element=source.type.element), "narrow")
    shape, dims = broadcast.dims
    repeated = b.broadcast(narrow, shape, dims, replace(result, element=source.type.element))
    replace_uses(function, str(old.result), b.cast("fpext", repeated, old.value.type))
    block.instructions.remove(old)
