"""Copies of constant arguments are made by the preparation, and by it alone; results are the same."""

from __future__ import annotations

import re
from typing import Any, Final

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.tools import quick_by_target, require_openmp, runs
from tlx.api.validation import validate
from tlx.evaluate.interpreter import Machine
from tlx.graph import Graph
from tlx.ir.parser.module import parse
from tlx.lower.options import Options
from tlx.lower.pipeline import lower

Array = NDArray[Any]
_TARGETS: Final = ("avx512", "avx2", "amx", "generic")
_DTYPES: Final = ("float32", "bfloat16", "float64", "float16")


def _convolutions(dtype: str, channels: int = 40, size: tuple[int, int] = (4, 5)) -> Graph:
    """Convolutions whose images and filters both have channels first, as in ONNX."""
    rng = np.random.default_rng(0)
    g = Graph("f")
    x = g.parameter("x", (1, channels, *size), dtype)
    for number in range(2):
        weights = rng.integers(-2, 3, (channels, channels, 3, 3)) / 8
        w = g.weight(f"w{number}", weights.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype))
        x = g.relu(g.convolution(x, w, padding=[(1, 1), (1, 1)]))
    g.output(x)
    return g


def _bodies(text: str, target: str = "avx512", **options: Any) -> dict[str, str]:
    """The bodies of the functions that are not kernels, after all trees have become calls of kernels."""
    module = str(lower(parse(text), target, options=Options(stop_after="to-tiles", **options)))
    return dict(re.findall(r"(?ms)^define void @([\w.]+)\(.*?^(.*?)^}", module))


@pytest.mark.parametrize("options", [{}, {"workspace": "arena"}, {"threads": "openmp", "thread_cycles": 0}])
def test_the_preparation_reorders_filters(options: dict[str, Any]) -> None:
    bodies = _bodies(_convolutions("float32").text(), **options)
    assert bodies["f.prepare"].count("@tlx.transpose.40x360") == 2
    assert "@tlx.transpose.40x360" not in bodies["f"]
    assert "i64 57664" not in bodies["f"]  # the memory of a copy


def test_products_pack_reordered_filters_in_the_preparation() -> None:
    bodies = _bodies(_convolutions("float32", 96, (26, 26)).text())
    assert len(re.findall(r"call void @[\w.]*\.pack", bodies["f.prepare"])) == 2
    assert ".pack" not in bodies["f"]


@pytest.mark.parametrize("options", [{}, {"threads": "openmp", "thread_cycles": 0}])
def test_the_preparation_copies_filters_in_loops(options: dict[str, Any]) -> None:
    """Filters of bfloat are copied in two loops, of which nothing is left in the function."""
    text = _convolutions("bfloat16", 64, (26, 26)).text()
    module = str(lower(parse(text), "amx", options=Options(stop_after="to-tiles", **options)))
    functions = dict(re.findall(r"(?ms)^define (?:internal )?void @([\w.]+)\(.*?^(.*?)^}", module))
    copying = [name for name, body in functions.items() if "call void @tlx.transpose.32x9." in body]
    assert len(copying) == 1  # the loops, which the preparation calls for both filters
    assert functions["f.prepare"].count(f"call void @{copying[0]}(") == 2
    assert copying[0] not in functions["f"]
    assert validate(text, "amx", runs=1, options=Options(**options)) == []


def _convolution_by_slices(*, constant: bool) -> tuple[Graph, Array]:
    """A convolution whose filters exceed the caches: they are copied slice by slice, or as they are prepared."""
    w = np.random.default_rng(2).integers(-2, 3, (192, 192, 3, 3)).astype("f4") / 8
    g = Graph("f")
    x = g.parameter("x", (1, 192, 13, 13))
    g.output(g.convolution(x, g.weight("w", w) if constant else g.parameter("w", w.shape), padding=[(1, 1), (1, 1)]))
    return g, w


