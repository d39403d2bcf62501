"""Constant weights: their panels are packed at compile time, and equal what the program would pack."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import tlx
from tlx.evaluate import Machine
from tlx.evaluate.globals import string_bytes
from tlx.evaluate.teams import ThreadTeam
from tlx.ir.parser.module import parse
from tlx.lower.knobs import WEIGHT_BYTES, FixedKnobs, KnobQuery, Knobs
from tlx.lower.options import Options
from tlx.lower.pipeline import lower
from tlx.lower.remarks import Remarks
from tlx.lower.to_tiles.versions import at_level, levels

DIMS: Final = "<2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer"
BY_COLUMNS: Final = "<2 x i32> <i32 1, i32 0>, <2 x i32> zeroinitializer"
PANELS: Final = re.compile(r'(@tlx\.panels\S*) = private unnamed_addr constant \[(\d+) x i8\] (c"[^"]*"), align 64')
TYPES: Final = {
    "f32": ("float", np.dtype(np.float32), "float", "matmul"),
    "bf16": ("bfloat", np.dtype(ml_dtypes.bfloat16), "float", "mma"),
    "i8": ("i8", np.dtype(np.int8), "i32", "smma"),
}

Array = NDArray[np.generic]


def load(pointer: str, element: str, rows: int, cols: int, layout: str = DIMS) -> str:
    shape = f"<2 x i32> <i32 {rows}, i32 {cols}>"
    words = f"ptr elementtype({element}) {pointer}, {shape}, {layout}, <2 x i32> zeroinitializer"
    return f"call token @llvm.tensor.load({words})"


def product(kind: str, extents: tuple[int, int, int], weights: str, layout: str = DIMS) -> str:
    """A function of C and A; B is `weights`."""
    element, _, result, name = TYPES[kind]
    m, n, k = extents
    shape = f"<2 x i32> <i32 {m}, i32 {n}>, {DIMS}"
    b = load(weights, element, k, n) if layout == DIMS else load(weights, element, n, k, layout)
    acc = f"  %z = call token @llvm.tensor.typeinfo(<{m * n} x {result}> zeroinitializer, {shape})\n"
    return (
        f"define void @f(ptr noalias %c, ptr %a) {{\n  %x = {load('%a', element, m, k)}\n  %y = {b}\n"
        f"{'' if name == 'matmul' else acc}"
        f"  %m = call <{m * n} x {result}> @llvm.tensor.{name}({'' if name == 'matmul' else 'token %z, '}"
        f"token %x, token %y)\n"
        f"  %t = call token @llvm.tensor.typeinfo(<{m * n} x {result}> %m, {shape})\n"
        "  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)\n  ret void\n}\n"
    )


def constant(name: str, values: Array, words: str = "internal constant") -> str:
    """A global with the bytes of an array."""
    data = "".join(f"\\{byte:02X}" for byte in values.tobytes())
    return f'@{name} = {words} [{values.nbytes} x i8] c"{data}", align 64\n'


def operands(kind: str, extents: tuple[int, int, int]) -> tuple[Array, Array, Array]:
    """A, B and A @ B, all exact."""
    m, n, k = extents
    rng = np.random.default_rng(m * n + k)
    dtype = TYPES[kind][1]
    a, b = rng.integers(-9, 9, (m, k)).astype(dtype), rng.integers(-9, 9, (k, n)).astype(dtype)
    result = np.int32 if kind == "i8" else np.float32
    return a, b, a.astype(result) @ b.astype(result)


@pytest.mark.parametrize("target", ["generic", "avx2", "avx512", "amx"])
@pytest.mark.parametrize("kind", ["f32", "bf16", "i8"])
@pytest.mark.parametrize("extents", [(37, 83, 61), (64, 96, 128), (100, 40, 70)])
def test_products_with_constants_are_right(target: str, kind: str, extents: tuple[int, int, int]) -> None:
    a, b, expected = operands(kind, extents)
    text = constant("w", b) + product(kind, extents, "@w")
    options = Options(emulate_matrix=target == "amx")
    check(text, target, a, expected, options)


def check(text: str, target: str, a: Array, expected: Array, options: Options) -> None:
    """Compare with what the evaluator makes of stage 2, and what the machine makes of the rest."""
    c = np.zeros(expected.shape, expected.dtype)
    Machine(lower(parse(text), target, options=replace(options, stop_after="to-tiles"))).call("f", c, a)
    assert np.array_equal(c, expected)
    c = np.zeros(expected.shape, expected.dtype)
    tlx.compile(text, target, options=options)(c, a)
    assert np.array_equal(c, expected)


def panels_of(text: str, target: str, options: Options | None = None) -> list[bytes]:
    """The panels that a lowered module holds."""
    return [
        string_bytes(data)
        for _, _, data in PANELS.findall(str(lower(parse(text), target, options=options or Options())))
    ]


@pytest.mark.parametrize("target", ["generic", "avx2", "avx512"])
def test_k_is_split_into_blocks(target: str) -> None:
    for kind in ("f32", "i8"):
        a, b, expected = operands(kind, (37, 83, 61))
        text = constant("w", b) + product(kind, (37, 83, 61), "@w")
        options = Options(knobs=FixedKnobs(Knobs(kc=16, nc=96, pack_b=True)))
        assert len(panels_of(text, target, options)) == 1
        check(text, target, a, expected, options)


def test_column_major_weights_inside_a_larger_constant() -> None:
    a, b, expected = operands("f32", (33, 47, 90))
    padded = np.concatenate([np.full(5, 1e9, np.float32), b.T.ravel(), np.full(7, 1e9, np.float32)])
    place = "  %q = getelementptr float, ptr @w, i64 5\n  %x ="
    text = constant("w", padded) + product("f32", (33, 47, 90), "%q", BY_COLUMNS).replace("  %x =", place)
    (panels,) = panels_of(text, "avx512")
    actual = np.frombuffer(panels, np.float32)
    assert np.array_equal(np.sort(actual[actual != 0]), np.sort(b[b != 0]))
    check(text, "avx512", a, expected, Options())
    expression = text.replace(place, "  %x =").replace("%q", "getelementptr (float, ptr @w, i64 5)")
    assert panels_of(expression, "avx512") == [panels]


def test_panels_of_pairs_and_of_tiles() -> None:
    _, b, _ = operands("bf16", (64, 32, 64))
    text = constant("w", b) + product("bf16", (64, 32, 64), "@w")
    (panels,) = panels_of(text, "amx")
    pairs = b.reshape(32, 2, 32).transpose(0, 2, 1)  # [K/2][N][2]
    tiles = pairs.reshape(2, 16, 2, 32).transpose(0, 2, 1, 3)  # [K/32][N/16][16 rows][32 elements]
    assert panels == np.ascontiguousarray(tiles).tobytes()
    (panels,) = panels_of(text, "avx512")
    assert panels == np.ascontiguousarray(pairs).tobytes()


def test_column_sums_follow_the_panels() -> None:
    _, b, _ = operands("i8", (64, 32, 64))
    (panels,) = panels_of(constant("w", b) + product("i8", (64, 32, 64), "@w"), "avx512")
    sums = np.frombuffer(panels[64 * 32 :], np.int32)
    assert np.array_equal(sums, -128 * b.astype(np.int32).sum(axis=0))


def test_equal_weights_are_one_global() -> None:
    _, b, _ = operands("bf16", (64, 32, 64))
    function = product("bf16", (64, 32, 64), "@w")
    text = constant("w", b) + constant("v", b) + function + function.replace("@w", "@v").replace("@f", "@g")
    assert len(panels_of(text, "avx512")) == 1


@pytest.mark.parametrize(
    "words",
    ["global", "weak constant", "externally_initialized constant", "thread_local constant"],
)
def test_weights_that_may_change_are_packed_at_run_time(words: str) -> None:
    _, b, _ = operands("bf16", (64, 32, 64))
    text = constant("w", b, words) + product("bf16", (64, 32, 64), "@w")
    module = str(lower(parse(text), "avx512"))
    assert "tlx.panels" not in module


def test_a_constant_that_is_too_short_is_packed_at_run_time() -> None:
    _, b, _ = operands("bf16", (64, 32, 64))
    text = constant("w", b[:-1]) + product("bf16", (64, 32, 64), "@w")
    assert not panels_of(text, "avx512")


def said_about(text: str, target: str, weight_bytes: int = WEIGHT_BYTES) -> list[str]:
    """The remarks on a constant B."""
    remarks = Remarks()
    lower(parse(text), target, options=Options(remarks=remarks, weight_bytes=weight_bytes))
    return [r.message.partition(": ")[2] for r in remarks if "constant B" in r.message or "compile time" in r.message]


def test_large_weights_are_packed_at_run_time() -> None:
    _, b, _ = operands("bf16", (64, 32, 64))
    text = constant("w", b) + product("bf16", (64, 32, 64), "@w")
    assert said_about(text, "avx512") == ["B packed at compile time: 4.0 KiB"]
    assert said_about(text, "avx512", weight_bytes=4096) == ["B packed at compile time: 4.0 KiB"]
    assert said_about(text, "avx512", weight_bytes=4095) == [
        "constant B packed when the program runs: 4.0 KiB of panels exceed 4.0 KiB; --weight-bytes raises that"
    ]
    large = f"@w = constant [8388608 x bfloat] zeroinitializer\n{product('bf16', (64, 2048, 4096), '@w')}"
    assert said_about(large, "avx512") == [
        "constant B packed when the program runs: 16.0 MiB of panels exceed 8.0 MiB; --weight-bytes raises that"
    ]


@pytest.mark.parametrize("target", ["generic", "avx512", "amx"])
@pytest.mark.parametrize("kind", ["f32", "bf16", "i8"])
def test_products_with_panels_of_more_than_256_kb_are_right(target: str, kind: str) -> None:
    """The kernel that packs them is compiled, not evaluated."""
    extents = (5, 1030 if kind == "i8" else 515, 263)
    a, b, expected = operands(kind, extents)
    text = constant("w", b) + product(kind, extents, "@w")
    options = Options(knobs=FixedKnobs(Knobs(pack_b=True)), emulate_matrix=target == "amx")
    (panels,) = panels_of(text, target, options)
    assert len(panels) > 1 << 18
    c = np.zeros(expected.shape, expected.dtype)
    tlx.compile(text, target, options=options)(c, a)
    assert np.array_equal(c, expected)


@pytest.mark.parametrize("kind", ["f32", "bf16", "i8"])
@pytest.mark.parametrize("target", ["generic,avx2,avx512", "avx2,avx512,amx"])
def test_each_version_reads_its_own_form(target: str, kind: str) -> None:
    """At the level of the weakest machine, and at that of each that has a kernel of its own."""
    extents = (37, 83, 61)
    a, b, expected = operands(kind, extents)
    text = constant("w", b) + product(kind, extents, "@w")
    options = Options(knobs=FixedKnobs(Knobs(pack_b=True)), emulate_matrix=True)
    lowered = str(lower(parse(text), target, options=options))
    assert len(PANELS.findall(lowered)) == 1
    stage_2 = str(lower(parse(text), target, options=replace(options, stop_after="to-tiles")))
    for level in levels(lowered):
        c = np.zeros(expected.shape, expected.dtype)
        Machine(parse(at_level(stage_2, level))).call("f", c, a)
        assert np.array_equal(c, expected), level


def test_versions_that_read_alike_share_a_form() -> None:
    """AVX2 and AVX-512 widen B to float, AVX-512 BF16 reads pairs; what is not packed lies there as it is."""
    _, b, _ = operands("bf16", (64, 96, 128))
    text = constant("w", b) + product("bf16", (64, 96, 128), "@w")
    assert said_about(text, "avx2,avx512") == ["B packed at compile time: 120.0 KiB, in 3 forms"]
    _, b, _ = operands("f32", (64, 96, 128))
    text = constant("w", b) + product("f32", (64, 96, 128), "@w")
    assert said_about(text, "avx2,avx512") == []
    (panels,) = panels_of(text, "avx2,avx512", Options(knobs=only_avx512))
    assert panels[: b.nbytes] == b.tobytes()
    assert len(panels) == 2 * b.nbytes


def only_avx512(question: KnobQuery) -> Knobs:
    """Has one version pack B."""
    return Knobs(pack_b=question.target.startswith("avx512"))


def test_threads_read_the_same_panels() -> None:
    a, b, expected = operands("bf16", (300, 128, 128))
    text = constant("w", b) + product("bf16", (300, 128, 128), "@w")
    module = lower(parse(text), "avx512", options=Options(threads="openmp", thread_cycles=100, stop_after="to-tiles"))
    assert str(module).count("= private unnamed_addr constant [32768 x i8]") == 1
    c = np.zeros(expected.shape, expected.dtype)
    Machine(module, team=ThreadTeam(3)).call("f", c, a)
    assert np.array_equal(c, expected)


def test_llvm_14_has_typed_pointers() -> None:
    a, b, expected = operands("i8", (37, 40, 64))
    text = constant("w", b) + product("i8", (37, 40, 64), "%q")
    start = "  %q = getelementptr inbounds [2560 x i8], [2560 x i8]* @w, i64 0, i64 0\n  %x ="
    for old, new in (
        ("ptr noalias %c", "i32* noalias %c"),
        ("ptr %a)", "i8* %a)"),
        ("ptr %c,", "i32* %c,"),
        ("ptr elementtype(i8)", "i8* elementtype(i8)"),
        ("  %x =", start),
    ):
        text = text.replace(old, new)
    module = lower(parse(text), "avx512", options=Options(stop_after="to-tiles"))
    assert "bitcast ([" in str(module) or "bitcast [" in str(module)
    c = np.zeros(expected.shape, expected.dtype)
    Machine(module).call("f", c, a)
    assert np.array_equal(c, expected)


CONVOLUTION: Final = """
define void @f(ptr noalias %c, ptr noalias %x, ptr noalias %w) {
  %a = call token @llvm.tensor.load(ptr elementtype(bfloat) %x, <4 x i32> <i32 1, i32 10, i32 34, i32 64>,
    <4 x i32> <i32 0, i32 2, i32 3, i32 1>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(bfloat) %w, <4 x i32> <i32 3, i32 3, i32 64, i32 40>,
    <4 x i32> <i32 2, i32 3, i32 1, i32 0>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %p = call <10240 x float> @llvm.tensor.convolution(token %a, token %b, <4 x i32> <i32 1, i32 1, i32 1, i32 1>,
    <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %t = call token @llvm.tensor.typeinfo(<10240 x float> %p, <4 x i32> <i32 1, i32 40, i32 8, i32 32>,
    <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer)
  %q = call <10240 x float> @llvm.tensor.transpose(token %t, <4 x i32> <i32 0, i32 2, i32 3, i32 1>)
  %r = call token @llvm.tensor.typeinfo(<10240 x float> %q, <4 x i32> <i32 1, i32 8, i32 32, i32 40>,
    <4 x i32> <i32 0, i32 2, i32 3, i32 1>, <4 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %r, <4 x i32> zeroinitializer)
  ret void
}
"""


@pytest.mark.parametrize("target", ["avx512", "amx"])
def test_panels_of_a_loop_do_not_overlap(target: str) -> None:
    rng = np.random.default_rng(5)
    x, w = (rng.integers(-4, 4, n).astype(ml_dtypes.bfloat16) for n in (10 * 34 * 64, 9 * 64 * 40))
    expected, c, d = (np.zeros(10240, np.float32) for _ in range(3))
    Machine(parse(CONVOLUTION)).call("f", expected, x, w)
    options = Options(stop_after="to-tiles")
    Machine(lower(parse(CONVOLUTION), target, options=options)).call("f", c, x, w)
    assert np.array_equal(c, expected)
    text = constant("w", w) + CONVOLUTION.replace(", ptr noalias %w", "").replace("%w", "@w")
    module = lower(parse(text), target, options=options)
    Machine(module).call("f", d, x)
    assert np.array_equal(d, expected)
    assert "tlx.panels" in str(module)
    assert ".pack(" not in str(module)
