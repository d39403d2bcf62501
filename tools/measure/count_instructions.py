"""Count the instructions that an sgemm of TLX, and of OpenBLAS, executes on emulated machines.

    python tools/measure/count_instructions.py FOLDER --sizes=256,1024

FOLDER holds Debian's packages of OpenBLAS for these machines, unpacked into folders named like their architectures:

    dpkg --add-architecture arm64 && apt-get update
    apt-get download libopenblas-pthread-dev:arm64
    dpkg -x libopenblas-pthread-dev_*_arm64.deb FOLDER/arm64

It also takes Debian's cross compilers (`gcc-aarch64-linux-gnu`, `gcc-powerpc64le-linux-gnu`) and `qemu-user`. Machines
whose package is not there are skipped.

Row-major square matrices, C = A * B, one thread. QEMU logs the blocks that it translates, with their instructions, and
each block that it executes (`-d in_asm,exec,nochain`); blocks have one exit, so the sum of their lengths is the number
of instructions. Those of a program that never calls the product are subtracted from those of one that calls it once:
packing counts, start-up does not. Both programs must print the same checksum.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PRODUCT: Final = """
define void @product(ptr noalias %x, ptr noalias %y, ptr noalias %c) {{
  %a = call token @llvm.tensor.load(ptr elementtype(float) %x, {shape}, <2 x i32> <i32 0, i32 1>, {zeros}, {zeros})
  %b = call token @llvm.tensor.load(ptr elementtype(float) %y, {shape}, <2 x i32> <i32 0, i32 1>, {zeros}, {zeros})
  %p = call <{count} x float> @llvm.tensor.matmul(token %a, token %b)
  %t = call token @llvm.tensor.typeinfo(<{count} x float> %p, {shape}, <2 x i32> <i32 0, i32 1>, {zeros})
  call void @llvm.tensor.store(ptr %c, token %t, {zeros})
  ret void
}}
"""
DRIVER: Final = """
#include <stdio.h>
#include <stdlib.h>

void cblas_sgemm(int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *, int);
char *openblas_get_corename(void);
void product(const float *, const float *, float *);

int main(int count, char **arguments) {
    long n = SIZE, size = n * n;
    float *a = aligned_alloc(4096, 4 * size), *b = aligned_alloc(4096, 4 * size), *c = aligned_alloc(4096, 4 * size);
    for (long i = 0; i < size; i++) a[i] = i * 7919 % 17 - 8, b[i] = i * 104729 % 13 - 6;
    for (int calls = atoi(arguments[1]); calls > 0; calls--) {
#ifdef OPENBLAS
        cblas_sgemm(101, 111, 111, n, n, n, 1, a, n, b, n, 0, c, n);
#else
        product(a, b, c);
#endif
    }
    long sum = 0;
    for (long i = 0; i < size; i++) sum += (long)c[i] * (i % 251);
    printf("%ld\\n", sum);
#ifdef OPENBLAS
    printf("%s\\n", openblas_get_corename());
#endif
}
"""


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine that both libraries are measured on.

    Attributes:
        target: Target of TLX and its options.
        cpu: QEMU's name of the processor, by which OpenBLAS picks its kernels.
        architecture: Names of its architecture.
        kernels: OpenBLAS's kernels, where it takes QEMU's processor for an older one.
    """

    target: tuple[str, ...]
    cpu: str
    architecture: Architecture
    kernels: str = ""


@dataclass(frozen=True, slots=True)
class Architecture:
    """Names of an architecture: Debian's, QEMU's, and the triple."""

    debian: str
    qemu: str
    triple: str


_ARM: Final = Architecture("arm64", "qemu-aarch64", "aarch64-linux-gnu")
_POWER: Final = Architecture("ppc64el", "qemu-ppc64le", "powerpc64le-linux-gnu")
MACHINES: Final = (
    Machine(("--target=neon", "--mcpu=neoverse-n1"), "neoverse-n1", _ARM),
    Machine(("--target=neon", "--mcpu=neoverse-v1"), "neoverse-v1", _ARM),
    Machine(("--target=sve", "--mcpu=neoverse-v1"), "neoverse-v1,sve256=on", _ARM),
    Machine(("--target=vsx", "--mcpu=pwr9"), "power9", _POWER, "POWER9"),
    Machine(("--target=mma",), "power10", _POWER),
)


