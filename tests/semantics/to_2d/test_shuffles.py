"""Shuffles of large vectors by any mask, against numpy: after each stage, and as machine code between guard pages."""

from __future__ import annotations

import random
from functools import cache

import numpy as np
import pytest

import tlx
from tlx.evaluate import Machine
from tlx.fuzz.check import GuardedArray
from tlx.intrinsics.numpy_types import Array
from tlx.ir.parser.module import parse
from tlx.lower.options import STAGE_NAMES, Options
from tlx.lower.pipeline import lower

W = 600
_ANY = -1
_ELEMENTS = ("float", "i32", "i8", "double", "half", "bfloat", "i16", "i64", "i1")
_EACH = np.arange(W)
_BOTH = np.arange(2 * W)
_MIXED = np.random.default_rng(3)


def _open(lanes: Array, step: int, first: int = 0) -> Array:
    """Lanes, some of them undefined."""
    lanes = lanes.copy()
    lanes[first::step] = _ANY
    return lanes


_LANES: dict[str, Array] = {
    "identity": _EACH,
    "transpose": _EACH.reshape(20, 30).T,
    "transpose 3-D": _EACH.reshape(5, 12, 10).transpose(2, 0, 1),
    "reverse": _EACH[::-1],
    "reverse rows": _EACH.reshape(20, 30)[::-1],
    "reverse each row": _EACH.reshape(20, 30)[:, ::-1],
    "reverse a part": _EACH[100:377][::-1],
    "every third backwards": _EACH[::-3],
    "rotate": (_EACH + 77) % W,
    "rotate each row": _EACH.reshape(20, 30)[:, (np.arange(30) + 7) % 30],
    "interleave": _BOTH.reshape(2, W).T,
    "interleave one with itself": np.repeat(_EACH, 2),
    "interleave rows": _BOTH.reshape(2, 20, 30).transpose(1, 0, 2),
    "deinterleave": _EACH[1::2],
    "deinterleave by three": _EACH[2::3],
    "deinterleave both": _BOTH[::2],
    "every second of each row": _EACH.reshape(20, 30)[:, ::2],
    "concat": _BOTH,
    "concat the other way round": (_BOTH + W) % (2 * W),
    "concat columns": np.concatenate([_EACH.reshape(20, 30), W + _EACH.reshape(20, 30)], axis=1),
    "window": _BOTH[250:850],
    "slice": _EACH[100:400],
    "slice of the second": _BOTH[700:1100],
    "rows": np.tile(_EACH, 3),
    "columns": np.repeat(_EACH, 3),
    "rows repeated": np.repeat(_EACH.reshape(20, 30), 3, axis=0),
    "slice repeated": np.tile(_EACH[40:90], 12),
    "splat": np.zeros(W, int),
    "splat of the last": np.full(900, 2 * W - 1),
    "insert": np.where((_EACH >= 100) & (_EACH < 133), _EACH + W - 90, _EACH),
    "insert a column": np.where(_EACH % 30 == 4, _EACH + W, _EACH),
    "exchange": np.r_[0:3, 5, 4, 3, 6:W],
    "blend": np.where(_MIXED.random(W) < 0.5, _EACH, _EACH + W),
    "blend by rows": np.where(_EACH // 30 % 2, _EACH, _EACH + W),
    "any order": _MIXED.permutation(W),
    "any order of both": _MIXED.permutation(2 * W),
    "rows in any order": _BOTH.reshape(40, 30)[_MIXED.permutation(40)],
    "columns in any order": _EACH.reshape(20, 30)[:, _MIXED.permutation(30)],
    "all open": np.full(W, _ANY),
    "one": np.r_[[_ANY] * 50, 7, [_ANY] * 700],
    "widen": np.r_[0:W, [_ANY] * W],
    "widen in front": np.r_[[_ANY] * 300, 0:W],
    "spread": _open(_open(np.repeat(_EACH, 3), 3), 3, 1),
    "open transpose": _open(_EACH.reshape(20, 30).T.reshape(-1), 7),
    "open reverse": _open(_EACH[::-1], 5),
    "open blend": _open(np.where(_EACH // 30 % 2, _EACH, _EACH + W), 17),
    "open any order": _open(_MIXED.permutation(2 * W), 4),
    "open ends": np.r_[[_ANY] * 20, 0:W:20, [_ANY] * 600],
    "small": _EACH[3:600:100],
}
_INTRINSICS: dict[str, tuple[str, Array]] = {
    "reverse": (f"<{W} x T> @llvm.vector.reverse.v{W}M(V %x)", _EACH[::-1]),
    "interleave2": (f"<{2 * W} x T> @llvm.vector.interleave2.v{2 * W}M(V %x, V %y)", _BOTH.reshape(2, W).T),
    "splice": (f"<{W} x T> @llvm.vector.splice.v{W}M(V %x, V %y, i32 77)", _BOTH[77 : 77 + W]),
    "splice back": (f"<{W} x T> @llvm.vector.splice.v{W}M(V %x, V %y, i32 -7)", _BOTH[W - 7 : 2 * W - 7]),
    "extract": (f"<200 x T> @llvm.vector.extract.v200M.v{W}M(V %x, i64 400)", _EACH[400:]),
    "insert": (f"<1200 x T> @llvm.vector.insert.v1200M.v{W}M(<1200 x T> %z, V %y, i64 600)", _BOTH),
}


def _spelled(lanes: Array) -> str:
    if (lanes == 0).all():
        return f"<{len(lanes)} x i32> zeroinitializer"
    if len(set(lanes)) == 1:
        return f"<{len(lanes)} x i32> " + ("poison" if lanes[0] == _ANY else f"splat (i32 {lanes[0]})")
    return f"<{len(lanes)} x i32> <{', '.join('i32 undef' if n == _ANY else f'i32 {n}' for n in lanes)}>"


def _load(name: str, pointer: str, element: str, count: int = W) -> str:
    return f"""  %{name}.t = call token @llvm.tensor.load(ptr elementtype({element}) {pointer}, <1 x i32> <i32 {count}>,
      <1 x i32> zeroinitializer, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %{name} = call <{count} x {element}> @llvm.tensor.tovector(token %{name}.t)
"""


def _function(name: str, made: str, count: int, element: str) -> str:
    """A function that computes %s from %x and %y, and stores it."""
    widened = _spelled(_open(np.r_[_EACH, _EACH], 1, W))
    z = f"  %z = shufflevector <{W} x {element}> %x, <{W} x {element}> undef, {widened}"
    return f"""
define void @{name}(ptr noalias %p, ptr noalias %r, ptr noalias %q) {{
{_load("x", "%p", element)}{_load("y", "%r", element)}{z}
{made}
  %t = call token @llvm.tensor.typeinfo(<{count} x {element}> %s, <1 x i32> <i32 {count}>, <1 x i32> zeroinitializer,
      <1 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %q, token %t, <1 x i32> zeroinitializer)
  ret void
}}
"""


def _shuffle(name: str, lanes: Array, element: str) -> str:
    vector = f"<{W} x {element}>"
    made = f"  %s = shufflevector {vector} %x, {vector} %y, {_spelled(lanes)}"
    return _function(name, made, len(lanes), element)


def _check(name: str, lanes: Array, element: str, out: Array, both: Array) -> None:
    known = lanes != _ANY
    np.testing.assert_array_equal(out[: len(lanes)][known], both[lanes[known]], err_msg=f"{name} of {element}")


@cache
def _program() -> tuple[str, dict[str, tuple[str, Array, str]]]:
    """All shuffles in one module, with the name, lanes and element type of each function."""
    text, functions = "", dict[str, tuple[str, Array, str]]()
    for number, (title, shape) in enumerate(_LANES.items()):
        lanes = shape.reshape(-1)
        for element in (_ELEMENTS[number % len(_ELEMENTS)], "float"):
            name = f"f{len(functions)}"
            functions[name] = title, lanes, element
            text += _shuffle(name, lanes, element)
    for title, (call, shape) in _INTRINSICS.items():
        lanes, element, mangled = shape.reshape(-1), *random.Random(title).choice([("float", "f32"), ("i16", "i16")])
        name = f"f{len(functions)}"
        functions[name] = title, lanes, element
        call = call.replace("V ", f"<{W} x {element}> ").replace("x T", f"x {element}").replace("M(", f"{mangled}(")
        text += _function(name, f"  %s = call {call.replace('M.', f'{mangled}.')}", len(lanes), element)
    return text, functions


def _arrays(element: str, size: int) -> tuple[Array, Array]:
    """Both operands, contiguous, and memory for the result."""
    dtypes = {"float": np.float32, "double": np.float64, "half": np.float16, "bfloat": np.uint16, "i1": np.uint8}
    dtype = np.dtype(dtypes[element] if element in dtypes else f"i{element[1:] and int(element[1:]) // 8}")
    both = np.random.default_rng(5).integers(0, 2 if element == "i1" else 99, 2 * W).astype(dtype)
    return both, np.full(size, 77, dtype)


@pytest.mark.parametrize("stage", [None, *STAGE_NAMES])
def test_shuffles_mean_the_same_after(stage: str | None) -> None:
    text, functions = _program()
    module = parse(text)
    if stage is not None:
        module = lower(module, "avx512", options=Options(stop_after=stage))
        assert "llvm.vector.interleave" not in str(module)
    machine = Machine(module)
    for name, (title, lanes, element) in functions.items():
        both, out = _arrays(element, len(lanes))
        machine.call(name, both[:W].copy(), both[W:].copy(), out)
        _check(title, lanes, element, out, both)


@pytest.mark.parametrize("at_end", [True, False])
def test_shuffles_access_no_other_memory(at_end: bool) -> None:
    compiled = _compiled()
    for name, (title, lanes, element) in _program()[1].items():
        both, out = _arrays(element, len(lanes))
        memory = [GuardedArray(array, at_end=at_end) for array in (both[:W], both[W:], out)]
        compiled[name].unchecked(*(guarded.array.ctypes.data for guarded in memory))
        _check(title, lanes, element, memory[2].array, both)
        assert all(guarded.is_intact for guarded in memory)


@cache
def _compiled() -> tlx.Compiled:
    return tlx.compile(_program()[0], "generic", opt_level=1)
