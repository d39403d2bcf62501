"""Targets for Hexagon, and the meaning of their instructions."""
