"""What the instructions of a machine compute, and which LLVM compiles them.

compilers  the versions of LLVM that compile a target's code
dots       dot products
functions  instructions for mathematical functions
vectors    conversions and permutations of vectors
"""
