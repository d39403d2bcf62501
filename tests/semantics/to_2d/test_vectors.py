"""Large flattened vectors in ordinary instructions that extract, insert or reduce elements."""

from __future__ import annotations

import numpy as np
import pytest

from tlx.evaluate import Machine
from tlx.intrinsics.numpy_types import Array
from tlx.ir.parser.module import parse
from tlx.lower.options import STAGE_NAMES, Options
from tlx.lower.pipeline import lower

_COUNT = 5100
_V = f"<{_COUNT} x T>"


_CASES = {
    "insert": f"""  %a = insertelement {_V} %x, T %one, i32 {_COUNT - 1}
  %b = insertelement {_V} %a, T %one, i64 %n
  store {_V} %b, ptr %q
""",
    "extract": f"""  %a = add {_V} %x, %y
  %e = extractelement {_V} %a, i64 %n
  store T %e, ptr %q
""",
}


def _text(body: str, element: str) -> str:
    integer = element.startswith("i")
    one = "add i32 7, 1" if element == "i32" else f"bitcast i32 7 to {element}"
    body = body if integer else body.replace(" add ", " fadd ")
    return (
        f"""
define void @f(ptr noalias %p, ptr noalias %q, i64 %n) {{
  %one = {one}
  %x = load {_V}, ptr %p
  %r = getelementptr {element}, ptr %p, i64 {_COUNT}
  %y = load {_V}, ptr %r
{body}  ret void
}}
""".replace("x T>", f"x {element}>")
        .replace(" T ", f" {element} ")
        .replace("(T ", f"({element} ")
        .replace("T %", f"{element} %")
    )


def _same(text: str, dtype: type[np.generic], size: int) -> Array:
    results: list[Array] = []
    for stage in (None, *STAGE_NAMES):
        module = parse(text)
        if stage is not None:
            module = lower(module, "avx512", options=Options(stop_after=stage))
        x: Array = np.random.default_rng(5).integers(-9, 10, 2 * _COUNT).astype(dtype)
        out: Array = np.full(size, 77, dtype)
        Machine(module).call("f", x, out, 13)
        results.append(out)
        np.testing.assert_array_equal(results[0], out, err_msg=str(stage))
    return results[0]


@pytest.mark.parametrize("element", ["i32", "float"])
@pytest.mark.parametrize("case", _CASES)
def test_moves(case: str, element: str) -> None:
    out = _same(_text(_CASES[case], element), {"i32": np.int32, "float": np.float32}[element], _COUNT)
    assert np.any(out != 77)


_INTEGER = ("add", "mul", "and", "or", "xor", "smax", "smin", "umax", "umin")


@pytest.mark.parametrize("kind", _INTEGER)
def test_integer_reductions(kind: str) -> None:
    body = f"  %e = call T @llvm.vector.reduce.{kind}.v{_COUNT}i32({_V} %x)\n  store T %e, ptr %q\n"
    out = _same(_text(body, "i32"), np.int32, 4)
    assert out[0] != 77


@pytest.mark.parametrize("kind", ["fadd", "fmul", "fmax", "fmin", "fmaximum", "reassoc fadd"])
def test_float_reductions(kind: str) -> None:
    flags, _, name = kind.rpartition(" ")
    start = "T 2.0, " if name in ("fadd", "fmul") else ""
    call = f"call {flags} T" if flags else "call T"
    body = f"  %e = {call} @llvm.vector.reduce.{name}.v{_COUNT}f32({start}{_V} %x)\n  store T %e, ptr %q\n"
    out = _same(_text(body, "float"), np.float32, 4)
    assert out[0] != 77
