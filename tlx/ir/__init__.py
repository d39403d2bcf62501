"""Lossless model of LLVM assembly, with its parser, builders, analyses, transforms and tensor calls."""
