"""Ordinary instructions and unary operations on tensors, fused by stage 1: evaluated before and after each stage."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np
import pytest

from tlx.evaluate import Machine
from tlx.intrinsics.numpy_types import Array
from tlx.ir.parser.module import parse
from tlx.lower.options import STAGE_NAMES, Options
from tlx.lower.pipeline import lower
from tlx.lower.remarks import Remarks

_UNARY = ("relu", "fabs", "floor", "ceil", "sqrt")
_BINARY = ("fadd", "fsub", "fmul", "fdiv")
_PREDICATES = ("olt", "oeq", "uge", "une", "ord")


@dataclass
class Program:
    """A random function on float tensors of `rows` x `cols`, as text, with what its parameters point to.

    Attributes:
        random: Where choices come from.
        rows, cols: Logical extents.
        lines: The body.
        vectors: Names of flattened row-major vectors.
        arrays: What each parameter points to.
    """

    random: random.Random
    rows: int
    cols: int
    lines: list[str] = field(default_factory=list[str])
    vectors: list[str] = field(default_factory=list[str])
    arrays: list[Array] = field(default_factory=list[Array])
    count: int = 0

    @property
    def vector(self) -> str:
        return f"<{self.rows * self.cols} x float>"

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def say(self, body: str) -> str:
        name = self.name()
        self.lines.append(f"  {name} = {body}")
        return name

    def parameter(self, size: int) -> str:
        numbers = np.random.default_rng(self.random.randrange(1 << 30)).integers(-8, 9, size)
        self.arrays.append(numbers.astype(np.float32) / 2)
        return f"%p{len(self.arrays) - 1}"

    def shape(self) -> str:
        return f"<2 x i32> <i32 {self.rows}, i32 {self.cols}>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer"

    def leaf(self) -> str:
        kind = self.random.randrange(6)
        if kind == 0:
            return self.say(f"load {self.vector}, ptr {self.parameter(self.rows * self.cols)}")
        if kind == 1:
            pitch = self.cols + self.random.randrange(4)
            pointer = self.parameter(self.rows * pitch)
            dims = f"{self.shape()}, <2 x i32> <i32 0, i32 {pitch}>"
            token = self.say(f"call token @llvm.tensor.load(ptr elementtype(float) {pointer}, {dims})")
            return self.say(f"call {self.vector} @llvm.tensor.tovector(token {token})")
        if kind == 2:
            pointer = self.parameter(self.rows * self.cols)
            dims = f"<2 x i32> <i32 {self.cols}, i32 {self.rows}>, <2 x i32> <i32 1, i32 0>"
            dims = f"{dims}, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer"
            token = self.say(f"call token @llvm.tensor.load(ptr elementtype(float) {pointer}, {dims})")
            return self.say(f"call {self.vector} @llvm.tensor.transpose(token {token}, <2 x i32> <i32 0, i32 1>)")
        if kind == 3:
            return self._repeated()
        if kind == 4:
            first = self.say(f"insertelement {self.vector} undef, float %s, i32 0")
            mask = f"<{self.rows * self.cols} x i32> zeroinitializer"
            return self.say(f"shufflevector {self.vector} {first}, {self.vector} undef, {mask}")
        return self._product()

    def _repeated(self) -> str:
        """A broadcast row or column."""
        axis = self.random.randrange(2)
        extent = (self.rows, self.cols)[axis]
        pointer = self.parameter(extent)
        row = self.say(f"load <{extent} x float>, ptr {pointer}")
        dims = f"<1 x i32> <i32 {extent}>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer"
        token = self.say(f"call token @llvm.tensor.typeinfo(<{extent} x float> {row}, {dims})")
        shape = f"<2 x i32> <i32 {self.rows}, i32 {self.cols}>, <1 x i32> <i32 {axis}>"
        return self.say(f"call {self.vector} @llvm.tensor.broadcast(token {token}, {shape})")

    def _product(self) -> str:
        inner = self.random.randrange(1, 9)
        tokens: list[str] = []
        for rows, cols in ((self.rows, inner), (inner, self.cols)):
            dims = f"<2 x i32> <i32 {rows}, i32 {cols}>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer"
            pointer = f"ptr elementtype(float) {self.parameter(rows * cols)}"
            tokens.append(self.say(f"call token @llvm.tensor.load({pointer}, {dims}, <2 x i32> zeroinitializer)"))
        return self.say(f"call {self.vector} @llvm.tensor.matmul(token {tokens[0]}, token {tokens[1]})")

    def operation(self) -> str:
        first, second = (self.random.choice(self.vectors) for _ in range(2))
        kind = self.random.randrange(5)
        if kind == 0:
            token = self.say(f"call token @llvm.tensor.typeinfo({self.vector} {first}, {self.shape()})")
            name = self.random.choice(_UNARY)
            return self.say(f"call {self.vector} @llvm.tensor.{name}(token {token})")
        if kind == 1:
            predicate = self.random.choice(_PREDICATES)
            condition = self.say(f"fcmp {predicate} {self.vector} {first}, {second}")
            flags = f"<{self.rows * self.cols} x i1>"
            third = self.random.choice(self.vectors)
            return self.say(f"select {flags} {condition}, {self.vector} {third}, {self.vector} {second}")
        if kind == 2:
            integers = self.say(f"bitcast {self.vector} {first} to {self.vector.replace('float', 'i32')}")
            mask = f"{self.vector.replace('float', 'i32')} {integers}"
            return self.say(f"sitofp {mask} to {self.vector}")
        if kind == 3 and self.random.random() < 0.3:
            return self.say(f"freeze {self.vector} {first}")
        return self.say(f"{self.random.choice(_BINARY)} {self.vector} {first}, {second}")

    def store(self, value: str) -> None:
        pitch = self.cols + self.random.randrange(3)
        pointer = self.parameter(self.rows * pitch)
        if self.random.random() < 0.4:
            self.lines.append(f"  store {self.vector} {value}, ptr {pointer}")
            return
        token = self.say(f"call token @llvm.tensor.typeinfo({self.vector} {value}, {self.shape()})")
        self.lines.append(
            f"  call void @llvm.tensor.store(ptr {pointer}, token {token}, <2 x i32> <i32 0, i32 {pitch}>)"
        )

    def text(self) -> str:
        noalias = "noalias " if self.random.random() < 0.6 else ""
        parameters = ", ".join(f"ptr {noalias}%p{i}" for i in range(len(self.arrays)))
        body = "\n".join(self.lines)
        return f"define void @f({parameters}, float %s) {{\n{body}\n  ret void\n}}\n"


def make(seed: int) -> tuple[str, list[Array]]:
    """A random program and its arguments."""
    choices = random.Random(seed)
    program = Program(choices, choices.choice((1, 3, 17, 40)), choices.choice((1, 5, 16, 33)))
    program.vectors = [program.leaf() for _ in range(choices.randrange(1, 4))]
    for _ in range(choices.randrange(1, 7)):
        program.vectors.append(program.operation() if choices.random() < 0.8 else program.leaf())
    for value in {program.vectors[-1], choices.choice(program.vectors)}:
        program.store(value)
    return program.text(), program.arrays


def _evaluated(text: str, arrays: list[Array], stage: str | None, target: str) -> list[Array]:
    module = parse(text)
    if stage is not None:
        module = lower(module, target, options=Options(stop_after=stage))
    copies = [array.copy() for array in arrays]
    with np.errstate(all="ignore"):
        Machine(module).call("f", *copies, np.float32(1.5))
    return copies


@pytest.mark.parametrize("stage", ["to-2d", "to-tiles", "legalize"])
@pytest.mark.parametrize("seed", range(40))
def test_random_programs_mean_the_same_after(stage: str, seed: int) -> None:
    text, arrays = make(seed)
    expected = _evaluated(text, arrays, None, "avx512")
    got = _evaluated(text, arrays, stage, "avx512")
    for index, (mine, right) in enumerate(zip(got, expected, strict=True)):
        np.testing.assert_array_equal(mine, right, err_msg=f"%p{index} of\n{text}")


_ROWS, _COLS = 24, 50
_SHAPE = f"<2 x i32> <i32 {_ROWS}, i32 {_COLS}>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer"
_WINDOW = f"<2 x i32> <i32 1, i32 {_COLS}>, <2 x i32> <i32 1, i32 1>"
_V, _R = f"<{_ROWS * _COLS} x float>", f"<{_ROWS} x float>"


def _row_reduction(name: str, kind: str, vector: str) -> str:
    """The reduction of each row, broadcast along it: `%name.b`."""
    return f"""
  %{name}.t = call token @llvm.tensor.typeinfo({_V} {vector}, {_SHAPE})
  %{name} = call {_R} @llvm.tensor.reduce.{kind}(token %{name}.t, {_WINDOW})
  %{name}.c = call token @llvm.tensor.typeinfo({_R} %{name}, <2 x i32> <i32 {_ROWS}, i32 1>, <2 x i32> <i32 0, i32 1>,
                                              <2 x i32> zeroinitializer)
  %{name}.b = call {_V} @llvm.tensor.broadcast(token %{name}.c, <2 x i32> <i32 {_ROWS}, i32 {_COLS}>,
                                              <2 x i32> <i32 0, i32 1>)"""


SOFTMAX = f"""
define void @f(ptr noalias %p, ptr noalias %q) {{
  %x = load {_V}, ptr %p
  {_row_reduction("top", "max", "%x")}
  %d = fsub {_V} %x, %top.b
  %dt = call token @llvm.tensor.typeinfo({_V} %d, {_SHAPE})
  %e = call {_V} @llvm.tensor.exp(token %dt)
  {_row_reduction("sum", "add", "%e")}
  %y = fdiv {_V} %e, %sum.b
  store {_V} %y, ptr %q
  ret void
}}
"""
VARIANCE = f"""
define void @f(ptr noalias %p, ptr noalias %q) {{
  %x = load {_V}, ptr %p
  %sq = fmul {_V} %x, %x
  %t = call token @llvm.tensor.typeinfo({_V} %sq, {_SHAPE})
  %sum = call {_R} @llvm.tensor.reduce.add(token %t, {_WINDOW})
  store {_R} %sum, ptr %q
  ret void
}}
"""


@pytest.mark.parametrize("stage", [None, *STAGE_NAMES])
def test_softmax(stage: str | None) -> None:
    x = np.random.default_rng(3).normal(size=(_ROWS, _COLS)).astype(np.float32)
    module = parse(SOFTMAX) if stage is None else lower(parse(SOFTMAX), "avx512", options=Options(stop_after=stage))
    y = np.zeros_like(x)
    Machine(module).call("f", x, y)
    exact = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(y, exact / exact.sum(axis=1, keepdims=True), rtol=1e-5)


def test_a_reduction_of_rows_fuses_its_operand_if_it_has_no_other_use() -> None:
    remarks = Remarks()
    lowered = str(lower(parse(VARIANCE), "avx512", options=Options(stop_after="to-2d", remarks=remarks)))
    assert "alloca" not in lowered
    assert [r.message for r in remarks] == ["fused fmul into reduce.add: no intermediate result goes through memory"]
    x = np.random.default_rng(3).integers(-4, 5, (_ROWS, _COLS)).astype(np.float32)
    for stage in (None, *STAGE_NAMES):
        module = parse(VARIANCE) if stage is None else lower(parse(VARIANCE), "avx2", options=Options(stop_after=stage))
        y = np.zeros(_ROWS, np.float32)
        Machine(module).call("f", x, y)
        np.testing.assert_array_equal(y, (x * x).sum(axis=1))


def _load(name: str, *extents: int) -> str:
    rank = len(extents)
    shape, layout = (", ".join(f"i32 {n}" for n in numbers) for numbers in (extents, range(rank)))
    dims = f"<{rank} x i32> <{shape}>, <{rank} x i32> <{layout}>"
    zeros = f"<{rank} x i32> zeroinitializer"
    return f"  %{name} = call token @llvm.tensor.load(ptr elementtype(float) %p, {dims}, {zeros}, {zeros})\n"


def _typeinfo(name: str, vector: str, *extents: int) -> str:
    rank = len(extents)
    shape, layout = (", ".join(f"i32 {n}" for n in numbers) for numbers in (extents, range(rank)))
    dims = f"<{rank} x i32> <{shape}>, <{rank} x i32> <{layout}>, <{rank} x i32> zeroinitializer"
    return f"  %{name} = call token @llvm.tensor.typeinfo({vector}, {dims})\n"


_ONES = "<3 x i32> <i32 1, i32 1, i32 1>"
PRODUCTS = f"""
define void @f(ptr noalias %p, ptr noalias %q, i32 %n) {{
{_load("x", 3, 20, 30)}{_load("y", 3, 30, 50)}
  %m = call <3000 x float> @llvm.tensor.matmul(token %x, token %y)
  %d = fsub <3000 x float> %m, splat (float 1.0)
  %e = fmul <3000 x float> %d, %m
{_typeinfo("et", "<3000 x float> %e", 3, 20, 50)}
  %s = call <60 x float> @llvm.tensor.reduce.add(token %et, <3 x i32> <i32 1, i32 1, i32 50>, {_ONES})
{_typeinfo("st", "<60 x float> %s", 60)}
  call void @llvm.tensor.store(ptr %q, token %st, <1 x i32> zeroinitializer)
{_load("xa", 20, 30)}{_load("xb", 6, 30, 17)}
  %c = call <2040 x float> @llvm.tensor.contract(token %xa, token %xb, <1 x i32> <i32 1>, <1 x i32> <i32 1>)
{_typeinfo("ct", "<2040 x float> %c", 20, 6, 17)}
  %cs = call <120 x float> @llvm.tensor.reduce.max(token %ct, <3 x i32> <i32 1, i32 1, i32 17>, {_ONES})
  %q2 = getelementptr float, ptr %q, i64 1000
  store <120 x float> %cs, ptr %q2
  ret void
}}
"""


@pytest.mark.parametrize("target", ["avx512", "amx"])
def test_rows_of_products_are_reduced_in_the_kernel(target: str) -> None:
    x = np.random.default_rng(3).integers(-2, 3, 5000).astype(np.float32)
    results: list[Array] = []
    for stage in (None, *STAGE_NAMES):
        remarks = Remarks()
        options = Options(stop_after=stage, remarks=remarks)
        module = parse(PRODUCTS) if stage is None else lower(parse(PRODUCTS), target, options=options)
        y = np.zeros(2000, np.float32)
        Machine(module).call("f", x, y, 0)
        results.append(y)
        np.testing.assert_array_equal(y, results[0])
        if stage == "to-2d":
            assert "alloca" not in str(module)
            assert len([r for r in remarks if r.message.startswith("fused matmul, fsub, fmul into reduce.add")]) == 1
            assert len([r for r in remarks if r.message.startswith("fused contract into reduce.max")]) == 1
