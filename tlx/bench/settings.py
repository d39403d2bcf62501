"""What the options of `tlx bench` select and set."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from tlx.api import files
from tlx.lower.knobs import KnobSource, no_knobs
from tlx.target.target import Target
from tlx.tuning import machine

Step = Callable[[str], object]
"""Counts a step of long work; the text says what was done."""
ShowProgress = Callable[[str, int], AbstractContextManager[Step]]
"""Shows the progress of work with a label and a number of steps."""


def without_progress(_label: str, _steps: int) -> AbstractContextManager[Step]:
    """Shows nothing."""
    return nullcontext(_ignore)


def _ignore(_item: str) -> None:
    pass


@dataclass(frozen=True)
class WorkloadSelection:
    """The workloads to run; an empty tuple means all.

    Attributes:
        rows: Rows of the table, or one file with a function of the user's.
        function: The function in that file.
        arguments: Arguments of the function as NAME=VALUE, where the file does not determine them.
        input_format: Format of the file.
    """

    rows: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    function: str | None = None
    arguments: tuple[str, ...] = ()
    input_format: files.InputFormat = files.FORMAT_BY_NAME


@dataclass(frozen=True)
class BenchSettings:
    """How to measure: the options of the command line.

    Attributes:
        target: Target to generate code for; of the paper's workloads several, or none for all that this machine runs.
        peers: Names of the peers; None means all that are installed.
        peers_path: Folders to look for them in; None means those in TLX_PEERS.
        cpu: Processor to pin the process to; None means the last one.
        report: JSON file to write all results to.
        plot: File to write the plots to.
        compare: Earlier report to compare with.
        sources: Reports, or folders of reports, to read instead of measuring.
        markdown: File to write the tables to.
        knobs: Knobs for the kernels of products.
        folder: Folder to write the workloads' IR to.
        seconds: Seconds for the samples of a model, after which there are only as many rounds as a median needs.
        counts: Numbers of threads to measure the paper's workloads on, one after the other; empty means 1, 2, 4 to all.
        sweep: Measure the paper's workloads with every register tile instead of beside libraries.
    """

    target: str = "native"
    peers: tuple[str, ...] | None = None
    peers_path: str | None = None
    rounds: int = 11
    cpu: int | None = None
    threads: int = 1
    report: str | None = None
    plot: str | None = None
    compare: str | None = None
    sources: tuple[str, ...] = ()
    markdown: str | None = None
    knobs: KnobSource = no_knobs
    folder: str | None = None
    seconds: float = 5.0
    counts: tuple[int, ...] = ()
    sweep: bool = False

    def facts(self, target: str, runnable: Target, cpus: Sequence[int], peers: Mapping[str, str]) -> dict[str, Any]:
        """What a report says about the machine and the run.

        Args:
            target: Name of the target.
            runnable: The version of it that this machine runs.
            cpus: The processors.
            peers: Versions of the other libraries, by name.
        """
        return {
            "machine": machine.processor(),
            "cpu": ",".join(map(str, cpus)),
            "threads": self.threads,
            "target": target,
            "features": ",".join(runnable.features),
            "rounds": self.rounds,
            "llvm": f"llvmlite {version('llvmlite')}",
            "peers": dict(peers),
            "date": machine.today(),
        }
