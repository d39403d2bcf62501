"""The evaluator: runs a function of a module on numpy memory, at any stage of lowering.

It executes input IR with tensor intrinsics, the output of each stage, and lowered code with target intrinsics. It is
the oracle of the semantic tests: undefined behaviour that is cheap to notice (accesses outside memory, division by
zero, misaligned accesses) is an `EvaluationError` with the instruction's location.

    from tlx.evaluate import Machine, evaluate

    machine = Machine(tlx.parse(text))
    machine.call("axpy", x, y, 2.0, len(x))     # x and y: numpy arrays, used in place

A function is compiled once to a list of Python closures for each block.

interpreter    compiles functions, and runs them
context        what closures work with: memory, slots of values, types of a call, the thread team
values         integers, floats and vectors in numpy and in memory
memory         regions with made-up addresses, and the layout of types in them
globals        constants and global variables
arithmetic, vectors, memory_access, calls, tensors     instructions
scalars, vectors, memory_access                        LLVM's intrinsics
library                                                functions of C, POSIX threads and OpenMP

Targets bring the meaning of their instructions: see `context.TargetSemantics`.
"""

from tlx.evaluate.interpreter import Machine, evaluate

__all__ = ["Machine", "evaluate"]
