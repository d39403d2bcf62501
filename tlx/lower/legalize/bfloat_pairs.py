"""Operations on registers of bfloat, computed as two registers of float: of the even and of the odd elements.

    | e0 o0 | e1 o1 | ...     <32 x bfloat> as words of 32 bits

    even = word << 16                 odd = word & 0xFFFF0000              a bfloat is the upper half of a float
    word = even >> 16 | odd & 0xFFFF0000

No element changes lane, which would use the only shuffle port of many machines, and it takes half as many instructions
as extending and joining halves of a register.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from tlx.ir.builder.instructions import Builder
from tlx.ir.types import BFLOAT, FLOAT, I32, Type, VectorType
from tlx.ir.values import Value
from tlx.lower.legalize.registers import emit_interleaved, splat_like
from tlx.target.target import Target

_UPPER: Final = -0x10000
_HALF: Final = 0x8000
_LAST: Final = 0x10000


def _compares_to_masks(target: Target) -> bool:
    """Whether comparisons yield mask registers with a bit for each element, as AVX-512's do."""
    return 16 in target.masked_bits


def works_on_float_pairs(target: Target, element: Type, sources: Sequence[Type], register: Value) -> bool:
    """Whether operands and result are all bfloat, and the register is too wide for one register of floats."""
    type_ = register.type
    assert isinstance(type_, VectorType)
    is_large = type_.count % 2 == 0 and type_.count * 32 > target.vector_bytes * 8
    return is_large and element == BFLOAT and all(s == BFLOAT for s in sources)


def in_float_pairs(
    b: Builder,
    target: Target,
    registers: Sequence[Value],
    compute: Callable[[Sequence[Value]], Value],
    *,
    exact: bool = False,
) -> Value:
    """An operation on registers of bfloat, computed in float on even and odd elements.

    Args:
        b: The builder.
        target: The machine.
        registers: The operands.
        compute: Emits the operation on registers of half as many floats.
        exact: Whether the results are exact in bfloat, and need no rounding.
    """
    operands = [even_and_odd(b, register) for register in registers]
    halves = [[pair[i] for pair in operands] for i in range(2)]
    even, odd = [_words(b, x) for x in emit_interleaved(b, [partial(compute, half) for half in halves])]
    if not exact:
        even = _rounded_words(b, target, even)
    upper = b.binary("and", odd, splat_like(odd, _UPPER)) if exact else _rounded_upper(b, target, odd)
    joined = b.binary("or", upper, b.binary("lshr", even, splat_like(even, 16)))
    return b.cast("bitcast", joined, registers[0].type)


def even_and_odd(b: Builder, register: Value) -> tuple[Value, Value]:
    """The even elements as float, and the odd ones."""
    words = _pairs(b, register)
    return _floats(b, b.binary("shl", words, splat_like(words, 16))), odd_elements(b, register)


def odd_elements(b: Builder, register: Value) -> Value:
    """The odd elements as float."""
    words = _pairs(b, register)
    return _floats(b, b.binary("and", words, splat_like(words, _UPPER)))


def _pairs(b: Builder, register: Value) -> Value:
    assert isinstance(register.type, VectorType)
    return b.cast("bitcast", register, VectorType(register.type.count // 2, I32))


def _floats(b: Builder, words: Value) -> Value:
    assert isinstance(words.type, VectorType)
    return b.cast("bitcast", words, VectorType(words.type.count, FLOAT))


def _rounded_words(b: Builder, target: Target, word: Value) -> Value:
    """The bits of floats with the upper half rounded to nearest even; the lower half is undefined.

    NaN stays NaN if its lower half is zero, as for every NaN that comes from bfloat operands. Half an ulp is added; if
    the lower half is zero then, it was a tie, and the last bit is cleared. A machine without masks adds slightly less
    to even numbers.
    """
    if _compares_to_masks(target):
        up, is_tie = _plus_half_ulp(b, word)
        return b.select(is_tie, b.binary("and", up, splat_like(up, ~_LAST)), up)
    odd = b.binary("and", b.binary("lshr", word, splat_like(word, 16)), splat_like(word, 1))
    return b.binary("add", word, b.binary("add", odd, splat_like(word, _HALF - 1)))


def _rounded_upper(b: Builder, target: Target, word: Value) -> Value:
    """The bits of floats with the upper half rounded to nearest even, and a lower half of zeros.

    One mask clears both the lower half and, in a tie, the last bit, so that LLVM does not turn it into a shuffle. A
    shuffle of 16-bit elements of two sources takes three uops on Intel's machines, a shift and VPTERNLOG two.
    """
    if _compares_to_masks(target):
        up, is_tie = _plus_half_ulp(b, word)
        return b.binary("and", up, b.select(is_tie, splat_like(up, _UPPER & ~_LAST), splat_like(up, _UPPER)))
    word = _rounded_words(b, target, word)
    return b.binary("and", word, splat_like(word, _UPPER))


def _plus_half_ulp(b: Builder, word: Value) -> tuple[Value, Value]:
    """Bits plus half an ulp of the upper half, and whether the lower half is zero then."""
    up = b.binary("add", word, splat_like(word, _HALF))
    return up, b.icmp("eq", b.binary("and", up, splat_like(up, ~_UPPER)), splat_like(up, 0))


def _words(b: Builder, x: Value) -> Value:
    assert isinstance(x.type, VectorType)
    return b.cast("bitcast", x, VectorType(x.type.count, I32))
