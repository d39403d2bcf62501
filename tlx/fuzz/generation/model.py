"""A function of a random program: how it is called, and what it means in numpy.

    define fastcc void @f0(ptr byval([64 x float]) align 4 %b0, ptr nest %b1)

Calling conventions and attributes of parameters:

They are drawn once a function is written, and mean the same to its callers in the program, to the evaluator and to
Python, which runs it.

Steps know nothing of TLX's own evaluator: they read and write plain numpy arrays by the rules of shape, layout,
padding and pitch, and compute by the meaning that the table of intrinsics gives.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tlx.fuzz.generation.arrays import CONTENT_LEVELS, LARGEST_EXACT, ArrayParameter
from tlx.fuzz.generation.choices import Choices
from tlx.intrinsics import Intrinsic
from tlx.intrinsics.numpy_types import Array, dtype_of
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.types import FloatType, Type

VECTOR_CONVENTIONS: Final = (
    "",
    "fastcc",
    "swiftcc",
    "preserve_mostcc",
    "x86_64_sysvcc",
    "win64cc",
    "x86_regcallcc",
    "cc 8",
)
"""Conventions that LLVM passes and returns vectors right in."""
_POINTER_CONVENTIONS: Final = (
    *VECTOR_CONVENTIONS[1:],
    "coldcc",
    "preserve_allcc",
    "x86_vectorcallcc",
    "cxx_fast_tlscc",
)
_CALLEE_POPS: Final = ("tailcc", "swifttailcc")  # LLVM passes nothing by value right in them
_REGISTERS: Final = ("nest", "inreg", "swiftself")
_MOST_COPIED_BYTES: Final = 1 << 16


@dataclass(frozen=True)
class Calling:
    """How a function is called.

    Attributes:
        convention: Its calling convention; empty for C's.
        passing: An attribute of each parameter, or nothing.
    """

    convention: str = ""
    passing: tuple[str, ...] = ()

    def parameters(self, plain: Sequence[str]) -> str:
        """Parameters or arguments, `TYPE VALUE` each, with their attributes."""
        parts = (one.rsplit(" ", 1) for one in plain)
        passing = self.passing or ("",) * len(plain)
        return ", ".join(
            f"{type_} {word} {value}".replace("  ", " ") for (type_, value), word in zip(parts, passing, strict=True)
        )

    @property
    def prefix(self) -> str:
        """What stands in front of the result type."""
        return f"{self.convention} " if self.convention else ""


def _may_copy(choose: Choices, buffer: ArrayParameter) -> bool:
    """Now and then also an array that is written, which nobody sees then."""
    return choose.chance(0.2) if buffer.written.any() else True


def draw_calling(choose: Choices, buffers: Sequence[ArrayParameter], *, typed: bool) -> Calling:
    """A way to call a function; of buffers that are passed by value, the function gets copies."""
    if not choose.chance(0.3):
        return Calling()
    convention = choose.choice(["", *_POINTER_CONVENTIONS, *_CALLEE_POPS])
    registers = list(_REGISTERS)
    passing: list[str] = []
    for buffer in buffers:
        size = buffer.count * dtype_of(buffer.element).itemsize
        kind = choose.choice(["", "", "register", "value"])
        if kind == "register" and registers:
            passing.append(registers.pop(choose.below(len(registers))))
        elif (
            kind == "value"
            and size <= _MOST_COPIED_BYTES
            and not typed
            and convention not in _CALLEE_POPS
            and _may_copy(choose, buffer)
        ):
            passing.append(f"byval([{buffer.count} x {buffer.element}]) align {dtype_of(buffer.element).itemsize}")
            buffer.is_copied = True
            buffer.written[:] = False
        else:
            passing.append("")
    return Calling(convention, tuple(passing))


class InexactError(Exception):
    """Sums of floating-point data could be rounded: their order would matter."""


@dataclass(eq=False)
class State:
    """What a run of a function knows: arrays by buffer, vectors and tensors by name, the innermost loop's index."""

    arrays: dict[str, Array]
    vectors: dict[str, Array] = field(default_factory=dict[str, Array])
    tensors: dict[str, Array] = field(default_factory=dict[str, Array])
    index: int = 0


ModelStep = Callable[[State], None]


@dataclass(frozen=True)
class BufferAddress:
    """An address: `start + step * index` elements into a buffer; `pointer` is what points there, if anything does."""

    buffer: ArrayParameter
    start: int = 0
    step: int = 0
    pointer: str = ""

    def of(self, state: State) -> Array:
        """The buffer's elements from there on."""
        return state.arrays[self.buffer.name][self.start + self.step * state.index :]


