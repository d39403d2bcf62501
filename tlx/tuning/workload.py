"""A workload: a function in LLVM IR on tensors in memory, its expected result in numpy, and its amount of work.

bfloat is stored as its bits in arrays of uint16, so that only numpy is needed. The output of a workload is checked by

ElementwiseCheck    compares every element with numpy's, in float64
FreivaldsCheck      checks a large product in time independent of K: a few rows elementwise, and all rows by their
                    products with random vectors (Freivalds' algorithm)

    c = a @ b   ->   c @ x == a @ (b @ x)        MxN NxP == MxK KxN NxP

The vectors have random signs, so that a single wrong element always changes its row of `c @ x`. Integers are exact.
Rounding errors of floats add up like random walks: an element's is 2^-24 sqrt(K) times the sum of its terms'
magnitudes (Higham and Mary, 2019), a row's sqrt(N) times that; the tolerance is eight times as large.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, Final, Protocol

import numpy as np

from tlx.diagnostics import TlxError
from tlx.intrinsics import small_floats
from tlx.intrinsics.numpy_types import Array
from tlx.intrinsics.small_floats import SmallFloat
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.builder import new_function
from tlx.ir.parser.module import parse
from tlx.ir.prepared import CONSTANT
from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.types import BFLOAT, DOUBLE, FLOAT, HALF, I8, I32, PTR, Type
from tlx.ir.values import Value


@dataclass(frozen=True)
class Element:
    """An element type.

    Attributes:
        name: Name in the table, such as `u8`.
        llvm: Name in LLVM, which has no signedness.
        dtype: Type of numpy arrays that hold it.
        precision: Bits of a float's significand, including the hidden one; 0 for integers.
        small: The format of a float that is stored in a byte.
    """

    name: str
    llvm: str
    dtype: np.dtype[Any]
    precision: int = 0
    small: SmallFloat | None = None

    @property
    def bytes(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    @property
    def is_float(self) -> bool:
        """Whether it is a floating-point type."""
        return self.precision > 0

    def random(self, shape: tuple[int, ...], seed: int) -> Array:
        """Random elements: integers of the whole range, floats in [-1, 1)."""
        generator = np.random.default_rng(seed)
        if not self.is_float:
            limits = np.iinfo(self.dtype)
            return generator.integers(limits.min, limits.max, shape, self.dtype, endpoint=True)
        return self.narrow(generator.uniform(-1, 1, shape))

    def widen(self, array: Array) -> Array:
        """The values as float64, or int64."""
        if not self.is_float:
            return array.astype(np.int64)
        if self.llvm == "bfloat":
            return (array.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
        if self.small is not None:
            return self.small.decoded(array)
        return array.astype(np.float64)

    def narrow(self, values: Array) -> Array:
        """Values converted to this type: floats rounded to nearest even, integers wrapped."""
        if self.small is not None:
            return self.small.encoded(values, saturates=False)
        if self.llvm != "bfloat":
            return values.astype(self.dtype)
        bits = values.astype(np.float32).view(np.uint32)
        return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


F64: Final = Element("f64", "double", np.dtype(np.float64), 53)
F32: Final = Element("f32", "float", np.dtype(np.float32), 24)
F16: Final = Element("f16", "half", np.dtype(np.float16), 11)
BF16: Final = Element("bf16", "bfloat", np.dtype(np.uint16), 8)
E4M3: Final = Element("e4m3", "i8", np.dtype(np.uint8), small_floats.E4M3.mantissa_bits + 1, small_floats.E4M3)
S8: Final = Element("s8", "i8", np.dtype(np.int8))
U8: Final = Element("u8", "i8", np.dtype(np.uint8))
S16: Final = Element("s16", "i16", np.dtype(np.int16))
S32: Final = Element("s32", "i32", np.dtype(np.int32))
S64: Final = Element("s64", "i64", np.dtype(np.int64))


@dataclass(frozen=True)
class GemmProblem:
    """`c = a @ b`, MxN = MxK KxN.

    Attributes:
        lhs, rhs, accumulator, out: Element types.
        columns: The column-major operands, of "a", "b", "c".
        vnni: Whether b is stored as [K/v][N][v], where v elements are four bytes (two for wide sums of 8-bit elements).
        prepared: Whether b is constant over calls, and packed before the first one.
        accumulates: Whether the product is added to what c holds (beta = 1).
    """

    m: int
    n: int
    k: int
    lhs: Element
    rhs: Element
    accumulator: Element
    out: Element
    columns: str = ""
    vnni: bool = False
    prepared: bool = False
    accumulates: bool = False

    @property
    def factor(self) -> int:
        """Elements of b that are adjacent along K: the VNNI factor."""
        return max(1, 4 // self.rhs.bytes) if self.vnni else 1

    @property
    def a_shape(self) -> tuple[int, int]:
        """In memory order."""
        return (self.k, self.m) if "a" in self.columns else (self.m, self.k)

    @property
    def b_shape(self) -> tuple[int, ...]:
        """In memory order."""
        if self.vnni:
            return (self.k // self.factor, self.n, self.factor)
        return (self.n, self.k) if "b" in self.columns else (self.k, self.n)

    @property
    def c_shape(self) -> tuple[int, int]:
        """In memory order."""
        return (self.n, self.m) if "c" in self.columns else (self.m, self.n)


@dataclass(frozen=True)
class LayerProblem:
    """`y = relu(x @ w + bias)`: `gemm` is the product, with a = x, b = w and c = y."""

    gemm: GemmProblem


@dataclass(frozen=True)
class BlockedProblem:
    """A product of matrices that are stored block by block: blocks of `blocks` = (mb, nb, kb) elements of M, N and K.

        a[M/mb][K/kb][mb][kb]   b[N/nb][K/kb][kb][nb]   c[M/mb][N/nb][mb][nb]
                                b[N/nb][K/kb][kb/v][nb][v]   if `gemm.vnni`

    Attributes:
        activated: Whether it is a layer, `c = relu(a @ b + bias)`.
    """

    gemm: GemmProblem
    blocks: tuple[int, int, int]
    activated: bool = False

    @property
    def a_shape(self) -> tuple[int, ...]:
        """In memory order; K as pairs if b is interleaved."""
        (mb, _, kb), v = self.blocks, self.gemm.factor
        return (self.gemm.m // mb, self.gemm.k // kb, mb, *((kb // v, v) if self.gemm.vnni else (kb,)))

    @property
    def b_shape(self) -> tuple[int, ...]:
        """In memory order."""
        (_, nb, kb), v = self.blocks, self.gemm.factor
        return (self.gemm.n // nb, self.gemm.k // kb, kb // v, nb, *((v,) if self.gemm.vnni else ()))

    @property
    def c_shape(self) -> tuple[int, ...]:
        """In memory order."""
        mb, nb, _ = self.blocks
        return self.gemm.m // mb, self.gemm.n // nb, mb, nb


@dataclass(frozen=True)
class BatchProblem:
    """`count` products of one shape, consecutive in memory; their sum is c if `reduced`."""

    count: int
    gemm: GemmProblem
    reduced: bool = False


@dataclass(frozen=True)
class ConvolutionProblem:
    """A convolution of a padded `channels` x `rows` x `columns` image: the same stride in both dimensions, no dilation.

    Attributes:
        groups: Number of groups of channels.
    """

    images: int
    channels: int
    rows: int
    columns: int
    filters: int
    window: int
    stride: int
    groups: int
    lhs: Element
    rhs: Element
    out: Element

    @property
    def out_rows(self) -> int:
        """Rows of the result."""
        return (self.rows - self.window) // self.stride + 1

    @property
    def out_columns(self) -> int:
        """Columns of the result."""
        return (self.columns - self.window) // self.stride + 1


@dataclass(frozen=True)
class PointwiseProblem:
    """`y = function(x...)`, elementwise; softmax and the reductions are of rows of `columns` elements."""

    function: str
    count: int
    element: Element
    columns: int = 0


@dataclass(frozen=True)
class FusedProblem:
    """`count` times two consecutive products: `d += alpha (a b^T) c`."""

    count: int


class WrongResultError(TlxError):
    """The result of a workload is not numpy's."""


