"""Random graphs: what is drawn is repeatable, TLX computes what JAX computes, and wrong results are found."""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.tools import quick, require_module, runs
from tlx.diagnostics import UsageError
from tlx.fuzz import campaign
from tlx.fuzz.campaign import check_on, file_text, request_of
from tlx.fuzz.check import CheckSettings, MismatchError
from tlx.fuzz.generation.model import ChoiceNode
from tlx.fuzz.graphs.check import built, check_graph
from tlx.fuzz.graphs.drawing import wide_jax
from tlx.fuzz.graphs.generator import graph_operations, random_graph
from tlx.fuzz.graphs.operations import table
from tlx.fuzz.graphs.program import GraphBlock, GraphParameter, GraphProgram, Statement, Variable
from tlx.fuzz.graphs.reference import ExpectedResult, expected_results
from tlx.fuzz.worker import GRAPHS, Request
from tlx.fuzz.worker_pool import CheckOutcome
from tlx.intrinsics.numpy_types import Array

require_module("jax")
TARGETS = ("avx512", "avx2", "generic")
PROGRAMS = 10


def quiet(_: str) -> None:
    pass


@pytest.mark.parametrize("part", quick(range(6)))
def test_graphs_compute_what_jax_computes(part: int) -> None:
    for seed in range(part * PROGRAMS, (part + 1) * PROGRAMS):
        target = TARGETS[seed % 3] if runs(TARGETS[seed % 3]) else "generic"
        try:
            check_graph(random_graph(seed), check_on(target, seed), quiet)
        except MismatchError as error:
            pytest.fail(f"seed {seed} on {target}: {error}\n{random_graph(seed).text}")


def test_graphs_are_evaluated_where_their_code_cannot_run() -> None:
    for seed in range(2):
        check = replace(check_on("amx", seed), run=False, emulate=False)
        check_graph(random_graph(seed), check, quiet)


def test_types_of_64_bits_are_left_as_they_were() -> None:
    jax = import_module("jax")
    before = jax.config.jax_enable_x64
    check_graph(random_graph(3), check_on("generic", 3), quiet)
    assert jax.config.jax_enable_x64 == before


def test_same_seed_same_graph_and_the_tree_repeats_it() -> None:
    for seed in range(10):
        made = random_graph(seed)
        assert random_graph(seed) == made
        assert random_graph(made.node) == made
        assert random_graph(ChoiceNode.of_json(made.node.as_json())).text == made.text


def test_the_text_is_python() -> None:
    for seed in range(10):
        made = random_graph(seed)
        lines = "".join(f"    {line}\n" for line in made.text.splitlines())
        ast.parse(f"def graph():\n{lines}")
        assert all(name in made.text for name in made.operations)


def test_graphs_use_every_operation() -> None:
    drawn = Counter(name for seed in range(200) for name in random_graph(seed).operations)
    assert set(drawn) == set(table())


def test_graphs_have_several_results_gradients_and_all_types() -> None:
    made = [random_graph(seed) for seed in range(60)]
    assert {len(program.results) for program in made} >= {1, 2, 3, 4}
    assert 4 < sum(program.is_gradient for program in made) < 30
    dtypes = {v.dtype for program in made for s in program.body.statements for v in s.results}
    assert dtypes >= {"float32", "float64", "float16", "bfloat16", "int32", "int64", "bool"}


def wrong(program: GraphProgram) -> GraphProgram:
    """The graph with one attribute of its last statement changed."""
    *statements, last = program.body.statements
    changed = replace(last, attributes={**last.attributes, "scale": 0.75})
    return replace(program, body=replace(program.body, statements=(*statements, changed)))


def test_wrong_results_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    program = random_graph(3, ("scaled",))
    check = CheckSettings("generic", variant=3)
    check_graph(program, check, quiet)

    def of_wrong_graph(made: GraphProgram, arrays: Sequence[Array], jax: Any) -> list[ExpectedResult]:
        return expected_results(wrong(made), arrays, jax)

    monkeypatch.setattr("tlx.fuzz.graphs.check.expected_results", of_wrong_graph)
    with pytest.raises(MismatchError, match=r"elements differ; element \[.*\] is .*, expected .* within"):
        check_graph(program, check, quiet)


def test_errors_are_bounded_by_the_condition_of_the_graph() -> None:
    """The allowance is a few roundings of the results, and more where differences cancel."""
    with wide_jax() as jax:
        for seed in range(10):
            program = random_graph(seed, ("unary", "binary", "scaled", "softmax"))
            for expected in expected_results(program, [p.array() for p in program.parameters], jax):
                if expected.variable.is_exact:
                    assert not expected.error.any()
                elif expected.variable.dtype == "float32":
                    assert expected.error.max() < 1e-2 * max(1, float(np.abs(expected.value).max()))


