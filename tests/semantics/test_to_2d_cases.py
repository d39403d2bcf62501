"""Stage 1 on cases that random programs seldom meet: captured addresses, nested loops, the heap, odd control flow."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
import pytest

from tests.semantics.to_2d_contract import check_contract, poisoned
from tlx.diagnostics import LoweringError
from tlx.evaluate import Machine
from tlx.ir.canonical import canonicalise
from tlx.ir.module import Module
from tlx.ir.reader import parse
from tlx.judge import check_module
from tlx.lower.stage import Context
from tlx.lower.to_2d import to_2d
from tlx.numpy_types import Array
from tlx.pipeline import lower_text
from tlx.target import find


def lower(text: str) -> tuple[Module, Context]:
    module = parse(text, "case.ll")
    canonicalise(module)
    context = Context(find("generic"))
    to_2d(module, context)
    check_module(module, "to-2d")
    check_contract(module)
    return module, context


def same(text: str, *arguments: Any) -> tuple[str, Context]:
    """Assert that a call does the same before and after; gives the lowered text."""
    module, context = lower(text)
    lowered = str(module)
    results: list[tuple[list[Any], Any]] = []
    for version in (parse(text), parse(lowered), poisoned(parse(lowered))):
        copies: list[Any] = [copy(a) for a in arguments]
        results.append((copies, Machine(version).call("f", *copies)))
    for copies, result in results[1:]:
        for one, other in zip((*results[0][0], results[0][1]), (*copies, result), strict=True):
            np.testing.assert_array_equal(np.asarray(one), np.asarray(other))
    return lowered, context


def numbers(*shape: int, dtype: Any = np.float32) -> Array:
    return (np.arange(np.prod(shape)) % 7 - 3).astype(dtype).reshape(shape)


DIMS = "<2 x i32> <i32 4, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer"
DENSE = "<2 x i32> zeroinitializer"


def load(name: str, pointer: str) -> str:
    return f"  %{name} = call token @llvm.tensor.load(ptr elementtype(float) {pointer}, {DIMS}, {DENSE})\n"


def store(pointer: str, value: str) -> str:
    return (
        f"  {value}.t = call token @llvm.tensor.typeinfo(<16 x float> {value}, {DIMS})\n"
        f"  call void @llvm.tensor.store(ptr {pointer}, token {value}.t, {DENSE})\n"
    )


def product(name: str, lhs: str, rhs: str) -> str:
    return f"  %{name} = call <16 x float> @llvm.tensor.matmul(token %{lhs}, token %{rhs})\n"


# What is read in place -----------------------------------------------------------------------------------------------

LOCAL = f"""
@slot = global ptr null
define void @f(ptr noalias %a, ptr noalias %c) {{
  %local = alloca [16 x float], align 64
  call void @llvm.memcpy.p0.p0.i64(ptr %local, ptr %a, i64 64, i1 false)
  LEAK
{load("x", "%local")}{load("y", "%a")}
  WRITE
{product("m", "x", "y")}{store("%c", "%m")}
  ret void
}}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.lifetime.end.p0(i64, ptr)
define void @touch() {{
  %p = load ptr, ptr @slot
  %none = icmp eq ptr %p, null
  br i1 %none, label %done, label %write
write:
  store float 5.0, ptr %p
  br label %done
done:
  ret void
}}
define i32 @pure(ptr %p) readonly {{
  ret i32 0
}}
define void @writes(ptr nocapture %p) {{
  store float 7.0, ptr %p
  ret void
}}
"""
PUT = "store ptr %local, ptr @slot"


@pytest.mark.parametrize(
    ("leak", "write", "copies"),
    [
        (PUT, "call void @touch()", True),
        (PUT, "store float 9.0, ptr @slot", False),
        ("", "call void @touch()", False),
        (PUT, "%q = load ptr, ptr @slot\n  store float 9.0, ptr %q", True),
        ("", "%q = load ptr, ptr @slot", False),
        ("", "call void @writes(ptr %local)", True),
        ("", "%z = call i32 @pure(ptr %local)", False),
        ("", "store float 9.0, ptr %local", True),
        ("", "%q = getelementptr float, ptr %local, i64 15\n  store float 9.0, ptr %q", True),
        ("", "%q = select i1 true, ptr %local, ptr %a\n  store float 9.0, ptr %q", True),
        ("", "call void @llvm.memcpy.p0.p0.i64(ptr %c, ptr %local, i64 64, i1 false)", False),
        ("", "call void @llvm.memcpy.p0.p0.i64(ptr %local, ptr %c, i64 64, i1 false)", True),
    ],
)
def test_operand_is_read_in_place_or_copied(leak: str, write: str, copies: bool) -> None:
    text = LOCAL.replace("LEAK", leak).replace("WRITE", write)
    lowered, _ = same(text, numbers(4, 4), numbers(4, 4))
    assert ("%x.copy.buf" in lowered) == copies


def test_dead_memory_is_copied_in_time() -> None:
    write = "call void @llvm.lifetime.end.p0(i64 64, ptr %local)"
    text = LOCAL.replace("LEAK", "").replace("WRITE", write)
    module, _ = lower(text)
    assert "%x.copy.buf" in str(module)


@pytest.mark.parametrize(
    ("offset", "copies"),
    [(64, False), (60, True), (-4, False), (0, True)],
)
def test_offsets_tell_ranges_apart(offset: int, copies: bool) -> None:
    text = f"""
