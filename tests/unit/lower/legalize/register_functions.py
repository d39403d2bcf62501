"""Functions that load a tile into registers, rearrange it and store the result, run by the evaluator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlx.evaluate import Machine
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.builder import Builder, new_function
from tlx.ir.module import Module
from tlx.ir.parser.module import parse, parse_fully
from tlx.ir.types import I8, Type
from tlx.lower.legalize.memory import load_tile, store_tile
from tlx.lower.legalize.registers import Registers, register_element, register_widths
from tlx.target.lookup import find_target
from tlx.target.target import Target

GENERIC: Target = find_target("generic")
Change = Callable[[Builder, Registers], Registers]


def function(change: Change, element: Type, shape: tuple[int, int], lanes: int) -> tuple[Module, Registers]:
    """A module with `@f(out, in)` that applies `change` to a dense tile in registers of `lanes`; and the result."""
    module = parse("")
    pointer = module.pointer_to(I8)
    made = new_function(module, "f", [(pointer, "", "out"), (pointer, "", "in")], "nounwind", "")
    b = Builder(module, made)
    out, source = (argument.value for argument in made.arguments)
    tile = load_tile(b, GENERIC, source, TensorType.dense(element, shape), None, lanes)
    result = change(b, tile)
    store_tile(b, GENERIC, out, result, TensorType.dense(result.element, (result.rows, result.cols)), None)
    b.ret()
    return module, result


def rearranged(change: Change, element: Type, tile: NDArray[Any], lanes: int) -> NDArray[Any]:
    """What `change` makes of a tile, by the evaluator."""
    rows, cols = tile.shape
    module, result = function(change, element, (rows, cols), lanes)
    check_widths(result)
    out = np.zeros((result.rows, result.cols), tile.dtype)
    Machine(parse_fully(str(module))).call("f", out, np.ascontiguousarray(tile))
    return out


def check_widths(tile: Registers) -> None:
    """Every register is as wide as its place in the row says and of the element's storage type."""
    expected = [f"<{width} x {register_element(tile.element)}>" for width in register_widths(tile.cols, tile.lanes)]
    assert len(tile.regs) == tile.rows
    assert all([str(r.type) for r in row] == expected for row in tile.regs)
