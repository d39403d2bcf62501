"""Products of matrices of run-time size."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from tests.semantics.dynamic.programs import Body, Program, integers
from tlx.intrinsics.numpy_types import Array

SIZES = [
    (1, 1, 1), (1, 7, 1), (7, 1, 63), (1, 1, 64), (63, 64, 65), (64, 64, 256), (65, 63, 200), (8, 16, 32),
    (200, 1, 7), (7, 200, 1), (72, 80, 288), (65, 65, 257),
]  # fmt: skip
DTYPES: dict[str, Any] = {
    "float": np.float32,
    "double": np.float64,
    "half": np.float16,
    "bfloat": ml_dtypes.bfloat16,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
}
PARAMETERS = "ptr %a, ptr %b, ptr %c, i32 %m, i32 %n, i32 %k, i32 %la, i32 %lb, i32 %lc"


def product(a: str, b: str, c: str, order: str = "rr", kind: str = "matmul") -> Program:
    """A product with run-time pitches; `order` says whether an operand is row- or column-major, kind mma adds to C."""

    def body(t: Body) -> None:
        first, second = ("%m", "%k"), ("%k", "%n")
        operands: list[str] = []
        for pointer, element, shape, pitch, way in (
            ("%a", a, first, "%la", order[0]),
            ("%b", b, second, "%lb", order[1]),
        ):
            memory = shape if way == "r" else shape[::-1]
            operands.append(t.load(pointer, element, memory, (0, 1) if way == "r" else (1, 0), None, (0, pitch)))
        acc = [] if kind == "matmul" else [t.load("%c", c, ("%m", "%n"), None, None, (0, "%lc"))]
        result = t.op(kind, c, *acc, *operands)
        t.store("%c", t.info(result, c, ("%m", "%n")), (0, "%lc"))

    def arguments(rng: np.random.Generator, m: int, n: int, k: int) -> list[Any]:
        la, lb = (k if order[0] == "r" else m) + m % 3, (n if order[1] == "r" else k) + n % 4
        lc = n + k % 2 * 3
        outer = (m if order[0] == "r" else k, k if order[1] == "r" else n)
        inner = (k if order[0] == "r" else m, n if order[1] == "r" else k)
        arrays = [
            integers(rng, (outer[0] - 1) * la + inner[0], DTYPES[a]),
            integers(rng, (outer[1] - 1) * lb + inner[1], DTYPES[b]),
            integers(rng, (m - 1) * lc + n, DTYPES[c]),
        ]
        return [*arrays, m, n, k, la if la != inner[0] else 0, lb, lc]

    def expected(x: Array, y: Array, z: Array, m: int, n: int, k: int, la: int, lb: int, lc: int) -> dict[int, Array]:
        la = la or (k if order[0] == "r" else m)
        wide = np.float64 if z.dtype.kind not in "iu" else np.int64
        lhs = matrix(_extended(x, kind[0] == "u").astype(wide), m, k, la, order[0])
        rhs = matrix(_extended(y, kind in ("umma", "summa")).astype(wide), k, n, lb, order[1])
        result = lhs @ rhs + (0 if kind == "matmul" else matrix(z.astype(wide), m, n, lc, "r"))
        out = z.copy()
        for i in range(m):
            out[i * lc : i * lc + n] = result[i].astype(z.dtype)
        return {2: out}

    name = f"{kind}_{a}_{b}_{c}_{order}"
    return Program(name, PARAMETERS, body, arguments, SIZES, expected=expected)


def _extended(numbers: Array, is_unsigned: bool) -> Array:
    return numbers.view(f"u{numbers.dtype.itemsize}") if is_unsigned else numbers


def matrix(flat: Array, rows: int, columns: int, pitch: int, way: str) -> Array:
    """A matrix out of memory with a pitch."""
    outer, inner = (rows, columns) if way == "r" else (columns, rows)
    full = np.zeros(outer * pitch, flat.dtype)
    full[: min(len(flat), len(full))] = flat[: len(full)]
    result = full.reshape(outer, pitch)[:, :inner]
    return result if way == "r" else result.T


def _batch(t: Body) -> None:
    """The batch is the second dimension of the first operand's memory."""
    x = t.load("%a", "float", ("%g", "%m", "%k"), (1, 0, 2))
    y = t.view("%b", "float", ("%m", "%k", "%n"))
    t.put("%c", t.op("matmul", "float", x, y), "float", ("%m", "%g", "%n"))


