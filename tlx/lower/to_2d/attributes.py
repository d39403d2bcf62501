"""Attributes of a function that allocates: what it said about memory may not be true any more."""

from __future__ import annotations

import re
from typing import Final

from tlx.ir.module import Function, Module, Raw

_MEMORY: Final = re.compile(
    r"(?<![\w\"-])(?:memory\([^)]*\)|readnone|readonly|writeonly|argmemonly|inaccessiblememonly|"
    r"inaccessiblemem_or_argmemonly|speculatable)(?![\w\"=-])\s?"
)


def allow_heap(module: Module, function: Function) -> None:
    """Take attributes off a function that forbid it to call malloc and free.

    An attribute group that others share is replaced by a new one::

        define void @f(...) #0 {            attributes #0 = { nounwind memory(argmem: readwrite) }
        ->
        define void @f(...) #1 {            attributes #1 = { nounwind }
    """
    attributes = function.signature.attributes
    changed = _MEMORY.sub("", attributes).strip()
    for group in re.findall(r"#\d+", changed):
        body = module.attribute_groups.get(group, "")
        kept = _MEMORY.sub("", body).strip()
        if kept != body:
            changed = changed.replace(group, _new_group(module, kept) if kept else "")
    changed = " ".join(changed.split()) if changed != attributes else attributes
    if changed != attributes:
        function.replace_attributes(changed)


def _new_group(module: Module, body: str) -> str:
    known = module.attribute_groups
    for name, text in known.items():
        if text == body:
            return name
    number = 1 + max((int(name[1:]) for name in known), default=-1)
    name = f"#{number}"
    module.items.append(Raw(f"\nattributes {name} = {{ {body} }}\n"))
    known[name] = body
    return name
