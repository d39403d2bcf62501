"""Names of processors and features: LLVM knows which there are, and ignores the others with a warning."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Final

from tlx.diagnostics import UsageError, did_you_mean
from tlx.llvm.codegen import codegen_notes
from tlx.llvm.process import LLVMCrashError, LLVMProcess, LLVMRejectedError, llvm
from tlx.llvm.triples import normalized

_NAME: Final = re.compile(r"(?m)^  ([^\s-]\S*) +- ")


def check_subtarget(
    triple: str, target: str, features: Sequence[str], cpu: str = "", asked: Sequence[str] = ()
) -> None:
    """See to it that machines of a triple have a processor and features of these names.

    Args:
        triple: The machine's triple; empty for that of this machine.
        target: What messages call the target.
        features: Features of the target, `+a` or `-b`.
        cpu: A processor, empty for any.
        asked: Those features that the user named.

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
    """A question whether another name was meant; nothing where none is alike."""
    return did_you_mean(name, _NAME.findall(known), cutoff=0.75)
