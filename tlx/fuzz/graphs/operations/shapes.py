"""Transposes, reshapes, slices, pads and joins."""

# ruff: noqa: ARG005 (all functions of the table take the same)
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from typing import Any, Final

from tlx.fuzz.graphs.drawing import DrawnOperation, GraphDraft, GraphOperation, in_graph, in_jax
from tlx.fuzz.graphs.program import Variable


def _draw_transpose(d: GraphDraft) -> DrawnOperation | None:
    x = d.any(2)
    if x is None:
        return None
    dimensions = list(range(x.rank))[::-1]
    if x.rank > 2:
        d.choose.shuffle(dimensions)
    return DrawnOperation([x], {"dimensions": tuple(dimensions)})


def _draw_reshape(d: GraphDraft) -> DrawnOperation | None:
    x = d.any()
    if x is None:
        return None
    left, shape = x.count, list[int]()
    for _ in range(d.choose.randint(0, 3)):
        divisors = [k for k in range(1, left + 1) if left % k == 0]
        shape.append(d.choose.choice(divisors))
        left //= shape[-1]
    return DrawnOperation([x], {"shape": (*shape, left)})


def _draw_broadcast(d: GraphDraft) -> DrawnOperation | None:
    x = d.any()
    if x is None:
        return None
    grown = tuple(d.choose.randint(1, 5) if e == 1 else e for e in x.shape)
    return DrawnOperation([x], {"shape": (*(d.choose.randint(1, 4) for _ in range(d.choose.randint(0, 2))), *grown)})


def _draw_slice(d: GraphDraft) -> DrawnOperation | None:
    x = d.any(1)
    if x is None:
        return None
    starts, stops, steps = list[int](), list[int](), list[int]()
    for extent in x.shape:
        starts.append(d.choose.randrange(extent) if d.choose.chance(0.5) else 0)
        room = extent - starts[-1]
        stops.append(starts[-1] + 1 + d.choose.randrange(room) if d.choose.chance(0.5) else extent)
        steps.append(d.choose.choice((1, 1, 2, 3)))
    return DrawnOperation([x], {"starts": tuple(starts), "stops": tuple(stops), "steps": tuple(steps)})


def _draw_pad(d: GraphDraft) -> DrawnOperation | None:
    x = d.find(lambda v: v.rank > 0 and v.dtype != "bool")
    if x is None:
        return None
    low, high = (tuple(d.choose.choice((0, 1, 2, -1)) for _ in x.shape) for _ in range(2))
    interior = tuple(d.choose.choice((0, 0, 0, 1, 2)) for _ in x.shape)
    extents = [e + (e - 1) * i + a + b for e, i, a, b in zip(x.shape, interior, low, high, strict=True)]
    number = d.choose.choice((0, 0, 1))
    return (
        DrawnOperation([x], {"low": low, "high": high, "interior": interior, "number": number})
        if min(extents) > 0
        else None
    )


def _jax_pad(j: Any, x: Any, low: Any, high: Any, interior: Any, number: int) -> Any:
    return j.lax.pad(x, j.np.asarray(number, x.dtype), tuple(zip(low, high, interior, strict=True)))


def _alike(d: GraphDraft, x: Variable, axis: int) -> Variable:
    """A variable that can be joined with another along a dimension."""

    def suits(y: Variable) -> bool:
        return (
            y.dtype == x.dtype
            and y.rank == x.rank
            and all(a == b or k == axis for k, (a, b) in enumerate(zip(x.shape, y.shape, strict=True)))
        )

    found = d.find(suits)
    assert found is not None
    return found


def _draw_concatenate(d: GraphDraft) -> DrawnOperation | None:
    x = d.any(1)
    if x is None:
        return None
    axis = d.axis(x)
    parts = [x, *(_alike(d, x, axis) for _ in range(d.choose.randint(1, 2)))]
    return DrawnOperation(parts, {"axis": axis})


def _draw_stack(d: GraphDraft) -> DrawnOperation | None:
    x = d.any()
    if x is None:
        return None
    y = d.find(lambda v: (v.shape, v.dtype) == (x.shape, x.dtype))
    return y and DrawnOperation([x, y], {"axis": d.choose.randrange(x.rank + 1)})


