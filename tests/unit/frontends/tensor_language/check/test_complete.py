"""Nothing of the checker is untested: every class has a rule, and the cases and trees run every line of every rule."""

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
from tlx.frontends.tensor_language.check import (
    attributes,
    blas,
    check_program,
    context,
    control,
    memory,
    scalars,
    subgroups,
)
from tlx.frontends.tensor_language.errors import ProgramError
from tlx.frontends.tensor_language.operations import OPERATIONS
from tlx.frontends.tensor_language.operations.core import rules_of

RULES = rules_of("tlx.frontends.tensor_language.check")
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
    """What the functions of a module do, without methods, definitions and docstrings."""
    for function in ast.parse(inspect.getsource(module)).body:
        if isinstance(function, ast.FunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.stmt) and node is not function and not is_text(node):
                    yield node


def is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def lines_run(texts: list[str]) -> dict[str, set[int]]:
    """The lines of each file that checking the texts runs."""
    files = {str(Path(inspect.getfile(part))) for part in PARTS}
    found: dict[str, set[int]] = defaultdict(set)

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        name = frame.f_code.co_filename
        if event == "line":
            found[name].add(frame.f_lineno)
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
    return found


def test_cases_run_every_line() -> None:
    context.type_problem.cache_clear()
    cases = read_cases()
    texts = [text_of(case.accepted) for case in cases] + [without_marks(text_of(case.rejected))[0] for case in cases]
    found = lines_run(texts)
    missing = [line for part in PARTS for line in lines_missing(part, found[str(Path(inspect.getfile(part)))])]
    assert missing == []


def lines_missing(part: ModuleType, lines: set[int]) -> Iterator[str]:
    source = inspect.getsource(part).splitlines()
    for node in statements(part):
        if not lines.intersection(range(node.lineno, (node.end_lineno or node.lineno) + 1)):
            yield f"{part.__name__.rpartition('.')[2]}:{node.lineno}: {source[node.lineno - 1].strip()}"
