"""Each operator in the cases that come with ONNX; those that are not supported are listed, and are errors at a node."""

from __future__ import annotations

import zlib

import pytest

from tests.semantics.frontends.onnx.node_cases import node_cases, run_case, unsupported
from tlx.diagnostics import TlxError

# The scale of the file, not that of the rounded shape, would decide positions; onnxruntime and TLX take the shape.
DIFFERENT = frozenset(("resize_downsample_scales_linear_align_corners", "resize_downsample_scales_cubic_align_corners"))
PARTS = 40
QUICK = 5


@pytest.mark.parametrize(
    "part", [pytest.param(k, marks=[pytest.mark.long] if k >= QUICK else []) for k in range(PARTS)]
)
def test_cases(part: int) -> None:
    failed: list[str] = []
    for name, case in node_cases().items():
        if zlib.crc32(name.encode()) % PARTS != part or name in unsupported() | DIFFERENT:
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


def test_the_evaluator_agrees() -> None:
    """Each twentieth case, without machine code."""
    failed: list[str] = []
    for name, case in node_cases().items():
        if zlib.crc32(name.encode()) % 20 != 7 or name in unsupported() | DIFFERENT:
            continue
        try:
            run_case(case, evaluated=True)
        except (AssertionError, TlxError) as error:
            failed.append(f"{name}: {error}")
    assert not failed
