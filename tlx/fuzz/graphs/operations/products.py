"""Products, convolutions and attention."""


# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import math
from typing import Any, Final

from tlx.fuzz.graphs.drawing import UNBOUNDED, DrawnOperation, GraphDraft, GraphOperation, in_graph, in_jax

_LAYOUTS: Final = (("NCHW", "OIHW", "NCHW"), ("NHWC", "HWIO", "NHWC"), ("NHWC", "OIHW", "NCHW"))


def _draw_matmul(d: GraphDraft) -> DrawnOperation | None:
    x = d.find(lambda v: v.rank >= 1 and v.dtype in (*d.floats, "int8", "int32") and v.bound < 1000)
    if x is None:
        return None
    inner, columns = x.shape[-1], d.choose.choice((4, 1, 3, 8, 16, 17, 33))
    other = d.find(lambda v: v.dtype == x.dtype and v.rank == 2 and v.shape[0] == inner)
    if other is None or d.choose.chance(0.5):
        batch = x.shape[:-2] if x.rank > 2 and d.choose.chance(0.3) else ()
        other = d.parameter((*batch, inner, columns), x.dtype)
    bound = 2 * math.sqrt(inner) * x.bound * other.bound
    return DrawnOperation([x, other], {}, bound if x.is_float else UNBOUNDED)


def _draw_linear(d: GraphDraft) -> DrawnOperation | None:
    x = d.number(2, bound=100)
    if x is None:
        return None
    columns = d.choose.choice((4, 1, 3, 8, 16, 17, 33))
    w, b = d.parameter((columns, x.shape[-1]), x.dtype, role="weight"), d.parameter((columns,), x.dtype, role="weight")
    name = d.choose.choice(("relu", "gelu", "tanh", ""))
    return DrawnOperation([x, w, b], {"name": name}, 2 * math.sqrt(x.shape[-1]) * x.bound * w.bound + 2)


def _jax_linear(j: Any, x: Any, w: Any, b: Any, name: str) -> Any:
    y = x @ w.T + b
    if name == "relu":
        return j.np.maximum(y, 0)
    return j.np.tanh(y) if name == "tanh" else j.nn.gelu(y) if name else y


def _graph_linear(g: Any, x: Any, w: Any, b: Any, name: str) -> Any:
    y = x @ w.T + b
    return getattr(g, name)(y) if name else y


def _draw_dot_general(d: GraphDraft) -> DrawnOperation | None:
    x = d.find(lambda v: v.rank >= 2 and v.dtype in (*d.floats, "int32") and v.bound < 1000)
    if x is None:
        return None
    dimensions = list(range(x.rank))
    d.choose.shuffle(dimensions)
    count = d.choose.randint(1, x.rank - 1)
    contracted, batch = tuple(dimensions[:count]), tuple(dimensions[count : count + d.choose.randint(0, 1)])
    shape = [*(x.shape[k] for k in (*batch, *contracted)), d.choose.randint(1, 9)]
    order = list(range(len(shape)))
    d.choose.shuffle(order)
    y = d.parameter([shape[k] for k in order], x.dtype)
    of = {k: position for position, k in enumerate(order)}
    numbers = (
        (contracted, tuple(of[len(batch) + k] for k in range(count))),
        (batch, tuple(of[k] for k in range(len(batch)))),
    )
    terms = math.prod(x.shape[k] for k in contracted)
    return DrawnOperation(
        [x, y], {"numbers": numbers}, 2 * math.sqrt(terms) * x.bound * y.bound if x.is_float else UNBOUNDED
    )


def _graph_dot_general(g: Any, x: Any, y: Any, numbers: Any) -> Any:
    contracted, batch = numbers
    return g.dot_general(x, y, contracted, batch)


