"""Conversions from and to formats of 8 bits: every byte, and all kinds of numbers, on all machines."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

import tlx
from tests.support.emulation import Machine
from tests.support.small_floats import DTYPES, FORMATS, Array, edges, narrowed, short_names, widened, with_declarations
from tests.support.tools import HANG_S, require
from tlx.diagnostics import Source, VerifyError
from tlx.evaluate import evaluate
from tlx.intrinsics.small_floats import E4M3, E5M2, SmallFloat
from tlx.ir.builder import new_function
from tlx.ir.module import Module
from tlx.ir.parser.module import parse_fully
from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.types import FLOAT, I8, VectorType
from tlx.lower.options import Options
from tlx.lower.pipeline import lower_text
from tlx.lower.to_2d.analysis.tensor_operations import exceeds_register_elements, is_elementwise
from tlx.target.installed import targets

CPUS: Final = [name for name in targets() if name != "nvidia"]
MACHINES: Final = [
    Machine("neon", "qemu-aarch64 -cpu max"),
    Machine("vsx", "qemu-ppc64 -one-insn-per-tb -cpu power9", ("+power9-vector",)),
    Machine("generic", "qemu-riscv64 -cpu rv64"),
]


@cache
def numbers_of(format_: SmallFloat, element: str) -> Array:
    return edges(format_, DTYPES[element])


def conversions(format_: SmallFloat, element: str, count: int) -> str:
    """`from` converts all bytes, `to` and `clamp` as many numbers."""
    tensor = "<1 x i32> <i32 {0}>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer"

    def function(name: str, source: str, size: int, call: str, result: str) -> str:
        return (
            f"define void @{name}(ptr %x, ptr %y) {{\n"
            f"  %t = call token @llvm.tensor.load(ptr elementtype({source}) %x, {tensor.format(size)})\n"
            f"  %v = call <{size} x {source}> @llvm.tensor.tovector(token %t)\n{call}"
            f"  store <{size} x {result}> %r, ptr %y, align 1\n  ret void\n}}\n"
        )

    narrow = [narrowed("r", "v", format_, element, count, saturates=saturates) for saturates in (False, True)]
    texts = [
        function("from", "i8", 256, widened("r", "v", format_, element, 256), element),
        function("to", element, count, narrow[0], "i8"),
        function("clamp", element, count, narrow[1], "i8"),
    ]
    return with_declarations("".join(texts))


def check(format_: SmallFloat, element: str, run: Callable[[str, Array, Array], Any]) -> None:
    """Check the three functions, which `run` calls with two arrays."""
    dtype, x = DTYPES[element], np.arange(256, dtype=np.uint8)
    y = np.zeros(256, dtype)
    run("from", x, y)
    with np.errstate(invalid="ignore"):  # signalling NaN
        y = y.astype(np.float64)
    np.testing.assert_array_equal(y, format_.decoded(x))
    zeros = x & 127 == 0
    np.testing.assert_array_equal(np.signbit(y)[zeros], x[zeros] == 128)
    numbers = numbers_of(format_, element)
    for name in ("to", "clamp"):
        z = np.zeros(len(numbers), np.uint8)
        run(name, numbers, z)
        want = format_.encoded(numbers, saturates=name == "clamp")
        nan = np.isnan(format_.decoded(want))
        np.testing.assert_array_equal(z[~nan], want[~nan])
        assert np.isnan(format_.decoded(z[nan])).all()


@pytest.mark.parametrize("element", ["half", "bfloat", "float"])  # ml_dtypes rounds doubles to float first
@pytest.mark.parametrize("format_", FORMATS, ids=short_names)
def test_the_meaning_is_that_of_ml_dtypes(format_: SmallFloat, element: str) -> None:
    dtype, x = np.dtype(format_.dtype), np.arange(256, dtype=np.uint8)
    np.testing.assert_array_equal(format_.decoded(x), x.view(dtype).astype(np.float64))
    numbers = numbers_of(format_, element)
    with np.errstate(all="ignore"):
        want = numbers.astype(dtype).view(np.uint8)
    nan = np.isnan(numbers)
    np.testing.assert_array_equal(format_.encoded(numbers, saturates=False)[~nan], want[~nan])
    clamped = format_.encoded(numbers, saturates=True)
    beyond = np.isnan(format_.decoded(want)) | np.isinf(format_.decoded(want))
    np.testing.assert_array_equal(clamped[~beyond], want[~beyond])
    assert set(clamped[beyond & ~nan] & 127) == {format_.largest}
    assert np.isnan(format_.decoded(clamped[nan])).all()


@pytest.mark.parametrize("element", DTYPES)
@pytest.mark.parametrize("format_", FORMATS, ids=short_names)
def test_evaluator(format_: SmallFloat, element: str) -> None:
    module = parse_fully(conversions(format_, element, len(numbers_of(format_, element))))
    check(format_, element, lambda name, x, y: evaluate(module, name, x, y))


@pytest.mark.parametrize("target", CPUS)
@pytest.mark.parametrize("element", DTYPES)
@pytest.mark.parametrize("format_", FORMATS, ids=short_names)
def test_lowered(format_: SmallFloat, element: str, target: str) -> None:
    text = lower_text(conversions(format_, element, len(numbers_of(format_, element))), "f.ll", target)
    assert "arbitrary.fp" not in text
    module = parse_fully(text)
    check(format_, element, lambda name, x, y: evaluate(module, name, x, y, max_steps=1 << 40))


@pytest.mark.parametrize("target", ["generic", "native"])
@pytest.mark.parametrize("element", DTYPES)
@pytest.mark.parametrize("format_", FORMATS, ids=short_names)
def test_compiled(format_: SmallFloat, element: str, target: str) -> None:
    module = tlx.compile(conversions(format_, element, len(numbers_of(format_, element))), target)
    check(format_, element, lambda name, x, y: module[name](x, y))


@pytest.mark.parametrize("machine", MACHINES, ids=str)
@pytest.mark.parametrize("element", ["half", "float"])
@pytest.mark.parametrize("format_", FORMATS, ids=short_names)
def test_other_machines(format_: SmallFloat, element: str, machine: Machine) -> None:
    module = machine.compile(conversions(format_, element, len(numbers_of(format_, element))))
    check(format_, element, lambda name, x, y: module[name](x, y))


@pytest.mark.parametrize("target", ["generic", "avx2", "avx512", "vsx", "mma"])
@pytest.mark.parametrize("element", DTYPES)
@pytest.mark.parametrize("format_", FORMATS, ids=short_names)
def test_functions_compute_no_vectors_of_floats_that_are_too_large(
    format_: SmallFloat, element: str, target: str
) -> None:
    """257 bytes, or halves, may be a value of a function, but 257 floats, by which they are converted, may not."""
    count = 257
    text = with_declarations(
        f"define void @f(ptr %x, ptr %y, ptr %z) {{\n  %v = load <{count} x i8>, ptr %x, align 1\n"
        + widened("r", "v", format_, element, count)
        + narrowed("n", "r", format_, element, count)
        + f"  store <{count} x {element}> %r, ptr %y, align 1\n  store <{count} x i8> %n, ptr %z, align 1\n"
        + "  ret void\n}\n"
    )
    module = parse_fully(lower_text(text, "f.ll", target))
    for instruction in (i for function in module.functions for i in function.instructions()):
        assert not is_elementwise(instruction) or not exceeds_register_elements(instruction.type), instruction.text
    x = np.arange(count, dtype=np.uint8)
    y, z = np.zeros(count, DTYPES[element]), np.zeros(count, np.uint8)
    evaluate(module, "f", x, y, z, max_steps=1 << 40)
    with np.errstate(invalid="ignore"):  # signalling NaN
        np.testing.assert_array_equal(y.astype(np.float64), format_.decoded(x))
    np.testing.assert_array_equal(format_.decoded(z), format_.decoded(x))


@pytest.mark.parametrize("format_", FORMATS, ids=short_names)
def test_functions_for_altivec_keep_subnormal_numbers(format_: SmallFloat) -> None:
    """A program's own functions for big-endian Power compute with AltiVec, which flushes subnormal floats to zero."""
    text = with_declarations(
        "define void @f(ptr %x, ptr %y) {\n  %v = load <256 x i8>, ptr %x, align 1\n"
        + widened("r", "v", format_, "float", 256)
        + "  store <256 x float> %r, ptr %y, align 4\n  ret void\n}\n"
    )
    x, y = np.arange(256, dtype=np.uint8), np.zeros(256, np.float32)
    Machine("vsx", "qemu-ppc64 -one-insn-per-tb").compile(text).f(x, y)
    np.testing.assert_array_equal(y, format_.decoded(x).astype(np.float32))


