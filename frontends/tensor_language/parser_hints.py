"""What a text that does not parse may have meant: misspelt words, and spellings of the first version."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tlx.diagnostics import nearest

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
    known = tuple(known)
    near = nearest(word, known)
    synonym = "." * word.startswith(".") + _SYNONYMS.get(word.lower().lstrip("."), "")
    if near is None and synonym in known:
        near = synonym
    return f"did you mean '{near}'?" if near else ""


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
