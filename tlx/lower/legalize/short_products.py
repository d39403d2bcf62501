"""Products of i32 whose factors were 16 bits or less: instructions for pairs of i16 make them, where VPMULLD is slow.

    %x = sext <16 x i8> %a to <16 x i32>        pairs (x, sign of x)
    %w = sext <16 x i8> %b to <16 x i32>        pairs (w, 0) once the upper half is cleared
    %p = mul <16 x i32> %x, %w             ->   vpmaddwd %x, %w & 0xFFFF                x w + sign 0

Of what is repeated, such as a number for a whole row, the upper half is cleared. LLVM makes the same only where it
sees the extensions in the block of the product, and VPDPWSSD of this and the sum that it is added to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tlx.ir.builder import Builder
from tlx.ir.module import Function
from tlx.ir.tensors import FunctionTensors
from tlx.ir.types import I8, I16, I32, VectorType, bits_of, scalar_of
from tlx.ir.values import Local, Value, const_ints, zero
from tlx.lower.ordinary import Operation
from tlx.target import Target

_LOWER: Final = 0xFFFF


def short_factors(function: Function, tensors: FunctionTensors) -> dict[str, int]:
    """Names of i32 vectors that are i16 extended: by zeros 2, a number for each row or column 1, all others 0."""
    found: dict[str, int] = {}
    for instruction in function.instructions():
        if instruction.opcode in ("sext", "zext") and instruction.result and scalar_of(instruction.type) == I32:
            value, is_zero = instruction.operands[0], instruction.opcode == "zext"
            source, maker = scalar_of(value.type), tensors.maker_of(value)
            if source == I8 or (source == I16 and not is_zero):
                is_repeated = maker is not None and maker.intrinsic.name == "broadcast"
                found[instruction.result] = 2 if is_zero else int(is_repeated)
    return found


def short_products(
    b: Builder,
    target: Target,
    operation: Operation,
    factors: Sequence[tuple[Value, list[Value] | Value]],
    short: dict[str, int],
) -> list[Value]:
    """The registers of a product; none where it is not one of short factors, or no instruction makes it.

    Args:
        b: Where to emit.
        target: Tells what is an instruction.
        operation: What is computed.
        factors: Each operand with its registers.
        short: As `short_factors` finds them.
    """
    word = ("i16", "s")
    kinds = (d for d in target.usable_dots if (d.lhs, d.rhs, d.width, d.temporaries) == (word, word, 2, 1))
    dot = next(kinds, None)
    if operation.opcode != "mul" or dot is None:
        return []
    known = [(short[v.name], r) for v, r in factors if isinstance(v, Local) and v.name in short and isinstance(r, list)]
    if len(known) < 2 or any(_bits(r) != target.vector_bytes * 8 for _, registers in known for r in registers):
        return []
    (_, other), (kind, cleared) = sorted(known, key=lambda factor: factor[0])
    if kind < 2:
        made = {r: b.binary("and", r, const_ints(I32, [_LOWER] * (_bits(r) // 32))) for r in dict.fromkeys(cleared)}
        cleared = [made[r] for r in cleared]
    return [dot.emit(b, zero(x.type), x, y) for x, y in zip(other, cleared, strict=True)]


def _bits(register: Value) -> int:
    assert isinstance(register.type, VectorType)
    return register.type.count * bits_of(register.type.element)
