"""Loops and branches, whose bodies are drawn as well."""


# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tlx.fuzz.graphs.drawing import DrawnOperation, GraphDraft, GraphOperation

_TRIPS: Final = 4


def _draw_loop(d: GraphDraft) -> DrawnOperation | None:
    parts = d.inner_choices(4)
    initial = [d.any() for _ in range(d.choose.randint(1, 3))]
    if not parts or initial[0] is None:
        return None
    variables = [v for v in initial if v is not None]
    states = [d.state(v) for v in variables]
    trips = d.choose.randint(1, _TRIPS)
    body = d.block(parts, states, states)
    bound = max(s.bound for s in states if s.is_float) if any(s.is_float for s in states) else 0
    count = [] if d.is_gradient or d.choose.chance(0.5) else [d.parameter((), "int32", bound=_TRIPS, role="parameter")]
    return DrawnOperation([*variables, *count], {"trips": trips, "body": body}, bound, results=variables)


def _jax_loop(j: Any, *values: Any, trips: int, body: Any) -> Any:
    is_dynamic = len(values) > len(body.block.parameters)
    state, count = (values[:-1], values[-1]) if is_dynamic else (values, trips)
    return j.lax.fori_loop(0, count, lambda _, s: body(*s), tuple(state))


def _graph_loop(g: Any, *values: Any, trips: int, body: Any) -> Any:
    is_dynamic = len(values) > len(body.block.parameters)
    state, count = (values[:-1], values[-1]) if is_dynamic else (values, np.int32(trips))
    _, *results = g.while_loop(lambda i, *_: i < count, lambda i, *s: (i + 1, *body(*s)), np.int32(0), *state)
    return tuple(results)


def _draw_branch(d: GraphDraft) -> DrawnOperation | None:
    parts = d.inner_choices(6)
    x = d.any()
    if not parts or x is None:
        return None
    index = d.parameter((), "int32", bound=3, role="parameter")
    state = d.state(x)
    half = len(parts) // 2
    bodies = tuple(d.block(some, [state], [state]) for some in (parts[:half], parts[half:]))
    return DrawnOperation([index, x], {"bodies": bodies}, state.bound if x.is_float else None, results=[x])


def _jax_branch(j: Any, index: Any, x: Any, bodies: Any) -> Any:
    return j.lax.switch(index, bodies, x)


def _graph_branch(g: Any, index: Any, x: Any, bodies: Any) -> Any:
    return g.switch(g.clamp(0, index, len(bodies) - 1), bodies, x)  # as JAX clamps it


OPERATIONS: Final = (
    GraphOperation("loop", _draw_loop, _jax_loop, _graph_loop, weight=3),
    GraphOperation("branch", _draw_branch, _jax_branch, _graph_branch, weight=2),
)
