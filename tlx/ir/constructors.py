"""Functions that run before `main`: entries of `@llvm.global_ctors`."""

from __future__ import annotations

import re
from typing import Final

from tlx.ir.module import Module, Raw

_EXISTING: Final = re.compile(
    r"@llvm\.global_ctors = appending global \[(\d+) x (\{[^\]]*?\})\] \[(.*?)\]\s*$", re.MULTILINE | re.DOTALL
)
_PRIORITY: Final = 65535


def add_constructor(module: Module, name: str) -> None:
    """Have function `@name` (void, no parameters) called when the program starts.

    Other constructors of the module are kept.
    """
    function, data, null = ("void ()*", "i8*", "null") if module.typed_pointers else ("ptr", "ptr", "null")
    type_ = f"{{ i32, {function}, {data} }}"
    entry = f"{type_} {{ i32 {_PRIORITY}, {function} @{name}, {data} {null} }}"
    for item in module.items:
        if isinstance(item, Raw) and (found := _EXISTING.search(item.text)):
            count = int(found.group(1)) + 1
            text = f"@llvm.global_ctors = appending global [{count} x {type_}] [{found.group(3)}, {entry}]"
            item.text = item.text[: found.start()] + text + item.text[found.end() :]
            return
    module.append(Raw(f"\n\n@llvm.global_ctors = appending global [1 x {type_}] [{entry}]"))
