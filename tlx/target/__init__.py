"""What a machine can do, as frozen data that checks itself; and which target a name or this CPU means.

hardware     the parts of a target: vector registers, dot products, caches, a core's throughput
matrix_unit  matrix units, and the operations on tiles that a target implements
target       Target, and discovery: the targets of `tlx.legalize` and of other packages
host         the CPU that this process runs on: its features, its caches, and the best target for it
lookup       a target by name, with features (`avx2+avxvnni`) and with several versions (`avx2,avx512`)
"""
