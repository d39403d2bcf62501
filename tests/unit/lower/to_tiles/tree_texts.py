"""Trees of stage 1 as text, with arguments, and functions that run them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

import tlx
from tlx.evaluate import Machine
from tlx.ir.module import Module
from tlx.ir.parser.module import parse, parse_fully
from tlx.ir.tensors.calls import canonicalise
from tlx.llvm.verification import check_module
from tlx.lower.context import LoweringContext
from tlx.lower.legalize import legalize
from tlx.lower.options import Options
from tlx.lower.remarks import Remarks
from tlx.lower.to_tiles import to_tiles
from tlx.target.lookup import find_target

Array = NDArray[Any]
DTYPES: dict[str, np.dtype[Any]] = {
    "i1": np.dtype(np.bool_),
    "i8": np.dtype(np.int8),
    "i16": np.dtype(np.int16),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "half": np.dtype(np.float16),
    "bfloat": np.dtype(ml_dtypes.bfloat16),
    "float": np.dtype(np.float32),
    "double": np.dtype(np.float64),
}
ROW, COLUMN, ZERO = "<2 x i32> <i32 0, i32 1>", "<2 x i32> <i32 1, i32 0>", "<2 x i32> zeroinitializer"
TARGETS = ("generic", "avx2", "avx512")


def pair(first: int, second: int) -> str:
    """`<2 x i32> <i32 first, i32 second>`."""
    return f"<2 x i32> <i32 {first}, i32 {second}>"


def some(dtype: np.dtype[Any], shape: tuple[int, ...], seed: int = 0, *, small: bool = False) -> Array:
    """Numbers of a type, all of its kinds: zeros, infinities, NaNs and denormals unless `small`."""
    rng = np.random.default_rng(seed)
    if small:
        return rng.integers(-4, 5, shape).astype(dtype)
    if dtype.kind in "ib":
        raw = rng.integers(0, 256, (*shape, dtype.itemsize), np.uint8).view(dtype)[..., 0]
        return (raw & 1 if dtype.kind == "b" else raw >> rng.integers(0, dtype.itemsize * 8, shape)).astype(dtype)
    with np.errstate(over="ignore"):
        values = (rng.standard_normal(shape) * 10.0 ** rng.integers(-6, 7, shape)).astype(dtype)
        special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 0.5, -1.5, 2.5, 1e-7, 65504.0, -7.0, 3.0e38]).astype(
            dtype
        )
    chosen = rng.choice(special, shape)
    is_special = rng.random(shape) < 0.25
    values[is_special] = chosen[is_special]
    return values


@dataclass
class Tree:
    """A function with one tree, written operation by operation; `@f(out, arguments in the order of their making)`."""

    rows: int
    cols: int
    lines: list[str] = field(default_factory=list[str])
    parameters: list[str] = field(default_factory=list[str])
    arguments: list[Any] = field(default_factory=list[Any])
    declared: set[str] = field(default_factory=set[str])
    small: bool = False

    def vector(self, element: str) -> str:
        """The flattened type."""
        return f"<{self.rows * self.cols} x {element}>"

    def _name(self) -> str:
        return f"%v{len(self.lines)}"

    def _emit(self, text: str) -> str:
        name = self._name()
        self.lines.append(f"{name} = {text}")
        return name

    def _memory(self, element: str, rows: int, cols: int, pitch: int) -> str:
        """A new pointer argument: `rows` x `cols`, rows `pitch` elements apart, nothing behind the last."""
        values = some(DTYPES[element], ((rows - 1) * pitch + cols,), len(self.arguments) + 7, small=self.small)
        self.arguments.append(values)
        name = f"%p{len(self.arguments)}"
        self.parameters.append(f"ptr {name}")
        return name

    def load(self, element: str, rows: int, cols: int, spare: int = 0, *, column: bool = False) -> str:
        """A token of a matrix in memory."""
        shape = (cols, rows) if column else (rows, cols)
        pointer = self._memory(element, *shape, shape[1] + spare)
        return self.load_from(pointer, element, shape, shape[1] + spare, COLUMN if column else ROW)

    def load_from(self, pointer: str, element: str, shape: tuple[int, int], pitch: int, layout: str = ROW) -> str:
        """A token of memory behind a pointer."""
        return self._emit(
            f"call token @llvm.tensor.load(ptr elementtype({element}) {pointer}, {pair(*shape)}, {layout}, {ZERO}, "
            f"{pair(0, pitch)})"
        )

    def leaf(self, element: str, spare: int = 0, *, column: bool = False) -> str:
        """A matrix of the tree's extents."""
        token = self.load(element, self.rows, self.cols, spare, column=column)
        call = f"@llvm.tensor.transpose(token {token}, {ROW})" if column else f"@llvm.tensor.tovector(token {token})"
        return self._emit(f"call {self.vector(element)} {call}")

    def in_place(self, element: str, spare: int = 0) -> str:
        """The destination before it is written."""
        token = self.load_from("%out", element, (self.rows, self.cols), self.cols + spare)
        return self._emit(f"call {self.vector(element)} @llvm.tensor.tovector(token {token})")

    def repeated(self, element: str, rows: int, cols: int, spare: int = 0) -> str:
        """A row, a column or a number in memory, repeated."""
        return self._stretched(self.load(element, rows, cols, spare), element)

    def _stretched(self, token: str, element: str) -> str:
        shape = pair(self.rows, self.cols)
        return self._emit(f"call {self.vector(element)} @llvm.tensor.broadcast(token {token}, {shape}, {ROW})")

    def scalar(self, element: str, value: float) -> str:
        """A number passed as an argument, repeated."""
        name = self.number(element, value)
        one = self._emit(f"insertelement <1 x {element}> undef, {element} {name}, i32 0")
        return self._stretched(self.token(one, element, 1, 1), element)

    def number(self, element: str, value: float) -> str:
        """A number passed as an argument."""
        self.arguments.append(int(value) if element == "i1" else DTYPES[element].type(value))
        name = f"%n{len(self.arguments)}"
        self.parameters.append(f"{element} {name}")
        return name

    def constant(self, element: str, spelling: str) -> str:
        """A constant, repeated as stage 1 does it."""
        return self._stretched(self.token(f"<{element} {spelling}>", element, 1, 1), element)

    def token(self, value: str, element: str, rows: int, cols: int) -> str:
        """A token of a vector."""
        typed = f"<{rows * cols} x {element}> {value}"
        return self._emit(f"call token @llvm.tensor.typeinfo({typed}, {pair(rows, cols)}, {ROW}, {ZERO})")

    def binary(self, opcode: str, element: str, x: str, y: str) -> str:
        """An instruction on two values."""
        return self._emit(f"{opcode} {self.vector(element)} {x}, {y}")

    def one(self, opcode: str, element: str, x: str) -> str:
        """An instruction on one value."""
        return self._emit(f"{opcode} {self.vector(element)} {x}")

    def cast(self, opcode: str, source: str, to: str, x: str) -> str:
        """A conversion."""
        return self._emit(f"{opcode} {self.vector(source)} {x} to {self.vector(to)}")

    def select(self, condition: str, element: str, x: str, y: str) -> str:
        """`select`; the condition comes with its type."""
        vector = self.vector(element)
        return self._emit(f"select {condition}, {vector} {x}, {vector} {y}")

    def call(self, name: str, element: str, *operands: str, immediates: str = "") -> str:
        """A call of an LLVM intrinsic whose operands have the result's type."""
        vector = self.vector(element)
        mangled = {"half": "f16", "bfloat": "bf16", "float": "f32", "double": "f64"}.get(element, element)
        full = f"@llvm.{name}.v{self.rows * self.cols}{mangled}"
        types = ", ".join([vector] * len(operands) + ([immediates.split(maxsplit=1)[0]] if immediates else []))
        self.declared.add(f"declare {vector} {full}({types})")
        spelled = ", ".join([*(f"{vector} {o}" for o in operands), *([immediates] if immediates else [])])
        return self._emit(f"call {vector} {full}({spelled})")

    def unary(self, name: str, element: str, x: str) -> str:
        """A unary tensor operation."""
        token = self.token(x, element, self.rows, self.cols)
        return self._emit(f"call {self.vector(element)} @llvm.tensor.{name}(token {token})")

    def matmul(self, element: str, result: str, k: int, order: str = "rr") -> str:
        """A product of two matrices in memory."""
        a = self.load(element, self.rows, k, column=order[0] == "c")
        b = self.load(element, k, self.cols, column=order[1] == "c")
        return self._emit(f"call {self.vector(result)} @llvm.tensor.matmul(token {a}, token {b})")

    def reduced(self, operation: str, element: str, x: str, axis: int) -> str:
        """The token of a reduction of columns (axis 0: to one row) or rows (axis 1: to one column)."""
        token = self.token(x, element, self.rows, self.cols)
        shape = (1, self.cols) if axis == 0 else (self.rows, 1)
        window = pair(self.rows // shape[0], self.cols // shape[1])
        count = shape[0] * shape[1]
        call = f"call <{count} x {element}> @llvm.tensor.reduce.{operation}(token {token}, {window}, {pair(1, 1)})"
        return self.token(self._emit(call), element, *shape)

    def function(self, token: str, element: str, shape: tuple[int, int], spare: int = 0) -> Case:
        """The function, with a store of the token."""
        pitch = shape[1] + spare
        lines = [*self.lines, f"call void @llvm.tensor.store(ptr %out, token {token}, {pair(0, pitch)})", "ret void"]
        body = "".join(f"  {line}\n" for line in lines)
        text = f"define void @f({', '.join(['ptr %out', *self.parameters])}) {{\n{body}}}\n\n"
        out = some(DTYPES[element], ((shape[0] - 1) * pitch + shape[1],), 3, small=self.small)
        return Case(text, self.declared, out, self.arguments)

    def stored(self, value: str, element: str, spare: int = 0) -> Case:
        """The function, with a store of a value."""
        token = self.token(value, element, self.rows, self.cols)
        return self.function(token, element, (self.rows, self.cols), spare)

    def reduction(self, operation: str, element: str, value: str, axis: int, spare: int = 0) -> Case:
        """The function, with a store of a reduction."""
        shape = (1, self.cols) if axis == 0 else (self.rows, 1)
        return self.function(self.reduced(operation, element, value, axis), element, shape, spare)


@dataclass
class Case:
    """A function `@f` and what to call it with; `declared` are the intrinsics it calls."""

    text: str
    declared: set[str]
    out: Array
    arguments: list[Any]


def module_text(cases: Sequence[Case]) -> str:
    """One module of functions `@f0`, `@f1`, ..."""
    texts = [case.text.replace("@f(", f"@f{number}(") for number, case in enumerate(cases)]
    return "".join(texts) + "".join(f"{d}\n" for d in sorted(set[str]().union(*(c.declared for c in cases))))


def check(
    cases: Sequence[Case],
    targets: Sequence[str] = TARGETS,
    *,
    compare: Callable[[Array, Array], Array] | None = None,
    remarks: Remarks | None = None,
) -> None:
    """Check that trees, tiles (generic ones), registers and machine code give the same results.

    Args:
        cases: The functions.
        targets: Names of targets; `amx` is emulated.
        compare: Says which elements of two results differ; by default those with other bits.
        remarks: Where the lowering's remarks go.
    """
    text = module_text(cases)
    compare = compare or _other_bits
    meant: list[Array] | None = None
    for target in targets:
        emulate = target == "amx"
        lowered = _texts(text, target, remarks, emulate=emulate)
        meant = meant or _evaluated(lowered[0], cases)
        results: dict[str, list[Array]] = {}
        if target != "avx2":  # its registers are those of generic, twice as wide; its machine code runs
            results["registers"] = _evaluated(lowered[2], cases)
        if target in ("generic", "amx"):
            results["tiles"] = _evaluated(lowered[1], cases)
        level = 2 if target == "avx2" else 0
        results["machine code"] = _compiled(lowered[2], cases, level, emulate=emulate)
        for title, outputs in results.items():
            for case, expected, got in zip(cases, meant, outputs, strict=True):
                differing = np.flatnonzero(compare(expected, got))[:4]
                where = (
                    f"{target} {title}: {expected[differing]} became {got[differing]} at {differing} in\n{case.text}"
                )
                assert not differing.size, where


def _other_bits(expected: Array, got: Array) -> Array:
    return bits(expected) != bits(got)


def _evaluated(text: str, cases: Sequence[Case]) -> list[Array]:
    machine = Machine(parse_fully(text))
    results: list[Array] = []
    for number, case in enumerate(cases):
        results.append(case.out.copy())
        machine.call(f"f{number}", results[-1], *[copy(a) for a in case.arguments])
    return results


def _compiled(text: str, cases: Sequence[Case], level: int, *, emulate: bool) -> list[Array]:
    module = tlx.compile(text, "generic", opt_level=level, options=Options(emulate_matrix=emulate))
    results: list[Array] = []
    for number, case in enumerate(cases):
        result = case.out.copy()
        module[f"f{number}"](result, *[copy(a) for a in case.arguments])
        results.append(result)
    return results


def bits(array: Array) -> Array:
    """The bits of numbers; those of NaNs are one and the same."""
    if array.dtype.kind == "b":
        return array.astype(np.uint8)
    unsigned = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[array.dtype.itemsize]
    plain = array.view(unsigned).copy()
    if array.dtype.kind not in "iu":
        with np.errstate(all="ignore"):
            plain[np.isnan(array)] = unsigned(1)
    return plain


def stages(
    text: str, target: str, remarks: Remarks | None = None, *, emulate: bool = False
) -> tuple[Module, Module, Module]:
    """The tree as it is, as tiles, and as registers; LLVM judges each."""
    first, tiles, registers = (parse_fully(t) for t in _texts(text, target, remarks, emulate=emulate))
    return first, tiles, registers


def _texts(text: str, target: str, remarks: Remarks | None, *, emulate: bool) -> list[str]:
    module = parse(text)
    canonicalise(module)
    options = Options(remarks=remarks or Remarks(), emulate_matrix=emulate, request_permission=False)
    context = LoweringContext(find_target(target), options)
    made = [str(module)]
    for stage in (to_tiles, legalize):
        stage(module, context)
        check_module(module, stage.__name__)
        made.append(str(module))
    return made
