"""The lowering, as a flat list of stages: N-D to 2-D, 2-D to tiles, tiles to target instructions."""

from __future__ import annotations

from typing import Final

from tlx.lower.legalize import legalize as run_legalize
from tlx.lower.stage import Stage
from tlx.lower.to_2d import to_2d as run_to_2d
from tlx.lower.to_tiles import to_tiles as run_to_tiles

STAGES: Final = (
    Stage("to-2d", "LowerTensorsTo2D", run_to_2d),
    Stage("to-tiles", "Lower2DToTiles", run_to_tiles),
    Stage("legalize", "LegalizeTiles", run_legalize),
)
