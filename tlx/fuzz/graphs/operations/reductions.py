"""Reductions over dimensions and windows, cumulative sums, softmax and normalisations."""


# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from tlx.fuzz.graphs.drawing import UNBOUNDED, DrawnOperation, GraphDraft, GraphOperation, in_graph
from tlx.fuzz.graphs.program import Variable

_EXTREMES: Final = ("max", "min")
_CUMULATIVE: Final = {"sum": "cumsum", "product": "cumprod", "max": "cummax", "min": "cummin"}
_EPSILON: Final = 1e-2


def _terms(x: Variable, axes: Sequence[int]) -> int:
    return math.prod(x.shape[a] for a in axes)


def _draw_sum(d: GraphDraft) -> DrawnOperation | None:
    x = d.find(lambda v: v.rank > 0 and v.dtype != "bool")
    if x is None:
        return None
    axes, keep = d.axes(x), d.choose.chance(0.4)
    name = "mean" if x.is_float and d.choose.chance(0.5) else "sum"
    bound = x.bound * (_terms(x, axes) if name == "sum" else 1)
    return DrawnOperation([x], {"name": name, "axes": axes, "keep": keep}, bound if x.is_float else UNBOUNDED)


def _jax_sum(j: Any, x: Any, name: str, axes: tuple[int, ...], keep: bool) -> Any:
    return getattr(j.np, name)(x, axis=axes, dtype=x.dtype, keepdims=keep)


def _draw_product(d: GraphDraft) -> DrawnOperation | None:
    x = d.find(lambda v: v.rank > 0 and v.is_float and v.bound <= 2 and min(v.shape) <= 8)
    if x is None:
        return None
    axis = min(range(x.rank), key=lambda a: x.shape[a])
    return DrawnOperation([x], {"axes": (axis,), "keep": d.choose.chance(0.3)}, x.bound ** x.shape[axis])


def _draw_extreme(d: GraphDraft) -> DrawnOperation | None:
    x = d.find(lambda v: v.rank > 0 and v.dtype != "bool")
    return x and DrawnOperation(
        [x], {"name": d.choose.choice(_EXTREMES), "axes": d.axes(x), "keep": d.choose.chance(0.4)}
    )


def _draw_any(d: GraphDraft) -> DrawnOperation | None:
    x = d.find(lambda v: v.rank > 0 and v.dtype == "bool")
    return x and DrawnOperation(
        [x], {"name": d.choose.choice(("any", "all")), "axes": d.axes(x), "keep": d.choose.chance(0.4)}
    )


def _jax_reduce(j: Any, x: Any, name: str, axes: tuple[int, ...], keep: bool) -> Any:
    return getattr(j.np, name)(x, axes, keepdims=keep)


def _graph_reduce(g: Any, x: Any, name: str, axes: tuple[int, ...], keep: bool) -> Any:
    return g.mean(x, axes, keep=keep) if name == "mean" else g.reduce(name, x, axes, keep=keep)


def _draw_window(d: GraphDraft) -> DrawnOperation | None:
    x = d.find(lambda v: v.rank > 0 and v.dtype in ("float32", "float64", "int32", "bfloat16", "float16"))
    if x is None:
        return None
    window = tuple(d.choose.randint(1, min(e, 3)) for e in x.shape)
    strides = tuple(d.choose.randint(1, 3) for _ in x.shape)
    padding = tuple((d.choose.randrange(w), d.choose.randrange(w)) for w in window)
    name = d.choose.choice(("max", "sum", "min") if x.is_float else ("max", "min"))
    bound = x.bound * (math.prod(window) if name == "sum" else 1)
    return DrawnOperation([x], {"name": name, "window": window, "strides": strides, "padding": padding}, bound)


def _jax_window(j: Any, x: Any, name: str, window: Any, strides: Any, padding: Any) -> Any:
    low, high = (-j.np.inf, j.np.inf) if j.np.issubdtype(x.dtype, j.np.floating) else (-(2**31), 2**31 - 1)
    start, combine = {"max": (low, j.lax.max), "min": (high, j.lax.min), "sum": (0, j.lax.add)}[name]
    return j.lax.reduce_window(x, x.dtype.type(start), combine, window, strides, padding)


def _draw_cumulative(d: GraphDraft) -> DrawnOperation | None:
    x = d.find(lambda v: v.rank > 0 and v.dtype in ("float32", "float64", "int32", "int64", "bfloat16", "float16"))
    if x is None:
        return None
    axis = d.axis(x)
    name = d.choose.choice(("sum", "max", "min", "product"))
    if name == "product" and (x.bound > 1 or not x.is_float):
        name = "sum"
    bound = x.bound * (x.shape[axis] if name == "sum" else 1)
    attributes = {"name": name, "axis": axis, "reverse": d.choose.chance(0.3)}
    return DrawnOperation([x], attributes, bound if x.is_float else UNBOUNDED)


def _draw_softmax(d: GraphDraft) -> DrawnOperation | None:
    x = d.number(1, bound=100)
    return x and DrawnOperation([x], {"axis": d.axis(x)}, 1)


def _jax_softmax(j: Any, x: Any, axis: int) -> Any:
    # Along the last dimension: with the options of references, jaxlib 0.10.2 computes the sum along others wrongly.
    rows = j.nn.softmax(j.np.moveaxis(_wide(x), axis, -1), -1)
    return j.np.moveaxis(rows, -1, axis).astype(x.dtype)


