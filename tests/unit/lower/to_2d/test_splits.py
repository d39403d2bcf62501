"""Splits: an operation on parts of its operands gives the part of its result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tlx.intrinsics import lookup
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.instructions import Instruction
from tlx.ir.tensors.model import Tensor, TensorOp
from tlx.ir.types import I64, TOKEN
from tlx.ir.values import ConstInt
from tlx.lower.to_2d.loop_fusion.splits import Split, operand_splits, part_dims, result_splits

Array = np.ndarray[Any, np.dtype[Any]]
Shapes = Sequence[tuple[int, ...]]

CASES: list[tuple[str, Shapes, Shapes]] = [
    ("matmul", [(2, 3, 4, 5), (2, 3, 5, 6)], []),
    ("smma", [(4, 6), (4, 5), (5, 6)], []),
    ("contract", [(2, 4, 3), (5, 3, 2)], [(2,), (1,), (0,), (2,)]),
    ("contract", [(4, 3), (3, 6)], [(1,), (0,)]),
    ("relu", [(4, 6)], []),
    ("broadcast", [(6,)], [(4, 6, 2), (1,)]),
    ("broadcast", [(4, 1)], [(4, 6), (0, 1)]),
    ("reduce.add", [(4, 6, 3)], [(1, 6, 1), (1, 1, 1)]),
    ("concat", [(4, 2), (4, 3)], [(1,)]),
    ("transpose", [(4, 6, 2)], [(1, 0, 2)]),
    ("reshape.permute", [(4, 6, 2)], [(1, 0, 2), (6, 8)]),
    ("tovector", [(4, 6)], []),
]


def operation(name: str, shapes: Shapes, dims: Shapes) -> TensorOp:
    row = lookup(f"llvm.tensor.{name}")
    assert row is not None
    types = [TensorType.dense(I64, shape) for shape in shapes]
    result = types[0] if name == "tovector" else row.infer(types, list(dims), I64)[0]
    call = Instruction("call", TOKEN, [], "", "r")
    tensors = tuple(Tensor(type_, call, "value", ConstInt(I64, 0)) for type_ in types)
    return TensorOp(call, row, tensors, tuple(dims), (), result)


def meaning(op: TensorOp, vectors: Sequence[Array], dims: Shapes, types: Sequence[TensorType]) -> Array:
    """The flattened result, in memory order."""
    logical = [v.reshape(t.shape).transpose(np.argsort(t.layout)) for v, t in zip(vectors, types, strict=True)]
    computed = op.intrinsic.meaning(logical, list(dims), [], np.dtype("i8"))
    assert op.result is not None
    return computed.transpose(op.result.layout).ravel()


def part(vector: Array, split: Split | None, index: int) -> Array:
    return vector if split is None else vector.reshape(split.outer, split.parts, split.inner)[:, index].ravel()


@pytest.mark.parametrize(("name", "shapes", "dims"), CASES)
def test_parts_of_operands_give_the_part_of_the_result(name: str, shapes: Shapes, dims: Shapes) -> None:
    op = operation(name, shapes, dims)
    types = [tensor.type for tensor in op.tensors]
    vectors = [np.arange(t.count) % 7 - 3 for t in types]
    whole = np.asarray(meaning(op, vectors, dims, types))
    assert op.result is not None
    checked = 0
    for dimension in range(op.result.rank):
        for parts in (2, 3, 4, 6):
            split = Split.along(op.result, dimension, parts)
            splits = operand_splits(op, split) if split is not None else None
            if split is None or splits is None:
                continue
            sliced = [t if s is None else s.part_of(t) for t, s in zip(types, splits, strict=True)]
            for index in range(parts):
                operands = [part(v, s, index) for v, s in zip(vectors, splits, strict=True)]
                computed = meaning(op, operands, part_dims(op, split), sliced)
                np.testing.assert_array_equal(computed, part(whole, split, index))
            for number, operand in enumerate(splits):
                assert operand is None or split in result_splits(op, number, operand)
            checked += 1
    assert checked


def test_dimensions_that_cannot_be_split() -> None:
    reduced = operation("reduce.add", [(4, 6)], [(2, 1), (2, 1)])
    assert reduced.result is not None
    split = Split.along(reduced.result, 0, 2)
    assert split is not None
    assert operand_splits(reduced, split) is None
    padded = TensorType(I64, (4, 8), (0, 1), (2, 0))
    assert Split.along(padded, 0, 4) is None
    assert Split.along(padded, 1, 3) is None
    assert Split(2, 3, 4).position_in(TensorType.dense(I64, (4, 6))) is None


def test_padding_is_in_no_part() -> None:
    """The first 12 of 36 heads: no part of the vector is split in the same way without the padding."""
    first = TensorType(I64, (512, 36, 64), (1, 0, 2), (0, 24, 0))
    split = Split.along(first, 0, 12)
    assert split is not None
    assert split == Split(512, 12, 64, gap=24 * 64)
    assert (split.count, split.part_count, split.pitch) == (first.count, 512 * 64, 36 * 64)
    assert split.position_in(first) == 1
    assert split.part_of(first) == TensorType(I64, (512, 1, 64), (1, 0, 2), (0, 0, 0))
    assert split.coarsened(3) == Split(512, 4, 192, gap=24 * 64)
    whole = TensorType.dense(I64, (512, 36, 64))
    assert split.position_in(whole) is None
    assert Split(512, 12, 192).position_in(first) is None
    assert operand_splits(operation("relu", [whole.shape], []), split) is None


def test_vectors_seen_with_other_dimensions() -> None:
    heads = Split.along(TensorType.dense(I64, (512, 12, 64)), 1, 12)
    assert heads is not None
    assert heads == Split(512, 12, 64)
    joined = TensorType.dense(I64, (512, 768))
    assert heads.position_in(joined) == 1
    assert heads.part_of(joined).shape == (512, 64)
    assert heads.coarsened(4) == Split(512, 3, 256)