@dataclass(frozen=True)
class WorkloadBuffer:
    """Memory that a workload's function takes a pointer to.

    Attributes:
        name: Name of the parameter.
        element: Element type.
        shape: Shape in memory order.
        output: Whether it is the result, which is initialised with zeros; inputs are random.
        scale: What random floats are multiplied by.
        constant: Whether the argument is constant over calls: the function reads a block that is prepared once.
    """

    name: str
    element: Element
    shape: tuple[int, ...]
    output: bool = False
    scale: float = 1.0
    constant: bool = False

    @property
    def bytes(self) -> int:
        """Size in bytes."""
        return prod(self.shape) * self.element.bytes

    def fill(self, seed: int) -> Array:
        """An initialised array, aligned to 64 bytes."""
        memory = np.zeros(self.bytes + 128, np.uint8)
        start = -memory.ctypes.data % 64
        array = memory[start : start + self.bytes].view(self.element.dtype).reshape(self.shape)
        if not self.output:
            values = self.element.random(self.shape, seed)
            scaled = self.scale != 1.0
            array[...] = self.element.narrow(self.element.widen(values) * self.scale) if scaled else values
        return array


@dataclass(frozen=True)
class MemoryTraffic:
    """Memory that is read and written; it bounds elementwise workloads.

    Attributes:
        reads: Number of arrays of `bytes` that are read.
        writes: Number of arrays of `bytes` that are written.
    """

    bytes: int
    reads: int
    writes: int


