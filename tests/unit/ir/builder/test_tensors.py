"""TensorBuilder: results follow from the operands, and the built operations compute them."""

from __future__ import annotations

import numpy as np
import pytest

from tlx.evaluate import Machine
from tlx.intrinsics.numpy_types import Array
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.builder import new_function
from tlx.ir.module import Module
from tlx.ir.parser.module import parse
from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.tensors.calls import canonicalise
from tlx.ir.tensors.inference import verify_tensors
from tlx.ir.types import FLOAT, I8, I32, PTR, VectorType
from tlx.ir.values import Local, const_float, const_int, const_ints


def _builder() -> tuple[Module, TensorBuilder, list[Local]]:
    module = parse("", "<built>")
    function = new_function(module, "f", [(PTR, "noalias", name) for name in "abc"], "nounwind", linkage="")
    return module, TensorBuilder(module, function), [a.value for a in function.arguments]


def test_matmul_follows_from_its_operands() -> None:
    module, b, (pa, pb, pc) = _builder()
    x = b.tensor_load(pa, TensorType.dense(FLOAT, (3, 4)))
    y = b.tensor_load(pb, TensorType.dense(FLOAT, (4, 5)))
    product = b.matmul(x, y, name="product")
    assert (str(product), str(product.type)) == ("%product", "<15 x float>")
    b.tensor_store(pc, b.typeinfo(product))
    b.ret()
    rng = np.random.default_rng(1)
    left, right = rng.integers(-9, 9, (3, 4)), rng.integers(-9, 9, (4, 5))
    out = np.zeros((3, 5), np.float32)
    Machine(module).call("f", left.astype(np.float32), right.astype(np.float32), out)
    np.testing.assert_array_equal(out, left @ right)


def test_extents_known_at_run_time() -> None:
    module = parse("", "<built>")
    parameters = [(PTR, "noalias", name) for name in "abc"] + [(I32, "", name) for name in "mnk"]
    b = TensorBuilder(module, new_function(module, "f", parameters, "nounwind", linkage=""))
    pa, pb, pc, m, n, k = (a.value for a in b.function.arguments)
    zero = const_int(I32, 0)
    handle = VectorType(1, FLOAT, scalable=True)
    x = b.dynamic_load(pa, FLOAT, [m, k], (0, 1), [zero, zero])
    y = b.dynamic_load(pb, FLOAT, [n, k], (1, 0), [zero, zero])
    product = b.matmul(x, y, handle)
    b.dynamic_store(pc, FLOAT, b.dynamic_typeinfo(product, [m, n], (0, 1)), [zero, const_int(I32, 7)])
    b.ret()
    assert b.gathered([zero, zero]) == const_ints(I32, [0, 0])
    rng = np.random.default_rng(1)
    left, right = rng.integers(-9, 9, (3, 4)).astype(np.float32), rng.integers(-9, 9, (5, 4)).astype(np.float32)
    out = np.zeros((3, 7), np.float32)
    Machine(module).call("f", left, right, out, 3, 5, 4)
    np.testing.assert_array_equal(out[:, :5], left @ right.T)
    np.testing.assert_array_equal(out[:, 5:], 0)


def test_result_may_be_wider_than_the_operands() -> None:
    _, b, (pa, pb, _pc) = _builder()
    x = b.tensor_load(pa, TensorType.dense(I8, (2, 4)))
    y = b.tensor_load(pb, TensorType.dense(I8, (4, 2)))
    assert str(b.matmul(x, y, I32).type) == "<4 x i32>"


def test_transpose_knows_its_layout() -> None:
    _, b, (pa, _pb, _pc) = _builder()
    x = b.tensor_load(pa, TensorType(FLOAT, (16, 5, 3), (0, 1, 2), (3, 2, 1)))
    token = b.typeinfo(b.transpose(x, (2, 0, 1)))
    assert b.tensor_types[str(token)] == TensorType(FLOAT, (3, 16, 5), (2, 0, 1), (1, 3, 2))


def test_rules_of_the_table_hold() -> None:
    _, b, (pa, pb, _pc) = _builder()
    x = b.tensor_load(pa, TensorType.dense(FLOAT, (3, 4)))
    y = b.tensor_load(pb, TensorType.dense(FLOAT, (5, 6)))
    with pytest.raises(ValueError, match="4"):
        b.matmul(x, y)


def test_unknown_tokens_are_refused() -> None:
    _, b, _ = _builder()
    with pytest.raises(ValueError, match="%elsewhere is not known to this builder"):
        b.typeinfo(Local(PTR, "elsewhere"))


