"""What the host's part of a function becomes: loops, constants of the program, and numbers, on the emulator."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tlx
from tests.nvidia.programs import Array, function, integers, lowered, normal, reduction, tensor, typed
from tlx.api.arguments import ArgumentError
from tlx.api.device.functions import DeviceFunction
from tlx.diagnostics import LoweringError, UsageError
from tlx.target.launches import table_of

Run = Callable[..., list[Any]]


def sums(trips: str) -> str:
    """Y plus the products of matrices x, one after the other, and w."""
    dims = "<2 x i32> <i32 8, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer"
    body = f"""entry:
{tensor("b", "w", "float", (8, 8))}  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %n, %loop ]
  %from = getelementptr [64 x float], ptr %x, i64 %i
  %t = call token @llvm.tensor.load(ptr elementtype(float) %from, {dims}, <2 x i32> zeroinitializer)
  %old = call token @llvm.tensor.load(ptr elementtype(float) %y, {dims}, <2 x i32> zeroinitializer)
  %p = call <64 x float> @llvm.tensor.smma(token %old, token %t, token %b)
{typed("r", "p", "float", (8, 8))}
  call void @llvm.tensor.store(ptr %y, token %r, <2 x i32> zeroinitializer)
  %n = add i64 %i, 1
  %c = icmp slt i64 %n, {trips}
  br i1 %c, label %loop, label %end
end:
"""
    return function(["w", "x", "y", "i64 %count"], body)


@pytest.mark.parametrize(
    ("test", "branch"),
    [
        ("slt i64 %n, 4", "label %loop, label %end"),
        ("sle i64 %n, 3", "label %loop, label %end"),
        ("eq i64 %n, 4", "label %end, label %loop"),
    ],
)
def test_iterations_that_depend_on_each_other_are_launched_one_by_one(run: Run, test: str, branch: str) -> None:
    w, x, y = integers((8, 8), np.float32, 1), integers((4, 8, 8), np.float32), integers((8, 8), np.float32, 2)
    want = y + x.sum(axis=0) @ w
    text = sums("4").replace("slt i64 %n, 4", test).replace("label %loop, label %end", branch)
    _, _, y, _ = run(text, w, x, y, 0)
    np.testing.assert_array_equal(y, want)


@pytest.mark.nvidia
def test_calls_with_the_same_arrays() -> None:
    """After some of them, all kernels are launched at once."""
    f = tlx.compile(sums("4"), "nvidia").f
    assert isinstance(f, DeviceFunction)
    w, x, y = integers((8, 8), np.float32, 1), integers((4, 8, 8), np.float32), integers((8, 8), np.float32, 2)
    arrays = [f.on_device(array) for array in (w, x, y)]
    for _ in range(24):
        f(*arrays, 0)
    again = f.captured(*arrays, 0)
    again()
    np.testing.assert_array_equal(np.asarray(arrays[2]), y + 25 * x.sum(axis=0) @ w)


def test_kernels_of_iterations_are_shared() -> None:
    (table,) = table_of(lowered(sums("4")))
    products = [launch.kernel for launch in table.launches if launch.kernel.endswith("matmul")]
    assert len(products) == 4
    assert len(set(products)) == 1


@pytest.mark.parametrize("trips", ["%count", "2000"])
def test_loops_of_unknown_or_many_iterations_are_refused(trips: str) -> None:
    with pytest.raises(LoweringError, match="a loop whose iterations depend on each other cannot be launched"):
        lowered(sums(trips))


def test_independent_loops_of_unknown_iterations_are_refused() -> None:
    text = sums("%count").replace("label %loop, label %end", "label %loop, label %end, !tlx.independent !{}")
    with pytest.raises(LoweringError, match="a loop whose bounds are known only at run time cannot be launched"):
        lowered(text)


def _shifted(index: str, advance: str, test: str, offset: str) -> str:
    """Stores twice x, of 4 elements, to y at an offset that depends on a loop's index."""
    body = f"""entry:
  br label %loop
loop:
  %i = phi {index} [ 0, %entry ], [ %n, %loop ]
  %d = add {index} %i, %i
  {offset}
{tensor("t", "x", "float", (4,))}  %v = call <4 x float> @llvm.tensor.tovector(token %t)
  %sum = fadd <4 x float> %v, %v
{typed("r", "sum", "float", (4,))}  call void @llvm.tensor.store(ptr %to, token %r, <1 x i32> zeroinitializer)
  %n = add {index} {advance}
  %c = icmp {test}
  br i1 %c, label %loop, label %end
end:
"""
    return function(["x", "y"], body)


