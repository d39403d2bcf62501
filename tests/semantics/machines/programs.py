"""Programs whose machine code runs under an emulator: products with epilogues, softmax, a convolution, attention.

The evaluator computes what they mean from their input.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from tests.semantics.dynamic.programs import Program
from tests.semantics.dynamic.test_dynamic import PROGRAMS, arguments, compare, expected
from tests.support.emulation import Machine
from tlx.api.compiler import FunctionNamespace
from tlx.api.emulation import EmulatedModule
from tlx.diagnostics import TlxError
from tlx.evaluate import evaluate
from tlx.evaluate.values import BFLOAT16
from tlx.fuzz.check import CheckSettings, MismatchError, RefusedError, check_program
from tlx.fuzz.generation.programs import portable, random_program
from tlx.fuzz.options import random_options
from tlx.intrinsics.numpy_types import Array
from tlx.ir.parser.module import parse

EXAMPLES: Final = Path(__file__).parents[3] / "examples"
DTYPES: Final[dict[str, Any]] = {
    "float": np.float32,
    "double": np.float64,
    "half": np.float16,
    "bfloat": BFLOAT16,
    "s8": np.int8,
    "u8": np.uint8,
}
KINDS: Final = {
    **{kind: ("mma", kind, kind) for kind in ("float", "double", "half", "bfloat")},
    "smma": ("smma", "s8", "s8"),
    "umma": ("umma", "u8", "u8"),
    "usmma": ("usmma", "u8", "s8"),
    "summa": ("summa", "s8", "u8"),
}
SHAPES: Final = ((1, 3, 5), (16, 24, 32), (33, 42, 70), (61, 59, 67), (40, 80, 64))
FEW_SHAPES: Final = ((16, 24, 32), (33, 42, 70))
"""For compilers, options and widths of registers beside those that all shapes are compiled for."""
ROUNDING: Final = {2: 2.0**-7, 4: 2.0**-18, 8: 2.0**-40}
"""Bounds relative to the largest result, by bytes of an element: sums are in another order."""
TYPED_COMPILERS: Final = ("clang-14",)
"""Compilers that read typed pointers only."""
FLAT: Final = "zeroinitializer, <2 x i32> zeroinitializer"


def _load(type_: str, pointer: str, rows: int, columns: int) -> str:
    sizes = f"<2 x i32> <i32 {rows}, i32 {columns}>, <2 x i32> <i32 0, i32 1>, <2 x i32> {FLAT}"
    return f"call token @llvm.tensor.load(ptr elementtype({type_}) {pointer}, {sizes})"


def fused_product_text(kind: str, shape: tuple[int, int, int]) -> str:
    """A function of result, A and B: relu(result + A @ B) in place of the result; relu for floats only."""
    operation, lhs, _ = KINDS[kind]
    (m, n, k), element = shape, "i8" if lhs in ("s8", "u8") else lhs
    sums = {"double": "double"}.get(element, "i32" if element == "i8" else "float")
    vector = f"<{m * n} x {sums}>"
    relu = f"call {vector} @llvm.maxnum({vector} %p, {vector} zeroinitializer)"
    return f"""
