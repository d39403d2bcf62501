"""`tools/measure/hide_avx512.c`: programs that ask CPUID see no AVX-512."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[3] / "tools/measure/hide_avx512.c"
PROGRAM = """#include <stdio.h>
int main(void) {
  __builtin_cpu_init();
  printf("%d %d", !!__builtin_cpu_supports("avx2"), !!__builtin_cpu_supports("avx512f"));
}
"""


def test_avx512_is_hidden_and_avx2_is_not(tmp_path: Path) -> None:
    compiler, cpu = shutil.which("cc"), Path("/proc/cpuinfo")
    flags = cpu.read_text().split() if cpu.exists() else []
    if compiler is None or not {"avx512f", "cpuid_fault"} <= set(flags):
        pytest.skip("needs a C compiler, AVX-512 and CPUID faulting")
    library, program, source = tmp_path / "hide.so", tmp_path / "program", tmp_path / "program.c"
    source.write_text(PROGRAM)
    options = ["-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run([compiler, *options, SOURCE, "-o", library], check=True)
    subprocess.run([compiler, source, "-o", program], check=True)

    def features(environment: dict[str, str]) -> str:
        run = subprocess.run([program], env={**os.environ, **environment}, check=True, capture_output=True, text=True)
        return run.stdout

    assert features({}) == "1 1"
    assert features({"LD_PRELOAD": str(library)}) == "1 0"