def applied_once(operation: str, *operands: Variable, results: Sequence[Variable], **attributes: Any) -> Statement:
    names = tuple(v.name for v in operands)
    return Statement(operation, names, attributes, tuple(results), is_rounded=False, epsilon=0)


def program_of(statements: Sequence[Statement], *parameters: Variable, results: Sequence[Variable]) -> GraphProgram:
    body = GraphBlock(tuple(v.name for v in parameters), tuple(statements), tuple(v.name for v in results))
    return GraphProgram(
        tuple(GraphParameter(v, "parameter", 0) for v in parameters), body, tuple(results), ChoiceNode()
    )


def test_starts_of_nested_slices_are_clamped_one_after_the_other() -> None:
    """XLA's algebraic simplifier adds the starts and clamps the sum."""
    x, start, second = Variable("x", (8,), "float32"), Variable("i", (1,), "int32"), Variable("j", (1,), "int32")
    outer, inner = Variable("outer", (4,), "float32"), Variable("inner", (2,), "float32")
    slices = [
        applied_once("dynamic_slice", x, start, results=[outer], shape=(4,)),
        applied_once("dynamic_slice", outer, second, results=[inner], shape=(2,)),
    ]
    program = program_of(slices, x, start, second, results=[inner])
    for i, j, first in ((7, 1, 5), (7, -3, 4), (-2, 1, 1), (1, 9, 3)):
        arrays = [np.arange(8, dtype="f4"), np.array([i], "i4"), np.array([j], "i4")]
        with wide_jax() as jax:
            (expected,) = expected_results(program, arrays, jax)
        assert expected.value.tolist() == [first, first + 1]
        assert built(program, arrays).compile()(*arrays).tolist() == [first, first + 1]


def test_sorts_take_zeros_of_both_signs_for_equal() -> None:
    x, values, places = Variable("x", (5,), "float32"), Variable("v", (5,), "float32"), Variable("p", (5,), "int32")
    program = program_of([applied_once("top_k", x, results=[values, places], k=5)], x, results=[values, places])
    array = np.array([-0.0, 0.0, -1.0, 0.0, -0.0], "f4")
    with wide_jax() as jax:
        expected = expected_results(program, [array], jax)
    assert expected[1].value.tolist() == [0, 1, 3, 4, 2]
    assert built(program, [array]).compile()(array)[1].tolist() == [0, 1, 3, 4, 2]


def test_softmax_along_the_first_dimension_has_a_reference() -> None:
    """Without its algebraic simplifier, XLA adds up other elements than those that it divides."""
    x, y = Variable("x", (2, 2, 33, 33), "float32", 2), Variable("y", (2, 2, 33, 33), "float32", is_exact=False)
    softmax = replace(applied_once("softmax", x, results=[y], axis=0), is_rounded=True, epsilon=2.0**-23)
    check_graph(program_of([softmax], x, results=[y]), check_on("generic", 0), quiet)


def test_the_gradient_of_a_dilated_convolution_has_a_reference() -> None:
    """XLA's algebraic simplifier ends the process."""
    x, w = Variable("x", (3, 2, 8, 2), "float32", 2), Variable("w", (3, 2, 2, 4), "float32", 2)
    y = Variable("y", (3, 1, 14, 4), "float32", 50, is_exact=False)
    convolution = applied_once(
        "convolution",
        x,
        w,
        results=[y],
        strides=(1, 1),
        padding=((1, 0), (0, 0)),
        input_dilation=(1, 2),
        dilation=(1, 1),
        groups=1,
        layouts=("NHWC", "HWIO", "NHWC"),
    )
    program = program_of([replace(convolution, is_rounded=True, epsilon=2.0**-23)], x, w, results=[y])
    check_graph(replace(program, is_gradient=True), check_on("generic", 0), quiet)


def test_without_jax_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(UsageError, match=r"tlx fuzz --graphs compares with JAX .*pip install .tlx-ir\[jax\]"):
        graph_operations("")


def test_operations_by_name() -> None:
    assert graph_operations("matmul,softmax") == ("matmul", "softmax")
    assert set(graph_operations("-loop")) | {"loop"} == set(table())
    assert random_graph(1, ("unary", "sum")).operations <= {"unary", "sum"}
    with pytest.raises(UsageError, match="unknown operation 'matmull'"):
        graph_operations("matmull")


def test_failures_are_written_as_text_and_replayed(tmp_path: Path) -> None:
    request = Request(GRAPHS, 5, check_on("generic", 5))
    path = tmp_path / "graphs-generic-5.py"
    path.write_text(file_text(CheckOutcome(request, "mismatch", "running", "v1: wrong"), path), encoding="utf-8")
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# mismatch on target generic: running\n# v1: wrong\n")
    assert text.endswith(request.text)
    assert request_of(text, str(path)) == request
    said: list[str] = []
    assert campaign.replay(str(path), text, said.append)
    assert said == [f"{path}: done"]
