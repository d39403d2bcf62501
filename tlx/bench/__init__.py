"""`tlx bench`: how fast the generated code is, beside the machine's peak and other libraries, in one process.

workloads/    what is measured: functions in LLVM IR, with their results in numpy; the table, and the user's own
peers/        other libraries, by ctypes
peaks         loops that do nothing but the target's best instruction; memory that is only streamed
timing        samples of contestants that take turns, and whether the core was disturbed
native_calls  loops of machine code around calls
measure       compiles, checks and times one workload and everything it is compared with
scaling       speed on several threads, beside what the machine gives to as many
report        results as JSON, compared with bars and with earlier results
tables        results as text and Markdown
plot          results as plots
"""
