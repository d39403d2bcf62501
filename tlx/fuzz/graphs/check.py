"""Checks a graph: `tlx.graph`, or `tlx.jax` for the same function of JAX, must compute what JAX computes.

The graph is lowered for a target with random options. Machine code runs if this machine has the features, and the
output of the stages is evaluated for some of the graphs, and for all whose code cannot run.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np

import tlx
from tlx.diagnostics import EvaluationError, LoweringError
from tlx.evaluate import Machine
from tlx.fuzz.check import (
    INTERNAL_ERROR,
    STAGE_STEPS,
    CheckSettings,
    CheckStatistics,
    MismatchError,
    RefusedError,
    check_registers,
)
from tlx.fuzz.graphs.drawing import wide_jax
from tlx.fuzz.graphs.operations import table
from tlx.fuzz.graphs.program import GraphProgram, Statement, as_tuple, dtype_named
from tlx.fuzz.graphs.reference import ExpectedResult, applied, expected_results, jax_function
from tlx.graph import Graph
from tlx.intrinsics.numpy_types import Array
from tlx.ir.parser.module import parse
from tlx.llvm import openmp
from tlx.lower.options import Options
from tlx.lower.pipeline import lower
from tlx.lower.to_tiles.versions import at_level, levels

_EVALUATED: Final = 6  # of how many graphs one is evaluated at every stage
_STAGES: Final = ("to-2d", "to-tiles")


def check_graph(program: GraphProgram, check: CheckSettings, doing: Callable[[str], None]) -> CheckStatistics:
    """Check a graph.

    Args:
        program: The graph.
        check: How to check it.
        doing: Called with the name of each step before it starts, as it may crash the process.

    Raises:
        MismatchError: Results differ.
        RefusedError: The lowering does not support the graph.
        TlxError: It cannot be built, lowered or run.
    """
    with wide_jax() as jax:
        return _checked(jax, program, check, doing)


def _checked(jax: Any, program: GraphProgram, check: CheckSettings, doing: Callable[[str], None]) -> CheckStatistics:
    if not check.run:
        program = replace(program, is_gradient=False)  # gradients are built by JAX alone, and run
    doing("computing the results by JAX")
    arrays = [p.array() for p in program.parameters]
    expected = expected_results(program, arrays, jax)
    options = replace(check.options, **_settings(check.variant))
    if check.run and (program.is_gradient or check.variant % 5 < 2):
        function = _function_of_jax(program, arrays, jax)
        compiled = _compiled("tlx.jax", partial(tlx.jax.jit, function), check, options, doing)
    else:
        doing("building the graph by tlx.graph")
        graph = built(program, arrays)
        if not check.run or check.variant % _EVALUATED == 0:
            _check_stages(graph, program, arrays, expected, check, options, doing)
        if not check.run:
            return CheckStatistics(1)
        compiled = _compiled("tlx.graph", graph.compile, check, options, doing)
        check_registers(str(graph.module()), compiled.lowered)
    if check.threads:
        openmp.set_threads(check.team.max_threads)
    arguments = [a for p, a in zip(program.parameters, arrays, strict=True) if p.role == "parameter"]
    for _ in range(2):  # the second call finds arenas and packed weights
        found = _permitted(lambda: compiled(*arguments))
        _compare("running", as_tuple(found), expected)
    return CheckStatistics(1)


def _settings(variant: int) -> dict[str, Any]:
    """Random options besides those of `CheckSettings`."""
    dice = random.Random(f"graph {variant}")
    return {
        "workspace": dice.choice(("malloc", "malloc", "arena")),
        "bf16_intermediates": dice.choice(("exact", "exact", "float")),
    }


def built(program: GraphProgram, arrays: Sequence[Array]) -> Graph:
    """The graph, by the methods of `tlx.graph`."""
    graph, operations = Graph("graph"), table()

    def apply(statement: Statement, operands: list[Any], attributes: dict[str, Any]) -> Any:
        return operations[statement.operation].graph(graph, *operands, **attributes)

    values: list[Any] = []
    for parameter, array in zip(program.parameters, arrays, strict=True):
        v = parameter.variable
        match parameter.role:
            case "parameter":
                values.append(graph.parameter(v.name, v.shape, v.dtype))
            case "weight":
                values.append(graph.weight(v.name, array))
            case "constant":
                values.append(graph.constant(array))
    for value in program.body.run(values, apply):
        graph.output(value)
    return graph


def _function_of_jax(program: GraphProgram, arrays: Sequence[Array], jax: Any) -> Callable[..., Any]:
    """The graph as a function of JAX of its arguments; weights and constants are part of it."""
    every = jax_function(program, jax, applied(jax))

    def graph(*arguments: Any) -> tuple[Any, ...]:
        rest = iter(arguments)
        return every(
            *(
                next(rest) if p.role == "parameter" else jax.numpy.asarray(a)
                for p, a in zip(program.parameters, arrays, strict=True)
            )
        )

    return graph


def _compiled(
    name: str, compile_: Callable[..., Any], check: CheckSettings, options: Options, doing: Callable[[str], None]
) -> Any:
    """The graph as a function of arrays."""
    doing(f"compiling and running by {name}")
    return _permitted(lambda: compile_(target=check.lowering_target, options=options, opt_level=check.opt_level))


def _permitted(act: Callable[[], Any]) -> Any:
    """What a function returns that may lower the graph.

    Raises:
        RefusedError: The lowering does not support it.
    """
    try:
        return act()
    except LoweringError as error:
        if INTERNAL_ERROR in error.message:
            raise
        raise RefusedError(error.message) from None


def _check_stages(
    graph: Graph,
    program: GraphProgram,
    arrays: Sequence[Array],
    expected: Sequence[ExpectedResult],
    check: CheckSettings,
    options: Options,
    doing: Callable[[str], None],
) -> None:
    """Evaluate the graph as it is and after each stage, unless that takes too long."""
    text = str(graph.module())
    for stage in ("", *(_STAGES if check.target else ())):
        title = stage or "the input"
        doing(f"lowering to {title}")
        module = parse(text)
        if stage:
            staged = replace(options, emulate_matrix=False, stop_after=stage)
            module = _permitted(lambda staged=staged: lower(parse(text), check.lowering_target, options=staged))
            if kinds := levels(str(module)):
                module = parse(at_level(str(module), kinds[check.variant % len(kinds)]))
        doing(f"evaluating {title}")
        results = [np.empty(e.variable.shape, dtype_named(e.variable.dtype)) for e in expected]
        inputs = [a for p, a in zip(program.parameters, arrays, strict=True) if p.role != "constant"]
        try:
            Machine(module, max_steps=STAGE_STEPS, team=check.team).call_prepared(graph.name, *inputs, *results)
        except EvaluationError as error:
            if "instructions were executed" in error.message:
                return
            raise
        _compare(f"evaluating {title}", results, expected)


def _compare(stage: str, found: Sequence[Array], expected: Sequence[ExpectedResult]) -> None:
    if len(found) != len(expected):
        raise MismatchError(stage, f"{len(found)} results, expected {len(expected)}")
    for got, wanted in zip(found, expected, strict=True):
        error = wanted.difference(np.asarray(got))
        if error:
            raise MismatchError(stage, error)
