"""Analyses of plain LLVM IR: control flow, constant folding, vectors too large for the code generator."""
