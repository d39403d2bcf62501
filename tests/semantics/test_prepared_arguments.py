"""Functions with arguments that are constant over calls mean the same before and after lowering, at every stage."""

from __future__ import annotations

import ctypes
import random
from pathlib import Path
from typing import Any, Final

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import tlx
from tests.support.tools import quick, quick_by_target, require_openmp, require_processor, runs
from tlx.evaluate import Machine
from tlx.fuzz.check import GuardedArray
from tlx.graph import Graph
from tlx.ir.parser.module import parse
from tlx.ir.prepared import block_sizes
from tlx.ir.transform import collect_constructors
from tlx.llvm.codegen import emit_code
from tlx.llvm.loader import LoadedObject
from tlx.lower.knobs import FixedKnobs, Knobs
from tlx.lower.options import Options
from tlx.lower.pipeline import lower
from tlx.lower.remarks import Remarks
from tlx.lower.to_tiles.versions import at_level, levels

Array = NDArray[Any]
NO_PAD: Final = "<2 x i32> zeroinitializer"
ROWS: Final = "<2 x i32> <i32 0, i32 1>"
COLUMNS: Final = "<2 x i32> <i32 1, i32 0>"
KINDS: Final = {
    "f32": ("float", np.dtype(np.float32), "float", np.dtype(np.float32), "mma"),
    "f64": ("double", np.dtype(np.float64), "double", np.dtype(np.float64), "mma"),
    "f16": ("half", np.dtype(np.float16), "float", np.dtype(np.float32), "mma"),
    "bf16": ("bfloat", np.dtype(ml_dtypes.bfloat16), "float", np.dtype(np.float32), "mma"),
    "s8": ("i8", np.dtype(np.int8), "i32", np.dtype(np.int32), "smma"),
    "u8": ("i8", np.dtype(np.uint8), "i32", np.dtype(np.int32), "umma"),
    "u8s8": ("i8", np.dtype(np.int8), "i32", np.dtype(np.int32), "usmma"),
}
TARGETS: Final = ("avx512", "amx", "generic", "avx2", "avx2,avx512,amx")


