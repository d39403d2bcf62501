"""The meaning of SME's outer products, compared bit by bit with QEMU's."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.emulation import Machine as EmulatedMachine
from tlx.diagnostics import EvaluationError
from tlx.evaluate import Machine
from tlx.evaluate.values import BFLOAT16
from tlx.ir.parser.module import parse
from tlx.legalize.arm.semantics import SEMANTICS

Array = NDArray[Any]
MACHINE: Final = EmulatedMachine("generic", "qemu-aarch64 -cpu max,sme256=on,sme-default-vector-length=32")
WORDS: Final = 8
CALLS: Final = 60
OPERANDS: Final = {
    "mopa": ("float", "f32", 1, np.float32),
    "mopa.wide.half": ("half", "f16", 2, np.float16),
    "mopa.wide.bfloat": ("bfloat", "bf16", 2, BFLOAT16),
    **{f"{signs}mopa.wide": ("i8", "i8", 4, np.int8) for signs in ("s", "u", "us", "su")},
}
"""Element, its spelling in names, and how many are in a word, by instruction."""
LOAD: Final = "llvm.aarch64.sme.ld1w.horiz"
STORE: Final = "llvm.aarch64.sme.st1w.horiz"
ATTRIBUTES: Final = (
    'nounwind "aarch64_pstate_sm_body" "aarch64_new_za" vscale_range(2,2) "target-features"="+neon,+sve,+sme,+bf16"'
)


def _slices(name: str, pointer: str) -> str:
    """Rows of a tile to or from memory."""
    return "".join(
        f"""
  {pointer}.{row} = getelementptr i8, ptr {pointer}, i64 {4 * WORDS * row}
  call void @{name}(<vscale x 4 x i1> %words, ptr {pointer}.{row}, i32 2, i32 {row})"""
        for row in range(WORDS)
    )


def _function(name: str) -> str:
    """A function of one product on tile 2, with its declarations."""
    element, mangled, width, _ = OPERANDS[name]
    lanes, stem = 4 * width, "mopa.wide" if name.startswith("mopa.w") else name
    operand, fixed, mask = f"<vscale x {lanes} x {element}>", f"<{2 * lanes} x {element}>", f"<vscale x {lanes} x i1>"
    insert = f"@llvm.experimental.vector.insert.nxv{lanes}{mangled}.v{2 * lanes}{mangled}"
    product, all_of = f"@llvm.aarch64.sme.{stem}.nxv{lanes}{mangled}", "@llvm.aarch64.sve.ptrue"
    pattern = {8: 8, 16: 9, 32: 10}[2 * lanes]
    stores = _slices(STORE, "%acc").replace("%acc.", "%to.")
    return f"""
declare {operand} {insert}({operand}, {fixed}, i64)
declare void {product}(i32, {mask}, {mask}, {operand}, {operand})
declare {mask} {all_of}.nxv{lanes}i1(i32)
define void @{name.replace(".", "_")}(ptr %acc, ptr %lhs, ptr %rhs) {ATTRIBUTES} {{
  %words = call <vscale x 4 x i1> {all_of}.nxv4i1(i32 8)
  %all = call {mask} {all_of}.nxv{lanes}i1(i32 {pattern}){_slices(LOAD, "%acc")}
  %v = load {fixed}, ptr %lhs, align 1
  %w = load {fixed}, ptr %rhs, align 1
  %a = call {operand} {insert}({operand} undef, {fixed} %v, i64 0)
  %b = call {operand} {insert}({operand} undef, {fixed} %w, i64 0)
  call void {product}(i32 2, {mask} %all, {mask} %all, {operand} %a, {operand} %b){stores}
  ret void
}}
"""


def _text() -> str:
    lines = "".join(map(_function, OPERANDS)).splitlines()
    slices = [f"declare void @{name}(<vscale x 4 x i1>, ptr, i32, i32)" for name in (LOAD, STORE)]
    declarations = dict.fromkeys([*slices, *(line for line in lines if line.startswith("declare"))])
    support = [f"define weak void @__arm_tpidr2_{name}() {{\n  ret void\n}}" for name in ("save", "restore")]
    return "\n".join([*declarations, *(line for line in lines if not line.startswith("declare")), *support])


TEXT: Final = _text()


def _arguments(random: np.random.Generator, name: str) -> list[Array]:
    """Sums and operands: of all sizes, with subnormals, zeros, infinities, NaN and ties; extremes of bytes."""
    _, _, width, dtype = OPERANDS[name]
    if dtype is np.int8:
        count = 4 * WORDS
        operands = [np.where(random.random(count) < 0.2, -128, random.integers(-128, 128, count)) for _ in range(2)]
        sums = random.integers(-(1 << 31), 1 << 31, WORDS * WORDS)
        return [sums.astype(np.int32), *(operand.astype(np.int8) for operand in operands)]
    scale = random.choice((4, 30, 140))

    def numbers(size: int) -> Array:
        numbers = random.normal(size=size) * 2.0 ** random.integers(-scale, scale, size).astype(float)
        special = random.choice([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -3e-39, 2.0**-126, 3e38, 3e-8], size)
        return np.where(random.random(size) < 0.06, special, numbers).astype(np.float32)

    return [numbers(WORDS * WORDS), *(numbers(width * WORDS).astype(dtype) for _ in range(2))]


@pytest.mark.parametrize("name", OPERANDS)
def test_products(name: str) -> None:
    emulated = MACHINE.compile(TEXT, opt_level=1)
    evaluated = Machine(parse(TEXT))
    random = np.random.default_rng(1)
    function = name.replace(".", "_")
    for _ in range(CALLS):
        with np.errstate(all="ignore"):
            acc, lhs, rhs = _arguments(random, name)
        there, here = acc.copy(), acc.copy()
        emulated[function](there, lhs, rhs)
        evaluated.call(function, here, lhs, rhs)
        np.testing.assert_array_equal(here, there, f"{name} of {lhs} and {rhs}, added to {acc}")
    emulated.close()


def test_tiles_that_are_not_written_cannot_be_read() -> None:
    text = TEXT.replace(f"call void @{LOAD}", f"call void @{STORE}")
    with pytest.raises(EvaluationError, match="tile 2 of ZA is read before it is written"):
        Machine(parse(text)).call("mopa", np.zeros(WORDS * WORDS, np.float32), *(np.ones(WORDS, np.float32),) * 2)


def test_all_products_are_compared() -> None:
    products = [name for name in SEMANTICS.intrinsics if "mopa" in name]
    assert len(products) == len(OPERANDS)
