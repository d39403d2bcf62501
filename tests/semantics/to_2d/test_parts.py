"""Results that are written to their parts of concatenations and paddings: evaluated before and after each stage."""

from __future__ import annotations

import re
from typing import Final

import numpy as np
import pytest

from tests.semantics.to_2d.loops.programs import DENSE, carried_loop
from tests.support.tools import quick_by_target
from tlx.api.validation import validate
from tlx.graph import Graph, Value
from tlx.ir.parser.module import parse
from tlx.lower.options import Options
from tlx.lower.pipeline import lower

_TARGETS: Final = ("generic", "avx2", "avx512", "amx")


def _producer(g: Graph, rng: np.random.Generator, x: Value, w: Value) -> Value:
    """A value of shape (2, 3, 6, 5) from a map, a product, a convolution, reductions, a transpose or a pooling."""
    match int(rng.integers(7)):
        case 0:
            return x * x + 1.0
        case 1:
            return g.relu(x @ w)
        case 2:
            return g.convolution(
                x, g.constant(rng.integers(-2, 3, (3, 3, 3, 3)).astype("f4")), padding=[(1, 1), (1, 1)]
            )
        case 3:
            return g.sum(g.stack([x, x * 2.0], axis=2), 2)
        case 4:
            return g.transpose(x.reshape(2, 3, 5, 6) + x.reshape(2, 3, 5, 6), (0, 1, 3, 2))
        case 5:
            return g.reduce_window("max", x, (1, 1, 3, 3), (1, 1, 1, 1), [(0, 0), (0, 0), (1, 1), (1, 1)])
        case _:
            return g.sum(x, 3, keep=True) - x


def _moved(g: Graph, rng: np.random.Generator, depth: int, x: Value, w: Value) -> Value:
    """Concatenations and paddings of producers and of each other."""
    if depth == 0:
        return _producer(g, rng, x, w)
    if rng.integers(2):
        axis = int(rng.integers(4))
        operands = [_moved(g, rng, depth - 1, x, w) for _ in range(rng.integers(2, 4))]
        first = operands[0].shape
        fitting = [v for v in operands if all(d == axis or v.shape[d] == first[d] for d in range(4))]
        return g.concatenate(fitting, axis)
    low, high = rng.integers(0, 3, (2, 4)).tolist()
    interior = [0, 0, 0, int(rng.integers(4) == 0)]
    return g.pad(_moved(g, rng, depth - 1, x, w), low, high, interior, float(rng.integers(-1, 2)))


@pytest.mark.parametrize(("seed", "target"), quick_by_target(range(40), _TARGETS, 5))
def test_nested_parts_hold_the_same_numbers(seed: int, target: str) -> None:
    rng = np.random.default_rng(seed)
    g = Graph("f")
    x, w = g.parameter("x", (2, 3, 6, 5)), g.parameter("w", (5, 5))
    moved = _moved(g, rng, int(rng.integers(1, 4)), x, w)
    g.output(g.transpose(moved, (3, 1, 0, 2)) + 1.0 if rng.integers(2) else moved)
    assert validate(g.text(), target, runs=1) == []


_LOOP: Final = f"""
define void @f(ptr %x, ptr %y) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %from = getelementptr float, ptr %x, i64 %i
  %v = load <12 x float>, ptr %from
  %s = fmul <12 x float> %v, %v
  %t = call token @llvm.tensor.typeinfo(<12 x float> %s, <2 x i32> <i32 3, i32 4>, {DENSE})
  %p = call <30 x float> @llvm.tensor.pad(token %t, <2 x i32> <i32 1, i32 1>, <2 x i32> <i32 1, i32 1>, float 2.0)
  %pt = call token @llvm.tensor.typeinfo(<30 x float> %p, <2 x i32> <i32 5, i32 6>, {DENSE})
  %r = call <30 x float> @llvm.tensor.transpose(token %pt, <2 x i32> <i32 1, i32 0>)
  %sum = fadd <30 x float> %r, %p
  %to = getelementptr float, ptr %y, i64 %i
  store <30 x float> %sum, ptr %to
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, 7
  br i1 %more, label %loop, label %exit
exit:
  ret void
}}
"""


