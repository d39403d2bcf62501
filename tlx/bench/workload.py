"""What is measured: a function in LLVM IR on tensors in memory, its result in numpy, and how much work it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from tlx.bench.elements import Array, Element
from tlx.bench.truth import Truth
from tlx.diagnostics import TlxError


class WrongResultError(TlxError):
    """What was computed is not what numpy computes."""


@dataclass(frozen=True)
class Buffer:
    """Memory that a workload's function takes a pointer to.

    Attributes:
        name: Of the parameter.
        element: Element type.
        shape: In memory order.
        output: Whether it is what the function computes; then it starts as zeros, else it is random.
    """

    name: str
    element: Element
    shape: tuple[int, ...]
    output: bool = False

    @property
    def bytes(self) -> int:
        """Bytes of the whole."""
        return prod(self.shape) * self.element.bytes

    def filled(self, seed: int) -> Array:
        """An array for it that begins at a multiple of 64 bytes."""
        memory = np.zeros(self.bytes + 128, np.uint8)
        start = -memory.ctypes.data % 64
        array = memory[start : start + self.bytes].view(self.element.dtype).reshape(self.shape)
        if not self.output:
            array[...] = self.element.random(self.shape, seed)
        return array


@dataclass(frozen=True)
class Stream:
    """Memory that goes through a processor: what bounds work on every element.

    Attributes:
        reads: Arrays of `bytes` that are read.
        writes: Arrays of `bytes` that are written.
    """

    bytes: int
    reads: int
    writes: int


@dataclass(frozen=True)
class Workload:
    """One cell of the table.

    Attributes:
        row: The work's name, `gemm`.
        types: Element types, `bf16->f32`.
        size: `1024`, or `16x1024x1024`.
        buffers: The function's pointers, in order.
        text: Gives the module; its function is `@work`.
        expected: Computes the output from the buffers' arrays; None where nobody knows it.
        operations: Additions and multiplications; bytes where memory bounds it.
        traffic: Bytes that go to or come from memory at least.
        peak: What bounds it: the multiplication of these element types, (lhs, rhs, accumulator), or memory.
        problem: What peers need to know.
        variant: How it differs from others of that size, `vnni B`; empty for the plain one.
        function: The function's name.
        order: What the function takes: names of buffers, and numbers with their LLVM types; the buffers if empty.
    """

    row: str
    types: str
    size: str
    buffers: tuple[Buffer, ...]
    text: Callable[[], str]
    expected: Callable[[dict[str, Array]], Truth] | None
    operations: int
    traffic: int
    peak: tuple[Element, Element, Element] | Stream
    problem: Any
    variant: str = ""
    function: str = "work"
    order: tuple[str | tuple[str, float], ...] = ()

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What it is found by in the table."""
        return self.row, self.types, self.size, self.variant

    @property
    def name(self) -> str:
        """`gemm bf16->f32 1024 vnni B`."""
        return " ".join(part for part in self.key if part)

    @cached_property
    def output(self) -> Buffer:
        """The buffer that is computed."""
        return next(buffer for buffer in self.buffers if buffer.output)

    @property
    def unit(self) -> str:
        """What rates are in."""
        if isinstance(self.peak, Stream):
            return "GB/s"
        return "GFLOP/s" if self.peak[2].is_float else "GOP/s"

    def arguments(self, arrays: dict[str, Array]) -> tuple[tuple[str, int | float], ...]:
        """What the function takes, as (LLVM type, value)."""
        order = self.order or tuple(buffer.name for buffer in self.buffers)
        return tuple(("ptr", arrays[one].ctypes.data) if isinstance(one, str) else one for one in order)

    def arrays(self) -> dict[str, Array]:
        """Random operands and room for the output, by the buffers' names."""
        return {buffer.name: buffer.filled(seed) for seed, buffer in enumerate(self.buffers)}

    def check(self, got: Array, truth: Truth, who: str) -> None:
        """Compare an output.

        Raises:
            WrongResultError: It is wrong.
        """
        mistakes = truth.mistakes(self.output.element, got)
        if mistakes:
            raise WrongResultError(f"{self.name} by {who}: {mistakes}")
