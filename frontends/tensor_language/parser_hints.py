"""What a text that does not parse may have meant: misspelt words, and spellings of the first version."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

_LONGEST: Final = 40  # characters of a word that is compared with others
_TIED: Final = 4  # words that are as near as each other, at most

RENAMED: Final = {
    "cmp.eq": "equal",
    "cmp.ne": "not_equal",
    "cmp.gt": "greater_than",
    "cmp.ge": "greater_than_equal",
    "cmp.lt": "less_than",
    "cmp.le": "less_than_equal",
    "hadamard_product": "hadamard",
    "group_size": "num_groups.x",
}
PREFIXES: Final = ("arith", "math", "cmp")  # of names like `arith.add`


_SYNONYMS: Final = {  # what LLVM and others call the modifiers
    "acq_rel": "acquire_release",
    "monotonic": "relaxed",
    "seq_cst": "sequentially_consistent",
    "system": "cross_device",
}


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`did you mean '...'?`, or nothing where no word is near."""
    near = _nearest(word, tuple(known)) if len(word) <= _LONGEST else None
    return f"did you mean '{near}'?" if near else ""


@lru_cache(maxsize=256)
def _nearest(word: str, known: tuple[str, ...]) -> str | None:
    """The word that another may have been meant to be: but for the case, misspelt, called otherwise, or cut short."""
    folded = {k.lower(): k for k in known}
    lower = word.lower()
    dot = "." * word.startswith(".")
    synonym = dot + _SYNONYMS.get(lower.lstrip("."), "?")
    close = difflib.get_close_matches(lower, folded, n=_TIED)
    ranked = sorted((k for k in folded if k in close), key=lambda k: _unlikeness(k, lower))
    found = lower if lower in folded else next(iter(ranked), synonym)
    if found not in folded and len(lower) > 2:
        longer = [k for k in folded if k.startswith(lower)]
        found = longer[0] if len(longer) == 1 else found
    return folded.get(found)


def _unlikeness(known: str, word: str) -> tuple[float, int]:
    matcher = difflib.SequenceMatcher(None, known, word)
    first = matcher.get_matching_blocks()[0]
    return -matcher.ratio(), -first.size if first.a == first.b == 0 else 0


def new_spelling(word: str, modifier: str, known: Iterable[str]) -> str | None:
    """What version 2 calls an instruction of the first version.

    Args:
        word: The word found.
        modifier: The modifier behind it, with its dot, or nothing.
        known: The instructions of version 2.
    """
    if word in PREFIXES and modifier[1:] in known:
        return modifier[1:]
    return RENAMED.get(word + modifier) or RENAMED.get(word)


def is_old_name(word: str) -> bool:
    """Whether a word begins an instruction of the first version."""
    return word in PREFIXES or word in RENAMED
