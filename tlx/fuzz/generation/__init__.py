"""Random tensor programs and their meaning, determined by a seed.

model        a function: its random choices as a tree that shrinking can prune, its arrays, and its meaning in numpy
profiles     profiles: which types, extents and forms programs may contain
writer       writes functions line by line, with a numpy step that models each line
sources      where operands come from and where results are stored
forms        functions with a numpy model: products, loops, data movement, overlapping arrays, run-time sizes
dataflow     functions that are graphs of arbitrary operations; the evaluator defines their meaning
operations/  the statements of a dataflow function
programs     the program of a seed, and the table of operations (`tlx fuzz --ops`)
"""
