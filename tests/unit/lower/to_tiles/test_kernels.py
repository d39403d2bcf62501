"""Kernels: their results at each stage, sharing by equal problems, and trees that stage 2 refuses."""

from __future__ import annotations

import random
import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from tlx.diagnostics import LoweringError
from tlx.evaluate import Machine
from tlx.ir.builder import new_function
from tlx.ir.parser.module import parse, parse_fully
from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.types import FLOAT, I8, I32, VectorType
from tlx.ir.values import Local, const_int
from tlx.lower.context import LoweringContext, is_kernel
from tlx.lower.options import Options
from tlx.lower.pipeline import lower
from tlx.lower.to_tiles import to_tiles
from tlx.lower.to_tiles.emit.kernel import STACK_LIMIT, Scratch, new_kernel
from tlx.lower.to_tiles.emit.tiles import column_tile, convert_tile, flip_sign_bit, tile
from tlx.target.lookup import find_target

Array = NDArray[Any]
DTYPES: dict[str, np.dtype[Any]] = {
    "i8": np.dtype(np.int8),
    "i16": np.dtype(np.int16),
    "i32": np.dtype(np.int32),
    "half": np.dtype(np.float16),
    "bfloat": np.dtype(ml_dtypes.bfloat16),
    "float": np.dtype(np.float32),
    "double": np.dtype(np.float64),
}
ROW, COLUMN = "<2 x i32> <i32 0, i32 1>", "<2 x i32> <i32 1, i32 0>"
ZERO = "<2 x i32> zeroinitializer"


def _pair(first: int, second: int) -> str:
    return f"<2 x i32> <i32 {first}, i32 {second}>"


def _load(name: str, element: str, shape: tuple[int, int], pitch: int, *, column_major: bool = False) -> str:
    shape = (shape[1], shape[0]) if column_major else shape
    layout = COLUMN if column_major else ROW
    return (
        f"  %{name} = call token @llvm.tensor.load(ptr elementtype({element}) %{name}.at, {_pair(*shape)}, {layout}, "
        f"{ZERO}, {_pair(0, pitch)})\n"
    )


def _product(
    extents: tuple[int, int, int], types: tuple[str, str], operation: str, order: str = "rr", spare: int = 0
) -> str:
    """`@f(c, a, b)`: C = A @ B, or C += A @ B; `order` tells r(ows) or c(olumns) for A and B."""
    m, n, k = extents
    element, result = types
    a_pitch = (m if order[0] == "c" else k) + spare
    b_pitch = (k if order[1] == "c" else n) + spare
    text = "define void @f(ptr noalias %acc.at, ptr %a.at, ptr %b.at) {\n"
    text += "" if operation == "matmul" else _load("acc", result, (m, n), n + spare)
    text += _load("a", element, (m, k), a_pitch, column_major=order[0] == "c")
    text += _load("b", element, (k, n), b_pitch, column_major=order[1] == "c")
    operands = "token %a, token %b" if operation == "matmul" else "token %acc, token %a, token %b"
    return (
        f"{text}  %m = call <{m * n} x {result}> @llvm.tensor.{operation}({operands})\n"
        f"  %t = call token @llvm.tensor.typeinfo(<{m * n} x {result}> %m, {_pair(m, n)}, {ROW}, {ZERO})\n"
        f"  call void @llvm.tensor.store(ptr %acc.at, token %t, {_pair(0, n + spare)})\n  ret void\n}}\n"
    )


def _matrix(rng: np.random.Generator, dtype: np.dtype[Any], rows: int, cols: int, spare: int, order: str) -> Array:
    """A matrix in memory order; `spare` elements of the enclosing array follow each row but the last."""
    outer, inner = (cols, rows) if order == "c" else (rows, cols)
    low, high = (-128, 128) if dtype == np.int8 else (-8, 9)
    return rng.integers(low, high, outer * (inner + spare) - spare).astype(dtype)


def _logical(memory: Array, rows: int, cols: int, spare: int, order: str) -> Array:
    outer, inner = (cols, rows) if order == "c" else (rows, cols)
    padded = np.concatenate([memory, np.zeros(spare, memory.dtype)]).reshape(outer, inner + spare)[:, :inner]
    return padded.T if order == "c" else padded


def _wide(matrix: Array, sign: str) -> Array:
    return matrix.view(np.uint8).astype(np.int64) if sign == "u" else matrix.astype(np.int64)


