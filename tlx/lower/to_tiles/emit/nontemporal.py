"""Non-temporal stores of a product's result, and the fences behind them."""

from __future__ import annotations

from collections.abc import Collection

from tlx.ir.builder.instructions import Builder
from tlx.ir.builder.tensors import TensorBuilder
from tlx.ir.functions import Function
from tlx.ir.instructions import Block
from tlx.ir.module import Module, nontemporal_metadata
from tlx.ir.types import I64, bytes_of
from tlx.ir.values import Local, Value, const_int
from tlx.lower.to_tiles.problem.problems import Gemm
from tlx.lower.to_tiles.select.recipe import Recipe


class ResultStores:
    """Emits the stores of C: non-temporal ones where the recipe has them and C is aligned when the program runs."""

    def __init__(self, b: TensorBuilder, c: Value, gemm: Gemm, recipe: Recipe) -> None:
        self.b = b
        self._aligned: Value | None = None
        if recipe.stores.nontemporal:
            size = recipe.tile.lanes * bytes_of(gemm.c.element)
            behind = b.binary("and", b.cast("ptrtoint", c, I64), const_int(I64, size - 1))
            self._aligned = b.icmp("eq", behind, const_int(I64, 0))

    def store(self, address: Value, token: Local, pitch: int) -> None:
        """Store a tile of C."""
        b = self.b
        if self._aligned is None:
            b.tensor_store(address, token, (0, pitch))
            return
        past = b.new_block("past", b.block)
        usual = b.new_block("usual", past)
        stored = b.new_block("stored", usual)
        b.branch_if(self._aligned, past, usual)
        for block, mark in ((past, nontemporal_metadata(b.module)), (usual, "")):
            b.at_end(block)
            b.tensor_store(address, token, (0, pitch), metadata=mark)
            b.branch(stored)
        b.at_end(stored)


def insert_fences(module: Module, nests: Collection[Function], kernels: Collection[str]) -> None:
    """Put a fence behind the loops around kernels with non-temporal stores.

    Args:
        module: Where they are.
        nests: Functions that are loop nests around kernels.
        kernels: Names of the kernels; where they are called outside of nests, a fence follows each call.
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
