"""Turns a checked syntax tree into TLX IR: LLVM IR with tensor intrinsics, which the lowering compiles.

Each class of instruction has a rule, a public function `(Emitter, instruction) -> None` that is found by the annotation
of its second parameter (`operations.core.rules_of`).

    kernel          the two functions of a kernel: one runs a work-group, one runs all of them; parameters, launch
    emitter         the values of names; the state while a kernel is written; the walk over regions

    arithmetic      numbers, and operations on them
    memory          addresses, loads and stores of elements, views, local memory
    atomics         atomic loads, stores and updates
    subgroups       masks of active work-items, ids of work-items; broadcasts, scans and reductions
    sequential      conditions and loops: branches, or masks where work-items differ
    parallel        parallel regions, `foreach` and `foreach_tile`; loop fission at barriers
    threads         threads of a grid that run work-items: shuffles, votes, barriers
    blas            BLAS instructions of collective regions: loops, packing, run-time sizes
    tensors         BLAS instructions of static sizes as tensor operations
    matrices        cooperative matrices
"""
