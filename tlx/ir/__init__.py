"""Lossless model of LLVM assembly, with its parser, builder, analyses, transforms and tensor calls."""