@pytest.mark.parametrize(
    ("index", "advance", "test"),
    [
        ("i8", "%i, 3", "ult i8 %n, -1"),  # 0, 3, ... 252; -1 is 255
        ("i8", "%i, 3", "slt i8 %n, 127"),  # passes 127 to -127, before it meets 127 itself
        ("i8", "%i, 100", "ult i8 %n, 120"),  # 0, 100; then 200
        ("i64", "%d, 4", "slt i64 %n, 200"),  # 0, 4, 12, 28, ...
    ],
)
def test_loops_whose_index_wraps_around_or_does_not_step_evenly_are_refused(
    index: str, advance: str, test: str
) -> None:
    offset = "%w = zext i8 %i to i64\n  %to = getelementptr float, ptr %y, i64 %w"
    text = _shifted(index, advance, test, offset if index == "i8" else "%to = getelementptr float, ptr %y, i64 %i")
    with pytest.raises(LoweringError, match="a loop whose iterations depend on each other cannot be launched"):
        lowered(text)


@pytest.mark.parametrize(
    "offset",
    [
        "%w = zext i8 %i to i64\n  %to = getelementptr float, ptr %y, i64 %w",
        "%s = add i8 %i, -6\n  %w = zext i8 %s to i64\n  %to = getelementptr float, ptr %y, i64 %w",
        (
            "%s = shl i8 %d, 2\n  %w = sext i8 %s to i64\n  %p = getelementptr float, ptr %y, i8 64\n"
            "  %to = getelementptr float, ptr %p, i64 %w"
        ),
        "%s = add i8 %d, %d\n  %p = getelementptr float, ptr %y, i64 128\n  %to = getelementptr float, ptr %p, i8 %s",
    ],
)
def test_narrow_indices_of_loops(run: Run, offset: str) -> None:
    """Sums and products of them may wrap around before they are extended."""
    x, want = normal((4,), np.float32), np.zeros(512, np.float32)
    text = _shifted("i8", "%i, 30", "slt i8 %n, 97", offset)  # 0, 30, 60, 90
    tlx.compile(text, "generic").f(x, want)
    _, got = run(text, x, np.zeros_like(want))
    np.testing.assert_array_equal(got, want)


def test_nested_loops_of_many_iterations_are_refused() -> None:
    inner = sums("100").replace("%i", "%j").replace("loop:", "inner:").replace("%loop", "%inner")
    inner = inner.replace(
        "br label %inner\ninner:",
        "br label %loop\nloop:\n  %i = phi i64 [ 0, %entry ], [ %m, %next ]\n  br label %inner\ninner:",
    ).replace("[ 0, %entry ], [ %n,", "[ 0, %loop ], [ %n,")
    text = inner.replace(
        "label %end\nend:",
        "label %next\nnext:\n  %m = add i64 %i, 1\n  %d = icmp slt i64 %m, 100\n"
        "  br i1 %d, label %loop, label %end\nend:",
    )
    with pytest.raises(LoweringError, match="a loop whose iterations depend on each other cannot be launched"):
        lowered(text)
    (table,) = table_of(lowered(text.replace("%m, 100", "%m, 3")))
    assert len(table.launches) == 300


def test_constants_of_the_program_are_operands(run: Run) -> None:
    weights = [f"float {n % 5 - 2}.0" for n in range(48)]
    body = f"""{tensor("a", "x", "float", (5, 8))}{tensor("b", "w", "float", (8, 6)).replace("%w", "@w")}
  %p = call <30 x float> @llvm.tensor.matmul(token %a, token %b)
  store <30 x float> %p, ptr %y
"""
    text = f"@w = internal constant [48 x float] [{', '.join(weights)}]\n{function(['x', 'y'], body)}"
    x = integers((5, 8), np.float32)
    _, y = run(text, x, np.zeros((5, 6), np.float32))
    np.testing.assert_array_equal(y, x @ (np.arange(48) % 5 - 2).reshape(8, 6).astype(np.float32))


def test_memory_of_the_program_that_is_not_constant_is_refused() -> None:
    body = f"""{tensor("a", "x", "float", (4, 8)).replace("%x", "@x")}
  %r = call <32 x float> @llvm.tensor.exp(token %a)
  store <32 x float> %r, ptr %y
"""
    with pytest.raises(LoweringError, match="memory of the program such as @x cannot be launched"):
        lowered(f"@x = global [32 x float] zeroinitializer\n{function(['y'], body)}")


def test_numbers(run: Run) -> None:
    """Numbers and vectors of one element are loaded, computed and stored by kernels."""
    body = f"""  %n = load float, ptr %x
  %sum = fadd float %n, %s
  %half = fmul float %sum, 0.5
  store float %half, ptr %y
  %p = getelementptr float, ptr %x, i64 3
  %v = load <1 x float>, ptr %p
  %minus = fneg <1 x float> %v
  %q = getelementptr float, ptr %y, i64 1
  store <1 x float> %minus, ptr %q
{tensor("a", "x", "float", (2, 8))}
  %r = call <16 x float> @llvm.tensor.relu(token %a)
  store <16 x float> %r, ptr %z
"""
    x = normal((16,), np.float32)
    *_, y, z, _ = run(
        function(["x", "y", "z", "float %s"], body), x, np.zeros(2, np.float32), np.zeros(16, np.float32), 3
    )
    np.testing.assert_allclose(y, [(x[0] + 3) / 2, -x[3]], rtol=1e-6)
    np.testing.assert_array_equal(z, np.maximum(x, 0))


