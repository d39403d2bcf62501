"""Runs the lowering on a program and keeps what a report shows: the output of each stage, kernels, memory, remarks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Final

from tlx.diagnostics import Source
from tlx.explain.provenance import Keys, Line, Origins, Section, keys_in, line_of, sections, source_keys
from tlx.ir.control_flow import FunctionLoops
from tlx.ir.functions import Function
from tlx.ir.instructions import Block
from tlx.ir.module import Module
from tlx.ir.parser.module import parse
from tlx.ir.values import Global
from tlx.lower import pipeline
from tlx.lower.memory.planner import MemoryPlan
from tlx.lower.options import STAGE_NAMES, Options, Step
from tlx.lower.remarks import Remark
from tlx.lower.to_tiles.kernels import KernelFacts
from tlx.lower.to_tiles.problem import Gemm

_TITLES: Final = {"to-2d": "2-D trees", "to-tiles": "tiles", "legalize": "instructions"}


@dataclass(frozen=True, slots=True)
class StageText:
    """One text of a program, from the user's to the last stage's.

    Attributes:
        name: What the command line calls it; the name of the file for the user's texts.
        title: What it shows.
        sections: Its text.
    """

    name: str
    title: str
    sections: Sequence[Section]


@dataclass(frozen=True, slots=True)
class ExplainedKernel:
    """A kernel of the program.

    Attributes:
        name: Name of its function, without `@`.
        facts: What it computes, and how.
        calls: How often one call of the program's functions executes it, loops of unknown length counted once.
        keys: The lines of the user's file that it computes.
        home: The function that holds its code in the end: itself, or the loop nest into which it is inlined.
    """

    name: str
    facts: KernelFacts
    calls: int
    keys: Keys
    home: str


@dataclass(frozen=True, slots=True)
class Report:
    """What a report shows.

    Attributes:
        title: Name of the user's file.
        source: The program as TLX IR.
        target: Name of the target.
        columns: The texts, the user's first.
        kernels: The kernels, in the order of their first calls.
        plans: The memory plan of each function that has one, by its name.
        remarks: The remarks.
        text: The lowered module.
    """

    title: str
    source: Source
    target: str
    columns: Sequence[StageText]
    kernels: Sequence[ExplainedKernel]
    plans: Mapping[str, MemoryPlan]
    remarks: Sequence[Remark]
    text: str


@dataclass(eq=False)
class _Recorder:
    """Keeps what the stages leave; it is called after each step of the pipeline."""

    source: Source
    written: frozenset[str]
    columns: list[StageText] = field(default_factory=list[StageText])
    kernels: dict[str, ExplainedKernel] = field(default_factory=dict[str, ExplainedKernel])
    plans: dict[str, MemoryPlan] = field(default_factory=dict[str, MemoryPlan])
    origins: Origins | None = None

    def __call__(self, step: Step, module: Module) -> None:
        """Keep the output of a step."""
        if step.name not in STAGE_NAMES:
            return
        self.origins = Origins.of(module, self.source, self.written, self.origins)
        parts = sections(module, self.origins, self.written)
        self.columns.append(StageText(step.name, _TITLES[step.name], parts))
        if step.name == "to-tiles":
            self._keep_kernels(module, self.origins)
        elif step.name == "legalize":
            self._find_homes(module)

    def _keep_kernels(self, module: Module, origins: Origins) -> None:
        executions = _executions(module, self.written)
        for function in module.functions:
            plan = function.facts.get(MemoryPlan)
            if isinstance(plan, MemoryPlan) and (plan.heap or plan.stack):
                self.plans[function.name] = plan
            facts = function.facts.get(KernelFacts)
            is_dispatcher = isinstance(facts, KernelFacts) and isinstance(facts.problem, Gemm) and not facts.recipe
            if isinstance(facts, KernelFacts) and not is_dispatcher:
                keys = tuple(sorted(origins.functions.get(function.name, ())))
                calls = executions.get(function.name, 1)
                self.kernels[function.name] = ExplainedKernel(function.name, facts, calls, keys, function.name)

    def _find_homes(self, module: Module) -> None:
        """Where the code of inlined kernels is: the function with most of their lines."""
        names = {function.name for function in module.functions}
        for kernel in self.kernels.values():
            if kernel.name not in names and self.origins is not None:
                nests = {n: k for n, k in self.origins.functions.items() if n in names and set(kernel.keys) & k}
                best = max(nests, key=lambda n: (len(set(kernel.keys) & nests[n]), -len(nests[n])), default=kernel.name)
                self.kernels[kernel.name] = replace(kernel, home=best)


def _executions(module: Module, written: frozenset[str]) -> dict[str, int]:
    """How often each function runs in one call of each of the program's functions."""
    functions = {function.name: function for function in module.functions}
    loops: dict[str, FunctionLoops] = {}
    counts: dict[str, int] = {}

    def trips(function: Function, block: Block) -> int:
        if function.name not in loops:
            loops[function.name] = FunctionLoops(function)
        return prod(loop.trips for loop in loops[function.name].enclosing_loops(block))

    callers: dict[str, list[tuple[str, int]]] = {}
    for function in functions.values():
        for block in function.blocks:
            for instruction in block.instructions:
                for operand in instruction.operands if "@" in instruction.text else ():
                    if isinstance(operand, Global) and operand.name in functions and operand.name != function.name:
                        callers.setdefault(operand.name, []).append((function.name, trips(function, block)))

    def count(name: str, inside: tuple[str, ...]) -> int:
        if name in written or name not in callers:
            return 1
        if name not in counts:
            others = [(caller, times) for caller, times in callers[name] if caller not in inside]
            counts[name] = sum(count(caller, (*inside, name)) * times for caller, times in others) or 1
        return counts[name]

    return {name: count(name, ()) for name in functions}


