"""Maps and reductions of large data: non-temporal stores at any alignment, NaN in any lane of a maximum."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from tlx.evaluate import Machine
from tlx.ir.module import Module
from tlx.ir.parser.module import parse, parse_fully
from tlx.lower.options import Options
from tlx.lower.pipeline import lower
from tlx.target.costs.memory import Caches
from tlx.target.lookup import find_target
from tlx.target.target import Target

Array = NDArray[Any]
TARGETS = ["generic", "avx2", "avx512"]
DTYPES: dict[str, Any] = {"float": np.float32, "double": np.float64, "bfloat": ml_dtypes.bfloat16}
DIMS = "<2 x i32> <i32 {}, i32 {}>"


def _small(name: str) -> Target:
    """A target for which everything is larger than the caches."""
    return replace(find_target(name), caches=Caches(l1=64, l2=64, l3=64))


def _lowered(text: str, target: Target, stage: str = "legalize") -> Module:
    module = lower(parse(text), target, options=Options(stop_after=stage))
    return parse_fully(str(module))


def _sum(element: str, rows: int, cols: int, attribute: str = "noalias") -> str:
    vector = f"<{rows * cols} x {element}>"
    shape = f"{DIMS.format(rows, cols)}, {DIMS.format(0, 1)}, {DIMS.format(0, 0)}, {DIMS.format(0, 0)}"
    bias = shape.replace(f"i32 {rows},", "i32 1,", 1)
    return (
        f"define void @f(ptr {attribute} %y, ptr {attribute} %x, ptr noalias %b) {{\n"
        f"  %v = load {vector}, ptr %x\n"
        f"  %t = call token @llvm.tensor.load(ptr elementtype({element}) %b, {bias})\n"
        f"  %w = call {vector} @llvm.tensor.broadcast(token %t, {DIMS.format(rows, cols)}, {DIMS.format(0, 1)})\n"
        f"  %s = fadd {vector} %v, %w\n  store {vector} %s, ptr %y\n  ret void\n}}\n"
    )


@pytest.mark.parametrize("stage", ["to-tiles", "legalize"])
@pytest.mark.parametrize("element", DTYPES)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("offset", [0, 7])
def test_non_temporal_results_are_complete(target: str, element: str, stage: str, offset: int) -> None:
    rows, cols = 2, 1500
    module = _lowered(_sum(element, rows, cols), _small(target), stage)
    assert "!nontemporal" in str(module)
    rng = np.random.default_rng(offset)
    x = rng.integers(-9, 9, (rows, cols)).astype(DTYPES[element])
    bias = rng.integers(-9, 9, cols).astype(DTYPES[element])
    room = np.zeros(rows * cols + 64, x.dtype)
    y = room[offset : offset + rows * cols]
    Machine(module).call("f", y, x, bias)
    expected = x.astype(np.float32) + bias.astype(np.float32)
    assert np.array_equal(y.astype(np.float32).reshape(rows, cols), expected)
    assert not room[:offset].any()
    assert not room[offset + rows * cols :].any()


def test_maps_in_place_compute_nothing_twice() -> None:
    rows, cols = 2, 1500
    module = _lowered(_sum("float", rows, cols, ""), _small("avx512"))
    assert "!nontemporal" in str(module)
    x = np.arange(rows * cols, dtype=np.float32)
    bias = np.ones(cols, np.float32)
    Machine(module).call("f", x, x, bias)
    assert np.array_equal(x, np.arange(rows * cols, dtype=np.float32) + 1)


def _copy(element: str, rows: int, cols: int, pitch: int) -> str:
    shape = f"{DIMS.format(rows, cols)}, {DIMS.format(0, 1)}, {DIMS.format(0, 0)}, {DIMS.format(0, pitch)}"
    return (
        "define void @f(ptr noalias %y, ptr noalias %x) {\n"
        f"  %t = call token @llvm.tensor.load(ptr elementtype({element}) %x, {shape})\n"
        f"  call void @llvm.tensor.store(ptr %y, token %t, {DIMS.format(0, 0)})\n  ret void\n}}\n"
    )


@pytest.mark.parametrize("element", DTYPES)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("offset", [0, 7])
def test_non_temporal_copies_are_complete(target: str, element: str, offset: int) -> None:
    rows, cols, pitch = 2, 1500, 1507
    module = _lowered(_copy(element, rows, cols, pitch), _small(target))
    assert "!nontemporal" in str(module)
    assert "mfence" in str(module) or "fence seq_cst" in str(module)
    x = np.arange(1, rows * pitch + 1).astype(DTYPES[element])
    room = np.zeros(rows * cols + 64, x.dtype)
    Machine(module).call("f", room[offset:], x)
    expected = x.reshape(rows, pitch)[:, :cols].ravel()
    assert np.array_equal(room[offset : offset + rows * cols], expected)
    assert not room[:offset].any()
    assert not room[offset + rows * cols :].any()


def test_copies_of_i1_are_not_non_temporal() -> None:
    assert "!nontemporal" not in str(_lowered(_copy("i1", 2, 1500, 1507), _small("avx512")))


def test_results_that_fit_the_caches_are_stored_normally() -> None:
    assert "!nontemporal" not in str(_lowered(_sum("float", 2, 1500), find_target("avx512")))


def _extreme(kind: str, element: str, rows: int, cols: int, axis: int) -> str:
    out = rows if axis == 1 else cols
    window = DIMS.format(1, cols) if axis == 1 else DIMS.format(rows, 1)
    shape = f"{DIMS.format(rows, cols)}, {DIMS.format(0, 1)}, {DIMS.format(0, 0)}, {DIMS.format(0, 0)}"
    return (
        "define void @f(ptr noalias %y, ptr noalias %x) {\n"
        f"  %t = call token @llvm.tensor.load(ptr elementtype({element}) %x, {shape})\n"
        f"  %r = call <{out} x {element}> @llvm.tensor.reduce.{kind}(token %t, {window}, {DIMS.format(1, 1)})\n"
        f"  store <{out} x {element}> %r, ptr %y\n  ret void\n}}\n"
    )


@pytest.mark.parametrize(("rows", "cols"), [(3, 300), (40, 5)])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("kind", ["max", "min"])
@pytest.mark.parametrize("element", DTYPES)
@pytest.mark.parametrize("target", TARGETS)
def test_a_nan_in_any_lane_propagates(target: str, element: str, kind: str, axis: int, rows: int, cols: int) -> None:
    machine = Machine(_lowered(_extreme(kind, element, rows, cols, axis), find_target(target)))
    rng = np.random.default_rng(rows * cols)
    for place in [None, (0, 0), (rows - 1, cols - 1), *((rng.integers(rows), rng.integers(cols)) for _ in range(6))]:
        x = rng.normal(size=(rows, cols)).astype(DTYPES[element])
        if place is not None:
            x[place] = np.nan
        y = np.zeros(rows if axis == 1 else cols, x.dtype)
        machine.call("f", y, x)
        expected = getattr(x.astype(np.float64), kind)(axis=axis)
        assert np.array_equal(y.astype(np.float64), expected, equal_nan=True)


@pytest.mark.parametrize("kind", ["max", "add"])
@pytest.mark.parametrize("element", ["float", "bfloat"])
@pytest.mark.parametrize("target", TARGETS)
def test_columns_are_reduced_strip_by_strip(target: str, element: str, kind: str) -> None:
    rows, cols = 19, 150
    machine = replace(find_target(target), caches=Caches(l1=256, l2=64, l3=64))
    module = _lowered(_extreme(kind, element, rows, cols, 0), machine)
    assert "strip" in str(module)
    x = np.random.default_rng(1).integers(-4, 4, (rows, cols)).astype(DTYPES[element])
    if kind == "max":
        x[17, 3] = x[0, 149] = np.nan
    y = np.zeros(cols, x.dtype)
    Machine(module).call("f", y, x)
    wide = x.astype(np.float64)
    expected = wide.max(axis=0) if kind == "max" else wide.sum(axis=0)
    assert np.array_equal(y.astype(np.float64), expected, equal_nan=True)


@pytest.mark.parametrize("offset", [0, 1, 3])
def test_tiles_of_three_registers_stay_aligned(offset: int) -> None:
    """The tile is 6 wide where registers hold 4 integers: non-temporal stores take whole registers."""
    count = 64 * 257
    text = (
        "define void @f(ptr %x, ptr %y) {\n  %s = load double, ptr %x, align 1\n"
        f"  %i = insertelement <{count} x double> undef, double %s, i32 0\n"
        f"  %v = shufflevector <{count} x double> %i, <{count} x double> undef, <{count} x i32> zeroinitializer\n"
        f"  %w = call <{count} x i32> @llvm.fptosi.sat.v{count}i32.v{count}f64(<{count} x double> %v)\n"
        f"  store <{count} x i32> %w, ptr %y\n  ret void\n}}\n"
        f"declare <{count} x i32> @llvm.fptosi.sat.v{count}i32.v{count}f64(<{count} x double>)\n"
    )
    module = _lowered(text, _small("generic"))
    assert "!nontemporal" in str(module)
    y = np.zeros(count + 8, np.int32)[offset : offset + count]
    Machine(module).call("f", np.array([3.7]), y)
    assert (y == 3).all()


def _transposition(element: str, rows: int, cols: int) -> str:
    count = rows * cols
    return (
        f"define void @f(ptr noalias %y, ptr noalias %x) {{\n"
        f"  %t = call token @llvm.tensor.load(ptr elementtype({element}) %x, {DIMS.format(rows, cols)}, "
        f"{DIMS.format(0, 1)}, {DIMS.format(0, 0)}, {DIMS.format(0, 0)})\n"
        f"  %r = call <{count} x {element}> @llvm.tensor.transpose(token %t, {DIMS.format(1, 0)})\n"
        f"  store <{count} x {element}> %r, ptr %y\n  ret void\n}}\n"
    )


@pytest.mark.parametrize(("rows", "cols"), [(160, 37), (200, 64), (130, 5)])
@pytest.mark.parametrize("element", ["float", "double"])
@pytest.mark.parametrize("target", TARGETS)
def test_transposes_use_non_temporal_stores(target: str, element: str, rows: int, cols: int) -> None:
    module = _lowered(_transposition(element, rows, cols), _small(target))
    whole_lines = rows * np.dtype(DTYPES[element]).itemsize % find_target(target).vector_bytes == 0
    assert ("!nontemporal" in str(module)) == whole_lines
    x = np.random.default_rng(0).integers(-9, 9, (rows, cols)).astype(DTYPES[element])
    room = np.zeros(rows * cols + 64, x.dtype)
    y = room[3 : 3 + rows * cols]
    Machine(module).call("f", y.view(np.uint8), x.view(np.uint8))
    assert np.array_equal(y.reshape(cols, rows), x.T)
    assert not room[:3].any()
    assert not room[3 + rows * cols :].any()


def _sum_of_transposed(element: str, rows: int, cols: int) -> str:
    """`y = x^T + z`."""
    count = rows * cols
    rest = f"{DIMS.format(0, 1)}, {DIMS.format(0, 0)}, {DIMS.format(0, 0)}"
    column_major = f"{DIMS.format(cols, rows)}, {DIMS.format(1, 0)}, {DIMS.format(0, 0)}, {DIMS.format(0, 0)}"
    vector = f"<{count} x {element}>"
    return (
        f"define void @f(ptr noalias %y, ptr noalias %x, ptr noalias %z) {{\n"
        f"  %t = call token @llvm.tensor.load(ptr elementtype({element}) %x, {column_major})\n"
        f"  %a = call {vector} @llvm.tensor.transpose(token %t, {DIMS.format(0, 1)})\n"
        f"  %u = call token @llvm.tensor.load(ptr elementtype({element}) %z, {DIMS.format(rows, cols)}, {rest})\n"
        f"  %b = call {vector} @llvm.tensor.tovector(token %u)\n  %s = fadd {vector} %a, %b\n"
        f"  store {vector} %s, ptr %y\n  ret void\n}}\n"
    )


@pytest.mark.parametrize(("rows", "cols"), [(37, 160), (64, 200), (70, 130)])
@pytest.mark.parametrize("target", TARGETS)
def test_transposed_products_use_non_temporal_stores(target: str, rows: int, cols: int) -> None:
    module = _lowered(_sum_of_transposed("float", rows, cols), _small(target))
    assert ("!nontemporal" in str(module)) == (cols * 4 % find_target(target).vector_bytes == 0)
    rng = np.random.default_rng(0)
    x, z = (rng.integers(-9, 9, shape).astype(np.float32) for shape in ((cols, rows), (rows, cols)))
    room = np.zeros(rows * cols + 64, x.dtype)
    y = room[3 : 3 + rows * cols]
    Machine(module).call("f", y.view(np.uint8), x.view(np.uint8), z.view(np.uint8))
    assert np.array_equal(y.reshape(rows, cols), x.T + z)
    assert not room[:3].any()
    assert not room[3 + rows * cols :].any()
