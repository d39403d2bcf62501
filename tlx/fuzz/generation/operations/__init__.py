"""Statements of dataflow functions: tensor intrinsics, vector instructions, lane operations, control flow.

An operation appends its lines to a function and returns the new value. It returns None if there is no suitable operand;
the function is then still valid.
"""
