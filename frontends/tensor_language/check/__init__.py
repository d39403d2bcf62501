"""What is wrong with a program: every rule of the language that a tree can break.

`check_program` looks at a program once and reports all it finds. Rules are tables by class of instruction, a file a
topic; `context` has what they share. To add an instruction, write a class in `ast`, a function that checks it, and a
line in the table `RULES` of its file.
"""

from __future__ import annotations

from tlx.frontends.tensor_language.check.functions import InstructionChecker, check_program

__all__ = ["InstructionChecker", "check_program"]
