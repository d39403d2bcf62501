"""The Julia example: the IR that its package fills in, in each spelling that Julia's LLVM reads, called from C.

Julia itself is not among the tools: the package's code is not run, apart from the names and values of its template.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Final

import numpy as np
import pytest

import tlx
from tests.support.tools import HANG_S, quick, require, require_processor

_SOURCE: Final = Path(__file__).parents[3] / "examples" / "julia" / "TLX.jl" / "src"
_NUMBERS: Final = {"float": "f4", "double": "f8", "half": "f2"}
_MAIN: Final = """
#include <stdint.h>
#include <stdio.h>
void kernel(void *c, const void *a, const void *b);
void entry(int64_t c, int64_t a, int64_t b);
static char a[1 << 16], b[1 << 16], c[1 << 16], d[1 << 16];
int main(void) {
  fread(a, 1, SIZE_A, stdin);
  fread(b, 1, SIZE_B, stdin);
  kernel(c, a, b);
  entry((int64_t)d, (int64_t)a, (int64_t)b);
  fwrite(c, 1, SIZE_C, stdout);
  fwrite(d, 1, SIZE_C, stdout);
}
"""
Indices = tuple[str, str, str]


def _list(numbers: list[int]) -> str:
    return ", ".join(f"i32 {number}" for number in numbers)


def _contraction(indices: Indices, sizes: dict[str, int], type_: str, *, opaque: bool) -> str:
    """`contraction` of TLX.jl in Python."""
    c, a, b = indices
    sums = [index for index in a if index in b]
    product = [index for index in a if index not in sums] + [index for index in b if index not in sums]
    values = {
        "POINTER": "ptr" if opaque else f"{type_}*",
        "ELEMENTTYPE": f"elementtype({type_})" if opaque else "",
        "TYPE": type_,
        "LAYOUT_A": _list([*range(len(a))][::-1]),
        "LAYOUT_B": _list([*range(len(b))][::-1]),
        "LAYOUT_C": _list([product.index(index) for index in reversed(c)]),
        "LAYOUT_P": _list([*range(len(c))]),
        "SHAPE_P": _list([sizes[index] for index in product]),
        "COUNT": str(np.prod([sizes[index] for index in c])),
        "SUMS": str(len(sums)),
        "AXES_A": _list([a.index(index) for index in sums]),
        "AXES_B": _list([b.index(index) for index in sums]),
    }
    for name, word in (("A", a), ("B", b), ("C", c)):
        values[f"RANK_{name}"] = str(len(word))
        values[f"SHAPE_{name}"] = _list([sizes[index] for index in reversed(word)])
    return re.sub(r"\{(\w+)\}", lambda match: values[match[1]], (_SOURCE / "contract.ll").read_text(encoding="utf-8"))


def test_the_package_fills_in_all_of_the_template() -> None:
    names = set(re.findall(r"\{([A-Z_]+)\}", (_SOURCE / "contract.ll").read_text(encoding="utf-8")))
    assert names == set(re.findall(r'"([A-Z_]+)" =>', (_SOURCE / "TLX.jl").read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    "case",
    quick(
        [
            ("clang-16", "float", ("ij", "ik", "kj")),  # Julia 1.11
            ("clang-19", "double", ("jli", "ikl", "kj")),
            ("clang-15", "double", ("ij", "ik", "kj")),  # Julia 1.10
            ("clang-14", "float", ("ji", "ikl", "lkj")),  # Julia 1.9
            ("clang-19", "half", ("ij", "ki", "jk")),
        ],
        2,
    ),
)
def test_column_major_arrays(tmp_path: Path, case: tuple[str, str, Indices]) -> None:
    clang, type_, indices = case
    require_processor("avx2")
    sizes = {"i": 13, "j": 10, "k": 17, "l": 3}
    ir = _contraction(indices, sizes, type_, opaque=clang == "clang-19")
    (tmp_path / "kernel.ll").write_text(tlx.lower_text(ir, target="avx2"), encoding="utf-8")
    rng = np.random.default_rng(5)
    a, b = (rng.integers(-3, 4, [sizes[i] for i in word]).astype(_NUMBERS[type_]) for word in indices[1:])
    expected = np.einsum(f"{indices[1]},{indices[2]}->{indices[0]}", a, b)
    macros = [f"-DSIZE_{name}={array.nbytes}" for name, array in (("A", a), ("B", b), ("C", expected))]
    (tmp_path / "main.c").write_text(_MAIN, encoding="utf-8")
    command = [require(clang), "-O1", "-w", *macros, "main.c", "kernel.ll", "-lm", "-o", "program"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=HANG_S)
    data = a.tobytes("F") + b.tobytes("F")
    done = subprocess.run([tmp_path / "program"], input=data, capture_output=True, check=True, timeout=HANG_S)
    for part in (done.stdout[: expected.nbytes], done.stdout[expected.nbytes :]):
        result = np.frombuffer(part, expected.dtype).reshape(expected.shape, order="F")
        np.testing.assert_array_equal(result, expected)
