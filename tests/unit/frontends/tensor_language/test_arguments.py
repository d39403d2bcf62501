"""Arrays as addresses, extents and strides: random types and random views."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tlx.api.arguments import ArgumentError
from tlx.frontends import tensor_language as tl
from tlx.frontends.tensor_language.analysis.uses import parameter_uses
from tlx.frontends.tensor_language.runtime.arguments import ArgumentPlace, Binder, bind, common_layout, dtype_of
from tlx.frontends.tensor_language.signature import CParameter, Role
from tlx.frontends.tensor_language.syntax.nodes import Name, Parameter, TypeRef
from tlx.frontends.tensor_language.types import NUMBERS, GroupType, MemrefType

EXTENTS = st.integers(0, 4)


@st.composite
def views(draw: st.DrawFn) -> tuple[Any, MemrefType]:
    """An array, some view of a larger one, and a memref type of its element type that it may have."""
    element = draw(st.sampled_from(list(NUMBERS.values())))
    order = draw(st.integers(0, 3))
    extents = [draw(st.integers(1, 5)) for _ in range(order)]
    whole: Any = np.zeros(extents, dtype_of(element), "C" if draw(st.sampled_from((0, 0, 1))) else "F")
    steps = st.sampled_from((1, 1, 1, 2, -1))
    slices = [slice(draw(st.integers(0, 2)), draw(EXTENTS), draw(steps)) for _ in range(order)]
    array: Any = whole[(*slices, ...)]
    if draw(st.booleans()):
        array = array.transpose(draw(st.permutations(range(order))))
    shape: tuple[int | None, ...] = tuple(draw(st.sampled_from((None, extent, extent, 2))) for extent in array.shape)
    own: list[int] = [step // array.itemsize for step in array.strides]
    stride: tuple[int | None, ...] = tuple(draw(st.sampled_from((None, None, step, 1))) for step in own)
    return array, MemrefType(element, shape, stride)


def place(type_: Any) -> ArgumentPlace:
    parameter = Parameter(name=Name("A"), type=TypeRef(type_))
    return ArgumentPlace(0, parameter, written=True, tested=False)


def strides_of(array: Any, type_: MemrefType) -> list[int] | None:
    """The strides in elements that the kernel may be given, None where there are none: straight from the rules."""
    result: list[int] = []
    for mode, expected in enumerate(type_.stride):
        least = result[-1] * max(1, array.shape[mode - 1]) if mode else 1
        own = array.strides[mode] // array.itemsize
        free = array.shape[mode] < 2 or array.size == 0
        stride = (least if expected is None else expected) if free else own
        if expected not in (None, stride) or stride < least:
            return None
        result.append(stride)
    return result


@given(views())
def test_addresses_of_all_entries_are_right(case: tuple[Any, MemrefType]) -> None:
    array, type_ = case
    fits = all(reference in (None, got) for reference, got in zip(type_.shape, array.shape, strict=True))
    expected = strides_of(array, type_) if fits else None
    try:
        values = bind(place(type_), array).values
    except ArgumentError:
        assert expected is None
        return
    strides = [values["stride", mode] for mode in range(array.ndim)]
    assert strides == expected
    assert [values["shape", mode] for mode in range(array.ndim)] == list(array.shape)
    first = values["pointer", 0]
    for index in product(*map(range, array.shape)):
        step = sum(i * stride for i, stride in zip(index, strides, strict=True))
        assert first + step * array.itemsize == array[(*index, ...)].ctypes.data


def test_a_cached_layout_equals_a_computed_one() -> None:
    type_ = MemrefType(NUMBERS["f32"], (None, 4), (1, None))
    c_parameters = [CParameter(role, role, NUMBERS["i64"], 0, mode) for role, mode in _ROLES]
    binder = Binder(place(type_), c_parameters)
    for array in (np.zeros((3, 4), np.float32, order="F"), np.zeros((5, 4), np.float32, order="F")[1:3]):
        arguments: list[Any] = []
        binder.look(array, 0, arguments)
        assert arguments == [array.ctypes.data, *binder.cached_layouts[common_layout(array)]]
        assert binder.cached_layouts[common_layout(array)] == (array.shape[0], array.strides[1] // 4)
    with pytest.raises(ArgumentError):
        binder.look(np.zeros((3, 5), np.float32, order="F"), 0, [])
    assert len(binder.cached_layouts) == 2


_ROLES: list[tuple[Role, int]] = [("pointer", 0), ("shape", 0), ("stride", 1)]


def owner(array: Any) -> Any:
    """The array that the memory of a view belongs to."""
    return array if array.base is None else owner(array.base)


@given(st.lists(views(), min_size=1, max_size=3), st.integers(0, 40))
def test_members_of_groups_with_an_offset_stay_in_their_memory(
    cases: list[tuple[Any, MemrefType]], offset: int
) -> None:
    type_ = MemrefType.packed(cases[0][1].element, (None,) * cases[0][0].ndim)
    members = [array for array, _ in cases]
    try:
        bound = bind(place(GroupType(type_, None, None)), members, offset)
    except ArgumentError:
        return
    assert bound.values["size", 0] == len(members)
    assert bound.values["offset", 0] == offset
    for k, array in enumerate(members):
        assert bound.values["pointers", 0][k] == array.ctypes.data
        if array.size and offset:
            end = array.ctypes.data + sum((e - 1) * s for e, s in zip(array.shape, array.strides, strict=True))
            whole = owner(array)
            assert end + (offset + 1) * array.itemsize <= whole.ctypes.data + whole.nbytes


WRITING = {
    "store": "store %f, %V[%i,%i]",
    "atomic_store": "atomic_store %f, %V[%i,%i]",
    "atomic_add": "%z = atomic_add %f, %V[%i,%i] : f32",
    "axpby": "axpby %f, %R, %f, %V",
    "cumsum": "cumsum %f, %R, 0, %f, %V",
    "gemm": "gemm %f, %R, %R, %f, %V",
    "hadamard": "hadamard %f, %R, %R, %f, %V",
    "inside": "if %b { for %j=%i,%i { store %f, %V[%i,%i] } }",
    "matrix store": "parallel { %c = cooperative_matrix_load %R[%i,%i] : coopmatrix<f32x16x16,matrix_acc> "
    "cooperative_matrix_store %c, %V[%i,%i] }",
    "matrix update": "parallel { %c = cooperative_matrix_load %R[%i,%i] : coopmatrix<f32x16x16,matrix_acc> "
    "%d = cooperative_matrix_atomic_max %c, %V[%i,%i] : coopmatrix<f32x16x16,matrix_acc> }",
}
VIEWS = {
    "itself": "%V = subview %A[0:16,0:16] : memref<f32x16x16>",
    "of a group": "%V = load %G[%i] : memref<f32x16x16>",
    "of a view": "%1 = expand %A[0->4x4] : memref<f32x4x4x16> %V = fuse %1[0,1] : memref<f32x16x16>",
}


def test_writing_instructions_are_known() -> None:
    memory = "%A: memref<f32x16x16>, %G: group<memref<f32x16x16>x?>, %R: memref<f32x16x16>"
    head = f"func @f({memory}, %f: f32, %i: index, %b: bool)"
    for instruction, view in product(WRITING.values(), VIEWS):
        program = tl.parse(f"{head} {{ {VIEWS[view]} {instruction} }}")
        tl.check_program(program)
        assert parameter_uses(program.functions[0]).written == {1 if view == "of a group" else 0}


def test_reading_does_not_count_as_writing() -> None:
    text = """func @f(%A: memref<f32x4x4>, %G: group<memref<f32x4>x2>) {
        %i = constant 0 : index
        %x = load %A[%i,%i] : f32
        %g = load %G[%i] : memref<f32x4>
        %y = atomic_load %g[%i] : f32
        %n = size %A[0] : index
        %b = associated %g : bool
    }"""
    actual = parameter_uses(tl.parse(text).functions[0])
    assert (actual.written, actual.tested) == (set(), {1})
