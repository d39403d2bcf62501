"""What work costs on a machine, in cycles and bytes: the data of the cost model.

blocks   2-D blocks and copies, which stage 1 compares, and loops that compute several operations
core     what a core does in a cycle
kernels  a vector kernel's work besides its multiply-adds
limits   thresholds between the forms of a vector kernel
memory   caches, bandwidths, latency
"""
