"""Compiled functions on numpy arrays, and the checks at a call."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import tlx
from tlx.api import compiler
from tlx.api.arguments import ArgumentError
from tlx.api.prototypes import prototypes
from tlx.diagnostics import TlxError, UsageError
from tlx.ir.parser.module import parse, parse_fully
from tlx.llvm import loader
from tlx.llvm.codegen import CodegenError, emit_code
from tlx.llvm.loader import LinkError, LoadedObject
from tlx.target.host import cpu_flags, has_feature

PLAIN = """
@ready = global i32 0
@llvm.global_ctors = appending global [2 x { i32, ptr, ptr }] [
  { i32, ptr, ptr } { i32 65535, ptr @start, ptr null }, { i32, ptr, ptr } { i32 100, ptr @earlier, ptr null }]

define internal void @start() {
  %old = load volatile i32, ptr @ready
  %new = mul i32 %old, 2
  store volatile i32 %new, ptr @ready ; LLVM cannot run this when it compiles
  ret void
}

define internal void @earlier() {
  store volatile i32 21, ptr @ready
  ret void
}

define i32 @answer() {
  %x = load i32, ptr @ready
  ret i32 %x
}

define <4 x float> @insert(<4 x float> %v, float %s, half %h, bfloat %b) {
  %v1 = insertelement <4 x float> %v, float %s, i32 0
  %hf = fpext half %h to float
  %v2 = insertelement <4 x float> %v1, float %hf, i32 1
  %bf = fpext bfloat %b to float
  %v3 = insertelement <4 x float> %v2, float %bf, i32 2
  ret <4 x float> %v3
}

define <8 x i1> @flip(<8 x i1> %v) {
  %r = xor <8 x i1> %v, <i1 1, i1 1, i1 1, i1 1, i1 1, i1 1, i1 1, i1 1>
  ret <8 x i1> %r
}

define i1 @negative(i8 %x) {
  %r = icmp slt i8 %x, 0
  ret i1 %r
}

define half @same(half %x) {
  ret half %x
}

define void @put(ptr %p, i64 %n) {
  %q = getelementptr float, ptr %p, i64 %n
  store float 7.0, ptr %q
  ret void
}

define void @copy(ptr %p, ptr align 64 %q) {
  %v = load <9 x double>, ptr %p
  store <9 x double> %v, ptr %q
  ret void
}

define { i32, i32 } @pair() {
  ret { i32, i32 } zeroinitializer
}

