"""The interface of a peer, the search for its libraries, and the list of peers."""

from __future__ import annotations

import ctypes.util
import importlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Protocol, TypeVar

from tlx.diagnostics import UsageError
from tlx.intrinsics.numpy_types import Array
from tlx.tuning.timing import Repeat
from tlx.tuning.workload import Workload

P = TypeVar("P")


class MissingError(Exception):
    """A peer is not installed; the message names the missing file or package."""


@dataclass(frozen=True)
class Attempt:
    """One way in which a peer computes a workload.

    Attributes:
        repeat: Runs it the given number of times, on the arrays that it was made for.
        note: A note for the report, such as that operands were packed beforehand.
    """

    repeat: Repeat
    note: str = ""


class Peer(Protocol):
    """A library that supports some of the workloads."""

    @property
    def name(self) -> str:
        """Name in the table and in `--peers`."""
        ...

    @property
    def version(self) -> str:
        """Version that the library reports."""
        ...

    def attempts(self, work: Workload, arrays: dict[str, Array]) -> Iterator[Attempt]:
        """The ways to compute a workload, of which the fastest counts; none if it is not supported."""
        ...


@dataclass(frozen=True)
class LibraryPaths:
    """Folders to search for libraries, before those of the dynamic linker."""

    folders: tuple[Path, ...]

    @classmethod
    def below(cls, folders: str | None) -> LibraryPaths:
        """Folders from `--peers-path`, else TLX_PEERS, separated by colons, and their subfolders with libraries."""
        text = folders if folders is not None else os.environ.get("TLX_PEERS", "")
        return cls(tuple(Path(part).expanduser() for part in text.split(os.pathsep) if part))

    def libraries(self, pattern: str) -> list[Path]:
        """Files that match a pattern, in these folders and below."""
        return [path for folder in self.folders for path in sorted(folder.rglob(pattern)) if path.is_file()]

    def load(self, patterns: Sequence[str], names: Sequence[str] = (), mode: int = os.RTLD_LAZY) -> ctypes.CDLL:
        """Load the first library that loads: files that match the patterns, then the dynamic linker's of these names.

        Raises:
            MissingError: There is none.
        """
        for path in [path for pattern in patterns for path in self.libraries(pattern)]:
            if library := _loaded(str(path), mode):
                return library
        for name in names:
            path = ctypes.util.find_library(name)
            if path and (library := _loaded(path, mode)):
                return library
        raise MissingError(f"no {' or '.join(patterns)}")


def _loaded(path: str, mode: int) -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(path, mode=mode)
    except OSError:
        return None


_LOADERS: Final = {
    "libxsmm": "tlx.bench.peers.libxsmm:load",
    "openblas": "tlx.bench.peers.blas:load_openblas",
    "mkl": "tlx.bench.peers.blas:load_mkl",
    "onednn": "tlx.bench.peers.onednn:load",
    "torch": "tlx.bench.peers.torch:load",
    "clang": "tlx.bench.peers.clang:load_loops",
    "matrix": "tlx.bench.peers.clang:load_matrix",
}
PEER_NAMES: Final = tuple(_LOADERS)


def find_peers(names: Sequence[str], places: LibraryPaths) -> tuple[list[Peer], dict[str, str]]:
    """The peers that are installed, as for `installed_peers`."""
    return installed_peers(names, {name: partial(_load, place, places) for name, place in _LOADERS.items()})


def _load(place: str, places: LibraryPaths) -> Peer:
    module, attribute = place.split(":")
    return getattr(importlib.import_module(module), attribute)(places)


def installed_peers(names: Sequence[str], loaders: Mapping[str, Callable[[], P]]) -> tuple[list[P], dict[str, str]]:
    """The peers that are installed, and for each other one the reason why it is left out.

    Args:
        names: Their names.
        loaders: What loads each of the known ones.

    Raises:
        UsageError: A name is not that of a peer.
    """
    peers: list[P] = []
    absent: dict[str, str] = {}
    for name in names:
        if name not in loaders:
            raise UsageError(f"unknown peer '{name}'; choose from {', '.join(loaders)}")
        try:
            peers.append(loaders[name]())
        except (MissingError, AttributeError, OSError) as reason:
            absent[name] = str(reason)
    return peers, absent
