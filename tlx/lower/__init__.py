"""The lowering: N-D tensors to 2-D, 2-D to tiles, tiles to target instructions.

pipeline   the flat list of steps
options    how to lower
context    target and options for every stage, and the attributes by which stages mark functions
front_ends discovery of front ends
remarks    what was decided, and why
knobs      settings of a product's kernel, from the user or the tuner
cost       the primitives of the cost model
operations elementwise operations, how reductions combine, signs of products
outlining  loop nests around kernels as functions of their own, compiled for the target
"""

from __future__ import annotations
