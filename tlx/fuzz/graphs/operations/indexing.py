"""Gathers, scatters, dynamic slices and updates, sorts."""


# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from typing import Any, Final

from tlx.fuzz.graphs.drawing import DrawnOperation, GraphDraft, GraphOperation, in_graph

_COMBINE: Final = {"set": "scatter", "add": "scatter_add", "maximum": "scatter_max", "minimum": "scatter_min"}


def _draw_take(d: GraphDraft) -> DrawnOperation | None:
    x = d.any(1)
    if x is None:
        return None
    axis = d.axis(x)
    known = d.integers(0, 2) if d.choose.chance(0.3) else None
    indices = known or d.indices(d.shape(d.choose.choice((1, 0, 2))), x.shape[axis])
    return DrawnOperation([x, indices], {"axis": axis}, x.bound) if indices.count * x.count < 20000 else None


def _jax_take(j: Any, x: Any, indices: Any, axis: int) -> Any:
    return j.np.take(x, indices, axis, mode="clip")


def _draw_embedding(d: GraphDraft) -> DrawnOperation | None:
    rows, width = d.choose.randint(2, 40), d.choose.randint(1, 40)
    table = d.parameter((rows, width), role="weight")
    return DrawnOperation([table, d.indices(d.shape(d.choose.randint(1, 2)), rows)], {"axis": 0}, table.bound)


def _draw_gather(d: GraphDraft) -> DrawnOperation | None:
    x = d.any(1)
    if x is None:
        return None
    axes = d.axes(x)
    shape = tuple(d.choose.randint(1, e) for e in x.shape)
    starts = d.indices((d.choose.randint(1, 5), len(axes)), max(x.shape))
    return DrawnOperation([x, starts], {"axes": axes, "shape": shape}, x.bound)


