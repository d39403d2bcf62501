"""C programs, evaluated against numpy, for all compilers and flags that affect raising."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from tests.support.tools import require
from tlx.evaluate import Machine
from tlx.frontends.c_header import include_dir
from tlx.ir.parser.module import parse
from tlx.lower import pipeline

INPUTS: Final = Path(__file__).parents[3] / "lit" / "frontends" / "c_header" / "Inputs"
COMPILERS: Final = ("clang-14", "clang-19")
FLAGS: Final = (
    "-O0",
    "-O0 -g",
    "-O0 -mavx512f",
    "-O1",
    "-O1 -g -mavx2",
    "-O2",
    "-O2 -mavx512f",
    "-O3 -mavx2",
    "-O0 -x c++ -std=c++17",
    "-O2 -x c++ -std=c++11",
)
Array = np.ndarray[Any, Any]


@cache
def machine(compiler: str, flags: str, name: str) -> Machine:
    """A machine with a program, raised and checked by the table's rules and by LLVM."""
    require(compiler)
    words = [*flags.split(), "-Wall", "-Werror", "-S", "-emit-llvm", f"-I{include_dir()}", "-o", "-"]
    done = subprocess.run([compiler, *words, str(INPUTS / name)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    module = pipeline.raise_front_ends(parse(done.stdout, name))
    pipeline.verify(module)
    assert "@tensor_" not in str(module)
    assert "@_ZN3tlx" not in str(module)
    return Machine(module, foreign={"outside": _nothing, "_Z7outsidei": _nothing})


def _nothing(_number: int) -> None:
    return None


def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def floats(count: int, dtype: str = "f4") -> Array:
    """Small whole numbers: products of a few are exact."""
    return rng().integers(-4, 5, count).astype(dtype)


def square(x: Array) -> Array:
    n = int(np.sqrt(x.size))
    return (x.reshape(n, n) @ x.reshape(n, n)).ravel()


def times(x: Array, y: Array) -> Array:
    return (x.reshape(4, 4) @ y.reshape(4, 4)).ravel()


Check = Callable[[Machine], None]


def _out(name: str, *args: Any, expected: Array) -> Check:
    """A function that writes its result through its first parameter."""

    def check(machine: Machine) -> None:
        out = np.zeros(16, "f4")
        machine.call(name, out, *args)
        np.testing.assert_array_equal(out, expected)

    return check


def _value(name: str, *args: Any, expected: Array) -> Check:
    """A function that returns its result."""

    def check(machine: Machine) -> None:
        got = machine.call(name, *(a.copy() if isinstance(a, np.ndarray) else a for a in args))
        np.testing.assert_array_equal(np.asarray(got), expected)

    return check


def _loop(name: str, count: int, start: int) -> Check:
    def check(machine: Machine) -> None:
        a = rng().integers(-128, 128, 32 * max(count, 1)).astype("i1")
        b = rng().integers(-128, 128, 32 * max(count, 1)).astype("i1")
        c = np.full(64, start, "i4")
        machine.call(name, c, a, b, count)
        expected = np.full((8, 8), start if name == "loop_token" else 0, "i4")
        for k in range(count):
            expected += a[32 * k :][:32].reshape(8, 4).astype("i4") @ b[32 * k :][:32].reshape(4, 8).astype("i4")
        np.testing.assert_array_equal(c.reshape(8, 8), expected)

    return check


def _small(machine: Machine) -> None:
    c2, c4 = np.array([1, 2], "i1"), np.array([1, -2, 3, 100], "i1")
    f2, h4 = np.array([1, 2], "f4"), np.array([1, 300, -3, 4], "i2")
    l1, d1 = np.array([-7], "i8"), np.array([1.5])
    before = [x.copy() for x in (c2, c4, h4)]
    machine.call("small", c2, c4, f2, h4, l1, d1)
    np.testing.assert_array_equal(c2, before[0])
    np.testing.assert_array_equal(c4, square(before[1]))
    np.testing.assert_array_equal(f2, [1.5, 1.5])
    np.testing.assert_array_equal(h4, square(before[2]))
    assert l1[0] == 49
    assert d1[0] == 2.25


def _odd(machine: Machine) -> None:
    c3, c5 = np.array([1, -2, 3, 0], "i1"), np.array([1, 2, 3, 4, 5, 0, 0, 0], "i1")
    h3, f3 = np.array([1, -300, 3, 0], "i2"), np.array([1, 2, 3, 0], "f4")
    before = c3.copy(), h3.copy()
    machine.call("odd", c3, c5, h3, f3)
    np.testing.assert_array_equal(c3[:3], 2 * before[0][:3])
    np.testing.assert_array_equal(c5[:5], full(-5, "i1", 5))
    np.testing.assert_array_equal(h3[:3], before[1][:3])
    np.testing.assert_array_equal(f3[:3], full(0.5, "f4", 3))


def _small_overloaded(machine: Machine) -> None:
    c4, f2 = np.array([1, -2, 3, 100], "i1"), np.array([1, 2], "f4")
    expected = square(c4)
    c3 = np.array([1, 2, 3, 77], "i1")
    machine.call("small_overloaded", c4, f2, c3)
    np.testing.assert_array_equal(c3[:3], [9, 9, 9])
    np.testing.assert_array_equal(c4, expected)
    np.testing.assert_array_equal(f2, [1.5, 1.5])


def _defined_in_loop(machine: Machine) -> None:
    a, out = floats(64), np.ones(16, "f4")
    machine.call("defined_in_loop", out, a, 3)
    expected = 1 + sum(square(a[16 * i :][:16]) for i in range(3)) + a[48:]
    np.testing.assert_array_equal(out, expected)


def _tensor36(machine: Machine) -> None:
    x, out = floats(16), np.zeros(9, "f4")
    machine.call("tensor36", out, x)
    np.testing.assert_array_equal(out, x[:9])


def _part(machine: Machine) -> None:
    source, to = np.arange(40, dtype="f4"), np.full(30, -1, "f4")
    machine.call("part", to, source)
    expected = np.full(30, -1, "f4")
    for row in range(3):
        expected[5 * row : 5 * row + 3] = source[7 * row : 7 * row + 3]
    np.testing.assert_array_equal(to, expected)


def _unknown_element(machine: Machine) -> None:
    source, like, to = floats(16), floats(16)[::-1].copy(), np.zeros(16, "f4")
    machine.call("unknown_element", to, source, like)
    np.testing.assert_array_equal(to, times(source, like))


def full(value: float, dtype: str = "f4", count: int = 16) -> Array:
    return np.full(count, value, dtype)


A, B, BIAS = floats(16), floats(16)[::-1].copy(), floats(16) * 2
PAIR: Final = np.concatenate([A, B])

PROGRAMS: Final[dict[str, Check]] = {
    "matmul": _out("matmul", A, B, expected=times(A, B)),
    "by_value": _value("by_value", A, B, expected=times(A, B)),
    "overwritten": _value("overwritten", A, expected=times(A, 2 * A)),
    "helpers": _out("helpers", A, B, expected=times(times(A, B), B)),
    "picked": _out("picked", A, B, 0, expected=square(B)),
    "picked_first": _out("picked", A, B, 1, expected=times(A, B)),
    "loop_value": _loop("loop_value", 3, 5),
    "loop_value_never": _loop("loop_value", 0, 5),
    "loop_token": _loop("loop_token", 3, 5),
    "loop_token_never": _loop("loop_token", 0, 5),
    "branch_use": _out("branch_use", A, B, 0, expected=times(B, A)),
    "branch_merge": _out("branch_merge", A, B, 0, expected=square(B)),
    "branch_merge_first": _out("branch_merge", A, B, 1, expected=square(A)),
    "branch_select": _out("branch_select", A, B, 1, expected=times(A, B)),
    "defined_in_loop": _defined_in_loop,
    "switched_0": _out("switched", PAIR, 0, expected=A),
    "switched_1": _out("switched", PAIR, 1, expected=square(B)),
    "switched_2": _out("switched", PAIR, 2, expected=square(B)),
    "switched_3": _out("switched", PAIR, 3, expected=square(A)),
    "switched_4": _out("switched", PAIR, 4, expected=times(A, B)),
    "tensor16": _value("tensor16", A[:4], expected=square(A[:4])),
    "tensor32": _value("tensor32", A[:8], expected=A[:8].reshape(2, 4).T.ravel()),
    "tensor36": _tensor36,
    "tensor256": _value("tensor256", floats(64), expected=square(floats(64))),
    "small": _small,
    "odd": _odd,
    "small_overloaded": _small_overloaded,
    "rank1": _value("rank1", A, expected=full(2)),
    **{name: _value(name, A, expected=square(A)) for name in ("rank3", "rank4", "rank5")},
    "constant_shape": _value("constant_shape", A, expected=square(A)),
    "computed_shape": _value("computed_shape", A, expected=square(A)),
    "scalar_float": _value("scalar_float", A, 2.5, expected=full(2.5)),
    "scalar_double": _value("scalar_double", A, 0.1, expected=full(0.1)),
    "scalar_widened": _value("scalar_widened", floats(4, "f8"), 2.5, expected=full(2.5, "f8", 4)),
    "scalar_char": _value("scalar_char", floats(16, "i1"), -100, expected=full(-100, "i1")),
    "scalar_constant": _value("scalar_constant", floats(16, "i1"), expected=full(-3, "i1")),
    "scalar_int": _value("scalar_int", floats(16, "i4"), -7, expected=full(-7, "i4")),
    "part": _part,
    "unknown_element": _unknown_element,
    "epilogue": _out("epilogue", A, B, BIAS, expected=(times(A, B) + BIAS) / 2),
    "unused": _out("unused", A, expected=A),
}


def _has_overloads(compiler: str, flags: str) -> bool:
    """C++ has, and C from clang 15 on."""
    return compiler != "clang-14" or "c++" in flags


@pytest.mark.parametrize(
    ("program", "compiler", "flags"),
    [
        (program, compiler, flags)
        for program in PROGRAMS
        for compiler in COMPILERS
        for flags in FLAGS
        if program != "small_overloaded" or _has_overloads(compiler, flags)
    ],
)
def test_program(program: str, compiler: str, flags: str) -> None:
    PROGRAMS[program](machine(compiler, flags, "programs.c"))


@pytest.mark.parametrize("flags", [f for f in FLAGS if "c++" not in f])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_own_prototypes(compiler: str, flags: str) -> None:
    own = machine(compiler, flags, "own.c")
    np.testing.assert_array_equal(own.call("matmul", A.copy(), B.copy(), 3.0), times(A, B) + 3)
    np.testing.assert_array_equal(own.call("matmul4", A[:4].copy(), B[:4].copy()), times22(A[:4], B[:4]))
    np.testing.assert_array_equal(own.call("matmul3", A.copy()), square(A))
    packed = own.call("bytes", int(np.array([1, -2, 3, 4], "i1").view("i4")[0]), 5)
    expected = times22(np.array([1, -2, 3, 4], "i1"), np.full(4, 5, "i1"))
    np.testing.assert_array_equal(np.array([packed], "i4").view("i1"), expected)
    to = np.zeros(16, "f4")
    own.call("copy", to, A)
    np.testing.assert_array_equal(to, A)


@pytest.mark.parametrize("flags", ["-O0 -std=c++11", "-O1 -std=c++11 -g", "-O2 -std=c++20 -mavx512f"])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_templates(compiler: str, flags: str) -> None:
    templates = machine(compiler, flags, "templates.cpp")
    for name, m, n, k in (("square", 4, 4, 4), ("outer", 4, 2, 1), ("inner", 1, 1, 16)):
        c, a, b = np.zeros(m * n, "f4"), floats(m * k), floats(k * n)
        templates.call(name, c, a, b)
        np.testing.assert_array_equal(c.reshape(m, n), np.maximum(2 * (a.reshape(m, k) @ b.reshape(k, n)), 0))


def times22(x: Array, y: Array) -> Array:
    return (x.reshape(2, 2) @ y.reshape(2, 2)).ravel()


@pytest.mark.parametrize("flags", FLAGS)
def test_elements_of_16_bits(flags: str) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    bfloat16 = np.dtype(ml_dtypes.bfloat16)
    half = machine("clang-19", flags, "half.c")
    a, b = floats(256), floats(256)[::-1].copy()
    out = np.zeros(256, "f4")
    expected = (a.reshape(16, 16) @ b.reshape(16, 16)).ravel()
    half.call("bfloats", out, a.astype(bfloat16), b.astype(bfloat16))
    np.testing.assert_array_equal(out, expected)
    half.call("halves", out, a.astype("f2"), b.astype("f2"))
    np.testing.assert_array_equal(out, expected)
    halves, bfloats = np.zeros(256, "f2"), np.zeros(256, bfloat16)
    half.call("scalars", halves, bfloats, 1.5, 2.5)
    assert (halves == 1.5).all()
    assert (bfloats == 2.5).all()
    h4, b2 = np.array([1, 2, 3, 4], "f2"), np.array([1, 2], bfloat16)
    expected = times22(h4, h4)
    half.call("small", h4, b2)
    np.testing.assert_array_equal(h4, expected)
