"""bfloat in functions of the program, on machines for which LLVM selects no code for it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from tests.semantics.machines.test_hexagon import HVX
from tests.support.emulation import Machine
from tests.support.tools import quick
from tlx.diagnostics import LoweringError
from tlx.evaluate import evaluate
from tlx.evaluate.values import BFLOAT16
from tlx.ir.parser.module import parse_fully
from tlx.lower.options import Options
from tlx.lower.pipeline import lower_text

MACHINES = [
    Machine("vsx", "qemu-ppc64 -one-insn-per-tb -cpu power9", ("+power9-vector",)),
    Machine("mma", "qemu-ppc64le -one-insn-per-tb -cpu power10"),
    Machine("generic", "qemu-ppc64le -one-insn-per-tb -cpu power9"),
]

COUNT = 12


def _spelled(text: str) -> str:
    """A text with types for the letters V, bfloat, and W, i64."""
    return re.sub(r"\bW\b", f"<{COUNT} x i64>", re.sub(r"\bV\b", f"<{COUNT} x bfloat>", text))


def _function(name: str, body: str) -> str:
    """A function of x, y (bfloat) and n (i64), whose body computes r (bfloat) and s (i64)."""
    sizes = f"<1 x i32> <i32 {COUNT}>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer"
    return f"""
define void @{name}(ptr %px, ptr %py, ptr %pn, ptr %pr, ptr %ps) {{
  %t = call token @llvm.tensor.load(ptr elementtype(bfloat) %px, {sizes})
  %relu = call V @llvm.tensor.relu(token %t)
  %x = load V, ptr %px, align 2
  %y = load V, ptr %py, align 2
  %n = load W, ptr %pn, align 8
{body}
  store V %r, ptr %pr, align 2
  store W %s, ptr %ps, align 8
  ret void
}}
"""


BODIES = {
    "arithmetic": """
  %a = fadd V %x, %y
  %b = fmul fast V %a, splat (bfloat 0xR3FC0)
  %c = fdiv V %b, %y
  %d = fsub V %c, %relu
  %r = fneg V %d
  %s = fptosi V %y to W""",
    "functions": """
  %a = call V @llvm.fabs.v12bf16(V %x)
  %b = call V @llvm.sqrt.v12bf16(V %a)
  %c = call V @llvm.maxnum.v12bf16(V %b, V %y)
  %d = call V @llvm.copysign.v12bf16(V %c, V %x)
  %r = call V @llvm.floor.v12bf16(V %d)
  %s = call W @llvm.fptosi.sat.v12i64.v12bf16(V %y)""",
    "conversions": """
  %a = sitofp W %n to V
  %b = fpext V %x to <12 x double>
  %c = fmul <12 x double> %b, splat (double 0x3FF0101010101010)
  %d = fptrunc <12 x double> %c to V
  %e = fptrunc <12 x double> %c to <12 x half>
  %f = fpext <12 x half> %e to <12 x float>
  %g = fptrunc <12 x float> %f to V
  %h = fadd V %d, %g
  %r = fadd V %a, %h
  %s = fptoui V %y to W""",
    "scalars": """
  %a = extractelement V %x, i32 1
  %b = extractelement V %y, i32 2
  %less = fcmp olt bfloat %a, %b
  br i1 %less, label %then, label %end
then:
  %k = extractelement W %n, i32 0
  %c = uitofp i64 %k to bfloat
  br label %end
