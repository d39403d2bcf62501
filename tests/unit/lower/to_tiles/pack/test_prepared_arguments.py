"""Arguments that are constant over calls: what is packed before all calls, and where that is refused."""

from __future__ import annotations

import re
from typing import Final

import ml_dtypes
import numpy as np
import pytest

import tlx
from tlx.diagnostics import LoweringError
from tlx.ir.parser.module import parse
from tlx.ir.prepared import block_sizes
from tlx.lower.options import Options
from tlx.lower.pipeline import lower
from tlx.lower.remarks import Remarks

BF16: Final = np.dtype(ml_dtypes.bfloat16)
DIMS: Final = "<2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer"


def load(pointer: str, rows: int, cols: int, element: str = "bfloat") -> str:
    shape = f"<2 x i32> <i32 {rows}, i32 {cols}>"
    words = f"ptr elementtype({element}) {pointer}, {shape}, {DIMS}, <2 x i32> zeroinitializer"
    return f"call token @llvm.tensor.load({words})"


def product(to: str, a: str, b: str, extents: tuple[int, int, int], name: str = "p") -> str:
    """The lines of `to = a @ b` in bfloat."""
    m, n, k = extents
    shape = f"<2 x i32> <i32 {m}, i32 {n}>, {DIMS}"
    return (
        f"  %{name}.a = {load(a, m, k)}\n  %{name}.b = {load(b, k, n)}\n"
        f"  %{name}.z = call token @llvm.tensor.typeinfo(<{m * n} x float> zeroinitializer, {shape})\n"
        f"  %{name} = call <{m * n} x float> @llvm.tensor.mma(token %{name}.z, token %{name}.a, token %{name}.b)\n"
        f"  %{name}.t = call token @llvm.tensor.typeinfo(<{m * n} x float> %{name}, {shape})\n"
        f"  call void @llvm.tensor.store(ptr {to}, token %{name}.t, <2 x i32> zeroinitializer)\n"
    )


def function(body: str, name: str = "f", words: str = "define void", parameters: str = "") -> str:
    parameters = parameters or 'ptr noalias %x, ptr noalias readonly "tlx-constant" %w, ptr noalias %y'
    return f"{words} @{name}({parameters}) {{\n{body}  ret void\n}}\n"


PLAIN: Final = function(product("%y", "%x", "%w", (16, 32, 64)))


def lowered(text: str, target: str = "avx512", stage: str | None = "to-tiles") -> str:
    return str(lower(parse(text), target, options=Options(stop_after=stage)))


def preparation_of(text: str) -> str:
    """The body of the preparation of `@f`."""
    match = re.search(r"(?s)void @f\.prepare\([^\n]*\n(.*?)\n}", text)
    assert match is not None, text
    return match[1]


def test_the_function_reads_the_panels_of_its_block() -> None:
    text = lowered(PLAIN)
    assert 'ptr noalias readonly "tlx-prepared" %w' in text
    assert "%w.raw" not in text  # nothing reads the array itself
    assert "getelementptr inbounds i8, ptr %w, i64 64" in text
    assert block_sizes(parse(text)) == {"f": (64 + 64 * 32 * 2,)}
    assert preparation_of(text).count("call") == 1
    assert "store ptr %w, ptr %w.prepared, align 64" in preparation_of(text)


def test_what_is_not_a_product_reads_the_array() -> None:
    body = product("%y", "%x", "%w", (16, 32, 64)) + ("  %first = load bfloat, ptr %w\n  store bfloat %first, ptr %x\n")
    text = lowered(function(body))
    assert "  %w.raw = load ptr, ptr %w, align 64\n" in text
    assert "load bfloat, ptr %w.raw" in text


def test_products_of_the_same_weights_share_panels() -> None:
    body = product("%y", "%x", "%w", (16, 32, 64)) + product("%x", "%y", "%w", (16, 32, 64), "q")
    remarks = Remarks()
    text = str(lower(parse(function(body)), "avx512", options=Options(stop_after="to-tiles", remarks=remarks)))
    assert preparation_of(text).count("call") == 1
    said = [remark.message for remark in remarks if "@f.prepare" in remark.message]
    assert said == [
        "matmul 16x32x64 bfloat -> float: B packed by @f.prepare: 4.0 KiB",
        "matmul 16x32x64 bfloat -> float: B packed by @f.prepare: shared",
    ]


