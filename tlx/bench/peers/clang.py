"""clang: plain C loops at -O3 for this machine, and its matrix extension, compiled on demand.

Sums and maxima of rows are compiled with reassociation and without NaNs; otherwise clang does not vectorise them.
`build` compiles libraries for machines without clang.
"""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from tlx.bench.peers.base import Attempt, LibraryPaths, MissingError
from tlx.intrinsics.numpy_types import Array
from tlx.tuning.timing import NativeCall, call_loop, function_address
from tlx.tuning.workload import BatchProblem, ConvolutionProblem, GemmProblem, PointwiseProblem, Workload

_COMPILERS: Final = ("clang-22", "clang-21", "clang-20", "clang-19", "clang")
_TYPES: Final = {
    "f64": "double",
    "f32": "float",
    "f16": "_Float16",
    "s32": "int",
    "s8": "signed char",
    "u8": "unsigned char",
}
_FLAGS: Final = ("-O3", "-mprefer-vector-width=512", "-ffp-contract=fast", "-fno-math-errno", "-shared", "-fPIC")
_ROW_FLAGS: Final = ("-fassociative-math", "-fno-signed-zeros", "-fno-trapping-math", "-fno-honor-nans")
_EXTENSION: Final = {"clang": [], "matrix": ["-fenable-matrix"]}
_VERSION: Final = "clang-version.txt"
_LARGEST: Final = 512
_MATRIX: Final = 32


class ClangPeer:
    """A compiler, or libraries that one built earlier for this machine."""

    def __init__(self, name: str, places: LibraryPaths) -> None:
        self.name = name
        self._places = places
        self._compiler, self.version = _compiler(places)

    def attempts(self, work: Workload, arrays: dict[str, Array]) -> Iterator[Attempt]:
        """The function `work`, which takes the same pointers as ours."""
        loaded = self._loaded(work)
        if loaded is None:
            return
        pointers = tuple(("ptr", arrays[buffer.name].ctypes.data) for buffer in work.buffers)
        yield Attempt(call_loop([NativeCall(function_address(loaded.work), pointers)], (loaded, arrays)))

    def _loaded(self, work: Workload) -> ctypes.CDLL | None:
        """The library of a workload; None if it cannot be built."""
        if self._compiler is None:
            paths = self._places.libraries(_library(self.name, work))
            return ctypes.CDLL(str(paths[0])) if paths else None
        with tempfile.TemporaryDirectory() as folder:
            library = Path(folder) / "work.so"
            return ctypes.CDLL(str(library)) if _built(self._compiler, self.name, work, library) else None


def load_loops(places: LibraryPaths) -> ClangPeer:
    """The peer for plain C loops.

    Raises:
        MissingError: There is no clang.
    """
    return ClangPeer("clang", places)


def load_matrix(places: LibraryPaths) -> ClangPeer:
    """The peer for clang's matrix extension.

    Raises:
        MissingError: There is no clang.
    """
    return ClangPeer("matrix", places)


def build(works: Iterable[Workload], folder: Path, processor: str) -> int:
    """Compile libraries that a machine without clang can load.

    Args:
        works: The workloads to compile.
        folder: Folder to write the libraries to, which must be on the peer search path of that machine.
        processor: Argument of `-march`.

    Returns:
        The number of libraries.

    Raises:
        MissingError: There is no clang here.
    """
    compiler, version = _compiler(LibraryPaths(()))
    assert compiler is not None
    (folder / _VERSION).write_text(version)
    libraries = [(name, work) for work in works for name in _EXTENSION]
    return sum(_built(compiler, name, work, folder / _library(name, work), processor) for name, work in libraries)


def _library(name: str, work: Workload) -> str:
    return f"{name}-{'-'.join(work.key)}.so".replace(">", "").replace(" ", "_")


def _built(compiler: str, name: str, work: Workload, library: Path, processor: str = "native") -> bool:
    """Compile the library of a workload unless it exists; returns whether there is one."""
    source = _matrix_source(work) if name == "matrix" else _source(work)
    if source is None:
        return False
    flags = [*_FLAGS, *_row_flags(work), f"-march={processor}", *_EXTENSION[name]]
    command = [compiler, *flags, "-x", "c", "-", "-o", str(library), "-lm"]
    return not subprocess.run(command, input=source.encode(), capture_output=True, check=False).returncode


def _compiler(places: LibraryPaths) -> tuple[str | None, str]:
    """The compiler, or None if there are only libraries built earlier, and its version.

    Raises:
        MissingError: There is neither.
    """
    search = [str(folder) for folder in places.folders]
    for name in _COMPILERS:
        compiler = shutil.which(name) or shutil.which(name, path=":".join(search))
        if compiler:
            text = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout
            number = re.search(r"version (\S+)", text)
            return compiler, number.group(1) if number else "?"
    for path in places.libraries(_VERSION):
        return None, f"{path.read_text()} (built earlier)"
    raise MissingError("no clang")


def _row_flags(work: Workload) -> tuple[str, ...]:
    """Flags that let clang vectorise sums and maxima of rows."""
    return _ROW_FLAGS if isinstance(work.problem, PointwiseProblem) and work.problem.columns else ()


def _source(work: Workload) -> str | None:
    if isinstance(work.problem, PointwiseProblem):
        return _elements(work.problem, len(work.buffers) - 1)
    if any(buffer.element.name not in _TYPES for buffer in work.buffers):
        return None
    match work.problem:
        case GemmProblem(vnni=False) as gemm if max(gemm.m, gemm.n, gemm.k) <= _LARGEST and not gemm.columns:
            return _product(gemm, 1, reduced=False)
        case BatchProblem(count, gemm, reduced):
            return _product(gemm, count, reduced=reduced)
        case ConvolutionProblem() as conv if conv.groups == conv.channels:
            return _depthwise(conv)
        case _:
            return None


