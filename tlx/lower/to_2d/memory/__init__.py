"""Placement: which values share a buffer or a store's destination, loop-carried tensors, and copies of blocks."""
