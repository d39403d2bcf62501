"""Products by numbers that may be subnormal, such as x sigmoid(x) for x near -90.

An instruction with a subnormal operand takes microcode on many machines. A branch leads from it to products by s 2^k:

    p = s 2^k |y|, rounded
    t = s 2^k |y| + max(p, m), rounded once,    m the least normal number times 2^k

Where |s y| is subnormal, t is from m to 2 m, and ends in the bits of the product, rounded once. Where |s y| is normal,
t is 2 p. `scaled_division` rounds quotients like that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial, reduce

from tlx.ir.values import Value
from tlx.lower.legalize.math.arithmetic import LaneArithmetic, branch_if_any_lane
from tlx.lower.legalize.math.scaled_division import raised_magnitude
from tlx.lower.legalize.registers import emit_interleaved


def subnormal_products(
    lanes: LaneArithmetic, pairs: Sequence[tuple[Value, Value]], multiply: Callable[[], list[Value]]
) -> list[Value]:
    """Products of registers, rounded as the instruction rounds.

    The builder is in another block afterwards.

    Args:
        lanes: Arithmetic on registers like the factors.
        pairs: Factors from 0, and what is multiplied by them.
        multiply: Emits the instruction for each.
    """
    b, least = lanes.b, 2.0 ** (1 - lanes.bias)
    rare = reduce(partial(b.binary, "or"), [lanes.compare("olt", factor, least) for factor, _ in pairs])
    slow = [partial(_product, lanes, factor, number) for factor, number in pairs]
    return branch_if_any_lane(lanes, rare, lambda: emit_interleaved(b, slow), multiply)


def _product(lanes: LaneArithmetic, factor: Value, number: Value) -> Value:
    """A product. Lanes whose factor is small take the bits of t, and add those of a product by zero.

    LLVM would see through a selection, and multiply the small factors after all.
    """
    b, size, k = lanes.b, lanes.magnitude(number), lanes.bias - 7
    is_small = b.binary(
        "and", lanes.compare("olt", factor, 2.0 ** (1 - lanes.bias)), lanes.compare("olt", size, math.inf)
    )
    raised, least = raised_magnitude(lanes, factor, k), 2.0 ** (k + 1 - lanes.bias)
    rounded = lanes.mul(raised, size)
    addend = lanes.choose(lanes.compare("ogt", rounded, least), rounded, least)
    bits = lanes.integer_op("sub", lanes.bits(b.fma(raised, size, addend)), (k + 1) << lanes.fraction)
    plain = lanes.mul(lanes.choose(is_small, 0.0, factor), number)
    return lanes.from_bits(b.binary("or", lanes.bits(plain), b.select(is_small, bits, lanes.word(0))))
