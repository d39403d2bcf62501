"""Random tensor programs, each with what it means: the seed decides everything.

A program is a module of several functions on arrays. The functions are of a few forms (a product and what is done with
it, sums in a loop, products in a loop, transposes, copies, any operations); types, extents, layouts, paddings, pitches,
where tensors come from and go to, and spellings are drawn.
"""

from __future__ import annotations

from dataclasses import dataclass

from tlx.fuzz.generation.dataflow import DataflowWriter
from tlx.fuzz.generation.model import Choices, Node, RandomFunction
from tlx.fuzz.generation.operations.table import weighted_operations
from tlx.fuzz.generation.profiles import PROFILES, Profile
from tlx.ir.parser.module import parse
from tlx.ir.tensors.calls import canonicalise


@dataclass(frozen=True, eq=False)
class RandomProgram:
    """A module of random functions.

    Attributes:
        text: The module.
        functions: Its functions.
        spelling: `proposal`, `suffixes` or `canonical`.
        typed: Whether pointers have types.
        node: What was drawn.
    """

    text: str
    functions: tuple[RandomFunction, ...]
    spelling: str
    typed: bool
    node: Node

    @property
    def operations(self) -> frozenset[str]:
        """Names of the operations in it, as `--ops` knows them."""
        return frozenset(name for function in self.functions for name in function.operations)


def random_program(profile: str | Profile, source: int | str | Node) -> RandomProgram:
    """The program of a seed.

    Args:
        profile: What it may contain, or the name of that.
        source: Any number or text, or what was drawn for another program, or a part of that.
    """
    contents = PROFILES[profile] if isinstance(profile, str) else profile
    choose = Choices(source if isinstance(source, Node) else f"{profile if isinstance(profile, str) else ''} {source}")
    spelling = choose.choice(["proposal", "suffixes", "canonical", "canonical"])
    typed = choose.chance(0.25)
    functions: list[RandomFunction] = []
    least = 1 if "dataflow" in contents.forms else contents.functions
    for index, part in enumerate(choose.parts(least, contents.functions)):
        maker = DataflowWriter(
            contents,
            part,
            f"f{index}",
            typed=typed,
            suffixes=spelling == "suffixes",
            callees=functions,
            operations=weighted_operations(contents.operations),
        )
        functions.append(_finish_function(maker))
    declarations = sorted({line for function in functions for line in function.declarations})
    text = "\n".join([*(function.text for function in functions), *declarations])
    return RandomProgram(
        canonical(text) if spelling == "canonical" else text, tuple(functions), spelling, typed, choose.node
    )


def canonical(text: str) -> str:
    """A module in the canonical spelling, with declarations."""
    module = parse(text)
    canonicalise(module)
    return str(module)


def _finish_function(maker: DataflowWriter) -> RandomFunction:
    form = maker.random.choice(maker.profile.forms)
    data = maker.random.randrange(1 << 32)
    getattr(maker, form)()
    maker.draw_calling()
    steps = None if form == "dataflow" else tuple(maker.steps)
    declarations = tuple(sorted(maker.declarations))
    buffers = tuple(maker.buffers)
    return RandomFunction(
        maker.name, form, maker.text, buffers, steps, data, declarations, frozenset(maker.used), maker.calling
    )