def memory_strides(type_: TensorType, pitches: Sequence[int]) -> list[int]:
    """Elements between neighbours along each memory dimension."""
    positions = [pitch or size for pitch, size in zip(pitches, type_.shape, strict=True)]
    return [math.prod(positions[k + 1 :]) for k in range(type_.rank)]


def extent_in_memory(type_: TensorType, pitches: Sequence[int]) -> int:
    """Elements from the first to the last that holds data."""
    extents = [size - pad for size, pad in zip(type_.shape, type_.padding, strict=True)]
    return 1 + sum(
        (extent - 1) * stride for extent, stride in zip(extents, memory_strides(type_, pitches), strict=True)
    )


def tensor_view(array: NDArray[Any], type_: TensorType, pitches: Sequence[int]) -> NDArray[Any]:
    """The tensor at the start of an array: a view whose dimensions are the logical ones."""
    steps = memory_strides(type_, pitches)
    order = [type_.layout.index(d) for d in range(type_.rank)]
    assert extent_in_memory(type_, pitches) <= array.size
    return np.lib.stride_tricks.as_strided(
        array,
        [type_.shape[k] - type_.padding[k] for k in order],
        [steps[k] * array.itemsize for k in order],
    )


def tensor_from_vector(vector: Array, type_: TensorType) -> Array:
    """The logical array of a flattened vector."""
    return tensor_view(vector, type_, [0] * type_.rank).copy()


def vector_from_tensor(tensor: Array, type_: TensorType) -> Array:
    """The flattened vector of a logical array; padding is zero."""
    vector = np.zeros(math.prod(type_.shape), dtype_of(type_.element))
    tensor_view(vector, type_, [0] * type_.rank)[...] = tensor
    return vector


def compute_operation(
    row: Intrinsic, operands: Sequence[Array], dims: Sequence[tuple[int, ...]], element: Type
) -> Array:
    """The logical result of an operation.

    Raises:
        InexactError: A sum of floats might be rounded.
    """
    if isinstance(element, FloatType) and len(operands) > 1:
        _check_exact(operands, element)
    return row.meaning(operands, dims, [], dtype_of(element))


def _check_exact(operands: Sequence[Array], element: Type) -> None:
    """`|acc| + |lhs| @ |rhs|` is below what the type holds exactly, and so is every partial sum in any order."""
    *acc, lhs, rhs = (np.abs(np.nan_to_num(x.astype(np.float64), posinf=0.0, neginf=0.0)) for x in operands)
    largest = np.max(lhs @ rhs + (acc[0] if acc else 0.0))
    if largest > LARGEST_EXACT[element]:
        message = f"sums up to {largest} in {element}"
        raise InexactError(message)


@dataclass(frozen=True, eq=False)
class RandomFunction:
    """A function of a program.

    Attributes:
        name: Its name.
        form: What it was made as.
        text: Its definition, in the proposal's spelling.
        buffers: The arrays it takes, in order.
        steps: What it means in numpy; None where only the evaluator says so.
        seed: Decides about the contents of the arrays.
        declarations: Functions that it calls without defining them.
        operations: Names of the operations that it was made of; empty for forms.
        calling: How it is called.
    """

    name: str
    form: str
    text: str
    buffers: tuple[ArrayParameter, ...]
    steps: tuple[ModelStep, ...] | None
    seed: int
    declarations: tuple[str, ...] = ()
    operations: frozenset[str] = frozenset()
    calling: Calling = field(default_factory=Calling)

    def arguments(self) -> tuple[list[Array], list[Array] | None]:
        """Arrays for a call, and what they hold after it (None: see the evaluator)."""
        if self.steps is None:
            generator = np.random.default_rng(self.seed)
            return [buffer.fill(generator, 0) for buffer in self.buffers], None
        start = self.seed % 5
        for level in range(start, len(CONTENT_LEVELS)):
            try:
                return self._run(level)
            except InexactError:
                continue
        message = f"the sums of @{self.name} cannot be exact"
        raise AssertionError(message)

    def _run(self, level: int) -> tuple[list[Array], list[Array]]:
        generator = np.random.default_rng(self.seed)
        specials = bool(generator.random() < 0.15)
        before = [buffer.fill(generator, level, specials=specials) for buffer in self.buffers]
        after = [array.copy() for array in before]
        state = State({buffer.name: array for buffer, array in zip(self.buffers, after, strict=True)})
        with np.errstate(all="ignore"):
            for step in self.steps or ():
                step(state)
        for buffer, array, kept in zip(self.buffers, after, before, strict=True):
            if buffer.is_copied:
                array[:] = kept
        return before, after
