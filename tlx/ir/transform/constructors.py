"""Functions that run before `main`: entries of `@llvm.global_ctors`."""

from __future__ import annotations

import re
from typing import Final

from tlx.ir.module import Module, Raw

_EXISTING: Final = re.compile(
    r"^@llvm\.global_ctors\s*=\s*appending\s+(?:\w+\s+)*?global\s+\[(\d+) x ([^\[\]]+)\]\s*(\[|zeroinitializer)",
    re.MULTILINE,
)
_ENTRY: Final = re.compile(r'\{\s*i32\s+(\d+),\s*(?:ptr|void \(\)\*)\s+(@(?:"[^"]*"|[-\w$.]+))\s*[,}]')
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
            end = _end_of_list(item.text, found.end()) if opening == "[" else found.end()
            kept = item.text[found.end() : end - 1].strip() + ", " if opening == "[" else ""
            text = f"@llvm.global_ctors = appending global [{count} x {type_}] [{kept}{type_} {value}]"
            item.text = item.text[: found.start()] + text + item.text[end:]
            return
    module.append(Raw(f"\n\n@llvm.global_ctors = appending global [1 x {type_}] [{type_} {value}]"))


def collect_constructors(text: str, name: str) -> str:
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
    end = _end_of_list(text, found.end()) if found[3] == "[" else found.end()
    entries = _ENTRY.findall(text, found.end(), end)
    line_end = text.find("\n", end)
    rest = text[line_end:] if line_end >= 0 else ""
    calls = "".join(f"  call void {entry[1]}()\n" for entry in sorted(entries, key=lambda entry: int(entry[0])))
    return f"{text[: found.start()]}{rest}\ndefine void @{name}() {{\n{calls}  ret void\n}}\n"


def _end_of_list(text: str, start: int) -> int:
    """Behind the bracket that closes the one in front of `start`."""
    depth = 1
    for at in range(start, len(text)):
        depth += {"[": 1, "]": -1}.get(text[at], 0)
        if not depth:
            return at + 1
    return len(text)