def _run(module: Module, b: TensorBuilder, result: Local, out: Local, *arrays: Array) -> Array:
    """Store a result, check what was built by the table's rules and for canonical names, and run it."""
    token = b.typeinfo(result)
    b.tensor_store(out, token)
    b.ret()
    text = str(module)
    again = parse(text)
    verify_tensors(again)
    canonicalise(again)
    assert str(again) == text
    target = np.zeros(b.tensor_types[str(token)].extents, np.float32)
    padding = [np.zeros(1, np.float32)] * (2 - len(arrays))
    Machine(again).call("f", *arrays, *padding, target)
    return target


def _loaded(b: TensorBuilder, pointer: Local, array: Array) -> Local:
    return b.tensor_load(pointer, TensorType.dense(FLOAT, array.shape))


def _numbers(*shape: int) -> Array:
    return np.random.default_rng(2).integers(1, 5, shape).astype(np.float32)


@pytest.mark.parametrize("batch", [None, ((0,), (2,))])
def test_contract(batch: tuple[tuple[int], tuple[int]] | None) -> None:
    module, b, (pa, pb, pc) = _builder()
    x, y = _numbers(2, 3, 4), _numbers(4, 5, 2)
    axes = ((2,), (0,)) if batch else ((2, 0), (0, 2))
    product = b.contract(_loaded(b, pa, x), _loaded(b, pb, y), *axes, batch)
    expected = np.einsum("bik,kjb->bij" if batch else "bik,kjb->ij", x, y)
    np.testing.assert_array_equal(_run(module, b, product, pc, x, y), expected)


@pytest.mark.parametrize("batch", [None, ((0,), (2,))])
def test_contract_over_no_dimension(batch: tuple[tuple[int], tuple[int]] | None) -> None:
    module, b, (pa, pb, pc) = _builder()
    x, y = _numbers(2, 3, 4), _numbers(4, 5, 2)
    product = b.contract(_loaded(b, pa, x), _loaded(b, pb, y), batch=batch)
    expected = np.einsum("bik,ljb->biklj" if batch else "bik,ljc->bikljc", x, y)
    np.testing.assert_array_equal(_run(module, b, product, pc, x, y), expected)


def test_convolution() -> None:
    module, b, (pa, pb, pc) = _builder()
    x, w = _numbers(1, 2, 5, 6), _numbers(3, 2, 2, 2)
    expected = np.einsum("nchwij,ocij->nohw", np.lib.stride_tricks.sliding_window_view(x, (2, 2), (2, 3)), w)
    tokens = _loaded(b, pa, x), _loaded(b, pb, w)
    assert str(b.convolution(*tokens).type) == "<60 x float>"
    strided = b.convolution(*tokens, ((2, 1), (0, 0), (0, 0)))
    np.testing.assert_array_equal(_run(module, b, strided, pc, x, w), expected[:, :, ::2])


def test_unary_and_reduce() -> None:
    module, b, (pa, _, pc) = _builder()
    x = _numbers(4, 6) - 2
    positive = b.typeinfo(b.unary("relu", _loaded(b, pa, x)))
    rows = b.typeinfo(b.reduce("add", positive, (1, 6)))
    pooled = b.reduce("max", rows, (2, 1), (2, 1))
    expected = np.maximum(x, 0).sum(1).reshape(2, 2).max(1)
    np.testing.assert_array_equal(_run(module, b, pooled, pc, x), expected[:, None])


@pytest.mark.parametrize("interior", [None, (0, 1)])
def test_pad(interior: tuple[int, int] | None) -> None:
    module, b, (pa, _, pc) = _builder()
    x = _numbers(2, 3)
    padded = b.pad(_loaded(b, pa, x), (1, 0), (-1, 2), const_float(FLOAT, 7), interior)
    spread = np.insert(x, [1, 2], 7, 1) if interior else x
    expected = np.pad(spread, ((1, 0), (0, 2)), constant_values=7)[:2]
    np.testing.assert_array_equal(_run(module, b, padded, pc, x), expected)


def test_concat_and_fill() -> None:
    module, b, (pa, pb, pc) = _builder()
    x, y = _numbers(2, 3), _numbers(2, 1)
    tokens = _loaded(b, pa, x), _loaded(b, pb, y)
    nines = b.typeinfo(b.fill(tokens[1], const_float(FLOAT, 9)))
    joined = b.concat([*tokens, nines], 1)
    np.testing.assert_array_equal(_run(module, b, joined, pc, x, y), np.hstack([x, y, y * 0 + 9]))