def _product(gemm: GemmProblem, count: int, *, reduced: bool) -> str:
    """C source of a product; the innermost loop is over columns, which clang vectorises."""
    lhs, rhs, out = (_TYPES[e.name] for e in (gemm.lhs, gemm.rhs, gemm.out))
    m, n, k = gemm.m, gemm.n, gemm.k
    step, zero = ("", "if (g == 0)") if reduced else (f"c += {m * n};", "")
    zero = "if (0)" if gemm.accumulates else zero
    return f"""
void work({out} *restrict c, const {lhs} *restrict a, const {rhs} *restrict b) {{
  for (long g = 0; g < {count}; g++) {{
    for (long i = 0; i < {m}; i++) {{
      {zero} for (long j = 0; j < {n}; j++) c[i * {n} + j] = 0;
      for (long l = 0; l < {k}; l++)
        for (long j = 0; j < {n}; j++) c[i * {n} + j] += ({out})a[i * {k} + l] * ({out})b[l * {n} + j];
    }}
    a += {m * k}; b += {k * n}; {step}
  }}
}}
"""


def _matrix_source(work: Workload) -> str | None:
    """C source of c^T = b^T a^T, since the extension's matrices are column-major."""
    match work.problem:
        case GemmProblem(vnni=False, columns="") as gemm:
            count = 1
        case BatchProblem(count, gemm, False):
            pass
        case _:
            return None
    if (
        gemm.accumulates
        or gemm.lhs is not gemm.out
        or gemm.lhs.name not in _TYPES
        or max(gemm.m, gemm.n, gemm.k) > _MATRIX
    ):
        return None
    type_, m, n, k = _TYPES[gemm.lhs.name], gemm.m, gemm.n, gemm.k
    return f"""
typedef {type_} A __attribute__((matrix_type({k}, {m})));
typedef {type_} B __attribute__((matrix_type({n}, {k})));
void work({type_} *restrict c, {type_} *restrict a, {type_} *restrict b) {{
  for (long g = 0; g < {count}; g++) {{
    A x = __builtin_matrix_column_major_load(a + g * {m * k}, {k}, {m}, {k});
    B y = __builtin_matrix_column_major_load(b + g * {k * n}, {n}, {k}, {n});
    __builtin_matrix_column_major_store(y * x, c + g * {m * n}, {n});
  }}
}}
"""


def _depthwise(conv: ConvolutionProblem) -> str:
    lhs, rhs, out = (_TYPES[e.name] for e in (conv.lhs, conv.rhs, conv.out))
    return f"""
void work({out} *restrict y, const {lhs} *restrict x, const {rhs} *restrict w) {{
  for (long c = 0; c < {conv.channels}; c++)
    for (long i = 0; i < {conv.out_rows}; i++)
      for (long j = 0; j < {conv.out_columns}; j++) {{
        {out} sum = 0;
        for (long p = 0; p < {conv.window}; p++)
          for (long q = 0; q < {conv.window}; q++)
            sum += ({out})x[(c * {conv.rows} + i * {conv.stride} + p) * {conv.columns} + j * {conv.stride} + q]
                 * ({out})w[(c * {conv.window} + p) * {conv.window} + q];
        y[(c * {conv.out_rows} + i) * {conv.out_columns} + j] = sum;
      }}
}}
"""


_POINTWISE_TYPES: Final = {"f32": "float", "bf16": "__bf16"}
_EXPRESSIONS: Final = {
    "add": "(float)x0[i] + (float)x1[i]",
    "muladd": "(float)(T)((float)x0[i] * (float)x1[i]) + (float)x2[i]",  # the product is rounded, as in our code
}
_ROWS: Final = {"rowsum": ("0", "all + one"), "rowmax": ("x[0]", "one > all ? one : all")}


def _elements(problem: PointwiseProblem, inputs: int) -> str | None:
    """C source of an elementwise function or a row reduction; None if there is no loop for it."""
    type_ = _POINTWISE_TYPES[problem.element.name]
    if problem.function in _EXPRESSIONS:
        return _pointwise(problem, type_, inputs)
    return _rows(problem, type_) if problem.function in _ROWS else None


def _wide(problem: PointwiseProblem) -> str:
    """A pragma for the vector width: by default clang uses four elements for bfloat."""
    return '_Pragma("clang loop vectorize_width(16) interleave_count(4)")' if problem.element.name == "bf16" else ""


def _pointwise(problem: PointwiseProblem, type_: str, inputs: int) -> str:
    pointers = ", ".join(f"const {type_} *restrict x{i}" for i in range(inputs))
    loop = f"{_wide(problem)} for (long i = 0; i < {problem.count}; i++)"
    value = _EXPRESSIONS[problem.function].replace("(T)", f"({type_})")
    return f"void work({type_} *restrict y, {pointers}) {{ {loop} y[i] = {value}; }}\n"


def _rows(problem: PointwiseProblem, type_: str) -> str:
    """C source of sums or maxima of the rows of x, in float. Rows are not empty; maxima ignore NaNs."""
    columns, (start, step) = problem.columns, _ROWS[problem.function]
    return f"""
void work({type_} *restrict y, const {type_} *restrict x) {{
  for (long i = 0; i < {problem.count // columns}; i++, x += {columns}) {{
    float all = {start};
    {_wide(problem)} for (long j = 0; j < {columns}; j++) {{
      float one = x[j];
      all = {step};
    }}
    y[i] = all;
  }}
}}
"""