def _wide(x: Any) -> Any:
    return x.astype("float32") if x.dtype.itemsize < 4 else x


def _draw_log_sum(d: GraphDraft) -> DrawnOperation | None:
    x = d.number(1, bound=100)
    if x is None:
        return None
    axes = d.axes(x)
    return DrawnOperation([x], {"axes": axes, "keep": d.choose.chance(0.3)}, x.bound + math.log(_terms(x, axes)))


def _jax_log_sum(j: Any, x: Any, axes: Any, keep: bool) -> Any:
    return j.nn.logsumexp(_wide(x), axes, keepdims=keep).astype(x.dtype)


def _graph_log_sum(g: Any, x: Any, axes: Any, keep: bool) -> Any:
    wide = g.convert(x, "float32") if x.dtype.itemsize < 4 else x
    greatest = g.max(wide, axes, keep=True)
    result = g.log(g.sum(g.exp(wide - greatest), axes, keep=True)) + greatest
    rest = [e for d, e in enumerate(x.shape) if d not in axes]
    return g.convert(result if keep else g.reshape(result, rest), x.dtype)


def _draw_layer_norm(d: GraphDraft) -> DrawnOperation | None:
    x = d.number(1)
    if x is None:
        return None
    scale, shift = (d.parameter(x.shape[-1:], x.dtype, role="weight") for _ in range(2))
    return DrawnOperation([x, scale, shift], {}, 3 + 2 * math.sqrt(x.shape[-1]))


def _jax_layer_norm(j: Any, x: Any, scale: Any, shift: Any) -> Any:
    wide = _wide(x)
    centred = wide - wide.mean(-1, keepdims=True)
    result = centred * j.lax.rsqrt((centred**2).mean(-1, keepdims=True) + _EPSILON)
    return (result * scale.astype(wide.dtype) + shift.astype(wide.dtype)).astype(x.dtype)


def _draw_rms_norm(d: GraphDraft) -> DrawnOperation | None:
    x = d.number(1)
    return x and DrawnOperation([x, d.parameter(x.shape[-1:], x.dtype, role="weight")], {}, 2 * math.sqrt(x.shape[-1]))


def _jax_rms_norm(j: Any, x: Any, scale: Any) -> Any:
    wide = _wide(x)
    return (wide * j.lax.rsqrt((wide**2).mean(-1, keepdims=True) + _EPSILON)).astype(x.dtype) * scale


def _graph_rms_norm(g: Any, x: Any, scale: Any) -> Any:
    wide = g.convert(x, "float32") if x.dtype.itemsize < 4 else x
    mean = g.mean(wide * wide, -1, keep=True)
    return g.convert(wide * g.unary("rsqrt", mean + _EPSILON), x.dtype) * scale


def _draw_batch_norm(d: GraphDraft) -> DrawnOperation | None:
    x = d.number(2)
    if x is None:
        return None
    channel = d.choose.choice((1, x.rank - 1))
    shape = tuple(e if k == channel else 1 for k, e in enumerate(x.shape))
    return DrawnOperation([x, *(d.parameter(shape, x.dtype, role="weight") for _ in range(4))], {}, 4 * x.bound + 12)


def _jax_batch_norm(j: Any, x: Any, mean: Any, variance: Any, scale: Any, shift: Any) -> Any:
    return (x - mean) * j.lax.rsqrt(j.np.abs(variance) + 0.25) * scale + shift


def _graph_batch_norm(g: Any, x: Any, mean: Any, variance: Any, scale: Any, shift: Any) -> Any:
    return (x - mean) * g.unary("rsqrt", g.unary("abs", variance) + 0.25) * scale + shift


OPERATIONS: Final = (
    GraphOperation("sum", _draw_sum, _jax_sum, _graph_reduce, weight=3),
    GraphOperation(
        "product",
        _draw_product,
        lambda j, x, axes, keep: j.np.prod(x, axes, keepdims=keep),
        lambda g, x, axes, keep: g.reduce("product", x, axes, keep=keep),
    ),
    GraphOperation("greatest", _draw_extreme, _jax_reduce, _graph_reduce, is_exact=True, weight=2),
    GraphOperation("any", _draw_any, _jax_reduce, _graph_reduce, is_exact=True, weight=4),
    GraphOperation(
        "window",
        _draw_window,
        _jax_window,
        lambda g, x, name, window, strides, padding: g.reduce_window(name, x, window, strides, padding),
        weight=2,
    ),
    GraphOperation(
        "cumulative",
        _draw_cumulative,
        lambda j, x, name, axis, reverse: getattr(j.lax, _CUMULATIVE[name])(x, axis, reverse=reverse),
        lambda g, x, name, axis, reverse: g.cumulative(name, x, axis, reverse=reverse),
        weight=2,
    ),
    GraphOperation("softmax", _draw_softmax, _jax_softmax, in_graph("softmax"), weight=3),
    GraphOperation("log_sum", _draw_log_sum, _jax_log_sum, _graph_log_sum),
    GraphOperation(
        "layer_norm",
        _draw_layer_norm,
        _jax_layer_norm,
        lambda g, x, scale, shift: g.layer_norm(x, scale, shift, epsilon=_EPSILON),
        weight=2,
    ),
    GraphOperation("rms_norm", _draw_rms_norm, _jax_rms_norm, _graph_rms_norm),
    GraphOperation("batch_norm", _draw_batch_norm, _jax_batch_norm, _graph_batch_norm, weight=2),
)