define void @{kind}_{m}_{n}_{k}(ptr noalias %c, ptr noalias %x, ptr noalias %y) {{
  %a = {_load(element, "%x", m, k)}
  %b = {_load(element, "%y", k, n)}
  %s = {_load(sums, "%c", m, n)}
  %p = call {vector} @llvm.tensor.{operation}(token %s, token %a, token %b)
  {f"%r = {relu}" if sums != "i32" else f"%r = add {vector} %p, zeroinitializer"}
  store {vector} %r, ptr %c, align 4
  ret void
}}
"""


def fused_product_arguments(kind: str, shape: tuple[int, int, int]) -> list[Array]:
    """The arguments of `fused_product_text`."""
    random = np.random.default_rng(sum(shape))
    (m, n, k), (_, lhs, rhs) = shape, KINDS[kind]

    def numbers(name: str, count: int) -> Array:
        kind = DTYPES[name]
        if name in ("s8", "u8"):
            bounds = np.iinfo(kind)
            return random.integers(bounds.min, bounds.max + 1, count).astype(kind)
        return random.normal(size=count).astype(kind)

    sums: Any = {"double": np.float64}.get(lhs, np.int32 if lhs in ("s8", "u8") else np.float32)
    return [random.integers(-99, 99, m * n).astype(sums), numbers(lhs, m * k), numbers(rhs, k * n)]


@dataclass(frozen=True)
class Example:
    """A smaller form of an example.

    Attributes:
        file: Its file.
        changes: Numbers to replace by others.
        shapes: Element type and count of each array; the last one is the result.
    """

    file: str
    changes: dict[str, str]
    shapes: tuple[tuple[str, int], ...]

    @property
    def name(self) -> str:
        """The function's name."""
        return self.file.partition(".")[0]

    @property
    def text(self) -> str:
        """The program."""
        text = (EXAMPLES / "ir" / self.file).read_text(encoding="utf-8")
        return re.sub(r"\b\d+\b", lambda number: self.changes.get(number[0], number[0]), text)

    @property
    def arguments(self) -> list[Array]:
        """Random arrays."""
        random = np.random.default_rng(7)
        return [random.normal(size=count).astype(DTYPES[kind]) for kind, count in self.shapes]


LAYERS: Final = (
    Example("softmax.ll", {"512": "13", "1000": "70", "512000": "910"}, (("float", 910), ("float", 910))),
    Example(
        "mlp.ll",
        {"512": "37", "256": "48", "131072": "1776"},
        (("bfloat", 1776), ("bfloat", 2304), ("float", 48), ("bfloat", 1776)),
    ),
    Example(
        "convolution.ll",
        {"8": "2", "64": "12", "30": "11", "28": "9", "401408": "1944"},
        (("float", 2904), ("float", 1296), ("float", 12), ("float", 1944)),
    ),
)


def assert_near(found: Array, exact: Array) -> None:
    """Integers are equal, floats near."""
    if exact.dtype.kind == "i":
        np.testing.assert_array_equal(found, exact)
        return
    result, wanted = found.astype(np.float64), exact.astype(np.float64)
    bound = ROUNDING[exact.dtype.itemsize] * max(1.0, float(np.abs(wanted).max()))
    np.testing.assert_allclose(result, wanted, rtol=0, atol=bound)


def with_typed_pointers(text: str) -> str:
    """Functions of `fused_product_text` with pointers as LLVM 14 writes them."""
    functions = text.split("\ndefine ")
    return "\ndefine ".join([functions[0], *map(_with_typed_pointers, functions[1:])])


def _with_typed_pointers(function: str) -> str:
    elements = {pointer: element for element, pointer in re.findall(r"elementtype\((\w+)\) (%\w)", function)}
    for pointer, element in elements.items():
        function = function.replace(f"ptr noalias {pointer}", f"{element}* noalias {pointer}")
    function = re.sub(r"ptr elementtype\((\w+)\)", r"\1* elementtype(\1)", function)
    cast = rf"  %q = bitcast {elements['%c']}* %c to \1*\n  store \1 %r, \1* %q"
    return re.sub(r"  store (<.*>) %r, ptr %c", cast, function)


def check_products(
    machine: Machine,
    *,
    kinds: Collection[str] = tuple(KINDS),
    shapes: Sequence[tuple[int, int, int]] = SHAPES,
    threads: bool = False,
    opt_level: int = 2,
    compiler: str = "",
) -> EmulatedModule:
    """Products of all types and several shapes; `compiler` is a clang, for which pointers are as it writes them."""
    text = "".join(fused_product_text(kind, shape) for kind in kinds for shape in shapes)
    options = replace(machine.options, threads="openmp", thread_cycles=0) if threads else None
    source = with_typed_pointers(text) if compiler in TYPED_COMPILERS else text
    code = machine.compile(source, opt_level=opt_level, options=options, compiler=compiler)
    for kind in kinds:
        for shape in shapes:
            function = "_".join([kind, *map(str, shape)])
            found, *operands = fused_product_arguments(kind, shape)
            code[function](found, *operands)
            assert_near(found, _exact_product(kind, shape))
    return code


