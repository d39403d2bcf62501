"""Extents known only at run time: programs mean the same before and after every stage, and as machine code.

Sizes are those around the blocks the lowering uses. Machine code runs on memory that ends at a guard page.
"""

from __future__ import annotations

from copy import copy
from functools import cache
from typing import Any

import numpy as np
import pytest

import tlx
from tests.semantics.dynamic.control_flow import FLOW
from tests.semantics.dynamic.elementwise import ELEMENTS
from tests.semantics.dynamic.products import PRODUCTS
from tests.semantics.dynamic.programs import Program
from tests.support.tools import quick, require_processor
from tlx.api.compiler import CompiledModule
from tlx.api.validation import StageRecorder
from tlx.diagnostics import EvaluationError
from tlx.evaluate import Machine
from tlx.evaluate.memory import MemoryRegion
from tlx.fuzz.check import GuardedArray
from tlx.intrinsics.numpy_types import Array
from tlx.ir.module import Module
from tlx.ir.parser.module import parse, parse_fully
from tlx.ir.tensors.calls import canonicalise
from tlx.llvm.codegen import emit_code
from tlx.lower.options import STAGE_NAMES, Options, Workspace
from tlx.lower.pipeline import lower

PROGRAMS = {program.name: program for program in (*PRODUCTS, *ELEMENTS, *FLOW)}
EVERY = [
    pytest.param(name, size, id=f"{name}-{'x'.join(map(str, size))}")
    for name, p in PROGRAMS.items()
    for size in p.sizes
]
SMALL = [pytest.param(name, p.sizes[min(2, len(p.sizes) - 1)], id=name) for name, p in PROGRAMS.items()]


def arguments(program: Program, size: tuple[int, ...]) -> list[Any]:
    return program.arguments(np.random.default_rng(sum(size)), *size)


def evaluated(module: Module, name: str, original: list[Any]) -> list[Any]:
    """The arrays after the call; all memory must have been freed."""
    copies: list[Any] = [copy(a) for a in original]
    machine = Machine(module)
    allocate, heap = machine.memory.allocate, list[MemoryRegion]()

    def noted(size: int, label: str, align: int = 16) -> MemoryRegion:
        region = allocate(size, label, align)
        heap.extend([region] if label.startswith("heap") else [])
        return region

    machine.memory.allocate = noted
    machine.call(name, *copies)
    assert all(region.death for region in heap), [r.label for r in heap if not r.death]
    return copies


@cache
def expected(name: str, size: tuple[int, ...]) -> list[Any]:
    return evaluated(parse(PROGRAMS[name].text), name, arguments(PROGRAMS[name], size))


def compare(program: Program, got: list[Any], expected_arrays: list[Any]) -> None:
    for one, other in zip(got, expected_arrays, strict=True):
        if program.exact:
            np.testing.assert_array_equal(one, other)
        else:
            np.testing.assert_allclose(one, other, rtol=1e-6)


@pytest.mark.parametrize(("name", "size"), [p for p in EVERY if PROGRAMS[str(p.values[0])].expected is not None])
def test_the_evaluator_agrees_with_numpy(name: str, size: tuple[int, ...]) -> None:
    program = PROGRAMS[name]
    assert program.expected is not None
    for number, array in program.expected(*arguments(program, size)).items():
        np.testing.assert_array_equal(expected(name, size)[number], array)


# Stages --------------------------------------------------------------------------------------------------------------


@cache
def lowered(name: str, target: str) -> dict[str, Module]:
    """A program after each stage, by the stage's name."""
    stages = StageRecorder()
    lower(parse(PROGRAMS[name].text), target, options=Options(print_after=stages))
    return {step.name: parse_fully(text) for step, text in stages.outputs}


@pytest.mark.parametrize(("name", "size"), SMALL)
def test_stages_mean_the_same(name: str, size: tuple[int, ...]) -> None:
    program, modules = PROGRAMS[name], lowered(name, "avx512")
    assert list(modules) == list(STAGE_NAMES)
    assert "vscale" not in str(modules["to-2d"])
    for module in modules.values():
        compare(program, evaluated(module, name, arguments(program, size)), expected(name, size))


@cache
def without_shapes(name: str) -> Module:
    """A program after stage 1 alone."""
    module = lower(parse(PROGRAMS[name].text), "generic", options=Options(stop_after="to-2d"))
    return parse_fully(str(module))


@pytest.mark.parametrize(("name", "size"), EVERY[::3])
def test_stage_1_means_the_same_at_any_size(name: str, size: tuple[int, ...]) -> None:
    program = PROGRAMS[name]
    compare(program, evaluated(without_shapes(name), name, arguments(program, size)), expected(name, size))


@pytest.mark.parametrize(("name", "size"), [p for p in SMALL if "shufflevector" not in PROGRAMS[str(p.values[0])].text])
def test_stock_llvm_may_optimise_first(name: str, size: tuple[int, ...]) -> None:
    """LLVM 22 cannot tell the cost of scalable shuffles on x86, so no program that has one is tried."""
    module = parse(PROGRAMS[name].text)
    canonicalise(module)
    optimised = lower(parse(emit_code(str(module), "ll", 2).decode()), "generic", options=Options(stop_after="to-2d"))
    got = evaluated(parse_fully(str(optimised)), name, arguments(PROGRAMS[name], size))
    compare(PROGRAMS[name], got, expected(name, size))