def _check(
    target: str,
    stage: str,
    extents: tuple[int, int, int],
    types: tuple[str, str],
    operation: str,
    order: str = "rr",
    spare: int = 0,
) -> None:
    """Run the product in the evaluator, which refuses any access outside of the arrays, and compare."""
    m, n, k = extents
    rng = np.random.default_rng(m * 1000 + n * 100 + k)
    element, result = (DTYPES[t] for t in types)
    a, b = _matrix(rng, element, m, k, spare, order[0]), _matrix(rng, element, k, n, spare, order[1])
    c = _matrix(rng, result, m, n, spare, "r")
    signs = {"umma": "uu", "usmma": "us", "summa": "su"}.get(operation, "ss")
    left, right = _logical(a, m, k, spare, order[0]), _logical(b, k, n, spare, order[1])
    if element == np.int8:
        left, right = _wide(left, signs[0]), _wide(right, signs[1])
    product = left.astype(np.float64) @ right.astype(np.float64)
    before = _logical(c, m, n, spare, "r").astype(np.float64)
    expected = product if operation == "matmul" else product + before
    between = np.concatenate([c, np.zeros(spare, c.dtype)]).reshape(m, n + spare)[:, n:].copy()
    module = lower(parse(_product(extents, types, operation, order, spare)), target, options=Options(stop_after=stage))
    Machine(parse_fully(str(module))).call("f", c, a, b)
    assert np.array_equal(_logical(c, m, n, spare, "r").astype(np.float64), expected.astype(result).astype(np.float64))
    after = np.concatenate([c, np.zeros(spare, c.dtype)]).reshape(m, n + spare)[:, n:]
    assert np.array_equal(after[:-1], between[:-1])  # what lies between the rows of C is not touched


STREAMED: list[tuple[tuple[int, int, int], tuple[str, str], str, str, int]] = [
    ((1, 150, 37), ("bfloat", "float"), "smma", "rr", 2),
    ((4, 70, 18), ("bfloat", "bfloat"), "matmul", "rr", 0),
    ((3, 81, 19), ("half", "float"), "matmul", "cr", 1),
    ((2, 140, 22), ("i8", "i32"), "matmul", "rr", 0),
    ((4, 70, 33), ("i8", "i32"), "usmma", "rr", 3),
    ((1, 70, 64), ("i8", "i32"), "umma", "rr", 0),
    ((1, 70, 17), ("i8", "i16"), "matmul", "rr", 0),
]
"""Few rows and more columns than registers hold: B is not worth copying."""

CASES: list[tuple[tuple[int, int, int], tuple[str, str], str, str, int]] = [
    ((8, 32, 16), ("float", "float"), "matmul", "rr", 0),
    ((7, 19, 5), ("float", "float"), "matmul", "rr", 3),
    ((7, 19, 6), ("float", "float"), "smma", "cc", 1),
    ((1, 1, 1), ("float", "float"), "matmul", "rr", 0),
    ((1, 33, 9), ("double", "double"), "matmul", "rc", 0),
    ((9, 17, 7), ("bfloat", "float"), "matmul", "rr", 0),
    ((9, 17, 19), ("bfloat", "float"), "matmul", "cc", 2),
    ((5, 9, 3), ("half", "float"), "matmul", "cr", 0),
    ((5, 21, 4), ("bfloat", "bfloat"), "matmul", "rr", 0),
    ((6, 20, 13), ("i8", "i32"), "matmul", "rc", 0),
    ((6, 20, 13), ("i8", "i32"), "umma", "rr", 1),
    ((6, 20, 13), ("i8", "i32"), "usmma", "cr", 0),
    ((6, 20, 13), ("i8", "i32"), "summa", "rr", 0),
    ((4, 12, 70), ("i8", "i32"), "umma", "cc", 0),
    ((3, 5, 4), ("i32", "i32"), "matmul", "rr", 0),
    ((33, 40, 70), ("i8", "i32"), "matmul", "rr", 0),
    *STREAMED,
]


@pytest.mark.parametrize("target", ["generic", "avx2", "avx512", "amx"])
@pytest.mark.parametrize(("extents", "types", "operation", "order", "spare"), CASES)
def test_lowered_products_are_right(
    target: str, extents: tuple[int, int, int], types: tuple[str, str], operation: str, order: str, spare: int
) -> None:
    _check(target, "legalize", extents, types, operation, order, spare)


