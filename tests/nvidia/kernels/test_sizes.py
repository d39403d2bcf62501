"""Functions whose sizes are arguments: code is generated for the sizes of a call."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tlx
from tests.nvidia import on_emulator
from tests.nvidia.emulator import COMPILER, EmulatedDevice
from tests.nvidia.programs import lowered, with_grids
from tests.semantics.dynamic.programs import Program
from tests.semantics.dynamic.test_dynamic import PROGRAMS, arguments, compare, expected
from tlx.api.arguments import ArgumentError
from tlx.api.compiler import CompiledModule
from tlx.api.device import modules
from tlx.api.device.functions import SizedFunction
from tlx.api.prototypes import prototypes
from tlx.diagnostics import LoweringError, TlxError
from tlx.ir.module import Module
from tlx.ir.parser.module import parse
from tlx.ir.tensors.calls import canonicalise
from tlx.llvm.codegen import emit_code
from tlx.target.grid_unit import GridUnit

# What is computed or read for each element, copied onto itself, or branches between iterations
REFUSED = """expression onto_itself power branches swap shifted""".split()
# Up to this many elements, what iterations of a branch carry are vectors, which are stored element by element
REFUSED_UP_TO = {"splats": 256}
QUICK = """matmul_float_float_float_rc matmul_bfloat_bfloat_bfloat_cr smma_half_half_half_rr matmul_i8_i8_i32_rr
contract_batched chain mixed exponential function_tanh sum_rows max_columns broadcast_row permute concat""".split()
TEXT = """
define void @scaled(ptr noalias %x, ptr noalias %y, i32 %rows, i32 %columns, float %s) {
  %r = insertelement <2 x i32> undef, i32 %rows, i32 0
  %shape = insertelement <2 x i32> %r, i32 %columns, i32 1
  %t = call token @llvm.tensor.load(ptr elementtype(float) %x, <2 x i32> %shape, <2 x i32> <i32 0, i32 1>,
                                    <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %v = call <vscale x 1 x float> @llvm.tensor.tovector(token %t)
  %i = insertelement <vscale x 1 x float> undef, float %s, i32 0
  %splat = shufflevector <vscale x 1 x float> %i, <vscale x 1 x float> undef, <vscale x 1 x i32> zeroinitializer
  %p = fmul <vscale x 1 x float> %v, %splat
  %q = call token @llvm.tensor.typeinfo(<vscale x 1 x float> %p, <2 x i32> %shape, <2 x i32> <i32 0, i32 1>,
                                        <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %y, token %q, <2 x i32> zeroinitializer)
  ret void
}
define void @fixed(ptr noalias %x, ptr noalias %y) {
  %t = call token @llvm.tensor.load(ptr elementtype(float) %x, <1 x i32> <i32 8>, <1 x i32> zeroinitializer,
                                    <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %v = call <8 x float> @llvm.tensor.relu(token %t)
  store <8 x float> %v, ptr %y
  ret void
}
"""

Compile = Callable[[str], CompiledModule]


@pytest.fixture(params=["emulator", pytest.param("device", marks=pytest.mark.nvidia)])
def compiled(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Compile:
    """Compiles a text for the emulator or for this machine's GPU."""
    if request.param == "device":
        return lambda text: tlx.compile(text, "nvidia")
    if COMPILER is None:
        pytest.skip("the emulator needs a C compiler")
    on_emulator.on_emulator(monkeypatch)
    emulated = EmulatedDevice("")
    return lambda text: tlx.compile(text, with_grids(find_device=lambda: emulated))


def without_aliases(text: str) -> str:
    """The program, whose parameters do not overlap."""
    start = text.index("define")
    end = text.index("{", start)
    return text[:start] + re.sub(r"ptr (?!noalias)([^,%]*)%", r"ptr noalias \1%", text[start:end]) + text[end:]


def run(compiled: Compile, program: Program, size: tuple[int, ...]) -> None:
    given = arguments(program, size)
    compiled(without_aliases(program.text)).entry(*given)
    compare(program, given, expected(program.name, size))


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.long) for name in PROGRAMS]
)
def test_programs(compiled: Compile, name: str) -> None:
    program = PROGRAMS[name]
    if name in REFUSED:
        with pytest.raises(LoweringError, match=r"cannot be launched as kernels|not computed from parameters alone"):
            run(compiled, program, program.sizes[-1])
        return
    for size in program.sizes[1:3] if name in QUICK else program.sizes:
        if size[0] <= REFUSED_UP_TO.get(name, 0):
            with pytest.raises(LoweringError, match="cannot be launched as kernels"):
                run(compiled, program, size)
            continue
        run(compiled, program, size)


def test_sizes_may_differ_from_call_to_call(compiled: Compile) -> None:
    module = compiled(TEXT)
    for rows, columns in ((3, 5), (1, 1), (3, 5), (70, 33)):
        x = np.random.default_rng(rows).standard_normal((rows, columns)).astype(np.float32)
        y = np.zeros_like(x)
        module["scaled"](x, y, rows, columns, 3.0)
        np.testing.assert_array_equal(y, 3 * x)
    x, y = np.arange(-4, 4, dtype=np.float32), np.zeros(8, np.float32)
    module["fixed"](x, y)
    np.testing.assert_array_equal(y, np.maximum(x, 0))
    scaled = module["scaled"]
    assert isinstance(scaled, SizedFunction)
    assert scaled.for_sizes((x, y, 3, 5, 2.0)) is scaled.for_sizes((x, y, 3, 5, 4.0))


