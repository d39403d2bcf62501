"""Tensor operations written as LLVM's matrix intrinsics compute the same: evaluated, raised again, expanded by LLVM."""

from __future__ import annotations

import random
import subprocess
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pytest

from tests.support.tools import require
from tlx.evaluate import Machine
from tlx.frontends.matrix import RAISE, to_matrix
from tlx.ir.module import Module
from tlx.ir.parser.module import parse, parse_fully
from tlx.lower.pipeline import verify
from tlx.lower.remarks import Remarks

ELEMENTS: Final = {
    "i8": "int8",
    "i32": "int32",
    "i64": "int64",
    "half": "float16",
    "float": "float32",
    "double": "float64",
}
SIZE: Final = 1024
SEEDS: Final = range(16)


def numbers(*entries: int) -> str:
    return f"<{len(entries)} x i32> <{', '.join(f'i32 {entry}' for entry in entries)}>"


@dataclass
class Program:
    """A random function `void f(ptr c, ptr a, ptr b, ptr d)` of what the matrix intrinsics can say."""

    seed: int
    lines: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self.choose = random.Random(self.seed)
        self.element = self.choose.choice(list(ELEMENTS))
        self.pointer = "ptr" if self.choose.random() < 0.5 else f"{self.element}*"
        rows, inner, columns = (self.choose.randint(1, 7) for _ in range(3))
        tokens = [self.tensor("a", rows, inner), self.tensor("b", inner, columns)]
        name = self.choose.choice(["matmul", "smma", "umma" if self.element[0] == "i" else "smma"])
        if name != "matmul":
            tokens.insert(0, self.tensor("d", rows, columns))
        arguments = ", ".join(f"token {token}" for token in tokens)
        product = self.add(f"call {self.vector(rows * columns)} @llvm.tensor.{name}({arguments})")
        token = self.info(product, (rows, columns), (0, 1))
        if self.choose.random() < 0.5:
            moved = self.choose.choice([(1, 0), (0, 1)])
            transposed = self.add(
                f"call {self.vector(rows * columns)} @llvm.tensor.transpose(token {token}, {numbers(*moved)})"
            )
            extents = (rows, columns)
            token = self.info(transposed, (extents[moved[0]], extents[moved[1]]), moved)
        pitch = self.choose.choice([0, 9])
        self.lines.append(f"call void @llvm.tensor.store({self.pointer} %c, token {token}, {numbers(0, pitch)})")

    @property
    def text(self) -> str:
        head = f"define void @f({', '.join(f'{self.pointer} %{name}' for name in 'cabd')}) {{"
        return "\n".join([head, *(f"  {line}" for line in self.lines), "  ret void", "}", ""])

    def vector(self, count: int) -> str:
        return f"<{count} x {self.element}>"

    def add(self, body: str) -> str:
        self.lines.append(f"%v{len(self.lines)} = {body}")
        return f"%v{len(self.lines) - 1}"

    def info(self, value: str, shape: tuple[int, int], layout: tuple[int, int], kind: str = "") -> str:
        operand = f"{kind or self.vector(shape[0] * shape[1])} {value}"
        dims = f"{numbers(*shape)}, {numbers(*layout)}, {numbers(0, 0)}"
        return self.add(f"call token @llvm.tensor.typeinfo({operand}, {dims})")

    def tensor(self, source: str, rows: int, columns: int) -> str:
        """A token for an operand, in memory, behind a pointer, or as a vector; by rows or by columns."""
        layout = self.choose.choice([(0, 1), (1, 0)])
        shape = (rows, columns) if layout == (0, 1) else (columns, rows)
        vector = self.vector(rows * columns)
        form = self.choose.choice(["load", "pointer", "vector"])
        if form == "pointer" and self.pointer == "ptr":
            return self.info(f"%{source}", shape, layout, f"ptr elementtype({vector})")
        dims = f"{numbers(*shape)}, {numbers(*layout)}, {numbers(0, 0)}, {numbers(0, self.choose.choice([0, 8, 11]))}"
        token = self.add(f"call token @llvm.tensor.load({self.pointer} %{source}, {dims})")
        if form != "vector":
            return token
        return self.info(self.add(f"call {vector} @llvm.tensor.tovector(token {token})"), shape, layout)


def outcome(module: Module, element: str) -> np.ndarray[Any, Any]:
    """What a function leaves in memory, whose numbers are so small that every sum is exact."""
    generator = np.random.default_rng(0)
    c, a, b, d = (generator.integers(-4, 5, SIZE).astype(ELEMENTS[element]) for _ in range(4))
    Machine(module).call("f", c, a, b, d)
    return c


