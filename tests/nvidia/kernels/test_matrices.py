"""Cooperative matrices of the tensor language as fragments of the tensor cores' products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from tests.nvidia.emulator import COMPILER
from tests.nvidia.on_emulator import on_emulator
from tests.nvidia.programs import grid_of, with_grids
from tlx.diagnostics import LoweringError
from tlx.frontends import tensor_language as tl
from tlx.llvm.codegen import emit_code
from tlx.llvm.triples import with_platform
from tlx.lower.options import Options
from tlx.lower.pipeline import lower_text
from tlx.target.lookup import find_target

Array = npt.NDArray[Any]
Compile = Callable[..., Any]

DTYPES: Final[dict[str, Any]] = {
    "bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32, "f64": np.float64, "i8": np.int8, "i32": np.int32,
}  # fmt: skip


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
    return emit_code(with_platform(lowered, "nvptx64-nvidia-cuda"), "asm", 1, "sm_80").decode()


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


@pytest.mark.parametrize(
    ("a", "c", "m", "n", "k", "transposed"),
    [
        ("bf16", "f32", 32, 8, 16, ("", ".t")), ("bf16", "f32", 64, 8, 32, ("", "")),
        ("bf16", "bf16", 32, 16, 32, (".t", "")), ("f16", "f32", 32, 8, 16, (".t", ".t")),
        ("f16", "f16", 32, 16, 16, ("", "")),
        ("i8", "i32", 64, 8, 32, (".t", "")), ("f64", "f64", 32, 16, 24, ("", ".t")),
    ],
)  # fmt: skip
def test_product(compile_kernels: Compile, a: str, c: str, m: int, n: int, k: int, transposed: tuple[str, str]) -> None:
    text = PRODUCT.format(a=a, c=c, m=m, n=n, k=k, ta=transposed[0], tb=transposed[1], check="")
    assert "mma.sync" in assembly(text)
    x, y, z = whole(a, m, k), whole(a, k, n, seed=1), whole(c, m, n, seed=2)
    exact = wide(x) @ wide(y) + wide(z)
    d = np.zeros_like(z)
    stored = [np.asfortranarray(v.T) if t else v for v, t in zip((x, y), transposed, strict=True)]
    compile_kernels(text).run(*stored, z, d)
    np.testing.assert_array_equal(wide(d), wide(exact.astype(d.dtype)))


def test_wide_product_of_doubles(monkeypatch: pytest.MonkeyPatch) -> None:
    if COMPILER is None:
        pytest.skip("the emulator needs a C compiler")
    on_emulator(monkeypatch)
    text = PRODUCT.format(a="f64", c="f64", m=32, n=16, k=16, ta="", tb="", check="")
    grid = grid_of(find_target("nvidia"), "sm_90a")
    lowered = lower_text(str(tl.translate(text, threads=grid)), target="nvidia", options=Options(cpu="sm_90a"))
    assert "mma.sync.aligned.m16n8k8.row.col.f64" in lowered
    x, y, z = (whole("f64", m, n, seed=m) for m, n in ((32, 16), (16, 16), (32, 16)))
    d = np.zeros_like(z)
    tl.compile(text, options=Options(cpu="sm_90a")).run(x, y, z, d)
    np.testing.assert_array_equal(d, x @ y + z)


@pytest.mark.parametrize("a", ["bf16", "i8", "f64"])
def test_what_is_beyond_the_memory_is_zero(compile_kernels: Compile, a: str) -> None:
    c = {"bf16": "f32", "i8": "i32"}.get(a, a)
    text = PRODUCT.format(a=a, c=c, m=32, n=16, k=32, ta="", tb="", check=".both_checked")
    x, y, z = whole(a, 27, 19), whole(a, 19, 13, seed=1), whole(c, 27, 13, seed=2)
    d = np.zeros_like(z)
    compile_kernels(text).run(x, y, z, d)
    np.testing.assert_array_equal(d, wide(x) @ wide(y) + wide(z))


LOCAL: Final = """func @run(%A: memref<{a}x32x64>, %B: memref<{a}x64x32>, %C: memref<{c}x32x16>, %x: index, %y: index)
    attributes {{subgroup_size=32, work_group_size=[64,1]}} {{
  %c0 = constant 0 : index
  %c4 = constant 4 : index
  %c32 = constant 32 : index
  %c64 = constant 64 : index
  %a_local = alloca : memref<{a}x32x64,local>
  %b_local = alloca : memref<{a}x64x32,local>
  %one = constant 1{point} : {a}
  %none = constant 0{point} : {a}
  axpby %one, %A, %none, %a_local
  axpby %one, %B, %none, %b_local
  parallel {{
    %a = cooperative_matrix_load %a_local[%c0,%c4] : coopmatrix<{a}x32x32,matrix_a>
    %b = cooperative_matrix_load{turn} %b_local[%x,%y] : coopmatrix<{a}x32x16,matrix_b>
    %zero = constant 0{point_of_sums} : coopmatrix<{c}x32x16,matrix_acc>
    %c = cooperative_matrix_mul_add %a, %b, %zero : coopmatrix<{c}x32x16,matrix_acc>
    cooperative_matrix_store %c, %C[%c0,%c0]
  }}
}}"""


@pytest.mark.parametrize(
    ("a", "c", "turn", "x", "y"),
    [("bf16", "f32", "", 16, 3), ("bf16", "f32", "", 3, 2), ("f16", "f32", ".t", 32, 0), ("i8", "i32", "", 16, 1)],
)
def test_local_memory(compile_kernels: Compile, a: str, c: str, turn: str, x: int, y: int) -> None:
    """Lines that are aligned to 16 bytes when the kernel runs are loaded as matrices."""
    point, point_of_sums = ("" if type_.startswith("i") else ".0" for type_ in (a, c))
    text = LOCAL.format(a=a, c=c, turn=turn, point=point, point_of_sums=point_of_sums)
    assert "ldmatrix" in assembly(text)
    left, right, sums = whole(a, 32, 64), whole(a, 64, 32, seed=1), whole(c, 32, 16)
    compile_kernels(text).run(left, right, sums, x, y)
    part = right[x : x + 16, y : y + 32].T if turn else right[x : x + 32, y : y + 16]
    np.testing.assert_array_equal(sums, wide(left[:, 4:36]) @ wide(part))


CARRIED: Final = """func @run(%A: memref<{a}x32x64>, %B: memref<{a}x16x16>, %C: memref<{c}x32x16>)
    attributes {{subgroup_size=32, work_group_size=[32,1]}} {{
  %c0 = constant 0 : index
  %c16 = constant 16 : index
  %c48 = constant 48 : index
  parallel {{
    %b = cooperative_matrix_load %B[%c0,%c0] : coopmatrix<{b}x16x16,matrix_b>
    %none = constant 0.0 : coopmatrix<{c}x32x16,matrix_acc>
    %first = cooperative_matrix_load %A[%c0,%c0] : coopmatrix<{a}x32x16,matrix_a>
    %sums, %last = for %k=%c0,%c48,%c16 init(%old=%none,%a=%first)
        -> (coopmatrix<{c}x32x16,matrix_acc>, coopmatrix<{a}x32x16,matrix_a>) {{
      %column = add %k, %c16 : index
      %next = cooperative_matrix_load %A[%c0,%column] : coopmatrix<{a}x32x16,matrix_a>
      %new = cooperative_matrix_mul_add %a, %b, %old : coopmatrix<{c}x32x16,matrix_acc>
      yield (%new, %next)
    }}
    %d = cooperative_matrix_mul_add %last, %b, %sums : coopmatrix<{c}x32x16,matrix_acc>
    cooperative_matrix_store %d, %C[%c0,%c0]
  }}
}}"""


@pytest.mark.parametrize(("a", "b", "c"), [("bf16", "bf16", "f32"), ("f16", "f16", "f32"), ("f32", "f32", "f32")])
def test_operands_are_loaded_one_step_ahead(compile_kernels: Compile, a: str, b: str, c: str) -> None:
    """A loop carries them as the registers of a product of fragments."""
    text = CARRIED.format(a=a, b=b, c=c)
    if a == "bf16":  # the pairs that have been loaded are put together once
        loop = assembly(text).partition("$L__BB0_1:")[2].partition("$L__BB0_1;")[0]
        assert loop.count("mma.sync") == 4
        assert loop.count("shl.b32") == 8
    x, y, z = whole(a, 32, 64), whole(b, 16, 16, seed=1), whole(c, 32, 16)
    compile_kernels(text).run(x, y, z)
    np.testing.assert_array_equal(z, sum(wide(x[:, k : k + 16]) @ wide(y) for k in range(0, 64, 16)))


CHAIN: Final = """func @run(%A: memref<f16x32x32>, %B: memref<f16x32x32>, %C: memref<f16x32x16>,
    %D: memref<f32x32x16>, %f: f32)
    attributes {subgroup_size=32, work_group_size=[32,1]} {
  %c0 = constant 0 : index
  %c3 = constant 3 : i32
  parallel {
    %a = cooperative_matrix_load %A[%c0,%c0] : coopmatrix<f16x32x32,matrix_a>
    %b = cooperative_matrix_load %B[%c0,%c0] : coopmatrix<f16x32x32,matrix_b>
    %c = cooperative_matrix_load %C[%c0,%c0] : coopmatrix<f16x32x16,matrix_b>
    %none = constant 0.0 : coopmatrix<f32x32x32,matrix_acc>
    %zero = constant 0.0 : coopmatrix<f32x32x16,matrix_acc>
    %s = cooperative_matrix_mul_add %a, %b, %none : coopmatrix<f32x32x32,matrix_acc>
    %t = cooperative_matrix_scale %f, %s : coopmatrix<f32x32x32,matrix_acc>
    %u = cooperative_matrix_apply (%i,%j,%v)=%t -> coopmatrix<f32x32x32,matrix_acc> {
      %right = less_than %j, %c3 : bool
      %w = if %right -> (f32) {
        yield (%f)
      } else {
        yield (%v)
      }
      yield (%w)
    }
    %n = neg %u : coopmatrix<f32x32x32,matrix_acc>
    %p = cast %n : coopmatrix<f16x32x32,matrix_a>
    %d = cooperative_matrix_mul_add %p, %c, %zero : coopmatrix<f32x32x16,matrix_acc>
    cooperative_matrix_store %d, %D[%c0,%c0]
  }
}"""


def test_sums_become_operands_in_registers(compile_kernels: Compile) -> None:
    text = assembly(CHAIN)
    assert "mma.sync" in text
    assert "st.shared" not in text
    a, b, c, d = whole("f16", 32, 32), whole("f16", 32, 32, seed=1), whole("f16", 32, 16), whole("f32", 32, 16)
    compile_kernels(CHAIN).run(a, b, c, d, 0.5)
    s = 0.5 * (wide(a) @ wide(b))
    s[:, :3] = 0.5
    np.testing.assert_array_equal(d, -s @ wide(c))


COMPONENTS: Final = """func @run(%A: memref<bf16x32x16>, %B: memref<bf16x16x32>, %C: memref<f32x32x32>,
    %S: memref<f32x32>)
    attributes {subgroup_size=32, work_group_size=[32,1]} {
  %c0 = constant 0 : index
  parallel {
    %l = subgroup_local_id : i32
    %lane = cast %l : index
    %own = cast %l : f32
    %a = cooperative_matrix_load %A[%c0,%c0] : coopmatrix<bf16x32x16,matrix_a>
    %b = cooperative_matrix_load %B[%c0,%c0] : coopmatrix<bf16x16x32,matrix_b>
    %zero = constant 0.0 : coopmatrix<f32x32x32,matrix_acc>
    %s = cooperative_matrix_mul_add %a, %b, %zero : coopmatrix<f32x32x32,matrix_acc>
    %t = cooperative_matrix_apply (%i,%j,%v)=%s -> coopmatrix<f32x32x32,matrix_acc> {
      %w = mul %v, %own : f32
      yield (%w)
    }
    %r = cooperative_matrix_reduce_max.row %t : coopmatrix<f32x32x1,matrix_acc>
    %m = cooperative_matrix_extract %r[0] : f32
    store %m, %S[%lane]
    cooperative_matrix_store %t, %C[%c0,%c0]
  }
}"""


def test_work_items_have_the_rows_that_the_language_says(compile_kernels: Compile) -> None:
    """Matrices that are combined with what differs between work-items are no fragments, but multiplied as such."""
    assert "mma.sync" in assembly(COMPONENTS)
    a, b, c, s = whole("bf16", 32, 16), whole("bf16", 16, 32), whole("f32", 32, 32), np.zeros(32, np.float32)
    compile_kernels(COMPONENTS).run(a, b, c, s)
    exact = wide(a) @ wide(b) * np.arange(32)[:, None]
    np.testing.assert_array_equal(c, exact)
    np.testing.assert_array_equal(s, exact.max(1))


COPY: Final = """func @run(%A: memref<{a}x?x?>, %B: memref<{a}x?x?>, %x: index)
    attributes {{subgroup_size={size}, work_group_size=[{size},1]}} {{
  %c0 = constant 0 : index
  %between = alloca : memref<{a}x64x8,local>
  parallel {{
    %a = cooperative_matrix_load.both_checked %A[%x,%c0] : coopmatrix<{a}x64x8,matrix_acc>
    cooperative_matrix_store %a, %between[%c0,%c0]
    %b = cooperative_matrix_load %between[%c0,%c0] : coopmatrix<{a}x64x8,matrix_acc>
    cooperative_matrix_store.both_checked %b, %B[%x,%c0]
  }}
}}"""


@pytest.mark.parametrize(("a", "size"), [("bf16", 32), ("i8", 32), ("f64", 16), ("f32", 8)])
def test_copies(compile_kernels: Compile, a: str, size: int) -> None:
    """Chunks of 16 bytes where columns are aligned and inside of the memory, otherwise elements."""
    text = COPY.format(a=a, size=size)
    assert "ld.global.v4" in assembly(text)
    kernel = compile_kernels(text).run
    for rows, columns, x in ((96, 9, 32), (96, 9, 35), (90, 9, 16), (128, 5, 0)):
        source, target = whole(a, rows, columns), whole(a, rows, columns, seed=1)
        exact = target.copy(order="F")
        exact[x : x + 64, :8] = source[x : x + 64, :8]
        kernel(source, target, x)
        np.testing.assert_array_equal(wide(target), wide(exact))


def test_products_that_the_grid_lacks_are_refused() -> None:
    attributes = '"tlx-features"="target" "tlx-stage"="tiles" "tlx-block"="32,0"'
    text = f"""define void @f(ptr %p, i64 %x, i64 %y, i64 %z) {attributes} {{
  %d = call {{ float }} @tlx.thread.multiply.8x8x4.f.fp128.f.fp128.float(float 0.0, i32 0, i32 0)
  ret void
}}
declare {{ float }} @tlx.thread.multiply.8x8x4.f.fp128.f.fp128.float(float, i32, i32)
"""
    with pytest.raises(
        LoweringError, match=r"the target's grid has no product of fragments 8x8x4\.f\.fp128\.f\.fp128\.float"
    ):
        lower_text(text, target="nvidia", options=Options(cpu="sm_80", triple="nvptx64-nvidia-cuda"))