def test_bitcode(compiled: Compile, tmp_path: Path) -> None:
    module, path = parse(TEXT), tmp_path / "scaled.bc"
    canonicalise(module)
    path.write_bytes(emit_code(str(module), "bc"))
    x, y = np.ones((3, 5), np.float32), np.zeros((3, 5), np.float32)
    compiled(str(path))["scaled"](x, y, 3, 5, 2.0)
    np.testing.assert_array_equal(y, 2 * x)


def test_modules_are_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    emulated = with_grids(find_device=lambda: EmulatedDevice(""))

    def grid_of(_: object) -> GridUnit | None:
        return emulated.grid

    monkeypatch.setattr(modules, "grid_of", grid_of)
    before = tlx.compile(TEXT, "nvidia", cache=tmp_path)

    def read(_: object) -> Module:
        pytest.fail("a cached module is read again")

    monkeypatch.setattr(modules, "read_source", read)
    after = tlx.compile(TEXT, "nvidia", cache=tmp_path)
    assert list(after) == list(before)
    assert isinstance(after["scaled"], SizedFunction)


def test_sizes_of_tokens_alone(compiled: Compile) -> None:
    """Tensors that are loaded and stored, with no vector between."""
    start, end = TEXT.index("  %v ="), TEXT.index("  call void")
    text = TEXT[:start] + TEXT[end:].replace("token %q", "token %t")
    for rows, columns in ((3, 5), (70, 33)):
        x = np.random.default_rng(rows).standard_normal((rows, columns)).astype(np.float32)
        y = np.zeros_like(x)
        compiled(text)["scaled"](x, y, rows, columns, 3.0)
        np.testing.assert_array_equal(y, x)


def test_pitches_may_be_arguments(compiled: Compile) -> None:
    """Sizes are known, distances of rows are not; numbers of 32 bits are no sizes."""
    text = """define void @f(ptr noalias %x, ptr noalias %y, i32 %pitch) {
  %s = insertelement <2 x i32> <i32 0, i32 0>, i32 %pitch, i32 1
  %t = call token @llvm.tensor.load(ptr elementtype(i32) %x, <2 x i32> <i32 4, i32 6>, <2 x i32> <i32 0, i32 1>,
                                    <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %v = call <24 x i32> @llvm.tensor.tovector(token %t)
  %p = add <24 x i32> %v, %v
  %q = call token @llvm.tensor.typeinfo(<24 x i32> %p, <2 x i32> <i32 4, i32 6>, <2 x i32> <i32 0, i32 1>,
                                        <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %y, token %q, <2 x i32> %s)
  ret void
}
"""
    for pitch in (6, 9):
        x, y = np.arange(24, dtype=np.int32).reshape(4, 6), np.zeros((4, pitch), np.int32)
        compiled(text)(x, y, pitch)
        np.testing.assert_array_equal(y[:, :6], 2 * x)
        assert not y[:, 6:].any()


def test_code_for_sizes_is_generated_once() -> None:
    """Threads that call at once wait for the same code; of many codes, the least recently used one is dropped."""
    generated: list[int] = []

    def generate(sizes: dict[int, int]) -> Any:
        if sizes[2] < 0:
            raise TlxError("negative")
        time.sleep(0.01)
        generated.append(sizes[2])
        return object()

    function = SizedFunction(prototypes(parse(TEXT, "test.ll"))["scaled"], [2], generate)

    def for_rows(rows: int) -> object:
        return function.for_sizes((None, None, rows, 5, 1.0))

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(for_rows, [7] * 4))) == 1
    first = for_rows(7)
    for rows in range(100, 163):
        for_rows(rows)
    with pytest.raises(TlxError, match="negative"):
        for_rows(-1)
    assert for_rows(7) is first
    for rows in (163, 100, 7):
        for_rows(rows)
    assert for_rows(7) is first
    assert generated == [7, *range(100, 164), 100]


def test_wrong_sizes(compiled: Compile) -> None:
    scaled = compiled(TEXT)["scaled"]
    x, y = np.zeros((3, 5), np.float32), np.zeros((3, 5), np.float32)
    with pytest.raises(ArgumentError, match="15"):
        scaled(x[:2], y, 3, 5, 1.0)
    with pytest.raises(LoweringError, match="extent 0 in dimension 1"):
        scaled(x, y, 3, 0, 1.0)
    with pytest.raises(ArgumentError):
        scaled(x, y, 3, 2.5, 1.0)
    with pytest.raises(ArgumentError, match="takes 5 arguments"):
        scaled(x, y, 3, 5)


def test_sizes_that_are_read_from_memory_are_refused(compiled: Compile) -> None:
    text = TEXT.replace("i32 %rows, i32 %columns", "ptr %sizes, i32 %columns")
    text = text.replace("  %r = insertelement", "  %rows = load i32, ptr %sizes\n  %r = insertelement", 1)
    x, y = np.zeros((3, 5), np.float32), np.zeros((3, 5), np.float32)
    with pytest.raises(LoweringError, match="is not computed from parameters alone"):
        compiled(text)["scaled"](x, y, np.array([3], np.int32), 5, 1.0)


def test_ahead_of_a_call_there_are_no_kernels() -> None:
    with pytest.raises(TlxError, match="sizes known only at run time: kernels are made for known sizes"):
        lowered(TEXT)