def test_the_preparation_copies_slices_of_filters() -> None:
    """Each slice has memory of its own, from which its panels are packed."""
    by_calls = _bodies(_convolution_by_slices(constant=False)[0].text(), "avx2")["f"]
    bodies = _bodies(_convolution_by_slices(constant=True)[0].text(), "avx2")
    copied, packed = (re.compile(rf"call void @[\w.]*{kind}") for kind in (r"transpose\.\d+x1728", r"\.pack"))
    assert "part.end" in by_calls
    assert len(copied.findall(bodies["f.prepare"])) == len(packed.findall(bodies["f.prepare"])) == 2
    assert not copied.findall(bodies["f"])
    assert not packed.findall(bodies["f"])


@pytest.mark.skipif(not runs("avx2"), reason="needs AVX2")
def test_slices_of_filters_give_the_same_results() -> None:
    x = np.random.default_rng(3).integers(-8, 9, (1, 192, 13, 13)).astype("f4")
    (by_calls, w), (prepared, _) = (_convolution_by_slices(constant=constant) for constant in (False, True))
    np.testing.assert_array_equal(prepared.compile(target="avx2")(x), by_calls.compile(target="avx2")(x, w))


@pytest.mark.parametrize(("dtype", "target"), quick_by_target(_DTYPES, _TARGETS, 1))
def test_convolutions_at_every_stage(dtype: str, target: str) -> None:
    graph = _convolutions(dtype, size=(2, 3))
    assert "@tlx.transpose." in _bodies(graph.text())["f.prepare"]
    assert validate(graph.text(), target, runs=1) == []


@pytest.mark.parametrize("threads", [False, True])
def test_new_weights_are_copied_by_the_next_preparation(*, threads: bool) -> None:
    if threads:
        require_openmp()
    target = "avx512" if runs("avx512") else "generic"
    x, w = np.random.default_rng(1).normal(size=(1, 40, 4, 5)).astype("f4"), np.ones((40, 40, 3, 3), "f4")
    g = Graph("f")
    g.output(g.convolution(g.parameter("x", x.shape), g.weight("w", w), padding=[(1, 1), (1, 1)]))
    f = g.compile(target=target, options=Options(threads="openmp", thread_cycles=0) if threads else Options())
    first = f(x)
    w *= 2
    assert np.array_equal(f(x), first)
    f.prepare()
    np.testing.assert_allclose(f(x), 2 * first, rtol=1e-6)


_ROWS: Final = "<2 x i32> <i32 32, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer"
_COLUMNS: Final = "<2 x i32> <i32 32, i32 32>, <2 x i32> <i32 1, i32 0>, <2 x i32> zeroinitializer"
_PITCH: Final = "<2 x i32> <i32 0, i32 32>"
_COPIED: Final = f"""\
define void @f(ptr noalias readonly "tlx-constant" %w, ptr noalias readonly %x, ptr noalias %y) {{
  %buf.heap = call noalias ptr @malloc(i64 4160), !tlx.buffer !{{!"entry"}}
  %buf = getelementptr inbounds i8, ptr %buf.heap, i64 0
  %a = call token @llvm.tensor.load(ptr elementtype(float) %w, {_ROWS}, {_PITCH})
  %t = call <1024 x float> @llvm.tensor.transpose(token %a, <2 x i32> <i32 1, i32 0>)
  %tt = call token @llvm.tensor.typeinfo(<1024 x float> %t, {_COLUMNS})
  call void @llvm.tensor.store(ptr %buf, token %tt, {_PITCH})
  @@
  %b = call token @llvm.tensor.load(ptr elementtype(float) %buf, {_ROWS}, {_PITCH})
  %c = call token @llvm.tensor.load(ptr elementtype(float) %x, {_ROWS}, {_PITCH})
  %p = call <1024 x float> @llvm.tensor.matmul(token %c, token %b)
  %pt = call token @llvm.tensor.typeinfo(<1024 x float> %p, {_ROWS})
  call void @llvm.tensor.store(ptr %y, token %pt, {_PITCH})
  call void @free(ptr %buf.heap)
  ret void
}}
declare ptr @malloc(i64)
declare void @free(ptr)
"""
_WRITERS: Final = {
    "a store": "store float 9.0, ptr %buf",
    "a store behind it": "%q = getelementptr float, ptr %buf, i64 7\n  store float 9.0, ptr %q",
    "a fill": "call void @llvm.memset.p0.i64(ptr %buf, i8 0, i64 64, i1 false)",
    "a function": "call void @g(ptr %buf)",
    "a function that is not free": "call void @free_first(ptr %buf)",
}


