"""Every elementwise operation on elements of every type, as functions `@NAME(out, x0, x1, ...)`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tlx.intrinsics import INTRINSICS

FLOATS: Final = {"half": 16, "bfloat": 16, "float": 32, "double": 64}
INTS: Final = {"i8": 8, "i16": 16, "i32": 32, "i64": 64}
_MANGLED: Final = {"half": "f16", "bfloat": "bf16", "float": "f32", "double": "f64"}
_DENSE: Final = "<1 x i32> zeroinitializer"

UNARY: Final = tuple(row.name for row in INTRINSICS if row.operands[1:] == () and row.name != "tovector")
NARROW: Final = ("relu", "tanh")
"""For half and bfloat: what is not done on their bits is done in float."""
FLOAT_CALLS: Final = {
    1: "fabs sqrt floor ceil trunc rint nearbyint round roundeven canonicalize".split(),
    2: "copysign minnum maxnum minimum maximum pow".split(),
    3: ["fma", "fmuladd"],
}
MATH_CALLS: Final = "exp exp2 log log2 log10 sin cos".split()
"""What `UNARY` computes by the same code: for one type."""
INT_CALLS: Final = {
    1: "ctpop bitreverse".split(),
    2: "smax smin umax umin sadd.sat ssub.sat uadd.sat usub.sat sshl.sat ushl.sat".split(),
    3: ["fshl", "fshr"],
}
FLAGGED: Final = ("abs", "ctlz", "cttz")
LATER: Final = {18: ("exp10",), 19: ("tan", "sinh", "cosh", "asin", "acos", "atan", "tanh")}
"""Intrinsics that LLVM 14 does not have, by the first version that has them."""
ONLY_IN_19: Final = ("ldexp", "scmp", "ucmp", "lrint", "llrint", "is.fpclass")
BINARY: Final = {
    "i": "add sub mul sdiv udiv srem urem shl lshr ashr and or xor".split(),
    "f": "fadd fsub fmul fdiv frem".split(),
}
PREDICATES: Final = {
    "i": "eq ne ugt uge ult ule sgt sge slt sle".split(),
    "f": "false oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno true".split(),
}


@dataclass(frozen=True)
class Program:
    """A module of all operations that a version of LLVM has.

    Attributes:
        version: The version.
        count: Elements of each tensor.
        typed: Whether pointers are.
    """

    version: int
    count: int
    typed: bool

    @property
    def text(self) -> str:
        return "\n".join([*self._tensor_functions(), *self._instructions(), *self._calls(), *self._casts()])

    def vector(self, element: str) -> str:
        return f"<{self.count} x {element}>"

    def mangled(self, element: str) -> str:
        return f"v{self.count}{_MANGLED.get(element, element)}"

    def function(self, name: str, operands: Sequence[str], result: str, forms: Sequence[str]) -> str:
        """A function `@name(out, x0, x1, ...)`.

        Args:
            name: Its name.
            operands: Element types of what is loaded from x0, x1, ...
            result: Element type of what is stored.
            forms: Instructions, with `{x0}` for operands and `{v}` for the value before; the last gives the result.
        """
        pointers = {element: f"{element}*" if self.typed else "ptr" for element in (*operands, result)}
        dims = f"<1 x i32> <i32 {self.count}>, {_DENSE}, {_DENSE}"
        body: list[str] = []
        for i, element in enumerate(operands):
            mark = "" if self.typed else f"elementtype({element}) "
            body.append(f"%t{i} = call token @llvm.tensor.load({pointers[element]} {mark}%p{i}, {dims}, {_DENSE})")
            body.append(f"%x{i} = call {self.vector(element)} @llvm.tensor.tovector(token %t{i})")
        names = {f"x{i}": f"%x{i}" for i in range(len(operands))}
        for i, form in enumerate(forms):
            body.append(f"%v{i} = {form.format(**names)}")
            names["v"] = f"%v{i}"
        body.append(f"%t = call token @llvm.tensor.typeinfo({self.vector(result)} {names['v']}, {dims})")
        body.append(f"call void @llvm.tensor.store({pointers[result]} %out, token %t, {_DENSE})")
        types = [f"{pointers[element]} %p{i}" for i, element in enumerate(operands)]
        head = f"define void @{name}({', '.join([f'{pointers[result]} noalias %out', *types])}) {{"
        return "\n".join([head, *(f"  {line}" for line in body), "  ret void", "}", ""])

    def _tensor_functions(self) -> Iterator[str]:
        for element in FLOATS:
            v = self.vector(element)
            info = f"call token @llvm.tensor.typeinfo({v} {{x0}}, <1 x i32> <i32 {self.count}>, {_DENSE}, {_DENSE})"
            for name in UNARY if element in ("float", "double") else NARROW:
                forms = [info, f"call {v} @llvm.tensor.{name}(token {{v}})"]
                yield self.function(f"tensor.{name}.{element}", [element], element, forms)

    def _instructions(self) -> Iterator[str]:
        for element in (*INTS, *FLOATS):
            v = self.vector(element)
            kind = "f" if element in FLOATS else "i"
            for opcode in BINARY[kind]:
                yield self.function(f"{opcode}.{element}", [element] * 2, element, [f"{opcode} {v} {{x0}}, {{x1}}"])
            if kind == "f":
                yield self.function(f"fneg.{element}", [element], element, [f"fneg {v} {{x0}}"])
            compares = [f"{kind}cmp {word} {v} {{x0}}, {{x1}}" for word in PREDICATES[kind]]
            yield self._counted(element, compares)
            chosen = f"select {self.vector('i1')} {{v}}, {v} {{x2}}, {v} {{x0}}"
            forms = [compares[1], chosen, f"freeze {v} {{v}}"]
            yield self.function(f"select.{element}", [element] * 3, element, forms)

    def _counted(self, element: str, compares: Sequence[str]) -> str:
        """How many of the comparisons hold."""
        v = self.vector("i32")
        forms: list[str] = []
        for compare in compares:
            total = f"%v{len(forms) - 1}" if forms else "zeroinitializer"
            forms += [compare, f"zext {self.vector('i1')} {{v}} to {v}", f"add {v} {total}, {{v}}"]
        return self.function(f"compare.{element}", [element] * 2, "i32", forms)

    def _calls(self) -> Iterator[str]:
        later = [name for first, names in LATER.items() if first <= self.version for name in names]
        for element in (*INTS, *FLOATS):
            calls = FLOAT_CALLS if element in FLOATS else INT_CALLS
            for count, names in calls.items():
                for name in [*names, *(later if count == 1 and element == "float" else [])]:
                    yield self._call(name, self.mangled(element), [element] * count, element)
        for element in INTS:
            for name in FLAGGED:
                yield self._call(name, self.mangled(element), [element], element, ", i1 false")
            if element != "i8":
                yield self._call("bswap", self.mangled(element), [element], element)
        for name in MATH_CALLS:
            yield self._call(name, self.mangled("float"), ["float"], "float")
        for element in ("float", "double"):
            yield self._call("powi", f"{self.mangled(element)}.i32", [element], element, ", i32 3")
        if self.version >= 19:
            yield self._call("ldexp", f"{self.mangled('float')}.{self.mangled('i32')}", ["float", "i32"], "float")
            for name in ("scmp", "ucmp"):
                yield self._call(name, f"{self.mangled('i8')}.{self.mangled('i32')}", ["i32", "i32"], "i8")
            yield self._classes()
            for name in ("lrint", "llrint"):
                yield self._call(name, f"{self.mangled('i64')}.{self.mangled('double')}", ["double"], "i64")

    def _classes(self) -> str:
        """Whether numbers are zeros, infinite or NaN."""
        truths = (
            f"call {self.vector('i1')} @llvm.is.fpclass.{self.mangled('float')}({self.vector('float')} {{x0}}, i32 615)"
        )
        forms = [truths, f"zext {self.vector('i1')} {{v}} to {self.vector('i8')}"]
        return self.function("is.fpclass.i8.float", ["float"], "i8", forms)

    def _call(self, name: str, suffix: str, operands: Sequence[str], result: str, immediate: str = "") -> str:
        arguments = ", ".join(f"{self.vector(element)} {{x{i}}}" for i, element in enumerate(operands))
        form = f"call {self.vector(result)} @llvm.{name}.{suffix}({arguments}{immediate})"
        return self.function(f"{name}.{result}.{operands[0]}", operands, result, [form])

    def _casts(self) -> Iterator[str]:
        for source in (*INTS, *FLOATS):
            v = self.vector(source)
            for result in (*INTS, *FLOATS):
                for opcode in _opcodes(source, result):
                    form = f"{opcode} {v} {{x0}} to {self.vector(result)}"
                    yield self.function(f"{opcode}.{source}.{result}", [source], result, [form])
                if source in FLOATS and result in INTS:
                    for name in ("fptosi.sat", "fptoui.sat"):
                        yield self._call(name, f"{self.mangled(result)}.{self.mangled(source)}", [source], result)
            if source in INTS:
                yield from self._truth_values(source)

    def _truth_values(self, element: str) -> Iterator[str]:
        truths = self.vector("i1")
        made = f"trunc {self.vector(element)} {{x0}} to {truths}"
        casts = [("sext", element), *((opcode, f) for opcode in ("sitofp", "uitofp") for f in FLOATS)]
        for opcode, result in casts if element == "i32" else casts[:1]:
            forms = [made, f"{opcode} {truths} {{v}} to {self.vector(result)}"]
            yield self.function(f"truth.{opcode}.{element}.{result}", [element], result, forms)


def _opcodes(source: str, result: str) -> tuple[str, ...]:
    """The casts between two types."""
    if source in INTS and result in INTS:
        wider = INTS[result] > INTS[source]
        return () if source == result else ("sext", "zext") if wider else ("trunc",)
    if source in INTS:
        return ("sitofp", "uitofp")
    if result in INTS:
        return ("fptosi", "fptoui")
    if FLOATS[source] == FLOATS[result]:
        return ()
    return ("fpext",) if FLOATS[result] > FLOATS[source] else ("fptrunc",)
