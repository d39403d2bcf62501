"""Kernels written in Python: their texts, and errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tlx.diagnostics import TlxError, UsageError
from tlx.frontends import tensor_language as tl
from tlx.frontends.tensor_language.operations import OPERATIONS
from tlx.frontends.tensor_language.operations.core import spelling
from tlx.frontends.tensor_language.syntax.nodes import Instruction, Program, Region
from tlx.frontends.tensor_language.types import F32, MemrefType

MATRIX = "coopmatrix<f32x16x16,matrix_acc>"


def body(kernel: tl.Kernel) -> str:
    """The instructions of a kernel as text, without indentation of the function."""
    lines = tl.text(kernel).splitlines()
    start = next(k for k, line in enumerate(lines) if line.endswith("{"))
    return "\n".join(line.removeprefix("    ") for line in lines[start + 1 : -1] if line.strip())


def every(region: Region) -> Iterator[Instruction]:
    for instruction in region.instructions:
        yield instruction
        for inner in instruction.regions():
            yield from every(inner)


def everything() -> tl.Kernel:
    """A kernel with every instruction of the language in it."""
    types: dict[str, Any] = {
        "A": "memref<f32x32x32>",
        "B": "memref<f32x32x32>",
        "x": "memref<f32x32>",
        "y": "memref<f32x32>",
    }
    more: dict[str, Any] = {
        "s": "memref<f32>",
        "G": "group<memref<f32x32x32>x?>",
        "f": "f32",
        "i": "i32",
        "n": "index",
        "z": "c32",
    }
    with tl.kernel("everything", subgroup_size=16, work_group_size=[32, 1], **types, **more) as k:
        write_blas(k)
        write_arithmetic(k)
        write_memory(k)
        with k.parallel():
            write_work_items(k)
            write_matrices(k)
        with k.foreach(0, k.n) as i:
            k.store(k.f, k.x, i)
        with k.foreach_tile((0, 0), (k.n, 32), (16, 16)) as tile:
            k.store(1.0, k.A, tile.offset[0], tile.size[1])
    return k


def write_blas(k: tl.Kernel) -> None:
    k.axpby(k.f, k.A, 0.0, k.B, transpose="t")
    k.cumsum(1.0, k.A, 1, 0.0, k.B)
    k.sum(1.0, k.A, 1.0, k.x, transpose="t", atomic=True)
    k.gemm(1.0, k.A, k["A"], k.f, k.B, transpose_a="t", transpose_b="n")
    k.gemv(1.0, k.A, k.x, 0.0, k.y, transpose="t")
    k.ger(1.0, k.x, k.y, 1.0, k.A, atomic=True)
    k.hadamard(1.0, k.x, k.x, 0.0, k.y)
    k.lifetime_stop(k.alloca("memref<f32x8x8,local>", alignment=4))


def write_arithmetic(k: tl.Kernel) -> None:
    total = k.f * 2.0 + 1.0 - k.f
    total = 3.0 / (total % 2.0) + k.sqrt(2.0**total) ** 0.5 - k.tanh(total)
    total = k.max(k.min(abs(-total), 8.0), 1.0)
    for function in ("cos", "sin", "exp", "exp2", "log", "log2"):
        total = getattr(k, f"native_{function}")(getattr(k, function)(total))
    bits = ~(((k.i << 2) >> 1) & 255 | 1) ^ k.i
    same = (bits == 3) | (bits != 4) & (bits < 5)
    test = k.and_(same, k.or_(bits <= 5, k.xor(bits > 6, k.not_(bits >= 7))))
    with k.if_(test) as chosen:
        k.yield_(total, k.re(k.z))
    with k.otherwise():
        k.yield_(0.0, k.im(k.conj(k.z * 2j)))
    with k.for_(0, k.i, 2, init=chosen.results, unroll=2) as loop:
        k.yield_(loop.carried[0] + k.cast(loop.index, "f32"), loop.carried[1])
    k.store(loop.results[0], k.s)
    k.constant(True, "bool")


def write_memory(k: tl.Kernel) -> None:
    member = k.G[k.group_id("x")]
    k.associated(k.G)
    k.associated(member)
    wide = k.expand(member, 1, [4, 8])
    k.fuse(wide, 1, 2)
    k.expand(k.subview(member, (0, k.n), slice(None)), 0, [k.size(member, 0), 2])
    k.subview(member, k.size(k.G), (k.num_groups("y"), 0))
    old = k.atomic_add(1.0, member, 0, 0, scope="device", semantics="acquire_release")
    old = k.atomic_min(k.atomic_max(old, k.x, 0), k.x, 1)
    k.atomic_store(old, k.s, semantics="release")
    member[0, 1] = k.atomic_load(k.s, semantics="acquire")
    k.barrier(fence_global=True, fence_local=True)
    k.num_subgroups("x")
    k.subgroup_size()


def write_work_items(k: tl.Kernel) -> None:
    k.subgroup_id("y")
    k.subgroup_linear_id()
    value = k.subgroup_broadcast(k.cast(k.subgroup_local_id(), "f32"), 3)
    for kind in ("exclusive_scan", "inclusive_scan", "reduce"):
        for op in ("add", "max", "min"):
            value = getattr(k, f"subgroup_{kind}_{op}")(value)


def write_matrices(k: tl.Kernel) -> None:
    k.cooperative_matrix_prefetch(0, k.A, 0, 0, 16, 16)
    a = k.cooperative_matrix_load("coopmatrix<f32x16x16,matrix_a>", k.A, 0, 16)
    b = k.cooperative_matrix_load("coopmatrix<f32x16x16,matrix_b>", k.B, 0, 0, transpose="t", checked="both_checked")
    c = k.cooperative_matrix_mul_add(a, b, k.cooperative_matrix_construct(0.0, MATRIX))
    c = k.cooperative_matrix_scale(k.f, c) + 1.0
    c = k.cooperative_matrix_insert(k.cooperative_matrix_extract(c, 0) * 2.0, c, 1)
    with k.cooperative_matrix_apply(c) as entry:
        with k.if_(entry.row <= entry.column, "f32") as chosen:
            k.yield_(1.0)
        with k.otherwise():
            k.yield_(entry.value)
        k.yield_(chosen.result)
    k.cooperative_matrix_store(entry.result, k.A, 0, 0, checked="rows_checked")
    k.cooperative_matrix_store(k.cooperative_matrix_load(MATRIX, k.A, 0, 0, atomic=True), k.A, 0, 0, atomic=True)
    for op in ("add", "max", "min"):
        c = getattr(k, f"cooperative_matrix_atomic_{op}")(c, k.A, 0, 0)
        getattr(k, f"cooperative_matrix_reduce_{op}")("row", c)
        getattr(k, f"cooperative_matrix_reduce_{op}")("column", c)


def test_every_operation_has_a_method() -> None:
    written = {spelling(i) for i in every(everything().function.body)}
    assert set(OPERATIONS) - written == set()


def test_the_text_of_a_kernel_is_read_as_the_same_tree() -> None:
    k = everything()
    assert tl.parse(tl.text(k)) == tl.program(k)


def test_numbers_become_constants_of_the_type_that_is_needed() -> None:
    with tl.kernel("f", A="memref<bf16x4x4>", C="memref<f32x4x4>", i="i32") as k:
        k.gemm(2, k.A, k.A, 0, k.C)
        k.store(3, k.C, 0, k.cast(k.i + 1, "index"))
    assert body(k).splitlines() == [
        "%0 = constant 2.0 : bf16",
        "%1 = constant 0.0 : f32",
        "gemm %0, %A, %A, %1, %C",
        "%2 = constant 1 : i32",
        "%3 = add %i, %2 : i32",
        "%4 = cast %3 : index",
        "%5 = constant 3.0 : f32",
        "%6 = constant 0 : index",
        "store %5, %C[%6, %4]",
    ]


def test_equal_constants_are_made_once_where_they_are_visible() -> None:
    with tl.kernel("f", x="memref<f32x4>", c="bool") as k:
        k.x[0] = 1.0
        with k.if_(k.c):
            k.x[0] = 2.0
        with k.otherwise():
            k.x[0] = 2.0
    assert body(k).count("constant 0 ") == 1
    assert body(k).count("constant 2.0") == 2


def test_views_have_the_types_of_the_rules() -> None:
    with tl.kernel("f", A="memref<f32x32x?x8>", n="index") as k:
        views = [
            k.subview(k.A, (4, 8), slice(None), 0),
            k.subview(k.A, k.n, (k.n, k.n), (0, 0)),
            k.subview(k.A, (k.n, 4), (0, k.n), (2, 3)),
            k.expand(k.A, 0, [4, 8]),
            k.expand(k.A, 0, [k.n, 8]),
            k.expand(k.A, 1, [8, k.n]),
            k.fuse(k.A, 0, 1),
            k.fuse(k.expand(k.A, 0, [2, 4, 4]), 0, 1),
        ]
    assert [str(view.type) for view in views] == [
        "memref<f32x8x?,strided<1,32>>",
        "memref<f32x?,strided<32>>",
        "memref<f32x4x?x3,strided<1,32,?>>",
        "memref<f32x4x8x?x8>",
        "memref<f32x?x8x?x8,strided<1,?,32,?>>",
        "memref<f32x32x8x?x8>",
        "memref<f32x?x8>",
        "memref<f32x8x4x?x8>",
    ]


def test_types_may_be_objects() -> None:
    type_ = MemrefType.packed(F32, (4, None))
    with tl.kernel(
        "f", A=type_, B=(type_, {"alignment": 64, "own": [1, "x", {"y": True}]}), C="memref<f32> {alignment=8}"
    ) as k:
        pass
    head = tl.text(k).replace("\n", " ")
    assert 'B: memref<f32x4x?> {alignment=64, "own"=[1, "x", {"y"=true}]}' in " ".join(head.split())
    assert "C: memref<f32> {alignment=8}" in head
    assert tl.parse(tl.text(k)) == tl.program(k)


def test_parameters_with_names_of_methods_are_items() -> None:
    with tl.kernel("f", load="memref<f32x4>", sum="f32") as k:
        k["load"][0] = k["sum"]
    assert "store %sum, %load[%0]" in tl.text(k)
    assert {"load", "sum", "gemm"} <= set(dir(k))


def test_programs_have_several_kernels() -> None:
    with tl.kernel("f") as one, tl.kernel("g") as two:
        pass
    assert tl.program(one, two) == tl.parse("func @f() {} func @g() {}")
    with pytest.raises(tl.ProgramError, match="@f"):
        tl.program(one, one)


def _in_wrong_region(k: tl.Kernel) -> None:
    with k.parallel():
        inner = k.f + 1.0
    k.store(inner, k.x, 0)


def _otherwise_alone(k: tl.Kernel) -> None:
    with k.otherwise():
        pass


def _yields_differ(k: tl.Kernel) -> None:
    with k.if_(k.f < 1.0):
        k.yield_(k.f)
    with k.otherwise():
        pass


def _carries_another_type(k: tl.Kernel) -> None:
    with k.for_(0, 4, init=[k.f]):
        k.yield_(k.i)


def _goes_on_after_yield(k: tl.Kernel) -> None:
    with k.for_(0, 4, init=[k.f]) as loop:
        k.yield_(loop.carried[0])
        k.store(k.f, k.x, 0)


MISTAKES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "condition": (lambda k: 1 if k.f < 1.0 else 2, "%1 is known only when the kernel runs: use if_() and otherwise()"),
    "and": (lambda k: k.f < 1.0 and k.f > 0.0, "known only when the kernel runs"),
    "iteration": (lambda k: [*k.x], "%x cannot be iterated over: use for_() or foreach()"),
    "other types": (lambda k: k.f + k.i, "add needs operands of one type, got <%f: f32> and <%i: i32>: cast() one"),
    "two numbers": (lambda k: k.add(1, 2), "add of two numbers: compute it in Python"),
    "a float for an int": (lambda k: k.i + 1.5, "1.5 is not a constant of type i32"),
    "too large": (lambda k: k.i + (1 << 31), "2147483648 is not a constant of type i32"),
    "truth": (lambda k: k.f + True, "True is not a constant of type f32"),
    "text": (lambda k: k.f + "1", "add: rhs must be a value of the kernel or a number, got '1'"),
    "no value": (lambda k: k.exp(1.0), "exp: operand must be a value of the kernel, got 1.0"),
    "no memref": (lambda k: k.gemm(1.0, k.f, k.x, 0.0, k.x), "an input must be a memref, got <%f: f32>"),
    "group": (
        lambda k: k.axpby(1.0, k.G, 0.0, k.x),
        "got <%G: group<memref<f32x4>x2>>; load a member of the group first",
    ),
    "type": (lambda k: k.alloca("memref<f32x"), "'memref<f32x' is not a type: "),
    "two types": (lambda k: k.alloca("f32, %y: f32"), "'f32, %y: f32' is not a type: more follows the type"),
    "attributes": (lambda k: k.alloca("memref<f32x4,local> {alignment=4}"), "which only parameters have"),
    "no type": (lambda k: k.alloca(3), "alloca: type_ must be a type such as 'memref<f32x4x8>', got 3"),
    "slices": (lambda k: k.subview(k.x, 0, 0), "subview of <%x: memref<f32x4>>: expected a slice each mode, 1, got 2"),
    "slice": (lambda k: k.subview(k.x, slice(0, 2)), "write (offset, size) for a part of a mode"),
    "mode": (lambda k: k.expand(k.x, 1, [2, 2]), "has 1 modes, counted from 0; got mode 1"),
    "fuse": (lambda k: k.fuse(k.x, 0, 0), "expected modes first < last, got 0 and 0"),
    "component": (lambda k: k.group_id("w"), "group_id: component must be 'x', 'y' or 'z', got 'w'"),
    "transpose": (lambda k: k.sum(1.0, k.x, 0.0, k.x, transpose="c"), "sum: transpose must be 'n' or 't', got 'c'"),
    "region": (_in_wrong_region, "%1 was made in a region that has ended: yield it from there"),
    "otherwise": (_otherwise_alone, "otherwise() must come right after the block of if_()"),
    "yields": (_yields_differ, "if_() yields f32, otherwise() yields nothing"),
    "carried": (_carries_another_type, "the loop carries f32, but yields i32"),
    "after yield": (_goes_on_after_yield, "nothing may follow yield_() in a region"),
    "unknown type": (lambda k: k.for_(0, 4, init=[1.0]).__enter__(), "write constant(1.0, type)"),
    "ranges": (
        lambda k: k.foreach((0, 0), (1,)).__enter__(),
        "expected as many lower bounds as upper ones, got 2 and 1",
    ),
    "tile": (lambda k: k.foreach_tile((0, 0), (1, 1), 16).__enter__(), "expected a tile shape of 2 modes, got 1"),
    "no matrix": (lambda k: k.cooperative_matrix_scale(1.0, k.f), "expected a cooperative matrix, got <%f: f32>"),
    "attribute": (lambda _: tl.kernel("g", attributes={"x": 1.5}), "not 1.5"),
    "name": (lambda _: tl.kernel("a-b"), "'a-b' is not a name: a letter, then letters, digits and underscores"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_reported_at_the_call(name: str) -> None:
    mistake, message = MISTAKES[name]
    k: Any = tl.kernel("f", f="f32", i="i32", x="memref<f32x4>", G="group<memref<f32x4>x2>")
    with pytest.raises(UsageError) as caught:
        mistake(k)
    assert message in caught.value.message
    assert Path(__file__).name in str(caught.value) or name == "name"


def test_values_of_another_kernel_are_refused() -> None:
    with (
        tl.kernel("f", a="f32") as one,
        tl.kernel("g", b="f32") as two,
        pytest.raises(UsageError, match="%a belongs to another kernel, @f"),
    ):
        two.exp(one.a)


def test_unknown_parameters_are_attribute_errors() -> None:
    k = tl.kernel("f", a="f32")
    with pytest.raises(AttributeError, match="no parameter and the language no instruction b; it has a"):
        _ = k.b
    with pytest.raises(AttributeError, match="no instruction gem; did you mean 'gemm'"):
        _ = k.gem
    assert not hasattr(k, "_own")


def test_rules_about_operands_are_checked_at_the_call() -> None:
    k = tl.kernel("f", A="memref<f32x4x4>", B="memref<f32x4x4>", x="memref<f32x3>")
    with pytest.raises(tl.ProgramError) as caught:
        k.gemv(1.0, k.A, k.x, 0.0, k.subview(k.A, slice(None), 0))
    text = str(caught.value)
    assert "gemv: columns(op1(%A)) = 4 but rows(%x) = 3" in text
    assert "\n        k.gemv(1.0, k.A, k.x, 0.0, k.subview(k.A, slice(None), 0))\n        ^~~~~~~~~" in text
    assert "note: declared here" in text
    k.gemm(1.0, k.A, k.A, 0.0, k.B)
    assert "gemv" not in tl.text(k)


def test_rules_about_regions_are_checked_at_the_end() -> None:
    k = tl.kernel("f", A="memref<f32x4x4>", B="memref<f32x4x4>")
    k.subgroup_local_id()
    with k.parallel():
        k.gemm(1.0, k.A, k.A, 0.0, k.B)
    with pytest.raises(tl.ProgramError) as caught:
        tl.program(k)
    assert len(caught.value.errors) == 2
    assert "\n        k.gemm(1.0, k.A, k.A, 0.0, k.B)\n        ^~~~~~~~~" in str(caught.value)
    assert all(e.span is not None and e.span.source.name.endswith(Path(__file__).name) for e in caught.value.errors)


def test_an_exception_in_a_block_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError), tl.kernel("f", A="memref<f32x4>") as k, k.parallel():
        _ = 1 // 0


def test_programs_without_a_source_have_no_place() -> None:
    names: dict[str, Any] = {"tl": tl}
    with pytest.raises(TlxError) as caught:
        exec("k = tl.kernel('f', a='f32')\nk.a + 1j", names)
    assert caught.value.span is None


def test_trees_are_programs() -> None:
    with tl.kernel("f") as k:
        pass
    assert isinstance(tl.program(k), Program)