@dataclass(frozen=True)
class Workload:
    """One cell of the table.

    Attributes:
        row: Name of the row, such as `gemm`.
        types: Element types, such as `bf16->f32`.
        size: Size, such as `1024` or `16x1024x1024`.
        buffers: The function's pointers, in order.
        text: Returns the text of the module; its function is `@work`.
        expected: Computes the output from the buffers' arrays; None if it is not known.
        operations: Additions and multiplications, or bytes if memory bounds it.
        traffic: Minimum number of bytes read and written.
        peak: What bounds it: multiplication of element types (lhs, rhs, accumulator), or memory.
        problem: Description of the work for peers.
        variant: How it differs from others of its size, such as `vnni B`; empty for the plain one.
        function: The function's name.
        order: The parameters: names of buffers, and numbers with their LLVM types; all buffers if empty.
    """

    row: str
    types: str
    size: str
    buffers: tuple[WorkloadBuffer, ...]
    text: Callable[[], str]
    expected: Callable[[dict[str, Array]], ResultCheck] | None
    operations: int
    traffic: int
    peak: tuple[Element, Element, Element] | MemoryTraffic
    problem: Any
    variant: str = ""
    function: str = "work"
    order: tuple[str | tuple[str, float], ...] = ()

    @property
    def key(self) -> tuple[str, str, str, str]:
        """The key that identifies it in the table."""
        return self.row, self.types, self.size, self.variant

    @property
    def name(self) -> str:
        """Its name, such as `gemm bf16->f32 1024 vnni B`."""
        return " ".join(part for part in self.key if part)

    @cached_property
    def output(self) -> WorkloadBuffer:
        """The buffer of the result."""
        return next(buffer for buffer in self.buffers if buffer.output)

    @property
    def accumulates(self) -> bool:
        """Whether the result is added to what the output holds."""
        problem = self.problem.gemm if isinstance(self.problem, BatchProblem) else self.problem
        return isinstance(problem, GemmProblem) and problem.accumulates

    def reset_output(self, arrays: dict[str, Array]) -> None:
        """Fill the output before a checked call: with ones to add to, or with bytes that show what is not written."""
        out = arrays[self.output.name]
        if self.accumulates:
            out[...] = self.output.element.narrow(np.ones(out.shape))
        else:
            out.view("u1")[...] = 0xA5

    @property
    def unit(self) -> str:
        """The unit of rates."""
        if isinstance(self.peak, MemoryTraffic):
            return "GB/s"
        return "GFLOP/s" if self.peak[2].is_float else "GOP/s"

    def arguments(self, arrays: dict[str, Array]) -> tuple[tuple[str, int | float], ...]:
        """The function's arguments as (LLVM type, value)."""
        order = self.order or tuple(buffer.name for buffer in self.buffers)
        return tuple(("ptr", arrays[item].ctypes.data) if isinstance(item, str) else item for item in order)

    def arrays(self) -> dict[str, Array]:
        """Arrays for the operands (random) and the output, by buffer name."""
        return {buffer.name: buffer.fill(seed) for seed, buffer in enumerate(self.buffers)}

    def check(self, got: Array, truth: ResultCheck, who: str) -> None:
        """Compare an output.

        Raises:
            WrongResultError: It is wrong.
        """
        mistakes = truth.mistakes(self.output.element, got)
        if mistakes:
            raise WrongResultError(f"{self.name} by {who}: {mistakes}")


