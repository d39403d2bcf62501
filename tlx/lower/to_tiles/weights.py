"""Weights: a B that is known at compile time is packed then, and the program holds its panels.

    @w = private constant [...]                     @tlx.panels = private unnamed_addr constant [...], align 64
    kernel(c, a, @w): pack B, multiply       ->     kernel(c, a, @tlx.panels): multiply

The evaluator runs the kernel that would pack B in the program, so that nothing else knows how panels look.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final

from tlx.diagnostics import EvaluationError, Span
from tlx.ir.module import Function, Instruction, Module, Raw
from tlx.ir.reader import parse
from tlx.ir.types import I8, ArrayType
from tlx.ir.values import ConstExpr, Global, Local, Value
from tlx.lower.to_tiles.problem import Gemm
from tlx.lower.to_tiles.recipe import Recipe
from tlx.lower.to_tiles.remarks import size_in_words
from tlx.lower.to_tiles.shared import Panels, packing_kernel
from tlx.remarks import Kind, Remarks
from tlx.target import Target

if TYPE_CHECKING:
    from tlx.evaluate.constant_memory import ConstantMemory

MOST_BYTES: Final = 1 << 20
"""Panels that are larger are packed when the program runs: making these takes seconds already."""


@dataclass(eq=False)
class Weights:
    """The constants of a module, and the panels that were made of them; equal panels are one global.

    Attributes:
        module: The module.
        remarks: Where it is said what is packed.
    """

    module: Module
    remarks: Remarks
    _made: dict[bytes, Global] = field(default_factory=dict[bytes, Global])

    @cached_property
    def _memory(self) -> ConstantMemory:
        from tlx.evaluate.constant_memory import ConstantMemory

        return ConstantMemory(self.module)

    def are_at(self, function: Function, pointer: Value) -> bool:
        """Whether a pointer is one into a global that says that it is constant."""
        definitions = _definitions(function) if isinstance(pointer, Local) else {}
        while isinstance(pointer, Local) and pointer.name in definitions:
            made = definitions[pointer.name]
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
        self, function: Function, pointer: Value, gemm: Gemm, recipe: Recipe, target: Target, span: Span | None
    ) -> Value | None:
        """The global with the panels of the B at a pointer; None where packing is left to the program."""
        size = Panels.of(gemm, recipe).size(recipe)
        if size > MOST_BYTES:
            text = f"{size_in_words(size)} of panels exceed {size_in_words(MOST_BYTES)}"
            self._say("missed", f"{gemm.title}: constant B packed when the program runs: {text}", span)
            return None
        found = self._memory.find(_definitions(function), pointer)
        data = _packed(*found, gemm, recipe, target, size) if found else None
        if data is None:
            return None
        self._say("applied", f"{gemm.title}: B packed at compile time: {size_in_words(size)}", span)
        if data not in self._made:
            self._made[data] = self._add(data)
        return self._made[data]

    def leave(self, gemm: Gemm, target: Target, span: Span | None) -> None:
        """Say that a constant B is packed when the program runs, as it is for several versions of a target."""
        text = f"each version of {target.name} packs it in its own way"
        self._say("missed", f"{gemm.title}: constant B packed when the program runs: {text}", span)

    def _say(self, kind: Kind, text: str, span: Span | None) -> None:
        self.remarks.add(kind, "to-tiles", text, span)

    def _add(self, data: bytes) -> Global:
        name, type_ = self.module.global_names.fresh("tlx.panels"), ArrayType(len(data), I8)
        value = f'c"{_escaped(data)}"' if any(data) else "zeroinitializer"
        self.module.append(Raw(f"\n\n@{name} = private unnamed_addr constant {type_} {value}, align 64"))
        return Global(self.module.pointer_to(type_), name)


def _definitions(function: Function) -> dict[str, Instruction]:
    return {i.result: i for i in function.instructions() if i.result is not None}


def _packed(contents: bytes, offset: int, gemm: Gemm, recipe: Recipe, target: Target, size: int) -> bytes | None:
    """What the kernel that packs B makes of it; None where B is not all in the constant."""
    from tlx.evaluate import Machine

    module = parse("")
    kernel = packing_kernel(module, gemm, recipe, target)
    machine = Machine(module)
    source = machine.memory.add(memoryview(contents), "weights", 64, writable=False)
    panels = machine.memory.allocate(size, "panels", 64)
    panels.data[:] = bytes(size)
    try:
        machine.call(kernel.name, panels.base, source.base + offset)
    except EvaluationError:
        return None
    return bytes(panels.data)


_ESCAPES: Final = [chr(byte) if chr(byte).isalnum() and byte < 128 else f"\\{byte:02X}" for byte in range(256)]


def _escaped(data: bytes) -> str:
    """Bytes as they are spelled in `c"..."`."""
    return "".join([_ESCAPES[byte] for byte in data])
