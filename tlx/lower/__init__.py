"""The three lowering stages: to-2d, to-tiles, legalize."""
