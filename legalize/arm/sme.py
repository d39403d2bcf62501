"""`sme`: AArch64 with the Scalable Matrix Extension: outer products on ZA; all else on Advanced SIMD.

Streaming mode has vectors of a length that is known when the code is lowered: 128 bits, or what `--vector-bits` says;
`sme256` and `sme512` are the same for other lengths, as versions in one program. Kernels with tiles run in streaming
mode; LLVM, from version 19, compiles their other vectors to the instructions of SVE that the mode has, even where the
machine has no SVE outside of it. Kernels without tiles run outside of it, on Advanced SIMD, whose registers of 16 bytes
make up a longer vector.

A kernel with a ZA of its own refers to functions of the procedure call standard that libgcc has since GCC 14. Weak
definitions take their place: they are called only if a caller of the kernel has left its own ZA to be saved, and trap.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from tlx.ir.module import Raw
from tlx.legalize.arm.features import host_vector_length
from tlx.legalize.arm.neon import TARGET as NEON
from tlx.legalize.arm.za import za_unit
from tlx.target.hardware import CompilerVersions

if TYPE_CHECKING:
    from tlx.ir.module import Module
    from tlx.target.target import Target

_REGISTER_FILE_BYTES: Final = 512
_UNUSED: Final = "call void @llvm.trap()\n  unreachable"
_SUPPORT: Final = {
    "void @__arm_tpidr2_save()": _UNUSED,
    "void @__arm_tpidr2_restore()": _UNUSED,
    "i64 @__arm_get_current_vg()": "ret i64 0",
}
"""Functions of the procedure call standard, section "SME support routines".

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
    text, trap = module.raw_text(), "declare void @llvm.trap()"
    if trap not in text:
        module.append(Raw(f"\n\n{trap}"))
    for signature, body in _SUPPORT.items():
        if signature.partition(" ")[2] not in text:  # of another version, or the program's own
            module.append(Raw(f"\n\ndefine weak hidden {signature} nounwind {{\n  {body}\n}}"))


TARGET: Final = _of_length(
    replace(
        NEON,
        name="sme",
        title="AArch64 with SME (float, bfloat, half, bytes)",
        features=("+sme", *NEON.features),
        compilers=CompilerVersions(19),
        finish=_finish,
        at_width=_of_length,
        widths=(16, 32, 64),
        dots=(),
        cpus={},
        detect_features=partial(host_vector_length, "sme"),
    )
)
