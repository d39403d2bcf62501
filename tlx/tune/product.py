"""A product from its words (see `tlx.knobs`), as a problem for the model and as a workload to be timed.

Words do not tell what is fused with a product: what is timed adds a bias and takes what is positive.

    c = max(a @ b + bias, 0)        MxN = MxK KxN + N
    c = sum_t a[t] @ b[t]           MxN = TxMxK TxKxN: a batch-reduce, written MxNxT*K
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import numpy as np

from tlx.bench.elements import BF16, F16, F32, F64, S8, S32, U8, Array, Element
from tlx.bench.texts import Writer, type_of
from tlx.bench.truth import Expected
from tlx.bench.workload import Buffer, Workload
from tlx.diagnostics import UsageError
from tlx.ir.values import Value, zero
from tlx.knobs import OPENMP
from tlx.lower.signs import MMA_NAMES
from tlx.lower.to_tiles.problem import Gemm
from tlx.lower.to_tiles.view import View
from tlx.target import Sign
from tlx.types import TensorType

_TYPE: Final = r"(?:half|bfloat|float|double|i\d+)"
_WORDS: Final = re.compile(
    rf"matmul (?P<m>\d+)x(?P<n>\d+)x(?:(?P<terms>\d+)\*)?(?P<k>\d+)"
    rf" (?P<lhs>{_TYPE})(?: (?P<rhs>{_TYPE}))?(?: -> (?P<result>{_TYPE}))?(?: (?P<lhs_sign>[us])(?P<rhs_sign>[us]))?"
    r"(?: (?P<a>[nt])(?P<b>n|t|v[248]))?(?: lda=(?P<lda>\d+))?(?: ldb=(?P<ldb>\d+))?"
    r"(?P<fused> fused)?(?: openmp=(?P<threads>[1-9]\d{0,3}))?"
)
_FLOATS: Final = {"half": F16, "bfloat": BF16, "float": F32, "double": F64}
_BYTES: Final = {"s": S8, "u": U8}

TYPES: Final[dict[str, str]] = {
    "f64": "double",
    "f32": "float",
    "f16": "half -> float",
    "bf16": "bfloat -> float",
    "s8": "i8 -> i32 ss",
    "u8s8": "i8 -> i32 us",
}
"""What the command line calls the types of a product, and its words for them."""


@dataclass(frozen=True, slots=True)
class Operand:
    """A matrix in memory.

    Attributes:
        element: Element type.
        rows, cols: Extents.
        by_rows: Whether it lies row by row, or column by column.
        pitch: Elements from a line to the next.
        group: Rows that lie interleaved.
        terms: So many matrices lie one behind the other.
    """

    element: Element
    rows: int
    cols: int
    by_rows: bool
    pitch: int
    group: int = 1
    terms: int = 1

    @property
    def shape(self) -> tuple[int, int]:
        """Lines, and elements of a line."""
        return (self.rows, self.cols) if self.by_rows else (self.cols, self.rows)

    @property
    def groups(self) -> tuple[int, int, int]:
        """Shape in memory of a matrix of interleaved rows."""
        return (self.rows // self.group, self.cols, self.group)

    @property
    def view(self) -> View:
        """The matrix as the lowering sees it."""
        if self.group > 1:
            return View.interleaved(TensorType.dense(type_of(self.element), self.groups), None)
        strides = (self.pitch, 1) if self.by_rows else (1, self.pitch)
        return View(type_of(self.element), self.rows, self.cols, *strides)

    def buffer(self, name: str) -> Buffer:
        """The memory."""
        lines = self.terms * self.shape[0], self.pitch
        return Buffer(name, self.element, self.groups if self.group > 1 else lines)

    @property
    def size(self) -> int:
        """Elements from a matrix to the next."""
        return self.shape[0] * self.pitch

    def loaded(self, b: Writer, name: str) -> Value:
        """A token for the matrix."""
        if self.group > 1:
            flat = TensorType.dense(type_of(self.element), self.shape)
            groups = b.tensor_load(b.buffer(name), TensorType.dense(type_of(self.element), self.groups))
            return b.typeinfo(b.reshape_permute(groups, (0, 2, 1), self.shape, flat), flat)
        layout = (0, 1) if self.by_rows else (1, 0)
        if self.terms > 1:
            layout = (0, *(axis + 1 for axis in layout))
            stacked = TensorType(type_of(self.element), (self.terms, *self.shape), layout, (0, 0, 0))
            return b.tensor_load(b.buffer(name), stacked, (0, 0, self.pitch))
        type_ = TensorType(type_of(self.element), self.shape, layout, (0, 0))
        return b.tensor_load(b.buffer(name), type_, (0, self.pitch))

    def values(self, array: Array) -> Array:
        """The matrices that an array holds, in float64."""
        if self.group > 1:
            return self.element.widened(array).transpose(0, 2, 1).reshape(1, *self.shape).astype(np.float64)
        lines = self.element.widened(array)[:, : self.shape[1]].astype(np.float64)
        stacked = lines.reshape(self.terms, *self.shape)
        return stacked if self.by_rows else stacked.transpose(0, 2, 1)


@dataclass(frozen=True, slots=True)
class Product:
    """`C = A @ B`, or the sum of such products; C is dense and row-major. `threads`: of OpenMP; 1 is none."""

    words: str
    a: Operand
    b: Operand
    result: Element
    fused: bool
    threads: int = 1

    @property
    def gemm(self) -> Gemm:
        """The problem that the target's model decides on."""
        c = Operand(self.result, self.a.rows, self.b.cols, True, self.b.cols)
        sums = tuple((term * self.a.size, term * self.b.size) for term in range(self.a.terms))
        return Gemm(self.a.view, self.b.view, c.view, None, *self._signs, sums=sums)

    @property
    def _signs(self) -> tuple[Sign, Sign]:
        return _sign(self.a.element), _sign(self.b.element)

    @property
    def operations(self) -> int:
        """Multiplications and additions."""
        return 2 * self.a.rows * self.b.cols * self._depth

    @property
    def _depth(self) -> int:
        """Positions of K of all matrices."""
        return self.a.terms * self.a.cols

    @property
    def workload(self) -> Workload:
        """What is compiled, checked and timed."""
        buffers = (Buffer("c", self.result, (self.a.rows, self.b.cols), output=True), *self._inputs)
        return Workload(
            row="gemm",
            types=self.words,
            size="",
            buffers=buffers,
            text=lambda: self._text(buffers),
            expected=self.expected,
            operations=self.operations,
            traffic=sum(buffer.bytes for buffer in buffers),
            peak=(self.a.element, self.b.element, self.result),
            problem=None,
        )

    @property
    def _inputs(self) -> tuple[Buffer, ...]:
        bias = (Buffer("bias", self.result, (self.b.cols,)),) if self.fused else ()
        return self.a.buffer("a"), self.b.buffer("b"), *bias

    def _text(self, buffers: tuple[Buffer, ...]) -> str:
        b = Writer(buffers)
        shape = (self.a.rows, self.b.cols)
        type_ = TensorType.dense(type_of(self.result), shape)
        value: Value = self._product(b, type_)
        if self.fused:
            biases = b.broadcast(b.loaded("bias"), shape, (1,), type_)
            total = b.binary("fadd" if self.result.is_float else "add", value, biases)
            value = b.unary("relu", b.typeinfo(total, type_), type_)
        return b.stored("c", b.typeinfo(value, type_))

    def _product(self, b: Writer, type_: TensorType) -> Value:
        lhs, rhs = self.a.loaded(b, "a"), self.b.loaded(b, "b")
        if self.a.terms > 1:
            return b.contract(lhs, rhs, (0, 2), (0, 1), result=type_)
        if self._signs in (("f", "f"), ("s", "s")):
            return b.matmul(lhs, rhs, type_)
        start = b.typeinfo(zero(type_.vector), type_)
        return b.mma(MMA_NAMES[self._signs], start, lhs, rhs, type_)

    def expected(self, arrays: dict[str, Array]) -> Expected:
        """The result for operands by the buffers' names."""
        lhs, rhs = self.a.values(arrays["a"]), self.b.values(arrays["b"])
        values = (lhs @ rhs).sum(0)
        magnitude = (np.abs(lhs) @ np.abs(rhs)).sum(0) if self.result.is_float else None
        if not self.fused:
            return Expected(values, magnitude, self._depth)
        bias = self.result.widened(arrays["bias"])
        if magnitude is None:  # sums wrap around
            return Expected(np.maximum(S32.narrowed(values.astype(np.int64) + bias), 0))
        roundings = self._depth + (2 << max(0, F32.precision - self.result.precision))
        return Expected(np.maximum(values + bias, 0), magnitude + np.abs(bias), roundings)


