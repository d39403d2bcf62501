"""Repeats the lines between `; repeat N` and `; end`, each time with another number for `#`."""

import re
import sys
from pathlib import Path

PIECE = re.compile(r"(?s); repeat (\d+)\n(.*?); end\n")

text = Path(sys.argv[1]).read_text().partition(";--- program\n")[2]
sys.stdout.write(PIECE.sub(lambda found: "".join(found[2].replace("#", str(i)) for i in range(int(found[1]))), text))
