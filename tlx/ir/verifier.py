"""Checking a module's tensor calls against the rules of the table; the rest of the IR is LLVM's to judge."""

from __future__ import annotations

from tlx.diagnostics import VerifyError
from tlx.ir.analysis import analyse
from tlx.ir.module import Function, Instruction, Module
from tlx.ir.tensor_calls import tensor_call


def verify_tensors(module: Module) -> None:
    """Check every tensor call of the parsed functions.

    Raises:
        VerifyError: The first broken rule.
    """
    for function in module.functions:
        analyse(module, function)


def collect(module: Module) -> list[VerifyError]:
    """All broken rules that do not depend on one another.

    These are every malformed call of each function; and for functions whose calls are all well-formed the first rule
    that is broken.
    """
    return [error for function in module.functions for error in _errors(module, function)]


def _errors(module: Module, function: Function) -> list[VerifyError]:
    malformed = [error for instruction in function.instructions() if (error := _malformed(instruction)) is not None]
    if malformed:
        return malformed
    try:
        analyse(module, function)
    except VerifyError as error:
        return [error]
    return []


def _malformed(instruction: Instruction) -> VerifyError | None:
    try:
        tensor_call(instruction)
    except VerifyError as error:
        return error
    return None
