"""The workloads of `tlx bench`, at tiny sizes: all lower for every target, and results are right on this machine."""

from __future__ import annotations

import numpy as np
import pytest

from tlx.api.compiler import compile as compile_module
from tlx.bench import workloads
from tlx.bench.workloads import convolutions, elementwise, products
from tlx.diagnostics import UsageError
from tlx.intrinsics.numpy_types import Array
from tlx.ir.parser.module import parse
from tlx.lower.options import Options
from tlx.lower.pipeline import lower
from tlx.lower.remarks import Remarks
from tlx.target.host import cpu_flags, missing_features
from tlx.target.installed import targets
from tlx.tuning.timing import NativeCall, call_loop, function_address
from tlx.tuning.workload import BF16, ElementwiseCheck, FreivaldsCheck, Workload, WrongResultError

TINY = [
    *[products.product(name, 5, 7, 6) for name in products.TYPES],
    *[products.product(name, 5, 7, 8, vnni=True) for name in ("bf16", "s8", "u8s8")],
    *[products.product("f32", 5, 7, 6, columns=columns) for columns in ("a", "b", "c", "ab", "abc")],
    products.layer("f32", 5, 7, 6),
    products.layer("bf16", 5, 7, 6),
    products.layer("bf16", 5, 7, 6, vnni=True),
    *[products.batch(name, 3, (4, 4, 4)) for name in ("f32", "f64", "bf16")],
    *[products.batch(name, 3, (4, 4, 4), reduced=True) for name in ("f32", "bf16", "s8")],
    products.fused(3),
    *[convolutions.convolution(name, 4, 6, 7, 3, 2) for name in ("f32", "bf16", "s8")],
    convolutions.convolution("f32", 4, 4, 6, 3, 1, 4, row="depthwise"),
    *[elementwise.pointwise(function, types, 37) for function in elementwise.INPUTS for types in ("f32", "bf16")],
    *[elementwise.of_rows(function, types, 3, 19) for function in elementwise.ROWS for types in ("f32", "bf16")],
]
MATRIX = [name for name, target in targets().items() if target.matrix is not None]
HERE = [name for name, target in targets().items() if name not in MATRIX and not missing_features(target, cpu_flags())]


def expected(work: Workload, arrays: dict[str, Array]) -> ElementwiseCheck:
    """The expected result of a workload."""
    assert work.expected is not None
    truth = work.expected(arrays)
    assert isinstance(truth, ElementwiseCheck)
    return truth


def named(work: Workload) -> str:
    return work.name.replace(" ", "_")


@pytest.mark.parametrize("work", TINY, ids=named)
def test_results_are_right(work: Workload) -> None:
    arrays = work.arrays()
    truth = expected(work, arrays)
    for target in HERE:
        compiled = compile_module(work.text(), target, entry=work.function)
        work.reset_output(arrays)
        call_loop([NativeCall(function_address(compiled.entry.code), work.arguments(arrays))])(1)
        work.check(arrays[work.output.name], truth, target)


@pytest.mark.parametrize(
    ("types", "size", "target", "unit"),
    [
        ("bf16", 64, "amx", "matrix"),
        ("u8s8", 64, "avx512", "dot"),
        ("bf16", 5, "amx", "fma"),
        ("f32", 64, "amx", "fma"),
    ],
)
def test_remarks_name_the_instruction(types: str, size: int, target: str, unit: str) -> None:
    remarks = Remarks()
    options = Options(remarks=remarks, cpu="sapphirerapids")
    lower(parse(products.product(types, size, size, size).text()), target, options=options)
    (prediction,) = [remark.prediction for remark in remarks if remark.prediction is not None]
    assert prediction.unit == unit
    assert 0 < prediction.share <= 1


@pytest.mark.parametrize("work", TINY[::3], ids=named)
@pytest.mark.parametrize("target", MATRIX)
def test_matrix_units_are_lowered_for(work: Workload, target: str) -> None:
    assert "llvm.tensor." not in str(lower(parse(work.text()), target))


def test_every_workload_of_the_table_is_a_valid_text() -> None:
    seen: set[str] = set()
    for work in workloads.all_workloads():
        assert work.name not in seen
        seen.add(work.name)
        if (work.row, work.types) not in {(w.row, w.types) for w in TINY}:
            assert "@work" in work.text()
        assert work.operations > 0
        assert sum(buffer.output for buffer in work.buffers) == 1


@pytest.mark.parametrize("row", ["gemm", "layer", "batch", "brgemm", "convolution", "depthwise", "softmax", "exp"])
def test_rows_of_the_table(row: str) -> None:
    assert {"f32", "bf16"} <= {work.types for work in workloads.select_workloads([row], [], [], [])}


def test_choosing() -> None:
    works = workloads.select_workloads(["gemm"], ["f32"], ["64", "13x17x19"], ["plain"])
    assert [work.name for work in works] == ["gemm f32 64", "gemm f32 13x17x19"]
    with pytest.raises(UsageError, match="unknown size '65'; choose from 8, 16"):
        workloads.select_workloads(["gemm"], ["f32"], ["65"], [])


@pytest.mark.parametrize("types", ["f32", "bf16->bf16", "s8"])
def test_a_wrong_element_is_detected(types: str) -> None:
    work = products.product(types, 5, 7, 6)
    arrays = work.arrays()
    truth = expected(work, arrays)
    right = work.output.element.narrow(truth.values)
    work.check(right, truth, "numpy")
    wrong = right.copy()
    wrong[2, 3] = work.output.element.narrow(truth.values[2:3, 3:4] * 1.1 + 1)[0, 0]
    with pytest.raises(WrongResultError, match=r"element \(2, 3\) is .*; 1 of 35 elements are wrong"):
        work.check(wrong, truth, "numpy")


@pytest.mark.parametrize("columns", ["", "a", "b", "c"])
@pytest.mark.parametrize("types", ["f32", "s8"])
def test_probes_detect_a_wrong_element(types: str, columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    work = products.product(types, 60, 40, 50, columns=columns)
    arrays = work.arrays()
    right = work.output.element.narrow(expected(work, arrays).values)
    monkeypatch.setattr(products, "PROBED_OPERATIONS", 1)
    assert work.expected is not None
    truth = work.expected(arrays)
    assert isinstance(truth, FreivaldsCheck)
    work.check(right, truth, "numpy")
    known = int(truth.sample[1])
    other = next(row for row in range(len(right)) if row not in truth.sample)
    for row, message in ((known, r"in rows 0, .*: element \(1, 3\) is"), (other, f"row {other} is wrong")):
        wrong = right.copy()
        wrong[row, 3] += 1
        with pytest.raises(WrongResultError, match=message):
            work.check(wrong, truth, "numpy")


def test_nan_is_wrong() -> None:
    work = products.product("f32", 2, 2, 2)
    values = np.full((2, 2), np.nan, np.float32)
    with pytest.raises(WrongResultError):
        work.check(values, ElementwiseCheck(np.ones((2, 2)), np.ones((2, 2))), "nobody")


def test_bfloat_is_rounded_to_nearest_even() -> None:
    values = np.array([1.0, 1 + 2**-8, 1 + 3 * 2**-8, -2.5])
    assert BF16.widen(BF16.narrow(values)).tolist() == [1.0, 1.0, 1 + 2**-6, -2.5]
