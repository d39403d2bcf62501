"""AddressSanitizer sees no access outside the memory of random programs, nor of the buffers of their code."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.tools import require, require_processor

TOOL = Path(__file__).parents[3] / "tools" / "sanitize.py"


@pytest.mark.long
@pytest.mark.parametrize("options", [("--count=6",), ("--count=3", "--self-test")], ids=["programs", "short-blocks"])
def test_no_access_is_reported(options: tuple[str, ...], tmp_path: Path) -> None:
    require("clang-19")
    require("gcc")
    require_processor("avx2")
    command = [sys.executable, str(TOOL), *options, "--time=60", f"--keep={tmp_path}", "--targets=avx2"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    counts = re.search(r"(\d+) programs ran, \d+ were refused, 0 not built; (\d+) were reported", done.stdout)
    assert counts is not None
    assert int(counts[1]) > 0
    assert int(counts[2]) == (int(counts[1]) if "--self-test" in options else 0)
