"""`tlx bench --target=GPU`: kernels on a device beside other libraries there, in one process.

workloads        the table: graphs of tensors, and the same computations in PyTorch
peers            PyTorch, and Triton
triton_kernels   kernels of Triton's tutorials
measure          compiles, checks and times one workload and its peers, by the device's events
command          the actions of `tlx bench`, and their tables
"""
