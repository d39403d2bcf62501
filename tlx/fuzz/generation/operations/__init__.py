"""The statements of a dataflow function: tensor intrinsics, vector instructions, element moves, control flow.

An operation appends its lines to a function and returns the new value. It returns None where it has no fitting operand;
the function is then still valid.
"""
