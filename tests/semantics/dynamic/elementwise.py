"""Elementwise programs, reductions, broadcasts and moves of run-time size."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.semantics.dynamic.programs import Body, Program, integers

VECTOR = "ptr %a, ptr %b, ptr %c, i32 %n, float %s"
LENGTHS = [(1,), (15,), (16,), (255,), (257,), (530,)]
MATRIX = "ptr %a, ptr %c, i32 %m, i32 %n, i32 %p"


def _handle(t: Body, pointer: str, element: str, *shape: str) -> str:
    return t.op("tovector", element, t.load(pointer, element, shape))


def _vectors(dtype: Any, low: int = -9, high: int = 10) -> Any:
    def arguments(rng: np.random.Generator, n: int) -> list[Any]:
        return [*(integers(rng, n, dtype, low, high) for _ in range(3)), n, 2.5]

    return arguments


def _expression(t: Body) -> None:
    """Splats by constant, by argument, a scalar condition, a comparison, and a value used twice."""
    x, y = _handle(t, "%a", "float", "%n"), _handle(t, "%b", "float", "%n")
    first = t.vscale("insertelement H poison, float %s, i64 0")
    splat = t.vscale(f"shufflevector H {first}, H poison, <vscale x 1 x i32> zeroinitializer")
    scaled = t.vscale(f"fmul H {x}, {splat}")
    moved = t.vscale(f"fadd nsz H {scaled}, splat (float 1.0)")
    less = t.vscale(f"fcmp olt H {moved}, {y}")
    flags = "<vscale x 1 x i1>"
    least = t.value(f"select {flags} {less}, <vscale x 1 x float> {moved}, <vscale x 1 x float> {y}")
    is_big = t.value("icmp ugt i32 %n, 20")
    chosen = t.value(f"select i1 {is_big}, <vscale x 1 x float> {least}, <vscale x 1 x float> {moved}")
    negative = t.vscale(f"fneg H {chosen}")
    whole = t.value(f"fptosi <vscale x 1 x float> {negative} to <vscale x 1 x i32>")
    back = t.value(f"sitofp <vscale x 1 x i32> {whole} to <vscale x 1 x float>")
    t.put("%c", t.vscale(f"fsub H {back}, {moved}"), "float", ("%n",))


def _comparison_used_twice(t: Body) -> None:
    """A comparison that is used twice is in memory."""
    x, y = _handle(t, "%a", "i32", "%n"), _handle(t, "%b", "i32", "%n")
    less = t.vscale(f"icmp slt H {x}, {y}", "i32")
    flags = "<vscale x 1 x i1>"
    wide = t.value(f"zext {flags} {less} to <vscale x 1 x i32>")
    other = t.value(f"xor {flags} {less}, splat (i1 true)")
    deep = t.value(f"sext {flags} {other} to <vscale x 1 x i32>")
    t.put("%c", t.vscale(f"sub nsw H {wide}, {deep}", "i32"), "i32", ("%n",))


def _division(t: Body) -> None:
    x, y = _handle(t, "%a", "i8", "%n"), _handle(t, "%b", "i8", "%n")
    odd = t.vscale(f"or H {y}, splat (i8 1)", "i8")
    quotient = t.vscale(f"sdiv H {x}, {odd}", "i8")
    rest = t.vscale(f"urem H {x}, {odd}", "i8")
    t.put("%c", t.vscale(f"xor H {quotient}, {rest}", "i8"), "i8", ("%n",))


def _intrinsics(t: Body) -> None:
    x, y = _handle(t, "%a", "double", "%n"), _handle(t, "%b", "double", "%n")
    h = "<vscale x 1 x double>"
    sum_ = t.value(f"call contract {h} @llvm.fma.nxv1f64({h} {x}, {h} {y}, {h} splat (double 0.5))")
    size = t.value(f"call {h} @llvm.fabs.nxv1f64({h} {sum_})")
    t.put("%c", t.value(f"call {h} @llvm.minnum.nxv1f64({h} {size}, {h} {x})"), "double", ("%n",))
    for name, count in (("fma", 3), ("fabs", 1), ("minnum", 2)):
        t.declarations.add(f"declare {h} @llvm.{name}.nxv1f64({', '.join([h] * count)})")


def _absolute(t: Body) -> None:
    x = _handle(t, "%a", "i16", "%n")
    h = "<vscale x 1 x i16>"
    size = t.value(f"call {h} @llvm.abs.nxv1i16({h} {x}, i1 false)")
    t.put("%c", size, "i16", ("%n",))
    t.declarations.add(f"declare {h} @llvm.abs.nxv1i16({h}, i1)")


def _exponential(t: Body) -> None:
    """LLVM's own exp, between other instructions."""
    x, h = _handle(t, "%a", "float", "%n"), "<vscale x 1 x float>"
    half = t.vscale(f"fmul H {x}, splat (float 0.5)")
    power = t.value(f"call {h} @llvm.exp.nxv1f32({h} {half})")
    t.put("%c", t.vscale(f"fadd H {power}, {x}"), "float", ("%n",))
    t.declarations.add(f"declare {h} @llvm.exp.nxv1f32({h})")


