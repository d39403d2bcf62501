"""clang: plain C loops at -O3 for this machine, and its matrix extension, compiled when they are needed."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tlx.bench.elements import Array
from tlx.bench.native_calls import Step, repeated
from tlx.bench.peers.base import Attempt, MissingError, Places, address_of
from tlx.bench.problems import Batch, Convolution, Gemm, Pointwise
from tlx.bench.workload import Workload

_COMPILERS: Final = ("clang-22", "clang-21", "clang-20", "clang-19", "clang")
_TYPES: Final = {
    "f64": "double",
    "f32": "float",
    "f16": "_Float16",
    "s32": "int",
    "s8": "signed char",
    "u8": "unsigned char",
}
_FLAGS: Final = ("-O3", "-march=native", "-mprefer-vector-width=512", "-ffp-contract=fast", "-fno-math-errno")
_LARGEST: Final = 512
_MATRIX: Final = 32


class Clang:
    """A compiler."""

    def __init__(self, name: str, compiler: str, *, matrix: bool) -> None:
        self.name = name
        self._compiler = compiler
        self._matrix = matrix
        text = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout
        found = re.search(r"version (\S+)", text)
        self.version = found.group(1) if found else "?"

    def attempts(self, work: Workload, arrays: dict[str, Array]) -> Iterator[Attempt]:
        """A function `work` that takes the same pointers as ours."""
        source = _matrix_source(work) if self._matrix else _source(work)
        if source is None:
            return
        with tempfile.TemporaryDirectory() as folder:
            text, library = Path(folder) / "work.c", Path(folder) / "work.so"
            text.write_text(source)
            extra = ["-fenable-matrix"] if self._matrix else []
            command = [self._compiler, *_FLAGS, *extra, "-shared", "-fPIC", str(text), "-o", str(library), "-lm"]
            if subprocess.run(command, capture_output=True, check=False).returncode:
                return
            loaded = ctypes.CDLL(str(library))
        yield Attempt(repeated([Step(address_of(loaded.work), work.arguments(arrays))], (loaded, arrays)))


def load_loops(places: Places) -> Clang:
    """Loops.

    Raises:
        MissingError: There is no clang.
    """
    return Clang("clang", _compiler(places), matrix=False)


def load_matrix(places: Places) -> Clang:
    """The matrix extension.

    Raises:
        MissingError: There is no clang.
    """
    return Clang("matrix", _compiler(places), matrix=True)


def _compiler(places: Places) -> str:
    search = [str(folder) for folder in places.folders]
    for name in _COMPILERS:
        found = shutil.which(name) or shutil.which(name, path=":".join(search))
        if found:
            return found
    raise MissingError("no clang")


def _source(work: Workload) -> str | None:
    if any(buffer.element.name not in _TYPES for buffer in work.buffers):
        return None
    match work.problem:
        case Gemm(vnni=False) as gemm if max(gemm.m, gemm.n, gemm.k) <= _LARGEST and not gemm.columns:
            return _product(gemm, 1, reduced=False)
        case Batch(count, gemm, reduced):
            return _product(gemm, count, reduced=reduced)
        case Convolution() as conv if conv.groups == conv.channels:
            return _depthwise(conv)
        case Pointwise(function, count, element, 0) if function in _EXPRESSIONS:
            return _pointwise(function, count, _TYPES[element.name], len(work.buffers) - 1)
        case _:
            return None


def _product(gemm: Gemm, count: int, *, reduced: bool) -> str:
    """Rows of c are summed up over k: the loop over columns is what clang makes vectors of."""
    lhs, rhs, out = (_TYPES[e.name] for e in (gemm.lhs, gemm.rhs, gemm.out))
    m, n, k = gemm.m, gemm.n, gemm.k
    step, zero = ("", "if (g == 0)") if reduced else (f"c += {m * n};", "")
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
    """Columns by columns, as the extension has them: c^T = b^T a^T."""
    match work.problem:
        case Gemm(vnni=False, columns="") as gemm:
            count = 1
        case Batch(count, gemm, False):
            pass
        case _:
            return None
    if gemm.lhs is not gemm.out or gemm.lhs.name not in _TYPES or max(gemm.m, gemm.n, gemm.k) > _MATRIX:
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


def _depthwise(conv: Convolution) -> str:
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


_EXPRESSIONS: Final = {"add": "x0[i] + x1[i]", "muladd": "x0[i] * x1[i] + x2[i]"}


def _pointwise(function: str, count: int, type_: str, inputs: int) -> str:
    pointers = ", ".join(f"const {type_} *restrict x{i}" for i in range(inputs))
    body = f"for (long i = 0; i < {count}; i++) y[i] = {_EXPRESSIONS[function]};"
    return f"void work({type_} *restrict y, {pointers}) {{ {body} }}\n"
