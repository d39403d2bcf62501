"""Signatures inferred from a function's accesses to the memory of its pointers."""

from __future__ import annotations

import pytest

from tlx.api.prototypes import prototype_of
from tlx.api.signatures import CallParameter
from tlx.ir.parser.module import parse_fully

_DECLARED = """
declare <8 x i16> @llvm.masked.load.v8i16.p0(ptr, i32, <8 x i1>, <8 x i16>)
declare void @llvm.masked.store.v8f32.p0(<8 x float>, ptr, i32, <8 x i1>)
declare void @llvm.masked.store.v8i16.p0(<8 x i16>, ptr, i32, <8 x i1>)
declare void @llvm.masked.scatter.v8f64.v8p0(<8 x double>, <8 x ptr>, i32, <8 x i1>)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""
_LOCAL = """
  %local = alloca [8 x bfloat]
  %t = call token @llvm.tensor.load(ptr elementtype(bfloat) %local, <2 x i32> <i32 2, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %n = call <8 x bfloat> @llvm.tensor.transpose(token %t, <2 x i32> <i32 1, i32 0>)
"""  # noqa: E501
_SCATTER = """
  %q = getelementptr double, ptr %p, <8 x i64> %i
  call void @llvm.masked.scatter.v8f64.v8p0(<8 x double> zeroinitializer, <8 x ptr> %q, i32 8, <8 x i1> %m)
"""


def parameter(body: str) -> CallParameter:
    """The inferred parameter %p of a function with a body."""
    text = f"define void @f(ptr %p, <8 x i1> %m, <8 x i64> %i, <8 x float> %v) {{\n{body}\n  ret void\n}}\n{_DECLARED}"
    module = parse_fully(text, "f.ll")
    return prototype_of(module, module.functions[0]).parameters[0]


@pytest.mark.parametrize(
    ("body", "element", "written"),
    [
        ("call void @llvm.masked.store.v8f32.p0(<8 x float> %v, ptr %p, i32 4, <8 x i1> %m)", "float", True),
        ("%x = call <8 x i16> @llvm.masked.load.v8i16.p0(ptr %p, i32 2, <8 x i1> %m, <8 x i16> zeroinitializer)",
         "i16", False),
        (_SCATTER, "double", True),
        ("%x = atomicrmw add ptr %p, i32 1 monotonic", "i32", True),
        ("%x = cmpxchg ptr %p, i64 1, i64 2 monotonic monotonic", "i64", True),
    ],
)  # fmt: skip
def test_masked_and_atomic_accesses(body: str, element: str, written: bool) -> None:
    actual = parameter(body)
    assert (str(actual.element), actual.count, actual.written, actual.is_bounded) == (element, None, written, False)


def test_floats_are_copied_as_integers() -> None:
    """The bits come from where integers are loaded, go through local memory of floats, or are copied as bytes."""
    load = "%x = call <8 x i16> @llvm.masked.load.v8i16.p0(ptr %p, i32 2, <8 x i1> %m, <8 x i16> zeroinitializer)"
    assert str(parameter(f"{_LOCAL}{load}\nstore <8 x i16> %x, ptr %local").stored_type) == "bfloat"
    store = "call void @llvm.masked.store.v8i16.p0(<8 x i16> %x, ptr %p, i32 2, <8 x i1> %m)"
    assert str(parameter(f"{_LOCAL}%x = load <8 x i16>, ptr %local\n{store}").stored_type) == "bfloat"
    copy = "call void @llvm.memcpy.p0.p0.i64(ptr {}, ptr {}, i64 16, i1 false)"
    assert str(parameter(_LOCAL + copy.format("%local", "%p")).element) == "bfloat"
    actual = parameter(_LOCAL + copy.format("%p", "%local"))
    assert (str(actual.element), actual.written) == ("bfloat", True)


def test_pointers_with_accesses_of_several_types_have_no_element() -> None:
    assert parameter("%x = load i16, ptr %p\n%y = load i32, ptr %p").element is None
    assert parameter("%x = load half, ptr %p\n%y = load bfloat, ptr %p").element is None
    mixed = parameter("%x = load float, ptr %p\n%y = load i32, ptr %p")
    assert (mixed.element, str(mixed.stored_type)) == (None, "float")
    assert str(parameter(f"{_LOCAL}%x = load i32, ptr %p\nstore i32 %x, ptr %local").element) == "i32"