_TYPES: Final[dict[str, Type]] = {
    "double": DOUBLE,
    "float": FLOAT,
    "half": HALF,
    "bfloat": BFLOAT,
    "i8": I8,
    "i32": I32,
}


def element_type(element: Element) -> Type:
    """The LLVM type of an element type."""
    return _TYPES[element.llvm]


def dense_tensor_type(element: Element, shape: Sequence[int], layout: Sequence[int] | None = None) -> TensorType:
    """The type of a dense tensor; `shape` is in memory order, the layout is row-major by default."""
    if layout is None:
        return TensorType.dense(element_type(element), tuple(shape))
    return TensorType(element_type(element), tuple(shape), tuple(layout), (0,) * len(shape))


class WorkloadBuilder(TensorBuilder):
    """Builds the function `@work`, which takes a pointer to each buffer."""

    def __init__(self, buffers: Sequence[WorkloadBuffer]) -> None:
        module = parse("")
        parameters = [(PTR, f"noalias readonly {CONSTANT}" if b.constant else "noalias", b.name) for b in buffers]
        super().__init__(module, new_function(module, "work", parameters, "nounwind", linkage="dso_local"))
        self._buffers = {buffer.name: buffer for buffer in buffers}

    def buffer(self, name: str) -> Value:
        """The pointer to a buffer."""
        return next(argument.value for argument in self.function.arguments if str(argument.value) == f"%{name}")

    def load_buffer(self, name: str, layout: Sequence[int] | None = None) -> Value:
        """A token for a whole buffer; `layout` lists its logical dimensions in memory order."""
        buffer = self._buffers[name]
        return self.tensor_load(
            self.buffer(name), dense_tensor_type(buffer.element, buffer.shape, layout), name=f"{name}.t"
        )

    def store_buffer(self, name: str, token: Value) -> str:
        """Emit a store of a tensor and the return; returns the module's text."""
        self.tensor_store(self.buffer(name), token)
        self.ret()
        return str(self.module)


def unpack_vnni(gemm: GemmProblem, b: Array) -> Array:
    """The K x N matrix of an array that is stored as [K/v][N][v], or as K x N already."""
    return b.transpose(0, 2, 1).reshape(gemm.k, gemm.n) if gemm.vnni else b


class ResultCheck(Protocol):
    """A check of an output."""

    def mistakes(self, element: Element, got: Array) -> str:
        """Describe the errors of an output; empty if it is right."""
        ...


_CHUNK: Final = 1 << 20
_BLOCK: Final = 256
_ROWS: Final = 16
_VECTORS: Final = 8
_DEVIATIONS: Final = 8
_ROUNDING: Final = 5  # deviations of a rounding, in halves of the last place: 8 / sqrt(3)


@dataclass(frozen=True)
class ElementwiseCheck:
    """Compares all elements of an output.

    Attributes:
        values: The expected elements, in float64 or int64.
        magnitude: Sums of the terms' absolute values, to which rounding errors are relative; None for exact results.
        terms: Maximum number of roundings of a result.
    """

    values: Array
    magnitude: Array | None = None
    terms: int = 1

    def mistakes(self, element: Element, got: Array) -> str:
        """Describe the first wrong element and the number of them; empty if there are none."""
        wrong: list[int] = [
            start + index for start in range(0, got.size, _CHUNK) for index in self._wrong(element, got, start)
        ]
        if not wrong:
            return ""
        place = tuple(map(int, np.unravel_index(wrong[0], self.values.shape)))
        value = element.widen(got.reshape(-1)[wrong[:1]])[0]
        return (
            f"element {place} is {value}, expected {self.values[place]}; {len(wrong)} of {got.size} elements are wrong"
        )

    def _wrong(self, element: Element, got: Array, start: int) -> Any:
        """The wrong elements of a chunk; checking by chunks saves memory."""
        part = slice(start, start + _CHUNK)
        values, expected = element.widen(got.reshape(-1)[part]), self.values.reshape(-1)[part]
        if self.magnitude is None:
            return np.flatnonzero(values != expected)
        bound = self.terms * 2 * _rounding_unit(element) * self.magnitude.reshape(-1)[part]
        bound = bound + 2.0 ** (1 - element.precision) * np.abs(expected)
        return np.flatnonzero(~(np.abs(values - expected) <= bound))


