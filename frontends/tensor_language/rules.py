"""Rules by class of instruction.

The packages `check`, `emit` and `v1` do something with each instruction. A module of theirs that knows how has a table
`RULES` from classes to rules; adding a file is enough.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any

from tlx.frontends.tensor_language.ast.base import Instruction


@cache
def rules_of(package: str) -> Mapping[type[Instruction], Any]:
    """The rules of all modules of a package."""
    found: dict[type[Instruction], Any] = {}
    for info in pkgutil.iter_modules(import_module(package).__path__):
        found.update(getattr(import_module(f"{package}.{info.name}"), "RULES", {}))
    return found
