"""Writing `tlx.h` from the table of intrinsics: `python -m tlx.frontends.c_header.header`.

The declarations of a row depend only on its operands and its result, so new rows are added automatically:

    result vector                    a macro over TLX_CALL, since each use may return another type
    result token, vector operand     a function that takes anything
    pointer operand                  functions of a pointer to each element type, which is part of the symbol
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Final

from tlx.frontends.c_header import include_dir
from tlx.frontends.c_header.placeholders import ELEMENTS, PREFIX, c_name
from tlx.intrinsics import INTRINSICS, Intrinsic, OperandKind

_TOP: Final = """\
/* tlx.h - tensor operations for C and C++, compiled by clang 14 or newer.

   Generated from the table of intrinsics; do not edit.

   The functions declared here have no definition. clang compiles calls of them to LLVM IR, and tlx-lower turns these
   calls into loops and vector code:

       clang -S -emit-llvm -O1 -I`tlx --include-dir` program.c -o program.ll
       tlx-lower program.ll -o lowered.ll
       clang lowered.ll -o program

   The elements of a tensor are a value of a vector type, of any size; a shape is a vector of int. An int is a handle of
   a tensor with its shape, layout and padding:

       typedef float _tensor_t __attribute__((__vector_size__(64), __aligned__(4)));
       typedef int dims __attribute__((__vector_size__(8), __aligned__(4)));

       int x = tensor_typeinfo(v, (dims){4, 4}, (dims){0, 1}, (dims){0, 0});   (shape, layout, padding)
       _tensor_t y = tensor_matmul(x, x);

   An operation returns the type that the name _tensor_t denotes at the call. For another type write
   TLX_CALL(type, matmul, x, x); or declare it once by TLX_TENSOR(f32_4x4, type) and call tensor_matmul_f32_4x4(x, x).

   clang passes vectors of 8 bytes or less as integers, which loses their element type. tensor_typeinfo keeps it where
   functions can be overloaded: in C++, and in C from clang 15 on. Elsewhere call tensor_typeinfo_f32 and the like. */
#ifndef TLX_H
#define TLX_H

#ifndef __clang__
#error "tlx.h needs clang"
#else

/* The user's -Wpedantic, -Wstrict-prototypes and so on concern the user's code. */
#pragma clang system_header

/* The calls are never executed, so it does not matter how they pass vectors. */
#pragma clang diagnostic ignored "-Wpsabi"

/* Each handle must come from exactly one call: the optimiser may not merge calls, nor make a call depend on control
   flow that it did not depend on. */
#define TLX_ATTRIBUTES __attribute__((__nothrow__, __convergent__, __nomerge__))

#if defined(__cplusplus)
#define TLX_OVERLOAD
#else
#define TLX_OVERLOAD __attribute__((__overloadable__))
#endif