@pytest.mark.parametrize("target", _TARGETS)
def test_a_part_in_a_loop_is_written_in_each_iteration(target: str) -> None:
    assert validate(_LOOP, target, runs=1) == []


_CARRIED: Final = carried_loop(f"""\
  %old = call <8 x float> @llvm.tensor.pad(token %vt, <2 x i32> <i32 -1, i32 0>, <2 x i32> zeroinitializer, float 0.0)
  %twice = fadd <8 x float> %old, %old
  %new = call <4 x float> @llvm.tensor.reduce.add(token %vt, <2 x i32> <i32 3, i32 1>, <2 x i32> <i32 3, i32 1>)
  %a = call token @llvm.tensor.typeinfo(<8 x float> %twice, <2 x i32> <i32 2, i32 4>, {DENSE})
  %b = call token @llvm.tensor.typeinfo(<4 x float> %new, <2 x i32> <i32 1, i32 4>, {DENSE})
  %c = call <12 x float> @llvm.tensor.concat(token %a, token %b, i32 0)
  %w = RENAMED
""")


@pytest.mark.parametrize("target", _TARGETS)
@pytest.mark.parametrize("renamed", ["freeze <12 x float> %c", "fadd <12 x float> %c, %c", ""])
def test_a_carried_concatenation_is_not_overwritten_while_it_is_read(target: str, renamed: str) -> None:
    text = _CARRIED.replace("RENAMED", renamed)
    if not renamed:
        text = text.replace("  %w = \n", "").replace("%w", "%c")
    assert validate(text, target, runs=1) == []


@pytest.mark.parametrize(("seed", "target"), quick_by_target(range(60), _TARGETS, 5))
def test_parts_that_others_read_too_hold_the_same_numbers(seed: int, target: str) -> None:
    """Values are moved several times, joined in other shapes, and read by maps, products, windows and stores."""
    rng = np.random.default_rng(seed)
    g = Graph("f")
    x, w = g.parameter("x", (2, 3, 6, 5)), g.parameter("w", (5, 5))
    filters = g.constant(rng.integers(-2, 3, (2, 3, 1, 1)).astype("f4"))
    values = [_producer(g, rng, x, w) for _ in range(3)]
    for _ in range(int(rng.integers(2, 5))):
        first, second = (values[int(k)] for k in rng.integers(0, 3, 2))
        match int(rng.integers(5)):
            case 0:
                moved = g.concatenate([first, second], int(rng.integers(4)))
            case 1:
                moved = g.pad(first, *rng.integers(0, 2, (2, 4)).tolist())
            case 2:
                moved = g.concatenate([first.reshape(2, 18, 5), second.reshape(2, 18, 5)], int(rng.integers(3)))
            case 3:
                moved = g.concatenate(
                    [g.pad(first, (0, 0, 1, 1), (0, 0, 1, 1)), g.pad(second, (0, 0, 2, 2), (0,) * 4)], 1
                )
            case _:
                moved = g.transpose(first, (1, 0, 2, 3))
        g.output(moved * 2.0 if rng.integers(2) else moved)
        reader = values[int(rng.integers(3))]
        match int(rng.integers(5)):
            case 0:
                g.output(reader + first)
            case 1:
                g.output(g.convolution(reader, filters))
            case 2:
                g.output(reader @ w)
            case 3:
                g.output(g.reduce_window("max", reader, (1, 1, 3, 3), (1, 1, 1, 1), [(0, 0), (0, 0), (0, 0), (0, 0)]))
            case _:
                g.output(reader)
    assert validate(g.text(), target, runs=1) == []


