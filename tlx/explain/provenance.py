"""Provenance: which lines of the user's file each line of a stage's output comes from.

Instructions carry the span of the user's code from which they are lowered (`Instruction.span`), and a kernel has the
trees that its calls compute (`KernelFacts`). A line of the user's file on which an instruction begins is a *key*:

    source                   stage 1                        stage 2
    11  %p = matmul %a, %b   %matmul = ...      keys 11     call @tlx.matmul.*      keys 11, 17
    17  %s = fadd %p, %r     %sum = fadd ...    keys 17     define @tlx.matmul.*    keys 11, 17

An instruction of the source without code of its own, such as a load of an operand, also has the keys of its users.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final

from tlx.diagnostics import Source, Span
from tlx.ir.functions import Function
from tlx.ir.instructions import Instruction
from tlx.ir.module import Declaration, Module, UnparsedText
from tlx.ir.values import Global, Local
from tlx.lower.to_tiles.kernels import KernelFacts

Keys = tuple[int, ...]
"""Numbers of lines of the user's file, ascending."""

_NONE: Final = frozenset[int]()


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a text, and the lines of the user's file that it comes from."""

    text: str
    keys: Keys = ()


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a text: a function, or what lies between functions.

    Attributes:
        title: The function's name with its `@`; empty for other text.
        lines: Its lines.
        keys: The lines of the user's file that it comes from, for a function that the lowering made.
        is_made: Whether the lowering made it.
    """

    title: str
    lines: Sequence[Line]
    keys: Keys = ()
    is_made: bool = False


def line_of(span: Span) -> int:
    """The line on which a span begins."""
    return span.source.location(span.start)[0]


def key_of(instruction: Instruction, source: Source) -> AbstractSet[int]:
    """The key of an instruction by its span; none if it has none in the source."""
    span = instruction.span
    return frozenset({line_of(span)}) if span is not None and span.source.text == source.text else _NONE


@dataclass(eq=False)
class Origins:
    """The keys of functions and calls in one stage's output.

    Attributes:
        source: The user's file.
        trees: For each kernel and line of a call, the keys of the trees that it computes.
        functions: The keys of each function that the lowering made.
    """

    source: Source
    trees: dict[tuple[str, int], set[int]] = field(default_factory=dict[tuple[str, int], set[int]])
    functions: dict[str, frozenset[int]] = field(default_factory=dict[str, frozenset[int]])

    @classmethod
    def of(cls, module: Module, source: Source, written: Collection[str], before: Origins | None = None) -> Origins:
        """The origins in a module.

        Args:
            module: The output of a stage.
            source: The user's file.
            written: Names of the functions in the user's file.
            before: The origins in the output of the stage before.
        """
        origins = cls(source, dict(before.trees) if before else {})
        for function in module.functions:
            facts = function.facts.get(KernelFacts)
            for tree in facts.trees if isinstance(facts, KernelFacts) else ():
                keys = {line_of(span) for span in tree}
                origins.trees.setdefault((function.name, line_of(tree[-1])), set()).update(keys if tree else ())
        known = dict(before.functions) if before else {}
        made = {f.name: set(known.get(f.name, ())) for f in module.functions if f.name not in written}
        pending = True
        while pending:
            origins.functions = {name: frozenset(keys) for name, keys in made.items()}
            for function in module.functions:
                origins.add_calls(function, made)
            pending = any(len(keys) > len(origins.functions[name]) for name, keys in made.items())
        return origins

    def add_calls(self, function: Function, made: Mapping[str, set[int]]) -> None:
        """Add the keys of a function's instructions to it and to the functions that it mentions."""
        for instruction in function.instructions():
            keys = self.of_instruction(instruction)
            if function.name in made:
                made[function.name].update(keys)
            for operand in instruction.operands:
                if isinstance(operand, Global) and operand.name in made:
                    made[operand.name].update(keys or self.functions.get(function.name, _NONE))

    def of_instruction(self, instruction: Instruction) -> AbstractSet[int]:
        """The keys of an instruction, those of its tree for the call to a kernel."""
        keys = key_of(instruction, self.source)
        tree = self.trees.get((str(instruction.callee), min(keys, default=0))) if instruction.is_call else None
        return frozenset(tree) | keys if tree else keys


def sections(module: Module, origins: Origins, written: Collection[str]) -> list[Section]:
    """The text of a module by functions, with the keys of each line."""
    found: list[Section] = []
    between: list[str] = []
    for item in module.items:
        if isinstance(item, Function):
            keys = origins.functions.get(item.name, _NONE)
            lines = list(_function_lines(item, origins))
            found.append(Section(f"@{item.name}", lines, tuple(sorted(keys)), item.name not in written))
        elif isinstance(item, UnparsedText | Declaration):
            between += str(item).strip("\n").split("\n") if str(item).strip() else []
        else:
            found.append(Section(f"@{item.name}", [Line(text) for text in str(item).strip("\n").split("\n")]))
    return [*found, *([Section("", [Line(text) for text in between])] if between else [])]


def _function_lines(function: Function, origins: Origins) -> Iterator[Line]:
    """The lines of a function's text."""
    keys: dict[int, AbstractSet[int]] = {}
    at = function.header.count("\n")
    for block in function.blocks:
        at += block.label.count("\n")
        for instruction in block.instructions:
            start = at + instruction.lead.count("\n")
            at = start + instruction.text.count("\n")
            for line in range(start, at + 1):
                keys[line] = keys.get(line, _NONE) | origins.of_instruction(instruction)
    lines = [Line(text, tuple(sorted(keys.get(number, ())))) for number, text in enumerate(str(function).split("\n"))]
    first = next((number for number, line in enumerate(lines) if line.text), 0)
    return iter(lines[first:])


def source_keys(module: Module, present: AbstractSet[int]) -> dict[int, Keys]:
    """The keys of each line of the user's file.

    Args:
        module: The user's file as it was read.
        present: The keys of the output of a stage. The line of an instruction that is not among them has the keys of
            the instructions that use its result, or of their users.
    """
    keys: dict[int, set[int]] = defaultdict(set)
    for function in module.functions:
        users: dict[str, list[Instruction]] = defaultdict(list)
        for instruction in function.instructions():
            for operand in instruction.operands:
                if isinstance(operand, Local):
                    users[operand.name].append(instruction)
        for instruction in function.instructions():
            span = instruction.span
            if span is None:
                continue
            first, last = line_of(span), span.source.location(max(span.start, span.end - 1))[0]
            found = {first} | (set[int]() if first in present else _of_users(instruction, users, present))
            for line in range(first, last + 1):
                keys[line] |= found
    return {line: tuple(sorted(found)) for line, found in keys.items()}


def _of_users(
    instruction: Instruction, users: Mapping[str, Sequence[Instruction]], present: AbstractSet[int]
) -> set[int]:
    """The nearest keys, among those present, of the instructions that depend on one."""
    found: set[int] = set()
    seen: set[str] = set()
    pending = [instruction]
    while pending:
        current = pending.pop()
        for user in users.get(str(current.result), ()) if str(current.result) not in seen else ():
            line = line_of(user.span) if user.span is not None else 0
            if line in present:
                found.add(line)
            else:
                pending.append(user)
        seen.add(str(current.result))
    return found


def keys_in(parts: Iterable[Section]) -> set[int]:
    """All keys of some sections' lines."""
    return {key for part in parts for line in part.lines for key in line.keys}