@pytest.mark.parametrize("target", ["generic", "avx512", "amx"])
@pytest.mark.parametrize(("extents", "types", "operation", "order", "spare"), CASES[:15:2])
def test_products_of_tiles_are_right(
    target: str, extents: tuple[int, int, int], types: tuple[str, str], operation: str, order: str, spare: int
) -> None:
    _check(target, "to-tiles", extents, types, operation, order, spare)


@pytest.mark.parametrize("target", ["generic", "avx512", "amx"])
def test_passes_over_k_accumulate(target: str) -> None:
    _check(target, "legalize", (2, 5, 4100), ("float", "float"), "smma")
    _check(target, "legalize", (2, 5, 4100), ("i8", "i32"), "umma")


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("element", ["i8", "half", "bfloat", "float", "double"])
def test_copies_of_any_shape(element: str, seed: int) -> None:
    rng = random.Random(f"{element}{seed}")
    rows, cols, spare = rng.randint(1, 40), rng.randint(1, 40), rng.choice((0, 3))
    straight = rng.random() < 0.4
    shape, layout = (_pair(rows, cols), ROW) if straight else (_pair(cols, rows), COLUMN)
    body = _load("x", element, (rows, cols), cols + spare)
    if not straight:
        count = rows * cols
        body += f"  %v = call <{count} x {element}> @llvm.tensor.transpose(token %x, {COLUMN})\n"
        body += f"  %y = call token @llvm.tensor.typeinfo(<{count} x {element}> %v, {shape}, {layout}, {ZERO})\n"
    stored = "%x" if straight else "%y"
    text = f"define void @f(ptr noalias %out, ptr %x.at) {{\n{body}"
    text += f"  call void @llvm.tensor.store(ptr elementtype({element}) %out, token {stored}, {ZERO})\n  ret void\n}}\n"
    dtype = DTYPES[element]
    source = _matrix(np.random.default_rng(seed), dtype, rows, cols, spare, "r")
    matrix = _logical(source, rows, cols, spare, "r")
    target = rng.choice(("generic", "avx2", "avx512"))
    out = np.zeros((rows, cols) if straight else (cols, rows), dtype)
    Machine(parse_fully(str(lower(parse(text), target)))).call("f", out, source)
    assert np.array_equal(out.view(np.uint8), np.ascontiguousarray(matrix if straight else matrix.T).view(np.uint8))


def test_equal_problems_share_a_kernel_and_others_do_not() -> None:
    texts = [
        _product((4, 8, 3), ("float", "float"), "matmul"),
        _product((4, 8, 3), ("float", "float"), "matmul"),
        _product((4, 8, 3), ("float", "float"), "matmul", "rc"),
        _product((4, 8, 3), ("float", "float"), "matmul", spare=1),
    ]
    text = "".join(t.replace("@f(", f"@f{i}(") for i, t in enumerate(texts))
    module = lower(parse(text), "generic", options=Options(stop_after="to-tiles"))
    assert sum(is_kernel(module, f) for f in module.functions) == 3


# What stage 2 refuses: operations that stage 1 would not have left -------------------------------------------------

_HEAD = (
    "define void @f(ptr noalias %c, ptr %x.at, <8 x float> %v) {\n"
    f"  %x = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %x.at, {_pair(2, 4)}, {ROW}, "
    f"{ZERO}, {ZERO})\n"
)
_REFUSED = {
    "store": f"  %t = call token @llvm.tensor.typeinfo.v8f32.v2i32(<8 x float> %v, {_pair(2, 4)}, {ROW}, {ZERO})\n",
    "reshape.block": (
        "  %w = call <8 x float> @llvm.tensor.reshape.block.v8f32(token %x, <1 x i32> <i32 1>, <1 x i32> <i32 2>)\n"
        f"  %t = call token @llvm.tensor.typeinfo.v8f32.v2i32(<8 x float> %w, {_pair(2, 4)}, {ROW}, {ZERO})\n"
    ),
    "matmul": (
        f"  %y = call token @llvm.tensor.typeinfo.v8f32.v2i32(<8 x float> %v, {_pair(4, 2)}, {ROW}, {ZERO})\n"
        "  %w = call <4 x float> @llvm.tensor.matmul.v4f32(token %x, token %y)\n"
        f"  %t = call token @llvm.tensor.typeinfo.v4f32.v2i32(<4 x float> %w, {_pair(2, 2)}, {ROW}, {ZERO})\n"
    ),
}