_STORED: Final = f"""
define void @f(POINTERS) {{
  %q = getelementptr float, ptr %x, i64 400
  %a = load <400 x float>, ptr %x
  %b = load <400 x float>, ptr %q
  %c = fmul <400 x float> %a, %a
  %d = fadd <400 x float> %b, %a
  %ct = call token @llvm.tensor.typeinfo(<400 x float> %c, <2 x i32> <i32 20, i32 20>, {DENSE})
  %dt = call token @llvm.tensor.typeinfo(<400 x float> %d, <2 x i32> <i32 20, i32 20>, {DENSE})
  %e = call <800 x float> @llvm.tensor.concat(token %ct, token %dt, i32 AXIS)
  store <800 x float> %e, ptr TARGET
  ret void
}}
"""


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(
    ("pointers", "stored", "buffers"),
    [
        ("ptr noalias %x, ptr noalias %y", "%y", 0),
        ("ptr %x, ptr %y", "%y", 2),  # the maps may read what they would overwrite
        ("ptr noalias %x, ptr noalias %y", "%x", 2),  # the second map reads what the first one would overwrite
    ],
)
def test_a_stored_concatenation_is_written_in_place_unless_its_operands_read_it(
    axis: int, pointers: str, stored: str, buffers: int
) -> None:
    text = _STORED.replace("POINTERS", pointers).replace("AXIS", str(axis)).replace("TARGET", stored)
    assert validate(text, "avx512", runs=1) == []
    lowered = str(lower(parse(text), "avx512", options=Options(stop_after="to-2d")))
    assert len(re.findall(r"alloca \[[48]00 x float\]", lowered)) == buffers


def _buffers(g: Graph, target: str = "avx512") -> set[str]:
    """Stems of the buffers of a program before its kernels are chosen."""
    text = str(lower(parse(g.text()), target, options=Options(stop_after="to-2d")))
    return {name.split(".")[0] for name in re.findall(r"%([\w.]+)\.buf(?:\.\d+)? = ", text)}


def test_only_one_of_several_moves_is_saved() -> None:
    """Both lie in one concatenation, where the sums read one of them, and are copied to the other."""
    g = Graph("f")
    x = g.parameter("x", (64, 64))
    y, z = g.exp(x), g.tanh(x)
    g.output(g.concatenate([y, z], 0) @ g.concatenate([z, y], 1))
    g.output(y + g.transpose(y, (1, 0)))
    assert _buffers(g) == {"concat"}


def test_an_image_is_read_where_it_is_concatenated_in_another_shape() -> None:
    """A residual block in the manner of detectors: nothing but the concatenation has a buffer."""
    g = Graph("f")
    x, w = g.parameter("x", (1, 8, 12, 12)), g.parameter("w", (8, 8, 1, 1))
    y = g.relu(g.convolution(x, w))
    large = g.broadcast(y.reshape(1, 8, 12, 1, 12, 1), (1, 8, 12, 2, 12, 2)).reshape(1, 8, 24, 24)
    skip = g.relu(g.convolution(g.parameter("z", (1, 8, 24, 24)), w))
    both = g.concatenate([large, skip], 1)
    g.output(g.convolution(both, g.parameter("v", (4, 16, 1, 1))))
    g.output(skip + 1.0)
    assert _buffers(g) == {"relu", "concat"}


def test_a_plane_is_not_read_among_padding_by_filters_of_one_element() -> None:
    """These would multiply rows in place of planes, so that the pad copies the image."""
    g = Graph("f")
    x, w = g.parameter("x", (1, 8, 12, 12)), g.parameter("w", (8, 8, 1, 1))
    y = g.exp(x)
    g.output(g.convolution(y, w))
    g.output(g.reduce_window("max", g.pad(y, (0, 0, 1, 1), (0, 0, 1, 1)), (1, 1, 3, 3), (1, 1, 1, 1), [(0, 0)] * 4))
    assert {"exp", "pad"} <= _buffers(g)


