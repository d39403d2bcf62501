"""Cooperative matrices.

values          their representation and arithmetic, and the components of work-items
memory          loads, stores, atomic updates and prefetches
distributed     on a grid: the components that each thread of a subgroup holds
fragments       those of operands and sums of a grid's products
chunks          layouts of matrices that are only copied
"""
