"""Decisions of stage 1, controlled through the target: by other costs, or by a seed in place of the cost model."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

import pytest

from tlx.ir.module import Module
from tlx.ir.parser.module import parse
from tlx.ir.tensors.calls import canonicalise
from tlx.lower.context import LoweringContext
from tlx.lower.options import Options
from tlx.lower.remarks import Remarks
from tlx.lower.to_2d import to_2d
from tlx.target.lookup import find_target
from tlx.target.target import Target

FREE_COPIES: Final = dict.fromkeys(
    (
        *("row_cycles", "row_register_cycles", "tile_cycles", "narrow_tile_cycles", "element_cycles"),
        *("stride2_row_cycles", "stride2_register_cycles", "stride2_read_byte_cycles", "stride2_written_byte_cycles"),
    ),
    0,
)
"""Costs by which copies of rows, of every second element, and of transposed tiles cost nothing."""
_RECORDS: Final = ("depthwise", "copies", "convolutions", "reductions")
_SEEDS: Final = 400


def stage1(text: str, target: Target, remarks: Remarks | None = None) -> Module:
    """A program after the first stage; its remarks are added to `remarks`."""
    module = parse(text)
    canonicalise(module)
    to_2d(module, LoweringContext(target, Options() if remarks is None else Options(remarks=remarks)))
    return module


def with_costs(target: Target | str, **costs: object) -> Target:
    """The target with other costs of blocks and copies: fields of `BlockCosts`, or of one of its records."""
    machine = find_target(target) if isinstance(target, str) else target
    blocks = machine.block_costs
    for name, cost in costs.items():
        if hasattr(blocks, name):
            blocks = replace(blocks, **{name: cost})
            continue
        record = next(record for record in _RECORDS if hasattr(getattr(blocks, record), name))
        blocks = replace(blocks, **{record: replace(getattr(blocks, record), **{name: cost})})
    return replace(machine, block_costs=blocks)


def drawn_decisions(target: Target | str, seed: int) -> Target:
    """A target on which a seed decides, or, for some seeds, one on which copies are free.

    A decision seed hardly ever copies a convolution's input: the cost of the copy is drawn, and added to the least of
    many drawn costs of products.
    """
    machine = find_target(target) if isinstance(target, str) else target
    if seed % 2:
        return machine.with_decision_seed(seed)
    near = {"cached_operand_bytes": 64, "max_whole_copy_bytes": 64, "max_partial_copy_bytes": 64}
    costs: dict[str, object] = {"max_alternative_share": 1e9} if seed % 4 else {**near}
    free = {**FREE_COPIES, "deinterleaved_register_cycles": 0, "widening_factor": 0, "zeroed_bytes_per_cycle": 1e9}
    return with_costs(machine, **free, **costs)


def deciding(text: str, target: Target, *marks: str, without: tuple[str, ...] = (), **costs: object) -> Target:
    """The target with the first decision seed by which a program after the first stage has some marks, and not others.

    Args:
        text: The program.
        target: The machine.
        marks: Patterns that occur in the result, such as names of copies and loops.
        without: Names that do not occur in it.
        costs: Figures that the seed does not draw.
    """
    for seed in range(_SEEDS):
        seeded = with_costs(target.with_decision_seed(seed), **costs)
        written = str(stage1(text, seeded))
        if all(re.search(mark, written) for mark in marks) and not any(name in written for name in without):
            return seeded
    pytest.fail(f"no decision leads to {', '.join(marks)}")


def names_of(module: Module) -> set[str]:
    """The names of values and blocks of a module, without the numbers that make them unique."""
    names = re.findall(r"%?([A-Za-z_][\w.]*)(?: =|:$)", str(module), re.MULTILINE)
    return {re.sub(r"\.?\d*$", "", name) for name in names}
