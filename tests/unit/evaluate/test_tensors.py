"""Tensor intrinsics in the evaluator against numpy: layouts, padding, pitches, every operation's result in memory."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from tlx.diagnostics import EvaluationError, VerifyError
from tlx.evaluate import evaluate
from tlx.ir.parser.module import parse

Array = NDArray[Any]
DTYPES: dict[str, Any] = {
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "half": np.float16,
    "bfloat": ml_dtypes.bfloat16,
    "float": np.float32,
    "double": np.float64,
}


def vector(numbers: Sequence[int]) -> str:
    return f"<{len(numbers)} x i32> <{', '.join(f'i32 {n}' for n in numbers)}>"


def typeinfo(operand: str, shape: Sequence[int], layout: Sequence[int], padding: Sequence[int]) -> str:
    return f"call token @llvm.tensor.typeinfo({operand}, {vector(shape)}, {vector(layout)}, {vector(padding)})"


def load(
    element: str,
    pointer: str,
    shape: Sequence[int],
    layout: Sequence[int],
    padding: Sequence[int],
    pitches: Sequence[int],
) -> str:
    dims = ", ".join(vector(v) for v in (shape, layout, padding, pitches))
    return f"call token @llvm.tensor.load(ptr elementtype({element}) {pointer}, {dims})"


def run(body: str, *args: Array) -> None:
    """Run a body on pointers %a, %b, ..."""
    parameters = ", ".join(f"ptr %{x}" for x in "abcd"[: len(args)])
    evaluate(parse(f"define void @f({parameters}) {{\n{body}\n  ret void\n}}\n", "test.ll"), "f", *args)


def numbers(shape: Sequence[int], element: str = "i32") -> Array:
    return np.random.default_rng(7).integers(-9, 9, shape).astype(DTYPES[element])


def logical(memory: Array, layout: Sequence[int], padding: Sequence[int]) -> Array:
    """A tensor from an array in memory order, dimension by dimension."""
    data = memory[tuple(slice(s - p) for s, p in zip(memory.shape, padding, strict=True))]
    return np.transpose(data, [list(layout).index(d) for d in range(memory.ndim)])


LAYOUTS = [(2, 1, 0), (0, 2, 1), (0, 1, 2), (1, 2, 0)]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("padding", [(0, 0, 0), (1, 2, 3)])
@pytest.mark.parametrize("form", ["value", "pointer", "load"])
def test_every_form_of_a_token_is_the_same_tensor(form: str, padding: tuple[int, ...], layout: tuple[int, ...]) -> None:
    """Read as one layout, written as another: the logical array stays."""
    shape = (3, 4, 5)
    source = numbers(shape)
    make = {
        "value": f"  %v = load <60 x i32>, ptr %a, align 4\n  %t = {typeinfo('<60 x i32> %v', shape, layout, padding)}",
        "pointer": f"  %t = {typeinfo('ptr byval(<60 x i32>) %a', shape, layout, padding)}",
        "load": f"  %t = {load('i32', '%a', shape, layout, padding, (0, 0, 0))}",
    }[form]
    expected = logical(source, layout, padding)
    new_layout = (1, 0, 2)
    order = [layout.index(d) for d in new_layout]
    new_shape, new_padding = [shape[k] for k in order], [padding[k] for k in order]
    target = np.full(60, 99, np.int32)
    run(
        f"{make}\n  %u = call <60 x i32> @llvm.tensor.transpose(token %t, {vector(new_layout)})\n"
        "  store <60 x i32> %u, ptr %b, align 4",
        source,
        target,
    )
    got = target.reshape(new_shape)
    np.testing.assert_array_equal(logical(got, new_layout, new_padding), expected)
    inside = np.zeros(new_shape, bool)
    inside[tuple(slice(s - p) for s, p in zip(new_shape, new_padding, strict=True))] = True
    np.testing.assert_array_equal(got[~inside], 0)


@pytest.mark.parametrize("element", DTYPES)
def test_all_element_types_move(element: str) -> None:
    source, target = numbers((3, 4), element), numbers((3, 4), element) * 0
    run(
        f"  %t = {load(element, '%a', (3, 4), (0, 1), (0, 0), (0, 0))}\n"
        "  call void @llvm.tensor.store(ptr %b, token %t, <2 x i32> zeroinitializer)",
        source,
        target,
    )
    np.testing.assert_array_equal(source, target)


def test_i1_takes_a_byte_in_loads_and_stores_and_a_bit_in_vectors() -> None:
    source, stored, bits = np.array([1, 0, 0xFE, 0xFF, 1, 0], np.uint8), np.zeros(6, np.uint8), np.zeros(1, np.uint8)
    run(
        f"  %t = {load('i1', '%a', (2, 3), (0, 1), (0, 0), (0, 0))}\n"
        "  call void @llvm.tensor.store(ptr %b, token %t, <2 x i32> zeroinitializer)\n"
        "  %v = call <6 x i1> @llvm.tensor.tovector(token %t)\n  store <6 x i1> %v, ptr %c",
        source,
        stored,
        bits,
    )
    np.testing.assert_array_equal(stored, [1, 0, 0, 1, 1, 0])
    assert bits[0] == 0b011001


# Memory --------------------------------------------------------------------------------------------------------------


def strided_copy(shape: Sequence[int], padding: Sequence[int], source: Sequence[int], target: Sequence[int]) -> str:
    layout = range(len(shape))
    return (
        f"  %t = {load('i32', '%a', shape, layout, padding, source)}\n"
        f"  call void @llvm.tensor.store(ptr %b, token %t, {vector(target)})"
    )


def test_pitches_count_positions_of_the_enclosing_array() -> None:
    """A 2x3x4 part of a 2x6x8 array into a part of a 2x5x7 array; the first entry says nothing."""
    source, target = numbers((2, 6, 8)), np.full((2, 5, 7), 99, np.int32)
    expected = target.copy()
    expected[:2, :3, :4] = source[:2, :3, :4]
    run(strided_copy((2, 3, 4), (0, 0, 0), (55, 6, 8), (0, 5, 7)), source, target)
    np.testing.assert_array_equal(target, expected)


def test_padding_is_neither_read_nor_written() -> None:
    """The buffers end with the last data element."""
    shape, padding = (3, 4), (1, 2)
    source, target = numbers((6,)), np.full(6, 99, np.int32)
    run(strided_copy(shape, padding, (0, 0), (0, 0)), source, target)
    np.testing.assert_array_equal(target, [*source[:2], 99, 99, *source[4:]])


def test_windows_may_overlap_in_a_load() -> None:
    source, target = np.arange(6, dtype=np.int32), np.zeros((4, 3), np.int32)
    run(strided_copy((4, 3), (0, 0), (0, 1), (0, 0)), source, target)
    np.testing.assert_array_equal(target, np.lib.stride_tricks.sliding_window_view(source, 3))


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ((11, 12), r"tensor load of 3x4 i32 .* covers bytes 0 to 47 of argument %a of @f \(11 int32\), which has 44"),
        ((12, 11), r"tensor store of 3x4 i32 .* of argument %b of @f"),
    ],
)
def test_accesses_outside_are_errors(sizes: tuple[int, int], message: str) -> None:
    with pytest.raises(EvaluationError, match=message) as caught:
        run(strided_copy((3, 4), (0, 0), (0, 0), (0, 0)), *(np.zeros(n, np.int32) for n in sizes))
    assert caught.value.span is not None


def test_a_load_reads_the_memory_when_it_executes() -> None:
    """A later store through an alias does not change the token."""
    array, target = np.arange(4, dtype=np.int32), np.zeros(4, np.int32)
    run(
        f"  %t = {load('i32', '%a', (4,), (0,), (0,), (0,))}\n  store i32 77, ptr %a\n"
        "  call void @llvm.tensor.store(ptr %b, token %t, <1 x i32> zeroinitializer)",
        array,
        target,
    )
    np.testing.assert_array_equal(target, [0, 1, 2, 3])
    assert array[0] == 77


# Operations ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("narrow", "wide"), [("i8", "i32"), ("i32", "i32"), ("bfloat", "float"), ("double", "double")])
@pytest.mark.parametrize("layouts", list(itertools.product([(0, 1), (1, 0)], repeat=2)))
def test_matmul(narrow: str, wide: str, layouts: tuple[tuple[int, int], tuple[int, int]]) -> None:
    left, right = numbers((5, 7), narrow), numbers((7, 4), narrow) * DTYPES[narrow](2)
    stored = [np.ascontiguousarray(x.transpose(layout)) for x, layout in zip((left, right), layouts, strict=True)]
    result = np.zeros((5, 4), DTYPES[wide])
    run(
        f"  %x = {load(narrow, '%a', stored[0].shape, layouts[0], (0, 0), (0, 0))}\n"
        f"  %y = {load(narrow, '%b', stored[1].shape, layouts[1], (0, 0), (0, 0))}\n"
        f"  %r = call <20 x {wide}> @llvm.tensor.matmul(token %x, token %y)\n"
        f"  store <20 x {wide}> %r, ptr %c, align 2",
        *stored,
        result,
    )
    np.testing.assert_array_equal(result, left.astype(wide_dtype(wide)) @ right.astype(wide_dtype(wide)))


def wide_dtype(element: str) -> Any:
    return np.int64 if element[0] == "i" else np.float64


def test_integers_wrap() -> None:
    a = np.full((1, 4), 2**30, np.int32)
    result = np.zeros(1, np.int32)
    run(
        f"  %x = {load('i32', '%a', (1, 4), (0, 1), (0, 0), (0, 0))}\n"
        f"  %y = {load('i32', '%b', (4, 1), (0, 1), (0, 0), (0, 0))}\n"
        "  %r = call <1 x i32> @llvm.tensor.matmul(token %x, token %y)\n  store <1 x i32> %r, ptr %c, align 4",
        a,
        np.array([1, 2, 3, 3], np.int32),
        result,
    )
    assert result[0] == (9 * 2**30 + 2**31) % 2**32 - 2**31


@pytest.mark.parametrize("name", ["umma", "smma", "usmma", "summa", "mma"])
def test_products_with_an_accumulator(name: str) -> None:
    random = np.random.default_rng(1)
    left, right = (random.integers(0, 256, s).astype(np.uint8) for s in ((3, 5), (5, 2)))
    acc = numbers((3, 2))
    signs = {"umma": "uu", "usmma": "us", "summa": "su"}.get(name, "ss")
    kinds = {"u": np.uint8, "s": np.int8}
    product = left.view(kinds[signs[0]]).astype(np.int32) @ right.view(kinds[signs[1]]).astype(np.int32)
    expected = acc + product
    run(
        f"  %z = {load('i32', '%c', (3, 2), (0, 1), (0, 0), (0, 0))}\n"
        f"  %x = {load('i8', '%a', (3, 5), (0, 1), (0, 0), (0, 0))}\n"
        f"  %y = {load('i8', '%b', (5, 2), (0, 1), (0, 0), (0, 0))}\n"
        f"  %r = call <6 x i32> @llvm.tensor.{name}(token %z, token %x, token %y)\n"
        "  store <6 x i32> %r, ptr %c, align 4",
        left,
        right,
        acc,
    )
    np.testing.assert_array_equal(acc, expected)


def test_results_may_keep_padding() -> None:
    """`<12 x float>` for a 3x3 product whose left operand has a row of padding: the fourth row is zero."""
    left, right = numbers((4, 2), "float"), numbers((2, 3), "float")
    result = np.full((4, 3), 99, np.float32)
    run(
        f"  %x = {load('float', '%a', (4, 2), (0, 1), (1, 0), (0, 0))}\n"
        f"  %y = {load('float', '%b', (2, 3), (0, 1), (0, 0), (0, 0))}\n"
        "  %r = call <12 x float> @llvm.tensor.matmul(token %x, token %y)\n  store <12 x float> %r, ptr %c, align 4",
        left,
        right,
        result,
    )
    np.testing.assert_array_equal(result[:3], left[:3] @ right)
    np.testing.assert_array_equal(result[3], 0)


def test_broadcast() -> None:
    bias, rows = numbers((3,), "float"), np.zeros((2, 3), np.float32)
    twos = np.zeros(3, np.float32)
    run(
        f"  %t = {load('float', '%a', (3,), (0,), (0,), (0,))}\n"
        f"  %r = call <6 x float> @llvm.tensor.broadcast(token %t, {vector((2, 3))}, {vector((1,))})\n"
        "  store <6 x float> %r, ptr %b, align 4\n"
        "  %s = call <3 x float> @llvm.tensor.broadcast(token %t, float 2.0)\n"
        "  store <3 x float> %s, ptr %c, align 4",
        bias,
        rows,
        twos,
    )
    np.testing.assert_array_equal(rows, [bias, bias])
    np.testing.assert_array_equal(twos, 2)


def test_negative_scalars_keep_their_sign() -> None:
    out = np.zeros(2, np.int8)
    run(
        f"  %t = {load('i8', '%a', (2,), (0,), (0,), (0,))}\n"
        "  %r = call <2 x i8> @llvm.tensor.broadcast(token %t, i8 -3)\n  store <2 x i8> %r, ptr %b, align 1",
        np.zeros(2, np.int8),
        out,
    )
    np.testing.assert_array_equal(out, -3)


def test_packing_and_unpacking() -> None:
    """VNNI pairs: block K by two, then permute back."""
    b, packed, back = numbers((5, 4), "bfloat"), numbers((3, 4, 2), "bfloat"), numbers((6, 4), "bfloat")
    run(
        f"  %t = {load('bfloat', '%a', (5, 4), (0, 1), (0, 0), (0, 0))}\n"
        f"  %p = call <24 x bfloat> @llvm.tensor.reshape.block(token %t, {vector((0,))}, {vector((2,))})\n"
        "  store <24 x bfloat> %p, ptr %b, align 2\n"
        f"  %u = {load('bfloat', '%b', (3, 4, 2), (0, 1, 2), (0, 0, 0), (0, 0, 0))}\n"
        f"  %q = call <24 x bfloat> @llvm.tensor.reshape.permute(token %u, {vector((0, 2, 1))}, {vector((6, 4))})\n"
        "  store <24 x bfloat> %q, ptr %c, align 2",
        b,
        packed,
        back,
    )
    np.testing.assert_array_equal(packed[1, :, 1], b[3])
    np.testing.assert_array_equal(back[:5], b)
    np.testing.assert_array_equal(back[5], 0)


def test_vector_instructions_work_on_flattened_tensors() -> None:
    a, out = numbers((2, 3), "float"), np.zeros((2, 3), np.float32)
    run(
        "  %v = load <6 x float>, ptr %a, align 4\n  %w = fmul <6 x float> %v, %v\n"
        f"  %t = {typeinfo('<6 x float> %w', (2, 3), (0, 1), (0, 0)).replace('tensor.typeinfo', 'vector.totensor')}\n"
        "  %u = call <6 x float> @llvm.tensor.tovector(token %t)\n  store <6 x float> %u, ptr %b, align 4",
        a,
        out,
    )
    np.testing.assert_array_equal(out, a * a)


def test_broken_rules_are_errors_of_the_verifier() -> None:
    with pytest.raises(VerifyError, match="expected 12 elements"):
        run(
            f"  %v = load <9 x float>, ptr %a\n  %t = {typeinfo('<9 x float> %v', (3, 4), (0, 1), (0, 0))}", np.zeros(9)
        )


def test_a_loop_over_tiles() -> None:
    """The flattened vector is carried by a phi, with a fresh typeinfo in the body."""
    text = f"""\
define void @f(ptr %a, ptr %b, i64 %n) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %j, %loop ]
  %acc = phi <4 x float> [ zeroinitializer, %entry ], [ %next, %loop ]
  %p = getelementptr <4 x float>, ptr %a, i64 %i
  %x = {load("float", "%p", (2, 2), (0, 1), (0, 0), (0, 0))}
  %c = {typeinfo("<4 x float> %acc", (2, 2), (0, 1), (0, 0))}
  %next = call <4 x float> @llvm.tensor.smma(token %c, token %x, token %x)
  %j = add i64 %i, 1
  %more = icmp ult i64 %j, %n
  br i1 %more, label %loop, label %done
done:
  store <4 x float> %next, ptr %b, align 4
  ret void
}}
"""
    a, out = numbers((5, 2, 2), "float"), np.zeros((2, 2), np.float32)
    evaluate(parse(text), "f", a, out, 5)
    np.testing.assert_array_equal(out, sum(x @ x for x in a))