class Product:
    """A program: `y = x @ w` by `count` products that are added, with w at an offset; then `z = w0 * 2`, w's start.

    Attributes:
        text: The function `f(x, w, y, z)`.
        arrays: x and w, small integers.
        expected: y and z.
    """

    def __init__(self, kind: str, seed: int, *, typed: bool = False) -> None:
        choose = random.Random(f"{kind} {seed}")
        element, dtype, result, result_dtype, name = KINDS[kind]
        m, n, k = (choose.choice([1, 2, 5, 16, 17, 33, 48, 64, 70]) for _ in "mnk")
        count, offset = choose.choice([1, 1, 2, 3]), choose.choice([0, 0, 5])
        by_columns = choose.random() < 0.3

        def pointer(pointee: str) -> str:
            return f"{pointee}*" if typed else "ptr"

        mark = f"elementtype({element}) " if element == "i8" or not typed else ""  # i8* may point to anything
        lines: list[str] = []
        last = "%zero"
        shape = f"<2 x i32> <i32 {m}, i32 {n}>, {ROWS}, {NO_PAD}"
        lines.append(f"%zero = call token @llvm.tensor.typeinfo(<{m * n} x {result}> zeroinitializer, {shape})")
        for i in range(count):
            for stem, start, extents, order in (
                ("x", i * m * k, (m, k), ROWS),
                ("w", offset + i * k * n, (n, k) if by_columns else (k, n), COLUMNS if by_columns else ROWS),
            ):
                lines.append(f"%{stem}p{i} = getelementptr {element}, {pointer(element)} %{stem}, i64 {start}")
                lines.append(
                    f"%{stem}{i} = call token @llvm.tensor.load({pointer(element)} {mark}%{stem}p{i}, <2 x i32> "
                    f"<i32 {extents[0]}, i32 {extents[1]}>, {order}, {NO_PAD}, {NO_PAD})"
                )
            lines.append(
                f"%m{i} = call <{m * n} x {result}> @llvm.tensor.{name}(token {last}, token %x{i}, token %w{i})"
            )
            lines.append(f"%t{i} = call token @llvm.tensor.typeinfo(<{m * n} x {result}> %m{i}, {shape})")
            last = f"%t{i}"
        lines.append(f"call void @llvm.tensor.store({pointer(result)} %y, token {last}, {NO_PAD})")
        add = "fadd" if result != "i32" else "add"
        lines.append(f"%w.0 = load {element}, {pointer(element)} %w, align 1")
        lines.append(f"%w.00 = {add} {element} %w.0, %w.0" if element != "bfloat" else "%w.00 = fneg bfloat %w.0")
        lines.append(f"store {element} %w.00, {pointer(element)} %z, align 1")
        parameters = (
            f'{pointer(element)} noalias %x, {pointer(element)} noalias readonly align 1 "tlx-constant" %w, '
            f"{pointer(result)} noalias %y, {pointer(element)} noalias %z"
        )
        self.text = f"define void @f({parameters}) {{\n" + "".join(f"  {line}\n" for line in lines) + "  ret void\n}\n"
        rng = np.random.default_rng(seed)
        low = 0 if name == "umma" else -9
        x = rng.integers(0 if name in ("umma", "usmma") else low, 9, count * m * k).astype(dtype)
        w = rng.integers(low, 9, offset + count * k * n + 3).astype(dtype)
        self.arrays = x, w
        wide = result_dtype if result_dtype.kind != "f" else np.dtype(np.float64)
        rows = x.astype(wide).reshape(count, m, k)
        panels = w[offset : offset + count * k * n].astype(wide)
        panels = panels.reshape(count, n, k).swapaxes(1, 2) if by_columns else panels.reshape(count, k, n)
        first = w[:1].astype(wide) * (-1 if element == "bfloat" else 2)
        sums = (rows @ panels).sum(0)
        self.expected: tuple[Array, Array] = sums.astype(result_dtype), first.astype(dtype)
        self.title = f"{m}x{n}x{count}*{k} {'columns' if by_columns else 'rows'} +{offset}"

    def results(self) -> tuple[Array, Array]:
        y, z = self.expected
        return np.zeros_like(y), np.zeros_like(z)

    def check(self, got: tuple[Array, Array], where: str) -> None:
        for mine, expected in zip(got, self.expected, strict=True):
            np.testing.assert_array_equal(mine, expected, f"{where}: {self.title}")


def evaluate(product: Product, target: str, options: Options) -> None:
    """Evaluate stages 1 and 2, for each level of the machine."""
    for stage in ("to-2d", "to-tiles"):
        text = str(lower(parse(product.text), target, options=options.updated(stop_after=stage)))
        for level in levels(text) or [0]:
            results = product.results()
            Machine(parse(at_level(text, level))).call_prepared("f", *product.arrays, *results)
            product.check(results, f"{stage} {target} {level}")


def options_of(seed: int, target: str) -> Options:
    """B is packed in every other program, whatever the model prefers."""
    options = Options(emulate_matrix="amx" in target)
    return options.updated(knobs=FixedKnobs(Knobs(pack_b=True))) if seed % 2 and "amx" not in target else options


@pytest.mark.parametrize(("seed", "target"), quick_by_target(range(8), TARGETS, 1))
@pytest.mark.parametrize("kind", KINDS)
def test_products_at_every_stage(kind: str, target: str, seed: int) -> None:
    seed = 40 * seed + len(kind) + 7 * TARGETS.index(target) + ord(kind[0])
    product = Product(kind, seed)
    options = options_of(seed, target)
    results = product.results()
    Machine(parse(product.text)).call("f", *product.arrays, *results)
    product.check(results, "input")
    evaluate(product, target, options)
    if all(runs(part) or part == "amx" for part in target.split(",")):
        function = tlx.compile(product.text, target, options=options).f
        results = product.results()
        prepared = function.prepare(product.arrays[1])
        for _ in range(2):
            prepared(product.arrays[0], *results)
        product.check(results, f"code for {target}")


