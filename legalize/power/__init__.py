"""Targets for Power, of either byte order, and the meaning of their instructions."""
