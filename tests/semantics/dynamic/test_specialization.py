"""Functions of run-time sizes for known sizes, as devices compile them: they mean the same to the evaluator."""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest

from tests.semantics.dynamic.programs import Body
from tests.semantics.dynamic.test_dynamic import PROGRAMS, arguments, compare, evaluated, expected
from tlx.ir.parser.module import parse, parse_fully
from tlx.lower.dynamic.specialization import size_parameters, specialize

_UNKNOWN: Final = ("onto_itself",)
"""Sizes that a loop changes."""
_OF_SIZES: Final = sorted(name for name, p in PROGRAMS.items() if size_parameters(parse(p.text)))


@pytest.mark.parametrize("name", [name for name in _OF_SIZES if name not in _UNKNOWN])
def test_programs_of_known_sizes_mean_the_same(name: str) -> None:
    program = PROGRAMS[name]
    size = program.sizes[min(2, len(program.sizes) - 1)]
    given = arguments(program, size)
    sizes = {number: int(given[number]) for number in size_parameters(parse(program.text))[name]}
    module = specialize(program.text, name, sizes)
    assert "vscale" not in str(module)
    compare(program, evaluated(module, name, given), expected(name, size))


def test_a_splat_for_handles_of_two_sizes() -> None:
    """LLVM's optimiser makes one of equal splats."""
    t = Body()
    values = [t.op("exp", "float", t.load(pointer, "float", [size])) for pointer, size in (("%x", "%n"), ("%y", "%m"))]
    first = t.vscale("insertelement H poison, float %s, i64 0")
    splat = t.vscale(f"shufflevector H {first}, <vscale x 1 x float> poison, <vscale x 1 x i32> zeroinitializer")
    for pointer, size, value in (("%x", "%n", values[0]), ("%y", "%m", values[1])):
        t.put(pointer, t.vscale(f"fadd H {value}, {splat}"), "float", [size])
    body = "\n".join(t.lines)
    text = f"define void @f(ptr %x, ptr %y, float %s, i32 %n, i32 %m) {{\n{body}\n  ret void\n}}\n"
    module = specialize(text, "f", {3: 2, 4: 3})
    assert "vscale" not in str(module)
    x, y, *_ = evaluated(parse_fully(str(module)), "f", [np.zeros(2, "f4"), np.zeros(3, "f4"), np.float32(2), 2, 3])
    np.testing.assert_array_equal(x, np.full(2, 3, "f4"))
    np.testing.assert_array_equal(y, np.full(3, 3, "f4"))


@pytest.mark.parametrize("intrinsic", ["llvm.tensor.typeinfo", "llvm.vector.totensor"])
def test_elements_are_no_sizes(intrinsic: str) -> None:
    text = f"""define void @f(ptr %x, ptr %y) {{
  %v = load <12 x i32>, ptr %x
  %t = call token @{intrinsic}(<12 x i32> %v, <1 x i32> <i32 12>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %y, token %t, <1 x i32> zeroinitializer)
  ret void
}}
"""
    assert size_parameters(parse(text)) == {}
