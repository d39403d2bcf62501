"""Stage 3: tile operations become the instructions of the target."""
