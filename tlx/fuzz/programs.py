"""Random tensor programs, each with what it means: the seed decides everything.

A program is a module of several functions on arrays. The functions are of a few forms (a product and what is done with
it, sums in a loop, products in a loop, transposes, copies, any operations); types, extents, layouts, paddings, pitches,
where tensors come from and go to, and spellings are drawn.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tlx.fuzz.arrays import LEVELS, Buffer
from tlx.fuzz.calling import Calling
from tlx.fuzz.choices import Choices, Node
from tlx.fuzz.dataflow import Dataflow
from tlx.fuzz.model import InexactError, State, Step
from tlx.fuzz.profiles import PROFILES, Profile
from tlx.ir.canonical import canonicalise
from tlx.ir.reader import parse
from tlx.numpy_types import Array


@dataclass(frozen=True, eq=False)
class Function:
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
    buffers: tuple[Buffer, ...]
    steps: tuple[Step, ...] | None
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
        for level in range(start, len(LEVELS)):
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


@dataclass(frozen=True, eq=False)
class Program:
    """A module of random functions.

    Attributes:
        text: The module.
        functions: Its functions.
        spelling: `proposal`, `suffixes` or `canonical`.
        typed: Whether pointers have types.
        node: What was drawn.
    """

    text: str
    functions: tuple[Function, ...]
    spelling: str
    typed: bool
    node: Node

    @property
    def operations(self) -> frozenset[str]:
        """Names of the operations in it, as `--ops` knows them."""
        return frozenset(name for function in self.functions for name in function.operations)


def program(profile: str | Profile, source: int | str | Node) -> Program:
    """The program of a seed.

    Args:
        profile: What it may contain, or the name of that.
        source: Any number or text, or what was drawn for another program, or a part of that.
    """
    chosen = PROFILES[profile] if isinstance(profile, str) else profile
    choose = Choices(source if isinstance(source, Node) else f"{profile if isinstance(profile, str) else ''} {source}")
    spelling = choose.choice(["proposal", "suffixes", "canonical", "canonical"])
    typed = choose.chance(0.25)
    functions: list[Function] = []
    least = 1 if "dataflow" in chosen.forms else chosen.functions
    for index, part in enumerate(choose.parts(least, chosen.functions)):
        maker = Dataflow(chosen, part, f"f{index}", typed=typed, suffixes=spelling == "suffixes", callees=functions)
        functions.append(_made(maker))
    declarations = sorted({line for function in functions for line in function.declarations})
    text = "\n".join([*(function.text for function in functions), *declarations])
    return Program(canonical(text) if spelling == "canonical" else text, tuple(functions), spelling, typed, choose.node)


def canonical(text: str) -> str:
    """A module in the canonical spelling, with declarations."""
    module = parse(text)
    canonicalise(module)
    return str(module)


def _made(maker: Dataflow) -> Function:
    form = maker.random.choice(maker.profile.forms)
    data = maker.random.randrange(1 << 32)
    getattr(maker, form)()
    maker.draw_calling()
    steps = None if form == "dataflow" else tuple(maker.steps)
    declarations = tuple(sorted(maker.declarations))
    buffers = tuple(maker.buffers)
    return Function(
        maker.name, form, maker.text, buffers, steps, data, declarations, frozenset(maker.used), maker.calling
    )