@cache
def _exact_product(kind: str, shape: tuple[int, int, int]) -> Array:
    """What `fused_product_text` means for `fused_product_arguments`."""
    result, *operands = fused_product_arguments(kind, shape)
    evaluate(parse(fused_product_text(kind, shape)), "_".join([kind, *map(str, shape)]), result, *operands)
    return result


def check_layers(machine: Machine) -> None:
    """The examples."""
    for example in LAYERS:
        code = machine.compile(example.text)
        *operands, found = example.arguments
        exact = found.copy()
        code[example.name](*operands, found)
        evaluate(parse(example.text), example.name, *operands, exact)
        assert_near(found, exact)
        code.close()


_HALF_OPERATIONS: Final = {
    **{name: f"{name} {{v}} %x, %y" for name in ("fadd", "fsub", "fmul", "fdiv")},
    **{
        name: f"call {{v}} @llvm.{name}({{v}} %x)"
        for name in "sqrt fabs floor ceil trunc rint nearbyint roundeven round".split()
    },
    **{
        name: f"call {{v}} @llvm.{name}({{v}} %x, {{v}} %y)"
        for name in "copysign minnum maxnum minimum maximum minimumnum maximumnum".split()
    },
    **{name: f"call {{v}} @llvm.{name}({{v}} %x, {{v}} %y, {{v}} %z)" for name in ("fma", "fmuladd")},
    "fneg": "fneg {v} %x",
    "relu": "call {v} @llvm.tensor.relu(token %t)",
    "exp": "call {v} @llvm.tensor.exp(token %t)",
}
_HALF_COMPARISONS: Final = ("oeq", "olt", "uge", "ugt", "ult", "une", "uno", "ord")


def half_text(rows: int, columns: int) -> str:
    """Functions of three operands and the result, of half: each operation, comparisons, and several in a row.

    The last ones are the epilogue of a product, and sums of rows.
    """
    v, flags = f"<{rows * columns} x half>", f"<{rows * columns} x i1>"
    typed = f"<2 x i32> <i32 {rows}, i32 {columns}>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer"
    bodies = {name: f"  %r = {text.format(v=v)}\n" for name, text in _HALF_OPERATIONS.items()}
    for predicate in _HALF_COMPARISONS:
        select = f"  %r = select {flags} %f, {v} %z, {v} %y\n"
        bodies[f"fcmp_{predicate}"] = f"  %f = fcmp {predicate} {v} %x, %y\n{select}"
    bodies["chain"] = f"""  %p = fmul {v} %x, %y
  %n = fneg {v} %p
  %t.n = call token @llvm.tensor.typeinfo({v} %n, {typed})
  %u = call {v} @llvm.tensor.relu(token %t.n)
  %s = fadd {v} %u, %z
  %e = fpext {v} %s to <{rows * columns} x float>
  %d = fmul <{rows * columns} x float> %e, %e
  %h = fptrunc <{rows * columns} x float> %d to {v}
  %r = fsub {v} %h, %s
"""
    bodies["epilogue"] = f"""  %b = {_load("half", "%b.p", columns, columns)}
  %p = call {v} @llvm.tensor.matmul(token %t, token %b)
  %s = fadd {v} %p, %y
  %r = fmul {v} %s, %z
"""
    sums = f"""  %p = fmul {v} %x, %y
  %t.p = call token @llvm.tensor.typeinfo({v} %p, {typed})
  %q = call <{rows} x half> @llvm.tensor.reduce.add(token %t.p, <2 x i32> <i32 1, i32 {columns}>,
      <2 x i32> <i32 1, i32 {columns}>)
  store <{rows} x half> %q, ptr %c, align 2
"""
    stores = {name: f"{body}  store {v} %r, ptr %c, align 2\n" for name, body in bodies.items()} | {"sums": sums}
    loads = "".join(
        f"  %t{number} = {_load('half', f'%{name}.p', rows, columns)}\n"
        f"  %{name} = call {v} @llvm.tensor.tovector(token %t{number})\n"
        for name, number in (("x", ""), ("y", ".y"), ("z", ".z"))
    )
    pointers = "ptr noalias %c, ptr noalias %x.p, ptr noalias %y.p, ptr noalias %z.p, ptr noalias %b.p"
    return "".join(
        f"define void @{name}_{rows}_{columns}({pointers}) {{\n{loads}{body}  ret void\n}}\n\n"
        for name, body in stores.items()
    )


