"""`llvm.is.fpclass`: subnormal halves and signalling NaNs stay what they are, although half is computed in float."""

from __future__ import annotations

from typing import Any, Final

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import tlx
from tlx.evaluate import evaluate
from tlx.ir.parser.module import parse
from tlx.lower.pipeline import lower
from tlx.target.installed import targets

CPUS: Final = [name for name in targets() if name != "nvidia"]
DTYPES: Final[dict[str, tuple[Any, int]]] = {"half": (np.float16, 10), "bfloat": (ml_dtypes.bfloat16, 7)}
"""Type and bits of the fraction."""
NAMES: Final = {"half": "f16", "bfloat": "bf16"}
MASKS: Final = (*(1 << number for number in range(10)), 0, 0x3FF, 0x264, 0x90)
HARD_MASKS: Final = (0x90, 0x264, 1)
"""Subnormal numbers; zeros and infinities; signalling NaNs."""


def classes_of(bits: NDArray[np.uint16], fraction: int) -> NDArray[np.int32]:
    """The bit of `llvm.is.fpclass` of each number."""
    exponent, rest = (bits & 0x7FFF) >> fraction, bits & ((1 << fraction) - 1)
    is_top, is_quiet = exponent == 0x7FFF >> fraction, rest >> (fraction - 1) == 1
    unsigned = np.select(
        [is_top & (rest == 0), is_top & is_quiet, is_top, exponent > 0, rest > 0], [9, 1, 0, 8, 7], default=6
    )
    is_number = unsigned > 1
    return np.left_shift(1, np.where(is_number & (bits >> 15 == 1), 11 - unsigned, unsigned))


def module_of(element: str, count: int, masks: tuple[int, ...]) -> str:
    """`f.MASK` says which numbers are of the classes of each mask."""
    dims = f"<1 x i32> <i32 {count}>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer"
    callee = f"@llvm.is.fpclass.v{count}{NAMES[element]}"
    functions = [
        f"define void @f.{mask}(ptr noalias %x, ptr noalias %y) {{\n"
        f"  %t = call token @llvm.tensor.load(ptr elementtype({element}) %x, {dims}, <1 x i32> zeroinitializer)\n"
        f"  %v = call <{count} x {element}> @llvm.tensor.tovector(token %t)\n"
        f"  %c = call <{count} x i1> {callee}(<{count} x {element}> %v, i32 {mask})\n"
        f"  %u = call token @llvm.tensor.typeinfo(<{count} x i1> %c, {dims})\n"
        "  call void @llvm.tensor.store(ptr elementtype(i1) %y, token %u, <1 x i32> zeroinitializer)\n"
        "  ret void\n}\n"
        for mask in masks
    ]
    return f"{''.join(functions)}declare <{count} x i1> {callee}(<{count} x {element}>, i32)\n"


@pytest.mark.parametrize("target", CPUS)
@pytest.mark.parametrize("element", DTYPES)
def test_numbers_next_to_other_classes_are_told_apart(element: str, target: str) -> None:
    dtype, fraction = DTYPES[element]
    infinity = 0x8000 - (1 << fraction)
    ends = [0, 1 << fraction, infinity, infinity + 1, infinity + (1 << fraction - 1), 0x8000]
    bits = np.array([sign + end + near for sign in (0, 0x8000) for end in ends for near in (-1, 0, 1)]) & 0xFFFF
    numbers = bits.astype(np.uint16)
    lowered = lower(parse(module_of(element, numbers.size, MASKS)), target)
    for mask in MASKS:
        result = np.full(numbers.size, 7, np.int8)
        evaluate(lowered, f"f.{mask}", numbers.view(dtype), result)
        assert np.array_equal(result, classes_of(numbers, fraction) & mask != 0), hex(mask)


@pytest.mark.parametrize("element", DTYPES)
def test_every_number(element: str) -> None:
    dtype, fraction = DTYPES[element]
    numbers = np.arange(1 << 16).astype(np.uint16)
    compiled = tlx.compile(module_of(element, numbers.size, MASKS))
    for mask in MASKS:
        result = np.full(numbers.size, 7, np.int8)
        compiled[f"f.{mask}"](numbers.view(dtype), result)
        assert np.array_equal(result, classes_of(numbers, fraction) & mask != 0), hex(mask)
