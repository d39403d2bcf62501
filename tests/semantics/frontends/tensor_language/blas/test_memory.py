"""BLAS instructions on views of views, members of groups and local memory, in loops and branches."""

from __future__ import annotations

import numpy as np
import pytest

from tlx.evaluate import Machine
from tlx.frontends import tensor_language as tl
from tlx.intrinsics.numpy_types import Array


def _matrix(seed: int, *shape: int) -> Array:
    return np.asfortranarray(np.random.default_rng(seed).integers(-3, 4, shape).astype(np.float32))


FUSED = """
func @fused(%alpha: f32, %A: group<memref<f32x16x8>x?>, %B: memref<f32x8x8>, %C: memref<f32x8x16>,
            %D: group<memref<f32x16x16>x?>) {
  %0 = constant 0.0 : f32
  %1 = constant 1.0 : f32
  %g = group_id.x : index
  %a = load %A[%g] : memref<f32x16x8>
  %d = load %D[%g] : memref<f32x16x16>
  %t = alloca : memref<f32x16x8,local>
  gemm.n.t %1, %a, %B, %0, %t
  gemm.n.n %alpha, %t, %C, %1, %d
}
"""


@pytest.mark.parametrize("target", ["generic", "avx2", "native"])
def test_chains_of_products_of_groups(target: str) -> None:
    a, d = [_matrix(k, 16, 8) for k in range(50)], [_matrix(k + 50, 16, 16) for k in range(50)]
    b, c = _matrix(1, 8, 8), _matrix(2, 8, 16)
    expected = [y + 1.5 * (x @ b.T @ c) for x, y in zip(a, d, strict=True)]
    tl.compile(FUSED, target).fused(1.5, a, b, c, d, groups=50)
    np.testing.assert_array_equal(d, expected)


