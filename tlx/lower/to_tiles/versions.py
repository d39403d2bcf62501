"""Multiversioning: kernels, and loops around them, in a version for each target, dispatched at run time.

A kernel's dispatcher calls the best version that the processor runs:

Rewrite:
    define internal void @K(args) { ... }
    ->
    @tlx.cpu.level = internal global i32 0            0: not known yet
    define internal void @tlx.cpu.detect() { ... }    detects the processor by the targets' `detect`, and sets the level
    define internal void @K.avx2(args) "tlx-target"="avx2" { ... }
    define internal void @K.avx512(args) "tlx-target"="avx512" { ... }
    define internal void @K(args) {
      level = @tlx.cpu.level; if it is 0: call @tlx.cpu.detect() and load it again
      switch level: [4, 5, 6: tail call @K.avx512(args)], else: tail call @K.avx2(args)
    }

Threads that race detect the same level, and write it by a relaxed atomic store. A version that equals that of a weaker
target is not emitted.

A loop around kernels with several versions gets versions itself, and is dispatched once:

Rewrite:
    define internal void @tlx.nest.f(...) {              define internal void @tlx.nest.f(...) { dispatches }
      for (i)                                            define internal void @tlx.nest.f.avx2(...) {
        call void @K(...)                           ->     for (i)
    }                                                        call void @K.avx2(...)
    define internal void @K(...) { dispatches }          }
                                                         define internal void @tlx.nest.f.avx512(...) { ... }
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from tlx.ir.builder import Builder, new_function
from tlx.ir.functions import Function, NameScope
from tlx.ir.instructions import Block
from tlx.ir.module import Module, UnparsedText
from tlx.ir.rewrite import set_operand
from tlx.ir.types import I32, LABEL, VOID, FunctionType
from tlx.ir.values import Global, Local, Value, const_int
from tlx.lower.outlining import nest_attributes
from tlx.lower.to_tiles.problem import Gemm, Reduction
from tlx.lower.to_tiles.select.recipe import Recipe
from tlx.target.target import Target

LEVEL: Final = "tlx.cpu.level"
DETECT: Final = "tlx.cpu.detect"
_UNKNOWN: Final = re.compile(r"(?m)^(@tlx\.cpu\.level[.\d]* = internal global i32 )0")
_SWITCH: Final = re.compile(r"(?m)^ *switch i32 %level, label %version [^\]]*\]")
_CASE: Final = re.compile(r"i32 (\d+), label (%version[.\d]*)")


def kernel_key(target: Target, gemm: Gemm | None, method: Recipe | Reduction | None) -> tuple[object, ...]:
    """Everything that a kernel depends on: targets with equal keys share it.

    Args:
        target: The machine.
        gemm: The product, None for other kernels.
        method: How it is computed: by a recipe, or as a reduction of rows.
    """
    recipe = method if isinstance(method, Recipe) else None
    matrix = target.matrix if recipe is not None and recipe.mma.unit == "matrix" else None
    mma = recipe.mma if recipe is not None and recipe.mma.unit == "dot" else None
    dots = [d for d in target.usable_dots if mma is not None and d.lhs[0] == str(mma.operand_a)]
    if isinstance(method, Reduction):
        dots = [d for d in target.usable_dots if d.width == method.products]
    names = [(d.lhs, d.rhs, d.accumulator, d.feature) for d in dots]
    unit = target.vector_bytes, target.registers, target.instructions.masked_bits, target.instructions.fma_broadcasts
    used = names[:1] if recipe else names
    return (
        *unit,
        target.instructions.has_fma,
        target.narrow_floats.converts_half,
        target.instructions.has_rounding,
        matrix,
        used,
        gemm,
        method,
    )


@dataclass(eq=False)
class Dispatcher:
    """Makes dispatchers, which share a function that detects the level of the machine.

    Attributes:
        module: The module.
        request_permission: Whether detection may request what a version needs from the system.
        kernels: The kernels of each level, by their dispatcher's name.
    """

    module: Module
    request_permission: bool
    kernels: dict[str, tuple[Function, ...]] = field(default_factory=dict[str, tuple[Function, ...]])
    _detection: Function | None = field(default=None, init=False)
    _level: str = field(default="", init=False)

    def dispatcher(self, name: str, versions: Sequence[Target], kernels: Sequence[Function]) -> Function:
        """A function that calls the kernel of the machine's level; levels count from 1, signatures are equal."""
        detector = self._detector(versions)
        module = self.module
        arguments = kernels[0].arguments
        parameters = [(a.type, a.attributes, a.name) for a in arguments]
        function = new_function(module, name, parameters, "nounwind")
        self.kernels[name] = tuple(kernels)
        b = Builder(module, function)
        known = load_level(b, self._level)
        entry, find = b.block, b.new_block("detect")
        choose = b.new_block("select", find)
        b.branch_if(b.icmp("eq", known, 0), find, choose)
        b.at_end(find)
        b.call(Global(b.pointer(FunctionType(VOID, ())), detector.name), FunctionType(VOID, ()), [])
        detected = load_level(b, self._level)
        b.branch(choose)
        b.at_end(choose)
        level = b.phi(I32, [(known, entry), (detected, find)], "level")
        _switch(b, level, kernels, [a.value for a in arguments])
        return function

    def _detector(self, versions: Sequence[Target]) -> Function:
        """The function that detects the level."""
        if self._detection is None:
            module = self.module
            self._level = module.global_names.fresh(LEVEL)
            module.append(UnparsedText(f"\n\n@{self._level} = internal global i32 0, align 4"))
            function = new_function(module, module.global_names.fresh(DETECT), [], "nounwind noinline cold")
            detect = versions[-1].detection.emit
            assert detect is not None
            b = Builder(module, function)
            store_level(b, self._level, detect(b, versions, request_permission=self.request_permission))
            b.ret()
            self._detection = function
        return self._detection


