"""Arithmetic, functions, comparisons and conversions, element by element."""

# ruff: noqa: ARG005 (all functions of the table take the same)
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from tlx.fuzz.graphs.drawing import UNBOUNDED, DrawnOperation, GraphDraft, GraphOperation, in_graph, in_jax
from tlx.fuzz.graphs.program import FLOATS, INTEGERS

_LARGEST_POWER: Final = 6
_EXACT_INTEGERS: Final = 256.0  # up to which every type of floats has all integers
_UNARY: Final[
    dict[str, tuple[str, Callable[[float], float]]]
] = {  # the function in jax.numpy, and the bound of its results from that of its operand
    "tanh": ("tanh", lambda b: 1),
    "sigmoid": ("", lambda b: 1),
    "erfc": ("", lambda b: 2),
    "sin": ("sin", lambda b: 1),
    "cos": ("cos", lambda b: 1),
    "exp": ("exp", math.exp),
    "exp2": ("exp2", lambda b: 2**b),
}
_MOVING: Final = {"negative": "negative", "abs": "abs", "relu": ""}
_STEPS: Final = {"floor": "floor", "ceil": "ceil", "round": "round", "truncate": "trunc", "sign": "sign"}
_BINARY: Final = {
    "add": "add",
    "subtract": "subtract",
    "multiply": "multiply",
    "maximum": "maximum",
    "minimum": "minimum",
}
_BITWISE: Final = {"and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor"}
_RELATIONS: Final = {
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
}


def _draw_unary(d: GraphDraft) -> DrawnOperation | None:
    name = d.choose.choice(list(_UNARY))
    x = d.number(bound=_LARGEST_POWER if name.startswith("exp") else 0)
    return x and DrawnOperation([x], {"name": name}, max(1.0, _UNARY[name][1](x.bound)))


def _jax_unary(j: Any, x: Any, name: str) -> Any:
    functions = {"sigmoid": j.nn.sigmoid, "erfc": j.special.erfc}
    return functions[name](x) if name in functions else getattr(j.np, name)(x)


def _graph_unary(g: Any, x: Any, name: str) -> Any:
    return g.erfc(x) if name == "erfc" else g.unary(name, x)


def _draw_positive(d: GraphDraft) -> DrawnOperation | None:
    x = d.number()
    name = d.choose.choice(("sqrt", "rsqrt", "log", "log2"))
    return x and DrawnOperation(
        [x], {"name": name}, 2 + (math.sqrt(x.bound) if name == "sqrt" else math.log2(x.bound + 2))
    )


def _jax_positive(j: Any, x: Any, name: str) -> Any:
    y = j.np.abs(x) + 0.5
    return j.lax.rsqrt(y) if name == "rsqrt" else getattr(j.np, name)(y)


def _draw_moving(d: GraphDraft) -> DrawnOperation | None:
    name = d.choose.choice(list(_MOVING))
    x = d.find(lambda v: v.dtype != "bool" and not (name == "negative" and v.dtype.startswith("u")))
    return x and DrawnOperation([x], {"name": name}, x.bound if x.is_float else UNBOUNDED)


def _jax_moving(j: Any, x: Any, name: str) -> Any:
    return j.np.maximum(x, 0) if name == "relu" else getattr(j.np, name)(x)


def _draw_step(d: GraphDraft) -> DrawnOperation | None:
    x = d.number(exact=True)
    return x and DrawnOperation([x], {"name": d.choose.choice(list(_STEPS))}, x.bound + 1, is_integral=True)


def _draw_erf(d: GraphDraft) -> DrawnOperation | None:
    x = d.find(lambda v: v.is_float and v.dtype != "float64")
    return x and DrawnOperation([x], {}, 1)


def _draw_activation(d: GraphDraft) -> DrawnOperation | None:
    x = d.number()
    return x and DrawnOperation([x], {"name": d.choose.choice(("gelu", "silu"))})


def _draw_binary(d: GraphDraft) -> DrawnOperation | None:
    x = d.find(lambda v: v.dtype != "bool")
    if x is None:
        return None
    y = d.like(x)
    name = d.choose.choice(list(_BINARY))
    both = x.bound * y.bound if name == "multiply" else x.bound + y.bound
    operands = [y, x] if d.choose.chance(0.4) else [x, y]
    return DrawnOperation(operands, {"name": name}, both if x.is_float or both < _EXACT_INTEGERS else UNBOUNDED)


def _graph_binary(g: Any, x: Any, y: Any, name: str) -> Any:
    return g.binary(name, x, y)


def _draw_extreme(d: GraphDraft) -> DrawnOperation | None:
    x = d.any()
    return x and DrawnOperation([x, d.like(x)], {"name": d.choose.choice(("maximum", "minimum"))})


def _draw_scaled(d: GraphDraft) -> DrawnOperation | None:
    x = d.number()
    scale, shift = (d.choose.randint(0, 16) / 8 - 1 for _ in range(2))
    return x and DrawnOperation([x], {"scale": scale, "shift": shift}, x.bound * abs(scale) + abs(shift))


def _draw_divide(d: GraphDraft) -> DrawnOperation | None:
    x = d.number()
    return x and DrawnOperation([x, d.like(x)], {}, 2 * x.bound)


def _draw_integers(d: GraphDraft) -> DrawnOperation | None:
    x = d.integers()
    name = d.choose.choice(("divide", "remainder", "and", "or", "xor", "shift_left", "shift_right"))
    return x and DrawnOperation([x, d.like(x)], {"name": name}, UNBOUNDED)