def test_members_with_shapes_of_their_own() -> None:
    text = """
    func @k(%A: group<memref<f32x?x?>x?>, %C: group<memref<f32x?x?>x?>) {
      %1 = constant 1.0 : f32
      %g = group_id.x : index
      %a = load %A[%g] : memref<f32x?x?>
      %c = load %C[%g] : memref<f32x?x?>
      gemm.n.t %1, %a, %a, %1, %c
    }"""
    a = [_matrix(k, 5 * k + 1, 30 - k) for k in range(12)]
    c = [_matrix(k, 5 * k + 1, 5 * k + 1) for k in range(12)]
    expected = [y + x @ x.T for x, y in zip(a, c, strict=True)]
    tl.compile(text, "native").k(a, c, groups=12)
    for one, other in zip(c, expected, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("target", ["generic", "native"])
def test_views_of_views(target: str) -> None:
    text = """
    func @k(%A: memref<f32x32x12>, %T: memref<f32x6x4x5>, %c: memref<f32x24>, %i: index) {
      %1 = constant 1.0 : f32
      %v = subview %A[2:24,%i:8] : memref<f32x24x8,strided<1,32>>
      %w = subview %v[3:16,1:6] : memref<f32x16x6,strided<1,32>>
      %row = subview %v[%i,0:8] : memref<f32x8,strided<32>>
      %column = subview %v[0:24,2] : memref<f32x24>
      %x = expand %column[0->6x4] : memref<f32x6x4>
      %plane = subview %T[0:6,0:4,%i] : memref<f32x6x4>
      %side = subview %T[0:6,1,0:5] : memref<f32x6x5,strided<1,24>>
      %slice = subview %T[2,0:4,0:5] : memref<f32x4x5,strided<6,24>>
      gemv %1, %v, %row, %1, %c
      axpby %1, %x, %1, %plane
      gemm.t.n %1, %plane, %side, %1, %slice
      sum.t %1, %w, %1, %end
    }"""
    text = text.replace("%i: index)", "%i: index, %end: memref<f32x6>)")
    a, t, c, end = _matrix(1, 32, 12), _matrix(2, 6, 4, 5), _matrix(3, 24), _matrix(4, 6)
    i = 3
    wanted_t, view = t.copy(), a[2:26, i : i + 8]
    wanted_c = c + view @ view[i]
    wanted_t[:, :, i] += view[:, 2].reshape(6, 4, order="F")
    product = wanted_t[:, :, i].T @ wanted_t[:, 1, :]
    wanted_t[2] += product
    wanted_end = end + view[3:19, 1:7].sum(axis=0)
    tl.compile(text, target).k(a, t, c, i, end)
    np.testing.assert_array_equal(c, wanted_c)
    np.testing.assert_array_equal(end, wanted_end)
    outside = np.ones(t.shape, bool)
    outside[2] = False
    np.testing.assert_array_equal(t[outside], wanted_t[outside])


@pytest.mark.parametrize("count", [0, 1, 4])
def test_powers_in_a_loop(count: int) -> None:
    """Local memory keeps its contents between iterations."""
    text = """
    func @k(%A: memref<f32x9x9>, %n: index, %C: memref<f32x9x9>) {
      %0 = constant 0.0 : f32
      %1 = constant 1.0 : f32
      %start = constant 0 : index
      %x = alloca : memref<f32x9x9,local>
      axpby %1, %C, %0, %x
      for %i=%start,%n {
        %y = alloca : memref<f32x9x9,local>
        gemm %1, %A, %x, %0, %y
        axpby %1, %y, %0, %x
      }
      axpby %1, %x, %0, %C
    }"""
    a, c = np.asfortranarray(np.triu(np.ones((9, 9), np.float32))), _matrix(3, 9, 9)
    expected = np.linalg.matrix_power(a.astype(np.float64), count) @ c
    tl.compile(text, "native").k(a, count, c)
    np.testing.assert_array_equal(c, expected)


@pytest.mark.parametrize("flag", [False, True])
@pytest.mark.parametrize("extent", ["5", "?"])
def test_in_a_branch(flag: bool, extent: str) -> None:
    text = f"""
    func @k(%A: memref<f32x{extent}x{extent}>, %c: bool, %C: memref<f32x{extent}x{extent}>) {{
      %1 = constant 1.0 : f32
      if %c {{
        gemm %1, %A, %A, %1, %C
      }} else {{
        hadamard %1, %A, %A, %1, %C
      }}
    }}"""
    a, c = _matrix(1, 5, 5), _matrix(2, 5, 5)
    expected = c + (a @ a if flag else a * a)
    tl.compile(text, "native").k(a, flag, c)
    np.testing.assert_array_equal(c, expected)


def test_large_local_memory() -> None:
    text = """
    func @k(%A: memref<f32x160x160>, %C: memref<f32x160x160>) {
      %0 = constant 0.0 : f32
      %1 = constant 1.0 : f32
      %x = alloca : memref<f32x160x160,local>
      gemm %1, %A, %A, %0, %x
      gemm %1, %x, %A, %1, %C
    }"""
    a, c = _matrix(1, 160, 160), _matrix(2, 160, 160)
    expected = c + a @ a @ a
    tl.compile(text, "native").k(a, c)
    np.testing.assert_array_equal(c, expected)


@pytest.mark.parametrize("text", ["axpby %1, %A, %1, %B", "hadamard %1, %A, %A, %1, %B"])
@pytest.mark.parametrize("extent", ["20", "?"])
def test_updates_in_place(text: str, extent: str) -> None:
    """Each element depends on itself only, so the output may be an input."""
    head = f"func @k(%A: memref<f32x{extent}x3>, %B: memref<f32x{extent}x3>) {{ %1 = constant 1.0 : f32  {text} }}"
    a = _matrix(1, 20, 3)
    expected = a + (a if "axpby" in text else a * a)
    tl.compile(head, "native").k(a, a)
    np.testing.assert_array_equal(a, expected)


@pytest.mark.parametrize(
    ("extent", "instruction"),
    [("5", "gemm.t.n %f, %A, %A, %f, %C"), ("?", "gemm.t.n %f, %A, %A, %f, %C"), ("?", "axpby.t %f, %A, %f, %C"),
     ("5", "axpby.t %f, %A, %f, %C"), ("5", "sum %f, %A, %f, %r"), ("?", "cumsum %f, %A, 0, %f, %C")],
)  # fmt: skip
def test_the_translation_means_the_same_before_it_is_lowered(extent: str, instruction: str) -> None:
    """The evaluator runs the TLX IR itself."""
    shape = f"memref<f32x{extent}x{extent}>"
    text = f"func @k(%A: {shape}, %C: {shape}, %r: memref<f32x{extent}>, %f: f32) {{ {instruction} }}"
    a, c, r = _matrix(1, 5, 5), _matrix(2, 5, 5), _matrix(3, 5)
    module = tl.translate(text)
    copies = a.copy("F"), c.copy("F"), r.copy("F")
    tl.compile(text, "native").k(a, c, r, 2.0)
    extents = [5, 5, 5] if extent == "?" else []
    x, y, z = copies
    arguments = [x, *extents, y, *extents, z, *extents[:1], 2.0]
    Machine(module).call("k.group", *arguments, 0, 0, 0, 1, 1, 1)
    np.testing.assert_array_equal(y, c)
    np.testing.assert_array_equal(z, r)
