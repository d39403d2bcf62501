"""StableHLO programs as plain data, from the reader of MLIR modules to the translation.

    func.func private @relu(%arg0: tensor<2xf32>) -> tensor<2xf32> {
      %cst = stablehlo.constant dense<0.0> : tensor<f32>
      %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2xf32>
      %1 = stablehlo.maximum %arg0, %0 : tensor<2xf32>
      return %1 : tensor<2xf32>
    }

An SSA value is a number, different from all others of its module.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

import numpy as np

from tlx.diagnostics import Source, Span, shown_path

DType = np.dtype[Any]


@dataclass(frozen=True, slots=True)
class ValueType:
    """Shape and element type of a value.

    Attributes:
        shape: Its extents; None where they are not static.
        dtype: Its element type; None where TLX has none.
        text: The type as MLIR writes it.
    """

    shape: tuple[int, ...] | None
    dtype: DType | None
    text: str

    @property
    def count(self) -> int:
        """Number of elements."""
        return math.prod(self.shape or ())


@dataclass(frozen=True, slots=True)
class Location:
    """Where an operation comes from.

    Attributes:
        file: The innermost file of the user's program; empty if it is not known.
        line: Line there, from 1.
        start: First column, from 1.
        end: Column after the last; 0 if it is not known.
        name: What JAX calls the operation: `jit(step)/jvp()/dot_general`.
    """

    file: str = ""
    line: int = 0
    start: int = 0
    end: int = 0
    name: str = ""

    def span(self, sources: dict[str, Source]) -> Span | None:
        """The place in the file, if that can be read."""
        import linecache

        if self.file not in sources:
            sources[self.file] = Source(
                shown_path(self.file), "".join(linecache.getlines(self.file)) if self.file else ""
            )
        source = sources[self.file]
        if not source.text or not self.line:
            return None
        begin = source.offset(self.line, self.start)
        return source.span(begin, source.offset(self.line, self.end) if self.end > self.start else None)


@dataclass(frozen=True, slots=True)
class StablehloRegion:
    """A block of operations with parameters; it ends with a `return` of values."""

    parameters: tuple[int, ...]
    operations: tuple[StablehloOperation, ...]
    returned: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class StablehloOperation:
    """An operation of StableHLO or of another dialect.

    Attributes:
        name: With its dialect: `stablehlo.add`.
        operands: The values that it takes.
        operand_types: Their types.
        results: The values that it defines.
        types: Their types.
        attributes: By name: numbers, texts, tuples, arrays, and dimension numbers as mappings.
        regions: Bodies of loops, reductions and so on.
        location: Where it comes from.
    """

    name: str
    operands: tuple[int, ...]
    operand_types: tuple[ValueType, ...]
    results: tuple[int, ...]
    types: tuple[ValueType, ...]
    attributes: Mapping[str, Any]
    regions: tuple[StablehloRegion, ...]
    location: Location


@dataclass(frozen=True, slots=True)
class StablehloFunction:
    """A function: its name, the types of its parameters, what MLIR says about them, and its body."""

    name: str
    types: tuple[ValueType, ...]
    names: tuple[str, ...]
    results: tuple[ValueType, ...]
    body: StablehloRegion


@dataclass(frozen=True, slots=True)
class StablehloModule:
    """A module: its functions by name, of which `main` is the one to call."""

    functions: Mapping[str, StablehloFunction]


def live_operations(region: StablehloRegion, wanted: AbstractSet[int]) -> list[StablehloOperation]:
    """The operations of a region on which values depend, in order."""
    needed = set(wanted)
    live: list[StablehloOperation] = []
    for operation in reversed(region.operations):
        if not needed.isdisjoint(operation.results):
            needed |= used_values([operation])
            live.append(operation)
    return live[::-1]


def used_values(operations: Iterable[StablehloOperation]) -> set[int]:
    """The values that operations refer to, in their regions too."""
    used: set[int] = set()
    for operation in operations:
        used.update(operation.operands)
        for region in operation.regions:
            used.update(region.returned, used_values(region.operations))
    return used
