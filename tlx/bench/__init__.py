"""`tlx bench`: speed of the generated code against the machine's peak and other libraries, in one process.

workloads     the benchmark's table, and the user's own functions: LLVM IR and its expected results in numpy
devices/      kernels on a device beside PyTorch
models/       whole models beside XLA, PyTorch and onnxruntime
peers/        other libraries, called by ctypes
peaks         loops of the target's best instruction, and loops that stream memory
measure       compiles, checks and times one workload, its peak and its peers
scaling       speed on several threads against that of independent threads
report        results as JSON, text and Markdown; comparison with performance bars and earlier results
plot          results as plots
settings      what the options select and set
command       the actions of `tlx bench`
"""
