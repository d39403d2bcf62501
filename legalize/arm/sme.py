"""`sme`: AArch64 with the Scalable Matrix Extension: outer products on ZA; everything else on Advanced SIMD.

Streaming mode has vectors of a length that is known when the code is lowered: 128 bits, or what `--vector-bits` says;
`sme256` and `sme512` are the same for other lengths, as versions in one program. Kernels with tiles run in streaming
mode; LLVM, from version 19, compiles their other vectors to the instructions of SVE that the mode has, even where the
machine has no SVE outside of it. Kernels without tiles run outside of it, on Advanced SIMD, whose registers of 16 bytes
make up a longer vector.

A kernel with a ZA of its own refers to functions of the procedure call standard that libgcc has since GCC 14. Weak
definitions take their place. If a caller of the kernel has left its own ZA to be saved, the kernel has it saved.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from tlx.ir.module import UnparsedText
from tlx.legalize.arm.host import host_vector_length
from tlx.legalize.arm.neon import TARGET as NEON
from tlx.legalize.arm.za import za_unit
from tlx.target.instructions.compilers import CompilerVersions, LlvmBackend
from tlx.target.machines import VectorLengths

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tlx.ir.module import Module
    from tlx.target.target import Target

_REGISTER_FILE_BYTES: Final = 512
_STORE_SLICE: Final = 0xE1206200  # str za[w15, 0], [x16]
_LOAD_SLICE: Final = 0xE1006200  # ldr za[w15, 0], [x16]


def _moving_slices(move: int) -> tuple[int, ...]:
    """Code that moves X14 slices of ZA from or to X16, unless X16 is 0, and returns; its ninth word traps."""
    return (
        0xB4000130,  # cbz x16, 3f
        0xAA1F03EF,  # mov x15, xzr
        0xEB0F01DF,  # 1: cmp x14, x15
        0x540000C0,  # b.eq 3f
        move,
        0x04305830,  # addsvl x16, x16, #1
        0x910005EF,  # add x15, x15, #1
        0x17FFFFFB,  # b 1b
        0xD4200020,  # 2: brk #1
        0xD65F03C0,  # 3: ret
    )


_SAVE: Final = (
    0xD53BD0B0,  # mrs x16, TPIDR2_EL0      the address of a block: buffer, slices (2 bytes), zeros (6 bytes)
    0xB4000210,  # cbz x16, 3f              nothing was left to be saved
    0x7940160E,  # ldrh w14, [x16, #10]
    0xB9400E0F,  # ldr w15, [x16, #12]
    0x2A0F01CE,  # orr w14, w14, w15
    0x3500016E,  # cbnz w14, 2f             a block of a later version of the standard
    0x7940120E,  # ldrh w14, [x16, #8]
    0xF9400210,  # ldr x16, [x16]
    *_moving_slices(_STORE_SLICE),
)
_RESTORE: Final = (
    0xD53BD0AE,  # mrs x14, TPIDR2_EL0
    0xB50001EE,  # cbnz x14, 2f             the block is still to be saved
    0x7940140E,  # ldrh w14, [x0, #10]
    0xB9400C0F,  # ldr w15, [x0, #12]
    0x2A0F01CE,  # orr w14, w14, w15
    0x3500016E,  # cbnz w14, 2f
    0x7940100E,  # ldrh w14, [x0, #8]
    0xF9400010,  # ldr x16, [x0]
    *_moving_slices(_LOAD_SLICE),
)
"""The machine code of functions that change no registers but X14 to X17, which LLVM IR cannot say.

Inline assembly could, but LLVM libraries without an assembler for Arm, such as llvmlite's, cannot emit it.
"""


def _machine_code(words: Sequence[int]) -> tuple[str, str]:
    """Attributes and body of a function that consists of machine code: LLVM's prologue data."""
    return f"naked noinline prologue [{len(words)} x i32] [{', '.join(f'i32 {word}' for word in words)}]", "unreachable"


_SUPPORT: Final = {
    "void @__arm_tpidr2_save()": _machine_code(_SAVE),
    "void @__arm_tpidr2_restore(ptr)": _machine_code(_RESTORE),
    "i64 @__arm_get_current_vg()": ("", "ret i64 0"),
}
"""Functions of the procedure call standard, section "SME support routines", with attributes and bodies.

LLVM 19 asks for the length of vectors outside of streaming mode, for unwinders only, which kernels have none of.
"""


def _of_length(target: Target) -> Target:
    """The target for vectors of its length in streaming mode; each is several registers of Advanced SIMD elsewhere."""
    return replace(
        target,
        matrix=za_unit(target.vector_bytes),
        registers=_REGISTER_FILE_BYTES // target.vector_bytes,
        requires=("sme", f"sme{8 * target.vector_bytes}"),
    )


def _finish(module: Module, *, emulate_matrix: bool, request_permission: bool) -> None:  # noqa: ARG001
    """Define what kernels with tiles refer to."""
    if not any(name.startswith("llvm.aarch64.sme.") for name in module.declarations):
        return
    text = module.raw_text()
    for signature, (attributes, body) in _SUPPORT.items():
        name = signature.partition(" ")[2].partition("(")[0]
        if f"{name}(" not in text:  # of another version, or the program's own
            head = " ".join(filter(None, ("define weak hidden", signature, "nounwind", attributes)))
            module.append(UnparsedText(f"\n\n{head} {{\n  {body}\n}}"))


TARGET: Final = _of_length(
    replace(
        NEON,
        name="sme",
        title="AArch64 with SME (float, bfloat, half, bytes)",
        features=("+sme", *NEON.features),
        compilers=CompilerVersions(19),
        backend=LlvmBackend(has_saturating_conversions=False),  # LLVM 22 crashes on them in streaming mode
        finish=_finish,
        derive=_of_length,
        lengths=VectorLengths((16, 32, 64)),
        dots=(),
        cpus={},
        detection=replace(NEON.detection, find_features=partial(host_vector_length, "sme")),
    )
)