def test_weights_that_are_not_worth_packing_have_a_block_of_one_line() -> None:
    parameters = 'ptr noalias %x, ptr noalias "tlx-constant" %w, ptr "tlx-constant" %unused'
    body = f"  %a = {load('%w', 4, 4)}\n  call void @llvm.tensor.store(ptr %x, token %a, <2 x i32> zeroinitializer)\n"
    text = lowered(function(body, parameters=parameters))
    assert block_sizes(parse(text)) == {"f": (64, 64)}
    assert "%unused.raw" not in text
    assert "call" not in preparation_of(text)


def test_a_product_in_a_loop_reads_panels() -> None:
    loop = (
        "  br label %loop\nloop:\n  %i = phi i64 [ 0, %0 ], [ %next, %loop ]\n"
        "  %xi = getelementptr bfloat, ptr %x, i64 %i\n"
        + product("%y", "%xi", "%w", (16, 32, 64))
        + "  %next = add i64 %i, 1\n  %more = icmp slt i64 %next, 9\n  br i1 %more, label %loop, label %end\nend:\n"
    )
    text = lowered(function(loop))
    assert preparation_of(text).count("call") == 1
    assert "malloc" not in text
    assert "alloca" not in text


@pytest.mark.parametrize("words", ["define hidden void", "define weak_odr void", "define internal void"])
def test_linkage_and_visibility_are_those_of_the_function(words: str) -> None:
    text = lowered(function(product("%y", "%x", "%w", (16, 32, 64)), words=words), stage=None)
    linkage = words.split()[1]
    assert f"define {linkage} void @f.prepare(" in text
    assert f"@f.prepare.bytes = {linkage} constant [1 x i64] [i64 4160], align 8" in text


def test_names_with_quotes_and_numbered_arguments() -> None:
    body = product("%2", "%0", "%1", (16, 32, 64))
    parameters = 'ptr noalias %0, ptr align 2 dereferenceable(4096) "tlx-constant" %1, ptr %2'
    text = function(body, name='"a b"', parameters=parameters) + function(body, "g", parameters=parameters)
    code = lowered(text, stage=None)
    assert 'ptr align 2 "tlx-prepared" %1' in code
    assert 'define void @"a b.prepare"(ptr noalias %arg1.prepared, ptr %arg1)' in code
    assert set(block_sizes(parse(code))) == {'"a b"', "g"}
    compiled = tlx.compile(text, "generic")
    x, w = np.ones((16, 64)).astype(BF16), np.ones((64, 32)).astype(BF16)
    for name in ("a b", "g"):
        y = np.zeros((16, 32), np.float32)
        compiled[name].prepare(w)(x, y)
        assert (y == 64).all()


def test_memory_attributes_that_no_longer_hold_are_removed() -> None:
    text = function(product("%y", "%x", "%w", (16, 32, 64))).replace(") {", ") nounwind argmemonly {", 1)
    assert re.search(r"define void @f\([^)]*\) nounwind \{", lowered(text))


# Calls in the module -------------------------------------------------------------------------------------------------


HELPER: Final = 'ptr %x, ptr "tlx-constant" %w, ptr %y'
CALLER: Final = 'ptr %x, ptr "tlx-constant" %v, ptr %y'
CALLS: Final = (
    "  call void @g(ptr %x, ptr %v, ptr %y)\n"
    "  %v2 = getelementptr bfloat, ptr %v, i64 2048\n  call void @g(ptr %y, ptr %v2, ptr %x)\n"
)


