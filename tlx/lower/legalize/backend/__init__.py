"""Rewrites of whole programs for backends of LLVM that compile some instructions wrong, or not at all."""
