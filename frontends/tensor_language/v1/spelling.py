"""Types as the first version spells them: `i1`, groups without a size, no address spaces."""

from __future__ import annotations

from dataclasses import replace

from tlx.frontends.tensor_language.types import BOOL, GroupType, MemrefType, Type, extent_text


def without_space(type_: Type) -> Type:
    """The type with everything in global memory: what a text of the first version can say of it."""
    if isinstance(type_, MemrefType):
        return replace(type_, address_space="global")
    return type_


def spell(type_: Type) -> str:
    """The spelling of a type in the first version."""
    if type_ == BOOL:
        return "i1"
    if isinstance(type_, GroupType):
        offset = "" if type_.offset == 0 else f",offset:{extent_text(type_.offset)}"
        return f"group<{type_.memref}{offset}>"
    return str(without_space(type_))
