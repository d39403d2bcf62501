"""Raising: each call of `llvm.matrix.*` becomes tensor operations, in place.

What LLVM's verifier would reject, and matrices whose elements no tensor has (`x86_fp80`), are left as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tlx.frontends.matrix.memory import load, store
from tlx.frontends.matrix.operations import multiply, transpose
from tlx.ir.module import Block, Declaration, Function, Instruction, Module
from tlx.ir.reader import needs_lowering, parse
from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.values import Value

_PREFIX: Final = "llvm.matrix."

Rule = Callable[[TensorBuilder, Instruction], Value | bool | None]
"""Builds what takes a call's place: its result, or for a store whether it did; None and False if it cannot."""

_RULES: Final[dict[str, Rule]] = {
    "multiply": multiply,
    "transpose": transpose,
    "column.major.load": load,
    "column.major.store": store,
    "columnwise.load": load,  # as LLVM 11 names them
    "columnwise.store": store,
}


def raise_module(module: Module) -> Module | None:
    """The module with calls of `llvm.matrix.*` turned into tensor operations.

    Args:
        module: A module as read; it is not changed.

    Returns:
        A new module, or None if there is no such call.

    Raises:
        ParseError: A function with such calls cannot be read.
    """
    fresh = parse(str(module), module.source.name, lambda body: needs_lowering(body) or f"@{_PREFIX}" in body)
    raised = [_raise_block(fresh, f, block) for f in fresh.functions for block in list(f.blocks)]
    if not any(raised):
        return None
    _remove_declarations(fresh)
    return fresh


def _raise_block(module: Module, function: Function, block: Block) -> bool:
    """Every call of a block; what is built may split the block, or stand at the entry of the function."""
    b = TensorBuilder(module, function, block, 0)
    raised = False
    while b.index < len(b.block.instructions):
        if _raise_call(b, b.block.instructions[b.index]):
            raised = True
        else:
            b.index += 1
    return raised


def _raise_call(b: TensorBuilder, call: Instruction) -> bool:
    """Build what stands for a call in front of it, and take it out; False for anything else."""
    rule = _rule(call.callee)
    if rule is None:
        return False
    b.span, b.debug = call.span, call.debug_location
    built = rule(b, call)
    if built is None or built is False:
        return False
    if call.result is not None:
        _rename(b.block.instructions[b.index - 1], call.result)
    del b.block.instructions[b.index]
    return True


def _rename(last: Instruction, name: str) -> None:
    """Give what was built last the name of the call it stands for."""
    assert last.result is not None
    last.text = f"%{name}{last.text[1 + len(last.result) :]}"
    last.result = name


def _rule(callee: str | None) -> Rule | None:
    if callee is None or not callee.startswith(_PREFIX):
        return None
    operation = callee.removeprefix(_PREFIX)
    return next((rule for name, rule in _RULES.items() if operation == name or operation.startswith(f"{name}.")), None)


def _remove_declarations(module: Module) -> None:
    """Take out the declarations that nobody calls any more."""
    called = {i.callee for function in module.functions for i in function.instructions() if i.is_call}
    for item in list(module.items):
        if isinstance(item, Declaration) and item.name.startswith(_PREFIX) and item.name not in called:
            module.remove(item)
