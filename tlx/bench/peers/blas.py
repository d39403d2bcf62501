"""OpenBLAS and MKL: `cblas_?gemm`, and MKL's products of narrow types.

    void cblas_sgemm(layout, transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
    void cblas_gemm_s8u8s32(layout, transa, transb, offsetc, m, n, k, alpha, a, lda, ao, b, ldb, bo, beta, c, ldc, co)

The second multiplies signed by unsigned, so u8 @ s8 is computed as the transposed product.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from tlx.bench.peers.base import Attempt, LibraryPaths, MissingError
from tlx.intrinsics.numpy_types import Array
from tlx.tuning.timing import NativeCall, call_loop, function_address
from tlx.tuning.workload import F32, S32, U8, BatchProblem, GemmProblem, PointwiseProblem, Workload

_ROW_MAJOR: Final = 101
_COLUMN_MAJOR: Final = 102
_PLAIN: Final = 111
_TRANSPOSED: Final = 112
_FIX_OFFSET: Final = 173
_SEQUENTIAL: Final = 1
_GNU: Final = 3
_LOW: Final = 1

Arguments = tuple[tuple[str, int | float], ...]


class CblasLibrary:
    """A library with the CBLAS interface.

    Attributes:
        functions: Symbol for each (lhs, rhs, out) of element types.
    """

    def __init__(self, name: str, version: str, library: Any, functions: dict[tuple[str, str, str], str]) -> None:
        self.name = name
        self.version = version
        self._library = library
        self._functions = functions

    def attempts(self, work: Workload, arrays: dict[str, Array]) -> Iterator[Attempt]:
        """A single call."""
        gemm = work.problem
        if isinstance(gemm, BatchProblem):
            yield from self._batch(gemm, arrays)
        if isinstance(gemm, PointwiseProblem):
            yield from self._function(gemm, arrays)
        if not isinstance(gemm, GemmProblem) or gemm.vnni or (gemm.lhs is U8 and "c" in gemm.columns):
            return
        symbol = self._functions.get((gemm.lhs.name, gemm.rhs.name, gemm.out.name))
        if symbol is None or not hasattr(self._library, symbol):
            return
        pointers = {name: array.ctypes.data for name, array in arrays.items()}
        address = function_address(getattr(self._library, symbol))
        if gemm.lhs.is_float:
            yield Attempt(call_loop([NativeCall(address, _float_arguments(gemm, pointers))], (self._library, arrays)))
            return
        zeros = np.zeros(1, np.int32)
        arguments = _integer_arguments(gemm, pointers, zeros.ctypes.data)
        yield Attempt(call_loop([NativeCall(address, arguments)], (self._library, arrays, zeros)))

    def _batch(self, batch: BatchProblem, arrays: dict[str, Array]) -> Iterator[Attempt]:
        """`cblas_?gemm_batch_strided`, which takes a batch stride after each leading dimension."""
        gemm = batch.gemm
        symbol = self._functions.get((gemm.lhs.name, gemm.rhs.name, gemm.out.name), "") + "_batch_strided"
        if batch.reduced or gemm.out is S32 or not hasattr(self._library, symbol):
            return
        plain = list(_float_arguments(gemm, {name: array.ctypes.data for name, array in arrays.items()}))
        strides = [("i32", n) for n in (gemm.m * gemm.k, gemm.k * gemm.n, gemm.m * gemm.n)]
        arguments = [*plain[:9], strides[0], *plain[9:11], strides[1], *plain[11:], strides[2], ("i32", batch.count)]
        step = NativeCall(function_address(getattr(self._library, symbol)), tuple(arguments))
        yield Attempt(call_loop([step], (self._library, arrays)))

    def _function(self, problem: PointwiseProblem, arrays: dict[str, Array]) -> Iterator[Attempt]:
        """MKL's vector math functions, in low accuracy (at most 4 ulp)."""
        symbol = {"tanh": "vmsTanh", "exp": "vmsExp", "add": "vmsAdd"}.get(problem.function, "")
        if problem.element is not F32 or not hasattr(self._library, symbol):
            return
        pointers = [("ptr", arrays[name].ctypes.data) for name in (*sorted(set(arrays) - {"y"}), "y")]
        step = NativeCall(
            function_address(getattr(self._library, symbol)), (("i32", problem.count), *pointers, ("i64", _LOW))
        )
        yield Attempt(call_loop([step], (self._library, arrays)))


