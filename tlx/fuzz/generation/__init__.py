"""Random tensor programs with their meaning: a seed decides everything.

choices      what is drawn, as a tree of numbers that shrinking can cut
profiles     what programs may contain
arrays       the arrays that functions take
model        a function: how it is called, and what it means in numpy
writer       writes functions line by line, with a numpy step for each line
sources      where tensors come from, and where results go
forms        functions whose meaning numpy gives: products, loops, moves, overlapping arrays, run-time sizes
dataflow     functions that are graphs of any operations; the evaluator gives their meaning
operations/  what a statement of a dataflow function may be
programs     the program of a seed
"""
