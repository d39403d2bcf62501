"""Views and accesses of the first version: types of results follow from operands, and `?` is inferred."""

from __future__ import annotations

import pytest

from tests.unit.frontends.tensor_language.v1.texts import body, v2


def view(instruction: str, type_: str, *, parameter: str = "%n: index, %m: index") -> str:
    """What a view of a parameter `%M` of a type becomes."""
    return body(f"%r = {instruction} : {type_}", f"{parameter}, %M: {type_}")


@pytest.mark.parametrize(
    ("slices", "type_", "result"),
    [
        ("4:8,8:4", "memref<f32x32x16>", "memref<f32x8x4,strided<1,32>>"),
        ("2:4,%n", "memref<f32x16x8>", "memref<f32x4>"),
        ("3,%n", "memref<f32x16x8>", "memref<f32>"),
        ("1,2:3", "memref<f32x16x8>", "memref<f32x3,strided<16>>"),
        ("2:4,%n:1", "memref<f64x16x8>", "memref<f64x4x1,strided<1,16>>"),
        ("%n:%m", "memref<f32x16>", "memref<f32x?>"),
        ("2:4,%m:%m,6:7", "memref<f32x16x42x13>", "memref<f32x4x?x7,strided<1,16,672>>"),
        ("2:4,%m:%m,6:7", "memref<f32x16x42x13,strided<1,?,?>>", "memref<f32x4x?x7,strided<1,?,?>>"),
        ("", "memref<f32>", "memref<f32>"),
    ],
)
def test_subview_keeps_strides_and_drops_modes_without_a_size(slices: str, type_: str, result: str) -> None:
    assert view(f"subview %M[{slices}]", type_) == v2(f"%r = subview %M[{slices}] : {result}")


@pytest.mark.parametrize(
    ("written", "slices", "type_", "result"),
    [
        (":", "0:16", "memref<f32x16>", "memref<f32x16>"),
        ("5:?", "5:11", "memref<f32x16>", "memref<f32x11>"),
        (":,3:?", "0:16,3:5", "memref<f32x16x8>", "memref<f32x16x5>"),
        ("0:?,1", "0:16,1", "memref<f32x16x8>", "memref<f32x16>"),
    ],
)
def test_what_is_left_of_a_known_mode_is_a_number(written: str, slices: str, type_: str, result: str) -> None:
    assert view(f"subview %M[{written}]", type_) == v2(f"%r = subview %M[{slices}] : {result}")


def test_what_is_left_after_an_unknown_offset_is_computed() -> None:
    assert view("subview %M[%n:?]", "memref<f32x16>") == v2(
        "%c16 = constant 16 : index",
        "%rest = sub %c16, %n : index",
        "%r = subview %M[%n:%rest] : memref<f32x?>",
    )


def test_what_is_left_of_an_unknown_mode_is_computed() -> None:
    assert view("subview %M[:,2:?]", "memref<f32x4x?>") == v2(
        "%extent = size %M[1] : index",
        "%c2 = constant 2 : index",
        "%rest = sub %extent, %c2 : index",
        "%r = subview %M[0:4,2:%rest] : memref<f32x4x?>",
    )


def test_all_of_an_unknown_mode_is_its_size() -> None:
    assert view("subview %M[:]", "memref<f32x?>") == v2(
        "%extent = size %M[0] : index", "%r = subview %M[0:%extent] : memref<f32x?>"
    )


@pytest.mark.parametrize(
    ("written", "type_", "shape", "result"),
    [
        ("1->2x8", "memref<f32x32x16x8>", "1->2 x 8", "memref<f32x32x2x8x8>"),
        ("1->2x?", "memref<f32x32x16x8>", "1->2 x 8", "memref<f32x32x2x8x8>"),
        ("1->?x8", "memref<f32x32x16x8>", "1->2 x 8", "memref<f32x32x2x8x8>"),
        ("1->2x?x4", "memref<f32x32x16x8>", "1->2 x 2 x 4", "memref<f32x32x2x2x4x8>"),
        ("0->4x?", "memref<f32x32x7,strided<2,64>>", "0->4 x 8", "memref<f32x4x8x7,strided<2,8,64>>"),
        ("1->%n x %m", "memref<f32x32x?>", "1->%n x %m", "memref<f32x32x?x?>"),
        ("1->4 x %n", "memref<f32x32x?>", "1->4 x %n", "memref<f32x32x4x?>"),
        ("0->%n x 4", "memref<f32x?x7,strided<2,?>>", "0->%n x 4", "memref<f32x?x4x7,strided<2,?,?>>"),
    ],
)
def test_expand_packs_strides_inside_the_mode(written: str, type_: str, shape: str, result: str) -> None:
    assert view(f"expand %M[{written}]", type_) == v2(f"%r = expand %M[{shape}] : {result}")


