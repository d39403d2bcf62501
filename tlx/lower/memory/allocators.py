"""Who allocates the memory that functions work in."""

from __future__ import annotations

from typing import Final, Literal

Workspace = Literal["malloc", "arena", "argument"]
"""malloc in each call; memory that each thread keeps between calls; the caller, in one more argument."""

WORKSPACES: Final[tuple[Workspace, ...]] = ("malloc", "arena", "argument")