@pytest.mark.parametrize("attribute", ['"tlx-constant" ', ""])
def test_callers_prepare_the_blocks_of_functions_that_they_call(attribute: str) -> None:
    """Twice with different weights; an internal function needs no attribute."""
    parameters = HELPER.replace('"tlx-constant" ', attribute)
    helper = function(product("%y", "%x", "%w", (16, 32, 64)), "g", "define internal void", parameters)
    text = helper + function(CALLS, parameters=CALLER)
    code = lowered(text)
    assert block_sizes(parse(code)) == {"g": (4160,), "f": (64 + 2 * 4160,)}
    assert preparation_of(code).count("call void @g.prepare(") == 2
    rng = np.random.default_rng(0)
    x, v = rng.integers(-2, 3, 2048).astype(BF16), rng.integers(-2, 3, 4096).astype(BF16)
    y, expected_x, expected_y = np.zeros(2048, BF16), x.copy(), np.zeros(2048, BF16)
    tlx.Machine(parse(text)).call("f", expected_x, v, expected_y)
    got_x = x.copy()
    tlx.compile(text, "generic")["f"].prepare(v)(got_x, y)
    np.testing.assert_array_equal(got_x.view(np.uint16), expected_x.view(np.uint16))
    np.testing.assert_array_equal(y.view(np.uint16), expected_y.view(np.uint16))
    evaluated_x, evaluated_y = x.copy(), np.zeros(2048, BF16)
    tlx.Machine(parse(code)).call_prepared("f", evaluated_x, v, evaluated_y)
    np.testing.assert_array_equal(evaluated_y.view(np.uint16), expected_y.view(np.uint16))


def test_an_internal_function_with_other_callers_is_left_alone() -> None:
    helper = function(product("%y", "%x", "%w", (16, 32, 64)), "g", "define internal void", "ptr %x, ptr %w, ptr %y")
    other = function("  call void @g(ptr %x, ptr %v, ptr %y)\n", "h", parameters="ptr %x, ptr %v, ptr %y")
    code = lowered(helper + function(CALLS, parameters=CALLER) + other)
    assert block_sizes(parse(code)) == {"f": (64,)}
    assert code.count("call void @g(ptr %x, ptr %v, ptr %y)") == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            function("", "g", parameters=HELPER)
            + function("  call void @g(ptr %x, ptr %x, ptr %x)\n", parameters='ptr %x, ptr "tlx-constant" %v'),
            (
                '@f passes %x to %w of @g, which is constant over calls: pass a "tlx-constant" argument, '
                "at a constant offset, or remove the attribute"
            ),
        ),
        (
            function("", "g", parameters=HELPER)
            + function("  call void @g(ptr %x, ptr %x, ptr %x)\n", parameters="ptr %x"),
            '@g has "tlx-constant" arguments: in its module, only functions with such arguments can call it',
        ),
        (
            function("  call void @f(ptr %x, ptr %w, ptr %y)\n", parameters=HELPER),
            '@f calls itself: its "tlx-constant" arguments cannot be prepared',
        ),
        (
            f"@table = constant ptr @f\n{function('', parameters=HELPER)}",
            '@f has "tlx-constant" arguments: in its module, only functions with such arguments can call it',
        ),
        (
            function("", parameters=HELPER) + "declare void @f.prepare(ptr, ptr)\n",
            '@f.prepare, which prepares the "tlx-constant" arguments of @f, exists already',
        ),
        (
            function("", parameters='i32 "tlx-constant" %n'),
            '"tlx-constant" on %n: it is for pointers to memory that is read, not for i32',
        ),
        (
            function("", parameters='ptr byval([4 x float]) "tlx-constant" %w'),
            '"tlx-constant" on %w: it is for pointers to memory that is read, not for byval',
        ),
        (
            function("  store float 0.0, ptr %w\n", parameters=HELPER),
            'a store to %w of @f, whose memory is constant over calls ("tlx-constant")',
        ),
        (
            function(product("%w", "%x", "%y", (4, 4, 4)), parameters=HELPER),
            'a store to %w of @f, whose memory is constant over calls ("tlx-constant")',
        ),
    ],
)
def test_what_cannot_be_prepared_is_refused(text: str, message: str) -> None:
    with pytest.raises(LoweringError) as error:
        lowered(text)
    assert error.value.message == message
    assert error.value.span is not None


def test_functions_that_differ_in_name_only_are_both_prepared() -> None:
    code = lowered(PLAIN + PLAIN.replace("@f", "@g"))
    assert block_sizes(parse(code)) == {"f": (4160,), "g": (4160,)}


def test_a_lowered_module_is_not_prepared_again() -> None:
    code = lowered(PLAIN, stage=None)
    assert tlx.lower_text(code, target="avx512") == code