define void @f(ptr %a, ptr noalias %c) {{
  %p = getelementptr i8, ptr %a, i64 16
  %q = getelementptr i8, ptr %p, i64 {offset}
{load("x", "%p")}
  store float 9.0, ptr %q
{product("m", "x", "x")}{store("%c", "%m")}
  ret void
}}
"""
    lowered, _ = same(text, numbers(40), numbers(4, 4))
    assert ("%x.copy.buf" in lowered) == copies


@pytest.mark.parametrize(
    ("definition", "copies"),
    [("@h = global [16 x float] zeroinitializer", False), ("@h = alias [16 x float], ptr @g", True)],
)
def test_an_alias_is_no_object_of_its_own(definition: str, copies: bool) -> None:
    text = f"""
@g = global [16 x float] zeroinitializer
{definition}
define void @f(ptr noalias %c) {{
{load("x", "@g")}
  store float 9.0, ptr @h
{product("m", "x", "x")}{store("%c", "%m")}
  ret void
}}
"""
    module, _ = lower(text)
    assert ("%x.copy.buf" in str(module)) == copies


# Where results go ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "direct"),
    [
        ("ptr noalias %a, ptr noalias %c", True),
        ("ptr %a, ptr noalias %c", True),
        ("ptr byval([16 x float]) %a, ptr %c", True),
        ("ptr %a, ptr %c", False),
        ("ptr readonly %a, ptr sret([16 x float]) %c", False),
    ],
)
def test_result_is_written_in_place_or_where_the_run_decides(parameters: str, direct: bool) -> None:
    body = f"{load('x', '%a')}{product('m', 'x', 'x')}{store('%c', '%m')}"
    module, context = lower(f"define void @f({parameters}) {{\n{body}  ret void\n}}\n")
    assert "%m.buf" not in str(module)
    assert ("%apart.buf" not in str(module)) == direct
    checked = "%c may alias %a: checked when the program runs; a temporary of 64 bytes is used if they overlap"
    assert [r.message for r in context.remarks] == ([] if direct else [checked])


@pytest.mark.parametrize("offset", [0, 1, 15, 16, 17])
@pytest.mark.parametrize("operation", ["matmul", "pointwise"])
def test_overlap_is_seen_when_the_program_runs(offset: int, operation: str) -> None:
    body = product("m", "x", "x")
    if operation == "pointwise":
        body = "  %v = call <16 x float> @llvm.tensor.tovector(token %x)\n  %m = fadd <16 x float> %v, %v\n"
    text = f"""