def check_half(compile_text: Callable[[str], FunctionNamespace[Any]]) -> None:
    """Operations on all kinds of half: results are equal, signs of zeros and NaN included.

    Sums, products of matrices and `exp` may be rounded otherwise, and minnum and maxnum return either zero.
    """
    for rows, columns in ((8, 64), (3, 21)):
        text = half_text(rows, columns)
        code, module = compile_text(text), parse(text)
        random = np.random.default_rng(rows)
        numbers = [random.integers(0, 1 << 16, rows * columns, dtype=np.uint16).view(np.float16) for _ in range(3)]
        small = [random.normal(size=rows * columns).astype(np.float16) for _ in range(3)]
        square = random.normal(size=columns * columns).astype(np.float16)
        for name in re.findall(r"@(\w+)\(ptr", text):
            operation = name.partition("_")[0]
            is_exact = operation not in ("epilogue", "sums", "exp")
            found, exact = (np.zeros(rows * columns, np.float16) for _ in range(2))
            operands = [*(numbers if is_exact else small), square]
            code[name](found, *operands)
            evaluate(module, name, exact, *operands)
            if not is_exact:
                assert_near(found, exact)
                continue
            np.testing.assert_array_equal(found, exact, err_msg=name)
            if operation not in ("minnum", "maxnum"):
                numeric = ~np.isnan(exact)
                np.testing.assert_array_equal(np.signbit(found)[numeric], np.signbit(exact)[numeric], err_msg=name)
        if isinstance(code, EmulatedModule):
            code.close()


def check_attention(machine: Machine) -> None:
    """The example in the tensor language, of run-time size."""
    code, n = machine.compile(EXAMPLES / "tensor_language" / "attention.tl"), 70
    random = np.random.default_rng(5)
    q, k, v = (random.normal(size=64 * n).astype(BFLOAT16) for _ in range(3))
    o = np.zeros(64 * n, np.float32)
    code.attention(*(value for array in (q, k, v, o) for value in (array, n, n)), -(-n // 64), 1, 1)
    queries, keys, values, found = (array.reshape(64, n).T.astype(np.float64) for array in (q, k, v, o))
    weights = np.exp(queries @ keys.T / 8)
    exact = weights / weights.sum(axis=1, keepdims=True) @ values
    np.testing.assert_allclose(found, exact, rtol=0, atol=2.0**-8 * np.abs(exact).max())
    code.close()


@cache
def _dynamic_text(names: tuple[str, ...]) -> str:
    texts = [PROGRAMS[name].text for name in names]
    lines = {line: None for text in texts for line in text.splitlines() if line.startswith("declare")}
    bodies = ["\n".join(line for line in text.splitlines() if not line.startswith("declare")) for text in texts]
    return "\n".join([*bodies, *lines, ""])


HALVES: Final = (tuple(PROGRAMS)[::2], tuple(PROGRAMS)[1::2])
"""Programs for machines that share a target's code but for the length of registers or the order of bytes."""


def check_dynamic(machine: Machine, names: Sequence[str] = tuple(PROGRAMS)) -> None:
    """Programs with extents known only at run time."""
    code = machine.compile(_dynamic_text(tuple(names)))
    for name in names:
        _check_sizes(code, name, PROGRAMS[name])
    code.close()


def _check_sizes(code: EmulatedModule, name: str, program: Program) -> None:
    for size in program.sizes[2:4]:
        values = arguments(program, size)
        code[name](*values)
        compare(program, values, expected(name, size))


def check_random_programs(machine: Machine, seeds: range) -> None:
    """Random programs, after each stage and as machine code, beside guard pages."""
    machine.require()
    for seed in seeds:
        drawn = random_options(machine.target, seed, has_machine=False)
        check = CheckSettings(
            machine.target, variant=seed, drawn=drawn, emulator=machine.emulator, features=machine.features
        )
        steps: list[str] = []
        try:
            check_program(portable(random_program("any", seed)), check, steps.append)
        except (MismatchError, RefusedError, TlxError) as error:
            pytest.fail(f"program {seed}, {steps[-1] if steps else ''}: {error}")
