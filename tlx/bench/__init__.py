"""`tlx bench`: how fast the generated code is, beside the machine's peak and other libraries, in one process.

workloads/    the benchmark's table, and the user's own functions: LLVM IR with its results in numpy
peers/        other libraries, called by ctypes
peaks         loops of the target's best instruction, and loops that stream memory
measure       compiles, checks and times one workload, its peak and its peers
scaling       speed on several threads, beside that of independent threads
report        results as JSON, text and Markdown, compared with bars and with earlier results
plot          results as plots
command       what `tlx bench` does
"""
