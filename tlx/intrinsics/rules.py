"""What typing rules are made of: checks that say what is wrong, and results that may keep padding."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from tlx.intrinsics.core import RuleError
from tlx.ir.types import FloatType, IntType, Type
from tlx.types import TensorType, tensor_type, vector_text

if TYPE_CHECKING:
    from typing import Any

    import numpy as np

    from tlx.intrinsics.core import Dims
    from tlx.numpy_types import Array

_MOST_SUBSETS: Final = 6


def extents_text(extents: Iterable[int]) -> str:
    """`3x4`, as messages show extents."""
    return "x".join(map(str, extents))


def logical_paddings(tensor: TensorType) -> list[int]:
    """Padding of each logical dimension."""
    return [tensor.padding[tensor.position(d)] for d in range(tensor.rank)]


def row_major_results(element: Type, extents: Sequence[int], paddings: Sequence[int]) -> list[TensorType]:
    """Row-major results: without padding, with all of `paddings`, then with that of some dimensions only."""
    padded = [d for d, padding in enumerate(paddings) if padding]
    if not padded:
        return [TensorType.dense(element, extents)]
    sizes = [0, len(padded)]
    if len(padded) <= _MOST_SUBSETS:
        sizes.extend(range(1, len(padded)))
    layout = tuple(range(len(extents)))
    results: list[TensorType] = []
    for kept in itertools.chain.from_iterable(itertools.combinations(padded, size) for size in sizes):
        padding = tuple(p if d in kept else 0 for d, p in enumerate(paddings))
        shape = tuple(e + p for e, p in zip(extents, padding, strict=True))
        results.append(tensor_type(element, shape, layout, padding))
    return results


def _same_kind(a: Type, b: Type) -> bool:
    return isinstance(a, IntType) == isinstance(b, IntType)


def _bits(type_: Type) -> int:
    return type_.bits if isinstance(type_, (IntType, FloatType)) else 0


def check_extends(name: str, operand: Type, to: Type, what: str) -> None:
    """An operand's elements must be the result's or extend to them: i8 to i32, bfloat to float."""
    if not _same_kind(operand, to):
        message = f"{name} has elements of type {operand} and {what} of type {to}: both must be integers or both floats"
        raise RuleError(message, name)
    if operand != to and _bits(operand) >= _bits(to):
        message = f"{name} has elements of type {operand}, which do not extend to {what}'s type {to}"
        raise RuleError(message, name)


def check_same_element(tensor: TensorType, element: Type) -> None:
    """The operand's elements must be of the result's type."""
    if tensor.element != element:
        message = f"the operand has elements of type {tensor.element} and the result of type {element}: they must agree"
        raise RuleError(message)


def check_permutation(name: str, numbers: Sequence[int], rank: int) -> None:
    """An operand must name each dimension once."""
    if sorted(numbers) != list(range(rank)):
        message = f"{name} {vector_text(numbers)} is no permutation of 0 to {rank - 1}"
        raise RuleError(message, name)


def own_type(tensors: Sequence[TensorType], _dims: Dims, element: Type) -> list[TensorType]:
    """The rule of what changes no type: the result is like the (only) operand."""
    check_same_element(tensors[0], element)
    return [tensors[0]]


def same_array(arrays: Sequence[Array], _dims: Dims, _scalars: Sequence[Array], _dtype: np.dtype[Any]) -> Array:
    """The meaning of what moves no element of the logical array."""
    return arrays[0]