define void @f(ptr %a, i64 %n) {{
  %c = getelementptr float, ptr %a, i64 %n
  call void @g(ptr %a, ptr %c)
  call void @g(ptr %c, ptr %a)
  ret void
}}
define void @g(ptr %a, ptr %c) {{
{load("x", "%a")}{body}{store("%c", "%m")}  ret void
}}
"""
    lowered, _ = same(text, numbers(40), offset)
    assert "%apart.buf" in lowered


def test_overlapping_result_of_a_batch() -> None:
    body = f"{load('x', '%a')}{product('m', 'x', 'x')}{store('%c', '%m')}"
    text = f"define void @f(ptr %a) {{\n  %c = getelementptr float, ptr %a, i64 3\n{body}  ret void\n}}\n"
    lowered, _ = same(text, numbers(20))
    assert "%apart.buf" in lowered


def test_accumulator_in_place() -> None:
    text = f"""
define void @f(ptr %c, ptr noalias %a) {{
{load("acc", "%c")}{load("x", "%a")}
  %s = call <16 x float> @llvm.tensor.smma(token %acc, token %x, token %x)
{store("%c", "%s")}
  ret void
}}
"""
    lowered, context = same(text, numbers(4, 4), numbers(4, 4))
    assert "alloca" not in lowered
    assert not list(context.remarks)


def test_accumulator_of_zeros() -> None:
    text = f"""
define void @f(ptr noalias %c, ptr noalias %a) {{
  %zero = call token @llvm.tensor.typeinfo(<16 x float> zeroinitializer, {DIMS})
{load("x", "%a")}
  %s = call <16 x float> @llvm.tensor.smma(token %zero, token %x, token %x)
{store("%c", "%s")}
  ret void
}}
"""
    lowered, _ = same(text, numbers(4, 4), numbers(4, 4))
    assert "alloca" not in lowered
    assert "@llvm.memset" not in lowered
    assert "@llvm.tensor.matmul" in lowered


def test_zeros_of_a_padded_result_do_not_reach_an_operand() -> None:
    """The store of the whole vector writes its padding: rows 8 apart, but 16 elements of 32 hold no data."""
    text = """
define void @f(ptr %a) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, DIMS, <2 x i32> zeroinitializer)
  %v = call <32 x float> @llvm.tensor.tovector(token %x)
  %c = getelementptr float, ptr %a, i64 -20
  store <32 x float> %v, ptr %c
  ret void
}
define void @g(ptr %a) {
  %p = getelementptr float, ptr %a, i64 20
  call void @f(ptr %p)
  ret void
}
""".replace("DIMS", "<2 x i32> <i32 4, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 2, i32 4>")
    text = text.replace("@f(", "@h(").replace("@g(", "@f(")
    same(text, numbers(60))


# Loops ---------------------------------------------------------------------------------------------------------------

BIG = "<2 x i32> <i32 9, i32 9>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer"


def test_value_of_an_inner_loop_outlives_the_next_start() -> None:
    """%new is used after the next inner loop has begun to write %acc, so they must not share a buffer."""
    text = f"""
define void @f(ptr noalias %a, ptr noalias %c, i32 %n) {{
entry:
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, {BIG}, {DENSE})
  br label %outer
outer:
  %i = phi i32 [ 0, %entry ], [ %i2, %latch ]
  br label %inner
inner:
  %j = phi i32 [ 0, %outer ], [ %j2, %inner ]
  %acc = phi <81 x float> [ zeroinitializer, %outer ], [ %new, %inner ]
  %t = call token @llvm.tensor.typeinfo(<81 x float> %acc, {BIG})
  %u = call token @llvm.tensor.typeinfo(<81 x float> %acc, {BIG})
  %new = call <81 x float> @llvm.tensor.smma(token %t, token %x, token %x)
  %j2 = add i32 %j, 1
  %again = icmp slt i32 %j2, %n
  br i1 %again, label %inner, label %latch
latch:
  %v = call token @llvm.tensor.typeinfo(<81 x float> %new, {BIG})
  %w = call token @llvm.tensor.typeinfo(<81 x float> %acc, {BIG})
  %m = call <81 x float> @llvm.tensor.matmul(token %v, token %w)
  %s = call token @llvm.tensor.typeinfo(<81 x float> %m, {BIG})
  call void @llvm.tensor.store(ptr %c, token %s, {DENSE})
  %i2 = add i32 %i, 1
  %more = icmp slt i32 %i2, 2
  br i1 %more, label %outer, label %exit
exit:
  ret void
}}
"""
    lowered, _ = same(text, numbers(9, 9), numbers(9, 9), 3)
    assert "%new.buf" in lowered


def test_start_of_a_loop_is_used_in_it() -> None:
    """%first starts %p and is read in every round, when the buffer of %p already holds something else."""
    text = f"""
