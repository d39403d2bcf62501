"""Products of i32 vectors that were extended from at most 16 bits, by multiply-adds of i16 pairs: VPMULLD is slow.

    %x = sext <16 x i8> %a to <16 x i32>        pairs (x, sign of x)
    %w = sext <16 x i8> %b to <16 x i32>        pairs (w, 0) once the upper half is cleared
    %p = mul <16 x i32> %x, %w             ->   vpmaddwd %x, %w & 0xFFFF                x w + sign 0

The upper half is cleared in the factor that is broadcast. LLVM does the same only if the extensions are in the block of
the product; it merges VPMADDWD and a following sum into VPDPWSSD.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tlx.ir.builder.instructions import Builder
from tlx.ir.functions import Function
from tlx.ir.tensors.model import FunctionTensors
from tlx.ir.types import I8, I16, I32, VectorType, bits_of, scalar_of
from tlx.ir.values import Local, Value, const_ints, zero
from tlx.lower.operations import ElementwiseOp
from tlx.target.target import Target

_LOWER: Final = 0xFFFF


def i16_factors(function: Function, tensors: FunctionTensors) -> dict[str, int]:
    """Names of i32 vectors that were extended from at most 16 bits, with a rank for the factor to clear.

    2 for vectors that were zero-extended, 1 for broadcast ones, 0 for all others.
    """
    found: dict[str, int] = {}
    for instruction in function.instructions():
        if instruction.opcode in ("sext", "zext") and instruction.result and scalar_of(instruction.type) == I32:
            value, is_zero = instruction.operands[0], instruction.opcode == "zext"
            source, maker = scalar_of(value.type), tensors.maker_of(value)
            if source == I8 or (source == I16 and not is_zero):
                is_repeated = maker is not None and maker.intrinsic.name == "broadcast"
                found[instruction.result] = 2 if is_zero else int(is_repeated)
    return found


def i16_products(
    b: Builder,
    target: Target,
    operation: ElementwiseOp,
    factors: Sequence[tuple[Value, list[Value] | Value]],
    short: dict[str, int],
) -> list[Value]:
    """The registers of a product of short factors; empty for other operations, or without an instruction.

    Args:
        b: The builder.
        target: The machine.
        operation: The operation.
        factors: Each operand with its registers.
        short: The result of `i16_factors`.
    """
    word = ("i16", "s")
    kinds = (d for d in target.usable_dots if (d.lhs, d.rhs, d.width, d.temporaries) == (word, word, 2, 1))
    dot = next(kinds, None)
    if operation.opcode != "mul" or dot is None:
        return []
    known = [(short[v.name], r) for v, r in factors if isinstance(v, Local) and v.name in short and isinstance(r, list)]
    if len(known) < 2 or any(_register_bits(r) != target.vector_bytes * 8 for _, registers in known for r in registers):
        return []
    (_, other), (kind, cleared) = sorted(known, key=lambda factor: factor[0])
    if kind < 2:
        made = {
            r: b.binary("and", r, const_ints(I32, [_LOWER] * (_register_bits(r) // 32))) for r in dict.fromkeys(cleared)
        }
        cleared = [made[r] for r in cleared]
    return [dot.emit(b, zero(x.type), x, y) for x, y in zip(other, cleared, strict=True)]


def _register_bits(register: Value) -> int:
    assert isinstance(register.type, VectorType)
    return register.type.count * bits_of(register.type.element)
