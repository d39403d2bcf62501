"""Vectors in a program's own functions that LLVM's backend compiles incorrectly or crashes on. Kernels contain none.

Only functions with tensor operations are rewritten; others are left unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from tlx.ir.builder import Builder
from tlx.ir.functions import Function
from tlx.ir.instructions import Instruction
from tlx.ir.module import Module
from tlx.ir.rewrite import replace_uses, set_operand, uses
from tlx.ir.types import BFLOAT, HALF, I1, VectorType, bits_of, bytes_of, scalar_of
from tlx.ir.values import int_elements
from tlx.lower.legalize.elementwise import emit_elementwise, is_miscompiled, nan_operands, with_nan
from tlx.lower.legalize.memory import load_whole, store_part
from tlx.lower.operations import ElementwiseOp
from tlx.target.instructions.compilers import LlvmBackend
from tlx.target.target import Target

_FEATURES: Final = re.compile(r'("target-features"="[^"]*)"')


def replace_operations(module: Module, functions: Iterable[Function], target: Target) -> None:
    """Replace operations on vectors that LLVM compiles wrong, as kernels do.

    These are funnel shifts of i64, and comparisons and selects of the lesser or greater of two numbers, which lose NaN.
    """
    for function in functions if not (target.backend.keeps_selected_nan and target.backend.has_funnel_shifts) else ():
        nan_operand_of = {} if target.backend.keeps_selected_nan else nan_operands(function)
        for block in function.blocks:
            for instruction in list(block.instructions):
                operation, type_ = ElementwiseOp.of(instruction), instruction.type
                if operation is None or instruction.result is None or not isinstance(type_, VectorType):
                    continue
                if scalar_of(instruction.operands[0].type) in (BFLOAT, HALF):
                    continue  # LLVM computes them in float
                is_replaced = is_miscompiled(target.backend, operation, type_.element)
                if not is_replaced and instruction.result not in nan_operand_of:
                    continue
                b = Builder(module, function, block, block.instructions.index(instruction) + 1)
                b.span = instruction.span
                users = uses(function).get(instruction.result, [])
                if is_replaced:
                    operands = instruction.args if operation.opcode == "call" else instruction.operands
                    sources = [scalar_of(operand.type) for operand in operands]
                    value = emit_elementwise(b, target, operation, type_.element, sources, operands)
                    block.instructions.remove(instruction)
                else:
                    operand = instruction.operands[nan_operand_of[instruction.result]]
                    value = with_nan(b, instruction.value, operand, operand)
                for use in users:
                    set_operand(use.instruction, use.index, value)


def leave_out_vectors(module: Module, functions: Iterable[Function], target: Target) -> None:
    """Have functions whose vectors LLVM compiles wrong, or crashes on, compiled for the machine without vectors.

    Rewrite:
        define void @f(ptr %x)    ->    define void @f(ptr %x) "target-features"="-hvx"

    Functions that pass vectors stay, as the features decide in which registers these are.
    """
    vectors = target.optional_vectors
    if vectors is None or target.backend.has_vector_shuffles:
        return
    for function in functions:
        instructions = list(function.instructions())
        if _passes_vectors(function) or any(map(_calls_with_vectors, instructions)):
            continue
        if any(map(_is_scattered, instructions)) or any(map(_makes_bits, instructions)):
            text, feature = module.attribute_text(function.signature), f"-{vectors.feature}"
            text, count = _FEATURES.subn(rf'\1,{feature}"', text)
            function.replace_attributes(text if count else f'{text} "target-features"="{feature}"'.strip())


def _passes_vectors(function: Function) -> bool:
    types = [function.signature.result, *(argument.type for argument in function.arguments)]
    return any(isinstance(type_, VectorType) for type_ in types)


def _calls_with_vectors(call: Instruction) -> bool:
    if call.opcode not in ("call", "invoke") or (call.callee or "").strip('"').startswith("llvm."):
        return False
    return any(isinstance(type_, VectorType) for type_ in (call.type, *(value.type for value in call.operands)))


def _is_scattered(shuffle: Instruction) -> bool:
    """Whether a shuffle takes neither adjacent elements nor one for all."""
    if shuffle.opcode != "shufflevector":
        return False
    mask = int_elements(shuffle.operands[2])
    if mask is None:
        return True
    return mask not in (tuple(range(mask[0], mask[0] + len(mask))), mask[:1] * len(mask))


def _makes_bits(truncation: Instruction) -> bool:
    """Whether vectors of i1 are made of integers."""
    return truncation.opcode == "trunc" and isinstance(truncation.type, VectorType) and truncation.type.element == I1


def split_widened(module: Module, target: Target) -> None:
    """Split vectors that a program's functions, or helpers for sizes known at run time, load and store whole.

        %v = load <64 x i8>, ptr %p    ->    %a = load <32 x i8>, ptr %p
                                             %b = load <32 x i8>, ptr (%p + 32 bytes)
                                             %v = shufflevector %a, %b, identity

    The same is done for kernels as they are made.
    """
    for function in module.functions if target.backend.whole_register_bytes else ():
        for block in function.blocks:
            for access in [i for i in block.instructions if _is_widened(i, target.backend)]:
                b = Builder(module, function, block, block.instructions.index(access))
                b.span = access.span
                type_ = access.type if access.opcode == "load" else access.operands[0].type
                assert isinstance(type_, VectorType)
                align = min(access.align or bytes_of(type_.element), bytes_of(type_) // 2)
                if access.opcode == "load":
                    address = b.retype(access.operands[0], type_.element)
                    replace_uses(function, str(access.result), load_whole(b, target.backend, address, type_, align))
                else:
                    register, pointer = access.operands
                    store_part(b, target, b.retype(pointer, type_.element), register, type_.count, align)
                block.instructions.remove(access)


def _is_widened(access: Instruction, backend: LlvmBackend) -> bool:
    if access.opcode not in ("load", "store") or not {"volatile", "atomic"}.isdisjoint(access.flags):
        return False
    type_ = access.type if access.opcode == "load" else access.operands[0].type
    return (
        isinstance(type_, VectorType)
        and not type_.scalable
        and bits_of(type_.element) % 8 == 0
        and bytes_of(type_) in backend.whole_register_bytes
    )
