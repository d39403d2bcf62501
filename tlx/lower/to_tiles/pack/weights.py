"""Weights: a B that is known at compile time is packed then, and the program holds its panels.

Weights: a B that is known at compile time is packed then, and the program holds its panels.

    @w = private constant [...]                     @tlx.panels = private unnamed_addr constant [...], align 64
    kernel(c, a, @w): pack B, multiply       ->     kernel(c, a, @tlx.panels): multiply

Of a target with several versions, the global holds B in a form for each that reads it in its own way:

    @tlx.panels:   avx2's panels | avx512's panels | amx's tiles          each version's kernel adds its place

Runs the kernel that packs B when the program is compiled: what is small in the evaluator, else on this machine.

Nothing else knows how panels look. On this machine the kernel is made of the generic target's instructions, whatever
the machine that the program is for; it moves elements, widens them and adds up integers, so the bytes are the same.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from tlx.diagnostics import Span
from tlx.ir.functions import Function
from tlx.ir.module import Module, Raw
from tlx.ir.parser.module import parse
from tlx.ir.transform.rewrite import definitions
from tlx.ir.types import I8, ArrayType, bytes_of
from tlx.ir.values import ConstExpr, Global, Local, Value
from tlx.lower.remarks import RemarkKind, Remarks
from tlx.lower.to_tiles.pack.prepacked import PackedPanels, packing_kernel
from tlx.lower.to_tiles.problem.problems import Gemm
from tlx.lower.to_tiles.remarks import size_in_words
from tlx.lower.to_tiles.select.recipe import Recipe
from tlx.target.target import Target

if TYPE_CHECKING:
    from tlx.evaluate.globals import ConstantMemory

_ALIGN: Final = 64


@dataclass(frozen=True, slots=True)
class PackedForm:
    """How B lies for a version of a target: by which recipe, and where in a block of forms, in how many bytes."""

    recipe: Recipe
    target: Target
    at: int
    size: int


def packed_forms(gemm: Gemm, versions: Sequence[tuple[Recipe, Target]]) -> list[PackedForm]:
    """The form for each version; those that read the same have one. What is not packed lies in the block as it is."""
    known: dict[tuple[object, ...], PackedForm] = {}
    forms: list[PackedForm] = []
    end = 0
    for recipe, target in versions:
        panels = PackedPanels.of(gemm, recipe)
        key = (panels, recipe.unit == "matrix", recipe.correction) if recipe.pack_b else ()
        if key not in known:
            size = panels.size(recipe) if recipe.pack_b else b_extent(gemm)
            known[key] = PackedForm(recipe, target, end, size)
            end += -(-size // _ALIGN) * _ALIGN
        forms.append(known[key])
    return forms


def prepacked_recipes(gemm: Gemm, versions: Sequence[tuple[Recipe, Target]]) -> tuple[Recipe, ...]:
    """The recipes of versions for a B that the compiler has packed, which several find in a block of forms."""
    if len(versions) == 1:
        return (replace(versions[0][0], shared_b=True),)
    forms = packed_forms(gemm, versions)
    places = [form.at + (0 if form.recipe.pack_b else b_start(gemm)) for form in forms]
    return tuple(replace(r, shared_b=r.pack_b, b_at=at) for (r, _), at in zip(versions, places, strict=True))


@dataclass(eq=False)
class ConstantWeights:
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
        from tlx.evaluate.globals import ConstantMemory

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
        forms = list({form.at: form for form in packed_forms(gemm, versions)}.values())
        size = forms[-1].at + forms[-1].size
        if size > self.most:
            text = f"{size_in_words(size)} of panels exceed {size_in_words(self.most)}; --weight-bytes raises that"
            self._say("missed", f"{gemm.title}: constant B packed when the program runs: {text}", span)
            return None
        found = self._memory.find(definitions(function), pointer)
        source = b_elements(*found, gemm) if found else None
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

    def _say(self, kind: RemarkKind, text: str, span: Span | None) -> None:
        self.remarks.add(kind, "to-tiles", text, span)

    def _add(self, data: bytes) -> Global:
        name, type_ = self.module.global_names.fresh("tlx.panels"), ArrayType(len(data), I8)
        value = f'c"{_escaped(data)}"' if any(data) else "zeroinitializer"
        self.module.append(Raw(f"\n\n@{name} = private unnamed_addr constant {type_} {value}, align 64"))
        return Global(self.module.pointer_to(type_), name)


def _laid_out(source: bytes, gemm: Gemm, form: PackedForm) -> bytes:
    """A form of B, given all its elements."""
    return packed_bytes(source, gemm, form.recipe, form.target, form.size) if form.recipe.pack_b else source


_ESCAPES: Final = [chr(byte) if chr(byte).isalnum() and byte < 128 else f"\\{byte:02X}" for byte in range(256)]


def _escaped(data: bytes) -> str:
    """Bytes as they are spelled in `c"..."`."""
    return "".join([_ESCAPES[byte] for byte in data])


EVALUATED: Final = 1 << 18
"""Bytes of panels up to which evaluating their kernel (a second for 1 MB) takes less time than compiling it."""
_BUFFER_ALIGN: Final = 64
_BEHIND: Final = 4096  # bytes that a vector which begins in B may reach behind it


def b_start(gemm: Gemm) -> int:
    """Bytes of B's elements in front of those of the first product of a sum."""
    return -bytes_of(gemm.b.element) * min(term[1] for term in gemm.sums)