define void @f(ptr noalias %a, ptr noalias %b, ptr noalias %c, i32 %n) {{
entry:
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, {BIG}, {DENSE})
  %first = call <81 x float> @llvm.tensor.matmul(token %x, token %x)
  %other = load <81 x float>, ptr %b
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %i2, %loop ]
  %p = phi <81 x float> [ %first, %entry ], [ %other, %loop ]
  %t = call token @llvm.tensor.typeinfo(<81 x float> %p, {BIG})
  %u = call token @llvm.tensor.typeinfo(<81 x float> %first, {BIG})
  %m = call <81 x float> @llvm.tensor.smma(token %t, token %u, token %x)
  store <81 x float> %m, ptr %c
  %i2 = add i32 %i, 1
  %again = icmp slt i32 %i2, %n
  br i1 %again, label %loop, label %exit
exit:
  ret void
}}
"""
    same(text, numbers(9, 9), numbers(9, 9) + 1, numbers(9, 9), 3)


def accumulation(operands: str, exit_phi: str = "") -> str:
    return f"""
define void @f(ptr noalias %a, ptr noalias %c, i32 %n) {{
entry:
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, {BIG}, {DENSE})
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %i2, %loop ]
  %acc = phi <81 x float> [ zeroinitializer, %entry ], [ %new, %loop ]
  %t = call token @llvm.tensor.typeinfo(<81 x float> %acc, {BIG})
  %new = call <81 x float> @llvm.tensor.smma({operands})
  %i2 = add i32 %i, 1
  %again = icmp slt i32 %i2, %n
  br i1 %again, label %loop, label %exit
exit:
  {exit_phi}
  %u = call token @llvm.tensor.typeinfo(<81 x float> {"%out" if exit_phi else "%new"}, {BIG})
  call void @llvm.tensor.store(ptr %c, token %u, {DENSE})
  ret void
}}
"""


@pytest.mark.parametrize("exit_phi", ["", "%out = phi <81 x float> [ %new, %loop ]"])
def test_accumulator_of_a_loop_stays_in_one_buffer(exit_phi: str) -> None:
    lowered, _ = same(accumulation("token %t, token %x, token %x", exit_phi), numbers(9, 9), numbers(9, 9), 3)
    assert lowered.count("alloca") == 1
    assert lowered.count("@llvm.memcpy.p0.p0.i64(ptr %c") == 0 or "store.p0" in lowered


def test_accumulator_that_is_an_operand_as_well_has_two_buffers() -> None:
    lowered, _ = same(accumulation("token %t, token %x, token %t"), numbers(9, 9), numbers(9, 9), 3)
    assert lowered.count("alloca") == 2


def test_value_of_the_last_round_is_needed_after_the_loop() -> None:
    text = accumulation("token %t, token %x, token %x").replace("float> %new, <2", "float> %acc, <2")
    same(text, numbers(9, 9), numbers(9, 9), 3)


def test_edges_of_a_switch() -> None:
    text = f"""
define void @f(ptr noalias %a, ptr noalias %c, i32 %n) {{
entry:
  %v = load <81 x float>, ptr %a
  switch i32 %n, label %one [
    i32 1, label %join
    i32 2, label %two
  ]
one:
  br label %join
two:
  br label %join
join:
  %p = phi <81 x float> [ zeroinitializer, %one ], [ %v, %entry ], [ undef, %two ]
  %k = phi i32 [ 1, %one ], [ 2, %entry ], [ 3, %two ]
  %t = call token @llvm.tensor.typeinfo(<81 x float> %p, {BIG})
  call void @llvm.tensor.store(ptr %c, token %t, {DENSE})
  ret void
}}
"""
    for n in (0, 1):
        same(text, numbers(9, 9), numbers(9, 9), n)


def test_unreachable_blocks() -> None:
    text = f"""
