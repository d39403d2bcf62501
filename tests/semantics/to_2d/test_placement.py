"""Placement in stage 1: which operands are read in place, and where results are written."""

from __future__ import annotations

import pytest

from tests.semantics.to_2d.cases import DIMS, load, lower, numbers, product, same, store

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


def test_memory_is_copied_before_it_dies() -> None:
    write = "call void @llvm.lifetime.end.p0(i64 64, ptr %local)"
    text = LOCAL.replace("LEAK", "").replace("WRITE", write)
    module, _ = lower(text)
    assert "%x.copy.buf" in str(module)


@pytest.mark.parametrize(
    ("offset", "copies"),
    [(64, False), (60, True), (-4, False), (0, True)],
)
def test_offsets_prove_ranges_disjoint(offset: int, copies: bool) -> None:
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
def test_an_alias_is_not_a_distinct_object(definition: str, copies: bool) -> None:
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
def test_results_are_written_in_place_or_checked_at_run_time(parameters: str, direct: bool) -> None:
    body = f"{load('x', '%a')}{product('m', 'x', 'x')}{store('%c', '%m')}"
    module, context = lower(f"define void @f({parameters}) {{\n{body}  ret void\n}}\n")
    assert "%m.buf" not in str(module)
    assert ("%temporary.buf" not in str(module)) == direct
    checked = "%c may alias %a: checked at run time; a temporary of 64 bytes is used if they overlap"
    assert [r.message for r in context.remarks] == ([] if direct else [checked])


@pytest.mark.parametrize("offset", [0, 1, 15, 16, 17])
@pytest.mark.parametrize("operation", ["matmul", "pointwise"])
def test_overlap_is_checked_at_run_time(offset: int, operation: str) -> None:
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
    assert "%temporary.buf" in lowered


def test_overlapping_result_of_a_batch() -> None:
    body = f"{load('x', '%a')}{product('m', 'x', 'x')}{store('%c', '%m')}"
    text = f"define void @f(ptr %a) {{\n  %c = getelementptr float, ptr %a, i64 3\n{body}  ret void\n}}\n"
    lowered, _ = same(text, numbers(20))
    assert "%temporary.buf" in lowered


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


def _token(name: str, text: str, extents: tuple[int, int], pitch: int | None = None) -> str:
    shape = ", ".join(f"i32 {extent}" for extent in extents)
    pitches = "" if pitch is None else f", <2 x i32> <i32 0, i32 {pitch}>"
    order = "<2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer"
    return f"  %{name} = call token {text}, <2 x i32> <{shape}>, {order}{pitches})\n"


@pytest.mark.parametrize("kind", ["conversion", "product"])
def test_results_are_stored_under_a_shape_that_cuts_their_rows(kind: str) -> None:
    """2 x 48 viewed as 3 x 32, with a pitch of 33: no dimension of either is a multiple of one of the other."""
    a = _token("a", "@llvm.tensor.load(ptr elementtype(float) %p", (2, 48), 48)
    b = _token("b", "@llvm.tensor.load(ptr elementtype(float) %r", (48, 48), 48)
    value = {
        "conversion": "  %v = call <96 x float> @llvm.tensor.tovector(token %a)\n",
        "product": f"{b}  %v = call <96 x float> @llvm.tensor.matmul(token %a, token %b)\n",
    }[kind]
    text = (
        f"define void @f(ptr noalias %p, ptr noalias %r, ptr noalias %q) {{\n{a}{value}"
        "  %w = fneg <96 x float> %v\n"
        f"{_token('t', '@llvm.tensor.typeinfo(<96 x float> %w', (3, 32))}"
        "  call void @llvm.tensor.store(ptr %q, token %t, <2 x i32> <i32 0, i32 33>)\n"
        "  ret void\n}\n"
    )
    same(text, numbers(2, 48), numbers(48, 48), numbers(3 * 33))
