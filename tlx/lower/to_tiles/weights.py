"""Weights: a B that is known at compile time is packed then, and the program holds its panels.

    @w = private constant [...]                     @tlx.panels = private unnamed_addr constant [...], align 64
    kernel(c, a, @w): pack B, multiply       ->     kernel(c, a, @tlx.panels): multiply

Of a target with several versions, the global holds B in a form for each that reads it in its own way:

    @tlx.panels:   avx2's panels | avx512's panels | amx's tiles          each version's kernel adds its place
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from tlx.diagnostics import Span
from tlx.ir.module import Function, Module, Raw
from tlx.ir.rewriter import definitions
from tlx.ir.types import I8, ArrayType
from tlx.ir.values import ConstExpr, Global, Local, Value
from tlx.lower.to_tiles.problem import Gemm
from tlx.lower.to_tiles.recipe import Recipe
from tlx.lower.to_tiles.remarks import size_in_words
from tlx.lower.to_tiles.shared import Panels
from tlx.lower.to_tiles.weights_packer import elements_of, extent_of, packed, start_of
from tlx.remarks import Kind, Remarks
from tlx.target import Target

if TYPE_CHECKING:
    from tlx.evaluate.constant_memory import ConstantMemory

_ALIGN: Final = 64


@dataclass(frozen=True, slots=True)
class Form:
    """How B lies for a version of a target: by which recipe, and where in a block of forms, in how many bytes."""

    recipe: Recipe
    target: Target
    at: int
    size: int


def forms_of(gemm: Gemm, versions: Sequence[tuple[Recipe, Target]]) -> list[Form]:
    """The form for each version; those that read the same have one. What is not packed lies in the block as it is."""
    known: dict[tuple[object, ...], Form] = {}
    forms: list[Form] = []
    end = 0
    for recipe, target in versions:
        panels = Panels.of(gemm, recipe)
        key = (panels, recipe.unit == "matrix", recipe.correction) if recipe.pack_b else ()
        if key not in known:
            size = panels.size(recipe) if recipe.pack_b else extent_of(gemm)
            known[key] = Form(recipe, target, end, size)
            end += -(-size // _ALIGN) * _ALIGN
        forms.append(known[key])
    return forms


def given_weights(gemm: Gemm, versions: Sequence[tuple[Recipe, Target]]) -> tuple[Recipe, ...]:
    """The recipes of versions for a B that the compiler has packed, which several find in a block of forms."""
    if len(versions) == 1:
        return (replace(versions[0][0], shared_b=True),)
    forms = forms_of(gemm, versions)
    places = [form.at + (0 if form.recipe.pack_b else start_of(gemm)) for form in forms]
    return tuple(replace(r, shared_b=r.pack_b, b_at=at) for (r, _), at in zip(versions, places, strict=True))


@dataclass(eq=False)
class Weights:
    """The constants of a module, and the panels that were made of them; equal panels are one global.

    Attributes:
        module: The module.
        remarks: Where it is said what is packed.
        most: Bytes that are packed at compile time.
    """

    module: Module
    remarks: Remarks
    most: int
    _made: dict[bytes, Global] = field(default_factory=dict[bytes, Global])

    @cached_property
    def _memory(self) -> ConstantMemory:
        from tlx.evaluate.constant_memory import ConstantMemory

        return ConstantMemory(self.module)

    def are_at(self, function: Function, pointer: Value) -> bool:
        """Whether a pointer is one into a global that says that it is constant."""
        made_by = definitions(function) if isinstance(pointer, Local) else {}
        while isinstance(pointer, Local) and pointer.name in made_by:
            made = made_by[pointer.name]
            if made.opcode not in ("bitcast", "getelementptr"):
                return False
            pointer = made.operands[0]
        while isinstance(pointer, ConstExpr) and pointer.operands:
            pointer = pointer.operands[0]
        if not isinstance(pointer, Global):
            return False
        pattern = rf"(?m)^[ \t]*@{re.escape(pointer.name)}[ \t]*=[^\n\"]*?\bconstant\b"
        return re.search(pattern, self.module.source.text) is not None

    def panels(
        self,
        function: Function,
        pointer: Value,
        gemm: Gemm,
        versions: Sequence[tuple[Recipe, Target]],
        span: Span | None,
    ) -> Value | None:
        """The global with the B at a pointer in a form for each version; None where packing is left to the program."""
        if not any(recipe.pack_b for recipe, _ in versions):
            return None
        forms = list({form.at: form for form in forms_of(gemm, versions)}.values())
        size = forms[-1].at + forms[-1].size
        if size > self.most:
            text = f"{size_in_words(size)} of panels exceed {size_in_words(self.most)}; --weight-bytes raises that"
            self._say("missed", f"{gemm.title}: constant B packed when the program runs: {text}", span)
            return None
        found = self._memory.find(definitions(function), pointer)
        source = elements_of(*found, gemm) if found else None
        if source is None:
            return None
        words = f", in {len(forms)} forms" if len(forms) > 1 else ""
        self._say("applied", f"{gemm.title}: B packed at compile time: {size_in_words(size)}{words}", span)
        data = bytearray(size)
        for form in forms:
            data[form.at : form.at + form.size] = _laid_out(source, gemm, form)
        key = bytes(data)
        if key not in self._made:
            self._made[key] = self._add(key)
        return self._made[key]

    def _say(self, kind: Kind, text: str, span: Span | None) -> None:
        self.remarks.add(kind, "to-tiles", text, span)

    def _add(self, data: bytes) -> Global:
        name, type_ = self.module.global_names.fresh("tlx.panels"), ArrayType(len(data), I8)
        value = f'c"{_escaped(data)}"' if any(data) else "zeroinitializer"
        self.module.append(Raw(f"\n\n@{name} = private unnamed_addr constant {type_} {value}, align 64"))
        return Global(self.module.pointer_to(type_), name)


def _laid_out(source: bytes, gemm: Gemm, form: Form) -> bytes:
    """A form of B, given all its elements."""
    return packed(source, gemm, form.recipe, form.target, form.size) if form.recipe.pack_b else source


_ESCAPES: Final = [chr(byte) if chr(byte).isalnum() and byte < 128 else f"\\{byte:02X}" for byte in range(256)]


def _escaped(data: bytes) -> str:
    """Bytes as they are spelled in `c"..."`."""
    return "".join([_ESCAPES[byte] for byte in data])