@pytest.mark.parametrize("target", ["avx2", "avx512"])
def test_borders_between_convolutions_have_no_buffers(target: str) -> None:
    """Residual blocks in the manner of detectors: the second convolution halves the image."""
    g = Graph("f")
    y = g.parameter("x", (1, 48, 26, 26))
    for n, stride in enumerate((1, 2, 1)):
        filters = g.parameter(f"w{n}", (48, 48, 3, 3))
        z = g.silu(g.convolution(y, filters, strides=(stride, stride), padding=[(1, 1), (1, 1)]))
        y = z if stride == 2 else y + z
    g.output(y)
    assert "pad" not in _buffers(g, target)


_REPLACED: Final = """
define void @f(ptr noalias %x, ptr noalias %y) {
entry:
  %xv = load <4096 x float>, ptr %x
  %a = fmul <4096 x float> %xv, %xv
  %at = call token @llvm.tensor.typeinfo(<4096 x float> %a, <1 x i32> <i32 4096>, DENSE)
  %bt = call token @llvm.tensor.typeinfo(<4096 x float> %xv, <1 x i32> <i32 4096>, DENSE)
  %first = call <8192 x float> @llvm.tensor.concat(token %at, token %bt, i32 0)
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %v = phi <8192 x float> [ %first, %entry ], [ %w, %loop ]
  %w = insertelement <8192 x float> %v, float 7.0, i64 %i
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, 4
  br i1 %more, label %loop, label %exit
exit:
  store <8192 x float> %w, ptr %y
  ret void
}
""".replace("DENSE", "<1 x i32> zeroinitializer, <1 x i32> zeroinitializer")


def test_a_concatenation_whose_buffer_a_loop_shares_is_copied_once() -> None:
    """Each operand is copied to the buffer of the loop's vector, and that to the result."""
    assert validate(_REPLACED, "avx512", runs=1) == []
    lowered = str(lower(parse(_REPLACED), "avx512", options=Options(stop_after="to-2d")))
    copied = [int(size) for size in re.findall(r"@llvm\.memcpy[\w.]*\(ptr.*i64 (\d+)", lowered)]
    assert sum(copied) == 2 * 4 * 8192


_STACKED: Final = """
define <16 x float> @f(ptr noalias %x, ptr noalias %y) {
  %xv = load <8 x float>, ptr %x
  %xt = call token @llvm.tensor.typeinfo(<8 x float> %xv, <2 x i32> <i32 2, i32 4>, DENSE)
  %a = call <8 x float> @llvm.tensor.relu(token %xt)
  %at = call token @llvm.tensor.typeinfo(<8 x float> %a, <2 x i32> <i32 2, i32 4>, DENSE)
  %b = call <8 x float> @llvm.tensor.fabs(token %xt)
  %bt = call token @llvm.tensor.typeinfo(<8 x float> %b, <2 x i32> <i32 2, i32 4>, DENSE)
  %u = call <16 x float> @llvm.tensor.concat(token %at, token %bt, i32 1)
  %ut = call token @llvm.tensor.typeinfo(<16 x float> %u, <2 x i32> <i32 2, i32 8>, DENSE)
  %s = call <16 x float> @llvm.tensor.relu(token %ut)
  store <16 x float> %s, ptr %y
  ret <16 x float> %u
}
""".replace("DENSE", DENSE)


@pytest.mark.parametrize("returned", ["<16 x float> %u", "<8 x float> %a"])
def test_parts_and_wholes_that_are_needed_as_vectors(returned: str) -> None:
    """Operands are written to the concatenation, which is loaded from its buffer; one that is needed itself is not."""
    type_, name = returned.split("> ")
    text = _STACKED.replace("ret <16 x float> %u", f"ret {returned}").replace("define <16 x float>", f"define {type_}>")
    assert validate(text, "avx512", runs=1) == []
    lowered = str(lower(parse(text), "avx512", options=Options(stop_after="to-2d")))
    assert ("%a.buf" in lowered) == (name == "%a")
    assert "%b.buf" not in lowered
