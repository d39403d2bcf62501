"""`generic`: plain LLVM vectors and multiply-adds that any backend compiles.

Kernels have no target features, or those of the function around them, `--mcpu` or `--mattr`. These, the triple or
`--vector-bits` set the width of vectors; the default is 128 bits, which nearly every machine has. `llvm.fmuladd` is one
instruction if the machine has it and otherwise two, never a library call.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from tlx.legalize.arm import features as arm
from tlx.legalize.power import features as power
from tlx.legalize.riscv import features as riscv
from tlx.legalize.x86 import avx2
from tlx.legalize.x86.avx512 import PERMUTES
from tlx.legalize.x86.features import PROCESSORS
from tlx.target.instructions.vectors import NarrowFloats, VectorInstructions
from tlx.target.machines import VectorRegisterFile
from tlx.target.target import Detection, Target

TARGET: Final = Target(
    name="generic",
    title="plain LLVM vectors for any backend",
    vector_bytes=16,
    registers=16,
    cpus=PROCESSORS,
    register_files=(
        VectorRegisterFile(
            64,
            32,
            "avx512f",
            instructions=VectorInstructions(has_fma=True, has_rounding=True, masked_bits=(32, 64), permutes=PERMUTES),
            narrow_floats=NarrowFloats(converts_half=True),
        ),
        VectorRegisterFile(
            32,
            16,
            "avx2",
            instructions=VectorInstructions(has_rounding=True, masked_bits=(32, 64)),
            core=avx2.CORE,
        ),
        VectorRegisterFile(16, 32, "neon", ("aarch64", "aarch64_be")),
        VectorRegisterFile(16, 64, "vsx", ("powerpc64le",)),
        VectorRegisterFile(16, 32, "v"),
    ),
    detection=Detection(
        linux_names=MappingProxyType(arm.LINUX_NAMES | power.LINUX_NAMES),
        host_features=MappingProxyType(
            {
                "aarch64": arm.HOST_FEATURES,
                "riscv64": riscv.HOST_FEATURES,
                **dict.fromkeys(("powerpc64le", "powerpc64"), power.HOST_FEATURES),
            }
        ),
        features_in_cpuinfo=power.features_in_cpuinfo,
    ),
)
