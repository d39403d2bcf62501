"""Products as workloads that can be compiled, checked and timed: from a description, or all those of a file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from tlx.api.files import FORMAT_BY_NAME, InputFormat
from tlx.diagnostics import UsageError
from tlx.intrinsics.numpy_types import Array
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.values import Value, zero
from tlx.lower.knobs import NO_KNOBS, OPENMP, KnobQuery, Knobs
from tlx.lower.operations import MMA_NAMES
from tlx.lower.options import Options
from tlx.lower.pipeline import lower_text
from tlx.lower.to_tiles.expression import MatrixView
from tlx.lower.to_tiles.problem import Gemm
from tlx.target.instructions.dots import Sign
from tlx.target.target import Target
from tlx.tuning.workload import (
    BF16,
    F16,
    F32,
    F64,
    S8,
    S32,
    U8,
    Element,
    ElementwiseCheck,
    Workload,
    WorkloadBuffer,
    WorkloadBuilder,
    element_type,
)

_TYPE: Final = r"(?:half|bfloat|float|double|i\d+)"
_WORDS: Final = re.compile(
    rf"matmul (?P<m>\d+)x(?P<n>\d+)x(?:(?P<terms>\d+)\*)?(?P<k>\d+)"
    rf" (?P<lhs>{_TYPE})(?: (?P<rhs>{_TYPE}))?(?: -> (?P<result>{_TYPE}))?(?: (?P<lhs_sign>[us])(?P<rhs_sign>[us]))?"
    r"(?: (?P<a>[nt])(?P<b>n|t|v[248]))?(?: lda=(?P<lda>\d+))?(?: ldb=(?P<ldb>\d+))?"
    r"(?P<fused> fused)?(?: openmp=(?P<threads>[1-9]\d{0,3}))?"
)
_FLOATS: Final = {"half": F16, "bfloat": BF16, "float": F32, "double": F64}
_BYTES: Final = {"s": S8, "u": U8}

TYPE_WORDS: Final[dict[str, str]] = {
    "f64": "double",
    "f32": "float",
    "f16": "half -> float",
    "bf16": "bfloat -> float",
    "s8": "i8 -> i32 ss",
    "u8s8": "i8 -> i32 us",
}
"""The types of a product by their names on the command line."""


@dataclass(frozen=True, slots=True)
class ProductOperand:
    """A matrix in memory.

    Attributes:
        element: Element type.
        rows, cols: Extents.
        by_rows: Whether it is row-major; otherwise column-major.
        pitch: Elements from one line (a row or a column) to the next.
        group: Number of rows interleaved in memory.
        terms: Number of matrices, consecutive in memory.
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
        """Number of lines in memory, and elements of a line."""
        return (self.rows, self.cols) if self.by_rows else (self.cols, self.rows)

    @property
    def groups(self) -> tuple[int, int, int]:
        """Shape in memory of a matrix of interleaved rows."""
        return (self.rows // self.group, self.cols, self.group)

    @property
    def view(self) -> MatrixView:
        """The matrix as the lowering sees it."""
        if self.group > 1:
            return MatrixView.interleaved(TensorType.dense(element_type(self.element), self.groups), None)
        strides = (self.pitch, 1) if self.by_rows else (1, self.pitch)
        return MatrixView(element_type(self.element), self.rows, self.cols, *strides)

    def buffer(self, name: str) -> WorkloadBuffer:
        """The buffer that holds the matrices."""
        lines = self.terms * self.shape[0], self.pitch
        return WorkloadBuffer(name, self.element, self.groups if self.group > 1 else lines)

    @property
    def size(self) -> int:
        """Elements from one matrix to the next."""
        return self.shape[0] * self.pitch

    def load(self, b: WorkloadBuilder, name: str) -> Value:
        """Emit a load of the matrix; returns its token."""
        if self.group > 1:
            flat = TensorType.dense(element_type(self.element), self.shape)
            groups = b.tensor_load(b.buffer(name), TensorType.dense(element_type(self.element), self.groups))
            return b.typeinfo(b.reshape_permute(groups, (0, 2, 1), self.shape, flat), flat)
        layout = (0, 1) if self.by_rows else (1, 0)
        if self.terms > 1:
            layout = (0, *(axis + 1 for axis in layout))
            stacked = TensorType(element_type(self.element), (self.terms, *self.shape), layout, (0, 0, 0))
            return b.tensor_load(b.buffer(name), stacked, (0, 0, self.pitch))
        type_ = TensorType(element_type(self.element), self.shape, layout, (0, 0))
        return b.tensor_load(b.buffer(name), type_, (0, self.pitch))

    def values(self, array: Array) -> Array:
        """The matrices that an array holds, in float64."""
        if self.group > 1:
            return self.element.widen(array).transpose(0, 2, 1).reshape(1, *self.shape).astype(np.float64)
        lines = self.element.widen(array)[:, : self.shape[1]].astype(np.float64)
        stacked = lines.reshape(self.terms, *self.shape)
        return stacked if self.by_rows else stacked.transpose(0, 2, 1)


@dataclass(frozen=True, slots=True)
class ProductWorkload:
    """`C = A @ B`, or a sum of such products, on a number of threads; C is dense and row-major."""

    words: str
    a: ProductOperand
    b: ProductOperand
    result: Element
    fused: bool
    threads: int = 1

    @property
    def gemm(self) -> Gemm:
        """The problem that a recipe is selected for."""
        c = ProductOperand(self.result, self.a.rows, self.b.cols, True, self.b.cols)
        sums = tuple((term * self.a.size, term * self.b.size) for term in range(self.a.terms))
        return Gemm(self.a.view, self.b.view, c.view, None, *self._signs, term_offsets=sums)

    @property
    def _signs(self) -> tuple[Sign, Sign]:
        return _sign(self.a.element), _sign(self.b.element)

    @property
    def operations(self) -> int:
        """Multiplications and additions."""
        return 2 * self.a.rows * self.b.cols * self._depth

    @property
    def _depth(self) -> int:
        """Length of the sum: K times the number of matrices."""
        return self.a.terms * self.a.cols

    @property
    def workload(self) -> Workload:
        """The workload that is compiled, checked and timed."""
        buffers = (WorkloadBuffer("c", self.result, (self.a.rows, self.b.cols), output=True), *self._inputs)
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
    def _inputs(self) -> tuple[WorkloadBuffer, ...]:
        bias = (WorkloadBuffer("bias", self.result, (self.b.cols,)),) if self.fused else ()
        return self.a.buffer("a"), self.b.buffer("b"), *bias

    def _text(self, buffers: tuple[WorkloadBuffer, ...]) -> str:
        b = WorkloadBuilder(buffers)
        shape = (self.a.rows, self.b.cols)
        type_ = TensorType.dense(element_type(self.result), shape)
        value: Value = self._product(b, type_)
        if self.fused:
            biases = b.broadcast(b.load_buffer("bias"), shape, (1,), type_)
            total = b.binary("fadd" if self.result.is_float else "add", value, biases)
            value = b.unary("relu", b.typeinfo(total, type_), type_)
        return b.store_buffer("c", b.typeinfo(value, type_))

    def _product(self, b: WorkloadBuilder, type_: TensorType) -> Value:
        lhs, rhs = self.a.load(b, "a"), self.b.load(b, "b")
        if self.a.terms > 1:
            return b.contract(lhs, rhs, (0, 2), (0, 1), result=type_)
        if self._signs in (("f", "f"), ("s", "s")):
            return b.matmul(lhs, rhs, type_)
        start = b.typeinfo(zero(type_.vector), type_)
        return b.mma(MMA_NAMES[self._signs], start, lhs, rhs, type_)

    def expected(self, arrays: dict[str, Array]) -> ElementwiseCheck:
        """The expected result for operands, by the buffers' names."""
        lhs, rhs = self.a.values(arrays["a"]), self.b.values(arrays["b"])
        values = (lhs @ rhs).sum(0)
        magnitude = (np.abs(lhs) @ np.abs(rhs)).sum(0) if self.result.is_float else None
        if not self.fused:
            return ElementwiseCheck(values, magnitude, self._depth)
        bias = self.result.widen(arrays["bias"])
        if magnitude is None:  # sums wrap around
            return ElementwiseCheck(np.maximum(S32.narrow(values.astype(np.int64) + bias), 0))
        roundings = self._depth + (2 << max(0, F32.precision - self.result.precision))
        return ElementwiseCheck(np.maximum(values + bias, 0), magnitude + np.abs(bias), roundings)


def parse_product(words: str) -> ProductWorkload:
    """The product that `words` describe.

    Raises:
        UsageError: They do not describe a product, or its types cannot be tuned.
    """
    match = _WORDS.fullmatch(words)
    if match is None:
        raise UsageError(f"'{words}' is not a product; write it as 'matmul 64x64x64 float'")
    m, n, k, terms = (int(match[name] or 1) for name in ("m", "n", "k", "terms"))
    if min(m, n, k, terms) < 1 or max(m, n, k, terms) > 1 << 20:
        raise UsageError(f"'{words}': extents must be 1 to {1 << 20}")
    lhs, rhs = match["lhs"], match["rhs"] or match["lhs"]
    lines = m if match["a"] == "t" else k
    a = ProductOperand(
        _element(lhs, match["lhs_sign"], words), m, k, match["a"] != "t", int(match["lda"] or lines), terms=terms
    )
    group = int(match["b"][1:]) if (match["b"] or "").startswith("v") else 1
    if k % group:
        raise UsageError(f"'{words}': K must be a multiple of {group}, the number of interleaved rows of B")
    pitch = int(match["ldb"] or (k if match["b"] == "t" else n))
    b = ProductOperand(_element(rhs, match["rhs_sign"], words), k, n, match["b"] != "t", pitch, group, terms)
    if terms > 1 and (group > 1 or U8 in (a.element, b.element)):
        raise UsageError(f"'{words}': sums of products are tuned only if B is not interleaved and bytes are signed")
    result = _result(match["result"] or lhs, a.element, b.element, words)
    return ProductWorkload(words, a, b, result, match["fused"] is not None, int(match["threads"] or 1))


def with_threads(text: str, threads: int) -> str:
    """The words of a product for a number of threads, if its code uses threads."""
    return f"{text}={threads}" if text.endswith(f" {OPENMP}") else text


def _element(name: str, sign: str | None, words: str) -> Element:
    element = _BYTES.get(sign or "") if name == "i8" else _FLOATS.get(name)
    if element is None:
        raise UsageError(f"'{words}': products of {name} are not tuned; those of {', '.join(TYPE_WORDS)} are")
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


def products_of_file(
    path: str, target: Target, threads: int = 1, input_format: InputFormat = FORMAT_BY_NAME
) -> list[KnobQuery]:
    """The products that become kernels when a file is lowered for a number of threads, without duplicates.

    Raises:
        TlxError: The file cannot be read or lowered.
    """
    from tlx.api import files

    products: dict[KnobQuery, None] = {}

    def note(query: KnobQuery) -> Knobs:
        products[replace(query, text=with_threads(query.text, threads))] = None
        return NO_KNOBS

    options = Options(stop_after="to-tiles", verify_each=False, knobs=note, threads="openmp" if threads > 1 else "none")
    text = files.read_ir(path, options.threads, input_format)
    lower_text(text, files.ir_name(path, input_format), target, options=options)
    return list(products)


def products_of_shapes(
    shapes: Sequence[str], types: Sequence[str], layout: str, target: Target, threads: int = 1, *, fused: bool = False
) -> list[KnobQuery]:
    """The products of the given shapes, such as `64x64x64`, and types, for a target and a number of threads.

    Raises:
        UsageError: A shape or type is invalid.
    """
    products: list[KnobQuery] = []
    for name in types:
        if name not in TYPE_WORDS:
            raise UsageError(f"unknown type '{name}'; choose from {', '.join(TYPE_WORDS)}")
        for shape in shapes:
            words = f"matmul {shape} {TYPE_WORDS[name]}{'' if layout == 'nn' else f' {layout}'}"
            text = parse_product(words).gemm.knob_key + " fused" * fused + f" {OPENMP}" * (threads > 1)
            products.append(KnobQuery(with_threads(text, threads), target.name, target.features))
    return products
