"""Compiles modules to assembly, object files, bitcode or machine code, for a processor and its features."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from threading import Event
from typing import Final

from tlx.diagnostics import Note, TlxError, UsageError, did_you_mean
from tlx.llvm import OutputKind
from tlx.llvm.process import LLVMCrashError, LLVMProcess, LLVMRejectedError, llvm
from tlx.llvm.split import split_module
from tlx.llvm.triples import architecture, baseline, native_triple, normalized, presumed_features, triple_of

_NAME: Final = re.compile(r"(?m)^  ([^\s-]\S*) +- ")


def check_subtarget(triple: str, target: str, features: Sequence[str], cpu: str, requested: Sequence[str]) -> None:
    """Check that LLVM knows a processor and features for a triple.

    Args:
        triple: The target triple; empty for that of this machine.
        target: Name of the target in messages.
        features: Features of the target, `+a` or `-b`.
        cpu: A processor, empty for any.
        requested: The features that the user requested.

    Raises:
        UsageError: LLVM does not know the processor or a feature for the triple, or has no backend for the triple.
    """
    all_features = list(dict.fromkeys([*requested, *features]))
    try:
        reply = llvm().ask("unknown", "", triple=normalized(triple), features=all_features, cpus=[cpu] if cpu else [])
    except LLVMRejectedError as rejected:
        if all_features or cpu:
            raise UsageError(f"target {target} with triple '{triple}': {rejected.message.strip()}") from None
        return
    except LLVMCrashError as crash:
        message = f"LLVM cannot generate code with features {','.join(all_features)}{_on(triple)}: {crash.message}"
        raise UsageError(message, notes=_remedies(crash.message, triple)) from None
    unknown = json.loads(reply)
    if not triple and any(feature not in requested for feature in unknown["features"]):
        return  # the target is not for this machine's architecture, and no triple is given
    if name := next((feature[1:] for feature in unknown["features"] if feature in requested), ""):
        raise UsageError(
            f"unknown feature '{name}'{_on(triple)}{_suggestion(name, _processors_and_features(triple)[1])}"
        )
    if unknown["cpus"]:
        hint = (
            "; use --target=native for this machine"
            if cpu == "native"
            else _suggestion(cpu, _processors_and_features(triple)[0])
        )
        raise UsageError(f"unknown processor '{cpu}'{_on(triple)}{hint}")
    if unknown["features"]:
        names = [feature[1:] for feature in unknown["features"]]
        message = f"target {target} needs features that triple '{triple}' does not have: {', '.join(names[:3])}"
        raise UsageError(
            f"{message}{_suggestion(names[0], _processors_and_features(triple)[1]) if len(names) == 1 else ''}"
        )


@cache
def lacking_features(
    triple: str, cpu: str, features: tuple[str, ...], wanted: tuple[str, ...]
) -> frozenset[str] | None:
    """Features that a processor lacks, by LLVM, which inlines functions only where the caller has all their features.

        define internal void @need.0() "target-cpu"="haswell" "target-features"="+amx-tile" { ... }
        define void @has.0() "target-cpu"="haswell" { call void @need.0() ... }                         still a call

    Args:
        triple: The target triple; empty for that of this machine.
        cpu: A processor that LLVM knows.
        features: Features that are added to the processor's, or removed, `+a` or `-b`.
        wanted: The features, without their plus.

    Returns:
        None if LLVM cannot compile one of them for the processor, as HVX without the length of its vectors, or any code
        of 64 bits for one of 32.
    """
    text = "declare void @effect()\n"
    for number, feature in enumerate(wanted):
        for prefix, callee, has in (
            ("internal void @need", "effect", (*features, f"+{feature}")),
            ("void @has", f"need.{number}", features),
        ):
            attributes = f'"target-cpu"="{cpu}" "target-features"="{",".join(has)}"'
            text += f"define {prefix}.{number}() {attributes} {{\n  call void @{callee}()\n  ret void\n}}\n"
    try:
        inlined = emit_code(text, "ll", 1, triple=triple).decode()
    except CodegenError:
        return None
    return frozenset(feature for number, feature in enumerate(wanted) if f"@need.{number}(" in inlined)


def _processors_and_features(triple: str) -> tuple[str, str]:
    """LLVM's lists of processors and features, from a new process: LLVM prints them once per process only."""
    process = LLVMProcess()
    try:
        cpus, _, features = process.ask("known", "", triple=normalized(triple)).decode().partition("Available features")
    finally:
        process.close()
    return cpus, features


