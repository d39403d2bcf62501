"""What a machine can do, as frozen, self-checking data; and which target a name or this CPU means.

target        Target: a machine's capabilities, and how its features are detected
instructions  what its instructions compute, and which LLVM compiles them
costs         what work costs on it: cycles, caches, thresholds
machines      vector registers and processors, where machines of a target differ
matrix_unit   matrix units, and the operations on tiles that a target implements
grid_unit     grids of blocks of threads, and the operations on them
installed     all targets that are installed: those of `tlx.legalize` and of other packages
discovery     finds the modules of targets without importing them
system        what the system says of the machine that this process runs on
host          this machine in terms of targets: its features, its caches, and the best target for it
lookup        a target by name, with features (`avx2+avxvnni`) and with several versions (`avx2,avx512`)
"""
