"""Kernels written in Python: each method writes an instruction.

kernel          `kernel`, `program` and `text`; the class `Kernel` with the methods of all files below
core            regions, names and constants; arguments compared with the annotations of the method
values          what instructions give, with Python's operators; places in the Python program
types           types and attributes, from strings and Python values
arithmetic, collective, control, mixed, spmd      methods, sorted as the instructions of the language are
reference       writes the reference page of the methods
"""