end:
  %d = phi bfloat [ 2.5, %0 ], [ %c, %then ]
  %e = call bfloat @twice(bfloat %d)
  %f = select i1 %less, bfloat %e, bfloat 0xR4000
  %g = fptosi bfloat %f to i64
  %r = insertelement V %x, bfloat %f, i32 3
  %s = insertelement W %n, i64 %g, i32 5""",
    "lanes": """
  %z = shufflevector V %x, V <CONSTANT>, <4 x i32> <i32 0, i32 13, i32 2, i32 15>
  %a = shufflevector <4 x bfloat> %z, <4 x bfloat> undef, <12 x i32> <SLOTS>
  %m = fcmp ogt V %a, %y
  %b = select nnan <12 x i1> %m, V %a, V %y
  %t1 = call bfloat @llvm.vector.reduce.fadd.v12bf16(bfloat 1.0, V %b)
  %t2 = call bfloat @llvm.vector.reduce.fmax.v12bf16(V %b)
  %t3 = fmul bfloat %t1, %t2
  %r = insertelement V %b, bfloat %t3, i64 0
  %s = zext <12 x i1> %m to W""".replace("<CONSTANT>", f"<{', '.join(f'bfloat {n}.5' for n in range(COUNT))}>").replace(
        "<SLOTS>", f"<{', '.join(f'i32 {n % 4}' for n in range(COUNT))}>"
    ),
}
TWICE = """
define internal bfloat @twice(bfloat noundef %x) {
  %r = fadd bfloat %x, %x
  ret bfloat %r
}
"""
DECLARED = """
declare V @llvm.fabs.v12bf16(V)
declare V @llvm.sqrt.v12bf16(V)
declare V @llvm.maxnum.v12bf16(V, V)
declare V @llvm.copysign.v12bf16(V, V)
declare V @llvm.floor.v12bf16(V)
declare W @llvm.fptosi.sat.v12i64.v12bf16(V)
declare bfloat @llvm.vector.reduce.fadd.v12bf16(bfloat, V)
declare bfloat @llvm.vector.reduce.fmax.v12bf16(V)
"""


TEXT = _spelled("".join(_function(name, body) for name, body in BODIES.items()) + TWICE + DECLARED)


def _arguments() -> list[Any]:
    random = np.random.default_rng(3)
    x, y = (random.normal(scale=40, size=COUNT).astype(BFLOAT16) for _ in range(2))
    y = np.abs(y)
    n = random.integers(1, 1 << 60, COUNT)
    n[:4] = [1 << 55, (1 << 54) + (1 << 46) + 1, 257, 3]
    return [x, y, n, np.zeros(COUNT, BFLOAT16), np.zeros(COUNT, np.int64)]


@pytest.mark.parametrize("machine", quick(MACHINES, 2), ids=str)
def test_operations(machine: Machine) -> None:
    code, module = machine.compile(TEXT), parse_fully(TEXT)
    assert "bfloat" not in code.lowered
    for name in BODIES:
        found, exact = _arguments(), _arguments()
        code[name](*found)
        evaluate(module, name, *exact)
        for got, wanted in zip(found, exact, strict=True):
            np.testing.assert_array_equal(got, wanted, err_msg=name)
    code.close()


SUM = """
define void @sum(ptr %x, ptr %y, ptr %r) {
  %t = call token @llvm.tensor.load(ptr elementtype(bfloat) %x, <1 x i32> <i32 32>, FLAT)
  %u = call token @llvm.tensor.load(ptr elementtype(bfloat) %y, <1 x i32> <i32 32>, FLAT)
  %a = call <32 x bfloat> @llvm.tensor.tovector(token %t)
  %b = call <32 x bfloat> @llvm.tensor.tovector(token %u)
  %s = fadd <32 x bfloat> %a, %b
  store <32 x bfloat> %s, ptr %r, align 2
  ret void
}
""".replace("FLAT", ", ".join(["<1 x i32> zeroinitializer"] * 3))


@pytest.mark.parametrize("machine", [Machine("generic", "qemu-hexagon"), HVX], ids=str)
def test_nan_of_all_ones(machine: Machine) -> None:
    """Hexagon's arithmetic makes such a NaN, which rounding must not carry into the sign."""
    x, y = np.full(32, np.inf, BFLOAT16), np.full(32, -np.inf, BFLOAT16)
    x[3], y[5], result = 1.5, 2.5, np.zeros(32, BFLOAT16)
    code = machine.compile(SUM)
    code.sum(x, y, result)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(result.astype(np.float32), x.astype(np.float32) + y.astype(np.float32))
    code.close()


EXTERNAL = _spelled(
    _function(
        "f",
        """  %e = extractelement V %x, i32 0
  %c = call bfloat @g(bfloat %e)
  %r = insertelement V %x, bfloat %c, i32 0
  %s = add W %n, %n""",
    )
)


def test_calls_of_other_modules() -> None:
    """No compiler passes bfloat on such machines."""
    options = Options(triple="powerpc64le-linux-gnu")
    with pytest.raises(LoweringError, match="a call to @g, which takes or returns bfloat, is not possible"):
        lower_text(f"{EXTERNAL}\ndeclare bfloat @g(bfloat)\n", target="vsx", options=options)
