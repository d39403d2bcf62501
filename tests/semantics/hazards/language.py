"""Programs on three pointers that may point anywhere into one array, and a notation for their tensor operations.

    %a = !load %p                  a token: the square matrix of floats at %p
    %a = !pointer %p               the same, as a typeinfo of the pointer
    %v = !vector %a                its flattened vector
    %a = !tensor %v                the token of a flattened vector
    %c = !matmul %a %b             also smma, fadd, fsub, fmul, transpose, concat, rowsum, rowbroadcast
    %c = !clamp %a                 numbers beyond 3 are cut off, so that sums stay exact
    !store %p %c                   its data at %p

`!count` is the number of elements of a matrix, `!last` one less, `!count2` twice as many, `!bytes` their size, and
`!row` the size of a row. `!order` is the layout by rows, `!zeros` no padding, or dense strides, `!wide` the shape with
half as many rows, and `!suffix` the suffix of functions of flattened vectors.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Final

SIZE: Final = 40
"""Rows and columns of the matrices."""
FIRST: Final = 64
"""The place of the first matrix in the array."""
ARRAY: Final = FIRST + 12 * SIZE * SIZE + 64
CLOBBER: Final = """
        define void @clobber(ptr %x) noinline {
          %old = load float, ptr %x
          %new = fadd float %old, 1.0
          store float %new, ptr %x
          %y = getelementptr float, ptr %x, i64 5
          store float 7.0, ptr %y
          ret void
        }
        """
_COUNT: Final = SIZE * SIZE
_WORDS: Final = {
    "!count2": 2 * _COUNT,
    "!count": _COUNT,
    "!last": _COUNT - 1,
    "!bytes": 4 * _COUNT,
    "!row": 4 * SIZE,
    "!wide": f"<2 x i32> <i32 {SIZE // 2}, i32 {2 * SIZE}>",
    "!suffix": f"v{_COUNT}f32",
    "!order": "<2 x i32> <i32 0, i32 1>",
    "!zeros": "<2 x i32> zeroinitializer",
}
_VECTOR: Final = f"<{_COUNT} x float>"
_SHAPE: Final = f"<2 x i32> <i32 {SIZE}, i32 {SIZE}>"
_ORDER: Final = _WORDS["!order"]
_ZEROS: Final = _WORDS["!zeros"]
_TYPE: Final = f"{_SHAPE}, {_ORDER}, {_ZEROS}"
_DECLARED: Final = (
    "void @llvm.memcpy.p0.p0.i64(ptr nocapture writeonly, ptr nocapture readonly, i64, i1) memory(argmem: readwrite)",
    "void @llvm.memmove.p0.p0.i64(ptr nocapture writeonly, ptr nocapture readonly, i64, i1) memory(argmem: readwrite)",
    "void @llvm.memset.p0.i64(ptr nocapture writeonly, i8, i64, i1) memory(argmem: write)",
    f"{_VECTOR} @llvm.minnum.v{_COUNT}f32({_VECTOR}, {_VECTOR})",
    f"{_VECTOR} @llvm.maxnum.v{_COUNT}f32({_VECTOR}, {_VECTOR})",
)
_MAIN: Final = """
define void @main(ptr %array, i64 %at.p, i64 %at.q, i64 %at.r, i64 %n) {
  %p = getelementptr float, ptr %array, i64 %at.p
  %q = getelementptr float, ptr %array, i64 %at.q
  %r = getelementptr float, ptr %array, i64 %at.r
  call void @f(ptr %p, ptr %q, ptr %r, i64 %n)
  ret void
}
"""


@dataclass(frozen=True)
class Hazard:
    """A program whose meaning depends on the order of loads and stores.

    Attributes:
        name: Its name in test reports.
        body: The body of `void @f(ptr %p, ptr %q, ptr %r, i64 %n)`.
        others: Other functions and globals.
        attributes: Attributes of the three pointers.
    """

    name: str
    body: str
    others: str = ""
    attributes: tuple[str, str, str] = ("", "", "")

    def module(self) -> str:
        """The module; `@main` calls `@f` with pointers to elements of one array."""
        pointers = ", ".join(f"ptr {a} %{name}" for a, name in zip(self.attributes, "pqr", strict=True))
        text = f"{self.others}\ndefine void @f({pointers}, i64 %n) noinline {{\n{self.body}\n}}\n{_MAIN}"
        for word, meaning in _WORDS.items():
            text = re.sub(rf"{word}\b", str(meaning), text)
        numbers = count()
        text = "\n".join(_expanded(line.strip(), f"%tmp{next(numbers)}") for line in text.splitlines())
        declared = [f"declare {d}" for d in _DECLARED if f"{d[d.index('@') : d.index('(')]}(" in text]
        return "\n".join([text, *declared])

    def places(self) -> Iterator[tuple[int, int, int]]:
        """Where the pointers point to: into separate matrices, the same one, or ones that overlap."""
        a, b, c = (FIRST + 4 * number * _COUNT for number in range(3))
        yield a, b, c
        if "readonly" in self.attributes[0]:
            yield a, a, b
        elif self.attributes == ("noalias", "", ""):
            yield a, b, b
        elif not any(self.attributes):
            yield from ((a, a, b), (a, b, a), (a, b, b), (a, a, a))
            yield from ((a, a + 1, a + 2), (a + 3, a + 5, a), (a + _COUNT, a + 1, b))
            yield from ((a, a + SIZE, a + _COUNT - 1), (b, a, a + SIZE + 1), (a + _COUNT - 1, b, a))
            yield from ((a, a + _COUNT, a + 2 * _COUNT), (a + 2 * _COUNT, a + _COUNT, a))


def _typeinfo(vector: str) -> str:
    return f"call token @llvm.tensor.typeinfo({_VECTOR} {vector}, {_TYPE})"


def _expanded(line: str, new: str) -> str:
    """A line in LLVM IR; `new` is a name for an intermediate result."""
    match = re.fullmatch(r"(?:(%\w+) = )?!(\w+) (.*)", line)
    if match is None:
        return line
    result, name, operands = match[1], match[2], match[3].split()
    first = operands[0]
    if name in ("load", "pointer", "vector", "tensor", "store"):
        form = {
            "load": f"call token @llvm.tensor.load(ptr elementtype(float) {first}, {_TYPE}, {_ZEROS})",
            "pointer": f"call token @llvm.tensor.typeinfo(ptr elementtype({_VECTOR}) {first}, {_TYPE})",
            "vector": f"call {_VECTOR} @llvm.tensor.tovector(token {first})",
            "tensor": _typeinfo(first),
            "store": f"call void @llvm.tensor.store(ptr {first}, token {operands[-1]}, {_ZEROS})",
        }[name]
        return f"{result} = {form}" if result else form
    if name == "concat":
        return (
            f"{new} = call <{2 * _COUNT} x float> @llvm.tensor.concat(token {first}, token {operands[1]}, i32 0)\n"
            f"{result} = call token @llvm.tensor.typeinfo(<{2 * _COUNT} x float> {new}, "
            f"<2 x i32> <i32 {2 * SIZE}, i32 {SIZE}>, {_ORDER}, {_ZEROS})"
        )
    if name == "rowsum":
        window, ones = f"<2 x i32> <i32 1, i32 {SIZE}>", "<2 x i32> <i32 1, i32 1>"
        return (
            f"{new} = call <{SIZE} x float> @llvm.tensor.reduce.add(token {first}, {window}, {ones})\n"
            f"{result} = call token @llvm.tensor.typeinfo(<{SIZE} x float> {new}, "
            f"<2 x i32> <i32 {SIZE}, i32 1>, {_ORDER}, {_ZEROS})"
        )
    return f"{_computed(name, operands, new)}\n{result} = {_typeinfo(new)}"


def _computed(name: str, operands: list[str], new: str) -> str:
    """The lines that compute a flattened matrix."""
    if name == "rowbroadcast":
        return f"{new} = call {_VECTOR} @llvm.tensor.broadcast(token {operands[1]}, {_SHAPE}, {_ORDER})"
    if name == "transpose":
        return f"{new} = call {_VECTOR} @llvm.tensor.transpose(token {operands[0]}, <2 x i32> <i32 1, i32 0>)"
    if name in ("matmul", "smma"):
        tokens = ", ".join(f"token {operand}" for operand in operands)
        return f"{new} = call {_VECTOR} @llvm.tensor.{name}({tokens})"
    vectors = [f"{new}.{number} = call {_VECTOR} @llvm.tensor.tovector(token {o})" for number, o in enumerate(operands)]
    if name == "clamp":
        least, most = (f"{_VECTOR} splat (float {bound})" for bound in ("-3.0", "3.0"))
        return "\n".join(
            [
                *vectors,
                f"{new}.low = call {_VECTOR} @llvm.minnum.v{_COUNT}f32({_VECTOR} {new}.0, {most})",
                f"{new} = call {_VECTOR} @llvm.maxnum.v{_COUNT}f32({_VECTOR} {new}.low, {least})",
            ]
        )
    return "\n".join([*vectors, f"{new} = {name} {_VECTOR} {new}.0, {new}.1"])
