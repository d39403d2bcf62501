"""Metadata that instructions are given."""

from __future__ import annotations

import re
from typing import Final

from tlx.ir.module import Instruction, Module, Raw

_NODES: Final = re.compile(r"(?m)^!(\d+) = (.*?)\s*$")
_ONE: Final = "!{i32 1}"
_NONTEMPORAL: Final = ", !nontemporal "
FLUSHED: Final = ", !tlx.flushed !{}"
"""What marks a load of floats none of which is subnormal."""
PASSING: Final = ", !tlx.passing !{}"
"""What marks a load of what has left the first cache before it is read again."""


def nontemporal(module: Module) -> str:
    """What marks a store past the caches: `, !nontemporal !7`. The node is added where the module has none."""
    nodes = {text: number for number, text in reversed(_NODES.findall(module.raw_text()))}
    if _ONE not in nodes:
        nodes[_ONE] = str(1 + max((int(number) for number in nodes.values()), default=-1))
        module.items.append(Raw(f"\n\n!{nodes[_ONE]} = {_ONE}\n"))
    return f"{_NONTEMPORAL}!{nodes[_ONE]}"


def is_nontemporal(instruction: Instruction) -> bool:
    """Whether a store goes past the caches."""
    return _NONTEMPORAL in instruction.text


def is_passing(instruction: Instruction) -> bool:
    """Whether what is loaded need not stay in the first cache."""
    return PASSING in instruction.text


def is_flushed(instruction: Instruction) -> bool:
    """Whether what is loaded is no subnormal float."""
    return FLUSHED in instruction.text