def _draw_reverse(d: GraphDraft) -> DrawnOperation | None:
    x = d.any(1)
    return x and DrawnOperation([x], {"axes": d.axes(x)})


def _draw_roll(d: GraphDraft) -> DrawnOperation | None:
    x = d.any(1)
    if x is None:
        return None
    axis = d.axis(x)
    return DrawnOperation([x], {"shift": d.choose.randrange(x.shape[axis]), "axis": axis})


def _graph_roll(g: Any, x: Any, shift: int, axis: int) -> Any:
    if shift == 0:
        return x
    ahead = (slice(None),) * axis
    return g.concatenate([x[(*ahead, slice(-shift, None))], x[(*ahead, slice(None, -shift))]], axis)


def _draw_triangle(d: GraphDraft) -> DrawnOperation | None:
    x = d.find(lambda v: v.rank >= 2 and v.dtype != "bool")
    return x and DrawnOperation([x], {"diagonal": d.choose.randint(0, 3) - 1})


def _graph_triangle(g: Any, x: Any, diagonal: int) -> Any:
    shape = x.shape[-2:]
    return g.where(g.iota(shape, 0) + diagonal >= g.iota(shape, 1), x, g.full((), 0, x.dtype))


def _draw_index(d: GraphDraft) -> DrawnOperation | None:
    x = d.any(1)
    if x is None:
        return None
    axis = d.axis(x)
    return DrawnOperation([x], {"axis": axis, "at": d.choose.randrange(x.shape[axis])})


def _draw_iota(d: GraphDraft) -> DrawnOperation | None:
    x = d.any(1)
    dtype = d.choose.choice((*d.floats, "int32", "int64"))
    if x is None or max(x.shape) > 256:
        return None
    return DrawnOperation([x], {"axis": d.axis(x), "dtype": dtype}, max(x.shape), is_integral=True)


OPERATIONS: Final = (
    GraphOperation(
        "transpose", _draw_transpose, in_jax("np.transpose"), in_graph("transpose"), is_exact=True, weight=3
    ),
    GraphOperation("reshape", _draw_reshape, in_jax("np.reshape"), in_graph("reshape"), is_exact=True, weight=2),
    GraphOperation("broadcast", _draw_broadcast, in_jax("np.broadcast_to"), in_graph("broadcast"), is_exact=True),
    GraphOperation("slice", _draw_slice, in_jax("lax.slice"), in_graph("slice"), is_exact=True, weight=3),
    GraphOperation("pad", _draw_pad, _jax_pad, in_graph("pad"), is_exact=True, weight=2),
    GraphOperation(
        "concatenate",
        _draw_concatenate,
        lambda j, *xs, axis: j.np.concatenate(xs, axis),
        lambda g, *xs, axis: g.concatenate(xs, axis),
        is_exact=True,
        weight=2,
    ),
    GraphOperation(
        "stack",
        _draw_stack,
        lambda j, *xs, axis: j.np.stack(xs, axis),
        lambda g, *xs, axis: g.stack(xs, axis),
        is_exact=True,
    ),
    GraphOperation("reverse", _draw_reverse, in_jax("np.flip"), in_graph("reverse"), is_exact=True),
    GraphOperation("roll", _draw_roll, in_jax("np.roll"), _graph_roll, is_exact=True),
    GraphOperation("triangle", _draw_triangle, in_jax("np.tril"), _graph_triangle, is_exact=True),
    GraphOperation(
        "index",
        _draw_index,
        lambda j, x, axis, at: x[(slice(None),) * axis + (at,)],
        lambda g, x, axis, at: x[(slice(None),) * axis + (at,)],
        is_exact=True,
    ),
    GraphOperation(
        "iota",
        _draw_iota,
        lambda j, x, axis, dtype: j.lax.broadcasted_iota(j.dtype(dtype), x.shape, axis),
        lambda g, x, axis, dtype: g.iota(x.shape, axis, dtype),
        is_exact=True,
        is_continuous=False,
    ),
)
