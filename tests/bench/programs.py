"""Programs of any number of products, for timing tlx-lower."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.builder import new_function
from tlx.ir.module import Module
from tlx.ir.parser.module import parse
from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.types import FLOAT, PTR

_SIZE: Final = 32


def equal_functions(count: int) -> str:
    """`count` functions, each the same product: one kernel."""
    return _functions([_SIZE] * count)


def different_functions(count: int) -> str:
    """`count` functions, each a product of a size of its own: as many kernels."""
    return _functions(range(_SIZE, _SIZE + count))


def equal_chain(count: int) -> str:
    """One function with `count` products in a row, each multiplying the one before: one kernel."""
    module = parse("")
    b = _function(module, "chain")
    c, x, y = (argument.value for argument in b.function.arguments)
    type_ = TensorType.dense(FLOAT, (_SIZE, _SIZE))
    token = b.tensor_load(x, type_)
    for _ in range(count):
        token = b.typeinfo(b.matmul(token, b.tensor_load(y, type_), type_), type_)
    b.tensor_store(c, token)
    b.ret()
    return str(module)


def different_sequence(count: int) -> str:
    """One function with `count` products of sixteen sizes, each stored: sixteen kernels."""
    module = parse("")
    b = _function(module, "sequence")
    for index in range(count):
        _product(b, _SIZE + index % 16)
    b.ret()
    return str(module)


PROGRAMS: Final[dict[str, Callable[[int], str]]] = {
    "functions, equal": equal_functions,
    "functions, different": different_functions,
    "one function, a chain": equal_chain,
    "one function, 16 sizes": different_sequence,
}


def _functions(sizes: range | list[int]) -> str:
    module = parse("")
    for index, size in enumerate(sizes):
        b = _function(module, f"product{index}")
        _product(b, size)
        b.ret()
    return str(module)


def _function(module: Module, name: str) -> TensorBuilder:
    parameters = [(PTR, "noalias", parameter) for parameter in "cab"]
    return TensorBuilder(module, new_function(module, name, parameters, "nounwind", linkage="dso_local"))


def _product(b: TensorBuilder, size: int) -> None:
    c, x, y = (argument.value for argument in b.function.arguments)
    type_ = TensorType.dense(FLOAT, (size, size))
    product = b.matmul(b.tensor_load(x, type_), b.tensor_load(y, type_), type_)
    b.tensor_store(c, b.typeinfo(product, type_))