def _on(triple: str) -> str:
    return f" for triple '{triple}'" if triple else ""


def _suggestion(name: str, known: str) -> str:
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
    passes: bool = True,
    process: LLVMProcess | None = None,
    cancelled: Event | None = None,
) -> bytes:
    """Optimise and emit a module.

    Args:
        text: LLVM assembly without tensor operations.
        kind: What to emit: ll, bc, asm or obj.
        opt_level: 0 to 3 runs LLVM's pipeline of that level first; None leaves the IR as it is.
        cpu: Processor to generate code for; empty for any of its architecture.
        features: Features of all functions that do not name their own, `+a,-b`.
        triple: Target triple; empty for that of the module, or of this machine if the module has none.
        llvm_options: Command-line options of LLVM, such as those that emulate a matrix unit.
        jit: Generate code to load into this process rather than to link.
        passes: Whether to run LLVM's pipeline; without, the level is that of code generation only.
        process: The process that does it; by default the one that all callers share.
        cancelled: Identifies the request, to cancel it.

    Raises:
        CodegenError: LLVM rejects the module, the triple or the features, or crashes.
        LLVMCancelledError: The request was cancelled.
    """
    from tlx.llvm.upgrade import upgrade_ir
    from tlx.llvm.verification import escape_nul

    if opt_level is not None and not 0 <= opt_level <= 3:
        raise UsageError(f"optimisation level {opt_level}: levels are 0 to 3")
    machine = triple or triple_of(text)
    process = process or llvm((*_without_defective_passes(machine), *llvm_options))
    defaults = () if cpu else baseline(machine or native_triple(), text)
    try:
        return process.ask(
            "emit",
            upgrade_ir(escape_nul(text)),
            cancelled=cancelled,
            kind=kind,
            level=opt_level,
            cpu=cpu,
            features=",".join([*defaults, *presumed_features(features), *([features] if features else [])]),
            triple=normalized(machine),
            jit=jit,
            passes=passes,
        )
    except LLVMRejectedError as rejected:
        message = rejected.message.strip()
        notes = _remedies(message, machine) if rejected.kind == "emit" else []
        raise CodegenError(f"LLVM cannot emit {_WORDS[kind]}: {message}", notes=notes) from None
    except LLVMCrashError as crash:
        avoiding = _workaround(crash.message, llvm_options)
        if avoiding:
            options = (*llvm_options, avoiding)
            return emit_code(text, kind, opt_level, cpu, features, triple, llvm_options=options, jit=jit, passes=passes)
        notes = _remedies(crash.message, machine)
        raise CodegenError(f"LLVM cannot emit {_WORDS[kind]}: {crash.message}", notes=notes) from None


_DEFECTS: Final = {"Target hint is outside allocation order": ("-enable-misched=0", "-regalloc=pbqp")}
"""Assertions that fail on valid code, and options with which LLVM compiles it, each tried with those before it.

On Power, LLVM 22 suggests a register of another class for an accumulator of which only a part is needed later; without
the scheduler before register allocation, there are mostly registers enough, and the allocator `pbqp` takes no
suggestions. Builds without assertions ignore the suggestion.
"""
_DEFECTIVE_PASSES: Final = {
    "hexagon": ("-hvc-va=0",),
    "powerpc64": ("-enable-spill-copy-elim=false",),
    "powerpc64le": ("-enable-spill-copy-elim=false",),
}
"""Options that leave out passes which make wrong code, by architecture.

Of several unaligned loads from the same array, Hexagon's pass makes aligned ones of as many whole vectors as the loads
span, and one more: it reads up to a vector beyond the last load, maybe on a page that is inaccessible. Without it,
unaligned loads are instructions of their own.

Where the allocator keeps a value in another register instead of on the stack, LLVM 22 shortens the chain of copies on
Power, and loses some: a constant in a register is overwritten in a loop, and not restored for the next iteration.
"""


def _without_defective_passes(triple: str) -> tuple[str, ...]:
    """Options that leave out the defective passes for a triple; an empty one is that of this machine."""
    return _DEFECTIVE_PASSES.get(architecture(triple or native_triple()), ())


def _workaround(message: str, options: Sequence[str]) -> str:
    """The option to try after some options, with which LLVM may not crash as a message says; empty if none is left."""
    known = next((known for assertion, known in _DEFECTS.items() if assertion in message), ())
    return next((option for option in known if option not in options), "")