def _jax_integers(j: Any, x: Any, y: Any, name: str) -> Any:
    if name in _BITWISE:
        return getattr(j.np, _BITWISE[name])(x, y)
    x, y = j.np.broadcast_arrays(x, y)
    if name == "shift_left":
        return j.lax.shift_left(x, y)
    if name == "shift_right":
        is_signed = j.np.issubdtype(x.dtype, j.np.signedinteger)
        return (j.lax.shift_right_arithmetic if is_signed else j.lax.shift_right_logical)(x, y)
    return (j.lax.div if name == "divide" else j.lax.rem)(x, y)


def _draw_logical(d: GraphDraft) -> DrawnOperation | None:
    x = d.find(lambda v: v.dtype == "bool")
    return x and DrawnOperation([x, d.like(x)], {"name": d.choose.choice(list(_BITWISE))}, 1)


def _draw_compare(d: GraphDraft) -> DrawnOperation | None:
    x = d.any(exact=True)
    if x is None:
        return None
    y = d.like(x)
    return (
        DrawnOperation([x, y], {"relation": d.choose.choice(list(_RELATIONS))})
        if y.is_exact and x.dtype != "bool"
        else None
    )


def _draw_where(d: GraphDraft) -> DrawnOperation | None:
    c = d.find(lambda v: v.dtype == "bool")
    x = d.any()
    if c is None or x is None:
        return None
    y = d.like(x)
    fits = all(a == b or 1 in (a, b) for a, b in zip(reversed(c.shape), reversed(x.shape), strict=False))
    fits = fits and all(a == b or 1 in (a, b) for a, b in zip(reversed(c.shape), reversed(y.shape), strict=False))
    return DrawnOperation([c, x, y], {}, max(x.bound, y.bound)) if fits else None


def _draw_clamp(d: GraphDraft) -> DrawnOperation | None:
    x = d.find(lambda v: v.dtype != "bool" and not v.dtype.startswith("u"))
    return x and DrawnOperation([x], {"low": -d.choose.randint(0, 2), "high": d.choose.randint(1, 3)}, 3)


def _draw_convert(d: GraphDraft) -> DrawnOperation | None:
    dtype = d.choose.choice((*d.floats, *FLOATS, *INTEGERS, "bool"))
    x = d.find(lambda v: v.dtype != dtype and (v.is_exact or dtype in FLOATS))
    if x is None:
        return None
    if dtype in FLOATS:
        return DrawnOperation([x], {"dtype": dtype}, x.bound) if x.is_float or x.bound <= _EXACT_INTEGERS else None
    if x.is_float and (x.bound > 100 or dtype.startswith("u")):
        return None  # conversions of floats outside an integer type's range are undefined
    return DrawnOperation([x], {"dtype": dtype}, x.bound if x.bound <= 100 else UNBOUNDED)


def _jax_convert(j: Any, x: Any, dtype: str) -> Any:
    return x != 0 if dtype == "bool" else x.astype(j.dtype(dtype))


def _graph_convert(g: Any, x: Any, dtype: str) -> Any:
    return g.not_equal(x, 0) if dtype == "bool" and x.dtype != bool else g.convert(x, dtype)


OPERATIONS: Final = (
    GraphOperation("unary", _draw_unary, _jax_unary, _graph_unary, weight=3),
    GraphOperation(
        "positive", _draw_positive, _jax_positive, lambda g, x, name: g.unary(name, g.unary("abs", x) + 0.5)
    ),
    GraphOperation("moving", _draw_moving, _jax_moving, _graph_unary, is_exact=True, weight=2),
    GraphOperation(
        "step",
        _draw_step,
        lambda j, x, name: getattr(j.np, _STEPS[name])(x),
        _graph_unary,
        is_exact=True,
        is_continuous=False,
    ),
    GraphOperation("erf", _draw_erf, in_jax("special.erf"), in_graph("erf")),
    GraphOperation(
        "activation",
        _draw_activation,
        lambda j, x, name: getattr(j.nn, name)(x),
        lambda g, x, name: getattr(g, name)(x),
    ),
    GraphOperation(
        "binary",
        _draw_binary,
        lambda j, x, y, name: getattr(j.np, _BINARY[name])(x, y),
        _graph_binary,
        weight=4,
    ),
    GraphOperation(
        "extreme",
        _draw_extreme,
        lambda j, x, y, name: getattr(j.np, name)(x, y),
        _graph_binary,
        is_exact=True,
    ),
    GraphOperation(
        "scaled",
        _draw_scaled,
        lambda j, x, scale, shift: x * scale + shift,
        lambda g, x, scale, shift: x * scale + shift,
    ),
    GraphOperation(
        "divide",
        _draw_divide,
        lambda j, x, y: x / (j.np.abs(y) + 0.5),
        lambda g, x, y: x / (g.unary("abs", y) + 0.5),
    ),
    GraphOperation("integers", _draw_integers, _jax_integers, _graph_binary, is_exact=True, weight=4),
    GraphOperation(
        "logical",
        _draw_logical,
        lambda j, x, y, name: getattr(j.np, _BITWISE[name])(x, y),
        _graph_binary,
        is_exact=True,
        weight=3,
    ),
    GraphOperation(
        "compare",
        _draw_compare,
        lambda j, x, y, relation: getattr(j.np, _RELATIONS[relation])(x, y),
        lambda g, x, y, relation: g.compare(relation, x, y),
        is_exact=True,
        is_continuous=False,
        weight=2,
    ),
    GraphOperation("where", _draw_where, in_jax("np.where"), in_graph("where"), is_exact=True, weight=5),
    GraphOperation(
        "clamp",
        _draw_clamp,
        lambda j, x, low, high: j.np.clip(x, low, high),
        lambda g, x, low, high: g.clamp(low, x, high),
        is_exact=True,
    ),
    GraphOperation("convert", _draw_convert, _jax_convert, _graph_convert, weight=2),
)
