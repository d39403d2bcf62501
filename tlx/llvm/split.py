"""Splits a module into parts that LLVM compiles at the same time: its large kernels, and everything else.

    define void @f(...) { ... call @tlx.k(...) }      define void @f(...) { ... call @tlx.k(...) }
    define internal void @tlx.k(...) { ... }      ->  declare hidden void @tlx.k(...)
    declare float @llvm.fma.f32(...)                  ----
                                                      define hidden void @tlx.k(...) { ... }
                                                      declare float @llvm.fma.f32(...)

LLVM's passes leave large kernels alone (see `tlx.llvm.service`), so that the code is that of the whole module. The
parts depend on the text only, not on the number of processors.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from tlx.llvm.service import KERNEL_NAME, LARGE_KERNEL

_PART_SIZE: Final = 1 << 20
"""Least bytes of kernels in a part: LLVM compiles them in about 0.5 s, and starts in 0.1 s."""
_MOST_PARTS: Final = 6
_KERNEL: Final = "\ndefine internal "
_HEADER: Final = re.compile(rf"(?P<type>[^@\n]*)@(?P<name>{KERNEL_NAME})(?P<rest>\(.*) \{{")
_GLOBAL: Final = re.compile(r"@([-\w.$]+)")
_SHARED_LINE: Final = re.compile(r"(?m)^(?:target|attributes|!).*$")
_DECLARATION: Final = re.compile(r"(?m)^declare [^@\n]*@([-\w.$]+)\(.*$")
_CONSTANT: Final = re.compile(r"(?m)^@([-\w.$]+) = (?:private|internal) (?:unnamed_addr )?constant .*$")
_OPAQUE: Final = ("optnone", "!DI", "uselistorder")
"""What is in modules that are not split: kernels that LLVM emulates, debug information, orders of uses."""


@dataclass(frozen=True)
class _LargeKernel:
    """A large kernel: where its definition is in the text, its signature without linkage, and what it mentions."""

    name: str
    start: int
    end: int
    signature: str
    mentioned: frozenset[str]


def split_module(text: str) -> list[str]:
    """The parts of a module: everything but its large kernels, then kernels; one part for most modules."""
    if len(text) < _PART_SIZE or any(word in text for word in _OPAQUE):
        return [text]
    large = {kernel.name: kernel for kernel in _large_kernels(text)}
    outside = _without(text, large)
    lines = {match[1]: match[0] for pattern in (_DECLARATION, _CONSTANT) for match in pattern.finditer(outside)}
    kernels = _separable(large, lines.keys() - large)
    count = min(_MOST_PARTS, sum(kernel.end - kernel.start for kernel in kernels.values()) // _PART_SIZE)
    if not count:
        return [text]
    shared = "\n".join(_SHARED_LINE.findall(outside))
    groups = _balanced(kernels.values(), count)
    return [_without(text, kernels), *(_part(text, group, lines, shared) for group in groups)]


def _large_kernels(text: str) -> list[_LargeKernel]:
    kernels: list[_LargeKernel] = []
    at = text.find(_KERNEL)
    while at >= 0:
        start = at + len(_KERNEL)
        header, end = _HEADER.match(text, start), text.find("\n}", start) + 2
        if header is not None and end - start >= LARGE_KERNEL:
            mentioned = frozenset(_GLOBAL.findall(text, header.end(), end))
            signature = f"{header['type']}@{header['name']}{header['rest']}"
            kernels.append(_LargeKernel(header["name"], at + 1, end, signature, mentioned))
        at = text.find(_KERNEL, end)
    return kernels


def _separable(kernels: Mapping[str, _LargeKernel], declared: AbstractSet[str]) -> dict[str, _LargeKernel]:
    """The kernels that mention nothing but declared functions, constants and each other, by name."""
    known = dict(kernels)
    while bound := [kernel.name for kernel in known.values() if kernel.mentioned - declared - known.keys()]:
        for name in bound:
            del known[name]
    return known


def _balanced(kernels: Collection[_LargeKernel], count: int) -> list[list[_LargeKernel]]:
    """Groups of kernels of about the same size, each in the order of the text."""
    groups: list[list[_LargeKernel]] = [[] for _ in range(count)]
    sizes = [0] * count
    for kernel in sorted(kernels, key=lambda k: (k.start - k.end, k.start)):
        smallest = sizes.index(min(sizes))
        groups[smallest].append(kernel)
        sizes[smallest] += kernel.end - kernel.start
    return [sorted(group, key=lambda k: k.start) for group in groups]


def _without(text: str, kernels: Mapping[str, _LargeKernel]) -> str:
    """The text with declarations in place of kernels."""
    pieces: list[str] = []
    done = 0
    for kernel in kernels.values():
        pieces += [text[done : kernel.start], f"declare hidden {kernel.signature}"]
        done = kernel.end
    return "".join([*pieces, text[done:]])


def _part(text: str, group: list[_LargeKernel], lines: Mapping[str, str], shared: str) -> str:
    """A module of some kernels, with what they mention."""
    own = {kernel.name for kernel in group}
    mentioned = dict.fromkeys(name for kernel in group for name in sorted(kernel.mentioned - own))
    others = [lines[name] for name in mentioned]
    bodies = [text[k.start : k.end].replace("define internal ", "define hidden ", 1) for k in group]
    return "\n".join([shared, *others, *bodies, ""])