define void @f(ptr noalias %a, ptr noalias %c) {{
entry:
  ret void
dead:
  %p = phi <81 x float> [ %q, %dead ]
{load("x", "%a")}{product("m", "x", "x")}{store("%c", "%m")}
  %t = call token @llvm.tensor.typeinfo(<81 x float> %p, {BIG})
  %q = call <81 x float> @llvm.tensor.smma(token %t, token %t, token %t)
  br label %dead
}}
"""
    same(text, numbers(4, 4), numbers(4, 4))


# The heap ------------------------------------------------------------------------------------------------------------

LARGE = "<2 x i32> <i32 70, i32 70>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer"
HEAP = f"""
define void @f(ptr %a, ptr %c, i1 %early) ATTRIBUTES {{
entry:
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, {LARGE}, {DENSE})
  br i1 %early, label %out, label %work
work:
  %m = call <4900 x float> @llvm.tensor.matmul(token %x, token %x)
  %t = call token @llvm.tensor.typeinfo(<4900 x float> %m, {LARGE})
  call void @llvm.tensor.store(ptr %c, token %t, {DENSE})
  ret void
out:
  ret void
}}
"""


def test_heap_is_freed_on_every_way_out() -> None:
    for early in (0, 1):
        lowered, _ = same(HEAP.replace("ATTRIBUTES", ""), numbers(70, 70), numbers(70, 70), early)
        assert lowered.count("call void @free(ptr %apart.heap)") == 2
        assert lowered.count("@llvm.trap()") == 2


@pytest.mark.parametrize(
    ("attributes", "kept"),
    [
        ("nounwind memory(argmem: readwrite)", "nounwind"),
        ("nounwind argmemonly", "nounwind"),
        ("memory(argmem: readwrite) nounwind willreturn", "nounwind willreturn"),
        ('"a"="readnone" nounwind', '"a"="readnone" nounwind'),
    ],
)
def test_attributes_allow_the_heap(attributes: str, kept: str) -> None:
    for text in (
        HEAP.replace("ATTRIBUTES", attributes),
        HEAP.replace("ATTRIBUTES", "#0") + f"\nattributes #0 = {{ {attributes} }}\n",
    ):
        module, _ = lower(text)
        function = module.function("f")
        found = function.signature.attributes
        assert module.attribute_groups.get(found, found) == kept
        assert f"{found} {{" in function.header


def test_malloc_of_another_type() -> None:
    with pytest.raises(
        LoweringError, match="needs @malloc as ptr \\(i64\\), and this module declares it as ptr \\(i32\\)"
    ):
        lower(HEAP.replace("ATTRIBUTES", "") + "declare ptr @malloc(i32)\n")


def test_musttail_call_stays_in_front_of_ret() -> None:
    text = HEAP.replace("ATTRIBUTES", "").replace(
        "out:\n  ret void", "out:\n  musttail call void @f(ptr %a, ptr %c, i1 false)\n  ret void"
    )
    lowered, _ = same(text, numbers(70, 70), numbers(70, 70), 1)
    assert "call void @free(ptr %apart.heap)\n  musttail call" in lowered


# Large vectors in ordinary code --------------------------------------------------------------------------------------


def test_the_example_of_the_proposal() -> None:
    """Parameters by typed byval pointer, 6.4 million elements; its result is not used, so nothing is left."""
    dims = (
        "<4 x i32> <i32 1, i32 10, i32 800, i32 800>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, "
        "<4 x i32> <i32 0, i32 0, i32 0, i32 0>"
    )
    byval = "<6400000 x i32>* byval(<6400000 x i32>)"
    text = f"""
define void @example({byval} %a, {byval} %b, <6400000 x i32>* %c) {{
  %s = call token @llvm.tensor.typeinfo({byval} %a, {dims})
  %t = call token @llvm.tensor.typeinfo({byval} %b, {dims})
  %m = call <6400000 x i32> @llvm.tensor.matmul(token %s, token %t)
  store <6400000 x i32> %m, <6400000 x i32>* %c
  ret void
}}
"""
    module, context = lower(text)
    assert "alloca" not in str(module)
    assert "malloc" not in str(module)
    assert not list(context.remarks)


def test_unoptimised_code() -> None:
    """What clang -O0 makes of `c = matmul(a, b)` with vectors of 1600 bytes."""
    text = """
