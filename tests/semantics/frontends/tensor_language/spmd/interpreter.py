"""Interprets a kernel of scalars, one work-item at a time: the reference for vector code.

Each work-item is a coroutine that runs the syntax tree with numbers of its own. It stops at barriers and at subgroup
operations, and goes on when all that it has to wait for have come: the work-group at a barrier, its subgroup at a
subgroup operation.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tlx.frontends.tensor_language.operations.control import Barrier, For, Foreach, If, Parallel, Yield
from tlx.frontends.tensor_language.operations.memory import Load, Store
from tlx.frontends.tensor_language.operations.scalars import ArithBinary, ArithUnary, Cast, Comparison, Constant
from tlx.frontends.tensor_language.operations.subgroups import Builtin, SubgroupBroadcast, SubgroupOperation
from tlx.frontends.tensor_language.syntax.nodes import Function, Instruction, Region
from tlx.frontends.tensor_language.types import ScalarType

Number = int | np.float32
Memory = Mapping[str, NDArray[Any]]
_BARRIER: Final = ("barrier",)
Waiting = Generator[tuple[Any, ...], Any, list[Number]]


@dataclass(frozen=True)
class Shape:
    """A work-group: subgroups along both modes, and the work-items of each."""

    columns: int
    rows: int
    lanes: int

    @property
    def subgroups(self) -> int:
        """How many subgroups there are."""
        return self.columns * self.rows


def run(function: Function, memory: Memory, scalars: Mapping[str, Number], shape: Shape) -> None:
    """Run a kernel of constants and `parallel` or `foreach` on one work-group; arrays are changed in place."""
    common: dict[str, Number] = dict(scalars)
    for i in function.body.instructions:
        if isinstance(i, Parallel):
            _work_group(i.body, memory, common, shape)
        elif isinstance(i, Foreach):
            _every_index(i, memory, common, shape)
        else:
            assert isinstance(i, Constant)
            common[i.result.text] = _constant(i)


def _every_index(i: Foreach, memory: Memory, common: Mapping[str, Number], shape: Shape) -> None:
    ranges = [range(int(common[a.text]), int(common[b.text])) for a, b in zip(i.starts, i.stops, strict=True)]
    for numbers in product(*ranges):
        scope = {**common, **{name.text: number for name, number in zip(i.variables, numbers, strict=True)}}
        for _ in _Item(memory, shape, 0, 0).region(i.body, scope):
            raise AssertionError("work-items of a foreach wait for nobody")


def _work_group(body: Region, memory: Memory, common: Mapping[str, Number], shape: Shape) -> None:
    subgroups = [[(s, lane) for lane in range(shape.lanes)] for s in range(shape.subgroups)]
    everyone = [at for group in subgroups for at in group]
    items = {at: _Item(memory, shape, *at).region(body, dict(common)) for at in everyone}
    requests: dict[tuple[int, int], tuple[Any, ...]] = {}
    answers: dict[tuple[int, int], Any] = dict.fromkeys(everyone)
    while answers:
        for at, answer in answers.items():
            try:
                requests[at] = items[at].send(answer)
            except StopIteration:
                del items[at]
        answers = {}
        for group in subgroups:
            if all(requests.get(at, _BARRIER) != _BARRIER for at in group):
                result = _subgroup_answers([requests.pop(at) for at in group])
                answers.update(zip(group, result, strict=True))
        if not answers and len(requests) == len(everyone) and set(requests.values()) == {_BARRIER}:
            answers = dict.fromkeys(everyone)
            requests = {}
    assert not items, "some work-items wait for others that do not come"


def _subgroup_answers(group: list[tuple[Any, ...]]) -> list[Number]:
    kind, op = group[0][:2]
    values = [request[-1] for request in group]
    if kind == "broadcast":
        return [values[op]] * len(values)
    totals = [values[0]]
    for value in values[1:]:
        totals.append(_wrapped(_ARITHMETIC[op](totals[-1], value), 32))
    if kind == "inclusive_scan":
        return totals
    if kind == "reduce":
        return [totals[-1]] * len(values)
    return [{"add": 0, "max": -(1 << 31), "min": (1 << 31) - 1}[op], *totals[:-1]]


class _Item:
    """One work-item."""

    def __init__(self, memory: Memory, shape: Shape, subgroup: int, lane: int) -> None:
        self._memory = memory
        self._builtins = {
            "subgroup_local_id": lane,
            "subgroup_linear_id": subgroup,
            "subgroup_size": shape.lanes,
        }

    def region(self, region: Region, scope: dict[str, Number]) -> Waiting:
        """Run a region; gives what it yields."""
        scope = dict(scope)
        for i in region.instructions:
            match i:
                case Yield():
                    return [scope[name.text] for name in i.values]
                case Barrier():
                    yield _BARRIER
                case SubgroupOperation():
                    scope[i.result.text] = yield (i.kind, i.op, scope[i.value.text])
                case SubgroupBroadcast():
                    scope[i.result.text] = yield ("broadcast", scope[i.lane.text], scope[i.value.text])
                case If():
                    branch = i.then if scope[i.condition.text] else i.otherwise
                    result = (yield from self.region(branch, scope)) if branch is not None else []
                    scope.update(zip((r.text for r in i.results), result, strict=True))
                case For():
                    result = yield from self._for(i, scope)
                    scope.update(zip((r.text for r in i.results), result, strict=True))
                case Store():
                    place = tuple(int(scope[n.text]) for n in i.indices)
                    self._memory[i.destination.text][place] = scope[i.value.text]
                case _:
                    scope[i.result.text] = self._value(i, scope)
        return []

    def _for(self, i: For, scope: dict[str, Number]) -> Waiting:
        position, stop = scope[i.start.text], scope[i.stop.text]
        step = scope[i.step.text] if i.step is not None else 1
        carried = [scope[name.text] for name in i.initial]
        while position < stop:
            inner = {**scope, i.variable.text: position}
            inner.update(zip((n.text for n in i.carried), carried, strict=True))
            carried = yield from self.region(i.body, inner)
            position += step
        return carried

    def _value(self, i: Instruction, scope: Mapping[str, Number]) -> Number:
        match i:
            case Constant():
                return _constant(i)
            case Builtin():
                return self._builtins[i.name]
            case ArithBinary():
                return _binary(i.op, _type(i), scope[i.lhs.text], scope[i.rhs.text])
            case ArithUnary():
                return _unary(i.op, _type(i), scope[i.operand.text])
            case Comparison():
                return int(_COMPARISONS[i.op](scope[i.lhs.text], scope[i.rhs.text]))
            case Cast():
                return _cast(_type(i), scope[i.operand.text])
            case Load():
                loaded = self._memory[i.source.text][tuple(int(scope[n.text]) for n in i.indices)]
                return np.float32(loaded) if loaded.dtype == np.float32 else int(loaded)
            case _:
                raise AssertionError(f"no meaning for {i}")


_COMPARISONS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "equal": lambda a, b: a == b,
    "not_equal": lambda a, b: a != b,
    "greater_than": lambda a, b: a > b,
    "greater_than_equal": lambda a, b: a >= b,
    "less_than": lambda a, b: a < b,
    "less_than_equal": lambda a, b: a <= b,
}
_ARITHMETIC: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "shl": lambda a, b: a << b,
    "shr": lambda a, b: a >> b,
    "max": max,
    "min": min,
}


def _binary(op: str, type_: ScalarType, a: Number, b: Number) -> Number:
    if type_.kind == "float":
        with np.errstate(all="ignore"):
            return np.float32(np.divide(a, b) if op == "div" else _ARITHMETIC[op](a, b))
    if op in ("div", "rem"):
        quotient = abs(int(a)) // abs(int(b)) * (1 if (a < 0) == (b < 0) else -1)
        return _wrapped(quotient if op == "div" else int(a) - quotient * int(b), type_.bits)
    return _wrapped(_ARITHMETIC[op](a, b), type_.bits)


def _unary(op: str, type_: ScalarType, a: Number) -> Number:
    if type_.kind == "float":
        with np.errstate(invalid="ignore"):
            return np.float32(abs(a) if op == "abs" else -a if op == "neg" else np.sqrt(np.float32(a)))
    number = int(a)
    return _wrapped({"abs": abs(number), "neg": -number, "not": ~number}[op], type_.bits)


def _cast(type_: ScalarType, a: Number) -> Number:
    if type_.kind == "float":
        return np.float32(a)
    if not isinstance(a, int):
        limit = 1 << (type_.bits - 1)
        if np.isnan(a):
            return 0
        return max(-limit, min(limit - 1, int(a))) if np.isfinite(a) else _edge(a, limit)
    return _wrapped(a, type_.bits)


def _edge(a: np.float32, limit: int) -> int:
    return limit - 1 if a > 0 else -limit


def _wrapped(a: int, bits: int) -> int:
    if bits == 1:
        return a & 1
    half = 1 << (bits - 1)
    return (a + half) % (2 * half) - half


def _constant(i: Constant) -> Number:
    assert isinstance(i.value, (bool, int, float))
    return np.float32(i.value) if _type(i).kind == "float" else int(i.value)


def _type(i: Instruction) -> ScalarType:
    assert isinstance(i.type, ScalarType)
    return i.type