# Machine code --------------------------------------------------------------------------------------------------------


@cache
def compiled(target: str, workspace: Workspace = "malloc") -> CompiledModule:
    """All programs: one compilation takes less time than many."""
    texts = [program.text for program in PROGRAMS.values()]
    lines = {line: None for text in texts for line in text.splitlines() if line.startswith("declare")}
    bodies = ["\n".join(line for line in text.splitlines() if not line.startswith("declare")) for text in texts]
    return tlx.compile("\n".join([*bodies, *lines, ""]), target, options=Options(workspace=workspace))


@pytest.mark.parametrize(("name", "size"), EVERY[::4])
@pytest.mark.parametrize("target", quick(["avx512", "generic", "avx2"], 2))
def test_machine_code_means_the_same(name: str, size: tuple[int, ...], target: str) -> None:
    require_processor(target)
    for at_end in (True, False):
        check_guarded(compiled(target), name, size, at_end=at_end)


@pytest.mark.parametrize(("name", "size"), EVERY[::5])
def test_an_arena_holds_values_of_run_time_size(name: str, size: tuple[int, ...]) -> None:
    code = compiled("generic", "arena")
    for _ in range(2):
        check_guarded(code, name, size, at_end=True)


def check_guarded(code: CompiledModule, name: str, size: tuple[int, ...], *, at_end: bool) -> None:
    values = arguments(PROGRAMS[name], size)
    guards = {k: GuardedArray(a, at_end=at_end) for k, a in enumerate(values) if hasattr(a, "dtype")}
    passed = [guards[k].array if k in guards else a for k, a in enumerate(values)]
    code[name](*passed)
    compare(PROGRAMS[name], passed, expected(name, size))
    assert all(guard.is_intact for guard in guards.values())


EMULATED = ["matmul_i8_i8_i32_rr", "usmma_i8_i8_i32_rr", "matmul_bfloat_bfloat_float_rr", "contract_batched"]


@pytest.mark.parametrize("name", EMULATED)
def test_matrix_unit(name: str) -> None:
    code = tlx.compile(PROGRAMS[name].text, "amx", options=Options(emulate_matrix=True))
    assert "tdp" in code.lowered
    for size in PROGRAMS[name].sizes[:6]:
        check_guarded(code, name, size, at_end=True)


# What is checked at run time -----------------------------------------------------------------------------------------


def _gemm(m: int, k: int, other: int, n: int, lc: int) -> list[Any]:
    arrays: list[Array] = [np.zeros(max(1, x * y), np.float32) for x, y in ((m, k), (other, n), (m, n))]
    return [*arrays, m, k, other, n, lc]


WRONG = {
    "inner extents": (_gemm(3, 4, 5, 6, 0), "inner extents 4 and 5 differ"),
    "extent": (_gemm(3, 0, 0, 6, 0), "extents are at least 1"),
    "negative extent": (_gemm(3, -1, -1, 6, 0), "extents are at least 1"),
    "overlapping rows": (_gemm(3, 4, 4, 6, 5), "stride 5 of dimension 1 is less than its extent 6"),
    "negative stride": (_gemm(3, 4, 4, 6, -7), "negative"),
}


@pytest.mark.parametrize("case", list(WRONG))
def test_mismatching_sizes_trap(case: str) -> None:
    values, message = WRONG[case]
    text = _gemm_text()
    with pytest.raises(EvaluationError, match=message):
        Machine(parse(text)).call("f", *values)
    module = lower(parse(text), "generic")
    with pytest.raises(EvaluationError, match=r"llvm\.trap"):
        Machine(parse_fully(str(module))).call("f", *values)


def _gemm_text() -> str:
    from tests.semantics.dynamic.programs import Body

    t = Body()
    x, y = t.load("%a", "float", ("%m", "%k")), t.load("%b", "float", ("%other", "%n"))
    t.store("%c", t.info(t.op("matmul", "float", x, y), "float", ("%m", "%n")), (0, "%lc"))
    parameters = "ptr %a, ptr %b, ptr %c, i32 %m, i32 %k, i32 %other, i32 %n, i32 %lc"
    return f"define void @f({parameters}) {{\n" + "\n".join(t.lines) + "\n  ret void\n}\n"


def test_a_size_that_is_used_before_it_is_checked_traps() -> None:
    """Memory of two values is allocated at once; the second one's extent is negative, or too large for any memory."""
    from tests.semantics.dynamic.programs import Body

    t = Body()
    for extent, to in (("%m", "%c"), ("%n", "%d")):
        x = t.op("tovector", "float", t.load("%a", "float", (extent,)))
        squares = t.info(t.vscale(f"fmul H {x}, {x}"), "float", (extent,))
        t.store(to, squares, (0,))
        t.store("%e", squares, (0,))
    parameters = ", ".join(f"ptr noalias %{name}" for name in "acde")
    lines = "\n".join(t.lines)
    text = str(lower(parse(f"define void @f({parameters}, i32 %m, i32 %n) {{\n{lines}\n  ret void\n}}\n"), "generic"))
    assert text.count("call void @tlx.dynamic.allocate(") == 1
    for extent in (-1, 0, -(1 << 31)):
        machine = Machine(parse_fully(text))
        with pytest.raises(EvaluationError, match=r"llvm\.trap|heap block of .* is too large"):
            machine.call("f", *(np.ones(4, np.float32) for _ in range(4)), 4, extent)
