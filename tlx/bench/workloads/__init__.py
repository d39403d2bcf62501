"""The workloads: functions in LLVM IR on tensors in memory, with their expected results in numpy.

products     matrix products, batches of them, layers, convolutions
elementwise  elementwise functions and reductions of rows; a fused kernel of the tensor language
catalogue    all workloads, and selecting some of them by name
user         a function of the user's own as a workload
"""
