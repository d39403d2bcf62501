"""The meaning of Power10's outer products, compared bit by bit with QEMU's."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tests.support.emulation import Machine as EmulatedMachine
from tlx.evaluate import Machine
from tlx.evaluate.values import BFLOAT16
from tlx.ir.parser.module import parse
from tlx.legalize.power.semantics import SEMANTICS

Array = NDArray[Any]
MACHINE: Final = EmulatedMachine("generic", "qemu-ppc64le -cpu power10")
FEATURES: Final = '"target-cpu"="pwr10" "target-features"="+vsx,+mma,+paired-vector-memops"'
CALLS: Final = 300
ELEMENTS: Final = {
    "xvf32gerpp": (np.float32, np.float32),
    "xvf64gerpp": (np.float64, np.float64),
    "xvbf16ger2pp": (BFLOAT16, np.float32),
    "xvf16ger2pp": (np.float16, np.float32),
    "xvi8ger4pp": (np.int8, np.int32),
}
"""Element types of operands and of sums."""
ROWS: Final = ", ".join(["<16 x i8>"] * 4)


def _function(name: str) -> str:
    """A function of one instruction on an accumulator and operands in memory, from their first rows on."""
    operand, pair = "<16 x i8> %a0", ""
    if name == "xvf64gerpp":
        operand = "<256 x i1> %p"
        pair = "%p = call <256 x i1> @llvm.ppc.vsx.assemble.pair(<16 x i8> %a1, <16 x i8> %a0)"
    loads = "".join(
        f"  %p{i} = getelementptr i8, ptr %acc, i64 {16 * i}\n  %c{i} = load <16 x i8>, ptr %p{i}, align 1\n"
        for i in range(4)
    )
    stores = "".join(
        f"  %r{i} = extractvalue {{ {ROWS} }} %rows, {i}\n  store <16 x i8> %r{i}, ptr %p{i}, align 1\n"
        for i in range(4)
    )
    return f"""
declare <512 x i1> @llvm.ppc.mma.{name}(<512 x i1>, {operand.rpartition(" ")[0]}, <16 x i8>)
define void @{name}(ptr %acc, ptr %lhs, ptr %rhs) {FEATURES} {{
{loads}  %c = call <512 x i1> @llvm.ppc.mma.assemble.acc({", ".join(f"<16 x i8> %c{i}" for i in (3, 2, 1, 0))})
  %a0 = load <16 x i8>, ptr %lhs, align 1
  %upper = getelementptr i8, ptr %lhs, i64 16
  %a1 = load <16 x i8>, ptr %upper, align 1
  {pair}
  %b = load <16 x i8>, ptr %rhs, align 1
  %d = call <512 x i1> @llvm.ppc.mma.{name}(<512 x i1> %c, {operand}, <16 x i8> %b)
  %rows = call {{ {ROWS} }} @llvm.ppc.mma.disassemble.acc(<512 x i1> %d)
{stores}  ret void
}}
"""


TEXT: Final = f"""
declare <512 x i1> @llvm.ppc.mma.assemble.acc({ROWS})
declare {{ {ROWS} }} @llvm.ppc.mma.disassemble.acc(<512 x i1>)
declare <256 x i1> @llvm.ppc.vsx.assemble.pair(<16 x i8>, <16 x i8>)
{"".join(map(_function, ELEMENTS))}"""


def _numbers(random: np.random.Generator, count: int, element: Any) -> Array:
    """Numbers of all sizes, with extremes, subnormals, zeros, infinities and NaN."""
    dtype = np.dtype(element)
    if dtype.kind == "i":
        info = np.iinfo(dtype)
        return random.integers(info.min, info.max, count, dtype, endpoint=True)
    scale = random.choice((4, 12, 30, 140))
    numbers = random.normal(size=count) * 2.0 ** random.integers(-scale, scale, count).astype(float)
    special = random.choice([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -3e-39, 2.0**-126, 6e-8, 3e38], count)
    with np.errstate(all="ignore"):
        return np.where(random.random(count) < 0.06, special, numbers).astype(np.float32).astype(dtype)


def test_products() -> None:
    emulated = MACHINE.compile(TEXT, opt_level=1)
    evaluated = Machine(parse(TEXT))
    random = np.random.default_rng(1)
    for name, (operand, total) in ELEMENTS.items():
        for _ in range(CALLS):
            acc = _numbers(random, 64 // np.dtype(total).itemsize, total)
            lhs, rhs = (_numbers(random, size // np.dtype(operand).itemsize, operand) for size in (32, 16))
            there, here = acc.copy(), acc.copy()
            emulated[name](*(array.view(np.int8) for array in (there, lhs, rhs)))
            evaluated.call(name, *(array.view(np.int8) for array in (here, lhs, rhs)))
            np.testing.assert_array_equal(here, there, f"{name} of {lhs} and {rhs}, added to {acc}")
    emulated.close()


def test_all_products_are_compared() -> None:
    products = {name.rpartition(".")[2] for name in SEMANTICS.intrinsics if name.endswith("pp")}
    assert products == {*ELEMENTS}
