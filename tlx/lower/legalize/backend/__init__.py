"""Rewrites of whole programs for LLVM backends that compile some instructions incorrectly, or not at all."""
