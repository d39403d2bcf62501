"""A session of measurements: the target, the libraries, the processors of this process."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tlx.api.files import os_error_text
from tlx.bench import measure, peaks
from tlx.bench.peers import base
from tlx.bench.peers.base import LibraryPaths
from tlx.bench.setting import Setting
from tlx.diagnostics import UsageError
from tlx.target.host import cpu_flags, version_for
from tlx.tuning import machine, timing
from tlx.tuning.timing import PinnedCore


@dataclass(frozen=True)
class Session:
    """What measures, and what a report says about it.

    Attributes:
        bench: Measures workloads.
        facts: Machine, target, libraries, date.
        absent: Why libraries are left out, by name.
    """

    bench: measure.Bench
    facts: dict[str, Any]
    absent: dict[str, str]


def open_session(setting: Setting) -> Session:
    """Pin this process, load the libraries, and measure the bandwidth of the memory.

    Raises:
        TlxError: This machine cannot run the target's code, or a library or processor is unknown.
    """
    folder = _created(setting.folder)
    timing.use_clock(setting.threads)
    target = measure.runnable(setting.target)
    runnable = version_for(target, cpu_flags())
    cpus = machine.pin(setting.cpu, setting.threads)
    places = LibraryPaths.below(setting.peers_path)
    peers, absent = base.find_peers(base.PEER_NAMES if setting.peers is None else setting.peers, places)
    facts = setting.facts(target.name, runnable, cpus, {peer.name: peer.version for peer in peers})
    facts["lanes"] = runnable.vector_bytes // 4
    facts["memory"] = {name: round(speed, 1) for name, speed in peaks.bandwidths(runnable).items()}
    core = PinnedCore() if setting.threads == 1 else None  # our own threads may share a core
    bench = measure.Bench(target, peers, setting.rounds, setting.threads, folder, setting.knobs, core)
    return Session(bench, facts, absent)


def _created(folder: str | None) -> Path | None:
    if folder is None:
        return None
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"could not create folder '{folder}': {os_error_text(error)}") from None
    return path