@pytest.mark.parametrize("kind", quick(KINDS, 2))
def test_typed_pointers(kind: str) -> None:
    product = Product(kind, 5, typed=True)
    evaluate(product, "avx2,avx512", Options(knobs=FixedKnobs(Knobs(pack_b=True))))


@pytest.mark.parametrize("m", [64, 100, 140, 176])
@pytest.mark.parametrize("kind", ["bf16", "s8"])
def test_blocks_of_rows_on_a_matrix_unit(kind: str, m: int) -> None:
    """Blocks of B pass by each block of rows of A; the last block is smaller, and its last tile overlaps or is padded.

    Each tile of a block prefetches a part of the next block of B.
    """
    element, dtype, result, result_dtype, name = KINDS[kind]
    n, k = 80, 128
    shapes = f"<2 x i32> <i32 {{}}, i32 {{}}>, {ROWS}, {NO_PAD}"
    load = f"call token @llvm.tensor.load(ptr elementtype({element})"
    text = (
        'define void @f(ptr noalias %x, ptr noalias "tlx-constant" %w, ptr noalias %y) {\n'
        f"  %a = {load} %x, {shapes.format(m, k)}, {NO_PAD})\n"
        f"  %b = {load} %w, {shapes.format(k, n)}, {NO_PAD})\n"
        f"  %z = call token @llvm.tensor.typeinfo(<{m * n} x {result}> zeroinitializer, {shapes.format(m, n)})\n"
        f"  %m = call <{m * n} x {result}> @llvm.tensor.{name}(token %z, token %a, token %b)\n"
        f"  %t = call token @llvm.tensor.typeinfo(<{m * n} x {result}> %m, {shapes.format(m, n)})\n"
        f"  call void @llvm.tensor.store(ptr %y, token %t, {NO_PAD})\n  ret void\n}}\n"
    )
    rng = np.random.default_rng(m)
    x, w = (rng.integers(-9, 9, shape).astype(dtype) for shape in ((m, k), (k, n)))
    options = Options(knobs=FixedKnobs(Knobs(mc=64, nc=32)), emulate_matrix=True)
    remarks = Remarks()
    text_of_tiles = str(lower(parse(text), "amx", options=options.updated(stop_after="to-tiles", remarks=remarks)))
    assert any("blocks M 64, N 32" in r.message and "B of the next tiles prefetched" in r.message for r in remarks)
    y = np.zeros((m, n), result_dtype)
    Machine(parse(text_of_tiles)).call_prepared("f", x, w, y)
    expected = x.astype(np.float64) @ w.astype(np.float64)
    np.testing.assert_array_equal(y, expected)
    y[:] = 0
    tlx.compile(text, "amx", options=options).f.prepare(w)(x, y)
    np.testing.assert_array_equal(y, expected)


def test_blocks_of_a_function_share_an_array() -> None:
    """One large array is mostly in huge pages."""
    product = Product("f32", 1)
    text = product.text.replace("ptr noalias %x", 'ptr noalias readonly "tlx-constant" %x').replace("float* %x", "%x")
    prepared = tlx.compile(text).f.prepare(product.arrays[0], product.arrays[1])
    first, second = prepared.blocks
    assert first.base is second.base
    assert first.ctypes.data % 64 == second.ctypes.data % 64 == 0
    assert first.ctypes.data + first.nbytes <= second.ctypes.data
    results = product.results()
    prepared(*results)
    product.check(results, "two constant arguments")