def load_level(b: Builder, name: str) -> Local:
    """A relaxed atomic load of the level."""
    pointer = Global(b.pointer(I32), name)
    body = f"load atomic i32, {pointer.typed} monotonic, align 4"
    return b.emit("load", I32, [pointer], body, "loaded.level", source_type=I32).value


def store_level(b: Builder, name: str, level: Value) -> None:
    """A relaxed atomic store of the level."""
    pointer = Global(b.pointer(I32), name)
    b.emit("store", VOID, [level, pointer], f"store atomic {level.typed}, {pointer.typed} monotonic, align 4")


def _switch(b: Builder, level: Local, kernels: Sequence[Function], arguments: Sequence[Value]) -> None:
    """Emit the switch on the level; the weakest kernel is the default."""
    choose = b.block
    names = dict.fromkeys(kernel.name for kernel in kernels)
    blocks = {name: b.new_block("version", b.function.blocks[-1]) for name in names}
    weakest = blocks[kernels[0].name]
    cases = [(const_int(I32, at), blocks[k.name]) for at, k in enumerate(kernels, 1) if blocks[k.name] is not weakest]
    b.at_end(choose)
    listed = " ".join(f"{number.typed}, label %{block.name}" for number, block in cases)
    operands = [level, weakest.value, *(x for number, block in cases for x in (number, Local(LABEL, block.name)))]
    b.emit("switch", VOID, operands, f"switch {level.typed}, label %{weakest.name} [ {listed} ]")
    type_ = FunctionType(VOID, tuple(a.type for a in arguments))
    for name, block in blocks.items():
        b.at_end(block)
        call = b.call(Global(b.pointer(type_), name), type_, arguments)
        call.text = f"tail {call.text}"
        b.ret()


def levels(text: str) -> list[int]:
    """The lowest level of each set of kernels that a module's text dispatches to; empty without dispatch.

    Level 0, the value before detection, selects the weakest.
    """
    switches = [dict(_CASE.findall(switch)) for switch in _SWITCH.findall(text)]
    known = sorted({int(level) for cases in switches for level in cases})
    kinds = {tuple(cases.get(str(level)) for cases in switches): level for level in reversed(known)}
    return [0, *sorted(kinds.values())] if switches else []


def at_level(text: str, level: int) -> str:
    """A module's text with a constant level."""
    return _UNKNOWN.sub(rf"\g<1>{level}", text)


_GLOBAL: Final = re.compile(r"@([-a-zA-Z$._0-9]+)")


def multiversion_nests(
    module: Module, nests: Sequence[Function], dispatch: Dispatcher, versions: Sequence[Target]
) -> list[Function]:
    """Multiversion the nests that call dispatchers, and remove dispatchers that are no longer called.

    Returns:
        The nests, with all their versions.
    """
    versioned: list[Function] = []
    for nest in nests:
        called = dict.fromkeys(c for i in nest.instructions() if (c := i.callee) in dispatch.kernels)
        if called:
            versioned += _dispatch(module, nest, dispatch, versions, [str(name) for name in called])
        else:
            versioned.append(nest)
    used = {o.name for f in module.functions for i in f.instructions() for o in i.operands if isinstance(o, Global)}
    used |= set(_GLOBAL.findall(module.raw_text()))
    module.remove(*(f for f in module.functions if f.name in dispatch.kernels and f.name not in used))
    return versioned


def _dispatch(
    module: Module, nest: Function, dispatch: Dispatcher, versions: Sequence[Target], called: Sequence[str]
) -> list[Function]:
    copies: dict[tuple[str, ...], Function] = {}
    for level, version in enumerate(versions):
        kernels = [dispatch.kernels[name][level] for name in called]
        key = tuple(kernel.name for kernel in kernels)
        if key not in copies:
            name = module.global_names.fresh(f"{nest.name}.{version.name}")
            copies[key] = _copy(module, nest, name, nest_attributes(module, kernels))
            _redirect(copies[key], dict(zip(called, key, strict=True)))
    levels = [tuple(dispatch.kernels[name][level].name for name in called) for level in range(len(versions))]
    module.remove(nest)
    dispatch.dispatcher(nest.name, versions, [copies[key] for key in levels])
    return list(copies.values())


def _copy(module: Module, function: Function, name: str, attributes: str) -> Function:
    parameters = [(a.type, a.attributes, a.name) for a in function.arguments]
    copy = new_function(module, name, parameters, attributes)
    copy.names = NameScope(set(function.names.taken))
    copy.blocks = [
        Block(block.name, block.label, [replace(i, operands=list(i.operands), spans=None) for i in block.instructions])
        for block in function.blocks
    ]
    return copy


def _redirect(function: Function, names: dict[str, str]) -> None:
    """Redirect calls to functions of other names."""
    for instruction in function.instructions():
        if instruction.callee in names:
            callee = instruction.operands[0]
            set_operand(instruction, 0, Global(callee.type, names[instruction.callee]))
