"""Functions that run before `main`: entries of `@llvm.global_ctors`."""

from __future__ import annotations

import re
from typing import Final

from tlx.ir.module import Module, Raw

_EXISTING: Final = re.compile(
    r"^@llvm\.global_ctors\s*=\s*appending\s+(?:\w+\s+)*?global\s+\[(\d+) x ([^\[\]]+)\]\s*(\[|zeroinitializer)",
    re.MULTILINE,
)
_PRIORITY: Final = 65535


def add_constructor(module: Module, name: str) -> None:
    """Have function `@name` (void, no parameters) called when the program starts.

    Other constructors of the module are kept.

    Rewrite:
        @llvm.global_ctors = appending global [1 x T] [T x]
            ->
        @llvm.global_ctors = appending global [2 x T] [T x, T { i32 65535, ptr @name, ptr null }]
    """
    function, data = ("void ()*", "i8*") if module.typed_pointers else ("ptr", "ptr")
    type_ = f"{{ i32, {function}, {data} }}"
    value = f"{{ i32 {_PRIORITY}, {function} @{name}, {data} null }}"
    for item in module.items:
        if isinstance(item, Raw) and (found := _EXISTING.search(item.text)):
            count, type_, opening = int(found[1]) + 1, found[2], found[3]
            if type_.startswith("{") and type_.count(",") == 1:  # before LLVM 9: no associated data
                value = f"{{ i32 {_PRIORITY}, {function} @{name} }}"
            end = _closing(item.text, found.end()) if opening == "[" else found.end()
            kept = item.text[found.end() : end - 1].strip() + ", " if opening == "[" else ""
            text = f"@llvm.global_ctors = appending global [{count} x {type_}] [{kept}{type_} {value}]"
            item.text = item.text[: found.start()] + text + item.text[end:]
            return
    module.append(Raw(f"\n\n@llvm.global_ctors = appending global [1 x {type_}] [{type_} {value}]"))


def _closing(text: str, start: int) -> int:
    """Behind the bracket that closes the one in front of `start`."""
    depth = 1
    for at in range(start, len(text)):
        depth += {"[": 1, "]": -1}.get(text[at], 0)
        if not depth:
            return at + 1
    return len(text)