def _selected_exponential(t: Body) -> None:
    """A comparison and flags in a loop that later stages expand."""
    x, y = _handle(t, "%a", "float", "%n"), _handle(t, "%b", "float", "%n")
    h = "<vscale x 1 x float>"
    power = t.value(f"call {h} @llvm.exp.nxv1f32({h} {x})")
    less = t.vscale(f"fcmp ult H {power}, {y}")
    chosen = t.value(f"select <vscale x 1 x i1> {less}, {h} {x}, {h} {y}")
    t.put("%c", t.vscale(f"fsub nsz H {chosen}, {x}"), "float", ("%n",))
    t.declarations.add(f"declare {h} @llvm.exp.nxv1f32({h})")


def _splats(t: Body) -> None:
    """Expressions of splats, of a constant and of an argument, one of them used in a loop."""
    t.label("entry")
    x = _handle(t, "%a", "i32", "%n")
    h = "<vscale x 1 x i32>"
    first = t.vscale("insertelement H poison, i32 %n, i64 0", "i32")
    splat = t.vscale(f"shufflevector H {first}, H poison, {h} zeroinitializer", "i32")
    few = t.vscale(f"and H {splat}, splat (i32 7)", "i32")
    less = t.value(f"call {h} @llvm.smin.nxv1i32({h} {few}, {h} splat (i32 5))")
    shifted = t.vscale(f"shl H {x}, {less}", "i32")
    t.line("br label %loop")
    t.label("loop")
    t.line("%i = phi i32 [ 0, %entry ], [ %next, %loop ]")
    t.line(f"%sum = phi {h} [ {shifted}, %entry ], [ %more, %loop ]")
    t.line(f"%more = add {h} %sum, {few}")
    t.line("%next = add i32 %i, 1")
    t.line("%again = icmp ult i32 %next, 3")
    t.line("br i1 %again, label %loop, label %done")
    t.label("done")
    t.put("%c", t.vscale(f"xor H %more, {less}", "i32"), "i32", ("%n",))
    t.declarations.add(f"declare {h} @llvm.smin.nxv1i32({h}, {h})")


def _orders_and_classes(t: Body) -> None:
    """Functions whose results have a type of their own."""
    x, y = _handle(t, "%a", "double", "%n"), _handle(t, "%b", "double", "%n")
    d, i, truth = "<vscale x 1 x double>", "<vscale x 1 x i32>", "<vscale x 1 x i1>"
    rounded = [
        t.value(f"call {i} @llvm.{name}.nxv1i32.nxv1f64({d} {t.vscale(f'fmul H {z}, splat (double 0.5)', 'double')})")
        for name, z in (("lrint", x), ("lround", y))
    ]
    order = t.value(f"call {i} @llvm.scmp.nxv1i32.nxv1i32({i} {rounded[0]}, {i} {rounded[1]})")
    negative = t.value(f"call {truth} @llvm.is.fpclass.nxv1f64({d} {x}, i32 60)")
    wide = t.value(f"zext {truth} {negative} to {i}")
    total = t.value(f"add {i} {order}, {wide}")
    t.put("%c", t.value(f"sitofp {i} {total} to {d}"), "double", ("%n",))
    t.declarations |= {
        *(f"declare {i} @llvm.{name}.nxv1i32.nxv1f64({d})" for name in ("lrint", "lround")),
        f"declare {i} @llvm.scmp.nxv1i32.nxv1i32({i}, {i})",
        f"declare {truth} @llvm.is.fpclass.nxv1f64({d}, i32)",
    }


def _canonical_halves(t: Body) -> None:
    """LLVM cannot select `canonicalize` of halves; the division must not trap on what fills the last block."""
    x, y = _handle(t, "%a", "half", "%n"), _handle(t, "%b", "half", "%n")
    h, i = "<vscale x 1 x half>", "<vscale x 1 x i32>"
    canonical = t.value(f"call {h} @llvm.canonicalize.nxv1f16({h} {x})")
    divisor = t.value(f"sub {i} {t.value(f'fptosi {h} {y} to {i}')}, splat (i32 1)")
    quotient = t.value(f"sdiv {i} {t.value(f'fptosi {h} {canonical} to {i}')}, {divisor}")
    t.put("%c", t.value(f"sitofp {i} {quotient} to {h}"), "half", ("%n",))
    t.declarations.add(f"declare {h} @llvm.canonicalize.nxv1f16({h})")


