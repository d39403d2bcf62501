"""`tlx bench paper`: what "Library Liberation" (arXiv, November 2025) measures, beside the same libraries.

workloads   batch-reduce products of its listings, and layers of 512 x n x n, in its layouts
worker      measures one target on one number of threads, in a separate process with libraries kept to its instructions
command     the action: starts the workers; prints, writes and plots the results
tables      percentages of libxsmm's speed by size, target and number of threads
plots       the same over sizes and over threads
sweep       every register tile, beside the one that the cost model chooses
"""