def b_extent(gemm: Gemm) -> int:
    """Bytes from the first of B's elements to behind the last; rows that lie interleaved end in one group."""
    view, places = gemm.b, [term[1] for term in gemm.sums]
    one = (view.rows - view.group) * view.row_stride + (view.cols - 1) * view.col_stride + view.group
    return bytes_of(view.element) * (max(places) - min(places) + one)


def b_elements(contents: bytes, offset: int, gemm: Gemm) -> bytes | None:
    """The part of a constant that is B, which begins at an offset; None where B is not all in the constant."""
    first = offset - b_start(gemm)
    last = first + b_extent(gemm)
    return contents[first:last] if first >= 0 and last <= len(contents) else None


def packed_bytes(source: bytes, gemm: Gemm, recipe: Recipe, target: Target, size: int) -> bytes:
    """What the kernel that packs B makes of all its elements: `size` bytes of panels.

    Args:
        source: The elements.
        gemm: The product.
        recipe: How it is computed.
        target: The machine that the program is for.
        size: Bytes of the panels.
    """
    run = _evaluated if size <= EVALUATED else _executed
    return run(source, gemm, recipe, target, size)


def _evaluated(source: bytes, gemm: Gemm, recipe: Recipe, target: Target, size: int) -> bytes:
    from tlx.evaluate import Machine

    module = parse("")
    kernel = packing_kernel(module, gemm, recipe, target)
    machine = Machine(module)
    weights = machine.memory.add(memoryview(source), "weights", _BUFFER_ALIGN, writable=False)
    panels = machine.memory.allocate(size, "panels", _BUFFER_ALIGN)
    panels.data[:] = bytes(size)
    machine.call(kernel.name, panels.base, weights.base + b_start(gemm))
    return bytes(panels.data)


def _executed(source: bytes, gemm: Gemm, recipe: Recipe, target: Target, size: int) -> bytes:
    from tlx.llvm.codegen import emit_code
    from tlx.llvm.loader import LoadedObject
    from tlx.lower.pipeline import lower
    from tlx.target.lookup import find_target

    generic, module = find_target("generic"), parse("")
    name = packing_kernel(module, gemm, recipe, replace(generic, matrix=target.matrix)).name
    text = str(lower(parse(str(module).replace("define internal void", "define void", 1)), generic))
    library = LoadedObject(emit_code(text, "obj", 1, jit=True), [name])
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(library.address(name))
    weights, panels = (np.zeros(count + _BUFFER_ALIGN + _BEHIND, np.uint8) for count in (len(source), size))
    weights[: len(source)] = np.frombuffer(source, np.uint8)
    gap = -panels.ctypes.data % _BUFFER_ALIGN
    run(panels.ctypes.data + gap, weights.ctypes.data + b_start(gemm))
    return panels[gap : gap + size].tobytes()