PLAIN: Final = """
define void @scalars(ptr %x, ptr %y) {
  %v = load i8, ptr %x
  %w = call half @llvm.convert.from.arbitrary.fp.f16.i8(i8 %v, metadata !"Float8E4M3FN")
  %n = call i8 @llvm.convert.to.arbitrary.fp.i8.f16(half %w, metadata !"Float8E5M2", metadata !"round.tonearest", i1 0)
  store i8 %n, ptr %y
  ret void
}
define <4 x float> @vectors(<4 x i8> %v) {
  %r = call <4 x float> @llvm.convert.from.arbitrary.fp.v4f32.v4i8(<4 x i8> %v, metadata !"Float8E5M2")
  ret <4 x float> %r
}
declare half @llvm.convert.from.arbitrary.fp.f16.i8(i8, metadata)
declare i8 @llvm.convert.to.arbitrary.fp.i8.f16(half, metadata, metadata, i1)
declare <4 x float> @llvm.convert.from.arbitrary.fp.v4f32.v4i8(<4 x i8>, metadata)
"""


@pytest.mark.parametrize("target", ["generic", "avx512", "neon"])
def test_numbers_and_small_vectors(target: str) -> None:
    text = lower_text(PLAIN.replace("i1 0", "i1 false"), "f.ll", target)
    assert "arbitrary.fp" not in text
    module = parse_fully(text)
    for byte in range(256):
        x, y = np.array([byte], np.uint8), np.zeros(1, np.uint8)
        evaluate(module, "scalars", x, y)
        want = E5M2.decoded(E5M2.encoded(E4M3.decoded(x), saturates=False))
        np.testing.assert_array_equal(E5M2.decoded(y), want)
    bytes_ = np.array([1, 0x7C, 0xFD, 0xC0], np.uint8)
    np.testing.assert_array_equal(evaluate(module, "vectors", bytes_), E5M2.decoded(bytes_))


