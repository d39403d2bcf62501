"""Each operator in the cases that come with ONNX; those that are not supported are listed, and are errors at a node."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from tests.semantics.frontends.onnx.node_cases import node_cases, run_case, unsupported
from tlx.diagnostics import TlxError
from tlx.frontends.onnx.session import InferenceSession

# The scale of the file, not that of the rounded shape, would decide positions; onnxruntime and TLX take the shape.
DIFFERENT = frozenset(("resize_downsample_scales_linear_align_corners", "resize_downsample_scales_cubic_align_corners"))
RANDOM = "bernoulli"
"""Cases with such names compare random numbers, which are others here."""
PARTS = 40
QUICK = 5


def _is_comparable(name: str) -> bool:
    return name not in unsupported() | DIFFERENT and not name.startswith(RANDOM)


@pytest.mark.parametrize(
    "part", [pytest.param(k, marks=[pytest.mark.long] if k >= QUICK else []) for k in range(PARTS)]
)
def test_cases(part: int) -> None:
    failed: list[str] = []
    for name, case in node_cases().items():
        if zlib.crc32(name.encode()) % PARTS != part or not _is_comparable(name):
            continue
        try:
            run_case(case)
        except (AssertionError, TlxError) as error:
            failed.append(f"{name}: {error}")
    assert not failed


def test_unsupported_cases_are_errors() -> None:
    names = sorted(unsupported())
    assert set(names) <= set(node_cases())
    wrong: list[str] = []
    for name in names[::8]:
        try:
            run_case(node_cases()[name])
        except TlxError as error:
            if "Traceback" in str(error):
                wrong.append(f"{name}: {error}")
        else:
            wrong.append(f"{name} is supported: remove it from the list")
    assert not wrong


def test_random_numbers() -> None:
    """They are not those of the case, but of its shape and type."""
    cases = [case for name, case in node_cases().items() if name.startswith(RANDOM)]
    assert len(cases) >= 6
    for case in cases:
        (inputs, (expected,)) = case.data_sets[0]
        feeds = {i.name: array for i, array in zip(case.model.graph.input, inputs, strict=True)}
        (result,) = InferenceSession(case.model.SerializeToString()).run(None, feeds)
        assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
        assert set(result.reshape(-1).tolist()) <= {0, 1}


def test_the_evaluator_agrees() -> None:
    """Each twentieth case, without machine code."""
    failed: list[str] = []
    for name, case in node_cases().items():
        if zlib.crc32(name.encode()) % 20 != 7 or not _is_comparable(name):
            continue
        try:
            run_case(case, evaluated=True)
        except (AssertionError, TlxError) as error:
            failed.append(f"{name}: {error}")
    assert not failed


def test_boxes_are_selected_where_they_are_known() -> None:
    """How many are selected is a shape, so it must not depend on the inputs."""
    cases = {name: case for name, case in node_cases().items() if name.startswith("nonmaxsuppression")}
    assert len(cases) >= 9
    for case in cases.values():
        (inputs, (expected,)), model = case.data_sets[0], case.model.SerializeToString()
        names = [i.name for i in case.model.graph.input]
        known = dict(zip(names, map(np.asarray, inputs), strict=True))
        np.testing.assert_array_equal(InferenceSession(model, constants=known, lazy=True).run(None, {})[0], expected)
        with pytest.raises(TlxError, match="the number of selected boxes depends on the inputs"):
            InferenceSession(model, lazy=True).run(None, known)
