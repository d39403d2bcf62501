"""What the checker accepts compiles: random kernels of all instructions, modifiers, types, shapes and strides.

A kernel has a few instructions of one kind. Types are drawn so that most of them fit; what the checker rejects has a
place in the text, and everything else is lowered without an error.

More of them: python -m tests.semantics.frontends.tensor_language.test_accepted_compiles --seed 1000 --count 5000
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable
from typing import Final, get_args

import pytest

import tlx.frontends.tensor_language as tl
from tests.support.tools import quick
from tlx.diagnostics import TlxError
from tlx.frontends.tensor_language.operations.core import Scope, Semantics, UpdateOp
from tlx.frontends.tensor_language.operations.scalars import ArithBinaryOp, ArithUnaryOp, ComparisonOp, MathOp
from tlx.frontends.tensor_language.operations.subgroups import Checked, ScanKind
from tlx.lower.pipeline import lower

TARGETS: Final = ("generic", "avx2", "avx512", "amx")
INTEGERS: Final = ("i8", "i16", "i32", "i64", "index")
FLOATS: Final = ("bf16", "f16", "f32", "f64")
COMPLEX: Final = ("c32", "c64")
NUMBERS: Final = (*INTEGERS, *FLOATS, *COMPLEX)
ROWS: Final = (1, 2, 3, 5, 8, 16, 17, 20, 32)
COLUMNS: Final = (1, 2, 3, 4, 5, 8, 16, 33)
COUNT: Final = 40  # kernels of a test


@pytest.mark.parametrize("seed", quick(range(0, 8 * COUNT, COUNT), 2))
def test_accepted_kernels_compile(seed: int) -> None:
    accepted = sum(check(k) for k in range(seed, seed + COUNT))
    assert accepted > COUNT // 2


def check(seed: int) -> bool:
    """Lower the kernel of a seed, if the checker accepts it."""
    chance = random.Random(seed)
    text = _Writer(chance).kernel()
    try:
        tl.check_program(tl.parse(text))
    except tl.ProgramError:
        return False
    try:
        lower(tl.translate(text), chance.choice(TARGETS))
    except TlxError as error:
        message = f"seed {seed} is accepted, but does not compile\n{error}\n{text}"
        raise AssertionError(message) from error
    return True


class _Writer:
    """Writes a kernel."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._count = 0
        self._parameters: list[str] = []
        self._lanes = chance.choice((1, 4, 8, 16, 16, 32))

    def kernel(self) -> str:
        """A kernel of a few instructions of one kind."""
        is_spmd = self._chance.random() < 0.6
        collective = (self._blas, self._blas, self._scalars, self._memory, self._views)
        spmd = (self._matrix_access, self._matrix_access, self._matrix_values, self._scalars, self._memory, self._views)
        write: Callable[[], list[str]] = self._chance.choice(spmd if is_spmd else collective)
        lines = [line for _ in range(self._chance.randint(1, 2)) for line in write()]
        if is_spmd:
            start, stop = self.parameter("index"), self.parameter("index")
            tiles = f"foreach_tile (%t)=({start}),({stop}) as (%s)<=({2 * self._lanes})"
            each = f"foreach (%t)=({start}),({stop})"
            lines = [f"{self._chance.choice(('parallel', 'parallel', each, tiles))} {{", *lines, "}"]
        size = self._chance.choice(("", f",work_group_size=[{2 * self._lanes},2]"))
        attributes = f"attributes {{subgroup_size={self._lanes}{size}}}"
        return f"func @k({', '.join(self._parameters)}) {attributes} {{\n" + "\n".join(lines) + "\n}\n"

    # Types -----------------------------------------------------------------------------------------------------

    def name(self) -> str:
        """A name that nothing has."""
        self._count += 1
        return f"%v{self._count}"

    def parameter(self, type_: str) -> str:
        """A parameter of a type."""
        name = self.name()
        self._parameters.append(f"{name}: {type_}")
        return name

    def memref(self, element: str, shape: tuple[int | None, ...]) -> str:
        """A parameter with some strides: packed, padded, not known or large."""
        chance = self._chance
        extents = "".join(f"x{'?' if n is None else n}" for n in shape)
        strides: list[int | None] = []
        kind = chance.choice(("packed", "packed", "first", "padded", "any", "large"))
        for k, extent in enumerate(shape):
            least = 1 if not k else (strides[-1] or 1) * (shape[k - 1] or 1)
            del extent
            step: int | None = least
            if kind == "padded" and k:
                step = least + chance.choice((1, 4, 13))
            elif kind == "first" and not k:
                step = 2
            elif kind == "large" and k:
                step = least + chance.choice((1 << 20, 1 << 31, 1 << 40))
            elif (kind == "any" and k) or (k and (shape[k - 1] is None or strides[-1] is None)):
                step = None
            strides.append(step)
        layout = "" if kind == "packed" else f",strided<{','.join('?' if s is None else str(s) for s in strides)}>"
        return self.parameter(f"memref<{element}{extents}{layout if shape else ''}>")

    def shape(self, *extents: int) -> tuple[int | None, ...]:
        """Extents of which some are not known."""
        return tuple(None if self._chance.random() < 0.15 else n for n in extents)

    def scalar(self, type_: str) -> tuple[list[str], str]:
        """A number: a parameter, or a constant and its instruction."""
        chance = self._chance
        if chance.random() < 0.4:
            return [], self.parameter(type_)
        name, value = self.name(), chance.choice((0, 1, 1, 3))
        text = {"c": f"[{value}.0,0.0]", "f": f"{value}.0", "b": f"{value}.0"}.get(type_[0], str(value))
        return [f"{name} = constant {text} : {type_}"], name

    # Collective instructions -----------------------------------------------------------------------------------

    def _blas(self) -> list[str]:
        chance = self._chance
        m, n, k = self.shape(chance.choice(ROWS), chance.choice(COLUMNS), chance.choice(COLUMNS))
        element = chance.choice(NUMBERS)
        other = chance.choice((element, element, chance.choice(NUMBERS)))
        out = chance.choice((element, other))
        op, ta, tb = chance.choice(_BLAS), chance.choice("nt"), chance.choice("nt")
        shapes: dict[str, tuple[tuple[int | None, ...], ...]] = {
            "gemm": ((m, k)[:: _turn(ta)], (k, n)[:: _turn(tb)], (m, n)),
            "gemv": ((m, k)[:: _turn(ta)], (k,), (m,)),
            "ger": ((m,), (n,), (m, n)),
            "hadamard": ((m, n), (m, n), (m, n)),
            "axpby": ((m, n)[:: _turn(ta)], (m, n)),
            "sum": ((m, n)[:: _turn(ta)], (m,)),
            "cumsum": ((m, n), (m, n)),
        }
        atomic = chance.choice(("", "", ".atomic"))
        modifiers = {"gemm": f".{ta}.{tb}", "gemv": f".{ta}", "axpby": f".{ta}", "sum": f".{ta}"}.get(op, "")
        *inputs, target = shapes[op]
        names = [self.memref(e, s) for e, s in zip((element, other), inputs, strict=False)]
        lines: list[str] = []
        if target and None not in target and chance.random() < 0.3:
            written = self.name()
            extents = "".join(f"x{extent}" for extent in target)
            lines.append(f"{written} = alloca : memref<{out}{extents},local>")
        else:
            written = self.memref(out, target)
        before, alpha = self.scalar(chance.choice((out, "i8")))
        after, beta = self.scalar(out)
        mode = f" {chance.choice((0, 1))}," if op == "cumsum" else ""
        return [
            *lines, *before, *after,
            f"{op}{atomic}{modifiers} {alpha}, {', '.join(names)},{mode} {beta}, {written}",
        ]  # fmt: skip

    # Cooperative matrices --------------------------------------------------------------------------------------

    def _matrix_type(self, component: str, rows: int, columns: int, use: str = "matrix_acc") -> str:
        return f"coopmatrix<{component}x{rows}x{columns},{use}>"

    def _matrix_access(self) -> list[str]:
        chance = self._chance
        component = chance.choice(NUMBERS)
        rows, columns = chance.choice(ROWS), chance.choice(COLUMNS)
        type_ = self._matrix_type(component, rows, columns, chance.choice(_USES))
        memref = self.memref(component, self.shape(chance.choice(ROWS), chance.choice(COLUMNS)))
        x, y = self.parameter("index"), self.parameter("index")
        turn, checked = chance.choice(("", ".n", ".t")), chance.choice(("", "", *(f".{c}" for c in get_args(Checked))))
        order = f".{chance.choice(get_args(Scope))}.{chance.choice(get_args(Semantics))}"
        order = chance.choice(("", order))
        matrix = self.name()
        value = "[1.0,2.0]" if component in COMPLEX else "1.0" if component in FLOATS else "1"
        definition = f"{matrix} = constant {value} : {type_}"
        place = f"{memref}[{x},{y}]"
        match chance.choice(("load", "store", "atomic_load", "atomic_store", "atomic_update", "prefetch")):
            case "load":
                return [f"{matrix} = cooperative_matrix_load{turn}{checked} {place} : {type_}"]
            case "store":
                return [definition, f"cooperative_matrix_store{turn}{checked} {matrix}, {place}"]
            case "atomic_load":
                return [f"{matrix} = cooperative_matrix_atomic_load{turn}{checked}{order} {place} : {type_}"]
            case "atomic_store":
                return [definition, f"cooperative_matrix_atomic_store{turn}{checked}{order} {matrix}, {place}"]
            case "atomic_update":
                op = f"cooperative_matrix_atomic_{chance.choice(get_args(UpdateOp))}{turn}{checked}{order}"
                return [definition, f"{self.name()} = {op} {matrix}, {place} : {type_}"]
            case _:
                return [f"cooperative_matrix_prefetch {chance.choice((0, 1, 7))}, {place}, {rows}, {columns}"]

    def _matrix_values(self) -> list[str]:
        chance = self._chance
        component, other = chance.choice(NUMBERS), chance.choice(NUMBERS)
        accumulator = chance.choice((component, "f32", "i32", chance.choice(NUMBERS)))
        m, n, k = chance.choice(ROWS), chance.choice(COLUMNS), chance.choice(COLUMNS)
        lines: list[str] = []

        def matrix(component: str, rows: int, columns: int, use: str) -> str:
            before, number = self.scalar(component)
            name, type_ = self.name(), self._matrix_type(component, rows, columns, use)
            lines.extend([*before, f"{name} = cooperative_matrix_construct {number} : {type_}"])
            return name

        use = chance.choice(_USES)
        type_ = self._matrix_type(component, m, n, use)
        result = self.name()
        match chance.choice(("product", "product", "cast", "scale", "arithmetic", "reduce", "apply", "entry", "math")):
            case "product":
                a, b = matrix(component, m, k, "matrix_a"), matrix(component, k, n, "matrix_b")
                c = matrix(accumulator, m, n, "matrix_acc")
                to = self._matrix_type(chance.choice((accumulator, accumulator, other)), m, n)
                lines.append(f"{result} = cooperative_matrix_mul_add {a}, {b}, {c} : {to}")
            case "cast":
                a = matrix(component, m, n, use)
                to = self._matrix_type(other, m, n, chance.choice((use, "matrix_a", "matrix_b")))
                lines.append(f"{result} = cast {a} : {to}")
            case "scale":
                a, (before, number) = matrix(component, m, n, use), self.scalar(component)
                lines += [*before, f"{result} = cooperative_matrix_scale {number}, {a} : {type_}"]
            case "arithmetic":
                a, b = matrix(component, m, n, use), matrix(component, m, n, use)
                lines.append(f"{result} = {chance.choice(get_args(ArithBinaryOp))} {a}, {b} : {type_}")
            case "reduce":
                a = matrix(component, m, n, "matrix_acc")
                mode, rows, columns = chance.choice((("row", m, 1), ("column", 1, n)))
                op = f"cooperative_matrix_reduce_{chance.choice(get_args(UpdateOp))}.{mode}"
                lines.append(f"{result} = {op} {a} : {self._matrix_type(component, rows, columns)}")
            case "apply":
                a, (r, c, v, w) = matrix(component, m, n, use), [self.name() for _ in range(4)]
                lines += [
                    f"{result} = cooperative_matrix_apply ({r},{c},{v})={a} -> {type_} {{",
                    f"{w} = add {v}, {v} : {component}",
                    f"yield ({w})",
                    "}",
                ]
            case "entry":
                a, e, at = matrix(component, m, n, use), self.name(), chance.choice((0, 0, 1, 5))
                lines.append(f"{e} = cooperative_matrix_extract {a}[{at}] : {component}")
                lines.append(f"{result} = cooperative_matrix_insert {e}, {a}[{at}] : {type_}")
            case _:
                a = matrix(component, m, n, use)
                lines.append(f"{result} = {chance.choice((*get_args(ArithUnaryOp), 'not'))} {a} : {type_}")
        return lines

    # Scalars, memory, views ------------------------------------------------------------------------------------

    def _scalars(self) -> list[str]:
        chance = self._chance
        type_, other, r = chance.choice(NUMBERS), chance.choice(NUMBERS), self.name()
        before, a = self.scalar(type_)
        more, b = self.scalar(type_)
        lines = [*before, *more]
        match chance.choice(("binary", "unary", "comparison", "math", "cast", "subgroup", "broadcast")):
            case "binary":
                lines.append(f"{r} = {chance.choice(get_args(ArithBinaryOp))} {a}, {b} : {type_}")
            case "unary":
                result = {"c32": "f32", "c64": "f64"}.get(type_, type_)
                op = chance.choice(get_args(ArithUnaryOp))
                lines.append(f"{r} = {op} {a} : {result if op in ('abs', 'im', 're') else type_}")
            case "comparison":
                lines.append(f"{r} = {chance.choice(get_args(ComparisonOp))} {a}, {b} : bool")
            case "math":
                lines.append(f"{r} = {chance.choice(get_args(MathOp))} {a} : {type_}")
            case "cast":
                lines.append(f"{r} = cast {a} : {other}")
            case "subgroup":
                op = f"subgroup_{chance.choice(get_args(ScanKind))}_{chance.choice(get_args(UpdateOp))}"
                lines.append(f"{r} = {op} {a} : {type_}")
            case _:
                lane = self.name()
                lines += [f"{lane} = constant 0 : i32", f"{r} = subgroup_broadcast {a}, {lane} : {type_}"]
        return lines

    def _memory(self) -> list[str]:
        chance = self._chance
        type_, r = chance.choice(NUMBERS), self.name()
        before, value = self.scalar(type_)
        order = f".{chance.choice(get_args(Scope))}.{chance.choice(get_args(Semantics))}"
        order = chance.choice(("", order))
        shape = self.shape(*(chance.choice(ROWS) for _ in range(chance.choice((0, 1, 2, 3)))))
        lines: list[str] = []
        indices: list[str] = []
        for _ in shape:
            lane, index = self.name(), self.name()
            lines += [f"{lane} = subgroup_size : i32", f"{index} = cast {lane} : index"]
            indices.append(index)
        place = f"{self.memref(type_, shape)}[{','.join(indices)}]"
        instruction = chance.choice((
            f"{r} = load {place} : {type_}",
            f"store {value}, {place}",
            f"{r} = atomic_load{order} {place} : {type_}",
            f"atomic_store{order} {value}, {place}",
            f"{r} = atomic_{chance.choice(get_args(UpdateOp))}{order} {value}, {place} : {type_}",
        ))  # fmt: skip
        return [*before, *lines, instruction]

    def _views(self) -> list[str]:
        chance = self._chance
        type_ = chance.choice(NUMBERS)
        rows, columns = chance.choice(ROWS), chance.choice(COLUMNS)
        r, (before, offset) = self.name(), self.scalar("index")
        packed = self.parameter(f"memref<{type_}x{rows}x{columns}>")
        whole = self.memref(type_, self.shape(rows, columns))
        instruction = chance.choice((
            f"{r} = fuse {packed}[0,1] : memref<{type_}x{rows * columns}>",
            f"{r} = expand {packed}[0->{rows}x1] : memref<{type_}x{rows}x1x{columns}>",
            f"{r} = subview {packed}[0:{rows},{offset}] : memref<{type_}x{rows}>",
            f"{r} = subview {packed}[{offset}:1,0:1] : memref<{type_}x1x1,strided<1,{rows}>>",
            f"{r} = subview {whole}[0:{offset},{offset}:{columns}] : memref<{type_}x?x{columns},strided<?,?>>",
            f"{r} = size {whole}[{chance.choice((0, 1))}] : index",
        ))  # fmt: skip
        return [*before, instruction]


_BLAS: Final = ("gemm", "gemv", "ger", "hadamard", "axpby", "sum", "cumsum")
_USES: Final = ("matrix_a", "matrix_b", "matrix_acc")


def _turn(transpose: str) -> int:
    return -1 if transpose == "t" else 1


def main() -> None:
    """Run many seeds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    options = parser.parse_args()
    accepted = 0
    for seed in range(options.seed, options.seed + options.count):
        try:
            accepted += check(seed)
        except Exception as error:  # noqa: BLE001
            sys.stdout.write(f"seed {seed}: {type(error).__name__}: {error}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{accepted} of {options.count} kernels were accepted\n")


if __name__ == "__main__":
    main()