def test_builder() -> None:
    module, bytes_ = Module(Source("f.ll", ""), []), VectorType(4, I8)
    b = TensorBuilder(module, new_function(module, "f", [(bytes_, "", "x")], "", "", result=bytes_))
    (x,) = b.function.arguments
    b.ret(b.to_small_float(b.from_small_float(x.value, E4M3, FLOAT), E5M2, saturates=True))
    codes = np.array([0x38, 0xFE, 0x01, 0], np.uint8)  # 1, -448, 2^-9, 0
    want = E5M2.encoded(E4M3.decoded(codes), saturates=True)
    for text in (str(module), lower_text(str(module), "f.ll", "generic")):
        np.testing.assert_array_equal(evaluate(parse_fully(text), "f", codes).view(np.uint8), want)


@pytest.mark.parametrize("version", ["14", "19"])
@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_older_versions_of_llvm_read_the_program(version: str, level: str, tmp_path: Path) -> None:
    """They take the intrinsics for functions that they do not know."""
    opt, source, result = require(f"opt-{version}"), tmp_path / "f.ll", tmp_path / "g.ll"
    text = with_declarations(
        "define void @f(ptr %x, ptr %y) {\n  %v = load <256 x i8>, ptr %x, align 1\n"
        + widened("r", "v", E4M3, "half", 256)
        + narrowed("n", "r", E5M2, "half", 256)
        + "  store <256 x i8> %n, ptr %y, align 1\n  ret void\n}\n"
    )
    source.write_text(text)
    pointers = ["--opaque-pointers"] if version == "14" else []
    command = [opt, *pointers, "-S", level, str(source), "-o", str(result)]
    subprocess.run(command, check=True, timeout=HANG_S)
    x, y = np.arange(256, dtype=np.uint8), np.zeros(256, np.uint8)
    tlx.compile(result.read_text(), "generic").f(x, y)
    want = E5M2.encoded(E4M3.decoded(x), saturates=False)
    np.testing.assert_array_equal(E5M2.decoded(y), E5M2.decoded(want))


