"""The lowering: N-D tensors to 2-D, 2-D to tiles, tiles to target instructions.

pipeline   the flat list of steps
options    how to lower
context    what every stage is given, and the marks that stages leave on functions and loops for each other
stages     the three stages
remarks    what was decided, and why
knobs      what a user or the tuner asks of a product's kernel
operations elementwise operations, how reductions combine, signs of products
loops      the loops of a function as facts: which are independent, their trip counts
outlining  loop nests around kernels as functions of their own, compiled for the target
"""

from __future__ import annotations
