"""Constant weights: B is packed at compile time, and the program holds its panels.

    @w = private constant [...]                     @tlx.panels = private unnamed_addr constant [...], align 64
    kernel(c, a, @w): pack B, multiply       ->     kernel(c, a, @tlx.panels): multiply

For a target with several versions, the global holds B once in each layout that a version reads:

    @tlx.panels:   avx2's panels | avx512's panels | amx's tiles          each version's kernel adds its offset

The kernel that packs B is the only code that determines the layout of panels, so the compiler runs that kernel
(`LoweringContext.run_kernel`). It only moves, widens and sums integers, so the bytes are the same on every machine.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from tlx.diagnostics import Span, size_text
from tlx.ir.functions import Function
from tlx.ir.instructions import Instruction
from tlx.ir.module import Module, UnparsedText
from tlx.ir.parser.module import parse
from tlx.ir.rewrite import definitions, underlying_object
from tlx.ir.types import I8, ArrayType
from tlx.ir.values import ConstExpr, Global, Value
from tlx.lower.context import KernelRunner
from tlx.lower.memory.allocation import CACHE_LINE
from tlx.lower.remarks import RemarkKind, Remarks
from tlx.lower.to_tiles.pack.panels import PackedPanels, b_range, packing_kernel
from tlx.lower.to_tiles.problem import Gemm
from tlx.lower.to_tiles.select.recipe import Recipe
from tlx.target.target import Target

if TYPE_CHECKING:
    from tlx.evaluate.globals import ConstantMemory


@dataclass(frozen=True, slots=True)
class PackedForm:
    """The form of B for a version of a target, in a block of several forms.

    Attributes:
        recipe, target: A version that reads it, and its recipe.
        at: Bytes from the start of the block.
        size: Bytes.
    """

    recipe: Recipe
    target: Target
    at: int
    size: int

    def key(self, gemm: Gemm) -> tuple[object, ...]:
        """Equal for equal forms of the same B."""
        return (*_layout(gemm, self.recipe), tuple(offset for _, offset in gemm.term_offsets))


def _layout(gemm: Gemm, recipe: Recipe) -> tuple[object, ...]:
    """What the layout of B depends on; an unpacked B is its own form."""
    if not recipe.packing.b:
        return (gemm.b,)
    return PackedPanels.of(gemm, recipe), recipe.mma.unit == "matrix", recipe.mma.correction


def packed_forms(gemm: Gemm, versions: Sequence[tuple[Recipe, Target]]) -> list[PackedForm]:
    """The form of B for each version; versions with the same layout share one. An unpacked B is its own form."""
    known: dict[tuple[object, ...], PackedForm] = {}
    forms: list[PackedForm] = []
    end = 0
    for recipe, target in versions:
        key = _layout(gemm, recipe)
        if key not in known:
            size = PackedPanels.of(gemm, recipe).size(recipe) if recipe.packing.b else b_extent(gemm)
            known[key] = PackedForm(recipe, target, end, size)
            end += -(-size // CACHE_LINE) * CACHE_LINE
        forms.append(known[key])
    return forms


def with_panel_offsets(gemm: Gemm, versions: Sequence[tuple[Recipe, Target]]) -> tuple[Recipe, ...]:
    """The recipes of several versions, with the offset of each one's form of B in a block of all forms."""
    forms = packed_forms(gemm, versions)
    places = [form.at + (0 if form.recipe.packing.b else b_start(gemm)) for form in forms]
    return tuple(
        replace(recipe, packing=replace(recipe.packing, b_panel_offset=at))
        for (recipe, _), at in zip(versions, places, strict=True)
    )


