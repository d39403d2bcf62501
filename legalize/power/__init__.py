"""Targets for Power, of either byte order, and the meaning of their instructions."""

from typing import Final

TRIPLES: Final = ("powerpc64le-linux-gnu", "powerpc64-linux-gnu")
