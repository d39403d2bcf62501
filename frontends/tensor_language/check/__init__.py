"""The rules of the language: everything that a syntax tree can break.

`check_program` looks at a program once and reports all it finds. Rules are tables by class of instruction, a file a
topic; `context` has what they share. To add an instruction, write a class in `syntax.ast`, a function that checks it,
and a line in the table of its file whose name ends in `RULES`.
"""

from __future__ import annotations

from tlx.frontends.tensor_language.check.program import InstructionChecker, check_program

__all__ = ["InstructionChecker", "check_program"]
