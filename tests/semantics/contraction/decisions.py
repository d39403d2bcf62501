"""Decisions of the first stage, forced through the target: by other costs, or by a seed in place of the cost model."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tlx.ir.module import Module
from tlx.ir.parser.module import parse
from tlx.ir.tensors.calls import canonicalise
from tlx.lower.context import LoweringContext
from tlx.lower.to_2d import to_2d
from tlx.target.lookup import find_target
from tlx.target.target import Target

_SEEDS = 400


def stage1(text: str, target: Target) -> Module:
    """A program after the first stage."""
    module = parse(text)
    canonicalise(module)
    to_2d(module, LoweringContext(target))
    return module


def with_costs(target: Target | str, **costs: object) -> Target:
    """A target whose blocks and copies cost something else."""
    machine = find_target(target) if isinstance(target, str) else target
    return replace(machine, blocks=replace(machine.blocks, **costs))


def deciding(text: str, target: Target, *marks: str, without: tuple[str, ...] = (), **costs: object) -> Target:
    """The target with the first decision seed by which a program after the first stage has some marks, and not others.

    Args:
        text: The program.
        target: The machine.
        marks: Patterns of what the program then has, such as names of copies and loops.
        without: Names that it has not.
        costs: Figures that the seed does not draw.
    """
    for seed in range(_SEEDS):
        seeded = with_costs(target.with_decision_seed(seed), **costs)
        written = str(stage1(text, seeded))
        if all(re.search(mark, written) for mark in marks) and not any(name in written for name in without):
            return seeded
    pytest.fail(f"no decision leads to {', '.join(marks)}")
