"""Stands in for LLVM's ``FileCheck``: the Python package `filecheck`, with what the tests use beyond it.

That package lacks ``--implicit-check-not``, the spellings of ``@LINE`` other than ``[[# @LINE + 1]]``, and numeric
variables; and its ``CHECK-NOT`` also sees the text that the next directive matches. Tests that calculate with numeric
variables require LLVM's tool (``REQUIRES: llvm-filecheck``).
"""

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

from filecheck.compiler import compile_uops
from filecheck.finput import FInput, InputRange
from filecheck.matcher import Matcher
from filecheck.ops import CheckOp, UOp
from filecheck.options import Options, parse_argv_options
from filecheck.parser import Parser, pattern_for_opts

LINE = re.compile(r"\[\[ *#? *@LINE *(?:([+-]) *(\d+))? *]]")
NUMBER = re.compile(r"\[\[# *(\w+): *]]")
IMPLICIT = re.compile(r"--?implicit-check-not(?:=(.*))?", re.DOTALL)


class LineParser(Parser):
    """A parser that knows every spelling of ``@LINE``, and definitions of decimal numbers."""

    def parse_args(self, arg: str, line: str) -> list[UOp]:
        """The parts of a directive's pattern."""
        arg = LINE.sub(lambda found: str(self.line_no + int(f"{found[1] or '+'}{found[2] or 0}")), arg)
        return super().parse_args(NUMBER.sub(r"[[\1:[0-9]+]]", arg), line)


@dataclass
class StrictMatcher(Matcher):
    """A matcher whose negative directives see the text between two matches, and no match itself.

    Attributes:
        excluded: What ``--implicit-check-not`` names: it may occur in matched text only.
        spans: Where the directives matched, begin and end.
    """

    excluded: list[CheckOp] = field(default_factory=list[CheckOp])
    spans: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])

    def capture_results(
        self,
        match: re.Match[str],
        capture: dict[str, tuple[int, Callable[[str], int] | Callable[[str], str]]],
        op: CheckOp,
    ) -> None:
        """Note where a directive matched."""
        super().capture_results(match, capture, op)
        self.spans.append(match.span())

    def check_not(self, op: CheckOp, search_range: InputRange) -> None:
        """Check that the pattern does not occur between the last match and the one before it."""
        end = search_range.end
        if self.spans and search_range.start <= self.spans[-1][0] < end:
            end = self.spans[-1][0]
        super().check_not(op, InputRange(search_range.start, end))

    def run(self) -> int:
        """Match the directives, then look for excluded text outside their matches; the exit status."""
        return super().run() or any(self._occurs(op) for op in self.excluded)

    def _occurs(self, op: CheckOp) -> bool:
        pattern, _ = compile_uops(op, {}, self.opts)
        for match in pattern.finditer(self.file.content):
            if not any(begin < match.end() and match.start() < end for begin, end in self.spans):
                line = self.file.content.count("\n", 0, match.start()) + 1
                sys.stderr.write(f"{self.opts.match_filename}: error: excluded {op.arg!r} occurs in line {line}\n")
                return True
        return False


def main(arguments: list[str]) -> int:
    """Check the input as the command line says."""
    plain, excluded = list[str](), list[str]()
    waiting = iter(arguments)
    for argument in waiting:
        if match := IMPLICIT.fullmatch(argument):
            excluded.append(next(waiting) if match[1] is None else match[1])
        else:
            plain.append(argument)
    options = parse_argv_options(plain)
    with open(options.match_filename, encoding="utf-8") as file:  # noqa: PTH123  pathlib is half of the start-up time
        parser = LineParser(options, file, *pattern_for_opts(options))
        nots = [CheckOp("CHECK", "NOT", text, 0, parser.parse_args(text, text)) for text in excluded]
        return StrictMatcher(options, _input(options), parser, excluded=nots).run()


def _input(options: Options) -> FInput:
    """What is checked, bytes that are no UTF-8 included."""
    name = options.input_file
    with open(0 if name == "-" else name, encoding="utf-8", errors="replace") as file:  # noqa: PTH123
        return FInput(name, file.read())


if __name__ == "__main__":
    sys.exit(main(sys.argv))
