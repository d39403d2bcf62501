"""Object files for other machines link with what their C compilers make, and compute the same: run by QEMU."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.tools import HANG_S, missing, require
from tlx.llvm.codegen import emit_code
from tlx.lower.options import Options
from tlx.lower.pipeline import lower_text

HERE = Path(__file__).parent
LIBRARIES = {
    "riscv64-linux-gnu": "libc6-dev-riscv64-cross",
    "aarch64-linux-gnu": "libc6-dev-arm64-cross",
    "arm-linux-gnueabihf": "libc6-dev-armhf-cross",
}
"""Folders of C libraries in /usr, and the packages that they come in."""


@dataclass(frozen=True)
class Machine:
    """What is asked for, and what runs it; the compiler is that of the folder of the C library."""

    name: str
    triple: str
    folder: str
    qemu: str
    features: tuple[str, ...] = ()
    cpu: str = ""
    level: int = 2


RISCV, ARM = ("riscv64-linux-gnu", "qemu-riscv64"), ("arm-linux-gnueabihf", "qemu-arm")
VECTORS = ("riscv64-linux-gnu", "qemu-riscv64 -cpu rv64,v=true,vext_spec=v1.0")
NEON = ("aarch64-linux-gnu", "qemu-aarch64 -cpu max")
MACHINES = (
    Machine("riscv64", "riscv64-linux-gnu", *RISCV),
    Machine("riscv64 unoptimised", "riscv64-unknown-linux-gnu", *RISCV, level=0),
    Machine("riscv64 with vectors", "riscv64-linux-gnu", *VECTORS, features=("+v",)),
    Machine("riscv64 with what says nothing of floats", "riscv64-linux-gnu", *RISCV, features=("+zba",)),
    Machine("riscv64 processor", "riscv64-linux-gnu", *RISCV, cpu="sifive-u74"),
    Machine("aarch64", "aarch64-linux-gnu", *NEON, level=0),
    Machine("aarch64 with all", "aarch64-linux-gnu", *NEON, features=("+neon", "+fullfp16", "+bf16", "+i8mm", "+sve")),
    Machine("armhf", "arm-linux-gnueabihf", *ARM),
    Machine("armv7", "armv7-linux-gnueabihf", *ARM),
    Machine("armv7 unoptimised", "armv7l-unknown-linux-gnueabihf", *ARM, level=0),
)


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_object_file(machine: Machine, tmp_path: Path) -> None:
    compiler, (emulator, *flags) = require(f"{machine.folder}-gcc"), machine.qemu.split()
    root = Path("/usr") / machine.folder
    if not (root / "include" / "stdio.h").exists():
        missing(LIBRARIES[machine.folder])
    options = Options(features=machine.features, cpu=machine.cpu, triple=machine.triple)
    text = lower_text((HERE / "cross.ll").read_text(), "cross.ll", "generic", options=options)
    image = emit_code(text, "obj", machine.level, machine.cpu, ",".join(machine.features), machine.triple)
    (tmp_path / "kernels.o").write_bytes(image)
    program = tmp_path / "program"
    # Contraction would round the expected sums otherwise.
    command = [compiler, "-O1", "-ffp-contract=off", HERE / "cross.c", tmp_path / "kernels.o", "-lm", "-o", program]
    linked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert linked.returncode == 0, linked.stderr
    run = [require(emulator), *flags, "-L", root, program]
    done = subprocess.run(run, capture_output=True, text=True, timeout=HANG_S, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("right\n", "", 0)
