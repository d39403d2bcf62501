"""Kernels written in Python: each method writes an instruction.

kernel          `kernel`, `program` and `text`; the class `Kernel`, which inherits the methods of the files below
core            regions, names and constants; arguments checked against the annotations of the method
values          results of instructions, with Python's operators; types and attributes from strings and Python values
collective, control, mixed, spmd      methods, sorted by the regions in which their instructions may stand
reference       writes the reference page of the methods
"""
