"""Targets for Arm: AArch64's vectors and matrix units."""
