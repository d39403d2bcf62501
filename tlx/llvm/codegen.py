"""Compiles modules to assembly, object files, bitcode or machine code, for a processor and its features."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Final

from tlx.diagnostics import Note, TlxError, UsageError, did_you_mean
from tlx.llvm import OutputKind
from tlx.llvm.process import LLVMCrashError, LLVMProcess, LLVMRejectedError, llvm
from tlx.llvm.triples import normalized

_NAME: Final = re.compile(r"(?m)^  ([^\s-]\S*) +- ")


def check_subtarget(
    triple: str, target: str, features: Sequence[str], cpu: str = "", asked: Sequence[str] = ()
) -> None:
    """Check that LLVM knows a processor and features for a triple.

    Args:
        triple: The target triple; empty for that of this machine.
        target: Name of the target in messages.
        features: Features of the target, `+a` or `-b`.
        cpu: A processor, empty for any.
        asked: The features that the user requested.

    Raises:
        UsageError: LLVM does not know one of them there, or generates no code for the triple.
    """
    wanted = dict.fromkeys([*asked, *features])
    place = normalized(triple)
    try:
        reply = llvm().ask("unknown", "", triple=place, features=list(wanted), cpus=[cpu] if cpu else [])
    except LLVMRejectedError as rejected:
        if wanted or cpu:
            raise UsageError(f"target {target} with triple '{triple}': {rejected.message.strip()}") from None
        return
    except LLVMCrashError as died:
        features = ",".join(wanted)
        message = f"LLVM cannot make code for a machine with {features}{_on(triple)}: {died.message}"
        raise UsageError(message, notes=codegen_notes(died.message, triple)) from None
    unknown = json.loads(reply)
    if not triple and any(feature not in asked for feature in unknown["features"]):
        return  # the target is not for this machine's architecture, and none is named
    if own := [feature for feature in unknown["features"] if feature in asked]:
        raise UsageError(f"unknown feature '{own[0][1:]}'{_on(triple)}{_near(own[0][1:], _known(triple)[1])}")
    if unknown["cpus"]:
        hint = "; --target=native is for this machine" if cpu == "native" else _near(cpu, _known(triple)[0])
        raise UsageError(f"unknown processor '{cpu}'{_on(triple)}{hint}")
    if unknown["features"]:
        names = ", ".join(feature[1:] for feature in unknown["features"][:3])
        raise UsageError(f"target {target} needs features that machines of triple '{triple}' do not have: {names}")


def _known(triple: str) -> tuple[str, str]:
    """LLVM's lists of processors and features, from a process of its own: none writes them a second time."""
    process = LLVMProcess()
    try:
        cpus, _, features = process.ask("known", "", triple=normalized(triple)).decode().partition("Available features")
    finally:
        process.close()
    return cpus, features


def _on(triple: str) -> str:
    return f" for triple '{triple}'" if triple else ""


def _near(name: str, known: str) -> str:
    """A suggestion of a similar name; empty if there is none."""
    return did_you_mean(name, _NAME.findall(known), cutoff=0.75)


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
    llvm_options: Sequence[str] = (),
    jit: bool = False,
) -> bytes:
    """Optimise and emit a module.

    Args:
        text: LLVM assembly without tensor operations.
        kind: What to emit: ll, bc, asm or obj.
        opt_level: 0 to 3 runs LLVM's pipeline of that level first; None leaves the IR as it is.
        cpu: Processor to generate code for; empty for any of its architecture.
        features: Features of all functions that do not name their own, `+a,-b`.
        triple: Target triple; empty for the module's own, or that of this machine if it has none.
        llvm_options: Command-line options of LLVM, such as those that emulate a matrix unit.
        jit: Make code for loading into this process rather than for linking.

    Raises:
        CodegenError: LLVM rejects the module, the triple or the features, or crashes.
    """
    from tlx.llvm.judge import escape_nul, upgrade_ir
    from tlx.llvm.triples import baseline, native_triple, normalized, triple_of

    if opt_level is not None and not 0 <= opt_level <= 3:
        raise UsageError(f"optimisation level {opt_level}: levels are 0 to 3")
    process = llvm(tuple(llvm_options))
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

# LLVM's messages and their remedies; the first match counts.
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
        "LLVM has no vectors of 9, 17, 33, ... bfloat here: pad them, or compile without the feature for bfloat",
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
    """A note with the remedy for a message of LLVM.

    Args:
        said: The message.
        triple: The target triple; empty for that of this machine.
    """
    text = " ".join(said.split())
    remedy = next((what for pattern, what in _REMEDIES if re.search(pattern, text)), "")
    if not remedy and _NO_CPU.match(normalized(triple)):
        remedy = (
            f"TLX makes code for processors that have one stack and call functions, and '{triple}' has not: take "
            "--emit=ll for what LLVM is given"
        )
    if not remedy:
        remedy = (
            "LLVM's backend gave up, on IR that it verified: another -O or fewer features may do, or --emit=ll and "
            "another version of LLVM; if plain LLVM IR like it compiles, please report it with the input"
        )
    return [Note(remedy)]
