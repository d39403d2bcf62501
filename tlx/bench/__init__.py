"""`tlx bench`: how fast the generated code is, beside the machine's peak and other libraries, in one process.

rows/       what is measured: workloads as data, each with its text in LLVM IR and its result in numpy
peers/      other libraries, by ctypes
peaks       loops that do nothing but the target's best instruction; memory that is only streamed
measure     compiles, checks and times one workload and everything it is compared with
report      what was measured, as a table, as JSON, compared with an earlier report
"""
