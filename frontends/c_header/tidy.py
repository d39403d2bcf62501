"""What is left when placeholders are gone: dead casts, declarations, and attributes that forbid all work.

declare i32 @tensor_typeinfo(...)                   (gone)
%d = bitcast <2 x i32> %shape to double             (gone, if nobody uses it)
define void @f() #0  with  #0 = { noinline optnone ... }  ->  define void @f() #4  with  #4 = { noinline ... }
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from tlx.frontends.c_header.symbols import placeholder
from tlx.ir.module import Declaration, Function, Module, Raw
from tlx.ir.rewriter import uses

_DEAD: Final = frozenset(
    "bitcast fpext fptrunc sext zext trunc phi select insertelement extractelement shufflevector load".split()
)


def remove_dead_code(function: Function) -> None:
    """Take out conversions, merges and loads without a use."""
    changed = True
    while changed:
        used = uses(function)
        changed = False
        for block in function.blocks:
            kept = [i for i in block.instructions if i.opcode not in _DEAD or i.flags or used.get(str(i.result))]
            changed = changed or len(kept) < len(block.instructions)
            block.instructions = kept


def remove_declarations(module: Module) -> None:
    """Take out the declarations of placeholders."""
    for item in list(module.items):
        if isinstance(item, Declaration) and placeholder(item.name) is not None:
            module.remove(item)


def allow_optimisation(module: Module, functions: Iterable[Function]) -> None:
    """Drop `optnone`, which clang puts on functions at -O0."""
    fresh: dict[str, str] = {}
    for function in functions:
        attributes = function.signature.attributes
        for group in re.findall(r"#\d+", attributes):
            if re.search(r"\boptnone\b", module.attribute_groups.get(group, "")):
                fresh.setdefault(group, _without_optnone(module, group))
                function.replace_attributes(re.sub(rf"{group}\b", fresh[group], function.signature.attributes))
        if re.search(r"\boptnone\b", attributes):
            function.replace_attributes(re.sub(r"\s*\boptnone\b", "", function.signature.attributes))


def _without_optnone(module: Module, group: str) -> str:
    """The number of a new attribute group: the old one without `optnone`."""
    numbers = [int(name.removeprefix("#")) for name in module.attribute_groups]
    name = f"#{max(numbers) + 1}"
    body = re.sub(r"\boptnone\s*", "", module.attribute_groups[group])
    module.attribute_groups[name] = body
    module.items.append(Raw(f"\nattributes {name} = {{ {body} }}\n"))
    return name
