"""The checker is tested completely: every class has a rule, and the cases and trees run every line of every rule."""

from __future__ import annotations

import ast
import inspect
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

from tests.unit.frontends.tensor_language.check.cases import errors_of, read_cases, text_of, without_marks
from tests.unit.frontends.tensor_language.check.trees import TREES
from tlx.frontends.tensor_language.check import check_program
from tlx.frontends.tensor_language.errors import ProgramError
from tlx.frontends.tensor_language.operations import (
    OPERATIONS,
    attributes,
    blas,
    context,
    control,
    memory,
    scalars,
    subgroups,
)
from tlx.frontends.tensor_language.operations.core import rules_of

RULES = rules_of("tlx.frontends.tensor_language.operations")
PARTS: tuple[ModuleType, ...] = (
    memory,
    attributes,
    blas,
    control,
    subgroups,
    context,
    scalars,
)


def test_every_instruction_has_a_rule() -> None:
    assert RULES.keys() == {entry.node for entry in OPERATIONS.values()}


def statements(module: ModuleType) -> Iterator[ast.stmt]:
    """What the rules of a module and the methods that they share do, without definitions and docstrings."""
    for function in rules(ast.parse(inspect.getsource(module)).body):
        for node in ast.walk(function):
            if isinstance(node, ast.stmt) and node is not function and not is_text(node):
                yield node


def rules(body: list[ast.stmt]) -> Iterator[ast.FunctionDef]:
    """Functions from the first with a context or a type on, and methods of the context that take an instruction."""
    is_rule = False
    for node in body:
        if isinstance(node, ast.FunctionDef):
            is_rule = is_rule or any(argument.arg in ("context", "type_") for argument in node.args.args)
            if is_rule:
                yield node
        elif isinstance(node, ast.ClassDef) and node.name == "Context":
            for method in node.body:
                if isinstance(method, ast.FunctionDef) and not method.name.startswith("_"):
                    _, *arguments = method.args.args
                    if len(arguments) > 1 and arguments[0].arg == "node":
                        yield method


def is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def lines_run(texts: list[str]) -> dict[str, set[int]]:
    """The lines of each file that checking the texts runs."""
    files = {str(Path(inspect.getfile(part))) for part in PARTS}
    result: dict[str, set[int]] = defaultdict(set)

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        name = frame.f_code.co_filename
        if event == "line":
            result[name].add(frame.f_lineno)
        return trace if name in files else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        for text in texts:
            errors_of(text)
        for program, _ in TREES.values():
            with suppress(ProgramError):
                check_program(program)
    finally:
        sys.settrace(before)
    return result


def test_cases_run_every_line() -> None:
    context.type_problem.cache_clear()
    cases = read_cases()
    texts = [text_of(case.accepted) for case in cases] + [without_marks(text_of(case.rejected))[0] for case in cases]
    actual = lines_run(texts)
    missing = [line for part in PARTS for line in lines_missing(part, actual[str(Path(inspect.getfile(part)))])]
    assert missing == []


def lines_missing(part: ModuleType, lines: set[int]) -> Iterator[str]:
    source = inspect.getsource(part).splitlines()
    for node in statements(part):
        if not lines.intersection(range(node.lineno, (node.end_lineno or node.lineno) + 1)):
            yield f"{part.__name__.rpartition('.')[2]}:{node.lineno}: {source[node.lineno - 1].strip()}"
