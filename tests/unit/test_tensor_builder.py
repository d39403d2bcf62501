"""TensorBuilder: results follow from the operands, what is built means what was asked for."""

from __future__ import annotations

import numpy as np
import pytest

from tlx.evaluate import Machine
from tlx.ir.builder import new_function
from tlx.ir.module import Module
from tlx.ir.reader import parse
from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.types import FLOAT, I8, I32, PTR
from tlx.ir.values import Local
from tlx.types import TensorType


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
