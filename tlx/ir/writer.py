"""Writing functions back to text: keeping LLVM's numbers in order.

LLVM numbers unnamed values one by one and wants the numbers in a text to follow that order (before LLVM 20 without
gaps). Where lowering took numbered values away or put named ones between them, the remaining numbers are counted
anew; a function whose numbers are in order comes out as it went in.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_NUMBERED: Final = re.compile(r'"[^"]*"|%(\d+)(?![-a-zA-Z$._0-9])|(?m:^(\d+):)')


def renumbered(text: str, order: Sequence[str]) -> str:
    """A function's text with its numbers counted anew.

    Args:
        text: The function.
        order: The names that are numbers, in the order LLVM counts them.
    """
    numbers = {old: str(new) for new, old in enumerate(order)}
    if all(old == new for old, new in numbers.items()):
        return text

    def replace(found: re.Match[str]) -> str:
        local, label = found.group(1), found.group(2)
        if local is not None:
            return f"%{numbers.get(local, local)}"
        if label is not None:
            return f"{numbers.get(label, label)}:"
        return found.group()

    return _NUMBERED.sub(replace, text)
