"""The table of operations by name, and choosing among them: what `tlx fuzz --ops` takes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final

from tlx.diagnostics import UsageError, did_you_mean
from tlx.fuzz.generation.dataflow import Operation
from tlx.fuzz.generation.operations.control import BY_VALUE, CONTROL
from tlx.fuzz.generation.operations.elements import ELEMENT_OPERATIONS
from tlx.fuzz.generation.operations.lanes import LANES
from tlx.fuzz.generation.operations.tensor import TENSORS
from tlx.fuzz.generation.operations.vector import VECTORS
from tlx.intrinsics import lookup

OPERATIONS: Final[dict[str, Operation]] = {
    **TENSORS,
    **VECTORS,
    **LANES,
    **ELEMENT_OPERATIONS,
    **CONTROL,
    **BY_VALUE,
}
_WEIGHTS: Final = {
    "loop": 4,
    "matmul": 3,
    "contract": 2,
    "convolution": 2,
    "call": 3,
    "update": 2,
    "by-value": 3,
    "shuffle": 4,
    "insert-loop": 2,
}


@cache
def weighted_operations(names: tuple[str, ...]) -> Sequence[tuple[str, Operation]]:
    """The operations of these names (no name: all), as often as they shall come."""
    found = [(name, run) for name, run in OPERATIONS.items() if not names or name in names]
    return [pair for pair in found if is_available(pair[0]) for _ in range(_WEIGHTS.get(pair[0], 1))]


def is_available(name: str) -> bool:
    """Whether an operation is a row of the table of intrinsics, or no tensor intrinsic at all."""
    return name not in TENSORS or lookup(f"llvm.tensor.{name}") is not None


def parse_operations(text: str) -> tuple[str, ...]:
    """The operations of `--ops`: names, parts of names before a dot (`reduce`), `tensor`, `vector`; `-name` without.

    Raises:
        UsageError: There is no such operation.
    """
    kept: list[str] = []
    for word in filter(None, text.split(",")):
        without = word.startswith("-")
        found = _operations_of_word(word.removeprefix("-"))
        if without:
            kept = [name for name in kept or OPERATIONS if name not in found]
        else:
            kept.extend(found)
    return tuple(dict.fromkeys(kept))


def _operations_of_word(word: str) -> list[str]:
    groups = {
        "tensor": list(TENSORS),
        "vector": [*VECTORS, *LANES, *ELEMENT_OPERATIONS],
        "lanes": list(LANES),
        "control": [*CONTROL, *BY_VALUE],
    }
    found = groups.get(word) or [name for name in OPERATIONS if name == word or name.startswith(f"{word}.")]
    if not found:
        known = [*groups, *OPERATIONS]
        near = did_you_mean(word, known)
        raise UsageError(f"unknown operation '{word}' in --ops; known are {', '.join(known)}{near}")
    return found