@dataclass(eq=False)
class ConstantWeights:
    """The constants of a module, and the panels packed from them; equal panels are one global.

    Attributes:
        module: The module.
        remarks: Receives a remark for each packed operand.
        max_bytes: Bytes of panels up to which B is packed at compile time.
        run_kernel: Runs the packing kernel; without it, B is packed when the program runs.
    """

    module: Module
    remarks: Remarks
    max_bytes: int
    run_kernel: KernelRunner | None
    _globals: dict[bytes, Global] = field(default_factory=dict[bytes, Global])

    @cached_property
    def _memory(self) -> ConstantMemory:
        from tlx.evaluate.globals import ConstantMemory

        return ConstantMemory(self.module)

    def is_constant(self, definitions: Mapping[str, Instruction], pointer: Value) -> bool:
        """Whether a pointer points into a global constant, by the definitions of its function's values."""
        pointer = underlying_object(pointer, definitions, ("bitcast", "getelementptr"))
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
        """The global that holds B packed for each version; None if the program has to pack it."""
        if self.run_kernel is None or not any(recipe.packing.b for recipe, _ in versions):
            return None
        if any(target.big_endian for _, target in versions):
            text = "the evaluator, which would pack it, is little endian, and the target is not"
            self._remark("missed", f"{gemm.title}: constant B packed when the program runs: {text}", span)
            return None
        forms = list({form.at: form for form in packed_forms(gemm, versions)}.values())
        size = forms[-1].at + forms[-1].size
        if size > self.max_bytes:
            text = f"{size_text(size)} of panels exceed {size_text(self.max_bytes)}; --weight-bytes raises that"
            self._remark("missed", f"{gemm.title}: constant B packed when the program runs: {text}", span)
            return None
        constant = self._memory.find(definitions(function), pointer)
        source = b_elements(*constant, gemm) if constant else None
        if source is None:
            return None
        words = f", in {len(forms)} forms" if len(forms) > 1 else ""
        self._remark("applied", f"{gemm.title}: B packed at compile time: {size_text(size)}{words}", span)
        data = bytearray(size)
        for form in forms:
            data[form.at : form.at + form.size] = self._packed(source, gemm, form)
        key = bytes(data)
        if key not in self._globals:
            self._globals[key] = self._add(key)
        return self._globals[key]

    def _packed(self, source: bytes, gemm: Gemm, form: PackedForm) -> bytes:
        """The bytes of a form of B, from the bytes of B."""
        if not form.recipe.packing.b:
            return source
        assert self.run_kernel is not None
        module, plain = parse(""), replace(form.target, features=(), level=0)  # any machine can run the kernel
        kernel = packing_kernel(module, gemm, form.recipe, plain)
        return self.run_kernel(module, kernel.name, source, b_start(gemm), form.size)

    def _remark(self, kind: RemarkKind, text: str, span: Span | None) -> None:
        self.remarks.add(kind, "to-tiles", text, span)

    def _add(self, data: bytes) -> Global:
        name, type_ = self.module.global_names.fresh("tlx.panels"), ArrayType(len(data), I8)
        value = f'c"{_escaped(data)}"' if any(data) else "zeroinitializer"
        self.module.append(
            UnparsedText(f"\n\n@{name} = private unnamed_addr constant {type_} {value}, align {CACHE_LINE}")
        )
        return Global(self.module.pointer_to(type_), name)


_ESCAPES: Final = [chr(byte) if chr(byte).isalnum() and byte < 128 else f"\\{byte:02X}" for byte in range(256)]


def _escaped(data: bytes) -> str:
    """Bytes spelled as in `c"..."`."""
    return "".join([_ESCAPES[byte] for byte in data])


def b_start(gemm: Gemm) -> int:
    """Bytes from the first element of B, over all products of a sum, to B of the first product."""
    return b_range(gemm)[0]


def b_extent(gemm: Gemm) -> int:
    """Bytes from the first element of B, over all products of a sum, to the end of the last group of rows."""
    return b_range(gemm)[1]


def b_elements(contents: bytes, offset: int, gemm: Gemm) -> bytes | None:
    """The bytes of B, given where B of the first product begins in a constant; None if B exceeds the constant."""
    first = offset - b_start(gemm)
    last = first + b_extent(gemm)
    return contents[first:last] if first >= 0 and last <= len(contents) else None