define void @f(ptr noalias %a, ptr noalias %c) {
  %x = alloca <400 x float>, align 2048
  %y = alloca <400 x float>, align 2048
  %v = load <400 x float>, ptr %a, align 4
  store <400 x float> %v, ptr %x, align 2048
  %w = load <400 x float>, ptr %x, align 2048
  %t = call token @llvm.tensor.typeinfo(<400 x float> %w, DIMS)
  %m = call <400 x float> @llvm.tensor.matmul(token %t, token %t)
  store <400 x float> %m, ptr %y, align 2048
  %r = load <400 x float>, ptr %y, align 2048
  store <400 x float> %r, ptr %c, align 4
  store <400 x float> zeroinitializer, ptr %y, align 2048
  %z = load <400 x float>, ptr %y, align 2048
  %e = extractelement <400 x float> %z, i32 3
  store float %e, ptr %c, align 4
  ret void
}
""".replace("DIMS", "<2 x i32> <i32 20, i32 20>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer")
    lowered, _ = same(text, numbers(20, 20), numbers(20, 20))
    assert lowered.count("alloca") == 2
    assert "load <400" not in lowered


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("call void @take(<4900 x float> %m)", "call of <4900 x float> is not lowered yet"),
        ("store volatile <4900 x float> %m, ptr %c", "store of <4900 x float> is not lowered yet"),
    ],
)
def test_large_vectors_elsewhere_are_refused(line: str, message: str) -> None:
    text = HEAP.replace("ATTRIBUTES", "").replace("  %t =", f"  {line}\n  %t =")
    with pytest.raises(LoweringError, match=message) as caught:
        lower(text + "declare void @take(<4900 x float>)\n")
    assert caught.value.span is not None
    assert line in caught.value.span.render()


def test_functions_past_this_stage_are_left_alone() -> None:
    text = HEAP.replace("ATTRIBUTES", '"tlx-stage"="tiles"')
    module = parse(text)
    canonicalise(module)
    before = str(module)
    to_2d(module, Context(find("generic")))
    assert str(module) == before


def test_debug_locations_and_values() -> None:
    text = f"""
define void @f(ptr noalias %a, ptr noalias %c) !dbg !4 {{
{load("x", "%a")[:-1]}, !dbg !7
{product("m", "x", "x")[:-1]}, !dbg !8
  call void @llvm.dbg.value(metadata <16 x float> %m, metadata !9, metadata !DIExpression()), !dbg !8
{store("%c", "%m")}
  ret void
}}
declare void @llvm.dbg.value(metadata, metadata, metadata)
!llvm.dbg.cu = !{{!0}}
!llvm.module.flags = !{{!2}}
!0 = distinct !DICompileUnit(language: DW_LANG_C99, file: !1, emissionKind: FullDebug)
!1 = !DIFile(filename: "a.c", directory: "/")
!2 = !{{i32 2, !"Debug Info Version", i32 3}}
!3 = !{{null}}
!4 = distinct !DISubprogram(name: "f", file: !1, line: 1, type: !5, spFlags: DISPFlagDefinition, unit: !0)
!5 = !DISubroutineType(types: !3)
!7 = !DILocation(line: 2, scope: !4)
!8 = !DILocation(line: 3, scope: !4)
!9 = !DILocalVariable(name: "m", scope: !4, file: !1, line: 3)
"""
    module, _ = lower(text)
    lowered = str(module)
    assert "metadata <16 x float> undef" in lowered
    assert next(line for line in lowered.splitlines() if "@llvm.tensor.matmul" in line).endswith(", !dbg !8")


def test_debug_records() -> None:
    text = f"""
define void @f(ptr noalias %a, ptr noalias %c) {{
{load("x", "%a")}{product("m", "x", "x")}
    #dbg_value(<16 x float> %m, !9, !DIExpression(), !8)
{store("%c", "%m")}
  ret void
}}
!8 = !{{}}
!9 = !{{}}
"""
    module = parse(text)
    canonicalise(module)
    to_2d(module, Context(find("generic")))
    assert "#dbg_value(<16 x float> undef, !9" in str(module)


def test_result_of_an_invoke() -> None:
    text = f"""
