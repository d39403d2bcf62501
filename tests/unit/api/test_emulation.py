"""Functions of other machines, called under an emulator."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from tests.support.emulation import Machine, on_generic_machines
from tlx.api.arguments import ArgumentError
from tlx.api.emulation import compile_emulated
from tlx.api.signatures import CallParameter, Prototype
from tlx.api.wrappers import slot_wrapper_definition
from tlx.cli.run import run
from tlx.diagnostics import UsageError
from tlx.ir.types import I64, VectorType
from tlx.llvm.emulator import EmulationError, Guard, emulator_triple

MATMUL = """
define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %x = call token @llvm.tensor.load(ptr elementtype(TYPE) %a, <2 x i32> <i32 9, i32 14>, LAYOUT)
  %y = call token @llvm.tensor.load(ptr elementtype(TYPE) %b, <2 x i32> <i32 14, i32 21>, LAYOUT)
  %p = call <189 x RESULT> @llvm.tensor.matmul(token %x, token %y)
  store <189 x RESULT> %p, ptr %c, align 1
  ret void
}
""".replace("LAYOUT", "<2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer")
VALUES = """
define i32 @add(i32 %x, i16 %y) {
  %z = sext i16 %y to i32
  %s = add i32 %x, %z
  ret i32 %s
}
define double @scale(float %x, double %y) {
  %z = fpext float %x to double
  %p = fmul double %z, %y
  ret double %p
}
define <4 x i16> @doubled(<4 x i16> %x) {
  %s = add <4 x i16> %x, %x
  ret <4 x i16> %s
}
define i1 @is_less(i64 %x, i64 %y) {
  %c = icmp slt i64 %x, %y
  ret i1 %c
}
define void @copied(ptr %to, ptr byval([3 x double]) align 8 %from) {
  %v = load <3 x double>, ptr %from, align 8
  store <3 x double> %v, ptr %to, align 8
  store double 0.0, ptr %from, align 8
  ret void
}
"""
AARCH64 = Machine("generic", "qemu-aarch64 -cpu max")


@on_generic_machines
@pytest.mark.parametrize(("element", "result"), [("float", "float"), ("double", "double"), ("i8", "i32")])
def test_products(machine: Machine, element: str, result: str) -> None:
    types = {"float": np.float32, "double": np.float64, "i8": np.int8, "i32": np.int32}
    random = np.random.default_rng(3)
    a, b = (random.integers(-9, 9, shape).astype(types[element]) for shape in ((9, 14), (14, 21)))
    c = np.zeros((9, 21), types[result])
    module = machine.compile(MATMUL.replace("TYPE", element).replace("RESULT", result))
    assert module.entry(c, a, b) is None
    np.testing.assert_array_equal(c, a.astype(np.float64) @ b.astype(np.float64))


@on_generic_machines
def test_values(machine: Machine) -> None:
    """Numbers and vectors are passed and returned in memory, in the machine's order of bytes."""
    module = machine.compile(VALUES)
    assert module.add(100_000, -3) == 99_997
    assert module.scale(1.5, -4.0) == -6.0
    np.testing.assert_array_equal(module.doubled(np.array([1, -2, 300, 4], np.int16)), [2, -4, 600, 8])
    assert module.is_less(-(1 << 40), 7) is True
    assert module.is_less(7, 7) is False
    source, to = np.array([1.5, 2.5, -3.0]), np.zeros(3)
    module.copied(to, source)
    np.testing.assert_array_equal(to, [1.5, 2.5, -3.0])
    np.testing.assert_array_equal(source, to)


def test_vectors_are_loaded_with_the_alignment_of_their_elements() -> None:
    """RISC-V has no unaligned accesses: LLVM takes minutes to load a thousand numbers byte by byte."""
    vector = VectorType(16, I64)
    text = slot_wrapper_definition(Prototype("f", vector, (CallParameter("%x", vector),)), "wrapper", "")
    assert "load <16 x i64>, ptr %0, align 8" in text
    assert "store <16 x i64> %r, ptr %1, align 8" in text


def test_unaligned_arrays_are_passed() -> None:
    module = AARCH64.compile("define <4 x i64> @f(<4 x i64> %x) { ret <4 x i64> %x }")
    numbers = np.arange(4, dtype=np.int64)
    unaligned = np.frombuffer(b"?" + numbers.tobytes(), np.int64, offset=1)
    np.testing.assert_array_equal(module.f(unaligned), numbers)
    module.close()


HALVES = """
define void @f(ptr %to, ptr %from) {
  %h = load <8 x half>, ptr %from, align 2
  %f = fpext <8 x half> %h to <8 x float>
  %d = fmul <8 x float> %f, <float 1.0, float 1.0, float 0.375, float 1.0, float 1.0, float 1.0, float 1.0, float 7.5>
  %r = fptrunc <8 x float> %d to <8 x half>
  store <8 x half> %r, ptr %to, align 2
  ret void
}
"""


