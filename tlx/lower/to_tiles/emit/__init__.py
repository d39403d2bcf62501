"""Emission: the loops and tile operations of each kind of kernel."""
