"""From plain LLVM IR to optimised IR, bitcode, assembly or an object file, by LLVM in a process of its own.

LLVM ends its process over IR it cannot generate code for (an intrinsic the features do not allow, a tensor operation
that was not lowered); here that is an error with LLVM's words in it.
"""

from __future__ import annotations

from typing import Final, Literal

from tlx.diagnostics import TlxError, UsageError
from tlx.llvm.process import LLVMCrashError, LLVMRejectedError, llvm

Kind = Literal["ll", "bc", "asm", "obj"]
SCALAR_AMX: Final = "-enable-x86-scalar-amx"
_WORDS: Final = {"ll": "LLVM IR", "bc": "bitcode", "asm": "assembly", "obj": "an object file"}


class CodegenError(TlxError):
    """LLVM cannot turn a module into code."""


def emit(
    text: str,
    kind: Kind,
    opt_level: int | None = None,
    cpu: str = "",
    features: str = "",
    triple: str = "",
    *,
    emulate_matrix: bool = False,
    jit: bool = False,
) -> bytes:
    """Optimise and emit a module.

    Args:
        text: LLVM assembly without tensor operations.
        kind: What to make of it: ll, bc, asm, obj.
        opt_level: 0 to 3 runs LLVM's pipeline of that level first; None leaves the IR as it is.
        cpu: Processor to generate code for; empty for any of its architecture.
        features: Features of all functions that do not name their own, `+a,-b`.
        triple: Target triple; empty for the module's own, or that of this machine if it has none.
        emulate_matrix: Have LLVM make loops of AMX instructions.
        jit: Make code for loading into this process rather than for linking.

    Raises:
        CodegenError: LLVM rejects the module, the triple or the features, or crashes.
    """
    from tlx.asked_target import triple_of
    from tlx.llvm.advice import advice
    from tlx.llvm.older import respelled, without_nul
    from tlx.llvm.triples import baseline, native_triple, normalized

    if opt_level is not None and not 0 <= opt_level <= 3:
        raise UsageError(f"optimisation level {opt_level}: levels are 0 to 3")
    process = llvm((SCALAR_AMX,) if emulate_matrix else ())
    machine = triple or triple_of(text)
    own = () if cpu else baseline(machine or native_triple(), text)
    try:
        return process.ask(
            "emit",
            respelled(without_nul(text)),
            kind=kind,
            level=opt_level,
            cpu=cpu,
            features=",".join([*own, *([features] if features else [])]),
            triple=normalized(machine),
            jit=jit,
        )
    except LLVMRejectedError as rejected:
        said = rejected.message.strip()
        notes = advice(said, machine) if rejected.kind == "emit" else []
        raise CodegenError(f"LLVM cannot emit {_WORDS[kind]}: {said}", notes=notes) from None
    except LLVMCrashError as died:
        notes = advice(died.message, machine)
        raise CodegenError(f"LLVM cannot emit {_WORDS[kind]}: {died.message}", notes=notes) from None
