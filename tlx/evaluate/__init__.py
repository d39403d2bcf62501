"""The evaluator: runs a function of a module on numpy memory, at any stage of lowering.

It executes input IR with tensor intrinsics, what each stage makes of it, and lowered code with target intrinsics, and
it is the oracle of the semantic tests: what LLVM leaves undefined and can be noticed cheaply (accesses outside memory,
division by zero, misaligned accesses) is an `EvaluationError` with the instruction's place.

    from tlx.evaluate import Machine, evaluate

    machine = Machine(tlx.parse(text))
    machine.call("axpy", x, y, 2.0, len(x))     # x and y: numpy arrays, used in place

A function is compiled once to a list of Python closures for each block (`compiler`), which work on a list of values
(`scope`); vectors are numpy arrays (`values`), memory is a set of regions with made-up addresses (`memory`).
"""

from tlx.evaluate.machine import Machine, evaluate

__all__ = ["Machine", "evaluate"]
