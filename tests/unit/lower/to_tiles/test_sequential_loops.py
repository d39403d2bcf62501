"""Loops of the program, whose iterations run one after the other, are not taken for loops of independent iterations."""

from __future__ import annotations

import re
from math import prod

import pytest

from tlx.api.validation import validate
from tlx.ir.parser.module import parse
from tlx.lower.options import Options
from tlx.lower.pipeline import lower

_SHAPE = "<2 x i32> <i32 {}, i32 {}>"
_ROWS, _COLUMNS = "<2 x i32> <i32 0, i32 1>", "<2 x i32> <i32 1, i32 0>"
_NONE = "<2 x i32> zeroinitializer"
_LOOP = """define void @f(ptr {noalias} %a, ptr {noalias} %b, ptr {noalias} %c, i64 %count) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %offset = mul i64 %i, {step}
  %x = getelementptr {type}, ptr %a, i64 %offset
  %y = getelementptr float, ptr %c, i64 %offset
{body}
  %next = add i64 %i, 1
  %again = icmp slt i64 %next, {bound}
  br i1 %again, label %loop, label %end
end:
  ret void
}}
"""


def _loop(body: str, step: int = 0, bound: str = "%count", noalias: str = "noalias", type_: str = "float") -> str:
    return _LOOP.format(body=body, step=step, bound=bound, noalias=noalias, type=type_)


def _once(text: str) -> str:
    """A program with a loop as one without: its first iteration."""
    start, rest = text.split("  br label %loop\nloop:\n")
    body, end = rest.split("  br i1 %again, label %loop, label %end\nend:\n")
    return start + re.sub(r"phi i64 .*", "add i64 0, 0", body, count=1) + end


def _load(name: str, address: str, shape: tuple[int, int], order: str = _ROWS, type_: str = "float") -> str:
    place = f"ptr elementtype({type_}) {address}, {_SHAPE.format(*shape)}"
    return f"  {name} = call token @llvm.tensor.load({place}, {order}, {_NONE}, {_NONE})\n"


def _store(value: str, address: str, shape: tuple[int, int]) -> str:
    facts = f"<{prod(shape)} x float> {value}, {_SHAPE.format(*shape)}, {_ROWS}, {_NONE}"
    token = f"  {value}.token = call token @llvm.tensor.typeinfo({facts})\n"
    return f"{token}  call void @llvm.tensor.store(ptr {address}, token {value}.token, {_NONE})\n"


def _product(m: int, n: int, k: int, x: str = "%x", y: str = "%y") -> str:
    product = f"  %p = call <{m * n} x float> @llvm.tensor.matmul(token %l, token %r)\n"
    return _load("%l", x, (m, k)) + _load("%r", "%b", (k, n)) + product + _store("%p", y, (m, n))


def _batch() -> str:
    """A product of two pairs of matrices, whose loop is independent."""
    order, none = "<3 x i32> <i32 0, i32 1, i32 2>", "<3 x i32> zeroinitializer"
    place = f"<3 x i32> <i32 2, i32 64, i32 64>, {order}, {none}"
    loads = "".join(
        f"  %{name}t = call token @llvm.tensor.load(ptr elementtype(float) %{name}, {place}, {none})\n" for name in "ab"
    )
    product = "  %batch = call <8192 x float> @llvm.tensor.matmul(token %at, token %bt)\n"
    return f"{loads}{product}  store <8192 x float> %batch, ptr %c\n"


def _sum(rows: int, columns: int) -> str:
    vector = f"<{rows * columns} x float>"
    total = f"  %v = call {vector} @llvm.tensor.tovector(token %l)\n  %s = fadd {vector} %v, %v\n"
    return _load("%l", "%x", (rows, columns)) + total + _store("%s", "%y", (rows, columns))


def _lowered(text: str, target: str, **options: str) -> tuple[dict[str, str], list[str]]:
    """The functions after all trees have become calls of kernels, and the remarks."""
    settings = Options(stop_after="to-tiles", **options)  # type: ignore[arg-type]
    module = str(lower(parse(text), target, options=settings))
    functions = dict(re.findall(r"(?ms)^define (?:internal )?void @([\w.]+)\((.*?)^}", module))
    return functions, [remark.message for remark in settings.remarks]