def _scaled_halves(t: Body) -> None:
    """LLVM 22 has wrong code for `ldexp` of vectors of half with AVX-512."""
    x, y = _handle(t, "%a", "half", "%n"), _handle(t, "%b", "half", "%n")
    h, i = "<vscale x 1 x half>", "<vscale x 1 x i32>"
    exponents = t.value(f"fptosi {h} {y} to {i}")
    t.put("%c", t.value(f"call {h} @llvm.ldexp.nxv1f16.nxv1i32({h} {x}, {i} {exponents})"), "half", ("%n",))
    t.declarations.add(f"declare {h} @llvm.ldexp.nxv1f16.nxv1i32({h}, {i})")


def _function(name: str) -> Any:
    def body(t: Body) -> None:
        """Rows with a pitch and padding known at run time, columns first."""
        x = t.load("%a", "float", ("%m", "%n"), (1, 0), (0, "%p"), (0, "%n"))
        t.put("%c", t.op(name, "float", x), "float", ("%m", "%n"), (1, 0), (0, 0))

    return body


def _dense_function(t: Body) -> None:
    x = t.info(_handle(t, "%a", "float", "%m", "%n"), "float", ("%m", "%n"))
    t.put("%c", t.op("sigmoid", "float", x), "float", ("%m", "%n"))


def _matrix(dtype: Any, padding: int = 0) -> Any:
    def arguments(rng: np.random.Generator, m: int, n: int) -> list[Any]:
        array, out = integers(rng, m * (n + padding), dtype, -5, 6), integers(rng, m * (n + padding), dtype)
        return [array, out, m, n + padding, padding]

    return arguments


MATRICES = [(1, 1), (3, 5), (2, 256), (7, 300), (40, 33)]


def _reduction(kind: str, element: str, window: Any, out: Any, strides: Any = (1, 1), layout: Any = (0, 1)) -> Any:
    def body(t: Body) -> None:
        x = t.load("%a", element, ("%m", "%n"), layout, None, (0, "%n"))
        rows = t.value("udiv i32 %m, 2")
        rows = t.value(f"add i32 {rows}, 0")
        result = [rows if o == "half" else o for o in out]
        r = t.op(f"reduce.{kind}", element, x, t.vector(window), t.vector(strides))
        t.put("%c", r, element, result)

    return body


def _broadcast_row(t: Body) -> None:
    """A row and a column, repeated and added."""
    row = t.op("broadcast", "float", t.load("%a", "float", ("%n",)), t.vector(("%m", "%n")), "<1 x i32> <i32 1>")
    x = t.load("%a", "float", ("%m", 1), None, None, (0, "%n"))
    column = t.op("broadcast", "float", x, t.vector(("%m", "%n")), "<2 x i32> <i32 0, i32 1>")
    t.put("%c", t.vscale(f"fadd H {row}, {column}"), "float", ("%m", "%n"))


def _stretch(t: Body) -> None:
    """Whether the extent is 1 is known only at run time."""
    x = t.load("%a", "float", ("%n", "%p"))
    t.put(
        "%c", t.op("broadcast", "float", x, t.vector(("%n", "%m")), "<2 x i32> <i32 0, i32 1>"), "float", ("%n", "%m")
    )


def _stretch_arguments(rng: np.random.Generator, n: int, m: int, p: int) -> list[Any]:
    return [integers(rng, n * p, np.float32), integers(rng, n * m, np.float32), m, n, p]


def _fill(t: Body) -> None:
    x = t.load("%a", "float", ("%m", "%n"), None, ("%p", 0))
    full = t.op("broadcast", "float", x, "float 2.5")
    t.put("%c", t.vscale(f"fadd H {full}, splat (float 1.0)"), "float", ("%m", "%n"))


def _transpose(t: Body) -> None:
    """The padding is transposed, too."""
    x = t.load("%a", "i16", ("%m", "%n"), None, (0, "%p"))
    y = t.op("transpose", "i16", x, "<2 x i32> <i32 1, i32 0>")
    t.put("%c", t.vscale(f"add H {y}, splat (i16 1)", "i16"), "i16", ("%n", "%m"))


def _permute(t: Body) -> None:
    x = t.load("%a", "i32", ("%m", "%n"))
    count = t.value("mul i32 %m, %n")
    y = t.op("reshape.permute", "i32", x, "<2 x i32> <i32 1, i32 0>", t.vector((count,)))
    t.put("%c", y, "i32", (count,))


def _concat(t: Body) -> None:
    x = t.load("%a", "i64", ("%m", "%n"))
    half = t.value("udiv i32 %n, 2")
    rest = t.value(f"sub i32 %n, {half}")
    y = t.load("%a", "i64", ("%m", rest), None, None, (0, "%n"))
    wide = t.value(f"add i32 %n, {rest}")
    t.put("%c", t.op("concat", "i64", x, y, "i32 1"), "i64", ("%m", wide))


