"""Placement: which values share a buffer, what loop-carried tensors become, how blocks are loaded and copied."""