def test_large_blocks_fill_whole_huge_pages() -> None:
    g = Graph("layer")
    g.output(g.parameter("x", (1, 1024), np.float32) @ g.weight("w", np.ones((1024, 1100), np.float32)))
    prepared = g.compile().prepared
    assert prepared is not None
    (block,) = prepared.blocks
    memory, page = block.base, 2 << 20
    assert memory is not None
    assert block.ctypes.data % page == 0
    assert memory.ctypes.data + memory.nbytes >= block.ctypes.data + -(-block.nbytes // page) * page
    x, y = np.ones((1, 1024), np.float32), np.empty((1, 1100), np.float32)
    prepared(x, y)
    np.testing.assert_array_equal(y, 1024)


@pytest.mark.parametrize("is_cached", [False, True])
def test_preparations_of_large_arrays_share_no_memory(tmp_path: Path, *, is_cached: bool) -> None:
    """The memory that the first one takes is allocated when the function is compiled."""
    function = tlx.compile(row_by_matrix(1024, 1100), cache=tmp_path if is_cached else False).f
    prepared = [function.prepare(np.full((1024, 1100), factor, np.float32)) for factor in (1, 2)]
    (one,), (two,) = (p.blocks for p in prepared)
    assert not np.shares_memory(one, two)
    for factor, layer in enumerate(prepared, 1):
        layer(np.ones((1, 1024), np.float32), y := np.empty((1, 1100), np.float32))
        np.testing.assert_array_equal(y, factor * 1024)


def test_blocks_that_are_larger_than_memory() -> None:
    """A function can be compiled where there is no memory to prepare its arguments."""
    assert tlx.compile(row_by_matrix(1 << 24, 1 << 22)).f.prototype.parameters[1].is_constant


def row_by_matrix(depth: int, columns: int) -> str:
    """`y = x @ w` of one row, where w is constant."""
    return (
        'define void @f(ptr noalias %x, ptr noalias "tlx-constant" %w, ptr noalias %y) {\n'
        f"  %a = call token @llvm.tensor.load(ptr elementtype(float) %x, {shapes_of(1, depth)}, {NO_PAD})\n"
        f"  %b = call token @llvm.tensor.load(ptr elementtype(float) %w, {shapes_of(depth, columns)}, {NO_PAD})\n"
        f"  %m = call <{columns} x float> @llvm.tensor.matmul(token %a, token %b)\n"
        f"  %t = call token @llvm.tensor.typeinfo(<{columns} x float> %m, {shapes_of(1, columns)})\n"
        f"  call void @llvm.tensor.store(ptr %y, token %t, {NO_PAD})\n  ret void\n}}\n"
    )


def shapes_of(rows: int, columns: int) -> str:
    """Shape, layout and padding of a row-major matrix."""
    return f"<2 x i32> <i32 {rows}, i32 {columns}>, {ROWS}, {NO_PAD}"


def test_threads_share_the_panels() -> None:
    require_openmp()
    rng = np.random.default_rng(0)
    x, w = (rng.integers(-4, 4, shape).astype(np.float32) for shape in ((96, 512), (512, 640)))
    shapes = "<2 x i32> <i32 {}, i32 {}>, " + f"{ROWS}, {NO_PAD}"
    text = (
        'define void @f(ptr noalias %x, ptr noalias "tlx-constant" %w, ptr noalias %y) {\n'
        f"  %a = call token @llvm.tensor.load(ptr elementtype(float) %x, {shapes.format(96, 512)}, {NO_PAD})\n"
        f"  %b = call token @llvm.tensor.load(ptr elementtype(float) %w, {shapes.format(512, 640)}, {NO_PAD})\n"
        "  %m = call <61440 x float> @llvm.tensor.matmul(token %a, token %b)\n"
        f"  %t = call token @llvm.tensor.typeinfo(<61440 x float> %m, {shapes.format(96, 640)})\n"
        f"  call void @llvm.tensor.store(ptr %y, token %t, {NO_PAD})\n  ret void\n}}\n"
    )
    function = tlx.compile(text, threads="openmp").f
    y = np.zeros((96, 640), np.float32)
    prepared = function.prepare(w=w)
    prepared(x, y)
    np.testing.assert_array_equal(y, x @ w)
    assert prepared.packed_bytes >= w.nbytes


@pytest.mark.parametrize("kind", ["f32", "s8", "bf16"])
@pytest.mark.parametrize("at_end", [True, False])
def test_blocks_between_guard_pages(kind: str, *, at_end: bool) -> None:
    """Neither the preparation nor the function accesses memory around blocks and arrays."""
    target = "native"
    for seed in range(3):
        product = Product(kind, 100 + seed)
        lowered = str(lower(parse(product.text), target, options=options_of(1, target)))
        (size,) = block_sizes(parse(lowered))["f"]
        text = collect_constructors(lowered, "start")  # one of them requests the use of tiles
        library = LoadedObject(
            emit_code(text, "obj", 2), ["f", "f.prepare"], start="start" if text != lowered else None
        )
        x, w, block, *results = (
            GuardedArray(array, at_end=at_end)
            for array in (*product.arrays, np.zeros(size, np.uint8), *(r.reshape(-1) for r in product.results()))
        )
        call_native(library.address("f.prepare"), block.array, w.array)
        call_native(library.address("f"), x.array, block.array, *(r.array for r in results))
        y, z = (r.array.reshape(e.shape) for r, e in zip(results, product.expected, strict=True))
        product.check((y, z), kind)
        assert all(g.is_intact for g in (x, w, block, *results))


def call_native(address: int, *arrays: Array) -> None:
    """Call a function with the addresses of arrays."""
    ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(arrays))(address)(*(a.ctypes.data for a in arrays))


