"""Runs LLVM IR compiled by llvmlite and in the evaluator, on the same bytes."""

# llvmlite has no types.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from numpy.typing import NDArray

from tlx.evaluate import Machine
from tlx.ir.parser.module import parse

Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class Case:
    """`body` computes `%r` from `%a`, `%b`, ... of the given types.

    Attributes:
        sizes: Bytes of the result, then of each operand where `make` is None.
        make: Makes random operands: one array a type; None for random bytes.
    """

    name: str
    types: tuple[str, ...]
    result: str
    body: str
    sizes: tuple[int, ...]
    make: Callable[[np.random.Generator], Sequence[NDArray[Any]]] | None = None


def function_text(case: Case) -> str:
    """A function that loads the operands, computes and stores."""
    letters = "abcdef"[: len(case.types)]
    pointers = ", ".join(["ptr %out", *(f"ptr %p{x}" for x in letters)])
    loads = "\n".join(f"  %{x} = load {t}, ptr %p{x}, align 1" for x, t in zip(letters, case.types, strict=True))
    return (
        f"define void @{case.name}({pointers}) {{\n{loads}\n{case.body}\n"
        f"  store {case.result} %r, ptr %out, align 1\n  ret void\n}}\n"
    )


def target_machine() -> llvm.TargetMachine:
    """The machine the tests run on, all its features on; not shared, as an engine owns its target machine."""
    llvm.load_library_permanently("libgcc_s.so.1")  # __udivti3, __truncdfhf2 and the like
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features().flatten()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(cpu=llvm.get_host_cpu_name(), features=features, jit=True, opt=0)


class Compiled:
    """A module compiled by llvmlite.

    Attributes:
        text: Its IR.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        module = llvm.parse_assembly(text)
        module.verify()
        self._engine = llvm.create_mcjit_compiler(module, target_machine())
        self._engine.finalize_object()

    def __call__(self, name: str, *args: Any) -> None:
        """Run a void function on pointers to arrays and 64-bit integers."""
        kinds = [ctypes.c_void_p if isinstance(a, np.ndarray) else ctypes.c_int64 for a in args]
        values = [a.ctypes.data if isinstance(a, np.ndarray) else a for a in args]
        ctypes.CFUNCTYPE(None, *kinds)(self._engine.get_function_address(name))(*values)


def run_both(cases: Sequence[Case], declarations: str = "", repeats: int = 6) -> list[str]:
    """Run all cases on random operands; returns a line for each result that differs."""
    text = declarations + "\n" + "\n".join(function_text(c) for c in cases)
    native, machine = Compiled(text), Machine(parse(text))
    random = np.random.default_rng(1)
    problems: list[str] = []
    for case in cases:
        for _ in range(repeats):
            args = list(case.make(random)) if case.make else [_bytes(random, n) for n in case.sizes[1:]]
            outs = [np.zeros(case.sizes[0], np.uint8) for _ in range(2)]
            native(case.name, outs[0], *args)
            machine.call(case.name, outs[1], *args)
            if not np.array_equal(outs[0], outs[1]):
                operands = ", ".join(str(a) for a in args)
                problems.append(
                    f"{case.name}({operands}): native {outs[0].tobytes().hex()}, evaluated {outs[1].tobytes().hex()}"
                )
                break
    return problems


def _bytes(random: np.random.Generator, size: int) -> Bytes:
    return random.integers(0, 256, size, dtype=np.uint8)
