"""The rules of the language: everything that a syntax tree can break.

`check_program` looks at a program once and reports all it finds. Rules are tables by class of instruction, a file a
subject; `context` has what they share. To add an operation, enter its class in `operations`, write a function that
checks it, and a line in the table of its file whose name ends in `RULES`.
"""

from __future__ import annotations

from tlx.frontends.tensor_language.check.program import InstructionChecker, check_program

__all__ = ["InstructionChecker", "check_program"]
