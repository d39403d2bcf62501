"""The graph of a seed, and the names of operations that `--ops` selects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tlx.diagnostics import UsageError, did_you_mean
from tlx.fuzz.generation.model import ChoiceNode, Choices
from tlx.fuzz.graphs.drawing import GraphDraft, require_jax, wide_jax
from tlx.fuzz.graphs.operations import table
from tlx.fuzz.graphs.program import INTEGERS, GraphBlock, GraphProgram

_RESULTS: Final = 4
"""How many of the variables that nothing reads are results."""


def random_graph(source: int | str | ChoiceNode, operations: Sequence[str] = ()) -> GraphProgram:
    """The graph of a seed.

    Args:
        source: A seed, or the numbers drawn for a graph, possibly pruned.
        operations: Names of the operations to use; all if there are none.
    """
    with wide_jax() as jax:
        return _drawn_graph(jax, source, operations)


def _drawn_graph(jax: Any, source: int | str | ChoiceNode, operations: Sequence[str]) -> GraphProgram:
    choose = Choices(source if isinstance(source, ChoiceNode) else f"graph {source}")
    is_gradient = choose.chance(0.3)
    draw = GraphDraft(choose, jax, table(), operations, is_gradient=is_gradient)
    draw.pool.append(draw.parameter(draw.shape(choose.choice((2, 3, 1, 4, 2, 0))), role="parameter"))
    if choose.chance(0.5):
        draw.pool.append(draw.parameter(draw.shape(choose.choice((2, 1, 3)))))
    if choose.chance(0.4):
        draw.pool.append(
            draw.parameter(draw.shape(choose.choice((1, 2, 3))), choose.choice((*INTEGERS, "bool")), role="parameter")
        )
    count = choose.choice((1, 1, 2, 3))
    statements = [s for part in choose.parts(2, 14) for s in draw.statements(part)]
    read = {name for s in statements for name in s.operands}
    found = [v for v in draw.pool if v.name not in read and v.name.startswith("v")] or draw.pool[-1:]
    more = [choose.choice([v for s in statements for v in s.results] or found) for _ in range(count - 1)]
    results = list(dict.fromkeys([*found[-_RESULTS:], *more]))
    body = GraphBlock(
        tuple(p.variable.name for p in draw.parameters), tuple(statements), tuple(v.name for v in results)
    )
    is_gradient &= all(v.dtype in ("float32", "float64") for v in draw.pool if v.is_float)
    is_gradient &= any(v.is_float and not v.is_exact for v in results)
    return GraphProgram(tuple(draw.parameters), body, tuple(results), choose.node, is_gradient)


def graph_operations(text: str) -> tuple[str, ...]:
    """Parse `--ops` for graphs: names; `-name` excludes. JAX must be installed, or nothing could be checked.

    Raises:
        UsageError: There is no such operation, or no JAX.
    """
    require_jax()
    words = [word for word in text.split(",") if word]
    for name in (word.removeprefix("-") for word in words):
        if name not in table():
            message = f"unknown operation '{name}' in --ops; graphs have {', '.join(table())}"
            raise UsageError(message + did_you_mean(name, table()))
    chosen = [word for word in words if not word.startswith("-")] or (list(table()) if words else [])
    return tuple(name for name in chosen if f"-{name}" not in words)
