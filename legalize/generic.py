"""`generic`: plain LLVM vectors and multiply-adds that any backend compiles.

Kernels have no target features, or those of the function around them, `--mcpu` or `--mattr`. These, the triple or
`--vector-bits` set the width of vectors; the default is 128 bits, which nearly every machine has. `llvm.fmuladd` is one
instruction if the machine has it and otherwise two, never a library call.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from tlx.legalize.x86.avx512 import PERMUTES
from tlx.legalize.x86.features import CPU_FEATURES
from tlx.target.hardware import VectorRegisters
from tlx.target.target import Target

_ARM: Final = ("neon", "fp-armv8", "fullfp16", "dotprod", "i8mm", "bf16", "sve", "sve2")
# Names of Arm's features: Linux, Documentation/arch/arm64/elf_hwcaps.rst.
_ARM_LINUX_NAMES: Final = {
    "neon": "asimd",
    "fparmv8": "fp",
    "fullfp16": "asimdhp",
    "fp16fml": "asimdfhm",
    "dotprod": "asimddp",
    "rdm": "asimdrdm",
    "complxnum": "fcma",
    "jsconv": "jscvt",
    "rcpc": "lrcpc",
    "lse": "atomics",
    "crc": "crc32",
    "fptoint": "frint",
    "altnzcv": "flagm2",
    "rand": "rng",
    "pauth": "paca",
    "ccpp": "dcpop",
    "ccdp": "dcpodp",
    "sve2aes": "sveaes",
    "sve2sha3": "svesha3",
    "sve2sm4": "svesm4",
    "sve2bitperm": "svebitperm",
    "f32mm": "svef32mm",
    "f64mm": "svef64mm",
    "vfp2": "vfp",
    "vfp3": "vfpv3",
    "vfp4": "vfpv4",
    "hwdiv": "idivt",
    "hwdivarm": "idiva",
}
_RISCV: Final = ("m", "a", "f", "d", "c", "v", "zfh", "zfhmin", "zvfh", "zvfhmin", "zvfbfmin", "zba", "zbb", "zbs")

TARGET: Final = Target(
    name="generic",
    title="plain LLVM vectors for any backend",
    vector_bytes=16,
    registers=16,
    cpus=CPU_FEATURES,
    permutes=PERMUTES,
    vectors=(
        VectorRegisters(64, 32, "avx512f", masked_bits=(32, 64), fused=True, converts_half=True, rounds=True),
        VectorRegisters(32, 16, "avx2", masked_bits=(32, 64), rounds=True),
        VectorRegisters(16, 32, "neon", ("aarch64", "arm64")),
    ),
    linux_names=MappingProxyType(_ARM_LINUX_NAMES),
    host_features=MappingProxyType({"aarch64": _ARM, "arm64": _ARM, "riscv64": _RISCV}),
)