def parse_product(words: str) -> Product:
    """The product that words name.

    Raises:
        UsageError: They name none, or one of types that are not tuned.
    """
    found = _WORDS.fullmatch(words)
    if found is None:
        raise UsageError(f"'{words}' names no product; write it as 'matmul 64x64x64 float'")
    m, n, k, terms = (int(found[name] or 1) for name in ("m", "n", "k", "terms"))
    if min(m, n, k, terms) < 1 or max(m, n, k, terms) > 1 << 20:
        raise UsageError(f"'{words}': extents are 1 to {1 << 20}")
    lhs, rhs = found["lhs"], found["rhs"] or found["lhs"]
    lines = m if found["a"] == "t" else k
    a = Operand(
        _element(lhs, found["lhs_sign"], words), m, k, found["a"] != "t", int(found["lda"] or lines), terms=terms
    )
    group = int(found["b"][1:]) if (found["b"] or "").startswith("v") else 1
    if k % group:
        raise UsageError(f"'{words}': K is a multiple of {group} where so many rows of B lie interleaved")
    pitch = int(found["ldb"] or (k if found["b"] == "t" else n))
    b = Operand(_element(rhs, found["rhs_sign"], words), k, n, found["b"] != "t", pitch, group, terms)
    if terms > 1 and (group > 1 or U8 in (a.element, b.element)):
        raise UsageError(f"'{words}': sums of products are tuned where B is not interleaved and bytes are signed")
    result = _result(found["result"] or lhs, a.element, b.element, words)
    return Product(words, a, b, result, found["fused"] is not None, int(found["threads"] or 1))


def on_threads(text: str, threads: int) -> str:
    """The words of a product for a number of threads, where its code has threads at all."""
    return f"{text}={threads}" if text.endswith(f" {OPENMP}") else text


def _element(name: str, sign: str | None, words: str) -> Element:
    element = _BYTES.get(sign or "") if name == "i8" else _FLOATS.get(name)
    if element is None:
        raise UsageError(f"'{words}': products of {name} are not tuned; those of {', '.join(TYPES)} are")
    return element


def _result(name: str, lhs: Element, rhs: Element, words: str) -> Element:
    result = S32 if name == "i32" else _FLOATS.get(name)
    if result is None or not (lhs.is_float == rhs.is_float == result.is_float):
        raise UsageError(f"'{words}': products with a result of {name} are not tuned")
    return result


def _sign(element: Element) -> Sign:
    if element.is_float:
        return "f"
    return "u" if element is U8 else "s"