@pytest.mark.parametrize("seed", SEEDS)
def test_round_trip(seed: int) -> None:
    program = Program(seed)
    remarks = Remarks()
    module = parse(program.text)
    written = to_matrix(module, remarks)
    assert str(module) == program.text
    assert not list(remarks)
    assert "llvm.tensor." not in str(written)
    expected = outcome(parse(program.text), program.element)
    np.testing.assert_array_equal(outcome(written, program.element), expected)
    raised = RAISE(written)
    assert raised is not None
    assert "llvm.matrix." not in str(raised)
    verify(raised)
    np.testing.assert_array_equal(outcome(raised, program.element), expected)


@pytest.mark.parametrize("seed", SEEDS)
def test_llvm_expands_them_to_the_same(seed: int) -> None:
    program = Program(seed)
    written = str(to_matrix(parse(program.text)))
    command = [require("opt-19"), "-passes=lower-matrix-intrinsics", "-S"]
    expanded = subprocess.run(command, input=written, capture_output=True, text=True, check=True).stdout
    assert not [line for line in expanded.splitlines() if "@llvm.matrix." in line and "call" in line.split("@")[0]]
    module = parse_fully(expanded)
    expected = outcome(parse(program.text), program.element)
    np.testing.assert_array_equal(outcome(module, program.element), expected)


def load(pointer: str, *dims: tuple[int, ...]) -> str:
    """`%t`, loaded by rows; `dims` are shape and, unless they are zeros, padding and strides."""
    shape, padding, strides = (*dims, *[(0,) * len(dims[0])] * (3 - len(dims)))
    vectors = [numbers(*entries) for entries in (shape, range(len(shape)), padding, strides)]
    return f"%t = call token @llvm.tensor.load({pointer}, {', '.join(vectors)})\n"


TOVECTOR: Final = "%m = call <6 x float> @llvm.tensor.tovector(token %t)"
STAYING: Final = {
    "tanh stays a tensor operation: LLVM has no matrix intrinsic for it": (
        load("ptr %a", (2, 2)) + "%m = call <4 x float> @llvm.tensor.tanh(token %t)"
    ),
    "matmul stays a tensor operation: it widens i8 to i32": (
        load("ptr elementtype(i8) %a", (2, 2)) + "%m = call <4 x i32> @llvm.tensor.matmul(token %t, token %t)"
    ),
    "transpose stays a tensor operation: 3x2x2 float is not a matrix": (
        load("ptr %a", (3, 2, 2)) + f"%m = call <12 x float> @llvm.tensor.transpose(token %t, {numbers(2, 1, 0)})"
    ),
    "tovector stays a tensor operation: 2x3 float, padding <0, 1> has padding, which matrices cannot have": (
        load("ptr %a", (2, 3), (0, 1)) + TOVECTOR
    ),
    "tovector stays a tensor operation: it reads 2x3 float at a stride of 2, so that columns overlap": (
        load("ptr %a", (2, 3), (0, 0), (0, 2)) + TOVECTOR
    ),
    "tovector stays a tensor operation: matrices have no elements i1": (
        load("ptr elementtype(i1) %a", (2, 3)) + TOVECTOR.replace("float", "i1")
    ),
    "tovector stays a tensor operation: it reads another address space": (
        load("ptr addrspace(1) %s", (2, 3)) + TOVECTOR
    ),
    "matmul stays a tensor operation: its extents are known only at run time": (
        load("ptr elementtype(float) %a", (1, 1)).replace(numbers(1, 1), "<2 x i32> %n")
        + "%m = call <vscale x 1 x float> @llvm.tensor.matmul(token %t, token %t)"
    ),
}


@pytest.mark.parametrize("message", STAYING)
def test_remarks_name_operations_that_stay(message: str) -> None:
    head = "define void @f(ptr %a, ptr addrspace(1) %s, <2 x i32> %n) {"
    text = f"{head}\n{STAYING[message]}\nret void\n}}\n"
    remarks = Remarks()
    written = to_matrix(parse(text, "f.ll"), remarks)
    said = [remark for remark in remarks if remark.message == message]
    assert len(said) == 1, [remark.message for remark in remarks]
    assert said[0].render().startswith("f.ll:3:1: remark: ")
    assert "llvm.matrix." not in str(written)
    verify(written)


def test_a_load_stays_before_later_stores() -> None:
    dims = f"{numbers(2, 2)}, {numbers(0, 1)}, {numbers(0, 0)}"
    text = f"""define void @f(ptr %c, ptr %a) {{
  %t = call token @llvm.tensor.load(ptr elementtype(float) %a, {dims}, {numbers(0, 0)})
  store float 9.0, ptr %a
  %m = call <4 x float> @llvm.tensor.matmul(token %t, token %t)
  %r = call <4 x float> @llvm.tensor.relu(token %t)
  %s = fadd <4 x float> %m, %r
  store <4 x float> %s, ptr %c
  ret void
}}
"""
    for module in (parse(text), to_matrix(parse(text))):
        c, a = np.zeros(4, np.float32), np.array([1, 2, 3, 4], np.float32)
        Machine(module).call("f", c, a)
        np.testing.assert_array_equal(c, [8, 12, 18, 26])
