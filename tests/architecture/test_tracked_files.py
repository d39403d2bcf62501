"""No tracked file depends on the machine it was written on."""

import re
import subprocess

from tests.architecture.tree import ROOT
from tests.support.tools import missing, require

# Written so that no pattern matches itself.
MACHINE = re.compile(
    rb"(?<![\w.])/[w]ork/"
    rb"|(?<![\w.])/[r]oot/"
    rb"|(?<![\w.])/[o]pt/"
    rb"|[p]ypi\.org|[p]ythonhosted\.org|registry\.[n]pmjs|[d]eb\.debian\.org"
)


def tracked_files() -> list[str]:
    if not (ROOT / ".git").exists():
        missing("a git checkout")
    command = [require("git"), "-c", f"safe.directory={ROOT}", "ls-files", "-z"]
    listing = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [name for name in listing.split("\0") if (ROOT / name).is_file() and not (ROOT / name).is_symlink()]


def test_nothing_names_a_machine() -> None:
    violations = [
        f"{name}:{number}: {line.decode(errors='replace').strip()}"
        for name in tracked_files()
        for number, line in enumerate((ROOT / name).read_bytes().splitlines(), start=1)
        if MACHINE.search(line)
    ]
    assert not violations, "\n".join(violations)
