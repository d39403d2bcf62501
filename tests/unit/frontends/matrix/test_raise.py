"""LLVM's matrix intrinsics and the tensor operations they are raised to compute the same."""

from __future__ import annotations

import random
from functools import partial
from typing import Any, Final

import numpy as np
import pytest

import tlx
from tlx.evaluate import Machine
from tlx.ir.module import Module
from tlx.ir.parser.module import parse
from tlx.lower import pipeline

ELEMENTS: Final = {
    "i8": "int8",
    "i32": "int32",
    "i64": "int64",
    "half": "float16",
    "float": "float32",
    "double": "float64",
}
SIZE: Final = 4096


def program(seed: int) -> tuple[str, str, int]:
    """A function `void f(ptr c, ptr a, ptr b, i64 stride)`, its element type, and the stride to call it with."""
    r = random.Random(seed)
    element = r.choice(list(ELEMENTS))
    stride = r.randint(12, 20)
    typed = r.random() < 0.5
    pointer = f"{element}*" if typed else "ptr"
    mangled = {"half": "f16", "float": "f32", "double": "f64"}.get(element, element)
    rows, inner, columns = (r.randint(1, 12) for _ in range(3))

    def form() -> tuple[str, str]:
        operand = r.choice(["%stride", str(r.randint(12, 20))])
        return f"i64 {operand}", f"i1 {r.choice(['true', 'false', 'false'])}"

    def load(name: str, source: str, height: int, width: int) -> str:
        where, volatile = form()
        vector = f"<{height * width} x {element}>"
        callee = f"@llvm.matrix.column.major.load.v{height * width}{mangled}.i64"
        declared[callee] = f"declare {vector} {callee}({pointer}, i64, i1, i32, i32)"
        return f"%{name} = call {vector} {callee}({pointer} %{source}, {where}, {volatile}, i32 {height}, i32 {width})"

    def flip(name: str, source: str, height: int, width: int) -> str:
        count = height * width
        callee = f"@llvm.matrix.transpose.v{count}{mangled}"
        declared[callee] = f"declare <{count} x {element}> {callee}(<{count} x {element}>, i32, i32)"
        return (
            f"%{name} = call <{count} x {element}> {callee}(<{count} x {element}> %{source}, i32 {height}, i32 {width})"
        )

    declared: dict[str, str] = {}
    lines = [load("x", "a", rows, inner)]
    if r.random() < 0.5:
        lines += [load("z", "b", columns, inner), flip("y", "z", columns, inner)]
    else:
        lines += [load("y", "b", inner, columns)]
    result, left, right = (f"<{n} x {element}>" for n in (rows * columns, rows * inner, inner * columns))
    names = [f"v{n}{mangled}" for n in (rows * columns, rows * inner, inner * columns)]
    callee = f"@llvm.matrix.multiply.{'.'.join(names)}"
    declared[callee] = f"declare {result} {callee}({left}, {right}, i32, i32, i32)"
    lines += [f"%m = call {result} {callee}({left} %x, {right} %y, i32 {rows}, i32 {inner}, i32 {columns})"]
    where, volatile = form()
    callee = f"@llvm.matrix.column.major.store.{names[0]}.i64"
    declared[callee] = f"declare void {callee}({result}, {pointer}, i64, i1, i32, i32)"
    lines += [
        f"call void {callee}({result} %m, {pointer} %c, {where}, {volatile}, i32 {rows}, i32 {columns})",
        "ret void",
    ]
    body = "\n".join(f"  {line}" for line in lines)
    head = f"define void @f({pointer} %c, {pointer} %a, {pointer} %b, i64 %stride) {{"
    return "\n".join([head, body, "}", *declared.values(), ""]), element, stride


def outcome(run: Any, element: str, stride: int) -> np.ndarray[Any, Any]:
    """What a function leaves in memory, whose numbers are so small that every sum is exact."""
    random_numbers = np.random.default_rng(0)
    c, a, b = (random_numbers.integers(-4, 5, SIZE).astype(ELEMENTS[element]) for _ in range(3))
    run(c, a, b, stride)
    return c


def evaluated(module: Module, element: str, stride: int) -> np.ndarray[Any, Any]:
    return outcome(partial(Machine(module).call, "f"), element, stride)


@pytest.mark.parametrize("seed", range(40))
def test_raising_keeps_what_is_computed(seed: int) -> None:
    text, element, stride = program(seed)
    expected = evaluated(parse(text), element, stride)
    raised = pipeline.raise_front_ends(parse(text))
    assert "llvm.matrix" not in str(raised)
    assert "llvm.tensor.matmul" in str(raised)
    pipeline.verify(raised)
    np.testing.assert_array_equal(evaluated(raised, element, stride), expected)


@pytest.mark.parametrize("seed", range(40, 46))
def test_machine_code_computes_the_same(seed: int) -> None:
    text, element, stride = program(seed)
    expected = evaluated(parse(text), element, stride)
    compiled = tlx.compile(text, target="generic")
    np.testing.assert_array_equal(outcome(compiled.f, element, stride), expected)


def test_modules_without_matrices_are_not_raised() -> None:
    text = (
        "define void @f() {\n  ret void\n}\n\ndeclare <4 x float> @llvm.matrix.transpose.v4f32(<4 x float>, i32, i32)\n"
    )
    assert pipeline.has_work(text)
    assert str(pipeline.raise_front_ends(parse(text))) == text