@on_generic_machines
def test_halves(machine: Machine) -> None:
    """Where the C compiler's library has no conversions of half, programs have them."""
    numbers = np.array([1.5, -0.0, 60000, 6e-8, -np.inf, np.nan, 3e-5, 65504], np.float16)
    factors = np.array([1, 1, 0.375, 1, 1, 1, 1, 7.5], np.float32)
    result = np.zeros(8, np.float16)
    machine.compile(HALVES).f(result, numbers)
    with np.errstate(over="ignore"):
        expected = (numbers.astype(np.float32) * factors).astype(np.float16)
    np.testing.assert_array_equal(result, expected)


BESIDE = """
define void @f(ptr %x, i64 %n) {
  %p = getelementptr float, ptr %x, i64 %n
  store float 1.0, ptr %p
  ret void
}
"""


@on_generic_machines
def test_accesses_beside_an_array_are_noticed(machine: Machine) -> None:
    module = machine.compile(BESIDE)
    x = np.zeros(5, np.float32)
    assert module.f.call_guarded((x, 4), "after") == (None, [True, True])
    assert x.tolist() == [0, 0, 0, 0, 1]
    assert module.f.call_guarded((x, -1), "after")[1] == [False, True]
    assert module.f.call_guarded((x, 5), "before")[1] == [False, True]
    guards: tuple[tuple[int, Guard], ...] = ((5, "after"), (-1, "before"))
    for number, guard in guards:
        with pytest.raises(EmulationError, match="the program ended with status"):
            module.f.call_guarded((x, number), guard)
    module.f(x, 0)  # the program starts again
    assert x.tolist() == [1, 0, 0, 0, 1]


def test_arguments_that_are_constant_over_calls() -> None:
    text = MATMUL.replace("TYPE", "float").replace("RESULT", "float").replace("ptr %b)", 'ptr "tlx-constant" %b)')
    random = np.random.default_rng(4)
    a, b = random.random((9, 14), np.float32), random.random((14, 21), np.float32)
    c = np.zeros((9, 21), np.float32)
    AARCH64.compile(text).entry(c, a, b)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)


def test_arguments_are_checked() -> None:
    module = AARCH64.compile(VALUES)
    with pytest.raises(ArgumentError, match="takes 2 arguments"):
        module.add(1)
    with pytest.raises(ArgumentError, match="an integer of 16 bits"):
        module.add(1, 1 << 20)
    with pytest.raises(UsageError, match="defines no function @missing"):
        module["missing"]


@pytest.mark.parametrize(
    ("emulator", "triple"),
    [
        ("qemu-ppc64le -cpu power10", "powerpc64le-linux-gnu"),
        ("/usr/bin/qemu-ppc64-static", "powerpc64-linux-gnu"),
        ("qemu-hexagon", "hexagon-linux-musl"),
        ("wine", ""),
        ("", ""),
    ],
)
def test_an_emulator_implies_its_triple(emulator: str, triple: str) -> None:
    assert emulator_triple(emulator) == triple


@pytest.mark.parametrize(
    ("emulator", "triple", "message"),
    [
        ("qemu-aarch64 -cpu max", "riscv64-linux-gnu", "runs programs of aarch64-linux-gnu: .* use qemu-riscv64"),
        ("simulator", "aarch64-linux-gnu", "the emulator 'simulator' is not installed"),
        ("simulator", "", "name the triple of its programs with --mtriple="),
        ("simulator", "sparc64-linux-gnu", "cannot be run; emulators are known for aarch64"),
    ],
)
def test_wrong_emulators(emulator: str, triple: str, message: str) -> None:
    from tlx.lower.options import Options

    with pytest.raises(UsageError, match=message):
        compile_emulated(BESIDE, "generic", emulator, options=Options(triple=triple))


def nothing(_name: str) -> None:
    """No program is installed."""


def test_missing_tools_name_their_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Debian's."""
    from tlx.llvm import emulator

    monkeypatch.setattr("shutil.which", nothing)
    emulator.toolchain.cache_clear()
    try:
        with pytest.raises(UsageError, match="apt install qemu-user"):
            emulator.emulator_command("qemu-aarch64", "aarch64-linux-gnu")
        with pytest.raises(UsageError, match="apt install gcc-powerpc64le-linux-gnu libc6-dev-ppc64el-cross"):
            emulator.toolchain("powerpc64le-linux-gnu")
        with pytest.raises(UsageError, match="apt install clang-19 lld-19"):
            emulator.toolchain("hexagon-unknown-linux-musl")
    finally:
        emulator.toolchain.cache_clear()


def test_command_line(tmp_path: Path) -> None:
    """`tlx run` reads arrays from files, and writes them."""
    AARCH64.require()
    program, a, b, c = (tmp_path / name for name in ("f.ll", "a.npy", "b.npy", "c.npy"))
    program.write_text(MATMUL.replace("TYPE", "float").replace("RESULT", "float"))
    random = np.random.default_rng(6)
    x, y = random.random((9, 14), np.float32), random.random((14, 21), np.float32)
    np.save(a, x)
    np.save(b, y)
    arguments = [str(program), f"out:9x21:float32={c}", str(a), str(b), "--emulator=qemu-aarch64 -cpu max"]
    result = CliRunner().invoke(run, arguments)
    assert result.exit_code == 0, result.output
    np.testing.assert_allclose(np.load(c), x @ y, rtol=1e-5)
