"""What is measured: functions in LLVM IR on tensors in memory, with their results in numpy.

workload     element types, the problem in the words of other libraries, the function with its memory and its work
verify       whether an output is right: element by element, or by Freivalds' algorithm
catalogue    all workloads, and choosing among them
rows/        the rows of the table; each module gives its workloads by `workloads()`
user         a function of the user's own as a workload
"""
