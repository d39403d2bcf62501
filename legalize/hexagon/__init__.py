"""Targets for Hexagon, and the meaning of their instructions."""

from typing import Final

TRIPLES: Final = ("hexagon-unknown-linux-musl",)