def load_openblas(places: LibraryPaths) -> CblasLibrary:
    """OpenBLAS of the system, or that of the scipy-openblas32 package.

    Raises:
        MissingError: It is not installed.
    """
    library = places.load(["libscipy_openblas.so*", "libscipy_openblas-*.so*", "libopenblas.so*"], ["openblas"])
    prefix = "scipy_" if hasattr(library, "scipy_cblas_sgemm") else ""
    getattr(library, f"{prefix}openblas_set_num_threads")(_threads())
    config = getattr(library, f"{prefix}openblas_get_config")
    config.restype = ctypes.c_char_p
    core = getattr(library, f"{prefix}openblas_get_corename")
    core.restype = ctypes.c_char_p
    version = f"{config().decode().split()[1]} ({core().decode()})"
    functions = {
        ("f32", "f32", "f32"): f"{prefix}cblas_sgemm",
        ("f64", "f64", "f64"): f"{prefix}cblas_dgemm",
    }
    return CblasLibrary("openblas", version, library, functions)


def load_mkl(places: LibraryPaths) -> CblasLibrary:
    """MKL, as in the mkl package on PyPI.

    Raises:
        MissingError: It is not installed.
    """
    library = places.load(["libmkl_rt.so*"], ["mkl_rt"], os.RTLD_LAZY | os.RTLD_GLOBAL)
    library.MKL_Set_Threading_Layer(_SEQUENTIAL if _threads() == 1 else _GNU)
    library.MKL_Set_Num_Threads(_threads())
    text = ctypes.create_string_buffer(200)
    library.MKL_Get_Version_String(text, 200)
    words = text.value.decode().split()
    if "Version" not in words:
        raise MissingError("libmkl_rt.so could not load MKL's other libraries")
    functions = {
        ("f32", "f32", "f32"): "cblas_sgemm",
        ("f64", "f64", "f64"): "cblas_dgemm",
        ("bf16", "bf16", "f32"): "cblas_gemm_bf16bf16f32",
        ("f16", "f16", "f32"): "cblas_gemm_f16f16f32",
        ("u8", "s8", "s32"): "cblas_gemm_s8u8s32",
    }
    return CblasLibrary("mkl", words[words.index("Version") + 1], library, functions)


def _threads() -> int:
    """The number of threads that the benchmark has libraries use."""
    return int(os.environ.get("OMP_NUM_THREADS", "1"))


def _float_arguments(gemm: GemmProblem, pointers: dict[str, int]) -> Arguments:
    scalar = "double" if gemm.out.llvm == "double" else "float"
    if "c" in gemm.columns:  # c^T = b^T a^T
        order, first, second, m, n = _ROW_MAJOR, "b", "a", gemm.n, gemm.m
        plain = "columns"
    else:
        order, first, second, m, n = _ROW_MAJOR, "a", "b", gemm.m, gemm.n
        plain = "rows"
    transposed = {name: (name in gemm.columns) == (plain == "rows") for name in "ab"}
    leading = {"a": gemm.a_shape[1], "b": gemm.b_shape[1], "c": gemm.c_shape[1]}
    return (
        ("i32", order),
        *(("i32", _TRANSPOSED if transposed[name] else _PLAIN) for name in (first, second)),
        ("i32", m),
        ("i32", n),
        ("i32", gemm.k),
        (scalar, 1.0),
        ("ptr", pointers[first]),
        ("i32", leading[first]),
        ("ptr", pointers[second]),
        ("i32", leading[second]),
        (scalar, float(gemm.accumulates)),
        ("ptr", pointers["c"]),
        ("i32", leading["c"]),
    )


def _integer_arguments(gemm: GemmProblem, pointers: dict[str, int], zero: int) -> Arguments:
    """Column-major, c^T = b^T a^T: the first operand is signed, the second unsigned."""
    transposed = {name: _TRANSPOSED if name in gemm.columns else _PLAIN for name in "ab"}
    return (
        ("i32", _COLUMN_MAJOR),
        ("i32", transposed["b"]),
        ("i32", transposed["a"]),
        ("i32", _FIX_OFFSET),
        ("i32", gemm.n),
        ("i32", gemm.m),
        ("i32", gemm.k),
        ("float", 1.0),
        ("ptr", pointers["b"]),
        ("i32", gemm.b_shape[1]),
        ("i8", 0),
        ("ptr", pointers["a"]),
        ("i32", gemm.a_shape[1]),
        ("i8", 0),
        ("float", float(gemm.accumulates)),
        ("ptr", pointers["c"]),
        ("i32", gemm.c_shape[1]),
        ("ptr", zero),
    )