define <16 x float> @"a wide\\21"(<16 x float> %v) "target-features"="+sse2" {
  ret <16 x float> %v
}
"""
GEMM = """
define void @gemm(ptr noalias %a, ptr noalias %b, ptr noalias %c) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 3, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> <i32 0, i32 8>)
  %y = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 4, i32 2>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %z = call <6 x float> @llvm.tensor.matmul(token %x, token %y)
  %t = call token @llvm.tensor.typeinfo(<6 x float> %z, <2 x i32> <i32 3, i32 2>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
"""  # noqa: E501


@pytest.fixture(scope="module")
def plain() -> compiler.CompiledModule:
    return tlx.compile(PLAIN)


def test_constructors_have_run(plain: compiler.CompiledModule) -> None:
    assert plain.answer() == 42


def test_values_that_go_through_memory(plain: compiler.CompiledModule) -> None:
    vector = np.arange(4, dtype=np.float32)
    assert plain.insert(vector, 9, 1.5, 2.5).tolist() == [9, 1.5, 2.5, 3]
    assert plain.insert([0, 1, 2, 3], 9, 1.5, 2.5).tolist() == [9, 1.5, 2.5, 3]
    assert plain.flip([1, 0, 1, 0, 1, 0, 1, 1]).tolist() == [0, 1, 0, 1, 0, 1, 0, 0]
    assert plain.same(1.25) == 1.25


def test_scalars(plain: compiler.CompiledModule) -> None:
    assert plain.negative(-3) is True
    assert plain.negative(3) is False
    assert plain.negative(255) is True  # as unsigned as an i8


def test_names_that_python_does_not_have(plain: compiler.CompiledModule) -> None:
    vector = np.arange(16, dtype=np.float32)
    assert plain["a wide!"](vector).tolist() == vector.tolist()
    assert "put" in dir(plain)
    assert "start" not in list(plain)


def aligned(count: int, dtype: Any = np.float64) -> Any:
    raw = np.zeros(count * np.dtype(dtype).itemsize + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + count * np.dtype(dtype).itemsize].view(dtype)


def read_only(array: Any) -> Any:
    array.flags.writeable = False
    return array


WRONG: list[tuple[Callable[[compiler.CompiledModule], Any], str]] = [
    (lambda c: c.put(np.zeros(3), 1), "argument 0 (%p): expected elements of float32, got float64 array of shape (3,)"),
    (lambda c: c.put([1.0], 1), "argument 0 (%p): expected elements of float32 in a numpy array, got list [1.0]"),
    (
        lambda c: c.put(read_only(np.zeros(3, np.float32)), 1),
        "argument 0 (%p): expected a writable array, since the function stores to it, got a read-only one",
    ),
    (lambda c: c.put(np.zeros(3, np.float32), 1.5), "argument 1 (%n): expected an integer for i64, got float 1.5"),
    (
        lambda c: c.put(np.zeros(3, np.float32), 1 << 64),
        "argument 1 (%n): expected an integer of 64 bits, got 18446744073709551616",
    ),
    (lambda c: c.put(np.zeros(3, np.float32)), "@put takes 2 arguments (%p, %n), got 1"),
    (
        lambda c: c.copy(np.zeros((2, 2)), aligned(9)),
        "argument 0 (%p): expected 9 elements of float64, got float64 array of shape (2, 2)",
    ),
    (
        lambda c: c.copy(np.zeros((9, 9))[:, 0], aligned(9)),
        "argument 0 (%p): expected a C-contiguous array, got float64 array of shape (9,) and strides (72,)",
    ),
    (
        lambda c: c.copy(np.zeros(9), aligned(10)[1:]),
        "argument 1 (%q): expected an array aligned to 64 bytes, got one that is not",
    ),
    (
        lambda c: c.insert([1, 2, 3], 1, 1, 1),
        "argument 0 (%v): expected 4 elements of float32, got float32 array of shape (3,)",
    ),
    (lambda c: c.insert("abcd", 1, 1, 1), "argument 0 (%v): expected 4 elements of float32, got str 'abcd'"),
    (lambda c: c.insert([1, 2, 3, 4], "1", 1, 1), "argument 1 (%s): expected a number for float, got str '1'"),
]


@pytest.mark.parametrize(("call", "said"), WRONG)
def test_wrong_arguments(
    plain: compiler.CompiledModule, call: Callable[[compiler.CompiledModule], Any], said: str
) -> None:
    with pytest.raises(ArgumentError) as error:
        call(plain)
    assert error.value.message == said
    assert isinstance(error.value, TypeError)


def test_unknown_functions(plain: compiler.CompiledModule) -> None:
    with pytest.raises(AttributeError, match="the module defines no function @nope; it defines @answer, "):
        plain.nope  # noqa: B018
    with pytest.raises(AttributeError, match=r"@pair passes \{ i32, i32 \} by value"):
        plain.pair  # noqa: B018
    with pytest.raises(UsageError, match="name the function to call: one of @answer, "):
        plain()
    with pytest.raises(UsageError, match="the module defines no function @nope"):
        tlx.compile(PLAIN, entry="nope")


def test_an_entry_is_called(tmp_path: Path) -> None:
    assert tlx.compile(PLAIN, entry="answer")() == 42
    path = tmp_path / "one.ll"
    path.write_text("define i32 @one() {\n  ret i32 1\n}\n")
    assert tlx.compile(path)() == 1
    assert tlx.compile(str(path))() == 1


def test_missing_symbols_are_named() -> None:
    with pytest.raises(
        LinkError, match="the module calls functions that are not in this process: nowhere; name the shared"
    ):
        tlx.compile("declare void @nowhere()\ndefine void @f() {\n  call void @nowhere()\n  ret void\n}\n")
    with pytest.raises(UsageError, match=r"could not load library 'nowhere\.so'"):
        tlx.compile(PLAIN, libraries=["nowhere.so"])


def test_weak_references_that_nothing_defines_are_null() -> None:
    """`if (hook) hook();` in C, with a weak `hook`: clang before version 19 compares in a constant expression."""
    text = """
@nowhere = extern_weak global i8
define i32 @f() {
  %r = select i1 icmp eq (ptr @nowhere, ptr null), i32 1, i32 zext (i1 icmp eq (ptr @nowhere, ptr null) to i32)
  ret i32 %r
}
"""
    assert tlx.compile(text).f() == 1
    assert tlx.Machine(tlx.parse(text, "f.ll")).call("f") == 1


def test_a_crash_of_the_code_generator_is_an_error() -> None:
    text = (
        "define i32 @f() {\n  %x = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n  ret i32 %x\n}\n"
        "declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n"
    )
    with pytest.raises(CodegenError, match=r"(?s)LLVM died of SIGABRT.*Cannot select"):
        emit_code(text, "obj", triple="x86_64-unknown-linux-gnu")
    with pytest.raises(UsageError, match="levels are 0 to 3"):
        emit_code(text, "obj", 4)


@cache
def _runtime() -> LoadedObject:
    """The runtime functions, registered with LLVM as the front end for Numba does; they stay loaded."""
    library = LoadedObject(loader.runtime_object(), loader.RUNTIME_FUNCTIONS)
    binding: Any = import_module("llvmlite.binding")
    for name in loader.RUNTIME_FUNCTIONS:
        binding.add_symbol(name, library.address(name))
    return library


def test_conversions_to_bfloat_round_to_nearest_even() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    import ctypes

    library = _runtime()
    random = np.random.default_rng(1)
    bits = random.integers(0, 1 << 64, 20_000, dtype=np.uint64)
    values = np.concatenate([bits.view(np.float64), random.normal(size=20_000), np.array([0.0, -0.0, np.inf, -np.inf])])
    values = values[~np.isnan(values)]
    with np.errstate(over="ignore"):
        singles = np.concatenate([bits.view(np.float32), values.astype(np.float32)])
    for name, ctype, numbers in (
        ("__truncsfbf2", ctypes.c_float, singles),
        ("__truncdfbf2", ctypes.c_double, values),
    ):
        numbers = numbers[~np.isnan(numbers)]
        text = (
            f"define void @f(ptr %p, ptr %q, i64 %n) {{\nentry:\n  br label %l\nl:\n"
            f"  %i = phi i64 [ 0, %entry ], [ %j, %l ]\n  %s = getelementptr T, ptr %p, i64 %i\n"
            f"  %x = load T, ptr %s\n  %b = call bfloat @{name}(T %x)\n  %d = getelementptr bfloat, ptr %q, i64 %i\n"
            "  store bfloat %b, ptr %d\n  %j = add i64 %i, 1\n  %c = icmp eq i64 %j, %n\n"
            f"  br i1 %c, label %e, label %l\ne:\n  ret void\n}}\ndeclare bfloat @{name}(T)\n"
        )
        scalar = "float" if ctype is ctypes.c_float else "double"
        got = np.zeros(len(numbers), ml_dtypes.bfloat16)
        tlx.compile(text.replace("T", scalar)).f(numbers, got, len(numbers))
        with np.errstate(over="ignore"):
            expected = _to_bfloat(numbers, ml_dtypes.bfloat16)
        np.testing.assert_array_equal(got.view(np.uint16), expected)
        assert library.address(name)


def _to_bfloat(numbers: Any, bfloat: Any) -> Any:
    """Bits of the nearest bfloat; through a float that is rounded to odd, for numpy would round twice."""
    near = numbers.astype(np.float32)
    bits = near.view(np.uint32).copy()
    over = np.abs(near.astype(np.float64)) > np.abs(numbers)
    bits = (bits - over) | (near.astype(np.float64) != numbers)
    return bits.astype(np.uint32).view(np.float32).astype(bfloat).view(np.uint16)


def test_element_types_of_pointers_follow_from_tensors() -> None:
    a, b, c = prototypes(parse(GEMM))["gemm"].parameters
    assert [str(p.element) for p in (a, b, c)] == ["float"] * 3
    assert [p.count for p in (a, b, c)] == [20, 8, 6]
    assert [p.written for p in (a, b, c)] == [False, False, True]


def test_element_types_of_typed_pointers() -> None:
    text = "define void @f(<9 x half>* %p, [2 x [3 x i16]]* %q, i8* %r, float* %s) {\n  ret void\n}\n"
    actual = prototypes(parse_fully(text))["f"].parameters
    assert [str(p.element) for p in actual] == ["half", "i16", "None", "float"]
    assert [p.count for p in actual] == [9, 6, None, None]


def test_a_matmul_runs() -> None:
    random = np.random.default_rng(0)
    a = random.normal(size=(3, 8)).astype(np.float32)
    b = random.normal(size=(4, 2)).astype(np.float32)
    c = np.zeros((3, 2), np.float32)
    module = parse(GEMM, "gemm.ll")
    tlx.compile(module)(a, b, c)
    np.testing.assert_allclose(c, a[:, :4] @ b, rtol=1e-5)
    assert str(module) == GEMM
    with pytest.raises(ArgumentError, match=r"argument 2 \(%c\): expected 6 elements of float32, got float64 array"):
        tlx.compile(module)(a, b, np.zeros((3, 2)))


def test_errors_in_the_module_are_raised() -> None:
    with pytest.raises(TlxError, match=r"expected 6 elements for shape 3x2|inner extents"):
        tlx.compile(GEMM.replace("i32 4, i32 2", "i32 5, i32 2"))


def test_other_languages_are_reported(tmp_path: Path) -> None:
    text = "func @k(%a: f64, %A: memref<f64>) { store %a, %A[] }"
    old = "func @k(%a: f64, %A: memref<f64>) { store %a, %A[] : memref<f64> }"
    path = tmp_path / "k.ir"
    path.write_text(old)
    compiled = [
        tlx.compile(text, language="tl"),
        tlx.compile(old, language="tl", std="v1"),
        tlx.compile(path, std="v1"),
    ]
    for functions in compiled:
        memory = np.zeros(())
        functions.k(2.0, memory, 1, 1, 1)
        assert memory == 2.0
    with pytest.raises(UsageError, match="this is the tensor language, not LLVM IR"):
        tlx.compile(text)
    with pytest.raises(UsageError, match="a module is LLVM IR"):
        tlx.compile(tlx.parse("define void @f() {\n  ret void\n}\n"), language="tl")


PASSED = """
%S = type { i8, double }

define void @square(ptr byval(<4 x float>) %x, ptr noalias %c) {
  %t = call token @llvm.tensor.typeinfo(ptr byval(<4 x float>) %x, DIMS, <2 x i32> zeroinitializer)
  %p = call <4 x float> @llvm.tensor.matmul(token %t, token %t)
  %u = call token @llvm.tensor.typeinfo(<4 x float> %p, DIMS, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %u, <2 x i32> zeroinitializer)
  store float 9.0, ptr %x
  ret void
}

define void @widest(ptr byval(<16 x float>) align 64 %x, ptr sret(<16 x float>) %r) {
  %v = load <16 x float>, ptr %x
  store <16 x float> %v, ptr %r
  store float 9.0, ptr %x
  ret void
}

define void @padded(ptr byval(<6400 x float>) %x, ptr %r) {
  %e = getelementptr float, ptr %x, i64 6399
  %v = load float, ptr %e
  store float %v, ptr %r
  ret void
}

define swiftcc double @field(ptr byval(%S) %s, ptr swiftself %p, ptr swiftasync %q) {
  %f = getelementptr %S, ptr %s, i32 0, i32 1
  %x = load double, ptr %f
  ret double %x
}

define zeroext i8 @extended(i8 zeroext %x, i8 signext %y, ptr %r) {
  %z = zext i8 %x to i64
  store i64 %z, ptr %r
  %s = sext i8 %y to i64
  %q = getelementptr i64, ptr %r, i64 1
  store i64 %s, ptr %q
  ret i8 %x
}

define void @variadic(i32 %n, ptr %r, ...) {
  store i32 %n, ptr %r
  ret void
}

define cc 8 <8 x float> @numbered(<8 x float> %v) {
  ret <8 x float> %v
}
""".replace("DIMS", "<2 x i32> <i32 2, i32 2>, <2 x i32> <i32 0, i32 1>")


@pytest.mark.parametrize("level", [0, 2])
@pytest.mark.parametrize("target", ["generic", "native"])
def test_arguments_follow_their_attributes(target: str, level: int) -> None:
    compiled = tlx.compile(PASSED, target, opt_level=level)
    x, c = np.arange(4, dtype=np.float32).reshape(2, 2), np.zeros((2, 2), np.float32)
    compiled.square(read_only(x), c)
    assert (c.tolist(), x.tolist()) == ([[2, 3], [6, 11]], [[0, 1], [2, 3]])
    for start in range(4):  # none of which may be aligned to the 64 bytes of a <16 x float>
        wide, result = np.arange(20, dtype=np.float32)[start:], np.zeros(20, np.float32)[start:]
        compiled.widest(wide, result)
        assert result.tolist() == [*range(start, start + 16), *[0] * (4 - start)]
        assert wide[0] == start
    last = np.zeros(1, np.float32)
    compiled.padded(np.arange(6400, dtype=np.float32), last)
    assert last[0] == 6399
    assert compiled.field(np.array([0, 2.5]), last, last) == 2.5
    extended = np.zeros(2, np.int64)
    assert compiled.extended(200, 200, extended) & 0xFF == 200
    assert extended.tolist() == [200, 200 - 256]
    number = np.zeros(1, np.int32)
    compiled.variadic(7, number)
    assert number[0] == 7
    assert compiled.numbered(range(8)).tolist() == list(range(8))


UNCALLABLE: list[tuple[str, str]] = [
    ("ghccc void @f(ptr %x)", "@f has the calling convention ghccc, which Python cannot call"),
    ("cc 10 void @f(ptr %x)", "@f has the calling convention cc 10, which Python cannot call"),
    ("amdgpu_gfx void @f(ptr %x)", "@f has the calling convention amdgpu_gfx, which Python cannot call"),
    ("void @f(ptr inalloca(i64) %x)", "@f takes %x by 'inalloca', which has no counterpart in Python; use a pointer"),
    ("void @f(ptr preallocated(i64) %x)", "@f takes %x by 'preallocated', which"),
    ("swiftcc void @f(ptr swifterror %x)", "@f takes %x by 'swifterror', which"),
    (
        "void @f(ptr addrspace(256) %x)",
        "@f takes ptr addrspace(256) %x, in an address space that numpy arrays cannot be in",
    ),
    ("void @f(ptr byval([9000000 x i8]) %x)", "@f takes 9000008 bytes by value on the stack, but only 1048576"),
    (
        "void @f({ i32, float } %x)",
        "@f passes { i32, float } by value, which has no counterpart in numpy; use a pointer",
    ),
    ("void @f(i128 %x)", "@f passes i128 by value, which has no counterpart in numpy; use a pointer"),
    ("tailcc void @f(<4 x float> %x)", "@f takes %x by value in tailcc, which LLVM (19 to 22) miscompiles"),
    ('void @f() "no_callee_saved_registers"', "@f preserves no registers ('no_callee_saved_registers'), but"),
]


@pytest.mark.parametrize(("head", "said"), UNCALLABLE)
def test_functions_that_python_cannot_call(head: str, said: str) -> None:
    compiled = tlx.compile(f"define {head} {{\n  ret void\n}}\n")
    with pytest.raises(UsageError) as refusal:
        compiled["f"]
    assert refusal.value.message.startswith(said)
    assert str(refusal.value).startswith(f"<string>:1:1: error: {said}")
    with pytest.raises(UsageError):
        compiled()


@pytest.mark.parametrize("convention", ["coldcc", "preserve_allcc"])
def test_results_that_llvm_miscompiles(convention: str) -> None:
    compiled = tlx.compile(f"define {convention} float @f(float %x) {{\n  ret float %x\n}}\n")
    with pytest.raises(UsageError, match=f"@f returns float in {convention}, which LLVM"):
        compiled["f"]


def test_sizes_of_pointer_arguments_are_checked() -> None:
    compiled = tlx.compile(
        "define void @f(ptr byval({ i8, double }) %x, ptr sret([3 x i16]) %y, ptr dereferenceable(64) %z) {\n"
        "  ret void\n}\n"
    )
    eight = np.zeros(8)
    for arguments, said in (
        (
            (eight[:1], eight.view(np.int16), eight),
            "argument 0 (%x): expected an array of 16 bytes, got 8: float64 array",
        ),
        ((eight, np.zeros(2, np.int16), eight), "argument 1 (%y): expected 3 elements of int16, got int16 array"),
        (
            (eight, eight.view(np.int16), eight[:7]),
            "argument 2 (%z): expected an array of 64 bytes, got 56: float64 array",
        ),
    ):
        with pytest.raises(ArgumentError) as error:
            compiled.f(*arguments)
        assert error.value.message.startswith(said)


def test_names_that_need_quotes() -> None:
    text = (
        'define fastcc i32 @"\\01plain"() {\n  ret i32 1\n}\n'
        'define i32 @"\\C3\\A9"() {\n  ret i32 2\n}\n'
        "define i32 @tlx.call.f() {\n  ret i32 3\n}\n"
        "define fastcc i32 @f() {\n  ret i32 4\n}\n"
    )
    compiled = tlx.compile(text)
    assert {name: compiled[name]() for name in compiled} == {"\x01plain": 1, "\u00e9": 2, "tlx.call.f": 3, "f": 4}


def test_modules_of_other_machines_are_refused() -> None:
    for triple in ("x86_64-pc-windows-msvc", "i386-unknown-linux-gnu", "riscv64-unknown-linux-gnu"):
        with pytest.raises(LinkError, match="the module's target triple is not that of this machine"):
            tlx.compile(f'target triple = "{triple}"\ndefine i32 @f() {{\n  ret i32 1\n}}\n', "generic")


def test_arrays_of_the_other_byte_order_are_refused() -> None:
    compiled = tlx.compile("define void @f(ptr %p) {\n  store i32 1, ptr %p\n  ret void\n}\n")
    with pytest.raises(ArgumentError, match="expected 1 element of int32, got >i4 array"):
        compiled.f(np.zeros(1, ">i4"))
    unsigned = np.zeros(1, np.uint32)
    compiled.f(unsigned)
    assert unsigned[0] == 1


def test_the_fast_check_accepts_nothing_that_the_full_check_refuses() -> None:
    """Arrays of every kind, to a parameter that is as particular as can be."""
    compiled = tlx.compile(
        "define void @f(ptr align 16 %p) {\n  store <4 x float> zeroinitializer, ptr %p\n  ret void\n}\n"
    )
    whole = aligned(64, np.float32)
    fits = [whole, whole[:4], whole[4:8], whole.reshape(8, 8), whole.view(np.recarray)]
    wrong = [
        whole[:3],
        whole[1:9],
        whole[::2],
        whole.reshape(8, 8).T,
        whole.view(np.int32),
        whole.astype(">f4"),
        read_only(whole.copy()),
        whole.view(np.uint8)[1:65].view(np.float32),
        whole[:0],
        np.float32(1),
    ]
    for array in fits:
        compiled.f(array)
    for array in wrong:
        with pytest.raises(ArgumentError):
            compiled.f(array)


def test_wrappers_have_the_features_of_functions_without_tensors() -> None:
    if not has_feature("avx", cpu_flags()):
        pytest.skip("AVX passes eight floats in one register; this machine has none")
    text = """define <8 x float> @f(<8 x float> %v, <8 x float> %w) "target-features"="+avx" {
  ret <8 x float> %w
}
"""
    assert tlx.compile(text, "generic", opt_level=0).f(range(8), range(8, 16)).tolist() == list(range(8, 16))


def test_source_that_is_none() -> None:
    with pytest.raises(UsageError, match="takes a module, a text or a path, got int"):
        tlx.compile(cast("str", 3))


def test_functions_have_names_and_are_shared_by_copies() -> None:
    compiled = tlx.compile(PLAIN)
    function = compiled.answer
    assert function.__name__ == "answer"
    assert "@answer" in repr(compiled)
    assert copy.copy(function) is function
    holder = copy.deepcopy({"module": compiled, "function": function})
    assert holder["module"] is compiled
    assert holder["function"]() == 42
    for item in (compiled, function):
        with pytest.raises(TypeError, match=r"cannot pickle <compiled .*machine code in this process: compile"):
            pickle.dumps(item)


def test_stages_before_the_last_are_not_compiled() -> None:
    with pytest.raises(UsageError, match=r"stop_after='to-2d' leaves tensor operations.*tlx\.lower_text returns"):
        tlx.compile(PLAIN, stop_after="to-2d")


def test_memory_without_the_alignment_of_its_elements_is_refused() -> None:
    unaligned = np.zeros(17, np.uint8)[1:].view(np.float32)
    function = tlx.compile("define void @f(ptr %x) {\n  store float 1.0, ptr %x, align 1\n  ret void\n}\n").f
    with pytest.raises(ArgumentError, match="expected an array aligned to 4 bytes, got one that is not"):
        function(unaligned)
