"""A large module is compiled in parts, which are linked when they are loaded."""

from __future__ import annotations

import ctypes
import os

import pytest

from tlx.llvm.codegen import emit_objects
from tlx.llvm.loader import LoadedObject
from tlx.llvm.split import split_module

_PADDING = "  ; " + 120 * "-" + "\n"
_NAMES = ("tlx.first", "tlx.nest.my-model")


def _kernel(name: str, body: str, *, large: bool = True) -> str:
    """A kernel, with comments that make it as long as those of a model."""
    return (
        f"define internal void @{name}(ptr noalias %p) noinline {{\n{body}{6000 * large * _PADDING}  ret void\n}}\n\n"
    )


def _module(*, last: str = "") -> str:
    """`user`, which calls a kernel that reads a constant and calls another kernel: it adds 3 and then doubles."""
    first = (
        "  %x = load i32, ptr %p\n  %c = load i32, ptr @tlx.constant\n  %y = call i32 @llvm.umax.i32(i32 %x, i32 0)\n"
    )
    first += "  %z = add i32 %y, %c\n  store i32 %z, ptr %p\n  call void @tlx.nest.my-model(ptr %p)\n"
    second = f"  %x = load i32, ptr %p\n  %y = mul i32 %x, 2\n  store i32 %y, ptr %p\n{last}"
    user = "define void @user(ptr %p) {\n  call void @tlx.first(ptr %p)\n  ret void\n}\n\n"
    constant = "@tlx.constant = private unnamed_addr constant i32 3\n@tlx.state = internal global i32 0\n"
    kernels = _kernel("tlx.first", first) + _kernel("tlx.nest.my-model", second)
    return f"{constant}\n{user}{kernels}declare i32 @llvm.umax.i32(i32, i32)\n"


def _called(images: list[bytes]) -> int:
    library = LoadedObject(images, ["user"])
    value = ctypes.c_int(4)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(library.address("user"))(ctypes.addressof(value))
    return value.value


@pytest.mark.parametrize("processors", [1, 2])
@pytest.mark.parametrize("level", [0, 2])
def test_parts_are_linked(level: int, processors: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def allowed(_process: int) -> set[int]:
        return set(range(processors))

    monkeypatch.setattr(os, "sched_getaffinity", allowed)
    images = emit_objects(_module(), level)
    assert len(images) == 2
    assert _called(images) == 14
    assert images == emit_objects(_module(), level)


def test_kernels_leave_declarations() -> None:
    rest, kernels = split_module(_module())
    for name in _NAMES:
        assert f"declare hidden void @{name}(ptr noalias %p) noinline" in rest
        assert f"define hidden void @{name}(" in kernels
    assert "@user" not in kernels
    assert "@tlx.state" not in kernels


def test_kernels_with_variables_stay() -> None:
    """Only one object may define a variable, and what calls such a kernel is not apart from it either."""
    text = _module(last="  store i32 1, ptr @tlx.state\n")
    assert split_module(text) == [text]
    assert _called(emit_objects(text, 2)) == 14


def test_kernels_with_constants_that_point_to_variables_stay() -> None:
    pointers = "@tlx.pointers = private constant [1 x ptr] [ptr @tlx.state]\n"
    text = pointers + _module(last="  %s = load ptr, ptr @tlx.pointers\n").replace(_PADDING, 2 * _PADDING)
    rest, kernels = split_module(text)
    assert "define hidden void @tlx.nest.my-model(" in rest
    assert "@tlx.pointers" not in kernels
    assert _called(emit_objects(text, 2)) == 14


def test_parts_have_the_named_types() -> None:
    text = "%pair = type { i32, i32 }\n" + _module(last="  %s = getelementptr %pair, ptr %p, i64 0, i32 1\n")
    assert len(split_module(text)) == 2
    assert _called(emit_objects(text, 2)) == 14


def test_small_kernels_are_called_from_parts() -> None:
    """A small kernel stays with the rest of the module, where LLVM's passes run; large ones that call it are apart."""
    small = _kernel("tlx.nest.my-model", "  store i32 5, ptr %p\n", large=False)
    text = (
        _module().split("define internal void @tlx.nest.my-model")[0] + small + "declare i32 @llvm.umax.i32(i32, i32)\n"
    )
    text = text.replace(_PADDING, 2 * _PADDING)
    rest, kernels = split_module(text)
    assert "define hidden void @tlx.nest.my-model(" in rest
    assert "declare hidden void @tlx.nest.my-model(" in kernels
    assert _called(emit_objects(text, 2)) == 5


@pytest.mark.parametrize("word", ["optnone", "; !DILocation"])
def test_other_modules_stay_whole(word: str) -> None:
    text = _module().replace("noinline", f"noinline {word}" if word == "optnone" else "noinline")
    text = text if word == "optnone" else f"{word}\n{text}"
    assert split_module(text) == [text]


def test_small_modules_stay_whole() -> None:
    text = _module().replace(_PADDING, "")
    assert split_module(text) == [text]