def _result(text: str, *stages: str) -> Array:
    rng = np.random.default_rng(0)
    w, x, y = rng.normal(size=(33, 32)).astype("f4"), rng.normal(size=(32, 32)).astype("f4"), np.zeros((32, 32), "f4")
    module = parse(text)
    for stage in stages:
        module = lower(module, "avx512", options=Options(start_after="to-2d", stop_after=stage))
    Machine(module).call_prepared("f", w, x, y)
    return y


def _program(writer: str) -> str:
    text = _COPIED.replace("@@", writer)
    text += "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)\n" if "memset" in writer else ""
    for name in ("g", "free_first"):
        if f"@{name}(" in writer:
            text += f"define void @{name}(ptr %p) {{\n  store float 9.0, ptr %p\n  ret void\n}}\n"
    return text


def test_a_copy_that_nothing_else_changes_is_made_once() -> None:
    text = _program("")
    bodies = _bodies(text, start_after="to-2d")
    assert "tlx.transpose" in bodies["f.prepare"]
    assert "tlx.transpose" not in bodies["f"]
    np.testing.assert_allclose(_result(text, "to-tiles"), _result(text), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("writer", _WRITERS)
def test_a_copy_that_changes_is_made_in_each_call(writer: str) -> None:
    text = _program(_WRITERS[writer])
    assert "tlx.transpose" in _bodies(text, start_after="to-2d")["f"]
    np.testing.assert_allclose(_result(text, "to-tiles"), _result(text), rtol=1e-5, atol=1e-5)


_VECTOR: Final = "<2 x i32> <i32 1, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer"


def _copied_by_rows(source: int, destination: int, first: int = 0) -> str:
    """A loop that copies 32 rows, which are some elements apart."""
    return f"""\
br label %loop
loop:
  %i = phi i64 [ {first}, %entry ], [ %next, %loop ]
  %from.offset = mul i64 %i, {source}
  %to.offset = mul i64 %i, {destination}
  %from = getelementptr inbounds float, ptr %w, i64 %from.offset
  %to = getelementptr inbounds float, ptr %buf, i64 %to.offset
  %row = call token @llvm.tensor.load(ptr elementtype(float) %from, {_VECTOR}, {_PITCH})
  call void @llvm.tensor.store(ptr %to, token %row, {_PITCH})
  %next = add i64 %i, 1
  %again = icmp slt i64 %next, 32
  br i1 %again, label %loop, label %end, !tlx.independent !{{}}
end:"""


def _program_with_loop(loop: str) -> str:
    """The program, with a loop in place of its copy."""
    before, rest = _COPIED.split("  %a = ")
    return f"{before}  {loop}\n  {rest.split('@@')[1]}".replace("ptr noalias %y) {", "ptr noalias %y) {\nentry:")


@pytest.mark.parametrize("destination", [32, 31])
def test_loops_whose_iterations_write_to_elements_of_their_own_are_prepared(destination: int) -> None:
    """Rows of 32 elements that are 31 apart overlap: which one remains depends on the order of the iterations."""
    text = _program_with_loop(_copied_by_rows(32, destination))
    bodies = _bodies(text, start_after="to-2d")
    is_prepared = destination == 32
    assert ("tlx.nest.f.prepare" in bodies["f.prepare"]) == is_prepared
    assert ("tlx.nest.f(" in bodies["f"]) == (not is_prepared)
    np.testing.assert_allclose(_result(text, "to-tiles"), _result(text), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("source", "destination", "first"), [(32, 0, 0), (32, 32, 1)])
def test_other_loops_are_executed_in_each_call(source: int, destination: int, first: int) -> None:
    """All iterations write to one row, or the loop's first index is not 0."""
    text = _program_with_loop(_copied_by_rows(source, destination, first))
    assert "tlx.nest.f(" in _bodies(text, start_after="to-2d")["f"]


def test_narrow_indices_that_wrap_around_are_not_affine() -> None:
    """An i8 of 4 * 32 is -128: the loop reads rows 4, 5, 6, 7, 0, 1, 2 and 3."""
    text = _program_with_loop(_copied_by_rows(32, 32)).replace("slt i64 %next, 32", "slt i8 %next, 8")
    text = text.replace("phi i64", "phi i8").replace("%next = add i64", "%next = add i8")
    text = text.replace("%from.offset = mul i64 %i, 32", "%from.offset = mul i8 %i, 32")
    text = text.replace("float, ptr %w, i64 %from.offset", "float, ptr %middle, i8 %from.offset")
    text = text.replace("%to.offset = mul i64 %i, 32\n", "%middle = getelementptr inbounds float, ptr %w, i64 128\n")
    text = text.replace("float, ptr %buf, i64 %to.offset", "[32 x float], ptr %buf, i8 %i")
    assert "tlx.nest.f(" in _bodies(text, start_after="to-2d")["f"]
    np.testing.assert_array_equal(_result(text, "to-tiles")[:, :8], _result(text)[:, :8])


@pytest.mark.parametrize("type_", ["[3 x float]", "<3 x float>", "{ float, i64 }"])
def test_indices_step_over_whole_elements(type_: str) -> None:
    """A vector of three floats occupies 16 bytes of an array, as four do."""
    text = _program("").replace(f"elementtype(float) %w, {_ROWS}", f"elementtype(float) %second, {_ROWS}")
    second = f"%one = add i64 0, 1\n  %second = getelementptr {type_}, ptr %w, i64 %one"
    text = text.replace("%a = call", f"{second}\n  %a = call")
    np.testing.assert_allclose(_result(text, "to-tiles"), _result(text), rtol=1e-5, atol=1e-5)


def test_an_operand_that_no_iteration_moves_is_copied_once() -> None:
    text = _program_with_loop(_copied_by_rows(0, 0))
    bodies = _bodies(text, start_after="to-2d")
    assert "tlx.copy" in bodies["f.prepare"]
    assert "tlx.nest.f(" not in bodies["f"]


def test_loops_that_may_have_another_number_of_iterations_are_executed_in_each_call() -> None:
    """One that is not marked as independent is not the builder's: this one ends after 31, not before."""
    loop = (
        _copied_by_rows(32, 32).replace("slt i64 %next, 32", "sle i64 %next, 31").replace(", !tlx.independent !{}", "")
    )
    text = _program_with_loop(loop)
    assert "call" not in _bodies(text, start_after="to-2d")["f.prepare"]
    np.testing.assert_allclose(_result(text, "to-tiles"), _result(text), rtol=1e-5, atol=1e-5)


def test_copies_under_a_condition_in_a_loop_are_made_in_each_call() -> None:
    """The last iterations must not read rows behind the argument."""
    loop = _copied_by_rows(32, 32).replace("slt i64 %next, 32", "slt i64 %next, 40")
    condition = "  %inside = icmp slt i64 %i, 32\n  br i1 %inside, label %copy, label %latch\ncopy:\n"
    loop = loop.replace("  %from = ", f"{condition}  %from = ").replace(
        "  %next = ", "  br label %latch\nlatch:\n  %next = "
    )
    text = _program_with_loop(loop.replace("[ %next, %loop ]", "[ %next, %latch ]"))
    assert "call" not in _bodies(text, start_after="to-2d")["f.prepare"]
    np.testing.assert_allclose(_result(text, "to-tiles"), _result(text), rtol=1e-5, atol=1e-5)


def test_a_copy_that_begins_inside_of_its_buffer_stays_there() -> None:
    second = "%second = getelementptr i8, ptr %buf, i64 64\n  call void @llvm.tensor.store(ptr %second, token %tt"
    text = _program("").replace("call void @llvm.tensor.store(ptr %buf, token %tt", second)
    text = text.replace(
        "%b = call token @llvm.tensor.load(ptr elementtype(float) %buf",
        "%b = call token @llvm.tensor.load(ptr elementtype(float) %second",
    )
    np.testing.assert_allclose(_result(text, "to-tiles"), _result(text), rtol=1e-5, atol=1e-5)
