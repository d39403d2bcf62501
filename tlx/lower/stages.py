"""The stages of the lowering, as a flat list: N-D to 2-D, 2-D to tiles, tiles to target instructions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tlx.ir.module import Module
from tlx.lower.context import LoweringContext
from tlx.lower.legalize import legalize as run_legalize
from tlx.lower.to_2d import to_2d as run_to_2d
from tlx.lower.to_tiles import to_tiles as run_to_tiles


@dataclass(frozen=True, slots=True)
class Stage:
    """A named step of the lowering; `run` changes the module in place.

    Attributes:
        name: What `--stop-after=` and `--print-after=` call it.
        title: What the banner of `--print-after` calls it.
        run: The step.
    """

    name: str
    title: str
    run: Callable[[Module, LoweringContext], None]


STAGES: Final = (
    Stage("to-2d", "LowerTensorsTo2D", run_to_2d),
    Stage("to-tiles", "Lower2DToTiles", run_to_tiles),
    Stage("legalize", "LegalizeTiles", run_legalize),
)