def _batch_arguments(rng: np.random.Generator, g: int, m: int, n: int, k: int) -> list[Any]:
    sizes = (g * m * k, m * k * n, m * g * n)
    return [*(integers(rng, s, np.float32) for s in sizes), g, m, n, k, 0]


def _batched(t: Body) -> None:
    x = t.load("%a", "float", ("%g", "%m", "%k"), None, (0, 1, 0), (0, 0, "%la"))
    y = t.view("%b", "float", ("%k", "%g", "%n"), (1, 0, 2))
    inner = t.value("sub i32 %m, 1")
    t.put("%c", t.op("matmul", "float", x, y), "float", ("%g", inner, "%n"))


def _batched_arguments(rng: np.random.Generator, g: int, m: int, n: int, k: int) -> list[Any]:
    sizes = (g * (m + 1) * (k + 2), g * k * n, g * m * n)
    return [*(integers(rng, s, np.float32) for s in sizes), g, m + 1, n, k, k + 2]


BATCH = "ptr %a, ptr %b, ptr %c, i32 %g, i32 %m, i32 %n, i32 %k, i32 %la"


def _contract(t: Body) -> None:
    x = t.load("%a", "float", ("%g", "%m", "%k"), (1, 0, 2))
    y = t.load("%b", "float", ("%k", "%n", "%m"))
    r = t.op("contract", "float", x, y, "<2 x i32> <i32 0, i32 2>", "<2 x i32> <i32 2, i32 0>")
    t.put("%c", r, "float", ("%g", "%n"))


def _contract_arguments(rng: np.random.Generator, g: int, m: int, n: int, k: int) -> list[Any]:
    sizes = (g * m * k, k * n * m, g * n)
    return [*(integers(rng, s, np.float32) for s in sizes), g, m, n, k, 0]


def _contract_expected(x: Array, y: Array, z: Array, g: int, m: int, n: int, k: int, _la: int) -> dict[int, Array]:
    lhs, rhs = x.reshape(g, m, k).transpose(1, 0, 2), y.reshape(k, n, m)
    return {2: np.tensordot(lhs, rhs, ((0, 2), (2, 0))).reshape(-1).astype(z.dtype)}


def _dots(t: Body) -> None:
    x = t.load("%a", "i8", ("%g", "%m", "%k"))
    y = t.load("%b", "i8", ("%n", "%g", "%k"))
    axes, batch = "<1 x i32> <i32 2>", "<1 x i32> zeroinitializer"
    r = t.op("contract", "i32", x, y, axes, axes, batch, "<1 x i32> <i32 1>")
    t.put("%c", r, "i32", ("%g", "%m", "%n"))


def _dots_arguments(rng: np.random.Generator, g: int, m: int, n: int, k: int) -> list[Any]:
    arrays = [integers(rng, g * m * k, np.int8, -128, 128), integers(rng, n * g * k, np.int8, -128, 128)]
    return [*arrays, np.zeros(g * m * n, np.int32), g, m, n, k, 0]


def _outer(t: Body) -> None:
    x, y = t.load("%a", "float", ("%m", "%k")), t.load("%b", "float", ("%n",))
    t.put("%c", t.op("contract", "float", x, y), "float", ("%m", "%k", "%n"))


def _outer_batch(t: Body) -> None:
    none = "<1 x i32> <i32 -1>"
    x, y = t.load("%a", "float", ("%m", "%k")), t.load("%b", "float", ("%n", "%k"))
    r = t.op("contract", "float", x, y, none, none, "<1 x i32> <i32 1>", "<1 x i32> <i32 1>")
    t.put("%c", r, "float", ("%k", "%m", "%n"))


