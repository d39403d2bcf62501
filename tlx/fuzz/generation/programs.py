"""Random tensor programs with their meaning, and the table of operations that they are made of.

A program is a module of several functions on arrays. Each function has one of a few forms (a product and its epilogue,
sums in a loop, products in a loop, transposes, copies, any operations). Types, extents, layouts, paddings, pitches,
sources and destinations of tensors, and spellings are random, determined by the seed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from tlx.diagnostics import UsageError, did_you_mean
from tlx.fuzz.generation.dataflow import DataflowWriter, Operation
from tlx.fuzz.generation.model import ChoiceNode, Choices, RandomFunction
from tlx.fuzz.generation.operations.control import BY_VALUE, CONTROL
from tlx.fuzz.generation.operations.lanes import ELEMENT_OPERATIONS, LANES
from tlx.fuzz.generation.operations.tensor import TENSORS
from tlx.fuzz.generation.operations.vector import VECTORS
from tlx.fuzz.generation.profiles import PROFILES, Profile
from tlx.intrinsics import lookup
from tlx.ir.parser.module import parse
from tlx.ir.tensors.calls import canonicalise

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
    "while": 2,
    "branch": 3,
    "overwritten": 2,
    "by-value": 3,
    "shuffle": 4,
    "insert-loop": 2,
    "deinterleave": 2,
}


@cache
def weighted_operations(names: tuple[str, ...]) -> Sequence[tuple[str, Operation]]:
    """The operations with these names (all if there are none), repeated by weight."""
    operations = [(name, run) for name, run in OPERATIONS.items() if not names or name in names]
    return [pair for pair in operations if is_available(pair[0]) for _ in range(_WEIGHTS.get(pair[0], 1))]


def is_available(name: str) -> bool:
    """Whether an operation is not a tensor intrinsic, or is one that the table has."""
    return name not in TENSORS or lookup(f"llvm.tensor.{name}") is not None


def parse_operations(text: str) -> tuple[str, ...]:
    """Parse `--ops`: names, prefixes before a dot (`reduce`), `tensor`, `vector`; `-name` excludes.

    Raises:
        UsageError: There is no such operation.
    """
    selected: list[str] = []
    for word in filter(None, text.split(",")):
        is_excluded = word.startswith("-")
        names = _operations_of_word(word.removeprefix("-"))
        if is_excluded:
            selected = [name for name in selected or OPERATIONS if name not in names]
        else:
            selected.extend(names)
    return tuple(dict.fromkeys(selected))


def _operations_of_word(word: str) -> list[str]:
    groups = {
        "tensor": list(TENSORS),
        "vector": [*VECTORS, *LANES, *ELEMENT_OPERATIONS],
        "lanes": list(LANES),
        "control": [*CONTROL, *BY_VALUE],
    }
    operations = groups.get(word) or [name for name in OPERATIONS if name == word or name.startswith(f"{word}.")]
    if not operations:
        known = [*groups, *OPERATIONS]
        near = did_you_mean(word, known)
        raise UsageError(f"unknown operation '{word}' in --ops; choose from {', '.join(known)}{near}")
    return operations


@dataclass(frozen=True, eq=False)
class RandomProgram:
    """A module of random functions.

    Attributes:
        text: The module.
        functions: Its functions.
        spelling: `proposal`, `suffixes` or `canonical`.
        typed: Whether pointers have types.
        node: The numbers drawn.
    """

    text: str
    functions: tuple[RandomFunction, ...]
    spelling: str
    typed: bool
    node: ChoiceNode

    @property
    def operations(self) -> frozenset[str]:
        """Names of the operations in it, as in `--ops`."""
        return frozenset(name for function in self.functions for name in function.operations)


def random_program(profile: str | Profile, source: int | str | ChoiceNode) -> RandomProgram:
    """The program of a seed.

    Args:
        profile: The profile, or its name.
        source: A seed (a number or text), or the numbers drawn for a program, possibly pruned.
    """
    contents = PROFILES[profile] if isinstance(profile, str) else profile
    choose = Choices(
        source if isinstance(source, ChoiceNode) else f"{profile if isinstance(profile, str) else ''} {source}"
    )
    spelling = choose.choice(["proposal", "suffixes", "canonical", "canonical"])
    typed = choose.chance(0.25)
    functions: list[RandomFunction] = []
    least = 1 if "dataflow" in contents.forms else contents.functions
    parts = choose.parts(least, contents.functions)
    for index, part in enumerate(parts):
        writer = DataflowWriter(
            contents,
            part,
            f"f{index}",
            typed=typed,
            suffixes=spelling == "suffixes",
            callees=functions,
            operations=weighted_operations(contents.operations),
        )
        functions.append(_finish_function(writer, may_be_called=index < len(parts) - 1))
    declarations = sorted({line for function in functions for line in function.declarations})
    text = "\n".join([*(function.text for function in functions), *declarations])
    return RandomProgram(
        canonical(text) if spelling == "canonical" else text, tuple(functions), spelling, typed, choose.node
    )


_CONVENTIONS: Final = re.compile(
    r"\b(?:x86_\w+cc|win64cc|preserve_\w+cc|swift\w*cc|cxx_fast_tlscc|tailcc|coldcc|cc \d+) "
)
_REGISTERS: Final = re.compile(r" (?:nest|inreg|swiftself)(?= [%@])")


def portable(program: RandomProgram) -> RandomProgram:
    """A program without calling conventions and parameter attributes that only some machines have."""
    return replace(program, text=_REGISTERS.sub("", _CONVENTIONS.sub("", program.text)))


def canonical(text: str) -> str:
    """A module in the canonical spelling, with declarations."""
    module = parse(text)
    canonicalise(module)
    return str(module)


def _finish_function(writer: DataflowWriter, *, may_be_called: bool) -> RandomFunction:
    form = writer.random.choice(writer.profile.forms)
    data = writer.random.randrange(1 << 32)
    getattr(writer, form)()
    writer.draw_calling()
    if not may_be_called:
        writer.draw_constants()
    steps = None if form.endswith("dataflow") else tuple(writer.steps)
    declarations = tuple(sorted(writer.declarations))
    buffers = tuple(writer.buffers)
    return RandomFunction(
        writer.name, form, writer.text, buffers, steps, data, declarations, frozenset(writer.used), writer.calling
    )