_LESS_WORK: Final = ("-disable-lsr", "-combiner-store-merging=0")
"""Options for parts of large kernels, for code that is as fast in less time.

Without strength reduction, LLVM does not replace the indices of loops by pointers, which takes a fifth of its time.
ResNet-50 and an object detector in bfloat run as fast, the detector in float takes 1 % longer. Without merging of
stores, it does not look for neighbours of stores, which are as wide as a register already: 6 % of its time for
ResNet-50, 5 % and 1 % for the detector in float and bfloat; they run as fast (Intel Xeon, AVX-512, 2026-11-29). Other
functions keep both."""


def emit_objects(
    text: str, opt_level: int, cpu: str = "", features: str = "", *, llvm_options: Sequence[str] = ()
) -> list[bytes]:
    """Object files of a module, which are linked together: several for a large one, compiled at the same time.

    Args:
        text: LLVM assembly without tensor operations.
        opt_level: 0 to 3.
        cpu: Processor to generate code for; empty for any of its architecture.
        features: Features of all functions that do not name their own, `+a,-b`.
        llvm_options: Command-line options of LLVM.

    Raises:
        CodegenError: See `emit_code`.
    """
    options = tuple(llvm_options)
    rest, *kernels = split_module(text)
    if not kernels:
        return [emit_code(rest, "obj", opt_level, cpu, features, llvm_options=options)]
    apart = (*_without_defective_passes(triple_of(text)), *options, *_LESS_WORK)
    idle = [LLVMProcess(apart) for _ in range(min(len(kernels), _processors()))]
    processes = list(idle)
    cancelled = Event()

    def emit(part: str) -> bytes:
        process = idle.pop()
        try:
            return emit_code(
                part,
                "obj",
                opt_level,
                cpu,
                features,
                llvm_options=options,
                passes=False,
                process=process,
                cancelled=cancelled,
            )
        finally:
            idle.append(process)

    try:
        for process in processes:
            process.start()
        with ThreadPoolExecutor(len(processes)) as threads:
            try:
                images = threads.map(emit, kernels)
                return [emit_code(rest, "obj", opt_level, cpu, features, llvm_options=options), *images]
            finally:  # after an error or an interrupt, nobody waits for the other parts
                for process in processes:
                    process.cancel(cancelled)
    finally:
        for process in processes:
            process.close()


def _processors() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_NO_CPU: Final = re.compile(r"(amdgcn|r600|nvptx|spirv|dxil|bpf)")

# LLVM's messages and their remedies; the first match counts.
_REMEDIES: Final = (
    (
        r"Invalid HVX vector length",
        "HVX features need a vector length: --mattr=+hvxv66,+hvx-length128b",
    ),
    (
        r"can't emit a file of this type|createMCCodeEmitter failed",
        "LLVM writes no object files for this triple: use --emit=asm and the platform's assembler",
    ),
    (
        r"Inline asm not supported by this streamer",
        "this LLVM assembles inline assembly for its host only: use --emit=asm and the platform's assembler",
    ),
    (
        r"No available targets|Unable to find target|invalid target triple",
        "this LLVM has no backend for the triple: use --emit=ll, and compile the result with an LLVM that has one",
    ),
    (
        r"soft promote this operator's operand",
        "LLVM cannot legalise vectors of 9, 17, 33, ... bfloat here: pad them, or disable the bfloat feature",
    ),
    (
        r"Cannot select: .*intrinsic|Cannot select: intrinsic",
        "an intrinsic needs another feature or processor: see --mattr, --mcpu and --mtriple",
    ),
    (
        r"Hard-float .* ABI can't be used",
        "the module flag target-abi needs floating-point registers: enable them with --mattr=+f,+d",
    ),
)


def _remedies(message: str, triple: str) -> list[Note]:
    """A note with the remedy for an error of LLVM.

    Args:
        message: LLVM's message.
        triple: The target triple; empty for that of this machine.
    """
    text = " ".join(message.split())
    remedy = next((note for pattern, note in _REMEDIES if re.search(pattern, text)), "")
    if not remedy and _NO_CPU.match(normalized(triple)):
        remedy = (
            f"TLX generates code for CPUs with a call stack, which '{triple}' is not: use --emit=ll to write the IR "
            "instead"
        )
    if not remedy:
        remedy = (
            "LLVM's backend failed on valid IR: try another -O level, fewer features, or --emit=ll and another "
            "version of LLVM; if none of them helps, please report it with the input"
        )
    return [Note(remedy)]