def _outer_arguments(rng: np.random.Generator, g: int, m: int, n: int, k: int) -> list[Any]:
    del g
    return [*(integers(rng, s, np.float32) for s in (m * k, n * k, m * k * n)), 0, m, n, k, 0]


def _chain(t: Body) -> None:
    """(A @ B) @ A: the result of the first product is read in place."""
    x = t.load("%a", "double", ("%m", "%k"))
    y = t.load("%b", "double", ("%k", "%m"))
    p = t.info(t.op("matmul", "double", x, y), "double", ("%m", "%m"))
    t.put("%c", t.op("matmul", "double", p, x), "double", ("%m", "%k"))


def _chain_arguments(rng: np.random.Generator, m: int, k: int) -> list[Any]:
    return [*(integers(rng, m * k, np.float64) for _ in range(3)), m, k]


def _onto_operand(t: Body) -> None:
    """A = A @ B in place."""
    x = t.load("%a", "float", ("%m", "%k"))
    y = t.load("%b", "float", ("%k", "%k"))
    t.put("%a", t.op("matmul", "float", x, y), "float", ("%m", "%k"))


def _onto_arguments(rng: np.random.Generator, m: int, k: int) -> list[Any]:
    return [integers(rng, m * k, np.float32), integers(rng, k * k, np.float32), m, k]


def _mixed(t: Body) -> None:
    """A matrix of constant size times one of run-time size."""
    t.line("%v = load <12 x float>, ptr %a, align 4")
    dims = "<2 x i32> <i32 3, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer"
    x = t.value(f"call token @llvm.tensor.typeinfo(<12 x float> %v, {dims})")
    y = t.load("%b", "float", (4, "%n"))
    t.put("%c", t.op("matmul", "float", x, y), "float", (3, "%n"))


def _mixed_arguments(rng: np.random.Generator, n: int) -> list[Any]:
    return [*(integers(rng, s, np.float32) for s in (12, 4 * n, 3 * n)), n]


SMALL = [(1, 1, 1, 1), (2, 3, 4, 5), (3, 65, 9, 34), (5, 1, 70, 1)]
PRODUCTS: list[Program] = [
    product("float", "float", "float"),
    product("float", "float", "float", "cr"),
    product("float", "float", "float", "rc"),
    product("float", "float", "float", "cc", "smma"),
    product("double", "double", "double", "rc"),
    product("i8", "i8", "i32"),
    product("i8", "i8", "i32", "cc"),
    product("i8", "i8", "i32", "rr", "usmma"),
    product("i8", "i8", "i8", "rc"),
    product("i16", "i16", "i64", "cr", "umma"),
    product("bfloat", "bfloat", "float"),
    product("bfloat", "bfloat", "bfloat", "cr"),
    product("half", "half", "half", "rr", "smma"),
    Program("batch_reordered", BATCH, _batch, _batch_arguments, SMALL),
    Program("batch_padded", BATCH, _batched, _batched_arguments, SMALL),
    Program("contract", BATCH, _contract, _contract_arguments, SMALL, expected=_contract_expected),
    Program("contract_batched", BATCH, _dots, _dots_arguments, SMALL),
    Program("outer", BATCH, _outer, _outer_arguments, SMALL),
    Program("outer_batch", BATCH, _outer_batch, _outer_arguments, SMALL),
    Program("chain", "ptr %a, ptr %b, ptr %c, i32 %m, i32 %k", _chain, _chain_arguments, [(1, 1), (3, 70), (66, 5)]),
    Program("onto_operand", "ptr %a, ptr %b, i32 %m, i32 %k", _onto_operand, _onto_arguments, [(1, 1), (67, 70)]),
    Program("mixed", "ptr %a, ptr %b, ptr %c, i32 %n", _mixed, _mixed_arguments, [(1,), (5,), (64,)]),
]
