"""Numbers, and operations on them.

registers       values in registers: constants, comparisons, calls, functions
scalars         the instructions: constants, splats, selection, rounding; operators, functions and casts
"""
