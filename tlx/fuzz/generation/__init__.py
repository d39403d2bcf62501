"""Random tensor programs with their meaning: the seed decides everything.

model        a function: the random draws as a tree that shrinking can cut, its arrays, and its meaning in numpy
profiles     what programs may contain
writer       writes functions line by line, with a numpy step for each line
sources      where tensors come from, and where results go
forms        functions whose meaning numpy gives: products, loops, moves, overlapping arrays, run-time sizes
dataflow     functions that are graphs of any operations; the evaluator gives their meaning
operations/  the statements of a dataflow function
programs     the program of a seed, and the table of operations (`tlx fuzz --ops`)
"""
