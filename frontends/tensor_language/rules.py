"""Rules by class of instruction.

The packages `check`, `emit` and `v1` do something with each instruction. A module of theirs that knows how has a table
from classes to rules whose name ends in `RULES`; adding a file is enough.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any

from tlx.frontends.tensor_language.syntax.ast.base import Instruction


@cache
def rules_of(package: str) -> Mapping[type[Instruction], Any]:
    """The rules of all modules of a package and the packages in it."""
    found: dict[type[Instruction], Any] = {}
    for table in tables_of(package):
        found.update(table)
    return found


def tables_of(package: str) -> Iterator[Mapping[type[Instruction], Any]]:
    """The tables of rules of all modules of a package and the packages in it."""
    for info in pkgutil.walk_packages(import_module(package).__path__, f"{package}."):
        module = import_module(info.name)
        yield from (table for name, table in vars(module).items() if name.endswith("RULES"))