@pytest.mark.parametrize(
    ("written", "shape", "type_", "result"),
    [
        ("1->2x?", "1->2 x %part", "memref<f32x32x?x8>", "memref<f32x32x2x?x8>"),
        ("1->?x2", "1->%part x 2", "memref<f32x32x?x8>", "memref<f32x32x?x2x8,strided<1,32,?,?>>"),
        ("1->2x?", "1->2 x %part", "memref<f32x3x?,strided<2,?>>", "memref<f32x3x2x?,strided<2,?,?>>"),
    ],
)
def test_the_part_of_an_unknown_mode_is_computed(written: str, shape: str, type_: str, result: str) -> None:
    assert view(f"expand %M[{written}]", type_) == v2(
        "%extent = size %M[1] : index",
        "%c2 = constant 2 : index",
        "%part = div %extent, %c2 : index",
        f"%r = expand %M[{shape}] : {result}",
    )


def test_the_part_beside_unknown_sizes_is_computed() -> None:
    assert view("expand %M[1->%n x ? x %m x 2]", "memref<f32x3x24>") == v2(
        "%c24 = constant 24 : index",
        "%c2 = constant 2 : index",
        "%product = mul %c2, %n : index",
        "%product_1 = mul %product, %m : index",
        "%part = div %c24, %product_1 : index",
        "%r = expand %M[1->%n x %part x %m x 2] : memref<f32x3x?x?x?x2>",
    )


def test_the_part_beside_ones_is_the_whole_mode() -> None:
    assert view("expand %M[0->1x?]", "memref<f32x?>") == v2(
        "%extent = size %M[0] : index",
        "%r = expand %M[0->1 x %extent] : memref<f32x1x?>",
    )


@pytest.mark.parametrize(
    ("modes", "type_", "result"),
    [
        ("1,3", "memref<f32x32x16x8x4x42>", "memref<f32x32x512x42>"),
        ("1,2", "memref<f32x32x16x2x2,strided<1,48,768,1536>>", "memref<f32x32x32x2,strided<1,48,1536>>"),
        ("0,1", "memref<f32x8x?x32,strided<1,?,?>>", "memref<f32x?x32>"),
        ("1,3", "memref<f32x32x16x?x4x42,strided<1,32,?,?,?>>", "memref<f32x32x?x42>"),
    ],
)
def test_fuse_multiplies_sizes_and_keeps_strides(modes: str, type_: str, result: str) -> None:
    assert view(f"fuse %M[{modes}]", type_) == v2(f"%r = fuse %M[{modes}] : {result}")


def test_loads_say_what_they_give() -> None:
    assert body("%x = load %s[] : memref<f32>") == v2("%x = load %s[] : f32")
    assert body("%x = load %A[5,%n] : memref<f32x16x8>") == v2("%c5 = constant 5 : index\n%x = load %A[%c5,%n] : f32")
    assert body("%x = load %G[%n] : group<memref<f32x16x8>>") == v2("%x = load %G[%n] : memref<f32x16x8>")


def test_load_from_a_group_with_an_offset() -> None:
    type_ = "group<memref<f32x?>, offset: ?>"
    assert view("load %M[0]", type_) == v2("%c0 = constant 0 : index", "%r = load %M[%c0] : memref<f32x?>")


def test_stores() -> None:
    assert body("store %a, %s[] : memref<f32>") == v2("store %a, %s[]")
    assert body("store %a, %A[%n,%n] : memref<f32x16x8>") == v2("store %a, %A[%n,%n]")


def test_size() -> None:
    assert body("%x = size %D[2] : memref<f32x?x?x?>") == v2("%x = size %D[2] : index")


def test_memory_of_allocas_stays_local_through_views() -> None:
    text = """
        %t = alloca -> memref<f32x16x8>
        %s = subview %t[0:4,:] : memref<f32x16x8>
        %e = expand %s[0->2x?] : memref<f32x4x8,strided<1,16>>
        %g = fuse %e[0,1] : memref<f32x2x2x8,strided<1,2,16>>
        %x = load %g[0,0] : memref<f32x4x8,strided<1,16>>
        lifetime_stop %t
    """
    assert body(text) == v2(
        "%t = alloca : memref<f32x16x8,local>",
        "%s = subview %t[0:4,0:8] : memref<f32x4x8,strided<1,16>,local>",
        "%e = expand %s[0->2 x 2] : memref<f32x2x2x8,strided<1,2,16>,local>",
        "%g = fuse %e[0,1] : memref<f32x4x8,strided<1,16>,local>",
        "%c0 = constant 0 : index",
        "%x = load %g[%c0,%c0] : f32",
        "lifetime_stop %t",
    )
