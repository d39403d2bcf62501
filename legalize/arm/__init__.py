"""Targets for Arm: AArch64's vectors and matrix units."""

from typing import Final

TRIPLES: Final = ("aarch64-linux-gnu",)