@pytest.mark.parametrize(
    ("target", "options"),
    [("generic", {}), ("avx2", {}), ("avx512", {}), ("amx", {"emulate_matrix": True}), ("neon", {}), ("vsx", {})],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.parametrize("element", ["half", "bfloat", "float"])
def test_products(target: str, options: dict[str, Any], element: str) -> None:
    m, n, k = 20, 24, 40
    body = ""
    for name, pointer, format_, shape in (("a", "x", E4M3, (m, k)), ("b", "y", E5M2, (k, n))):
        count = shape[0] * shape[1]
        body += f"  %{name}.bytes = load <{count} x i8>, ptr %{pointer}, align 1\n"
        body += widened(f"{name}.wide", f"{name}.bytes", format_, element, count)
        body += (
            f"  %{name} = call token @llvm.tensor.typeinfo(<{count} x {element}> %{name}.wide, "
            f"<2 x i32> <i32 {shape[0]}, i32 {shape[1]}>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)\n"
        )
    body += f"  %p = call <{m * n} x float> @llvm.tensor.matmul(token %a, token %b)\n"
    text = f"define void @f(ptr noalias %x, ptr noalias %y, ptr noalias %c) {{\n{body}"
    text += f"  store <{m * n} x float> %p, ptr %c, align 4\n  ret void\n}}\n"
    lowered = lower_text(with_declarations(text), "f.ll", target, options=Options(**options))
    rng = np.random.default_rng(0)
    left, right = rng.integers(-4, 5, (m, k)), rng.integers(-4, 5, (k, n))
    x, y = E4M3.encoded(left, saturates=False), E5M2.encoded(right, saturates=False)
    c = np.zeros((m, n), np.float32)
    evaluate(parse_fully(lowered), "f", x, y, c, max_steps=1 << 40)
    np.testing.assert_array_equal(c, left @ right)


TO: Final = "<4 x i8> @llvm.convert.to.arbitrary.fp.v4i8.v4f32(<4 x float> %f, "


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            '<4 x float> @llvm.convert.from.arbitrary.fp.v4f32.v4i8(<4 x i8> %x, metadata !"Float8E4M3")',
            '1:[0-9]+: .*: the format !"Float8E4M3" is not supported, only !"Float8E4M3FN" and !"Float8E5M2"',
        ),
        (
            '<4 x float> @llvm.convert.from.arbitrary.fp.v4f32.v4i4(<4 x i4> %w, metadata !"Float4E2M1FN")',
            "only formats of 8 bits are supported, as i8 or vectors of i8, not <4 x i4>",
        ),
        (
            '<2 x float> @llvm.convert.from.arbitrary.fp.v2f32.v4i8(<4 x i8> %x, metadata !"Float8E5M2")',
            "operand and result must have the same number of elements, not <4 x i8> and <2 x float>",
        ),
        (
            '<4 x i16> @llvm.convert.from.arbitrary.fp.v4i16.v4i8(<4 x i8> %x, metadata !"Float8E5M2")',
            "<4 x i16> is not half, bfloat, float or double, or a vector of them",
        ),
        (
            f'{TO}metadata !"Float8E5M2", metadata !"round.towardzero", i1 true)',
            'the rounding mode !"round.towardzero" is not supported, only !"round.tonearest"',
        ),
        (
            f'{TO}metadata !"Float8E5M2", metadata !"round.tonearest", i1 %b)',
            "whether the result is clamped must be a constant i1",
        ),
        (
            f'{TO}metadata !"Float8E5M2")',
            "expected 4 operands, got 2",
        ),
    ],
)
def test_mistakes(call: str, message: str) -> None:
    text = f"define void @f(<4 x i8> %x, <4 x i4> %w, <4 x float> %f, i1 %b) {{ %r = call {call} ret void }}"
    with pytest.raises(VerifyError, match=message) as raised:
        lower_text(with_declarations(text), "f.ll", "generic")
    assert raised.value.span is not None
    arguments = np.zeros(4, np.int8), np.zeros(4, np.int8), np.zeros(4, np.float32), 0
    with pytest.raises(VerifyError, match=message):
        evaluate(parse_fully(with_declarations(text)), "f", *arguments)
