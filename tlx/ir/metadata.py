"""Metadata of loads and stores: non-temporal stores, streaming loads, loads without subnormals."""

from __future__ import annotations

import re
from typing import Final

from tlx.ir.instructions import Instruction
from tlx.ir.module import Module, Raw

_NODES: Final = re.compile(r"(?m)^!(\d+) = (.*?)\s*$")
_ONE: Final = "!{i32 1}"
_NONTEMPORAL: Final = ", !nontemporal "
NO_SUBNORMALS: Final = ", !tlx.flushed !{}"
"""What marks a load of floats none of which is subnormal."""
STREAMING: Final = ", !tlx.passing !{}"
"""What marks a load of what has left the first cache before it is read again."""


def nontemporal_metadata(module: Module) -> str:
    """What marks a store past the caches: `, !nontemporal !7`. The node is added where the module has none."""
    nodes = {text: number for number, text in reversed(_NODES.findall(module.raw_text()))}
    if _ONE not in nodes:
        nodes[_ONE] = str(1 + max((int(number) for number in nodes.values()), default=-1))
        module.items.append(Raw(f"\n\n!{nodes[_ONE]} = {_ONE}\n"))
    return f"{_NONTEMPORAL}!{nodes[_ONE]}"


def is_nontemporal(instruction: Instruction) -> bool:
    """Whether a store goes past the caches."""
    return _NONTEMPORAL in instruction.text


def is_streaming(instruction: Instruction) -> bool:
    """Whether what is loaded need not stay in the first cache."""
    return STREAMING in instruction.text


def has_no_subnormals(instruction: Instruction) -> bool:
    """Whether what is loaded is no subnormal float."""
    return NO_SUBNORMALS in instruction.text
