"""Which lines of a program each line of a stage comes from."""

from __future__ import annotations

import pytest

from tests.unit.explain.programs import (
    BATCH,
    DIFFERENCE,
    EXP,
    LAYER,
    MAX,
    PRODUCT,
    QUOTIENT,
    ROW,
    ROWS,
    SOFTMAX,
    SUM,
    TOTAL,
    A,
    B,
    report_of,
)
from tlx.api.files import translate
from tlx.explain.collect import Report, original_column
from tlx.explain.provenance import Keys, Section
from tlx.ir.module import Module


def part(report: Report, stage: str, title: str) -> Section:
    column = next(column for column in report.columns if column.name == stage)
    return next(section for section in column.sections if section.title == title)


def keys_of(section: Section, word: str) -> list[Keys]:
    return [line.keys for line in section.lines if word in line.text]


def test_fused_operations_keep_their_own_lines() -> None:
    body = part(report_of(LAYER), "to-2d", "@layer")
    assert keys_of(body, "llvm.tensor.matmul") == [(PRODUCT,)]
    assert keys_of(body, "= fadd") == [(SUM,)]


def test_the_call_of_a_kernel_has_the_lines_of_its_tree() -> None:
    report = report_of(LAYER)
    (keys,) = keys_of(part(report, "to-tiles", "@layer"), "@tlx.matmul")
    assert {PRODUCT, SUM} <= set(keys)
    (kernel,) = report.kernels
    assert kernel.keys == keys
    assert part(report, "legalize", f"@{kernel.name}").keys == keys


def test_operands_without_code_of_their_own_belong_to_their_users() -> None:
    source = report_of(LAYER).columns[0].sections[0].lines
    keys = {number: line.keys for number, line in enumerate(source, 1)}
    assert PRODUCT in keys[A]
    assert keys[A] == keys[A + 1], "an instruction on two lines"
    assert PRODUCT in keys[B]
    assert SUM in keys[ROW]
    assert SUM in keys[ROWS]


def test_fused_rows_have_the_lines_of_all_trees() -> None:
    report = report_of(SOFTMAX)
    (kernel,) = report.kernels
    assert kernel.name.startswith("tlx.rows.")
    assert {MAX, DIFFERENCE, EXP, TOTAL, QUOTIENT} <= set(kernel.keys)


def test_inlined_kernels_are_found_in_their_nests() -> None:
    report = report_of(BATCH)
    (kernel,) = report.kernels
    assert kernel.home == "tlx.nest.batch"
    assert kernel.calls == 5
    assert part(report, "legalize", "@tlx.nest.batch").keys == (4,)


@pytest.mark.parametrize("program", [LAYER, SOFTMAX, BATCH])
def test_the_text_of_a_stage_is_complete(program: str) -> None:
    report = report_of(program)
    shown = {line.text for section in report.columns[-1].sections for line in section.lines}
    assert {line for line in report.text.split("\n") if line.strip()} <= shown


def test_lines_of_another_language_have_the_lines_of_their_translation() -> None:
    text = """\
func @f(%a: memref<f32x8x8>, %c: memref<f32x8x8>) {
    %zero = constant 0.0 : f32
    %one = constant 1.0 : f32
    gemm %one, %a, %a, %zero, %c
}
"""
    translation = translate(text.encode(), "program.tl")
    assert isinstance(translation, Module)
    (section,) = original_column(text, "program.tl", translation).sections
    keys = section.lines[3].keys
    lines = str(translation).lstrip("\n").split("\n")
    assert any("llvm.tensor.matmul" in lines[key - 1] for key in keys)
    assert any("llvm.tensor.store" in lines[key - 1] for key in keys)