@pytest.mark.parametrize("name", _REFUSED)
def test_malformed_trees_are_refused_with_a_location(name: str) -> None:
    text = f"{_HEAD}{_REFUSED[name]}  call void @llvm.tensor.store.p0.v2i32(ptr %c, token %t, {ZERO})\n  ret void\n}}\n"
    with pytest.raises(LoweringError, match=rf"llvm\.tensor\.{re.escape(name)} is not lowered to tiles here") as caught:
        to_tiles(parse(text), LoweringContext(find_target("generic")))
    span = caught.value.span
    assert span is not None
    assert f"@llvm.tensor.{name}." in span.source.text[span.start : span.end]


def test_a_copy_of_a_value_is_refused() -> None:
    text = (
        f"{_HEAD}  %y = call token @llvm.tensor.typeinfo.v8f32.v2i32(<8 x float> %v, {_pair(2, 4)}, {ROW}, {ZERO})\n"
        f"  %w = call <8 x float> @llvm.tensor.transpose.v8f32.v2i32(token %y, {COLUMN})\n"
        f"  %t = call token @llvm.tensor.typeinfo.v8f32.v2i32(<8 x float> %w, {_pair(4, 2)}, {COLUMN}, {ZERO})\n"
        f"  call void @llvm.tensor.store.p0.v2i32(ptr %c, token %t, {ZERO})\n  ret void\n}}\n"
    )
    with pytest.raises(LoweringError, match=r"llvm\.tensor\.store is not lowered to tiles here"):
        to_tiles(parse(text), LoweringContext(find_target("generic")))


# Small pieces ------------------------------------------------------------------------------------------------------


def _builder() -> TensorBuilder:
    module = parse("")
    return TensorBuilder(module, new_kernel(module, find_target("generic"), "tlx.kernel", [("c", FLOAT, "noalias")]))


def test_column_tiles_list_columns_first() -> None:
    assert tile(FLOAT, 3, 5, (1, 2)).extents == (2, 3)
    type_ = column_tile(FLOAT, 3, 5, (1, 2))
    assert (type_.shape, type_.padding, type_.extents) == ((5, 3), (2, 1), (2, 3))


def test_integers_are_not_converted_to_floats() -> None:
    with pytest.raises(TypeError, match="no conversion from i32 to float"):
        convert_tile(_builder(), Local(VectorType(4, I32), "v"), FLOAT, "s")


def test_only_products_with_vectors_are_transposed() -> None:
    with pytest.raises(TypeError, match="i8 is not a vector"):
        flip_sign_bit(_builder(), const_int(I8, 1))


def test_kernel_names_are_made_unique() -> None:
    module = parse("define void @tlx.kernel() {\n  ret void\n}\n")
    made = [new_kernel(module, find_target("generic"), "tlx.kernel", []) for _ in range(2)]
    assert [k.name for k in made] == ["tlx.kernel.1", "tlx.kernel.2"]


def test_small_buffers_are_on_the_stack() -> None:
    b, scratch = _builder(), Scratch()
    scratch.allocate(b)
    assert not b.block.instructions
    buffers = [scratch.reserve(FLOAT, 17), scratch.reserve(I8, 1)]
    assert scratch.size == 128 + 64
    scratch.allocate(b)
    assert len({buffer.pointer for buffer in buffers}) == 2
    scratch.release(b)
    assert not any(i.callee for i in b.block.instructions)


def test_large_buffers_are_on_the_heap_and_freed() -> None:
    b, scratch = _builder(), Scratch()
    scratch.reserve(I8, STACK_LIMIT + 1)
    scratch.allocate(b)
    scratch.release(b)
    b.ret()
    text = str(b.module)
    assert text.count("call noalias ptr @malloc(i64 ") == 1
    assert text.count("call void @free(ptr ") == 1
    assert "call void @llvm.trap()" in text


def test_a_kernel_carries_the_features_of_its_target() -> None:
    module = parse("")
    kernel = new_kernel(module, find_target("avx2"), "tlx.kernel", [("c", FLOAT, "noalias")])
    assert is_kernel(module, kernel)
    assert module.function_attributes(kernel.signature)["target-features"] == "+avx2,+fma,+f16c"
    plain = new_function(module, "f", [], "nounwind")
    assert not is_kernel(module, plain)