def _concat_arguments(rng: np.random.Generator, m: int, n: int) -> list[Any]:
    return [integers(rng, m * n, np.int64), integers(rng, m * (2 * n - n // 2), np.int64), m, n, 0]


def _copies(t: Body) -> None:
    """Three dimensions, a window that overlaps itself, a pitch of the store."""
    x = t.load("%a", "i8", ("%m", 2, "%n"), (2, 0, 1), None, (0, 1, "%n"))
    t.store("%c", x, (0, "%p", 0))


def _copies_arguments(rng: np.random.Generator, m: int, n: int) -> list[Any]:
    return [integers(rng, (m + 1) * n, np.int8), integers(rng, (3 * m - 1) * n, np.int8), m, n, 3]


def _reduced_half(rng: np.random.Generator, m: int, n: int) -> list[Any]:
    return _matrix(np.int32)(rng, 2 * m, n)


def _window(t: Body) -> None:
    x = t.load("%a", "half", ("%m", "%n"))
    rows, columns = t.value("sub i32 %m, %p"), t.value("sub i32 %n, 1")
    columns = t.value(f"udiv i32 {columns}, 2")
    columns = t.value(f"add i32 {columns}, 1")
    more = t.value(f"add i32 {rows}, 1")
    t.put("%c", t.op("reduce.add", "half", x, t.vector(("%p", 1)), t.vector((1, 2))), "half", (more, columns))


def _window_arguments(rng: np.random.Generator, m: int, n: int) -> list[Any]:
    return [integers(rng, m * n, np.float16), integers(rng, m * n, np.float16), m, n, (m + 1) // 2]


ELEMENTS: list[Program] = [
    Program("expression", VECTOR, _expression, _vectors(np.float32), LENGTHS),
    Program("comparison_used_twice", VECTOR, _comparison_used_twice, _vectors(np.int32), LENGTHS),
    Program("division", VECTOR, _division, _vectors(np.int8), LENGTHS),
    Program("intrinsics", VECTOR, _intrinsics, _vectors(np.float64), LENGTHS),
    Program("absolute", VECTOR, _absolute, _vectors(np.int16), LENGTHS),
    Program("exponential", VECTOR, _exponential, _vectors(np.float32), LENGTHS, exact=False),
    Program("selected_exponential", VECTOR, _selected_exponential, _vectors(np.float32), LENGTHS),
    Program("splats", VECTOR, _splats, _vectors(np.int32), LENGTHS),
    Program("orders_and_classes", VECTOR, _orders_and_classes, _vectors(np.float64), LENGTHS),
    Program("canonical_halves", VECTOR, _canonical_halves, _vectors(np.float16, 2), LENGTHS),
    Program("scaled_halves", VECTOR, _scaled_halves, _vectors(np.float16), LENGTHS),
    *(
        Program(f"function_{name}", MATRIX, _function(name), _matrix(np.float32, 2), MATRICES, exact=name == "relu")
        for name in ("relu", "exp", "tanh", "erfc", "cos")
    ),
    Program("function_dense", MATRIX, _dense_function, _matrix(np.float32), MATRICES, exact=False),
    Program("sum_rows", MATRIX, _reduction("add", "float", (1, "%n"), ("%m", 1)), _matrix(np.float32), MATRICES),
    Program("sum_columns", MATRIX, _reduction("add", "float", ("%m", 1), (1, "%n")), _matrix(np.float32), MATRICES),
    Program("sum_all", MATRIX, _reduction("add", "i8", ("%m", "%n"), (1, 1)), _matrix(np.int8), MATRICES),
    Program(
        "max_columns", MATRIX, _reduction("max", "float", (1, "%m"), ("%n", 1), layout=(1, 0)), _matrix(np.float32),
        MATRICES,
    ),
    Program("min_pairs", MATRIX, _reduction("min", "i32", (2, 1), ("half", "%n"), (2, 1)), _reduced_half, MATRICES),
    Program("windows", MATRIX, _window, _window_arguments, MATRICES),
    Program("broadcast_row", MATRIX, _broadcast_row, _matrix(np.float32), MATRICES),
    Program("stretch", MATRIX, _stretch, _stretch_arguments, [(1, 1, 1), (3, 7, 1), (3, 7, 7), (40, 300, 1)]),
    Program("fill", MATRIX, _fill, _matrix(np.float32), MATRICES),
    Program("transpose", MATRIX, _transpose, _matrix(np.int16, 1), MATRICES),
    Program("permute", MATRIX, _permute, _matrix(np.int32), MATRICES),
    Program("concat", MATRIX, _concat, _concat_arguments, MATRICES),
    Program("copies", MATRIX, _copies, _copies_arguments, MATRICES),
]  # fmt: skip
