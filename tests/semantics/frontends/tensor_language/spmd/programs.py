"""Random kernels of one `parallel` or `foreach` with divergent work-items.

    func @kernel(%A: memref<i32x64>, %F: memref<f32x64>, %X: memref<i32xN>, %B: memref<i32xNx8>, %G: memref<f32xNx8>,
                 %p: i32, %q: f32)

`A` and `F` are read anywhere. A work-item has a row of `B` and `G` of its own, which it reads and writes. Through `X`
the work-items exchange numbers: each writes its own, all meet, each reads any, all meet.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from tests.semantics.frontends.tensor_language.spmd.interpreter import Shape
from tlx.frontends.tensor_language.operations.control import Barrier, For, Foreach, If, Parallel, Yield
from tlx.frontends.tensor_language.operations.core import UpdateOp
from tlx.frontends.tensor_language.operations.memory import Load, Store
from tlx.frontends.tensor_language.operations.scalars import (
    ArithBinary,
    ArithBinaryOp,
    ArithUnary,
    ArithUnaryOp,
    Cast,
    Comparison,
    ComparisonOp,
    Constant,
)
from tlx.frontends.tensor_language.operations.subgroups import Builtin, ScanKind, SubgroupBroadcast, SubgroupOperation
from tlx.frontends.tensor_language.syntax.nodes import (
    Attribute,
    Dictionary,
    Function,
    Instruction,
    Name,
    NamedAttribute,
    Parameter,
    Program,
    Region,
    TypeRef,
)
from tlx.frontends.tensor_language.types import BOOL, F32, I32, INDEX, MemrefType, ScalarType

Level = Literal["group", "subgroup", "item"]  # whose work-items run an instruction together

INPUTS: Final = 64
SLOTS: Final = 8
_INTEGER_OPS: Final[tuple[ArithBinaryOp, ...]] = ("add", "sub", "mul", "and", "or", "xor", "max", "min")
_FLOAT_OPS: Final[tuple[ArithBinaryOp, ...]] = ("add", "sub", "mul", "div")
_UNARY_OPS: Final[dict[ScalarType, tuple[ArithUnaryOp, ...]]] = {
    I32: ("neg", "abs", "not"),
    F32: ("neg", "abs", "sqrt"),
}


@dataclass(frozen=True)
class Generated:
    """A kernel, the work-group that it asks for, and how many rows its outputs have."""

    program: Program
    shape: Shape
    items: int


def generate(seed: int) -> Generated:
    """The kernel of a seed."""
    chance = random.Random(seed)
    shape = Shape(chance.choice((1, 2, 3)), chance.choice((1, 1, 2)), chance.choice((1, 4, 8, 16, 16, 32)))
    is_foreach = chance.random() < 0.25
    items = chance.randint(1, 70) if is_foreach else shape.subgroups * shape.lanes
    writer = _Writer(chance, items)
    head = writer.globals()
    container = writer.foreach() if is_foreach else Parallel(body=Region(writer.body(shape)))
    body = Region([*head, container])
    attributes = Dictionary((_attribute("subgroup_size", shape.lanes), _work_group(shape)))
    function = Function(name=Name("kernel"), parameters=_parameters(items), attributes=attributes, body=body)
    return Generated(Program([function]), shape, items)


def _parameters(items: int) -> tuple[Parameter, ...]:
    types = {
        "A": MemrefType.packed(I32, (INPUTS,)),
        "F": MemrefType.packed(F32, (INPUTS,)),
        "X": MemrefType.packed(I32, (items,)),
        "B": MemrefType.packed(I32, (items, SLOTS)),
        "G": MemrefType.packed(F32, (items, SLOTS)),
        "p": I32,
        "q": F32,
    }
    return tuple(Parameter(name=Name(name), type=TypeRef(type_)) for name, type_ in types.items())


def _attribute(name: str, value: int | tuple[Attribute, ...]) -> NamedAttribute:
    return NamedAttribute(name, False, Attribute(value))


def _work_group(shape: Shape) -> NamedAttribute:
    extents = (Attribute(shape.columns * shape.lanes), Attribute(shape.rows))
    return _attribute("work_group_size", extents)


class _Writer:
    """Writes instructions; knows the values that can be used, and which of them are the same for whom.

    Control flow goes the same way for the work-items of the work-group, of each subgroup, or for none but the one. All
    three kinds use values that happen to be the same although each work-item computes them from numbers of its own.
    """

    def __init__(self, chance: random.Random, items: int) -> None:
        self._chance = chance
        self._items = items
        self._count = 0
        self._scope: dict[ScalarType, list[Name]] = {I32: [Name("p")], F32: [Name("q")], BOOL: []}
        self._common: dict[Level, dict[ScalarType, list[Name]]] = {
            "group": {I32: [Name("p")], F32: [Name("q")], BOOL: []},
            "subgroup": {I32: [], F32: [], BOOL: []},
        }
        self._out: list[Instruction] = []

    def globals(self) -> list[Instruction]:
        """Constants in front of the `parallel`."""
        self._out = []
        self._slots = [self._constant(INDEX, k) for k in range(SLOTS)]
        for _ in range(3):
            self._common["group"][I32].append(self._constant(I32, self._integer()))
        self._common["group"][BOOL] += [self._constant(BOOL, True), self._constant(BOOL, False)]
        for type_, names in self._common["group"].items():
            self._scope[type_] = list(names)
        return self._out

    def body(self, shape: Shape) -> list[Instruction]:
        """The body of the `parallel`."""
        self._out = []
        lane = self._add(Builtin, I32, name="subgroup_local_id")
        subgroup = self._add(Builtin, I32, name="subgroup_linear_id")
        base = self._add(ArithBinary, I32, op="mul", lhs=subgroup, rhs=self._constant(I32, shape.lanes))
        own = self._add(ArithBinary, I32, op="add", lhs=base, rhs=lane)
        self._lanes = shape.lanes
        self._scope[I32] += [lane, subgroup]
        self._common["subgroup"][I32].append(subgroup)
        self._begin(own)
        self._compare_common("subgroup")
        self._statements(3, "group")
        return self._finished()

    def foreach(self) -> Foreach:
        """A `foreach` over the rows of the outputs."""
        start, stop = self._constant(I32, 0), self._constant(I32, self._items)
        head, self._out = self._out, []
        variable = self._fresh()
        self._begin(variable)
        self._statements(3, "item")
        body = Region(self._finished())
        self._out = head
        return Foreach(variables=(variable,), starts=(start,), stops=(stop,), body=body)

    def _begin(self, own: Name) -> None:
        """The values that are there, given the number of the work-item's row."""
        self._own = self._add(Cast, INDEX, operand=own)
        self._first = own
        self._scope[I32].append(own)
        self._scope[F32].append(self._add(Cast, F32, operand=own))
        for _ in range(3):
            self._compare_common("group")
        self._scope[BOOL] = list(self._common["group"][BOOL])

    def _compare_common(self, level: Level) -> None:
        """A truth value that is the same for all work-items of a level."""
        lhs, rhs = (self._shared(level, I32) for _ in range(2))
        self._common[level][BOOL].append(self._add(Comparison, BOOL, op="less_than_equal", lhs=lhs, rhs=rhs))

    def _shared(self, level: Level, type_: ScalarType) -> Name:
        """A value that is the same for all work-items of a level."""
        names = self._common["group"][type_] + (self._common["subgroup"][type_] if level == "subgroup" else [])
        return self._chance.choice(names)

    def _finished(self) -> list[Instruction]:
        for type_, memref in ((I32, "B"), (F32, "G")):
            self._store(type_, memref)
        return self._out

    # Statements ------------------------------------------------------------------------------------------------

    def _statements(self, depth: int, level: Level) -> None:
        """Some instructions; `level` says which work-items come by together."""
        for _ in range(self._chance.randint(2, 6)):
            kinds = ["value"] * 5 + ["load"] * 2 + ["store"]
            kinds += ["if", "if", "for"] if depth else []
            kinds += ["exchange", "exchange"] if level == "group" else []
            kinds += ["subgroup", "subgroup"] if level != "item" else []
            kinds += ["common if", "common for", "common for"] * 2 if level != "item" and depth else []
            kind = self._chance.choice(kinds)
            inner = level if kind.startswith("common") else "item"
            if inner == "group" and self._chance.random() < 0.25:
                inner = "subgroup"
            match kind:
                case "value":
                    self._value()
                case "load":
                    self._load()
                case "store":
                    self._store(*self._chance.choice(((I32, "B"), (F32, "G"))))
                case "exchange":
                    self._exchange()
                case "subgroup":
                    self._subgroup()
                case "if" | "common if":
                    self._if(self._condition(inner), depth - 1, inner)
                case _:
                    self._for(depth - 1, inner)

    def _condition(self, level: Level) -> Name:
        if level == "item":
            return self._name(BOOL)
        if self._chance.random() < 0.2:  # the same for all, of numbers that differ
            op: ComparisonOp = self._chance.choice(("equal", "less_than"))
            value = self._name(I32)
            return self._add(Comparison, BOOL, op=op, lhs=value, rhs=value)
        return self._shared(level, BOOL)

    def _value(self) -> None:
        chance = self._chance
        match chance.randint(0, 7):
            case 0 | 1:
                self._arithmetic(I32, _INTEGER_OPS)
            case 2:
                self._arithmetic(F32, _FLOAT_OPS)
            case 3:
                type_ = chance.choice((I32, F32))
                result = self._add(ArithUnary, type_, op=chance.choice(_UNARY_OPS[type_]), operand=self._name(type_))
                self._scope[type_].append(result)
            case 4:
                self._shift()
            case 5:
                source, type_ = chance.choice(((I32, F32), (F32, I32)))
                self._scope[type_].append(self._add(Cast, type_, operand=self._name(source)))
            case _:
                self._comparison()

    def _arithmetic(self, type_: ScalarType, ops: tuple[ArithBinaryOp, ...]) -> None:
        if type_ == I32 and self._chance.random() < 0.2:
            self._division()
            return
        names = {"lhs": self._name(type_), "rhs": self._name(type_)}
        self._scope[type_].append(self._add(ArithBinary, type_, op=self._chance.choice(ops), **names))

    def _division(self) -> None:
        """A division that only runs where the divisor is positive."""
        divisor, dividend = self._name(I32), self._name(I32)
        positive = self._add(Comparison, BOOL, op="greater_than", lhs=divisor, rhs=self._constant(I32, 0))
        op = self._chance.choice(("div", "rem"))
        quotient = self._fresh()
        then: list[Instruction] = [
            ArithBinary(results=(quotient,), types=(TypeRef(I32),), op=op, lhs=dividend, rhs=divisor),
            Yield(values=(quotient,)),
        ]
        otherwise: list[Instruction] = [Yield(values=(dividend,))]
        result = self._add(If, I32, condition=positive, then=Region(then), otherwise=Region(otherwise))
        self._scope[I32].append(result)

    def _shift(self) -> None:
        distance = self._add(ArithBinary, I32, op="and", lhs=self._name(I32), rhs=self._constant(I32, 31))
        op = self._chance.choice(("shl", "shr"))
        self._scope[I32].append(self._add(ArithBinary, I32, op=op, lhs=self._name(I32), rhs=distance))

    def _comparison(self) -> None:
        type_ = self._chance.choice((I32, F32))
        names = {"lhs": self._name(type_), "rhs": self._name(type_)}
        op: ComparisonOp = self._chance.choice(get_args(ComparisonOp))
        self._scope[BOOL].append(self._add(Comparison, BOOL, op=op, **names))

    def _load(self) -> None:
        type_, memref, own = self._chance.choice(
            ((I32, "A", False), (F32, "F", False), (I32, "B", True), (F32, "G", True))
        )
        indices = (self._own, self._chance.choice(self._slots)) if own else (self._index(INPUTS),)
        self._scope[type_].append(self._add(Load, type_, source=Name(memref), indices=indices))

    def _store(self, type_: ScalarType, memref: str, value: Name | None = None) -> None:
        indices = (self._own, self._chance.choice(self._slots))
        self._out.append(Store(value=value or self._name(type_), destination=Name(memref), indices=indices))

    def _exchange(self) -> None:
        """Through memory: each work-item reads any other's number, or all read the same."""
        self._out += [
            Store(value=self._name(I32), destination=Name("X"), indices=(self._own,)),
            Barrier(fence_global=True),
        ]
        is_common = self._chance.random() < 0.3
        index = self._constant(INDEX, self._chance.randrange(self._items)) if is_common else self._index(self._items)
        result = self._add(Load, I32, source=Name("X"), indices=(index,))
        self._scope[I32].append(result)
        if is_common:
            self._common["group"][I32].append(result)
        self._out.append(Barrier(fence_global=True))

    def _subgroup(self) -> None:
        if self._chance.random() < 0.3:
            lane = self._constant(I32, self._chance.randrange(self._lanes))
            result = self._add(SubgroupBroadcast, I32, value=self._name(I32), lane=lane)
            is_common = True
        else:
            kind: ScanKind = self._chance.choice(get_args(ScanKind))
            op: UpdateOp = self._chance.choice(get_args(UpdateOp))
            result = self._add(SubgroupOperation, I32, kind=kind, op=op, value=self._name(I32))
            is_common = kind == "reduce"
        self._scope[I32].append(result)
        if is_common:
            self._common["subgroup"][I32].append(result)
            self._compare_common("subgroup")

    # Control flow ----------------------------------------------------------------------------------------------

    def _if(self, condition: Name, depth: int, level: Level) -> None:
        types = self._chance.choices((I32, F32, BOOL), k=self._chance.randint(0, 3))
        then = self._region(types, depth, level)
        otherwise = self._region(types, depth, level) if types or self._chance.random() < 0.5 else None
        results = tuple(self._fresh() for _ in types)
        self._out.append(
            If(results=results, types=_references(types), condition=condition, then=then, otherwise=otherwise)
        )
        self._bind(types, results)

    def _for(self, depth: int, level: Level) -> None:
        types = self._chance.choices((I32, F32, BOOL), k=self._chance.randint(0, 3))
        is_shared = level != "item" and self._chance.random() < 0.5
        start, stop, step = self._bounds(level) if level == "item" or is_shared else self._bounds_of_trips(level)
        variable = self._fresh()
        carried = tuple(self._fresh() for _ in types)
        initial = tuple(self._name(type_) for type_ in types)
        binding = [(I32, variable), *zip(types, carried, strict=True)]
        body = self._region(types, depth, level, binding=binding, known=variable if is_shared else None)
        results = tuple(self._fresh() for _ in types)
        self._out.append(
            For(
                results=results, types=_references(types), variable=variable, start=start, stop=stop, step=step,
                carried=carried, initial=initial, body=body,
            )
        )  # fmt: skip
        self._bind(types, results)

    def _region(
        self,
        types: list[ScalarType],
        depth: int,
        level: Level,
        *,
        binding: list[tuple[ScalarType, Name]] | None = None,
        known: Name | None = None,
    ) -> Region:
        outer = self._out, self._scope, self._common
        self._out = []
        self._scope = {t: list(names) for t, names in self._scope.items()}
        self._common = {k: {t: list(names) for t, names in c.items()} for k, c in self._common.items()}
        for type_, name in binding or []:
            self._scope[type_].append(name)
        if known is not None and level != "item":
            self._common[level][I32].append(known)
        if level == "group" and self._chance.random() < 0.7:
            self._exchange()
        self._statements(depth, level)
        if binding and self._chance.random() < 0.5:  # what each trip has is seen
            type_, name = self._chance.choice([pair for pair in binding if pair[0] != BOOL])
            self._store(type_, "B" if type_ == I32 else "G", name)
        if types:
            self._out.append(Yield(values=tuple(self._name(type_) for type_ in types)))
        region = Region(self._out)
        self._out, self._scope, self._common = outer
        return region

    def _bounds(self, level: Level) -> tuple[Name, Name, Name | None]:
        """From, to and step: the same for a level, their own, or those of neighbours that share the trips."""
        if level == "item" and self._chance.random() < 0.4:
            step = self._constant(I32, self._chance.choice((3, 16, 32)))
            return self._first, self._bound("group", limit=127), step
        start, stop = (self._bound(level, limit=limit) for limit in (3, 7))
        return start, stop, self._step(level) if self._chance.random() < 0.5 else None

    def _bounds_of_trips(self, level: Level) -> tuple[Name, Name, Name | None]:
        """From, to and step of their own or of the subgroup's, with as many trips for all work-items of a level."""
        chance = self._chance
        trips = self._bound(level, limit=3)
        start = self._bound(chance.choice(("subgroup", "item")), limit=15)
        step = self._step(chance.choice(("group", "subgroup", "item"))) if chance.random() < 0.5 else None
        if step is None:
            return start, self._add(ArithBinary, I32, op="add", lhs=start, rhs=trips), None
        distance = self._add(ArithBinary, I32, op="mul", lhs=trips, rhs=step)
        stop = self._add(ArithBinary, I32, op="add", lhs=start, rhs=distance)
        if chance.random() < 0.5:  # the last trip need not be a whole step before the end
            part = self._add(ArithBinary, I32, op="sub", lhs=step, rhs=self._constant(I32, 1))
            stop = self._add(ArithBinary, I32, op="sub", lhs=stop, rhs=part)
        return start, stop, step

    def _bound(self, level: Level, *, limit: int) -> Name:
        value = self._name(I32) if level == "item" else self._shared(level, I32)
        return self._add(ArithBinary, I32, op="and", lhs=value, rhs=self._constant(I32, limit))

    def _step(self, level: Level) -> Name:
        return self._add(ArithBinary, I32, op="add", lhs=self._bound(level, limit=1), rhs=self._constant(I32, 1))

    # Names -----------------------------------------------------------------------------------------------------

    def _index(self, count: int) -> Name:
        """An index below a power of two."""
        masked = self._add(ArithBinary, I32, op="and", lhs=self._name(I32), rhs=self._constant(I32, count - 1))
        return self._add(Cast, INDEX, operand=masked)

    def _name(self, type_: ScalarType) -> Name:
        """A value of a type, with a liking for late ones."""
        names = self._scope[type_]
        return names[max(self._chance.randrange(len(names)), self._chance.randrange(len(names)))]

    def _constant(self, type_: ScalarType, value: float) -> Name:
        return self._add(Constant, type_, value=value)

    def _integer(self) -> int:
        """A number other than 0, by which the checker lets nothing be divided."""
        return self._chance.choice((self._chance.randint(-9, 9), self._chance.randint(-(1 << 31), (1 << 31) - 1))) or 1

    def _bind(self, types: list[ScalarType], names: tuple[Name, ...]) -> None:
        for type_, name in zip(types, names, strict=True):
            self._scope[type_].append(name)

    def _fresh(self) -> Name:
        self._count += 1
        return Name(f"v{self._count}")

    def _add(self, node: type[Instruction], type_: ScalarType, **fields: Any) -> Name:
        name = self._fresh()
        self._out.append(node(results=(name,), types=(TypeRef(type_),), **fields))
        return name


def _references(types: list[ScalarType]) -> tuple[TypeRef, ...]:
    return tuple(TypeRef(type_) for type_ in types)