#ifdef __cplusplus
extern "C++" {
#endif
"""

_EACH: Final = """\
/* X(type, element, bytes) for each element type. */
#if __SIZEOF_LONG__ == 8
#define TLX_EACH_LONG(X) X(long, i64, 8) X(unsigned long, i64, 8)
#else
#define TLX_EACH_LONG(X) X(long, i32, 4) X(unsigned long, i32, 4)
#endif
#if __clang_major__ >= 15 && (defined(__SSE2__) || defined(__aarch64__))
#define TLX_EACH_FLOAT16(X) X(_Float16, f16, 2)
#else
#define TLX_EACH_FLOAT16(X)
#endif
#if __clang_major__ >= 17 && (defined(__SSE2__) || defined(__aarch64__))
#define TLX_EACH_BFLOAT16(X) X(__bf16, bf16, 2)
#else
#define TLX_EACH_BFLOAT16(X)
#endif
#define TLX_EACH_TYPE(X) \\
  X(char, i8, 1) X(signed char, i8, 1) X(unsigned char, i8, 1) \\
  X(short, i16, 2) X(unsigned short, i16, 2) \\
  X(int, i32, 4) X(unsigned, i32, 4) \\
  TLX_EACH_LONG(X) X(long long, i64, 8) X(unsigned long long, i64, 8) \\
  TLX_EACH_FLOAT16(X) TLX_EACH_BFLOAT16(X) X(float, f32, 4) X(double, f64, 8)
"""

_ANYTHING: Final = """
{comment}
#if defined(__cplusplus) || __clang_major__ >= 15
{overloads}
#define TLX_SMALL(T, element, size) \\
  TLX_OVERLOAD int {symbol}(T __attribute__((__vector_size__(size))), ...) \\
      __asm__("{symbol}_" #element) TLX_ATTRIBUTES;
#define TLX_SMALL_1(T, element) \\
  TLX_SMALL(T, element, 1) TLX_SMALL(T, element, 3) TLX_SMALL(T, element, 5) TLX_SMALL(T, element, 7) \\
  TLX_SMALL_2(T, element)
#define TLX_SMALL_2(T, element) TLX_SMALL(T, element, 2) TLX_SMALL(T, element, 6) TLX_SMALL_4(T, element)
#define TLX_SMALL_4(T, element) TLX_SMALL(T, element, 4) TLX_SMALL(T, element, 8)
#define TLX_SMALL_8(T, element) TLX_SMALL(T, element, 8)
#define TLX_SMALL_SIZES(T, element, bytes) TLX_SMALL_##bytes(T, element)
TLX_EACH_TYPE(TLX_SMALL_SIZES)
#undef TLX_SMALL
#undef TLX_SMALL_1
#undef TLX_SMALL_2
#undef TLX_SMALL_4
#undef TLX_SMALL_8
#undef TLX_SMALL_SIZES
#else
{functions}
#endif
"""

_MEMORY: Final = """
{comment}
TLX_OVERLOAD {result} {symbol}({const}void *, ...) __asm__("{symbol}") TLX_ATTRIBUTES;
#define TLX_MEMORY(T, element, bytes) \\
  TLX_OVERLOAD {result} {symbol}({const}T *, ...) __asm__("{symbol}_" #element) TLX_ATTRIBUTES;
TLX_EACH_TYPE(TLX_MEMORY)
#undef TLX_MEMORY
"""

_CALL: Final = """\
#ifdef __cplusplus
namespace tlx {
{TEMPLATES}
}
}
#define TLX_EXTERN extern "C"
#else
#define TLX_EXTERN extern
#endif

/* TLX_CALL(type, operation, operands...): the operation with a result of that type. Each type is returned by functions
   of its own, because LLVM rewrites calls of one function that are declared with different types: in C++ by instances
   of templates, in C by tensor_<operation>_<number>, one for each use. */
#ifdef __cplusplus
#define TLX_CALL(T, op, ...) tlx::tensor_##op<T>(__VA_ARGS__)
#else
#define TLX_CALL(T, op, ...) TLX_CALL_(T, op, __COUNTER__, __VA_ARGS__)
#define TLX_CALL_(T, op, n, ...) TLX_CALL__(T, op, n, __VA_ARGS__)
#define TLX_CALL__(T, op, n, ...) \\
  __extension__({ \\
    extern T tensor_##op##_##n(int, ...) __asm__("tensor_" #op "_" #n) TLX_ATTRIBUTES; \\
    tensor_##op##_##n(__VA_ARGS__); \\
  })
#endif
"""


def header_text() -> str:
    """The text of `tlx.h`."""
    results = [row for row in INTRINSICS if row.result == "vector"]
    makers = [_memory(row) if _takes_pointer(row) else _any_vector(row) for row in INTRINSICS if row not in results]
    call = _CALL.replace("{TEMPLATES}", "\n".join(map(_templates, results)))
    parts = [_TOP, _EACH, *makers, call, *map(_macros, results), _tensor_macro(results)]
    return "\n".join(part.strip("\n") + "\n" for part in parts) + "\n#endif /* __clang__ */\n#endif /* TLX_H */\n"


def _takes_pointer(row: Intrinsic) -> bool:
    return row.operands[0].kind is OperandKind.POINTER


def _comment(row: Intrinsic, name: str) -> str:
    """`tensor_matmul(lhs, rhs)`, its other forms, and the table's line on it."""
    forms = [", ".join(o.name + ("..." if o.repeated else "") for o in form) for form in row.forms]
    calls = ", ".join(f"{PREFIX}{name}({form})" for form in forms)
    returns = " Returns a token." if row.result == "token" else ""
    return "\n   ".join(textwrap.wrap(f"/* {calls}: {row.doc}{returns} */", 116))


def _names(row: Intrinsic) -> list[str]:
    return [c_name(name) for name in (row.name, *row.aliases)]


def _any_vector(row: Intrinsic) -> str:
    """A function of a vector of any type, and one for each element type, which is part of the symbol."""
    return "\n".join(_anything_called(row, name) for name in _names(row))


def _anything_called(row: Intrinsic, name: str) -> str:
    """Before C23 a function that takes anything has no prototype; from clang 15 on functions are overloaded."""
    symbol = PREFIX + name
    symbols = [symbol, *(f"{symbol}_{element}" for element in ELEMENTS)]
    overloads = [f'TLX_OVERLOAD int {s}(...) __asm__("{s}") TLX_ATTRIBUTES;' for s in symbols]
    functions = [f"int {s}() TLX_ATTRIBUTES;" for s in symbols]
    return _ANYTHING.format(
        comment=_comment(row, name), symbol=symbol, overloads="\n".join(overloads), functions="\n".join(functions)
    )


def _memory(row: Intrinsic) -> str:
    """Functions of a pointer, one for each pointee; for `void` the users of the token determine the element type."""
    result, const = ("void", "") if row.result == "void" else ("int", "const ")
    (name,) = _names(row)
    return _MEMORY.format(comment=_comment(row, name), result=result, const=const, symbol=PREFIX + name)


def _templates(row: Intrinsic) -> str:
    return "\n".join(f"template <typename T> T {PREFIX}{name}(int, ...) TLX_ATTRIBUTES;" for name in _names(row))


def _macros(row: Intrinsic) -> str:
    lines: list[str] = []
    for name in _names(row):
        lines.append(_comment(row, name))
        lines.append(f"#define {PREFIX}{name}(...) TLX_CALL(_tensor_t, {name}, __VA_ARGS__)")
    return "\n".join(lines)


def _tensor_macro(rows: Sequence[Intrinsic]) -> str:
    names = [name for row in rows for name in _names(row)]
    declarations = [f"  TLX_EXTERN T {PREFIX}{name}_##suffix(int, ...) TLX_ATTRIBUTES;" for name in names]
    comment = "/* TLX_TENSOR(suffix, type): functions tensor_<operation>_<suffix> that return the type. */"
    return " \\\n".join([f"{comment}\n#define TLX_TENSOR(suffix, T)", *declarations])


if __name__ == "__main__":
    (include_dir() / "tlx.h").write_text(header_text(), encoding="utf-8")