def _draw_convolution(d: GraphDraft) -> DrawnOperation | None:
    layouts = d.choose.choice(_LAYOUTS)
    groups = d.choose.choice((1, 1, 1, 2, 3))
    depthwise = d.choose.chance(0.2)
    x = d.number(4, 4, bound=100)
    channel = layouts[0].index("C")
    if x is None or min(x.shape) < 1 or d.choose.chance(0.2):
        extents = {"N": d.choose.randint(1, 3), "C": groups * d.choose.randint(1, 9)}
        extents |= {axis: d.choose.randint(1, 12) for axis in "HW"}
        x = d.parameter([extents[axis] for axis in layouts[0]])
    channels = x.shape[channel]
    groups = channels if depthwise else groups if channels % groups == 0 else 1
    if channels > 40:
        return None
    sizes = dict(zip(layouts[0], x.shape, strict=True))
    kernel = {axis: d.choose.randint(1, 3) for axis in "HW"}
    dilation = tuple(d.choose.choice((1, 1, 2)) for _ in "HW")
    input_dilation = tuple(d.choose.choice((1, 1, 1, 1, 2)) for _ in "HW")
    padding = tuple((d.choose.randint(0, 2), d.choose.randint(0, 2)) for _ in "HW")
    for k, axis in enumerate("HW"):
        room = (sizes[axis] - 1) * input_dilation[k] + 1 + sum(padding[k])
        if (kernel[axis] - 1) * dilation[k] + 1 > room:
            return None
    kernel |= {"I": channels // groups, "O": groups * d.choose.randint(1, 3 if groups > 1 else 9)}
    w = d.parameter([kernel[axis] for axis in layouts[1]], x.dtype)
    terms = kernel["I"] * kernel["H"] * kernel["W"]
    attributes = {
        "strides": tuple(d.choose.choice((1, 1, 2, 3)) for _ in "HW"),
        "padding": padding,
        "input_dilation": input_dilation,
        "dilation": dilation,
        "groups": groups,
        "layouts": layouts,
    }
    return DrawnOperation([x, w], attributes, 2 * math.sqrt(terms) * x.bound * w.bound)


def _jax_convolution(
    j: Any, x: Any, w: Any, strides: Any, padding: Any, input_dilation: Any, dilation: Any, groups: int, layouts: Any
) -> Any:
    return j.lax.conv_general_dilated(
        x, w, strides, padding, input_dilation, dilation, layouts, feature_group_count=groups
    )


def _graph_convolution(
    g: Any, x: Any, w: Any, strides: Any, padding: Any, input_dilation: Any, dilation: Any, groups: int, layouts: Any
) -> Any:
    return g.convolution(
        x,
        w,
        strides,
        padding,
        input_dilation=input_dilation,
        kernel_dilation=dilation,
        groups=groups,
        layouts=layouts,
    )


def _draw_attention(d: GraphDraft) -> DrawnOperation | None:
    x = d.number(2, 3, bound=20)
    if x is None:
        return None
    heads, size = d.choose.randint(1, 3), d.choose.choice((4, 8, 3, 16, 5))
    width, rows = x.shape[-1], x.shape[-2]
    if rows * heads * size > 3000:
        return None
    w = d.parameter((width, 3 * heads * size), x.dtype, bound=1, role="weight")
    mask = d.choose.choice(("", "causal", "mask"))
    masks = [d.parameter((rows, rows), "bool")] if mask == "mask" else []
    bound = 2 * math.sqrt(width) * x.bound
    return DrawnOperation([x, w, *masks], {"heads": heads, "causal": mask == "causal"}, bound)


def _attention(x: Any, w: Any, heads: int, softmax: Any) -> Any:
    """Attention on arrays of JAX or on values of a graph: `x` is `(..., rows, width)`."""
    *batch, rows, _ = x.shape
    lead = len(batch)
    qkv = (x @ w).reshape(*batch, rows, 3, heads, w.shape[1] // (3 * heads))
    ahead = (slice(None),) * (lead + 1)
    outer = tuple(range(lead))
    q, k, v = (qkv[(*ahead, n)].transpose(*outer, lead + 1, lead, lead + 2) for n in range(3))
    scores = q @ k.transpose(*outer, lead, lead + 2, lead + 1) * (q.shape[-1] ** -0.5)
    mixed = softmax(scores) @ v
    return mixed.transpose(*outer, lead + 1, lead, lead + 2).reshape(*batch, rows, w.shape[1] // 3)


def _jax_attention(j: Any, x: Any, w: Any, *masks: Any, heads: int, causal: bool) -> Any:
    def softmax(scores: Any) -> Any:
        rows = scores.shape[-1]
        masked = j.np.tril(j.np.ones((rows, rows), bool)) if causal else masks[0] if masks else None
        if masked is not None:
            scores = j.np.where(masked, scores, j.np.asarray(-1e4, scores.dtype))
        wide = scores.astype("float32") if scores.dtype.itemsize < 4 else scores
        return j.nn.softmax(wide, -1).astype(scores.dtype)

    return _attention(x, w, heads, softmax)


def _graph_attention(g: Any, x: Any, w: Any, *masks: Any, heads: int, causal: bool) -> Any:
    def softmax(scores: Any) -> Any:
        shape = scores.shape[-2:]
        masked = g.iota(shape, 0) >= g.iota(shape, 1) if causal else masks[0] if masks else None
        return g.softmax(scores if masked is None else g.where(masked, scores, g.full((), -1e4, scores.dtype)))

    return _attention(x, w, heads, softmax)


OPERATIONS: Final = (
    GraphOperation("matmul", _draw_matmul, in_jax("np.matmul"), in_graph("matmul"), weight=4),
    GraphOperation("linear", _draw_linear, _jax_linear, _graph_linear, weight=3),
    GraphOperation("dot_general", _draw_dot_general, in_jax("lax.dot_general"), _graph_dot_general, weight=2),
    GraphOperation("convolution", _draw_convolution, _jax_convolution, _graph_convolution, weight=4),
    GraphOperation("attention", _draw_attention, _jax_attention, _graph_attention, weight=3),
)
