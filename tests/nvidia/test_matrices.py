"""Cooperative matrices of the tensor language as fragments of the tensor cores' products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from tests.nvidia.emulator import COMPILER
from tests.nvidia.on_device import compile_for_device
from tests.nvidia.on_emulator import on_emulator
from tests.nvidia.programs import with_grids
from tlx.frontends import tensor_language as tl
from tlx.llvm.codegen import emit_code
from tlx.llvm.triples import with_platform
from tlx.lower.options import Options
from tlx.lower.pipeline import lower_text

Array = npt.NDArray[Any]
Compile = Callable[..., Any]

DTYPES: Final[dict[str, Any]] = {
    "bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32, "f64": np.float64, "i8": np.int8, "i32": np.int32,
}  # fmt: skip


@pytest.fixture(params=["emulator", pytest.param("device", marks=pytest.mark.nvidia)])
def compile_kernels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Compile:
    """Compiles kernels for the emulator or for the GPU of this machine."""
    if request.param == "device":
        return compile_for_device
    if COMPILER is None:
        pytest.skip("the emulator needs a C compiler")
    on_emulator(monkeypatch)
    return tl.compile


def whole(type_: str, *shape: int, seed: int = 0) -> Array:
    """Small whole numbers, column-major: products and sums of few of them are exact in all types."""
    values = np.random.default_rng([seed, *shape]).integers(-4, 5, shape)
    return np.asfortranarray(values.astype(DTYPES[type_]))


def wide(values: Array) -> Array:
    """The numbers as doubles."""
    return values.astype(np.float64)


def assembly(text: str) -> str:
    """The PTX of a program."""
    module = str(tl.translate(text, threads=with_grids().grid or "none"))
    lowered = lower_text(module, target="nvidia", options=Options(cpu="sm_80", triple="nvptx64-nvidia-cuda"))
    return emit_code(with_platform(lowered, "nvptx64-nvidia-cuda"), "asm", 3, "sm_80").decode()


PRODUCT: Final = """func @run(%A: memref<{a}x?x?>, %B: memref<{a}x?x?>, %C: memref<{c}x?x?>, %D: memref<{c}x?x?>)
    attributes {{subgroup_size=32, work_group_size=[32,1]}} {{
  %c0 = constant 0 : index
  parallel {{
    %a = cooperative_matrix_load{ta}{check} %A[%c0,%c0] : coopmatrix<{a}x{m}x{k},matrix_a>
    %b = cooperative_matrix_load{tb}{check} %B[%c0,%c0] : coopmatrix<{a}x{k}x{n},matrix_b>
    %c = cooperative_matrix_load{check} %C[%c0,%c0] : coopmatrix<{c}x{m}x{n},matrix_acc>
    %d = cooperative_matrix_mul_add %a, %b, %c : coopmatrix<{c}x{m}x{n},matrix_acc>
    cooperative_matrix_store{check} %d, %D[%c0,%c0]
  }}
}}"""


@pytest.mark.parametrize("transposed", [("", ""), (".t", ""), ("", ".t"), (".t", ".t")])
@pytest.mark.parametrize(
    ("a", "c", "m", "n", "k"),
    [
        ("bf16", "f32", 32, 8, 16), ("bf16", "f32", 64, 24, 48), ("bf16", "bf16", 32, 16, 32),
        ("f16", "f32", 32, 8, 16), ("f16", "f16", 32, 16, 16), ("i8", "i32", 32, 8, 32), ("i8", "i32", 64, 16, 64),
        ("f64", "f64", 32, 8, 4), ("f64", "f64", 32, 16, 12),
    ],
)  # fmt: skip
def test_product(
    compile_kernels: Compile, a: str, c: str, m: int, n: int, k: int, transposed: tuple[str, str]
) -> None:
    text = PRODUCT.format(a=a, c=c, m=m, n=n, k=k, ta=transposed[0], tb=transposed[1], check="")
    assert "mma.sync" in assembly(text)
    x, y, z = whole(a, m, k), whole(a, k, n, seed=1), whole(c, m, n, seed=2)
    exact = wide(x) @ wide(y) + wide(z)
    d = np.zeros_like(z)
    stored = [np.asfortranarray(v.T) if t else v for v, t in zip((x, y), transposed, strict=True)]
    compile_kernels(text).run(*stored, z, d)
    np.testing.assert_array_equal(wide(d), wide(exact.astype(d.dtype)))


@pytest.mark.parametrize("a", ["bf16", "i8", "f64"])
def test_what_is_beyond_the_memory_is_zero(compile_kernels: Compile, a: str) -> None:
    c = {"bf16": "f32", "i8": "i32"}.get(a, a)
    text = PRODUCT.format(a=a, c=c, m=32, n=16, k=32, ta="", tb="", check=".both_checked")
    x, y, z = whole(a, 27, 19), whole(a, 19, 13, seed=1), whole(c, 27, 13, seed=2)
    d = np.zeros_like(z)
    compile_kernels(text).run(x, y, z, d)
    np.testing.assert_array_equal(d, wide(x) @ wide(y) + wide(z))
