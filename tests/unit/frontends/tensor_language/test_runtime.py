"""Compiled kernels called with numpy arrays: how arguments are passed, and which are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import ml_dtypes
import numpy as np
import pytest

from tlx.api.arguments import ArgumentError
from tlx.diagnostics import UsageError
from tlx.frontends import tensor_language as tl
from tlx.frontends.tensor_language.runtime.arguments import scalar_argument
from tlx.frontends.tensor_language.runtime.kernels import CompiledKernel, CompiledKernels
from tlx.frontends.tensor_language.types import BF16, NUMBERS

# Adds to each entry its place, so that a wrong address, extent or stride shows.
PLACES: Final = """
func @dynamic(%A: memref<f64x?x?,strided<?,?>>) {
    %zero = constant 0 : index
    %m = size %A[0] : index
    %n = size %A[1] : index
    for %i=%zero,%m {
        for %j=%zero,%n {
            %c100 = constant 100 : index
            %row = mul %i, %c100 : index
            %place = add %row, %j : index
            %number = cast %place : f64
            %old = load %A[%i,%j] : f64
            %new = add %old, %number : f64
            store %new, %A[%i,%j]
        }
    }
}
func @copy(%from: memref<f32x2x3>, %to: memref<f32x2x3,strided<1,4>>) {
    %zero = constant 0 : index
    %two = constant 2 : index
    %three = constant 3 : index
    for %i=%zero,%two {
        for %j=%zero,%three {
            %entry = load %from[%i,%j] : f32
            store %entry, %to[%i,%j]
        }
    }
}
func @groups(%A: group<memref<i32x?>x?,offset:?>, %B: memref<i64x4>) {
    %me = group_id.x : index
    %zero = constant 0 : index
    %all = num_groups.x : index
    %member = load %A[%me] : memref<i32x?>
    %entry = load %member[%zero] : i32
    %n = size %member[0] : index
    %k = size %A[0] : index
    %wide = cast %entry : index
    %1 = add %wide, %n : index
    %c1000 = constant 1000 : index
    %2 = mul %k, %c1000 : index
    %3 = add %1, %2 : index
    %c10000 = constant 10000 : index
    %4 = mul %all, %c10000 : index
    %5 = add %3, %4 : index
    %6 = cast %5 : i64
    store %6, %B[%me]
}
func @strides(%A: group<memref<f32x2x?,strided<1,?>>x2,offset:2>, %b: f32) {
    %me = group_id.y : index
    %one = constant 1 : index
    %member = load %A[%me] : memref<f32x2x?,strided<1,?>>
    store %b, %member[%one,%one]
}
func @null(%A: memref<f32x?>, %B: memref<f32x1>, %G: group<memref<f32>x2>) {
    %zero = constant 0 : index
    %one = constant 1.0 : f32
    %two = constant 2.0 : f32
    %0 = associated %A : bool
    if %0 { store %one, %B[%zero] } else { store %two, %B[%zero] }
    %1 = load %G[%zero] : memref<f32>
    %2 = associated %1 : bool
    if %2 { store %one, %1[] }
}
func @promises(%A: memref<f32x?x?> {alignment=64, shape_gcd=[4], stride_gcd=[1,8]}) {}
func @scalars(%b: bool, %i: i8, %h: f16, %f: f32, %z: c32, %n: index, %r: memref<f32x4x4>) {}
func @read(%G: group<memref<f32x2>x?>, %x: memref<bf16x4>, %y: memref<c32>) {}
func @launch(%A: memref<i64x2x3x4>) {
    %x = group_id.x : index
    %y = group_id.y : index
    %z = group_id.z : index
    %one = constant 1 : i64
    %0 = atomic_add %one, %A[%x,%y,%z] : i64
}
"""


@pytest.fixture(scope="module")
def kernels() -> CompiledKernels:
    return tl.compile(PLACES, "generic")


def places(*shape: int) -> Any:
    return np.add.outer(100.0 * np.arange(shape[0]), np.arange(shape[1]))


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((3, 4), order="F"),
        np.zeros((5, 4), order="F")[1:4, :],
        np.zeros((3, 9), order="F")[:, 1::2],
        np.zeros((4, 3)).T,
        np.zeros((9, 9), order="F")[::2, ::3],
        np.zeros((1, 4)),
        np.zeros((3, 1)),
        np.zeros((1, 1), order="F"),
        np.zeros((0, 4)),
        np.zeros((2, 5, 7), order="F")[1, :, :],
    ],
    ids=str,
)
def test_views_are_used_as_they_lie(kernels: CompiledKernels, array: Any) -> None:
    expected = array + places(*array.shape)
    kernels.dynamic(array)
    np.testing.assert_array_equal(array, expected)


def test_only_the_view_is_changed(kernels: CompiledKernels) -> None:
    whole = np.zeros((8, 9), order="F")
    kernels.dynamic(whole[2:5, 1:6:2])
    assert np.count_nonzero(whole) == 8
    np.testing.assert_array_equal(whole[2:5, 1:6:2], places(3, 3))


def test_arrays_with_a_cached_layout_are_still_checked(kernels: CompiledKernels) -> None:
    for _ in range(3):
        array = np.zeros((3, 4), order="F")
        kernels.dynamic(array)
        np.testing.assert_array_equal(array, places(3, 4))
        with pytest.raises(ArgumentError, match="a read-only one"):
            kernels.dynamic(READ_ONLY)
        with pytest.raises(ArgumentError, match="expected an array aligned as float64 is"):
            kernels.dynamic(UNALIGNED)
        kernels.promises(aligned((4, 3), 8))
        with pytest.raises(ArgumentError, match="expected an array aligned to 64 bytes"):
            kernels.promises(aligned((4, 3), 8, at=4))


def test_alternating_layouts(kernels: CompiledKernels) -> None:
    whole = np.zeros((30, 30), order="F")
    for rows, columns in [*np.ndindex(25, 25), (3, 4), (7, 5)]:
        part = whole[:rows, :columns]
        part[...] = 0
        kernels.dynamic(part)
        np.testing.assert_array_equal(part, places(rows, columns))


def test_static_strides(kernels: CompiledKernels) -> None:
    source, result = np.arange(6, dtype=np.float32).reshape((2, 3), order="F"), np.zeros((4, 3), np.float32, order="F")
    kernels.copy(source, result[:2])
    np.testing.assert_array_equal(result[:2], source)
    kernels.copy(to=result[2:], **dict[str, Any]({"from": source}))
    np.testing.assert_array_equal(result[2:], source)


def test_groups_and_launch(kernels: CompiledKernels) -> None:
    members = [np.array([7, 8, 9], np.int32), np.array([20], np.int32), np.array([5, 6], np.int32)]
    result = np.zeros(4, np.int64)
    kernels.groups(members, result, groups=3)
    assert result.tolist() == [33010, 33021, 33007, 0]
    kernels.groups([np.array([1, 2, 3, 4], np.int32)[:2]], result, A_offset=2)
    assert result[0] == 11005


def test_three_dimensions_of_groups(kernels: CompiledKernels) -> None:
    counts = np.zeros((2, 3, 4), np.int64, order="F")
    kernels.launch(counts, groups=(2, 3, 4))
    assert (counts == 1).all()
    kernels.launch(counts, groups=np.int64(2))
    assert counts.sum() == 26
    kernels.launch(counts, groups=0)
    assert counts.sum() == 26


def test_static_offsets_extend_the_bounds_check(kernels: CompiledKernels) -> None:
    memory = [np.zeros((2, 4), np.float32, order="F") for _ in range(2)]
    kernels.strides([array[:, :3] for array in memory], 5.0, groups=(1, 2))
    assert all(array[1, 2] == 5 and np.count_nonzero(array) == 1 for array in memory)


def test_null_pointers_in_groups(kernels: CompiledKernels) -> None:
    result, entry = np.zeros(1, np.float32), np.zeros((), np.float32)
    kernels.null(None, result, [None, entry])
    assert result[0] == 2
    kernels.null(np.zeros(3, np.float32), result, [entry, None])
    assert (result[0], entry) == (1, 1)


def aligned(shape: tuple[int, ...], rows: int, at: int = 0) -> Any:
    """An array at a multiple of 64 bytes, and `at` bytes more, with columns `rows` elements apart."""
    memory = np.zeros(4 * rows * shape[1] + 192, np.uint8)
    first = -memory.ctypes.data % 64 + at
    return memory[first : first + 4 * rows * shape[1]].view(np.float32).reshape((rows, -1), order="F")[: shape[0]]


def test_aligned_arrays_satisfy_attributes(kernels: CompiledKernels) -> None:
    kernels.promises(aligned((4, 3), 8))


G = [np.zeros(2, np.float32)]
X = np.zeros(4, ml_dtypes.bfloat16)
Y = np.zeros((), np.complex64)
F64 = np.zeros((3, 4), order="F")
READ_ONLY = np.zeros((3, 4), order="F")
READ_ONLY.flags.writeable = False
UNALIGNED = np.zeros(97, np.uint8)[1:].view(np.float64).reshape((3, 4), order="F")
S = [True, 1, 0.5, 1.0, 1j, 1, np.zeros((4, 4), np.float32, order="F")]
F32 = np.zeros((2, 3), np.float32, order="F")

REFUSED: Final[list[tuple[str, list[Any], str]]] = [
    ("dynamic", [[1.0]], "(%A: memref<f64x?x?,strided<?,?>>): expected a numpy array of float64, got list [1.0]"),
    ("dynamic", [F64.astype(np.float32)], "expected elements of float64, got float32 array of shape (3, 4)"),
    ("dynamic", [F64.astype(">f8")], "expected elements of float64, got >f8 array"),
    ("dynamic", [F64[0]], "expected 2 modes, got float64 array of shape (4,)"),
    (
        "dynamic",
        [READ_ONLY],
        "expected a writable array, since the kernel stores to it, got a read-only one",
    ),
    (
        "dynamic",
        [np.zeros((3, 4))],
        "got 1; memrefs are column-major: make the array with order='F', or pass a transpose",
    ),
    ("dynamic", [F64[::-1]], "expected a positive stride, got -1"),
    ("dynamic", [np.broadcast_to(np.zeros((3, 1)), (3, 4))], "read-only"),
    (
        "dynamic",
        [np.lib.stride_tricks.as_strided(F64, (3, 4), (8, 8))],
        "expected a stride of at least 3 elements in mode 1, got 1",
    ),
    ("dynamic", [UNALIGNED], "expected an array aligned as float64 is, got one that is not"),
    ("dynamic", [None], "expected a numpy array, got None, though the kernel does not test it with 'associated'"),
    ("dynamic", [], "@dynamic takes 1 argument (%A), got 0"),
    ("dynamic", [F64, F64], "@dynamic takes 1 argument (%A), got 2"),
    (
        "copy",
        [F32, F32],
        "argument 1 (%to: memref<f32x2x3,strided<1,4>>): expected a stride of 4 elements in mode 1, got 2",
    ),
    (
        "copy",
        [np.zeros((2, 4), np.float32), F32],
        "expected an extent of 3 in mode 1, got float32 array of shape (2, 4)",
    ),
    ("copy", [F32[:1], F32], "expected an extent of 2 in mode 0, got float32 array of shape (1, 3)"),
    ("groups", [1, np.zeros(4, np.int64)], "expected a list of arrays, got int 1"),
    (
        "groups",
        [[np.zeros(1)], np.zeros(4, np.int64)],
        "(%A: group<memref<i32x?>x?,offset:?>), member 0: expected elements of int32, got float64",
    ),
    ("strides", [[F32], 1.0], "expected 2 arrays, got 1"),
    (
        "strides",
        [[F32, F32], 1.0],
        "member 0: expected an array whose memory goes on for 2 elements more, got one that ends before",
    ),
    ("promises", [aligned((3, 3), 8)], "expected a multiple of 4 as extent of mode 0, got 3"),
    ("promises", [aligned((4, 3), 12)], "expected a multiple of 8 as stride of mode 1, got 12"),
    ("promises", [aligned((4, 3), 8, at=16)], "expected an array aligned to 64 bytes, got one at 0x"),
    (
        "read",
        [G, X.astype(np.float32), Y],
        "argument 1 (%x: memref<bf16x4>): expected elements of bfloat16, got float32",
    ),
    ("read", [G, X, 1j], "expected a numpy array of complex64, got complex 1j"),
    (
        "read",
        [[*G, np.zeros(3, np.float32)], X, Y],
        "member 1: expected an extent of 2 in mode 0, got float32 array of shape (3,)",
    ),
    ("read", [[None], X, Y], "member 0: expected a numpy array, got None"),
    ("read", ["ab", X, Y], "expected a list of arrays, got str 'ab'"),
    ("scalars", [1, *S[1:]], "argument 0 (%b: bool): expected a value of bool, got int 1"),
    ("scalars", [True, 128, *S[2:]], "argument 1 (%i: i8): expected a value of i8, got int 128"),
    ("scalars", [True, True, *S[2:]], "expected a value of i8, got bool True"),
    ("scalars", [True, 1.0, *S[2:]], "expected a value of i8, got float 1.0"),
    ("scalars", [*S[:2], 65520, *S[3:]], "argument 2 (%h: f16): expected a value of f16, got int 65520"),
    ("scalars", [*S[:3], 1e39, *S[4:]], "expected a value of f32, got float 1e+39"),
    ("scalars", [*S[:3], "1", *S[4:]], "expected a value of f32, got str '1'"),
    ("scalars", [*S[:3], 1j, *S[4:]], "expected a value of f32, got complex 1j"),
    ("scalars", [*S[:3], np.zeros(1), *S[4:]], "expected a value of f32, got float64 array of shape (1,)"),
    ("scalars", [*S[:4], None, *S[5:]], "argument 4 (%z: c32): expected a value of c32, got NoneType None"),
    (
        "scalars",
        [*S[:5], 1 << 63, *S[6:]],
        "argument 5 (%n: index): expected a value of index, got int 9223372036854775808",
    ),
]


@pytest.mark.parametrize(("name", "arguments", "message"), REFUSED, ids=[message[-40:] for _, _, message in REFUSED])
def test_arguments_that_do_not_fit(kernels: CompiledKernels, name: str, arguments: list[Any], message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        kernels[name](*arguments)
    assert message in caught.value.message
    assert isinstance(caught.value, TypeError)


def test_scalars_that_fit(kernels: CompiledKernels) -> None:
    kernels.scalars(np.bool_(False), np.int64(-128), np.float64(65504), np.float16(1), 1, np.uint8(3), S[-1])
    kernels.scalars(True, 127, float("inf"), float("nan"), complex("inf"), -(1 << 63), S[-1])


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ({"groups": (1, 2, 3, 4)}, "groups: expected up to three numbers of work-groups, got tuple (1, 2, 3, 4)"),
        ({"groups": -1}, "got int -1"),
        ({"groups": 1.5}, "groups: expected up to three integers, got float 1.5"),
        ({"group": 1}, "@dynamic takes 1 argument (%A), none of them called group"),
        ({"A": F64}, "@dynamic takes 1 argument (%A), got %A twice"),
    ],
)
def test_named_arguments_that_do_not_fit(kernels: CompiledKernels, named: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        kernels.dynamic(F64, **named)
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("offset", "message"), [(-1, "not negative, got -1"), (0.5, "a number of elements, got float")]
)
def test_offsets_that_do_not_fit(kernels: CompiledKernels, offset: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        kernels.groups([np.zeros(1, np.int32)], np.zeros(4, np.int64), A_offset=offset)


def test_kernels_are_looked_up_by_name(kernels: CompiledKernels) -> None:
    assert list(kernels)[:2] == ["dynamic", "copy"]
    assert {"dynamic", "lowered"} <= set(dir(kernels))
    assert repr(kernels.copy) == "<compiled @copy(%from: memref<f32x2x3>, %to: memref<f32x2x3,strided<1,4>>)>"
    assert isinstance(kernels["read"], CompiledKernel)
    assert str(kernels.launch.__doc__).startswith("void launch(int64_t *A,")
    assert "define" in kernels.lowered
    with pytest.raises(AttributeError, match="there is no kernel @gemm; the program has @dynamic, @copy"):
        _ = kernels.gemm
    with pytest.raises(UsageError, match="there is no kernel @gemm"):
        _ = kernels["gemm"]


def test_paths_trees_and_kernels_are_compiled(tmp_path: Path) -> None:
    with tl.kernel("set", x="memref<f32>") as k:
        k.store(3.0, k.x)
    (tmp_path / "set.tl").write_text(tl.text(k), encoding="utf-8")
    for source in (k, tl.program(k), tl.text(k), tmp_path / "set.tl", str(tmp_path / "set.tl")):
        x = np.zeros((), np.float32)
        tl.compile(source, "generic").set(x)
        assert x == 3


def test_a_path_that_does_not_exist() -> None:
    with pytest.raises(UsageError, match="could not open input file"):
        tl.compile("none.tl")


def test_the_first_version_is_compiled() -> None:
    x = np.ones((4, 4), np.float32, order="F")
    text = "func @f(%A: memref<f32x4x4>) { axpby.n 2.0, %A, 0.0, %A : f32, memref<f32x4x4>, f32, memref<f32x4x4> }"
    tl.compile(text, "generic", std="v1").f(x)
    assert (x == 2).all()


def test_groups_of_the_first_version_have_no_size() -> None:
    text = """func @f(%G: group<memref<f32x2>>, %y: memref<f32x2>) {
        %g = group_id
        %x = load %G[%g] : group<memref<f32x2>>
        axpby.n 1.0, %x, 1.0, %y : f32, memref<f32x2>, f32, memref<f32x2>
    }"""
    y = np.zeros(2, np.float32)
    tl.compile(text, "generic", std="v1").f([np.array([k, 1], np.float32) for k in (2, 3, 4)], y, groups=3)
    assert y.tolist() == [9, 3]


@pytest.mark.parametrize("type_", [t for t in NUMBERS.values() if t.kind == "int"], ids=str)
def test_integers_have_bounds(type_: Any) -> None:
    most = (1 << (type_.bits - 1)) - 1
    assert scalar_argument(type_, most) == most
    assert scalar_argument(type_, -most - 1) == -most - 1
    for value in (most + 1, -most - 2):
        with pytest.raises(OverflowError):
            scalar_argument(type_, value)


def test_bfloat16_is_rounded_once() -> None:
    random = np.random.default_rng(1)
    exact = random.standard_normal(2000) * 2.0 ** random.integers(-140, 120, 2000)
    ties = [1 + 2.0**-8, 1 + 3 * 2.0**-8, 1 + 2.0**-8 + 2.0**-40, 1 + 2.0**-8 - 2.0**-40, 2.0**-134, 3 * 2.0**-134]
    for number in (*exact, *ties, 0.0, -0.0, float("inf"), float("nan")):
        bits = np.array([scalar_argument(BF16, number)], np.int16).view(ml_dtypes.bfloat16)[0]
        error = abs(float(bits) - number)
        near = [abs(float(np.nextafter(bits, ml_dtypes.bfloat16(to))) - number) for to in ("inf", "-inf")]
        assert not np.isfinite(number) or error <= min(near), number
    assert scalar_argument(BF16, 1 + 2.0**-8) == 0x3F80
    assert scalar_argument(BF16, 1 + 3 * 2.0**-8) == 0x3F82
    with pytest.raises(OverflowError):
        scalar_argument(BF16, 3.4e38)


@pytest.mark.parametrize("extent", [4, 32768])  # on the stack, on the heap
def test_local_memory_has_the_requested_alignment(extent: int) -> None:
    memory = f"alloca {{alignment=128}} : memref<f32x{extent},local>"
    lowered = tl.compile(f"func @f() {{ %a = {memory} }}").lowered
    assert "align 128" in lowered or "aligned_alloc(i64 128, " in lowered
