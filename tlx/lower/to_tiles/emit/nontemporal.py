"""Non-temporal stores: how far to the alignment they need, and the fences after them."""

from __future__ import annotations

from collections.abc import Collection

from tlx.ir.builder.instructions import Builder
from tlx.ir.builder.tensors import TensorBuilder
from tlx.ir.functions import Function
from tlx.ir.instructions import Block
from tlx.ir.module import Module
from tlx.ir.types import I64
from tlx.ir.values import Value, const_int


def elements_to_boundary(b: TensorBuilder, address: Value, element: int, boundary: int) -> Value:
    """Elements of `element` bytes from an address to the next one that is aligned to `boundary` elements."""
    negated = b.sub(const_int(I64, 0), b.cast("ptrtoint", address, I64))
    gap = b.binary("and", negated, const_int(I64, boundary * element - 1))
    return b.binary("lshr", gap, const_int(I64, element.bit_length() - 1))


def insert_fences(module: Module, nests: Collection[Function], kernels: Collection[str]) -> None:
    """Put a fence after the loops around kernels with non-temporal stores.

    Args:
        module: The module.
        nests: Functions that are loop nests around kernels.
        kernels: Names of the kernels; outside nests, a fence follows each call.
    """
    for function in module.functions if kernels else ():
        for block in function.blocks:
            calls = [index for index, i in enumerate(block.instructions) if i.callee in kernels]
            if calls and function in nests:
                _fence(module, function, function.blocks[-1], 0)
                break
            for index in reversed(calls):
                _fence(module, function, block, index + 1)


def _fence(module: Module, function: Function, block: Block, index: int) -> None:
    b = Builder(module, function, block)
    b.index = index
    b.fence()