def executed(command: list[str], kernels: str) -> tuple[int, list[str]]:
    """How many instructions a program under QEMU executes, and the lines that it prints.

    Args:
        command: Emulator with its options, then the program with its arguments.
        kernels: OpenBLAS's kernels; empty for its own choice.

    Raises:
        subprocess.CalledProcessError: The program failed.
    """
    emulator, *rest = command
    logged = [emulator, "-d", "in_asm,exec,nochain", *rest]
    pipe = subprocess.PIPE
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    environment |= {"OPENBLAS_CORETYPE": kernels} if kernels else {}
    with subprocess.Popen(logged, env=environment, stdout=pipe, stderr=pipe) as process:
        assert process.stderr is not None
        assert process.stdout is not None
        lengths: dict[int, int] = {}
        start = None
        times: Counter[bytes] = Counter()
        for line in process.stderr:
            if line.startswith(b"Trace"):
                times[line] += 1
            elif line.startswith(b"IN:"):
                start = None
            elif line.startswith(b"0x"):
                address = int(line.partition(b":")[0], 16)
                start = address if start is None else start
                lengths[start] = lengths.get(start, 0) + 1 if address != start else 1
        printed = process.stdout.read().decode().split()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, logged)
    return sum(lengths[_address(line)] * count for line, count in times.items()), printed


def _address(trace: bytes) -> int:
    """The address of the block in a line such as `Trace 0: 0x7f19cd600100 [00001001/0000000000400700/...] _start`."""
    return int(trace.partition(b"[")[2].split(b"/")[1], 16)


def a_call(command: list[str], kernels: str) -> tuple[int, list[str]]:
    """How many instructions a call of the product takes, and what the program prints."""
    (without, _), (total, printed) = (executed([*command, calls], kernels) for calls in ("0", "1"))
    return total - without, printed


def build(machine: Machine, size: int, library: Path, folder: Path) -> tuple[Path, Path]:
    """TLX's program and OpenBLAS's."""
    square = f"<2 x i32> <i32 {size}, i32 {size}>"
    product, driver, code = folder / "product.ll", folder / "driver.c", folder / "product.o"
    product.write_text(PRODUCT.format(shape=square, count=size * size, zeros="<2 x i32> zeroinitializer"))
    driver.write_text(DRIVER)
    lower = [str(Path(sys.executable).with_name("tlx-lower")), str(product), *machine.target]
    subprocess.run([*lower, f"--mtriple={machine.architecture.triple}", "--emit=obj", "-o", str(code)], check=True)
    compiler = [f"{machine.architecture.triple}-gcc", "-O2", "-static", f"-DSIZE={size}", str(driver)]
    ours, theirs = folder / "tlx", folder / "openblas"
    subprocess.run([*compiler, str(code), "-o", str(ours)], check=True)
    subprocess.run([*compiler, "-DOPENBLAS", str(library), "-lpthread", "-lm", "-o", str(theirs)], check=True)
    return ours, theirs


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", type=Path, metavar="FOLDER")
    parser.add_argument("--sizes", default="256", help="comma-separated list (default: 256)")
    parser.add_argument("--machines", default="", help="measure only those whose options contain this text")
    options = parser.parse_args()
    sys.stdout.write(
        "| target | OpenBLAS's kernels | size | TLX | OpenBLAS | ratio |\n| --- | --- | --- | --- | --- | --- |\n"
    )
    for machine in MACHINES:
        target = " ".join(machine.target).replace("--target=", "")
        library = next((options.packages / machine.architecture.debian).rglob("libopenblas.a"), None)
        if library is None or options.machines not in target:
            continue
        for size in map(int, options.sizes.split(",")):
            with tempfile.TemporaryDirectory() as folder:
                emulator = [machine.architecture.qemu, "-cpu", machine.cpu]
                (ours, expected), (theirs, printed) = (
                    a_call([*emulator, str(program)], machine.kernels)
                    for program in build(machine, size, library, Path(folder))
                )
            assert printed[:1] == expected, f"{target}: {printed[0]} instead of {expected[0]}"
            millions = f"{ours / 1e6:.2f} M | {theirs / 1e6:.2f} M | {ours / theirs:.3f}"
            sys.stdout.write(f"| `{target}` | {printed[1]} | {size} | {millions} |\n")
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
