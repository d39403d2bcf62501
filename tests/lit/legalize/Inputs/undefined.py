"""Print the symbols that an object file wants, one a line: undefined.py FILE."""

from __future__ import annotations

import sys
from pathlib import Path

from tlx.llvm.loader import elf_symbols

_LINKER = {"_GLOBAL_OFFSET_TABLE_", ".TOC.", ""}

wanted = sorted({name for name, defined in elf_symbols(Path(sys.argv[1]).read_bytes()) if not defined} - _LINKER)
sys.stdout.write("".join(f"{name}\n" for name in wanted))
