"""`generic`: plain LLVM vectors and multiply-adds that any backend compiles.

Kernels carry no target features, or those that the function around them, `--mcpu` or `--mattr` name; these, the triple
or `--vector-bits` tell how wide vectors are. Without, 128 bits: they are native nearly everywhere. `llvm.fmuladd` is
one instruction where the machine has it and two where it has not, never a library call.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from tlx.legalize.x86.features import CPU_FEATURES
from tlx.target.hardware import VectorRegisters
from tlx.target.target import Target

_ARM: Final = ("neon", "fp-armv8", "fullfp16", "dotprod", "i8mm", "bf16", "sve", "sve2")
_RISCV: Final = ("m", "a", "f", "d", "c", "v", "zfh", "zfhmin", "zvfh", "zvfhmin", "zvfbfmin", "zba", "zbb", "zbs")

TARGET: Final = Target(
    name="generic",
    title="plain LLVM vectors for any backend",
    vector_bytes=16,
    registers=16,
    cpus=CPU_FEATURES,
    vectors=(
        VectorRegisters(64, 32, "avx512f", masked_bits=(32, 64), fused=True, converts_half=True, rounds=True),
        VectorRegisters(32, 16, "avx2", masked_bits=(32, 64), rounds=True),
        VectorRegisters(16, 32, "neon", ("aarch64", "arm64")),
    ),
    extras=MappingProxyType({"aarch64": _ARM, "arm64": _ARM, "riscv64": _RISCV}),
)
