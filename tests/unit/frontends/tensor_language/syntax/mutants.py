"""Broken kernels: mutates kernels token by token and byte by byte, and checks the front end's reaction.

Only a `ProgramError` may come out of a text; one that parses must print as a text that parses to the same tree.

    python -m tests.unit.frontends.tensor_language.syntax.mutants --seed 1 --count 100000 --seconds 300
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from typing import Final

from tests.unit.frontends.tensor_language.syntax.kernels import KERNELS
from tlx.diagnostics import Source
from tlx.frontends.tensor_language import check_program, parse
from tlx.frontends.tensor_language.errors import ProgramError
from tlx.frontends.tensor_language.syntax.cursor import tokenize
from tlx.frontends.tensor_language.syntax.printer import print_program

_MOST_CHANGES: Final = 4  # of one kernel
_CHARACTERS: Final = '%@{}()[]<>=,:;.?x-+"0123456789 \n\t\0éABiz_\udc80'


def tokens_of(text: str) -> list[str]:
    """A text cut into its tokens, each with the white space before it."""
    tokens = tokenize(Source("kernel", text))
    ends = [start + len(token) for start, token in zip(tokens.starts, tokens.texts, strict=True)]
    return [text[start:end] for start, end in zip([0, *ends], ends, strict=False)] + [text[ends[-1] :]]


_CUT: Final = [tokens_of(kernel) for kernel in KERNELS]
_ALL: Final = [token for kernel in _CUT for token in kernel]


def _sort(piece: str) -> str:
    """What a token begins with: names go with names, numbers with numbers."""
    first = piece.lstrip()[:1]
    return "0" if first.isdigit() else "a" if first.isalpha() else first


_ALIKE: Final = {sort: [t for t in _ALL if _sort(t) == sort] for sort in map(_sort, _ALL)}


def mutant(rng: random.Random) -> str:
    """One kernel with a few changes."""
    pieces = list(rng.choice(_CUT))
    if rng.random() < 0.3:
        pieces = list("".join(pieces))
    for _ in range(min(rng.randint(1, _MOST_CHANGES), rng.randint(1, _MOST_CHANGES))):
        rng.choice(_CHANGES)(rng, pieces)
    return "".join(pieces)


def _delete(rng: random.Random, pieces: list[str]) -> None:
    at = rng.randrange(len(pieces))
    del pieces[at : at + rng.choice((1, 1, 1, 2, 10))]
    pieces.append("")


def _double(rng: random.Random, pieces: list[str]) -> None:
    at = rng.randrange(len(pieces))
    pieces[at:at] = pieces[at : at + rng.choice((1, 1, 1, 2, 10, 60))]


def _swap(rng: random.Random, pieces: list[str]) -> None:
    a, b = rng.randrange(len(pieces)), rng.randrange(len(pieces))
    pieces[a], pieces[b] = pieces[b], pieces[a]


def _replace(rng: random.Random, pieces: list[str]) -> None:
    pieces[rng.randrange(len(pieces))] = rng.choice(_ALL)


def _replace_alike(rng: random.Random, pieces: list[str]) -> None:
    at = rng.randrange(len(pieces))
    alike = _ALIKE.get(_sort(pieces[at]))
    if alike:
        pieces[at] = rng.choice(alike)


def _insert_token(rng: random.Random, pieces: list[str]) -> None:
    pieces.insert(rng.randrange(len(pieces)), rng.choice(_ALL))


def _insert_character(rng: random.Random, pieces: list[str]) -> None:
    at = rng.randrange(len(pieces))
    inside = rng.randrange(len(pieces[at]) + 1)
    pieces[at] = pieces[at][:inside] + rng.choice(_CHARACTERS) + pieces[at][inside:]


def _cut_off(rng: random.Random, pieces: list[str]) -> None:
    if rng.random() < 0.2:
        del pieces[rng.randrange(len(pieces)) + 1 :]


_CHANGES: Final[list[Callable[[random.Random, list[str]], None]]] = [
    _delete,
    _double,
    _swap,
    _replace,
    _replace_alike,
    _replace_alike,
    _replace_alike,
    _insert_token,
    _insert_character,
    _cut_off,
]


def outcome(text: str, *, check: bool) -> str:
    """The front end's verdict on a text: `does not parse`, `breaks a rule` or `right`.

    Raises:
        AssertionError: The text parses, and what is printed of its tree is another tree.
    """
    try:
        tree = parse(text, "mutant.tl")
    except ProgramError as error:
        error.render()
        return "does not parse"
    assert repr(parse(print_program(tree))) == repr(tree), "what is printed parses to another tree"
    if not check:
        return "parses"
    try:
        check_program(tree)
    except ProgramError as error:
        error.render()
        return "breaks a rule"
    return "right"


def main() -> int:
    """Run mutants until there are enough of them or the time is over."""
    parser = argparse.ArgumentParser(description="Broken kernels: what does the front end make of them?")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=600.0, help="stop after this time")
    parser.add_argument("--check", action=argparse.BooleanOptionalAction, default=True, help="check what parses, too")
    arguments = parser.parse_args()
    begin = time.monotonic()
    outcomes: Counter[str] = Counter()
    slowest = (0.0, 0)
    for number in range(arguments.count):
        started = time.monotonic()
        if started - begin > arguments.seconds:
            break
        text = mutant(random.Random(f"{arguments.seed}:{number}"))
        try:
            outcomes[outcome(text, check=arguments.check)] += 1
        except Exception:  # noqa: BLE001 (any is what is looked for)
            sys.stdout.write(f"mutant {number} of seed {arguments.seed}:\n{text!r}\n{traceback.format_exc()}\n")
            outcomes["crash"] += 1
        slowest = max(slowest, (time.monotonic() - started, number))
    counts = ", ".join(f"{count} {what}" for what, count in sorted(outcomes.items()))
    slow = f"slowest {slowest[0] * 1e3:.0f} ms (number {slowest[1]})"
    seconds = time.monotonic() - begin
    sys.stdout.write(f"{outcomes.total()} mutants in {seconds:.1f} s, {slow}: {counts}\n")
    return 1 if outcomes["crash"] else 0


if __name__ == "__main__":
    sys.exit(main())
