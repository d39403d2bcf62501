"""The LLVM IR of a source, lowered for the machine that clang compiles for.

Errors, warnings and remarks point at the source. That takes debug information: a source without it is compiled a second
time, with line tables, if there is a message.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from tlx.api import files
from tlx.cli.driver.locations import Message, message_of
from tlx.cli.driver.settings import Settings
from tlx.cli.program import STDERR
from tlx.diagnostics import TlxError, TlxWarning, UsageError, recorded_warnings
from tlx.llvm.triples import architecture, native_triple, triple_of
from tlx.lower.remarks import Remarks
from tlx.target.host import best_target, cpu_flags, host_caches, missing_features
from tlx.target.installed import targets
from tlx.target.target import Target

if TYPE_CHECKING:
    from tlx.lower.options import Options

_FEATURES: Final = re.compile(r'"target-features"="([^"]*)"')
_CPU: Final = re.compile(r'"target-cpu"="([^"]*)"')
_LENGTH: Final = re.compile(r"vscale_range\((\d+),\1\)")
_HAS_LOCATIONS: Final = re.compile(r"(?m)^!\d+ = (?:distinct )?!DILocation\(")


@dataclass(slots=True)
class Outcome:
    """The result of the lowering, with its messages.

    Attributes:
        text: The lowered module; None after an error, or if it has no tensor operations.
        messages: Errors and warnings.
        remarks: Decisions.
        failed: Whether there was an error.
    """

    text: str | None = None
    messages: list[Message] = field(default_factory=list[Message])
    remarks: list[Message] = field(default_factory=list[Message])
    failed: bool = False


def lower_source(
    text: str, name: str, program: str, settings: Settings, *, is_native: bool, locate: Callable[[], str]
) -> Outcome:
    """Lower the module of a source.

    Args:
        text: The module.
        name: The source.
        program: The driver, which reports errors that concern its options.
        settings: How.
        is_native: Whether clang compiles for the processor of this machine.
        locate: Returns the module with line tables.
    """
    from tlx.lower.pipeline import has_work

    if not has_work(text):
        return Outcome()
    outcome = _lowered(text, name, program, settings, is_native=is_native)
    if not (outcome.messages or outcome.remarks) or _HAS_LOCATIONS.search(text):
        return outcome
    located = _lowered(locate() or text, name, program, settings, is_native=is_native)
    return replace(outcome, messages=located.messages, remarks=located.remarks)


def _lowered(text: str, name: str, program: str, settings: Settings, *, is_native: bool) -> Outcome:
    from tlx.lower.pipeline import lower_text

    options: Options = replace(settings.options, remarks=Remarks())
    outcome = Outcome()
    with recorded_warnings() as given, warnings.catch_warnings():
        warnings.simplefilter("ignore", TlxWarning)
        try:
            target = settings.target or default_target(text, is_native=is_native)
            outcome.text = lower_text(text, name, target, options=options)
        except TlxError as error:
            outcome.failed = True
            where = program if isinstance(error, UsageError) and error.name is None else name
            outcome.messages.append(message_of("error", error.message, error.span, error.notes, where))
    outcome.messages += [message_of("warning", w.message, w.span, w.notes, name) for w in given]
    if settings.has_remarks:
        outcome.remarks = [
            message_of("remark", f"{remark.message} [{remark.stage}]", remark.span, (), name)
            for remark in options.remarks
        ]
    return outcome


def default_target(text: str, *, is_native: bool) -> Target:
    """The best target for the machine that clang compiled a module for.

    The features are those that all functions have: functions with features of their own do not count. A target for one
    length of scalable vectors is chosen only if all functions state that length, as they do under
    `-msve-vector-bits=256`.

    Args:
        text: The module.
        is_native: Whether it is this machine, whose caches are known.
    """
    machine = architecture(triple_of(text) or native_triple())
    sets = [{f[1:] for f in features.split(",") if f.startswith("+")} for features in _FEATURES.findall(text)]
    features = set[str]().union(*sets).intersection(*sets)
    cpus = set(_CPU.findall(text))
    lengths = {match.group() for match in _LENGTH.finditer(text)}
    known = list(targets().values())
    flags = set(features)
    for target in known:
        names = {
            linux
            for name, linux in target.detection.linux_names.items()
            if name in {f.replace("-", "") for f in features}
        }
        flags |= names if target.is_for(machine) else set()
        has_length = bool(lengths) and lengths <= {*target.attributes}
        if is_native and target.attributes:
            has_length = not missing_features(target, cpu_flags())
        if has_length and target.requires[0] in features:
            flags |= {*target.requires}
    if is_native:
        return best_target(known, frozenset(flags), host_caches(), machine)
    candidates = [target.on_cpu(next(iter(cpus))) for target in known] if len(cpus) == 1 else known
    return best_target(candidates, frozenset(flags), None, machine)


def write_remarks(path: str, messages: list[Message]) -> None:
    """Write remarks to a file, or to standard error."""
    text = "".join(f"{message.render()}\n" for message in messages)
    if path == STDERR:
        print(text, file=sys.stderr, end="")  # noqa: T201
    else:
        files.write_output(path, text)