def test_graphs_of_numbers(run: Run) -> None:
    """What is left of them for kernels are loads, functions of LLVM and stores."""
    graph = tlx.Graph("f")
    x, y = (graph.parameter(name, ()) for name in "xy")
    graph.output(graph.maximum((x + y) ** y, 2.0))
    for pair, want in (((1.0, 2.0), 9.0), ((1.0, -2.0), 2.0)):
        *_, z = run(graph.text(), *(np.array([number], np.float32) for number in (*pair, 0.0)))
        np.testing.assert_allclose(z, [want], rtol=1e-6)


def test_functions_whose_operations_are_unused_do_nothing(run: Run) -> None:
    x = normal((4, 8), np.float32)
    (y,) = run(function(["x"], tensor("a", "x", "float", (4, 8))), x.copy())
    np.testing.assert_array_equal(y, x)


def test_functions_without_tensor_operations_are_refused(run: Run) -> None:
    x = np.zeros(4, np.float32)
    with pytest.raises(UsageError, match="@f has no tensor operations, so there are no kernels to launch"):
        run(function(["x"], "  store float 1.0, ptr %x\n"), x)


def test_tensors_of_one_element(run: Run) -> None:
    body = f"""{tensor("a", "x", "float", (1, 1))}{reduction("s", "add", "a", "float", (1, 1), 0)}
  store <1 x float> %s, ptr %y
"""
    _, y = run(function(["x", "y"], body), np.array([1.5], np.float32), np.zeros(1, np.float32))
    np.testing.assert_array_equal(y, [1.5])


def test_blocks_run_in_the_order_of_control_flow(run: Run) -> None:
    body = f"""entry:
  br label %first
second:
{tensor("b", "y", "float", (4, 8))}
  %s = call <32 x float> @llvm.tensor.relu(token %b)
  store <32 x float> %s, ptr %z
  br label %end
first:
{tensor("a", "x", "float", (4, 8))}
  %r = call <32 x float> @llvm.tensor.exp(token %a)
  store <32 x float> %r, ptr %y
  br label %second
end:
"""
    x = normal((4, 8), np.float32)
    *_, z = run(function(["x", "y", "z"], body), x, np.zeros_like(x), np.zeros_like(x))
    np.testing.assert_allclose(z, np.exp(x), rtol=1e-5)


@pytest.mark.parametrize(
    ("parameters", "to"),
    [(["x"], "getelementptr float, ptr %x, i64 1"), (["x", "ptr %y"], "getelementptr float, ptr %y, i64 0")],
    ids=["same-memory", "other-parameter"],
)
def test_copies_within_memory_that_may_overlap_are_refused(parameters: list[str], to: str) -> None:
    body = f"""  %v = load <64 x float>, ptr %x
  %p = {to}
  store <64 x float> %v, ptr %p
{tensor("a", "x", "float", (8, 8))}
  %r = call <64 x float> @llvm.tensor.exp(token %a)
  store <64 x float> %r, ptr %x
"""
    text = function(parameters, body).replace("ptr noalias %x", "ptr %x")
    with pytest.raises(LoweringError, match="a copy between parts of memory that may overlap"):
        lowered(text)


def test_arrays_that_begin_between_multiples_of_16_bytes(run: Run) -> None:
    """Those of numpy are copied to where they are aligned; one copy cannot be aligned for all of its views."""
    body = f"""{tensor("a", "x", "float", (8, 8))}{tensor("b", "w", "float", (8, 8))}
  %p = call <64 x float> @llvm.tensor.matmul(token %a, token %b)
  store <64 x float> %p, ptr %y
"""
    text, memory = function(["x", "w", "y"], body), integers((200,), np.float32)

    def at(start: int) -> Array:
        return memory[start : start + 64].reshape(8, 8)

    for x, w, y in ((1, 65, 129), (71, 3, 135), (1, 1, 65), (5, 1, 69)):
        want = at(x) @ at(w)
        before, after = memory[:y].copy(), memory[y + 64 :].copy()
        run(text, at(x), at(w), at(y))
        np.testing.assert_array_equal(memory, np.concatenate([before, want.ravel(), after]))
    with pytest.raises(ArgumentError, match=r"argument 1 .*: the array is not aligned to 16 bytes; copy it first"):
        run(text, at(1), at(3), at(70))


def test_results_in_memory_that_is_aligned_less_than_the_function_says(run: Run) -> None:
    body = f"""{tensor("a", "x", "float", (8, 8))}
  %r = call <64 x float> @llvm.tensor.relu(token %a)
  store <64 x float> %r, ptr %y
"""
    text, x = function(["x", "ptr noalias sret([64 x float]) align 64 %y"], body), integers((8, 8), np.float32)
    for start in range(0, 16, 4):
        memory = np.zeros(80, np.float32)
        run(text, x, memory[start : start + 64])
        np.testing.assert_array_equal(memory[start : start + 64], np.maximum(x, 0).ravel())
