"""A program with its masks written out: `<480 x i32> LANES(k // 2)` tells of each element k which one it takes."""

import re
import sys
from pathlib import Path


def written_out(found: re.Match[str]) -> str:
    count = int(found[1])
    lanes = (f"i32 {eval(found[2], {'k': k})}" for k in range(count))
    return f"<{count} x i32> <{', '.join(lanes)}>"


text = Path(sys.argv[1]).read_text(encoding="utf-8")
sys.stdout.write(re.sub(r"<(\d+) x i32> LANES\((.*?)\)$", written_out, text, flags=re.MULTILINE))