define void @f(ptr noalias %c) personality ptr @personality {{
  %v = invoke <16 x float> @make() to label %next unwind label %pad
next:
  %t = call token @llvm.tensor.typeinfo(<16 x float> %v, {DIMS})
  call void @llvm.tensor.store(ptr %c, token %t, {DENSE})
  ret void
pad:
  %p = landingpad {{ ptr, i32 }} cleanup
  resume {{ ptr, i32 }} %p
}}
declare <16 x float> @make()
declare i32 @personality(...)
"""
    with pytest.raises(LoweringError, match="a <16 x float> that invoke returns is not lowered yet"):
        lower(text)


def test_orders_of_uses_are_dropped() -> None:
    body = f"{load('x', '%a')}{product('m', 'x', 'x')}{store('%c', '%m')}"
    text = f"define void @f(ptr %a, ptr noalias %c) {{\n{body}  ret void\n  uselistorder token %x, {{ 1, 0 }}\n}}\n"
    module, _ = lower(text)
    assert "uselistorder" not in str(module)


@pytest.mark.parametrize("constant", ["zeroinitializer", "undef", "<" + ", ".join(["float 2.0"] * 16) + ">"])
def test_constants(constant: str) -> None:
    text = f"""
define void @f(ptr noalias %a, ptr %c) {{
  %v = call token @llvm.tensor.typeinfo(<16 x float> {constant}, {DIMS})
{load("x", "%a")}{product("m", "x", "v")}{store("%c", "%m")}
  ret void
}}
"""
    if constant == "undef":
        lower(text)
    else:
        same(text, numbers(4, 4), numbers(4, 4))


def test_code_that_nothing_reaches_may_define_values_by_themselves() -> None:
    text = f"""
define void @f(ptr %a, ptr %c) {{
  ret void
dead:
  %p = getelementptr float, ptr %p, i64 1
  %q = getelementptr float, ptr %q, i64 2
{load("x", "%p")}
  %v = call <16 x float> @llvm.tensor.tovector(token %x)
  %y = freeze <16 x float> %y
  %z = fadd <16 x float> %y, %v
  %w = freeze <16 x float> %w
{store("%q", "%z")}
  br label %dead
}}
"""
    lower(text)


def test_large_vectors_are_lowered_without_tensor_operations() -> None:
    text = """
define void @f(ptr noalias %a, ptr noalias %c) {
  %x = load <6400 x float>, ptr %a, align 4
  %y = fmul <6400 x float> %x, %x
  store <6400 x float> %y, ptr %c, align 4
  ret void
}
"""
    lowered = lower_text(text, target="generic")
    assert "<6400 x float>" not in lowered


def test_several_cases_of_a_switch_go_to_a_loop_carried_tensor() -> None:
    text = """
define i32 @f(ptr noalias %a, ptr noalias %b, ptr noalias %c, i32 %k) {
entry:
  %v = load <400 x float>, ptr %a, align 4
  %w = load <400 x float>, ptr %b, align 4
  switch i32 %k, label %d [ i32 0, label %m
                            i32 1, label %m
                            i32 2, label %e ]
d:
  %x = fadd <400 x float> %v, %w
  br label %m
m:
  %p = phi <400 x float> [ %v, %entry ], [ %v, %entry ], [ %x, %d ]
  %n = phi i32 [ %k, %entry ], [ %k, %entry ], [ 7, %d ]
  %y = fmul <400 x float> %p, %w
  store <400 x float> %y, ptr %c, align 4
  ret i32 %n
e:
  ret i32 -1
}
"""
    for case in (0, 1, 2, 3):
        module = parse(text, wanted=lambda _text: True)
        lowered = parse(text, wanted=lambda _text: True)
        to_2d(lowered, Context(find("generic")))
        check_module(lowered, "to-2d")
        results: list[tuple[int, Array]] = []
        for version in (module, lowered):
            c = np.zeros(400, np.float32)
            results.append((Machine(version).call("f", numbers(400), numbers(400) + 2, c, case), c))
        assert results[0][0] == results[1][0]
        np.testing.assert_array_equal(results[0][1], results[1][1])
