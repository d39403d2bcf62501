"""Registers of bfloat worked on as two of float: of the elements with even numbers, and of those with odd ones.

    | e0 o0 | e1 o1 | ...     <32 x bfloat> seen as words of 32 bits

    even = word << 16                 odd = word & 0xFFFF0000              a bfloat is the upper half of a float
    word = even >> 16 | odd & 0xFFFF0000

so that neither way elements change places, which has one port on many machines, and half as many instructions as when
halves of a register are extended and joined.

Code for several registers, an instruction of each in turn, as no one waits for another register's.

    a0 = f(x0)  b0 = g(a0)  ...  a1 = f(x1)  b1 = g(a1)   ->   a0 = f(x0)  a1 = f(x1)  b0 = g(a0)  b1 = g(a1)

A processor looks some hundred instructions ahead for what does not wait, fewer where two threads share it: long chains
one after the other leave it idle.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain, pairwise
from typing import Final

from tlx.ir.builder.instructions import Builder
from tlx.ir.types import BFLOAT, FLOAT, I32, Type, VectorType
from tlx.ir.values import Value, const_ints
from tlx.target.target import Target

_UPPER: Final = -0x10000
_HALF: Final = 0x8000
_LAST: Final = 0x10000


def has_masks(target: Target) -> bool:
    """Whether comparisons make masks of a bit for each element, as AVX-512's do."""
    return 16 in target.masked_bits


def works_on_float_pairs(target: Target, element: Type, sources: Sequence[Type], register: Value) -> bool:
    """Whether an operation has only bfloat operands and results, and a register holds more of them than of floats."""
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
    """A register of bfloat computed from others, as float.

    Args:
        b: Where to emit.
        target: Tells how to round.
        registers: The operands.
        compute: Emits the operation on registers of half as many floats.
        exact: The results are bfloat numbers: they need no rounding.
    """
    operands = [even_and_odd(b, register) for register in registers]
    halves = [[pair[i] for pair in operands] for i in range(2)]
    even, odd = [_words(b, x) for x in emit_interleaved(b, [partial(compute, half) for half in halves])]
    if not exact:
        even = rounded_words(b, target, even)
    upper = b.binary("and", odd, _all(odd, _UPPER)) if exact else _rounded_upper(b, target, odd)
    joined = b.binary("or", upper, b.binary("lshr", even, _all(even, 16)))
    return b.cast("bitcast", joined, registers[0].type)


def even_and_odd(b: Builder, register: Value) -> tuple[Value, Value]:
    """The elements with even numbers as float, and those with odd ones."""
    words = _pairs(b, register)
    return _floats(b, b.binary("shl", words, _all(words, 16))), upper_half(b, register)


def upper_half(b: Builder, register: Value) -> Value:
    """The elements with odd numbers as float."""
    words = _pairs(b, register)
    return _floats(b, b.binary("and", words, _all(words, _UPPER)))


def _pairs(b: Builder, register: Value) -> Value:
    assert isinstance(register.type, VectorType)
    return b.cast("bitcast", register, VectorType(register.type.count // 2, I32))


def _floats(b: Builder, words: Value) -> Value:
    assert isinstance(words.type, VectorType)
    return b.cast("bitcast", words, VectorType(words.type.count, FLOAT))


def rounded_words(b: Builder, target: Target, word: Value) -> Value:
    """The bits of floats with the upper half rounded to nearest even; the lower half is undefined.

    NaN stays NaN where its lower half is zero: so it is with any that comes of bfloat numbers. Half a unit is added;
    where that leaves nothing below the upper half it was a tie, and the last bit is cleared. A machine without masks
    adds a little less to even numbers.
    """
    if has_masks(target):
        up, is_tie = _up(b, word)
        return b.select(is_tie, b.binary("and", up, _all(up, ~_LAST)), up)
    odd = b.binary("and", b.binary("lshr", word, _all(word, 16)), _all(word, 1))
    return b.binary("add", word, b.binary("add", odd, _all(word, _HALF - 1)))


def _rounded_upper(b: Builder, target: Target, word: Value) -> Value:
    """The same with a lower half of zeros.

    One mask clears both the lower half and, of a tie, the last bit: LLVM knows no shuffle that this could be. One of
    two sources' 16-bit elements takes three steps on Intel's machines, a shift and VPTERNLOG two.
    """
    if has_masks(target):
        up, is_tie = _up(b, word)
        return b.binary("and", up, b.select(is_tie, _all(up, _UPPER & ~_LAST), _all(up, _UPPER)))
    word = rounded_words(b, target, word)
    return b.binary("and", word, _all(word, _UPPER))


def _up(b: Builder, word: Value) -> tuple[Value, Value]:
    """Bits and half a unit of the upper half, and whether that leaves nothing below it."""
    up = b.binary("add", word, _all(word, _HALF))
    return up, b.icmp("eq", b.binary("and", up, _all(up, ~_UPPER)), _all(up, 0))


def _words(b: Builder, x: Value) -> Value:
    assert isinstance(x.type, VectorType)
    return b.cast("bitcast", x, VectorType(x.type.count, I32))


def _all(like: Value, number: int) -> Value:
    assert isinstance(like.type, VectorType)
    return const_ints(I32, [number] * like.type.count)


def emit_interleaved(b: Builder, makes: Sequence[Callable[[], Value]]) -> list[Value]:
    """What each makes; their instructions stay apart where they are not as many or take more than one block."""
    block, marks, made = b.block, [b.index], list[Value]()
    for make in makes:
        made.append(make())
        marks.append(b.index)
    pieces = [block.instructions[start:end] for start, end in pairwise(marks)]
    if b.block is block and len({len(piece) for piece in pieces}) == 1:
        block.instructions[marks[0] : marks[-1]] = chain.from_iterable(zip(*pieces, strict=True))
    return made
