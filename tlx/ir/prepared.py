"""Prepared arguments as seen from outside: their attributes, and the names and sizes that come with them.

define void @f(ptr %y, ptr "tlx-constant" %w)       the input: the memory of %w does not change between calls
define void @f(ptr %y, ptr "tlx-prepared" %w)       lowered: %w is a block that @f.prepare has filled
define void @f.prepare(ptr %w.prepared, ptr %w)     block and array, for each such argument
@f.prepare.bytes = constant [1 x i64] [i64 8256]    sizes of the blocks, which are aligned to 64 bytes
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tlx.ir.module import Module

CONSTANT: Final = '"tlx-constant"'
"""Attribute of a pointer argument whose memory does not change from the preparation to the last call."""
PREPARED: Final = '"tlx-prepared"'
"""Attribute of an argument that takes a prepared block, once the function is lowered."""
BLOCK_ALIGN: Final = 64
"""Alignment of prepared blocks in bytes."""


def _suffixed(name: str, suffix: str) -> str:
    return f'{name[:-1]}{suffix}"' if name.endswith('"') else f"{name}{suffix}"


def preparation_name(name: str) -> str:
    """Name of the function that prepares the blocks of a function."""
    return _suffixed(name, ".prepare")


def block_sizes_name(name: str) -> str:
    """Name of the global that holds the sizes of a function's blocks."""
    return _suffixed(name, ".prepare.bytes")


_SIZES: Final = re.compile(
    r'(?m)^@("[^"]*|[-a-zA-Z$._0-9]+)\.prepare\.bytes"? = [\w ]*constant \[\d+ x i64\] \[([^\]]*)\]'
)


def block_sizes(module: Module) -> dict[str, tuple[int, ...]]:
    """Bytes of the blocks that lowered functions take, in the order of their arguments, by name."""
    found = _SIZES.findall(module.raw_text())
    return {
        f'{name}"' if name.startswith('"') else name: tuple(int(number) for number in re.findall(r"i64 (\d+)", sizes))
        for name, sizes in found
    }
