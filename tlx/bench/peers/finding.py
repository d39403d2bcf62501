"""Finding the peers that are installed."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Final

from tlx.bench.peers.base import MissingError, Peer, Places
from tlx.diagnostics import UsageError

_LOADERS: Final = {
    "libxsmm": "tlx.bench.peers.libxsmm:load",
    "openblas": "tlx.bench.peers.blas:load_openblas",
    "mkl": "tlx.bench.peers.blas:load_mkl",
    "onednn": "tlx.bench.peers.onednn:load",
    "torch": "tlx.bench.peers.torch:load",
    "clang": "tlx.bench.peers.clang:load_loops",
    "matrix": "tlx.bench.peers.clang:load_matrix",
}
NAMES: Final = tuple(_LOADERS)


def find(names: Sequence[str], places: Places) -> tuple[list[Peer], dict[str, str]]:
    """The peers that are installed, and for each other one why it is left out.

    Raises:
        UsageError: There is no peer of a name.
    """
    peers: list[Peer] = []
    absent: dict[str, str] = {}
    for name in names:
        if name not in _LOADERS:
            raise UsageError(f"unknown peer '{name}'; known are {', '.join(_LOADERS)}")
        module, attribute = _LOADERS[name].split(":")
        try:
            peers.append(getattr(importlib.import_module(module), attribute)(places))
        except (MissingError, AttributeError, OSError) as reason:
            absent[name] = str(reason)
    return peers, absent
