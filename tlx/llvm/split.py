"""Splits a module into parts that LLVM compiles at the same time: its large kernels, and everything else.

    define void @f(...) { ... call @tlx.k(...) }      define void @f(...) { ... call @tlx.k(...) }
    define internal void @tlx.k(...) { ... }      ->  declare hidden void @tlx.k(...)
    declare float @llvm.fma.f32(...)                  ----
                                                      define hidden void @tlx.k(...) { ... }
                                                      declare float @llvm.fma.f32(...)

A kernel that is called from another part, whatever its size, is hidden, too. LLVM's passes leave large kernels alone
(see `tlx.llvm.service`), so that the code is that of the whole module. The parts depend on the text only, not on the
number of processors.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tlx.llvm.service import KERNEL_NAME, LARGE_KERNEL

_PART_SIZE: Final = 1 << 20
"""Least bytes of kernels in a part: LLVM compiles them in about 0.5 s, and starts in 0.1 s."""
_MOST_PARTS: Final = 6
_KERNEL: Final = "\ndefine internal "
_HEADER: Final = re.compile(rf"(?P<type>[^@\n]*)@(?P<name>{KERNEL_NAME})(?P<rest>\(.*) \{{")
_GLOBAL: Final = re.compile(r"@([-\w.$]+)")
_SHARED_LINE: Final = re.compile(r"(?m)^(?:target|attributes|!|%).*$")
_DECLARATION: Final = re.compile(r"(?m)^declare [^@\n]*@([-\w.$]+)\(.*$")
_CONSTANT: Final = re.compile(r"(?m)^@([-\w.$]+) = (?:private|internal) (?:unnamed_addr )?constant [^@\n]*$")
"""A constant, of which each part has its own; not one that points to other globals."""
_OPAQUE: Final = ("optnone", "!DI", "uselistorder")
"""What is in modules that are not split: kernels that LLVM emulates, debug information, orders of uses."""


@dataclass(frozen=True)
class _Kernel:
    """A kernel: where its definition is in the text, its signature without linkage, and what it mentions."""

    name: str
    start: int
    end: int
    signature: str
    mentioned: frozenset[str]

    @property
    def size(self) -> int:
        """Bytes of its definition."""
        return self.end - self.start

    def as_hidden_function(self, text: str) -> str:
        """Its definition, which other parts can call."""
        return text[self.start : self.end].replace("define internal ", "define hidden ", 1)


def split_module(text: str) -> list[str]:
    """The parts of a module: everything but its large kernels, then kernels; one part for most modules."""
    if len(text) < _PART_SIZE or any(word in text for word in _OPAQUE):
        return [text]
    defined = {kernel.name: kernel for kernel in _kernels(text)}
    large = {name: kernel for name, kernel in defined.items() if kernel.size >= LARGE_KERNEL}
    outside = _replaced(text, large, dict.fromkeys(large, ""))
    lines = {match[1]: match[0] for pattern in (_DECLARATION, _CONSTANT) for match in pattern.finditer(outside)}
    declared = {name: f"declare hidden {kernel.signature}" for name, kernel in defined.items()}
    kernels = [kernel for kernel in large.values() if not kernel.mentioned - lines.keys() - declared.keys()]
    count = min(_MOST_PARTS, sum(kernel.size for kernel in kernels) // _PART_SIZE)
    if not count:
        return [text]
    shared = "\n".join(_SHARED_LINE.findall(outside))
    groups = _balanced(kernels, count)
    called = {name for kernel in kernels for name in kernel.mentioned}
    changed = {name: kernel.as_hidden_function(text) for name, kernel in defined.items() if name in called}
    changed |= {kernel.name: declared[kernel.name] for kernel in kernels}
    rest = _replaced(text, defined, changed)
    return [rest, *(_part(text, group, lines | declared, shared) for group in groups)]


def _kernels(text: str) -> list[_Kernel]:
    kernels: list[_Kernel] = []
    at = text.find(_KERNEL)
    while at >= 0:
        start = at + len(_KERNEL)
        header, end = _HEADER.match(text, start), text.find("\n}", start) + 2
        if header is not None:
            mentioned = frozenset(_GLOBAL.findall(text, header.end(), end))
            signature = f"{header['type']}@{header['name']}{header['rest']}"
            kernels.append(_Kernel(header["name"], at + 1, end, signature, mentioned))
        at = text.find(_KERNEL, end)
    return kernels


def _balanced(kernels: Sequence[_Kernel], count: int) -> list[list[_Kernel]]:
    """Groups of kernels of about the same size, each in the order of the text."""
    groups: list[list[_Kernel]] = [[] for _ in range(count)]
    sizes = [0] * count
    for kernel in sorted(kernels, key=lambda k: (k.start - k.end, k.start)):
        smallest = sizes.index(min(sizes))
        groups[smallest].append(kernel)
        sizes[smallest] += kernel.size
    return [sorted(group, key=lambda k: k.start) for group in groups]


def _replaced(text: str, kernels: Mapping[str, _Kernel], definitions: Mapping[str, str]) -> str:
    """The text with other definitions of some kernels, which are in the order of the text."""
    pieces: list[str] = []
    done = 0
    for name, kernel in kernels.items():
        if name in definitions:
            pieces += [text[done : kernel.start], definitions[name]]
            done = kernel.end
    return "".join([*pieces, text[done:]])


def _part(text: str, group: list[_Kernel], lines: Mapping[str, str], shared: str) -> str:
    """A module of some kernels, with what they mention."""
    own = {kernel.name for kernel in group}
    mentioned = dict.fromkeys(name for kernel in group for name in sorted(kernel.mentioned - own))
    others = [lines[name] for name in mentioned]
    return "\n".join([shared, *others, *(kernel.as_hidden_function(text) for kernel in group), ""])