def test_repeated_regions_are_prepared_through_their_outlined_function() -> None:
    count, rows, size = 33, 16, 32
    shape = "<2 x i32> <i32 {}, i32 {}>, " + f"{ROWS}, {NO_PAD}"
    mark, here, weights = "ptr elementtype(bfloat)", shape.format(rows, size), shape.format(size, size)
    lines = [
        f"  %x{i} = call token @llvm.tensor.load({mark} %h{i % 2}, {here}, {NO_PAD})\n"
        f"  %w{i} = call token @llvm.tensor.load({mark} %p{i}, {weights}, {NO_PAD})\n"
        f"  %m{i} = call <{rows * size} x bfloat> @llvm.tensor.matmul(token %x{i}, token %w{i})\n"
        f"  %t{i} = call token @llvm.tensor.typeinfo(<{rows * size} x bfloat> %m{i}, {here})\n"
        f"  call void @llvm.tensor.store(ptr %h{1 - i % 2}, token %t{i}, {NO_PAD})\n"
        for i in range(count)
    ]
    parameters = ", ".join(f'ptr noalias readonly "tlx-constant" %p{i}' for i in range(count))
    text = f"define void @f(ptr noalias %h0, ptr noalias %h1, {parameters}) {{\n{''.join(lines)}  ret void\n}}\n"
    lowered = tlx.lower_text(text, target="avx512")
    assert lowered.count("call void @f.part.prepare(") == count
    rng = np.random.default_rng(0)
    arrays = [np.eye(size)[rng.permutation(size)].astype(ml_dtypes.bfloat16) for _ in range(count)]
    x = rng.integers(-9, 9, (rows, size)).astype(ml_dtypes.bfloat16)
    expected = x.astype(np.float32)
    for array in arrays:
        expected = expected @ array.astype(np.float32)
    h0, h1 = x.copy(), np.zeros_like(x)
    tlx.compile(text).f.prepare(*arrays)(h0, h1)
    np.testing.assert_array_equal(h1.astype(np.float32), expected)


@pytest.mark.parametrize("rows", [2, 4, 8])
def test_few_rows_stream_a_large_matrix_through_the_matrix_unit(rows: int) -> None:
    """A product that waits for panels from beyond L2 is no slower there."""
    graph, rng = Graph("f"), np.random.default_rng(0)
    w = rng.integers(-3, 4, (2048, 2048)).astype(ml_dtypes.bfloat16)
    x = rng.integers(-3, 4, (rows, 2048)).astype(ml_dtypes.bfloat16)
    graph.output(graph.parameter("x", x.shape, x.dtype) @ graph.weight("w", w), "y")
    assert "@llvm.x86.tdpbf16ps(" in str(lower(graph.module(), "amx"))
    require_processor("amx")
    expected = (x.astype("f4") @ w.astype("f4")).astype(x.dtype)
    np.testing.assert_array_equal(graph.compile("amx")(x).astype("f4"), expected.astype("f4"))
