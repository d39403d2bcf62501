"""Stage 2: 2-D expression trees become loop nests over tiles."""
