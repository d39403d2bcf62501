"""Runs the kernel that packs B when the program is compiled: what is small in the evaluator, else on this machine.

Nothing else knows how panels look. On this machine the kernel is made of the generic target's instructions, whatever
the machine that the program is for; it moves elements, widens them and adds up integers, so the bytes are the same.
"""

from __future__ import annotations

import ctypes
from dataclasses import replace
from typing import Final

import numpy as np

from tlx.ir.reader import parse
from tlx.ir.types import bytes_of
from tlx.lower.to_tiles.problem import Gemm
from tlx.lower.to_tiles.recipe import Recipe
from tlx.lower.to_tiles.shared import packing_kernel
from tlx.target import Target

EVALUATED: Final = 1 << 18
"""Bytes of panels up to which evaluating their kernel (a second for 1 MB) takes less time than compiling it."""
_ALIGN: Final = 64
_BEHIND: Final = 4096  # bytes that a vector which begins in B may reach behind it


def start_of(gemm: Gemm) -> int:
    """Bytes of B's elements in front of those of the first product of a sum."""
    return -bytes_of(gemm.b.element) * min(term[1] for term in gemm.sums)


def extent_of(gemm: Gemm) -> int:
    """Bytes from the first of B's elements to behind the last; rows that lie interleaved end in one group."""
    view, places = gemm.b, [term[1] for term in gemm.sums]
    one = (view.rows - view.group) * view.row_stride + (view.cols - 1) * view.col_stride + view.group
    return bytes_of(view.element) * (max(places) - min(places) + one)


def elements_of(contents: bytes, offset: int, gemm: Gemm) -> bytes | None:
    """The part of a constant that is B, which begins at an offset; None where B is not all in the constant."""
    first = offset - start_of(gemm)
    last = first + extent_of(gemm)
    return contents[first:last] if first >= 0 and last <= len(contents) else None


def packed(source: bytes, gemm: Gemm, recipe: Recipe, target: Target, size: int) -> bytes:
    """What the kernel that packs B makes of all its elements: `size` bytes of panels.

    Args:
        source: The elements.
        gemm: The product.
        recipe: How it is computed.
        target: The machine that the program is for.
        size: Bytes of the panels.
    """
    run = _evaluated if size <= EVALUATED else _executed
    return run(source, gemm, recipe, target, size)


def _evaluated(source: bytes, gemm: Gemm, recipe: Recipe, target: Target, size: int) -> bytes:
    from tlx.evaluate import Machine

    module = parse("")
    kernel = packing_kernel(module, gemm, recipe, target)
    machine = Machine(module)
    weights = machine.memory.add(memoryview(source), "weights", _ALIGN, writable=False)
    panels = machine.memory.allocate(size, "panels", _ALIGN)
    panels.data[:] = bytes(size)
    machine.call(kernel.name, panels.base, weights.base + start_of(gemm))
    return bytes(panels.data)


def _executed(source: bytes, gemm: Gemm, recipe: Recipe, target: Target, size: int) -> bytes:
    from tlx.codegen import emit
    from tlx.llvm.loader import Library
    from tlx.pipeline import lower
    from tlx.target import find

    generic, module = find("generic"), parse("")
    name = packing_kernel(module, gemm, recipe, replace(generic, matrix=target.matrix)).name
    text = str(lower(parse(str(module).replace("define internal void", "define void", 1)), generic))
    library = Library(emit(text, "obj", 1, jit=True), [name])
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(library.address(name))
    weights, panels = (np.zeros(count + _ALIGN + _BEHIND, np.uint8) for count in (len(source), size))
    weights[: len(source)] = np.frombuffer(source, np.uint8)
    gap = -panels.ctypes.data % _ALIGN
    run(panels.ctypes.data + gap, weights.ctypes.data + start_of(gemm))
    return panels[gap : gap + size].tobytes()