def _affine(rows: int, columns: int) -> str:
    """A matrix, to which four rows are added."""
    vector = f"<{rows * columns} x float>"
    lines = [_load("%l", "%x", (rows, columns)), f"  %s0 = call {vector} @llvm.tensor.tovector(token %l)\n"]
    for number in range(4):
        address = f"%row{number}"
        lines.append(f"  {address} = getelementptr float, ptr %b, i64 {number * columns}\n")
        shape, order, none = f"<1 x i32> <i32 {columns}>", "<1 x i32> zeroinitializer", "<1 x i32> zeroinitializer"
        load = f"ptr elementtype(float) {address}, {shape}, {order}, {none}, {none}"
        lines.append(f"  %t{number} = call token @llvm.tensor.load({load})\n")
        size = _SHAPE.format(rows, columns)
        rows_of = f"@llvm.tensor.broadcast(token %t{number}, {size}, <1 x i32> <i32 1>)"
        lines.append(f"  %w{number} = call {vector} {rows_of}\n")
        lines.append(f"  %s{number + 1} = fadd {vector} %s{number}, %w{number}\n")
    return "".join(lines) + _store("%s4", "%y", (rows, columns))


@pytest.mark.parametrize(
    "text",
    [
        _loop(_product(256, 512, 512), 1 << 18, "64"),
        _loop(_sum(512, 512), 1 << 18, "64"),
        _loop(_affine(256, 1024), 1 << 18, "64"),
    ],
    ids=["product", "map", "rows"],
)
def test_kernels_are_those_outside_of_loops(text: str) -> None:
    """The next iteration's operands are not prefetched, and all iterations' results do not count as a stream."""
    text = text.replace("  ret void", f"{_batch()}  ret void")
    (inside, remarks), (outside, expected) = _lowered(text, "avx2"), _lowered(_once(text), "avx2")
    kernels = {name: body for name, body in inside.items() if name.startswith(("tlx.matmul", "tlx.map"))}
    assert kernels
    assert kernels == {name: body for name, body in outside.items() if name in kernels}
    assert [text for text in remarks if text.startswith(("matmul", "map"))] == [
        text for text in expected if text.startswith(("matmul", "map"))
    ]


def test_operands_are_packed_in_each_iteration() -> None:
    """B may change between iterations."""
    functions, remarks = _lowered(_loop(_product(256, 512, 512), 1 << 18), "avx2")
    assert any("packed B" in text for text in remarks)
    assert not any(".pack" in name for name in functions)  # the kernel packs


def test_a_copy_of_a_is_shared_by_products_of_an_iteration() -> None:
    left = _load("%l", "%x", (64, 256), _COLUMNS, "bfloat")
    products = ""
    for number, start in enumerate(("%b", "%b2")):
        right = _load(f"%r{number}", start, (64, 256), type_="bfloat")
        products += right + f"  %p{number} = call <65536 x float> @llvm.tensor.matmul(token %l, token %r{number})\n"
        products += f"  %y{number} = getelementptr float, ptr %c, i64 {65536 * number}\n"
        products += _store(f"%p{number}", f"%y{number}", (256, 256))
    second = "  %b2 = getelementptr bfloat, ptr %b, i64 16384\n"
    text = _loop(left + second + products, 0, type_="bfloat")
    (_, inside), (_, outside) = _lowered(text, "amx"), _lowered(_once(text), "amx")
    shared = [text for text in outside if "once for 2 products" in text]
    assert shared
    assert [text for text in inside if "once for" in text] == shared


@pytest.mark.parametrize("target", ["generic", "avx2", "avx512", "amx"])
@pytest.mark.parametrize("threads", ["none", "openmp"])
def test_an_operand_that_iterations_overwrite(target: str, threads: str) -> None:
    text = _loop(
        _product(16, 16, 16, "%a", "%c") + _store("%p", "%b", (16, 16)).replace("%p.token", "%q.token"), 0, "3"
    )
    assert validate(text, target, options=Options(threads=threads, thread_cycles=0), runs=1) == []  # type: ignore[arg-type]
