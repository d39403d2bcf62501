"""The kinds of products that are measured: element types, random operands, the right result, and the module."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from tlx.ir.builder import new_function
from tlx.ir.reader import parse
from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.types import BFLOAT, FLOAT, I8, I32, PTR, Type
from tlx.ir.values import zero
from tlx.types import TensorType

Array = NDArray[Any]
_TYPES: Final[dict[str, Type]] = {"float": FLOAT, "bfloat": BFLOAT, "i8": I8, "i32": I32}


@dataclass(frozen=True)
class Kind:
    """A kind of product.

    Attributes:
        name: What `--kinds` and the table call it.
        lhs, rhs, accumulator: Element types by LLVM name.
        dtypes: Of lhs, rhs and the result, in numpy.
        operation: The tensor intrinsic.
        tile_product: AMX instruction for it.
    """

    name: str
    lhs: str
    rhs: str
    accumulator: str
    dtypes: tuple[Any, Any, Any]
    operation: str
    tile_product: str = ""

    @property
    def lhs_bytes(self) -> int:
        """Bytes of an element of lhs."""
        return np.dtype(self.dtypes[0]).itemsize

    @property
    def title(self) -> str:
        """`bf16*bf16`, as the table calls it."""
        names = {"s8": "s8*s8->i32", "u8s8": "u8*s8->i32", "bf16": "bf16->f32"}
        return names.get(self.name, self.name)

    def module(self, n: int) -> str:
        """`@product(ptr c, ptr a, ptr b)`: the product of two `n` x `n` matrices."""
        module = parse("")
        parameters = [(PTR, "noalias", name) for name in "cab"]
        b = TensorBuilder(module, new_function(module, "product", parameters, "nounwind", linkage="dso_local"))
        c, lhs, rhs = (argument.value for argument in b.function.arguments)
        result = TensorType.dense(_TYPES[self.accumulator], (n, n))
        x = b.tensor_load(lhs, TensorType.dense(_TYPES[self.lhs], (n, n)))
        y = b.tensor_load(rhs, TensorType.dense(_TYPES[self.rhs], (n, n)))
        if self.operation == "matmul":
            product = b.matmul(x, y, result)
        else:
            start = b.typeinfo(zero(result.vector), result)
            product = b.mma(self.operation, start, x, y, result)
        b.tensor_store(c, b.typeinfo(product, result))
        b.ret()
        return str(module)

    def operands(self, n: int) -> tuple[Array, Array]:
        """Random matrices: integers of the whole range, floats in [-1, 1)."""
        random = np.random.default_rng(n)

        def matrix(dtype: Any) -> Array:
            if np.dtype(dtype).kind in "iu":
                limits = np.iinfo(dtype)
                return random.integers(limits.min, limits.max, (n, n), dtype, endpoint=True)
            return random.uniform(-1, 1, (n, n)).astype(dtype)

        return matrix(self.dtypes[0]), matrix(self.dtypes[1])

    def check(self, got: Array, lhs: Array, rhs: Array) -> None:
        """Compare a result with numpy's in float64: integers are equal, floats differ by what summing them may cost.

        Raises:
            ValueError: The result is wrong.
        """
        a, b = lhs.astype(np.float64), rhs.astype(np.float64)
        wanted = a @ b
        k = lhs.shape[1]
        bound = k * 2.0**-23 * (np.abs(a) @ np.abs(b)) if self.accumulator == "float" else np.zeros_like(wanted)
        wrong = ~(np.abs(got.astype(np.float64) - wanted) <= bound)
        if wrong.any():
            row, column = np.argwhere(wrong)[0]
            msg = (
                f"{self.title} {k}x{k}: element ({row}, {column}) is {got[row, column]}, expected "
                f"{wanted[row, column]}; {wrong.sum()} of {wrong.size} elements are wrong"
            )
            raise ValueError(msg)


_BF16: Final = ml_dtypes.bfloat16
KINDS: Final = {
    kind.name: kind
    for kind in (
        Kind("f32", "float", "float", "float", (np.float32, np.float32, np.float32), "matmul"),
        Kind("bf16", "bfloat", "bfloat", "float", (_BF16, _BF16, np.float32), "matmul", "tdpbf16ps"),
        Kind("s8", "i8", "i8", "i32", (np.int8, np.int8, np.int32), "matmul", "tdpbssd"),
        Kind("u8s8", "i8", "i8", "i32", (np.uint8, np.int8, np.int32), "usmma", "tdpbusd"),
    )
}
