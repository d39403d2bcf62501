"""Loops around kernels that come in versions: the loop itself comes in versions, and is chosen once.

Rewrite:
    define internal void @tlx.nest.f(...) {              define internal void @tlx.nest.f(...) { chooses one of these }
      for (i)                                            define internal void @tlx.nest.f.avx2(...) {
        call void @K(...)                           ->     for (i)
    }                                                        call void @K.avx2(...)
    define internal void @K(...) { chooses }             }
                                                         define internal void @tlx.nest.f.avx512(...) { ... }
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from tlx.ir.builder import new_function
from tlx.ir.module import Block, Function, Module, NameScope
from tlx.ir.rewriter import set_operand
from tlx.ir.values import Global
from tlx.lower.nests import nest_attributes
from tlx.lower.to_tiles.dispatch import Dispatch
from tlx.target import Target

_GLOBAL: Final = re.compile(r"@([-a-zA-Z$._0-9]+)")


def dispatch_nests(
    module: Module, nests: Sequence[Function], dispatch: Dispatch, versions: Sequence[Target]
) -> list[Function]:
    """Make nests that call dispatchers dispatchers themselves, and drop those that nobody calls any more.

    Returns:
        The nests, in versions where they come in some.
    """
    if not dispatch.made:
        return list(nests)
    found: list[Function] = []
    for nest in nests:
        called = dict.fromkeys(c for i in nest.instructions() if (c := i.callee) in dispatch.made)
        if called:
            found += _dispatch(module, nest, dispatch, versions, [str(name) for name in called])
        else:
            found.append(nest)
    used = {o.name for f in module.functions for i in f.instructions() for o in i.operands if isinstance(o, Global)}
    used |= set(_GLOBAL.findall(module.raw_text()))
    module.remove(*(f for f in module.functions if f.name in dispatch.made and f.name not in used))
    return found


def _dispatch(
    module: Module, nest: Function, dispatch: Dispatch, versions: Sequence[Target], called: Sequence[str]
) -> list[Function]:
    copies: dict[tuple[str, ...], Function] = {}
    for level, version in enumerate(versions):
        kernels = [dispatch.made[name][level] for name in called]
        key = tuple(kernel.name for kernel in kernels)
        if key not in copies:
            name = module.global_names.fresh(f"{nest.name}.{version.name}")
            copies[key] = _copy(module, nest, name, nest_attributes(module, kernels))
            _redirect(copies[key], dict(zip(called, key, strict=True)))
    levels = [tuple(dispatch.made[name][level].name for name in called) for level in range(len(versions))]
    module.remove(nest)
    dispatch.dispatcher(nest.name, versions, [copies[key] for key in levels])
    return list(copies.values())


def _copy(module: Module, function: Function, name: str, attributes: str) -> Function:
    parameters = [(a.type, a.attributes, a.name) for a in function.arguments]
    made = new_function(module, name, parameters, attributes)
    made.names = NameScope(set(function.names.taken))
    made.blocks = [
        Block(block.name, block.label, [replace(i, operands=list(i.operands), spans=None) for i in block.instructions])
        for block in function.blocks
    ]
    return made


def _redirect(function: Function, names: dict[str, str]) -> None:
    """Call functions of other names."""
    for instruction in function.instructions():
        if instruction.callee in names:
            callee = instruction.operands[0]
            set_operand(instruction, 0, Global(callee.type, names[instruction.callee]))
