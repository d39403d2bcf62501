"""Debug information about vectors that hold tensors, which are no values of the lowered program."""

from __future__ import annotations

from tlx.ir.functions import Function
from tlx.ir.rewrite import drop_debug_uses
from tlx.ir.tensors.calls import is_tensor_call
from tlx.ir.types import VectorType, exceeds_register
from tlx.ir.values import Local


def drop_debug_values(function: Function) -> None:
    """Let debug information say that the variables that hold tensors have no value.

    A debug record counts as no use, so that a program compiled with `-g` is lowered to the same code. Rewrite::

        #dbg_value(<256 x float> %product, !9, ...)    ->    #dbg_value(<256 x float> poison, !9, ...)

    A vector holds a tensor if a tensor operation or an instruction on such vectors makes or takes it; or if it is too
    large for a register.
    """
    records = [instruction for instruction in function.instructions() if instruction.is_debug]
    if records:
        drop_debug_uses(records, _tensors(function))


def _tensors(function: Function) -> set[str]:
    """Names of the vectors that hold tensors."""
    tensors: set[str] = set()
    connected: list[set[str]] = []
    for instruction in function.instructions():
        if instruction.is_debug:
            continue
        names = {o.name for o in instruction.operands if isinstance(o, Local) and isinstance(o.type, VectorType)}
        if instruction.result is not None and isinstance(instruction.type, VectorType):
            names.add(instruction.result)
        if is_tensor_call(instruction) or exceeds_register(instruction.type):
            tensors |= names
        elif not instruction.is_call or (instruction.callee or "").startswith("llvm."):
            connected.append(names)
    size = -1
    while len(tensors) != size:
        size = len(tensors)
        for names in connected:
            if not tensors.isdisjoint(names):
                tensors |= names
    return tensors
