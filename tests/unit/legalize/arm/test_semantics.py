"""The meaning of Arm's products, compared bit by bit with QEMU's."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.emulation import Machine as EmulatedMachine
from tlx.evaluate import Machine
from tlx.evaluate.values import BFLOAT16
from tlx.ir.parser.module import parse
from tlx.legalize.arm.semantics import SEMANTICS

Array = NDArray[Any]
MACHINE: Final = EmulatedMachine("generic", "qemu-aarch64 -cpu max,sve256=on,sve-default-vector-length=32")
FEATURES: Final = '"target-features"="+neon,+sve,+dotprod,+i8mm,+bf16,+fullfp16"'
BYTES: Final = [f"{signs}{kind}" for signs in ("s", "u", "us") for kind in ("dot", "mmla")]
BFLOATS: Final = ["bfdot", "bfmmla"]
NEON_SUFFIXES: Final = {"bfdot": ".v4f32.v8bf16", "bfmmla": ""} | dict.fromkeys(BYTES, ".v4i32.v16i8")
CALLS: Final = 300


def _neon(name: str) -> str:
    """A function of one instruction on registers of 16 bytes in memory."""
    total, operand = ("<4 x float>", "<8 x bfloat>") if name in BFLOATS else ("<4 x i32>", "<16 x i8>")
    intrinsic = f"@llvm.aarch64.neon.{name}{NEON_SUFFIXES[name]}"
    return f"""
declare {total} {intrinsic}({total}, {operand}, {operand})
define void @neon_{name}(ptr %acc, ptr %lhs, ptr %rhs) {FEATURES} {{
  %c = load {total}, ptr %acc, align 1
  %a = load {operand}, ptr %lhs, align 1
  %b = load {operand}, ptr %rhs, align 1
  %r = call {total} {intrinsic}({total} %c, {operand} %a, {operand} %b)
  store {total} %r, ptr %acc, align 1
  ret void
}}
"""


def _sve(name: str) -> str:
    """The same on registers of 32 bytes; the left operand of a matrix product repeats 16 of them."""
    is_bfloat = name in BFLOATS
    total, short = ("float", "f32") if is_bfloat else ("i32", "i32")
    element, mangled, lanes = ("bfloat", "bf16", 8) if is_bfloat else ("i8", "i8", 16)
    sums, operand = f"<vscale x 4 x {total}>", f"<vscale x {lanes} x {element}>"
    intrinsic = f"@llvm.aarch64.sve.{name}{'' if is_bfloat else '.nxv4i32'}"
    repeat = f"@llvm.aarch64.sve.dupq.lane.nxv{lanes}{mangled}"
    lhs = f"%a = call {operand} {repeat}({operand} %x, i64 1)" if name.endswith("mmla") else ""
    insert, extract = "@llvm.experimental.vector.insert", "@llvm.experimental.vector.extract"
    to_sums, from_sums = f"{insert}.nxv4{short}.v8{short}", f"{extract}.v8{short}.nxv4{short}"
    to_operand = f"{insert}.nxv{lanes}{mangled}.v{2 * lanes}{mangled}"
    fixed = f"<{2 * lanes} x {element}>"
    return f"""
define void @sve_{name}(ptr %acc, ptr %lhs, ptr %rhs) vscale_range(2,2) {FEATURES} {{
  %u = load <8 x {total}>, ptr %acc, align 1
  %v = load {fixed}, ptr %lhs, align 1
  %w = load {fixed}, ptr %rhs, align 1
  %c = call {sums} {to_sums}({sums} undef, <8 x {total}> %u, i64 0)
  %x = call {operand} {to_operand}({operand} undef, {fixed} %v, i64 0)
  %b = call {operand} {to_operand}({operand} undef, {fixed} %w, i64 0)
  {lhs}
  %r = call {sums} {intrinsic}({sums} %c, {operand} {"%a" if lhs else "%x"}, {operand} %b)
  %s = call <8 x {total}> {from_sums}({sums} %r, i64 0)
  store <8 x {total}> %s, ptr %acc, align 1
  ret void
}}
"""


def _declarations(text: str) -> str:
    """Declarations of the intrinsics that SVE's functions call."""
    calls = {line.split("call ", 1)[1] for line in text.splitlines() if "call <" in line and "neon" not in line}
    found: dict[str, str] = {}
    for call in calls:
        head, arguments = call.split("(", 1)
        types = [part.rpartition(" ")[0].strip() for part in arguments.rstrip(")").split(", ")]
        found[head.rpartition("@")[2]] = f"declare {head}({', '.join(types)})"
    return "\n".join(found.values())


NEON_TEXT: Final = "".join(map(_neon, (*BYTES, *BFLOATS)))
SVE_TEXT: Final = "".join(map(_sve, (*BYTES, *BFLOATS)))
TEXT: Final = f"{NEON_TEXT}\n{_declarations(SVE_TEXT)}\n{SVE_TEXT}"


def _bytes(random: np.random.Generator, count: int) -> list[Array]:
    """Sums and operands of a product of bytes, extremes among them."""
    operands = [np.where(random.random(count) < 0.2, -128, random.integers(-128, 128, count)) for _ in range(2)]
    sums = random.integers(-(1 << 31), 1 << 31, count // 4)
    return [sums.astype(np.int32), *(operand.astype(np.int8) for operand in operands)]


def _bfloats(random: np.random.Generator, count: int) -> list[Array]:
    """Sums and operands of a product of bfloat: of all sizes, with subnormals, zeros, infinities, NaN and ties."""
    scale = random.choice((4, 30, 140))

    def numbers(size: int) -> Array:
        numbers = random.normal(size=size) * 2.0 ** random.integers(-scale, scale, size).astype(float)
        special = random.choice([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -3e-39, 2.0**-126, 3e38], size)
        return np.where(random.random(size) < 0.06, special, numbers).astype(np.float32)

    operands = [(numbers(count // 2).view(np.uint32) >> 16).astype(np.uint16).view(BFLOAT16) for _ in range(2)]
    return [numbers(count // 4), *operands]


@pytest.mark.parametrize("size", [16, 32], ids=["neon", "sve"])
def test_products(size: int) -> None:
    emulated = MACHINE.compile(TEXT, opt_level=1)
    evaluated = Machine(parse(TEXT))
    random = np.random.default_rng(1)
    for name in (*BYTES, *BFLOATS):
        function = f"{'neon' if size == 16 else 'sve'}_{name}"
        for _ in range(CALLS):
            with np.errstate(all="ignore"):
                acc, lhs, rhs = (_bfloats if name in BFLOATS else _bytes)(random, size)
            there, here = acc.copy(), acc.copy()
            emulated[function](there, lhs, rhs)
            evaluated.call(function, here, lhs, rhs)
            np.testing.assert_array_equal(here, there, f"{name} of {lhs} and {rhs}, added to {acc}")
    emulated.close()


def test_all_products_are_compared() -> None:
    products = {name.rpartition(".")[2] for name in SEMANTICS.intrinsics if name.endswith(("dot", "mmla"))}
    assert products == {*BYTES, *BFLOATS}