@dataclass(frozen=True)
class FreivaldsCheck:
    """Checks a product by its products with random vectors and by a few of its rows.

    Attributes:
        sample: Indices of the known rows.
        rows: The known rows.
        vectors: The random vectors, NxP, of 1 and -1.
        products: Expected products with them, MxP.
        magnitude: Sum of the terms' absolute values for each of the M rows; None for exact results.
        terms: Number of terms of an element, K.
    """

    sample: Array
    rows: ElementwiseCheck
    vectors: Array
    products: Array
    magnitude: Array | None
    terms: int

    def mistakes(self, element: Element, got: Array) -> str:
        """Describe the first wrong row; empty if there is none."""
        if text := self.rows.mistakes(element, got[self.sample]):
            return f"in rows {', '.join(map(str, self.sample))}: {text}"
        wrong_rows = [
            start + index for start in range(0, len(got), _BLOCK) for index in self._wrong(element, got, start)
        ]
        if not wrong_rows:
            return ""
        return (
            f"row {wrong_rows[0]} is wrong, by products with random vectors; {len(wrong_rows)} of {len(got)} rows are"
        )

    def _wrong(self, element: Element, got: Array, start: int) -> Any:
        part = slice(start, start + _BLOCK)
        values = element.widen(got[part]).astype(np.float64)
        difference = np.abs(values @ self.vectors - self.products[part]).max(1)
        if self.magnitude is None:
            return np.flatnonzero(difference != 0)
        bound = _DEVIATIONS * _rounding_unit(element) * (self.terms / got.shape[1]) ** 0.5 * self.magnitude[part]
        bound = bound + _ROUNDING * 2.0**-element.precision * np.linalg.norm(values, axis=1)
        return np.flatnonzero(~(difference <= bound))


def freivalds_check(a: Array, b: Array, lhs: Element, rhs: Element, *, exact: bool) -> FreivaldsCheck:
    """The check for `a @ b`, given the arrays in memory order; `exact`: the sums are integers."""
    rows, columns, k = len(a), b.shape[1], a.shape[1]
    generator = np.random.default_rng(rows)
    sample = np.unique([0, rows - 1, *generator.integers(0, rows, _ROWS)])
    x = generator.choice([-1.0, 1.0], (columns, _VECTORS))
    sampled = lhs.widen(a[sample]).astype(np.float64)
    values, sizes, bx, sums = [np.zeros(s) for s in ((len(sample), columns),) * 2 + ((k, _VECTORS), (k,))]
    for part, block in _row_blocks(b, rhs):
        bx[part], sums[part] = block @ x, np.abs(block).sum(1)
        values += sampled[:, part] @ block
        sizes += np.abs(sampled[:, part]) @ np.abs(block)
    products, magnitude = np.zeros((rows, _VECTORS)), np.zeros(rows)
    for part, block in _row_blocks(a, lhs):
        products[part], magnitude[part] = block @ bx, np.abs(block) @ sums
    truth = ElementwiseCheck(values, None if exact else sizes, k)
    return FreivaldsCheck(sample, truth, x, products, None if exact else magnitude, k)


def _row_blocks(matrix: Array, element: Element) -> Iterator[tuple[slice, Array]]:
    """Blocks of rows in float64, so that a large matrix is never converted as a whole."""
    for start in range(0, len(matrix), _BLOCK):
        part = slice(start, start + _BLOCK)
        yield part, element.widen(matrix[part]).astype(np.float64)


def _rounding_unit(element: Element) -> float:
    """The unit roundoff of sums; those of narrow types are in float."""
    return 2.0**-24 if element.precision != 53 else 2.0**-53
