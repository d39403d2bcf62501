"""The table of operations, collected from the `OPERATIONS` of each module."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib import import_module

from tlx.fuzz.graphs.drawing import GraphOperation


@cache
def table() -> Mapping[str, GraphOperation]:
    """All operations by name."""
    modules = [import_module(f"{__name__}.{info.name}") for info in pkgutil.iter_modules(__path__)]
    return {operation.name: operation for module in modules for operation in module.OPERATIONS}