def _jax_gather(j: Any, x: Any, starts: Any, axes: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    numbers = j.lax.GatherDimensionNumbers(tuple(range(1, len(shape) + 1)), (), axes)
    return j.lax.gather(x, starts, numbers, shape, mode="clip")


def _draw_scatter(d: GraphDraft) -> DrawnOperation | None:
    x = d.find(lambda v: v.rank >= 1 and v.dtype != "bool")
    if x is None:
        return None
    axes = d.axes(x)
    combine = d.choose.choice(list(_COMBINE))
    if combine == "set" and d.is_gradient:
        return None  # of equal positions, JAX differentiates any
    rows = d.choose.randint(1, 5)
    boxes = d.parameter((rows, *(d.choose.randint(1, e) for e in x.shape)), x.dtype)
    starts = d.indices((rows, len(axes)), max(x.shape))
    if x.is_float and combine == "add" and not d.choose.chance(0.7):
        combine = "maximum"
    bound = x.bound + (boxes.bound * rows if combine == "add" else boxes.bound)
    return DrawnOperation([x, starts, boxes], {"axes": axes, "combine": combine}, bound if x.is_float else 2.0**64)


def _jax_scatter(j: Any, x: Any, starts: Any, boxes: Any, axes: tuple[int, ...], combine: str) -> Any:
    numbers = j.lax.ScatterDimensionNumbers(tuple(range(1, boxes.ndim)), (), axes)
    return getattr(j.lax, _COMBINE[combine])(x, starts, boxes, numbers, mode="drop")


def _draw_dynamic_slice(d: GraphDraft) -> DrawnOperation | None:
    x = d.any(1)
    if x is None:
        return None
    starts = d.indices((x.rank,), max(x.shape))
    return DrawnOperation([x, starts], {"shape": tuple(d.choose.randint(1, e) for e in x.shape)}, x.bound)


def _draw_dynamic_update(d: GraphDraft) -> DrawnOperation | None:
    x = d.any(1)
    if x is None:
        return None

    def fits(v: Any) -> bool:
        return v.dtype == x.dtype and v.rank == x.rank and all(a <= b for a, b in zip(v.shape, x.shape, strict=True))

    update = d.find(fits)
    starts = d.indices((x.rank,), max(x.shape))
    return update and DrawnOperation([x, update, starts], {}, max(x.bound, update.bound))


def _starts(starts: Any) -> list[Any]:
    return [starts[k] for k in range(starts.shape[0])]


def _draw_one_hot(d: GraphDraft) -> DrawnOperation | None:
    size = d.choose.randint(1, 12)
    x = d.integers(0, 2) or d.indices(d.shape(1), size)
    return DrawnOperation([x], {"size": size, "dtype": d.choose.choice(d.floats)}, 1, is_integral=True)


def _graph_one_hot(g: Any, x: Any, size: int, dtype: str) -> Any:
    wide = g.expand(g.convert(x, "int64"), x.rank)
    return g.convert(g.equal(wide, g.iota((size,), 0, "int64")), dtype)


def _draw_sort(d: GraphDraft) -> DrawnOperation | None:
    x = d.find(lambda v: v.rank > 0 and v.dtype != "bool")
    return x and DrawnOperation([x], {"axis": d.axis(x)})


def _draw_sort_pairs(d: GraphDraft) -> DrawnOperation | None:
    x = d.find(lambda v: v.rank > 0 and v.dtype != "bool" and v.is_exact)
    y = x and d.find(lambda v: v.shape == x.shape and v.is_exact)
    return (
        DrawnOperation([x, y], {"axis": d.axis(x), "keys": d.choose.randint(1, 2)})
        if x and y and y.dtype != "bool"
        else None
    )


def _draw_argsort(d: GraphDraft) -> DrawnOperation | None:
    x = d.find(lambda v: v.rank > 0 and v.is_exact and v.dtype != "bool")
    return x and DrawnOperation([x], {"axis": d.axis(x), "descending": d.choose.chance(0.4)}, max(x.shape))


def _draw_top_k(d: GraphDraft) -> DrawnOperation | None:
    x = d.find(lambda v: v.rank > 0 and v.is_exact and v.dtype != "bool" and not v.dtype.startswith("u"))
    return x and DrawnOperation([x], {"k": d.choose.randint(1, x.shape[-1])}, max(x.bound, x.shape[-1]))


def _draw_along(d: GraphDraft) -> DrawnOperation | None:
    """Positions of the greatest or least element."""
    x = d.find(lambda v: v.rank > 0 and v.is_exact and v.dtype != "bool")
    name = d.choose.choice(("argmax", "argmin"))
    return x and DrawnOperation([x], {"name": name, "axis": d.axis(x)}, max(x.shape))


def _jax_plain(j: Any, x: Any) -> Any:
    """A tensor without -0, which `tlx.graph` and JAX's `top_k` sort before +0, and other sorts of JAX do not.

    XLA takes `x + 0` for `x`.
    """
    return j.np.where(x == 0, j.np.zeros_like(x), x)


OPERATIONS: Final = (
    GraphOperation("take", _draw_take, _jax_take, in_graph("take"), is_exact=True, weight=2),
    GraphOperation("embedding", _draw_embedding, _jax_take, in_graph("take"), is_exact=True),
    GraphOperation("gather", _draw_gather, _jax_gather, in_graph("gather"), is_exact=True, weight=2),
    GraphOperation(
        "scatter",
        _draw_scatter,
        _jax_scatter,
        lambda g, x, i, boxes, axes, combine: g.scatter(x, i, axes, boxes, combine),
        weight=2,
    ),
    GraphOperation(
        "dynamic_slice",
        _draw_dynamic_slice,
        lambda j, x, i, shape: j.lax.dynamic_slice(x, _starts(i), shape, allow_negative_indices=False),
        lambda g, x, i, shape: g.dynamic_slice(x, _starts(i), shape),
        is_exact=True,
        weight=2,
    ),
    GraphOperation(
        "dynamic_update",
        _draw_dynamic_update,
        lambda j, x, y, i: j.lax.dynamic_update_slice(x, y, _starts(i), allow_negative_indices=False),
        lambda g, x, y, i: g.dynamic_update_slice(x, y, _starts(i)),
        is_exact=True,
        weight=2,
    ),
    GraphOperation(
        "one_hot",
        _draw_one_hot,
        lambda j, x, size, dtype: j.nn.one_hot(x, size, dtype=j.dtype(dtype)),
        _graph_one_hot,
        is_exact=True,
    ),
    GraphOperation(
        "sort",
        _draw_sort,
        lambda j, x, axis: j.np.sort(x, axis),
        lambda g, x, axis: g.sort(x, axis=axis)[0],
        is_exact=True,
    ),
    GraphOperation(
        "sort_pairs",
        _draw_sort_pairs,
        lambda j, x, y, axis, keys: tuple(
            j.lax.sort((_jax_plain(j, x), _jax_plain(j, y)), dimension=axis, num_keys=keys)
        ),
        lambda g, x, y, axis, keys: g.sort(x + 0, y + 0, axis=axis, keys=keys),
        is_exact=True,
        is_continuous=False,
    ),
    GraphOperation(
        "argsort",
        _draw_argsort,
        lambda j, x, axis, descending: j.np.argsort(_jax_plain(j, x), axis, descending=descending).astype(j.np.int32),
        lambda g, x, axis, descending: g.argsort(x + 0, axis, descending=descending),
        is_exact=True,
        is_continuous=False,
    ),
    GraphOperation(
        "top_k",
        _draw_top_k,
        lambda j, x, k: tuple(j.lax.top_k(_jax_plain(j, x), k)),
        lambda g, x, k: g.top_k(x + 0, k),
        is_exact=True,
        is_continuous=False,
    ),
    GraphOperation(
        "arg",
        _draw_along,
        lambda j, x, name, axis: getattr(j.np, name)(x, axis).astype(j.np.int32),
        lambda g, x, name, axis: getattr(g, name)(x, axis),
        is_exact=True,
        is_continuous=False,
    ),
)