def collect(text: str, name: str, target: str, options: Options, original: StageText | None = None) -> Report:
    """Lower a program and keep what a report shows.

    Args:
        text: The program as TLX IR.
        name: Its name in messages.
        target: Name of the target.
        options: Options of the lowering; their remarks become part of the report.
        original: The text that the program was translated from, if it is not TLX IR itself.

    Raises:
        TlxError: The program cannot be lowered.
    """
    source = Source(name, text)
    written = frozenset(function.name for function in parse(text, name, lambda _: True).functions)
    recorder = _Recorder(source, written)
    lowered = pipeline.lower_text(text, name, target, options=replace(options, print_after=recorder))
    module = parse(text, name, lambda _: True)
    present = keys_in(recorder.columns[0].sections) if recorder.columns else set[int]()
    keys = source_keys(module, present)
    lines = [Line(line, keys.get(number, ())) for number, line in enumerate(text.rstrip("\n").split("\n"), 1)]
    user = StageText(name, "TLX IR", [Section("", lines)])
    order = {kernel: (kernel.keys[-1:] or (0,), number) for number, kernel in enumerate(recorder.kernels.values())}
    return Report(
        original.name if original is not None else name,
        source,
        target,
        [*([original] if original is not None else []), user, *recorder.columns],
        sorted(recorder.kernels.values(), key=order.__getitem__),
        recorder.plans,
        list(options.remarks),
        lowered,
    )


def original_column(text: str, name: str, translation: Module) -> StageText:
    """The text that a front end translated, with the lines of its translation as keys.

    Args:
        text: The text in the front end's language.
        name: Name of its file.
        translation: The translated module, whose instructions have spans in the text; its lines are counted from the
            first one that is not empty.
    """
    keys: dict[int, set[int]] = {}
    whole = str(translation)
    at = 1 - (len(whole) - len(whole.lstrip("\n")))
    for item in translation.items:
        if isinstance(item, Function):
            for number, line in _instruction_lines(item, at):
                keys.setdefault(number, set()).add(line)
        at += str(item).count("\n")
    lines = [
        Line(line, tuple(sorted(keys.get(number, ())))) for number, line in enumerate(text.rstrip("\n").split("\n"), 1)
    ]
    return StageText(name, "source", [Section("", lines)])


def _instruction_lines(function: Function, start: int) -> Iterator[tuple[int, int]]:
    """For each instruction with a span: its line in the source, and in a text where the function starts at a line."""
    line = start + function.header.count("\n")
    for block in function.blocks:
        line += block.label.count("\n")
        for instruction in block.instructions:
            line += instruction.lead.count("\n")
            if instruction.span is not None:
                yield line_of(instruction.span), line
            line += instruction.text.count("\n")
