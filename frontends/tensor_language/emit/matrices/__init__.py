"""Cooperative matrices.

representation  flattened vectors, tensors, and buffers on the stack where single entries can be reached
arithmetic      entry by entry, and products, scaling, construction, reductions
memory          loads, stores, prefetches; atomic access
layout          the entries that each work-item holds: `apply`, `extract`, `insert`
"""
