"""Small words of messages: what instructions are called, `2 indices`, `0, 1 or 2`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Final

from tlx.frontends.tensor_language.ast import mixed, spmd
from tlx.frontends.tensor_language.ast.base import Instruction

_UPPER: Final = re.compile(r"(?<!^)(?=[A-Z])")

# Classes that stand for several instructions; the name of any other is its class's.
_SPELLINGS: Final[dict[type[Instruction], Callable[[Any], str]]] = {
    mixed.ArithBinary: lambda node: node.op,
    mixed.ArithUnary: lambda node: node.op,
    mixed.Comparison: lambda node: node.op,
    mixed.Math: lambda node: node.op,
    mixed.AtomicUpdate: lambda node: f"atomic_{node.op}",
    mixed.Builtin: lambda node: node.name if node.component is None else f"{node.name}.{node.component}",
    spmd.SubgroupOperation: lambda node: f"subgroup_{node.kind}_{node.op}",
    spmd.CooperativeMatrixLoad: lambda node: f"cooperative_matrix_{'atomic_' * node.atomic}load",
    spmd.CooperativeMatrixStore: lambda node: f"cooperative_matrix_{'atomic_' * node.atomic}store",
    spmd.CooperativeMatrixAtomicUpdate: lambda node: f"cooperative_matrix_atomic_{node.op}",
    spmd.CooperativeMatrixReduce: lambda node: f"cooperative_matrix_reduce_{node.op}",
}


def mnemonic(node: Instruction) -> str:
    """The instruction's name, without modifiers."""
    spelling = _SPELLINGS.get(type(node))
    return spelling(node) if spelling else _UPPER.sub("_", type(node).__name__).lower()


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """`1 index`, `2 indices`."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def listed(words: Iterable[object], last: str) -> str:
    """`0, 1 or 2`."""
    *first, final = map(str, words)
    return f"{', '.join(first)} {last} {final}" if first else final
