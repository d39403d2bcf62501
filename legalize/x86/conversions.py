"""Conversions of a program's own functions that LLVM gets wrong on x86-64."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tlx.ir.rewrite import replace_uses
from tlx.ir.types import FLOAT, HALF, I16, VectorType

if TYPE_CHECKING:
    from tlx.ir.instructions import Instruction
    from tlx.ir.module import Module

_SATURATING: Final = "llvm.fptosi.sat."


def saturate_in_float(module: Module, *, emulate_matrix: bool, request_permission: bool) -> None:  # noqa: ARG001
    """Convert half to i16 with saturation by way of float, which is exact.

    With AVX512-FP16, LLVM 19 to 22 turn NaN into -32768 instead of 0, and convert the elements of vectors one by one.

    Rewrite:
        %y = call <8 x i16> @llvm.fptosi.sat.v8i16.v8f16(<8 x half> %x)
        ->
        %f = fpext <8 x half> %x to <8 x float>
        %y = call <8 x i16> @llvm.fptosi.sat.v8i16.v8f32(<8 x float> %f)
    """
    from tlx.ir.builder import Builder

    if not any(name.startswith(_SATURATING) for name in module.declarations):
        return
    for function in module.functions:
        for block in function.blocks:
            for call in [i for i in block.instructions if _saturates_half(i)]:
                b = Builder(module, function, block, block.instructions.index(call))
                b.span = call.span
                half = call.args[0]
                wide = replace(half.type, element=FLOAT) if isinstance(half.type, VectorType) else FLOAT
                value = b.cast("fpext", half, wide)
                value = b.call_intrinsic("llvm.fptosi.sat", [call.type, wide], call.type, [value])
                replace_uses(function, str(call.result), value)
                block.instructions.remove(call)


def _saturates_half(call: Instruction) -> bool:
    if not (call.callee or "").startswith(_SATURATING):
        return False
    types = call.type, call.args[0].type
    return tuple(type_.element if isinstance(type_, VectorType) else type_ for type_ in types) == (I16, HALF)
