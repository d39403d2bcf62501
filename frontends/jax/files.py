"""StableHLO in files: a portable artifact (`exported.mlir_module_serialized`) or MLIR text, as TLX IR.

    python -m tlx.frontends.jax.files NAME < model.mlirbc      writes a report

MLIR's reader may crash, or never end, on a damaged file. So a file is read in a process of its own, which writes a line
when it has read the program, and then the IR or an error as JSON.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any, BinaryIO, Final

import tlx
from tlx.diagnostics import Source, Span, TlxError, UsageError
from tlx.frontends.jax.program import StablehloModule

_SECONDS: Final = 4
"""Processor time for reading a file, and as much again for each `_RATE` bytes."""
_RATE: Final = 10_000_000
_MEMORY: Final = 16 << 30
_READ: Final = b"read\n"
_DAMAGED: Final = "the file is damaged: write it again with jax.export"


def translate_file(data: bytes, name: str) -> str:
    """The TLX IR of a file's contents.

    Raises:
        TlxError: The file is damaged, or has an operation that TLX does not support; or jaxlib is missing.
    """
    command = [sys.executable, "-m", __name__, name]
    root = str(Path(tlx.__file__).parents[1])
    path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(command, input=data, capture_output=True, check=False, env=os.environ | {"PYTHONPATH": path})
    if done.returncode < 0 and not done.stdout.startswith(_READ):  # a signal has ended it
        raise UsageError(f"MLIR's reader crashes on it: {_DAMAGED}", name=name)
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip() or f"its process ended with status {done.returncode}"
        raise UsageError(f"the translation failed: {reason}", name=name)
    report = json.loads(done.stdout.removeprefix(_READ))
    if "error" in report:
        raise _error(report["error"])
    return report["text"]


def program_text(program: StablehloModule, name: str) -> str:
    """The TLX IR of a program: its constants are in the module, its parameters and results are pointers."""
    # Importing these takes half the time of reading a file, and a damaged file does not need them.
    from tlx.frontends.jax.operations import REFUSED, RULES
    from tlx.frontends.jax.translation import ProgramTranslation
    from tlx.graph import Graph

    main = "main" if "main" in program.functions else next(iter(program.functions))
    function = program.functions[main]
    graph = Graph(main)
    translation = ProgramTranslation(program, graph, RULES, REFUSED, has_weights=False)
    named = [(n or f"x{k}", type_) for k, (n, type_) in enumerate(zip(function.names, function.types, strict=True))]
    arguments = [translation.parameter(*parameter) for parameter in named]
    results = translation.inline_all(function.body, arguments, {})
    if not results:
        raise UsageError(f"@{main} does not return a tensor", name=name)
    for value in results:
        graph.output(value, "result")
    return f"; {name}\n{graph.text()}"


def _error(report: dict[str, Any]) -> TlxError:
    """The error that `_reported` describes."""
    span = None
    if report["file"]:
        source = Source(report["file"], report["source"])
        span = Span(source, report["start"], report["end"])
    return UsageError(report["message"], span, name=report["name"])


def _reported(error: TlxError) -> dict[str, Any]:
    span = error.span
    return {
        "message": error.message,
        "name": error.name,
        "file": span.source.name if span else "",
        "source": span.source.text if span else "",
        "start": span.start if span else 0,
        "end": span.end if span else 0,
    }


def _main(name: str, input_: BinaryIO, output: BinaryIO) -> None:
    """Translate a file in this process."""
    from tlx.frontends.jax.reader import read

    data = input_.read()
    try:
        seconds = _limit(resource.RLIMIT_CPU, _SECONDS * (1 + len(data) // _RATE))
        _limit(resource.RLIMIT_AS, _MEMORY + 100 * len(data))
        program = read(data, name)
        resource.setrlimit(resource.RLIMIT_CPU, seconds)
        output.write(_READ)
        output.flush()
        report = {"text": program_text(program, name)}
    except TlxError as error:
        error.name = error.name or name
        report = {"error": _reported(error)}
    except MemoryError:
        report = {"error": _reported(UsageError("the program is too large to be translated", name=name))}
    output.write(json.dumps(report).encode())


def _limit(kind: int, value: int) -> tuple[int, int]:
    """Lower a resource limit of this process unless it is lower already; returns the old limit."""
    before = resource.getrlimit(kind)
    tighter = [limit for limit in (value, *before) if limit != resource.RLIM_INFINITY]
    resource.setrlimit(kind, (min(tighter), before[1]))
    return before


if __name__ == "__main__":
    _main(sys.argv[1], sys.stdin.buffer, sys.stdout.buffer)
