"""Tile products that LLVM's scalarisation of AMX leaves alone, as functions on tiles in memory.

X86LowerAMXIntrinsics (LLVM 14 to 22) makes loops of the products of bfloat and of bytes, not of those of half:

    tdpfp16ps     c[m][n] += sum over k of a[m][2k] * b[k][2n] + a[m][2k + 1] * b[k][2n + 1]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from tlx.ir.builder import Builder, new_function
from tlx.ir.types import FLOAT, HALF, I8, I32, VOID, FunctionType, VectorType
from tlx.ir.values import Global, Value
from tlx.lower.legalize.driver import feature_attributes

if TYPE_CHECKING:
    from tlx.ir.module import Module
    from tlx.target import Target

UNKNOWN: Final = ("tdpfp16ps",)
"""The products that it leaves alone."""
_SIDE: Final = 16
_WORDS: Final = VectorType(_SIDE * _SIDE, I32)
_PAIRS: Final = VectorType(_SIDE, I32)
_HALVES: Final = VectorType(2 * _SIDE, HALF)
_FLOATS: Final = VectorType(_SIDE, FLOAT)
_ALIGN: Final = 64


def scratch(b: Builder) -> list[Value]:
    """Memory for three tiles, which all products of a function may share."""
    return [b.alloca(_WORDS, part) for part in "cab"]


def call_product(b: Builder, target: Target, name: str, words: Sequence[Value], memory: Sequence[Value]) -> Value:
    """The words of `acc + lhs @ rhs`, of 16 rows x 64 bytes each.

    Args:
        b: Where to emit.
        target: The machine, which has the product's feature.
        name: The instruction.
        words: The words of acc, lhs and rhs.
        memory: Where they are put.
    """
    for value, place in zip(words, memory, strict=True):
        b.store(value, place, _ALIGN)
    places = [b.retype(place, I8) for place in memory]
    type_ = FunctionType(VOID, tuple(place.type for place in places))
    b.call(Global(b.pointer(type_), _function(b.module, target, name)), type_, places)
    return b.load(_WORDS, memory[0], _ALIGN, "words")


def _function(module: Module, target: Target, name: str) -> str:
    """The function for a product, made when it is first wanted."""
    stem = f"tlx.{name}"
    made = next((f.name for f in module.functions if f.name.startswith(stem)), "")
    if made:
        return made
    made = module.global_names.fresh(stem)
    parameters = [(module.pointer_to(I8), "noalias", part) for part in "cab"]
    attributes = " ".join(["nounwind", "noinline", *feature_attributes(target)])
    function = new_function(module, made, parameters, attributes)
    b = Builder(module, function)
    c, lhs, rhs = (argument.value for argument in function.arguments)
    with b.loop(0, _SIDE, name="m") as row:
        place = b.gep(_FLOATS, c, row.index)
        start = b.load(_FLOATS, place, _ALIGN)
        pairs = b.gep(_PAIRS, lhs, row.index)
        with b.loop(0, _SIDE, carry=[start], name="k") as step:
            pair = b.splat(b.load(I32, b.gep(I32, pairs, step.index), 4), _SIDE)
            step.next(_pair_sum(b, pair, b.load(_PAIRS, b.gep(_PAIRS, rhs, step.index), _ALIGN), step.carried[0]))
        b.store(step.results[0], place, _ALIGN)
    b.ret()
    return made


def _pair_sum(b: Builder, lhs: Value, rhs: Value, total: Value) -> Value:
    """Both products of each lane's pair of halves, added to the lane's sum."""
    halves = [b.cast("bitcast", value, _HALVES) for value in (lhs, rhs)]
    for place in range(2):
        lanes = range(place, 2 * _SIDE, 2)
        x, y = (b.cast("fpext", b.shuffle(value, None, lanes), _FLOATS) for value in halves)
        total = b.fma(x, y, total)
    return total
