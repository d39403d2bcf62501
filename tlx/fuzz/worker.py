"""Checks programs in a separate process, since LLVM or invalid accesses in compiled code may crash it.

    python -m tlx.fuzz.worker

Standard input has one request per line, standard output the events, each a line of JSON:

    {"profile": "any", "source": 7, "target": "avx2", ...}    ->    {"doing": "lowering to to-2d"}
                                                                    {"failed": "mismatch", "stage": ..., "message": ...}

Each step is announced before it can crash the process. A program that exceeds its CPU time ends the process by SIGPROF.
"""

from __future__ import annotations

import gc
import json
import signal
import sys
import time
import traceback
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

import numpy as np

from tlx.diagnostics import TlxError
from tlx.fuzz.check import CheckSettings, MismatchError, RefusedError, check_program
from tlx.fuzz.generation.model import ChoiceNode
from tlx.fuzz.generation.profiles import PROFILES
from tlx.fuzz.generation.programs import RandomProgram, portable, random_program
from tlx.fuzz.graphs.check import check_graph
from tlx.fuzz.graphs.generator import random_graph
from tlx.fuzz.graphs.program import GraphProgram
from tlx.fuzz.options import RandomOptions
from tlx.llvm.process import LLVMProcess

GRAPHS: Final = "graphs"
SECONDS: Final = 120
"""CPU time for one program."""
_LLVM_SECONDS: Final = 30
"""CPU time for LLVM, in its own process, to compile one program."""


@dataclass(frozen=True)
class Request:
    """A program to check.

    Attributes:
        profile: Profile of the program; `GRAPHS` for a graph of tensors.
        source: Its seed, or the tree of numbers drawn for it.
        check: How to check it.
        operations: Names of the operations it may use; empty for all.
    """

    profile: str
    source: int | ChoiceNode
    check: CheckSettings
    operations: tuple[str, ...] = field(default=())

    def program(self) -> RandomProgram | GraphProgram:
        """Generate the program."""
        if self.profile == GRAPHS:
            return random_graph(self.source, self.operations)
        profile = PROFILES[self.profile]
        if self.operations:
            profile = replace(profile, operations=self.operations)
        source = self.source if isinstance(self.source, ChoiceNode) else f"{self.profile} {self.source}"
        program = random_program(profile, source)
        return portable(program) if self.check.emulator else program

    @property
    def text(self) -> str:
        """The program's text, before LLVM's `opt` has transformed it."""
        return self.check.drawn.compiled_for(self.program().text)

    def as_json(self) -> str:
        """The request as a line of JSON."""
        source = self.source.as_json() if isinstance(self.source, ChoiceNode) else self.source
        return json.dumps({**asdict(replace(self, source=0)), "source": source})

    @classmethod
    def of_json(cls, line: str) -> Request:
        """The request that `as_json` wrote."""
        value = json.loads(line)
        source = value["source"] if isinstance(value["source"], int) else ChoiceNode.of_json(value["source"])
        drawn = RandomOptions.of_json(value["check"].pop("drawn"))
        check = CheckSettings(**value["check"], drawn=drawn)
        check = replace(check, features=tuple(check.features))
        return cls(value["profile"], source, check, tuple(value["operations"]))


def answer(request: Request) -> None:
    """Check a program and report the outcome."""
    begun = time.monotonic()
    try:
        program = request.program()
        if isinstance(program, GraphProgram):
            counts = check_graph(program, request.check, _doing)
        else:
            counts = check_program(program, request.check, _doing)
    except RefusedError as refusal:
        _say(refused=str(refusal).splitlines()[0])
    except MismatchError as mismatch:
        _say(failed="mismatch", stage=mismatch.stage, message=str(mismatch))
    except TlxError as error:
        _say(failed="diagnostic", stage=type(error).__name__, message=error.render())
    except Exception as error:  # noqa: BLE001 (any exception is a failure of this program)
        _say(failed="exception", stage=type(error).__name__, message=traceback.format_exc(limit=-6))
    else:
        seconds = round(time.monotonic() - begun, 3)
        _say(done=True, functions=counts.functions, tile_kernels=counts.tile_kernels, seconds=seconds)


def _doing(what: str) -> None:
    _say(doing=what)


def _say(**event: Any) -> None:
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Answer requests until there are no more."""
    np.seterr(all="ignore")
    collect_rarely()
    LLVMProcess.seconds = _LLVM_SECONDS
    for line in sys.stdin:
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        answer(Request.of_json(line))
        signal.setitimer(signal.ITIMER_PROF, 0)


_RARELY: Final = 1_000_000
"""Growth in live objects that triggers a collection; Python's default is 700."""


def collect_rarely() -> None:
    """Make garbage collection a thousand times rarer, for a process that parses, lowers and evaluates many modules.

    At Python's default threshold it takes a fifth of the process's time.
    """
    gc.set_threshold(_RARELY)


if __name__ == "__main__":
    main()
