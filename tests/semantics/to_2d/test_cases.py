"""Stage 1 on cases that random programs rarely contain: captured addresses, loop nests, the heap, odd control flow."""

from __future__ import annotations

import pytest

from tests.semantics.to_2d.cases import DENSE, DIMS, load, lower, numbers, product, same, store
from tlx.diagnostics import LoweringError
from tlx.ir.parser.module import parse
from tlx.ir.tensors.calls import canonicalise
from tlx.lower.context import LoweringContext
from tlx.lower.pipeline import lower_text
from tlx.lower.to_2d import to_2d
from tlx.target.lookup import find_target

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


def test_heap_memory_is_freed_at_every_exit() -> None:
    for early in (0, 1):
        lowered, _ = same(HEAP.replace("ATTRIBUTES", ""), numbers(70, 70), numbers(70, 70), early)
        assert lowered.count("call void @free(ptr %temporary.heap)") == 2
        assert lowered.count("@llvm.trap()") == 2


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ("nounwind memory(argmem: readwrite)", "nounwind"),
        ("nounwind argmemonly", "nounwind"),
        ("memory(argmem: readwrite) nounwind willreturn", "nounwind willreturn"),
        ('"a"="readnone" nounwind', '"a"="readnone" nounwind'),
    ],
)
def test_attributes_allow_the_heap(attributes: str, expected: str) -> None:
    for text in (
        HEAP.replace("ATTRIBUTES", attributes),
        HEAP.replace("ATTRIBUTES", "#0") + f"\nattributes #0 = {{ {attributes} }}\n",
    ):
        module, _ = lower(text)
        function = module.function("f")
        actual = function.signature.attributes
        assert module.attribute_groups.get(actual, actual) == expected
        assert f"{actual} {{" in function.header


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
    assert "call void @free(ptr %temporary.heap)\n  musttail call" in lowered


def test_the_example_in_the_proposal() -> None:
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
    to_2d(module, LoweringContext(find_target("generic")))
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
    assert "metadata <16 x float> poison" in lowered
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
    to_2d(module, LoweringContext(find_target("generic")))
    assert "#dbg_value(<16 x float> poison, !9" in str(module)


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


TWO_TYPES = f"""
define void @f(ptr noalias %x, ptr noalias %c, ptr noalias %d) {{
  %v = load <4096 x float>, ptr %x, align 4
  %e = fadd <4096 x float> %v, %v
  %t = call token @llvm.tensor.typeinfo(<4096 x float> %e, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>,
    <2 x i32> <i32 0, i32 8>)
  %u = call token @llvm.tensor.typeinfo(<4096 x float> %e, <2 x i32> <i32 128, i32 32>, <2 x i32> <i32 1, i32 0>,
    {DENSE})
  call void @llvm.tensor.store(ptr %c, token %t, {DENSE})
  call void @llvm.tensor.store(ptr %d, token %u, {DENSE})
  ret void
}}
"""


def test_a_vector_may_be_tensors_of_two_types() -> None:
    """Elements that one of them calls padding are data of the other."""
    same(TWO_TYPES, numbers(64, 64), numbers(64, 64), numbers(128, 32))
