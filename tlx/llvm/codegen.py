"""From plain LLVM IR to optimised IR, bitcode, assembly or an object file, by LLVM in a process of its own.

LLVM ends its process over IR it cannot generate code for (an intrinsic the features do not allow, a tensor operation
that was not lowered); here that is an error with LLVM's words in it, and with a note that says what to do about it.
"""

from __future__ import annotations

import re
from typing import Final, Literal

from tlx.diagnostics import Note, TlxError, UsageError
from tlx.llvm.process import LLVMCrashError, LLVMRejectedError, llvm
from tlx.llvm.triples import normalized

OutputKind = Literal["ll", "bc", "asm", "obj"]
SCALAR_AMX: Final = "-enable-x86-scalar-amx"
_WORDS: Final = {"ll": "LLVM IR", "bc": "bitcode", "asm": "assembly", "obj": "an object file"}


class CodegenError(TlxError):
    """LLVM cannot turn a module into code."""


def emit_code(
    text: str,
    kind: OutputKind,
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
    from tlx.llvm.triples import baseline, native_triple, normalized, triple_of
    from tlx.llvm.upgrade import escape_nul, upgrade_ir

    if opt_level is not None and not 0 <= opt_level <= 3:
        raise UsageError(f"optimisation level {opt_level}: levels are 0 to 3")
    process = llvm((SCALAR_AMX,) if emulate_matrix else ())
    machine = triple or triple_of(text)
    own = () if cpu else baseline(machine or native_triple(), text)
    try:
        return process.ask(
            "emit",
            upgrade_ir(escape_nul(text)),
            kind=kind,
            level=opt_level,
            cpu=cpu,
            features=",".join([*own, *([features] if features else [])]),
            triple=normalized(machine),
            jit=jit,
        )
    except LLVMRejectedError as rejected:
        said = rejected.message.strip()
        notes = codegen_notes(said, machine) if rejected.kind == "emit" else []
        raise CodegenError(f"LLVM cannot emit {_WORDS[kind]}: {said}", notes=notes) from None
    except LLVMCrashError as died:
        notes = codegen_notes(died.message, machine)
        raise CodegenError(f"LLVM cannot emit {_WORDS[kind]}: {died.message}", notes=notes) from None


_NO_CPU: Final = re.compile(r"(amdgcn|r600|nvptx|spirv|dxil|bpf)")

# What LLVM says, and what that calls for; the first that fits.
_REMEDIES: Final = (
    (
        r"Invalid HVX vector length",
        "features of HVX need the length of its vectors: --mattr=+hvxv66,+hvx-length128b",
    ),
    (
        r"can't emit a file of this type|createMCCodeEmitter failed",
        "LLVM writes no object files for this triple: take --emit=asm and an assembler of the platform",
    ),
    (
        r"Inline asm not supported by this streamer",
        "this LLVM assembles for the machine that it runs on: take --emit=asm, and an assembler of the platform",
    ),
    (
        r"No available targets|Unable to find target|invalid target triple",
        "this LLVM has no backend for the triple: take --emit=ll, and compile that by an LLVM that has one",
    ),
    (
        r"soft promote this operator's operand",
        "LLVM has no vectors of 9, 17, 33, ... bfloat for AVX512-BF16: pad them, or compile without avx512bf16",
    ),
    (
        r"Cannot select: .*intrinsic|Cannot select: intrinsic",
        "an intrinsic needs features, or a machine, other than those asked for: see --mattr, --mcpu and --mtriple",
    ),
    (
        r"Hard-float .* ABI can't be used",
        "the module's flag target-abi asks for registers that the features lack: add them by --mattr=+f,+d",
    ),
)


def codegen_notes(said: str, triple: str) -> list[Note]:
    """What to do about LLVM's words.

    Args:
        said: Why it gave up.
        triple: The machine; empty for this one.
    """
    text = " ".join(said.split())
    found = next((what for pattern, what in _REMEDIES if re.search(pattern, text)), "")
    if not found and _NO_CPU.match(normalized(triple)):
        found = (
            f"TLX makes code for processors that have one stack and call functions, and '{triple}' has not: take "
            "--emit=ll for what LLVM is given"
        )
    if not found:
        found = (
            "LLVM's backend gave up, on IR that it verified: another -O or fewer features may do, or --emit=ll and "
            "another version of LLVM; if plain LLVM IR like it compiles, please report it with the input"
        )
    return [Note(found)]
