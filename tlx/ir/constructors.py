"""Functions that run before `main`: entries of `@llvm.global_ctors`."""

from __future__ import annotations

import re
from typing import Final

from tlx.ir.module import Module, Raw

_EXISTING: Final = re.compile(
    r"@llvm\.global_ctors = appending global \[(\d+) x (\{[^\]]*?\})\] \[(.*?)\]\s*$", re.MULTILINE | re.DOTALL
)
_ENTRY: Final = re.compile(r'\{ i32 (\d+), (?:ptr|void \(\)\*) (@(?:"[^"]*"|[-\w$.]+)), [^}]*\}')
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


def called_by(text: str, name: str) -> str:
    """A module's text with its constructors called by a function `@name` in place of the program's start.

    For code that is loaded by a linker that runs none. A module without constructors stays as it is.

    Rewrite:
        @llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [... { i32 65535, ptr @a, ptr null }]
        ->
        define void @name() {
          call void @a()
          ret void
        }
    """
    found = _EXISTING.search(text)
    if found is None:
        return text
    entries = sorted((int(priority), at) for at, (priority, _) in enumerate(_ENTRY.findall(found.group(3))))
    names = [function for _, function in _ENTRY.findall(found.group(3))]
    calls = "".join(f"  call void {names[at]}()\n" for _, at in entries)
    return f"{text[: found.start()]}{text[found.end() :]}\ndefine void @{name}() {{\n{calls}  ret void\n}}\n"
