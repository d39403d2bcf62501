"""Methods for instructions that may be in both kinds of regions: arithmetic, memory, views, conditions, loops.

k.add(a, 2.0)       a + 2.0
k.less_than(i, n)   i < n
k.exp(x)
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from tlx.diagnostics import UsageError, counted
from tlx.frontends.tensor_language.builder.core import UNWRITTEN, KernelBase, access_meanings, document, method
from tlx.frontends.tensor_language.builder.values import NoValue, Operand, TypeLike, Value, dictionary_of, scalar_of
from tlx.frontends.tensor_language.operations import OPERATIONS
from tlx.frontends.tensor_language.operations.control import Barrier, For, If, Yield
from tlx.frontends.tensor_language.operations.core import Scope, Semantics
from tlx.frontends.tensor_language.operations.memory import (
    Associated,
    Expand,
    Fuse,
    Load,
    Size,
    Subview,
)
from tlx.frontends.tensor_language.operations.scalars import BITS, COMPLEX, FLOAT, INTEGER, MEANINGS, NUMBER, REAL, Cast
from tlx.frontends.tensor_language.operations.subgroups import Builtin, Component
from tlx.frontends.tensor_language.syntax.nodes import Name, Slice
from tlx.frontends.tensor_language.types import INDEX, Extent, GroupType, Type

# By the kinds of operands: their description, and the types that two operands or one must not have.
_SCALARS_OR_MATRICES: Final = {
    NUMBER: ("A number or a cooperative matrix.", "are bool", "bool"),
    REAL: ("A real number or a cooperative matrix of them.", "are bool or complex", "bool or complex"),
    INTEGER: ("An integer or a cooperative matrix of them.", "are not integers", "no integer"),
    BITS: ("An integer, a bool, or a cooperative matrix of integers.", "are neither integers nor bool", "neither"),
    FLOAT: ("A floating number or a cooperative matrix of them.", "are not floating", "not floating"),
    COMPLEX: ("A complex number or a cooperative matrix of them.", "are not complex", "not complex"),
}
_NUMBERS: Final = {
    NUMBER: ("A number.", "are not numbers"),
    REAL: ("A real number.", "are not real numbers"),
}
_FLOATING: Final = "A floating number: f32, f64, or f16 and bf16, which are computed in f32"
_ARGUMENTS: Final = {
    FLOAT: (f"{_FLOATING}.", "not floating"),
    FLOAT | COMPLEX: (f"{_FLOATING}; or a complex one.", "neither floating nor complex"),
}
_DIVISIONS: Final = ("div", "rem")
_RIGHT: Final = {
    **dict.fromkeys(_DIVISIONS, "The divisor, as lhs."),
    **dict.fromkeys(("shl", "shr"), "By how many bits, modulo the width, as lhs."),
}


def _of_two(name: str) -> str:
    operands, refused, _ = _SCALARS_OR_MATRICES[MEANINGS[name].kinds]
    divisor = ", or the divisor is the integer constant 0"
    return _pair(name, operands, f"{refused}{divisor}" if name in _DIVISIONS else f"or {refused}")


def _compared(name: str) -> str:
    operands, refused = _NUMBERS[MEANINGS[name].kinds]
    return _pair(name, operands, f"or {refused}")


def _pair(name: str, operands: str, refused: str) -> str:
    right = f"{_RIGHT.get(name, 'As lhs.')} Either may be a Python number, which takes the type of the other."
    return document(MEANINGS[name].text, {"lhs": operands, "rhs": right}, f"The types differ, {refused}.")


def _of_one(name: str) -> str:
    operand, _, refused = _SCALARS_OR_MATRICES[MEANINGS[name].kinds]
    return document(MEANINGS[name].text, {"operand": operand}, f"The operand is {refused}.")


def _function(name: str) -> str:
    operand, refused = _ARGUMENTS[MEANINGS[name].kinds]
    return document(MEANINGS[name].text, {"operand": operand}, f"The operand is {refused}.")


class Arithmetic(KernelBase):
    """Operations on scalars and on cooperative matrices. One of two operands may be a Python number."""

    def _unary(self, name: str, operand: Value) -> Value:
        return self._write_named(name, operand=self._name(operand))

    def _binary(self, name: str, lhs: Operand, rhs: Operand) -> Value:
        """Write an operation on two operands of one type; a Python number takes the type of the other operand."""
        type_ = self._common_type((lhs, rhs))
        if type_ is None:
            raise UsageError(f"{name} of two numbers: compute it in Python, or make one a constant()", self.here())
        left, right = self._as_value(lhs, type_), self._as_value(rhs, type_)
        if left.type != right.type or scalar_of(type_) is None:
            raise UsageError(f"{name} needs operands of one type, got {left!r} and {right!r}: cast() one", self.here())
        return self._write_named(name, lhs=self._name(left), rhs=self._name(right))

    add = method(_binary, "add", _of_two)
    sub = method(_binary, "sub", _of_two)
    mul = method(_binary, "mul", _of_two)
    div = method(_binary, "div", _of_two)
    rem = method(_binary, "rem", _of_two)
    max = method(_binary, "max", _of_two)
    min = method(_binary, "min", _of_two)
    shl = method(_binary, "shl", _of_two)
    shr = method(_binary, "shr", _of_two)
    and_ = method(_binary, "and", _of_two)
    or_ = method(_binary, "or", _of_two)
    xor = method(_binary, "xor", _of_two)
    pow = method(_binary, "pow", _of_two)
    sqrt = method(_unary, "sqrt", _of_one)
    tanh = method(_unary, "tanh", _of_one)
    abs = method(_unary, "abs", _of_one)
    neg = method(_unary, "neg", _of_one)
    not_ = method(_unary, "not", _of_one)
    conj = method(_unary, "conj", _of_one)
    im = method(_unary, "im", _of_one)
    re = method(_unary, "re", _of_one)
    equal = method(_binary, "equal", _compared)
    not_equal = method(_binary, "not_equal", _compared)
    greater_than = method(_binary, "greater_than", _compared)
    greater_than_equal = method(_binary, "greater_than_equal", _compared)
    less_than = method(_binary, "less_than", _compared)
    less_than_equal = method(_binary, "less_than_equal", _compared)
    cos = method(_unary, "cos", _function)
    sin = method(_unary, "sin", _function)
    exp = method(_unary, "exp", _function)
    exp2 = method(_unary, "exp2", _function)
    log = method(_unary, "log", _function)
    log2 = method(_unary, "log2", _function)
    native_cos = method(_unary, "native_cos", _function)
    native_sin = method(_unary, "native_sin", _function)
    native_exp = method(_unary, "native_exp", _function)
    native_exp2 = method(_unary, "native_exp2", _function)
    native_log = method(_unary, "native_log", _function)
    native_log2 = method(_unary, "native_log2", _function)

    def cast(self, operand: Value, type_: TypeLike) -> Value:
        """`cast`: the value in another type. Floats are rounded to nearest, and truncated to integers, which saturate.

        Args:
            operand: A number or a cooperative matrix.
            type_: The type of the result; for a matrix of the same shape and use, where matrix_acc may become any use.

        Raises:
            TlxError: Either type is bool, complex becomes real, or the shapes differ.
        """
        return self._write_one(Cast(operand=self._name(operand)), self._type(type_))


Index = int | Value
SubviewPart = Index | tuple[Index, Index] | slice
"""A mode of a subview: an index, (offset, size), or `slice(None)` for the whole mode."""


_BUILTINS: Final = {
    "group_id": "the number of the work-group along a dimension; of type index.",
    "num_groups": "how many work-groups run the kernel along a dimension; of type index.",
    "num_subgroups": "how many subgroups a work-group has along a dimension; of type i32.",
    "subgroup_id": "the number of the subgroup in its work-group along a dimension; of type i32.",
}


def _dimensional(name: str) -> str:
    is_spmd = OPERATIONS[name].region == "spmd"
    refused = "It is in a collective region." if is_spmd else "There is no such dimension."
    return document(_BUILTINS[name], {"component": "The dimension."}, refused)


_INDICES: Final = {"indices": "An index for each mode: values of type index, or Python integers."}
_STORED: Final = {
    "value": "A number of the element type, a value or a Python number.",
    "destination": "A memref.",
    **_INDICES,
}
_NOT_STORED: Final = "The value is not of the element type, or there is not one index for each mode"
_JOINED: Final = {"atomic_add": "sum", "atomic_max": "larger", "atomic_min": "smaller"}


def _updated(name: str) -> str:
    text = f"an entry of a memref becomes the {_JOINED[name]} of it and the value, atomically; gives the old value."
    order = "" if name == "atomic_add" else "; complex numbers have no order"
    return document(text, {**_STORED, **access_meanings(name)}, f"{_NOT_STORED}{order}.")


def _atomically_loaded(name: str) -> str:
    refused = "There are more or fewer indices, or the memory order is not one of a load."
    meanings = {"source": "A memref.", **_INDICES, **access_meanings(name)}
    return document("an entry of a memref, read atomically.", meanings, refused)


def _stored(name: str) -> str:
    if name == "store":
        return document("changes an entry of a memref.", _STORED, f"{_NOT_STORED}.")
    refused = f"{_NOT_STORED}, or the memory order is not one of a store."
    return document("changes an entry of a memref, atomically.", {**_STORED, **access_meanings(name)}, refused)


class Mixed(KernelBase):
    """Instructions of both kinds of regions. Python numbers given as indices become constants of type `index`."""

    def _of_a_dimension(self, name: str, component: Component) -> Value:
        return self._write_builtin(name, component)

    def _write_builtin(self, name: str, component: Component | None = None) -> Value:
        builtin = Builtin(**OPERATIONS[name].spellings[name], component=component)
        return self._write_one(builtin)

    group_id = method(_of_a_dimension, "group_id", _dimensional)
    num_groups = method(_of_a_dimension, "num_groups", _dimensional)
    num_subgroups = method(_of_a_dimension, "num_subgroups", _dimensional)
    subgroup_id = method(_of_a_dimension, "subgroup_id", _dimensional)

    def subgroup_size(self) -> Value:
        """`subgroup_size`: how many work-items a subgroup has; of type i32."""
        return self._write_builtin("subgroup_size")

    def subgroup_linear_id(self) -> Value:
        """`subgroup_linear_id`: the number of the subgroup in its work-group, in one dimension; of type i32.

        Raises:
            TlxError: It is in a collective region.
        """
        return self._write_builtin("subgroup_linear_id")

    def subgroup_local_id(self) -> Value:
        """`subgroup_local_id`: the number of the work-item in its subgroup; of type i32.

        Raises:
            TlxError: It is in a collective region.
        """
        return self._write_builtin("subgroup_local_id")

    def _load_atomically(
        self, name: str, source: Value, *indices: Operand, scope: Scope = "work_group",
        semantics: Semantics = "relaxed",
    ) -> Value:  # fmt: skip
        self._check_source(source)
        names = self._operands(indices, INDEX)
        return self._write_named(name, scope=scope, semantics=semantics, source=self._name(source), indices=names)

    def _store(self, name: str, value: Operand, destination: Value, *indices: Operand) -> None:
        self._write(self._node(name, **self._access(value, destination, indices)))

    def _store_atomically(
        self, name: str, value: Operand, destination: Value, *indices: Operand, scope: Scope = "work_group",
        semantics: Semantics = "relaxed",
    ) -> None:  # fmt: skip
        access = self._access(value, destination, indices)
        self._write(self._node(name, scope=scope, semantics=semantics, **access))

    def _update(
        self, name: str, value: Operand, destination: Value, *indices: Operand, scope: Scope = "work_group",
        semantics: Semantics = "relaxed",
    ) -> Value:  # fmt: skip
        access = self._access(value, destination, indices)
        return self._write_named(name, scope=scope, semantics=semantics, **access)

    def _access(self, value: Operand, destination: Value, indices: Sequence[Operand]) -> dict[str, Any]:
        stored = self._operand(value, self._memref(destination, "the destination").element)
        return {"value": stored, "indices": self._operands(indices, INDEX), "destination": self._name(destination)}

    atomic_add = method(_update, "atomic_add", _updated)
    atomic_max = method(_update, "atomic_max", _updated)
    atomic_min = method(_update, "atomic_min", _updated)

    def associated(self, operand: Value) -> Value:
        """`associated`: whether the address of a memref or group is not null; a `bool`.

        Args:
            operand: A memref or a group.

        Raises:
            TlxError: The operand is neither.
        """
        return self._write_one(Associated(operand=self._name(operand)))

    def barrier(self, *, fence_global: bool = False, fence_local: bool = False) -> None:
        """`barrier`: no work-item of the work-group continues before all have reached it.

        Args:
            fence_global: Whether earlier writes to global memory are visible after it.
            fence_local: The same for local memory.

        Raises:
            TlxError: Not all work-items reach it: it is in `foreach`, or under a condition that differs between
                them.
        """
        self._write(Barrier(fence_global=fence_global, fence_local=fence_local))

    def load(self, source: Value, *indices: Operand) -> Value:
        """`load`: an entry of a memref, or a member of a group, which is a memref.

        Args:
            source: A memref or a group.
            indices: An index for each mode, one for a group: values of type index, or Python integers.

        Raises:
            TlxError: There are more or fewer indices.
        """
        self._check_source(source)
        return self._write_one(Load(source=self._name(source), indices=self._operands(indices, INDEX)))

    atomic_load = method(_load_atomically, "atomic_load", _atomically_loaded)
    store = method(_store, "store", _stored)
    atomic_store = method(_store_atomically, "atomic_store", _stored)

    def size(self, operand: Value, mode: int = 0) -> Value:
        """`size`: the extent of a mode of a memref, or the number of members of a group; of type index.

        Args:
            operand: A memref or a group.
            mode: The mode, counted from 0; 0 for a group.

        Raises:
            TlxError: There is no such mode.
        """
        return self._write_one(Size(operand=self._name(operand), mode=mode))

    def expand(self, operand: Value, mode: int, shape: Sequence[Index]) -> Value:
        """`expand`: a view of a memref with one mode split into several.

        Args:
            operand: A memref.
            mode: The mode, counted from 0.
            shape: The extents of the two or more modes that replace it; their product is its extent.
                Integers, or values of type index.

        Raises:
            TlxError: There is no such mode, or the product is wrong.
        """
        self._check_mode(operand, mode)
        parts = tuple(self._extent(extent) for extent in shape)
        return self._write_one(Expand(operand=self._name(operand), mode=mode, shape=parts))

    def fuse(self, operand: Value, first: int, last: int) -> Value:
        """`fuse`: a view of a memref with several modes merged into one.

        Args:
            operand: A memref.
            first: The first of the modes, counted from 0.
            last: The last of them; each must be packed with respect to the one before.

        Raises:
            TlxError: There are no such modes, or they are not packed.
        """
        self._check_mode(operand, last)
        if not 0 <= first < last:
            raise UsageError(f"expected modes first < last, got {first} and {last}", self.here())
        return self._write_one(Fuse(operand=self._name(operand), first=first, last=last))

    def subview(self, operand: Value, *parts: SubviewPart) -> Value:
        """`subview`: a view of a part of a memref.

        Args:
            operand: A memref.
            parts: For each mode an index, which removes the mode; (offset, size), integers or values of type index; or
                `slice(None)` for all of it.

        Raises:
            TlxError: There is not one part for each mode, or an offset or a size is negative.
        """
        type_ = self._memref(operand, "the operand")
        if len(parts) != type_.order:
            message = f"subview of {operand!r}: expected a slice each mode, {type_.order}, got {len(parts)}"
            raise UsageError(message, self.here())
        slices = tuple(self._slice(operand, type_.shape[mode], mode, part) for mode, part in enumerate(parts))
        return self._write_one(Subview(operand=self._name(operand), slices=slices))

    def _check_source(self, source: Value) -> None:
        if not isinstance(self._checked(source).type, GroupType):
            self._memref(source, "what is loaded from")

    def _check_mode(self, operand: Value, mode: int) -> None:
        type_ = self._memref(operand, "the operand")
        if not 0 <= mode < type_.order:
            raise UsageError(f"{operand!r} has {type_.order} modes, counted from 0; got mode {mode}", self.here())

    def _extent(self, extent: Index) -> int | Name:
        return extent if isinstance(extent, int) else self._name(extent)

    def _slice(self, operand: Value, extent: Extent, mode: int, part: SubviewPart) -> Slice:
        if isinstance(part, slice):
            if part != slice(None):
                message = "write (offset, size) for a part of a mode; only slice(None) has a meaning"
                raise UsageError(message, self.here())
            return Slice(0, self.size(operand, mode).name if extent is None else extent)
        if isinstance(part, tuple):
            offset, size = part
            return Slice(self._extent(offset), self._extent(size))
        return Slice(self._extent(part))


@dataclass(eq=False, slots=True, repr=False)
class Results(NoValue):
    """The results of a condition or a loop, once its region has ended."""

    USE: ClassVar[str] = "write .result for the value that it gives, .results for several"
    values: list[Value] = field(default_factory=list[Value])

    @property
    def results(self) -> tuple[Value, ...]:
        """Its results."""
        return tuple(self.values)

    @property
    def result(self) -> Value:
        """Its only result.

        Raises:
            UsageError: It has none or several.
        """
        if len(self.values) != 1:
            got = counted(len(self.values), "result")
            raise UsageError(f"expected one result, got {got}: .results has all, once the block has ended")
        return self.values[0]


@dataclass(eq=False, slots=True, kw_only=True, repr=False)
class SequentialLoop(Results):
    """A sequential loop.

    Attributes:
        index: The loop's variable.
        carried: The values carried into the iteration.
    """

    USE: ClassVar[str] = "write .index for the loop's variable, .carried for the values carried, .result after it"

    index: Value
    carried: tuple[Value, ...]


class Control(KernelBase):
    """`if`, `for` and `yield`."""

    @contextmanager
    def if_(self, condition: Operand, *types: TypeLike) -> Generator[Results]:
        """`if`: the block runs where the condition holds; `otherwise` may follow.

        Args:
            condition: A `bool` of the kernel.
            types: Types of the results; needed if only Python numbers are yielded.

        Raises:
            TlxError: The condition is not a bool, or values of other types are yielded.
        """
        span = self.here()
        if not isinstance(condition, Value):
            raise UsageError(f"expected a bool of the kernel, got {condition!r}: Python's own if will do", span)
        name = self._name(condition)
        expected = tuple(map(self._type, types)) if types else None
        results = Results()
        written = If(condition=name, then=UNWRITTEN)
        self._check(written, (), span)
        with self._region(expected) as frame:
            yield results
        yielded = frame.yielded_types
        if expected is not None and yielded != expected:
            raise UsageError(f"if_() must yield {_listed(expected)}, but yields {_listed(yielded)}", span)
        written.then = frame.region
        results.values.extend(self._add(written, yielded, span))

    @contextmanager
    def otherwise(self) -> Generator[None]:
        """`else` of the `if` right before it; its block yields values of the same types.

        Raises:
            TlxError: There is no `if` right before it, or other types are yielded.
        """
        span = self.here()
        last = self._frame.region.instructions[-1] if self._frame.region.instructions else None
        if not isinstance(last, If) or last.otherwise is not None:
            raise UsageError("otherwise() must come right after the block of if_()", span)
        types = tuple(reference.type for reference in last.types)
        with self._region(types) as frame:
            yield
        yielded = frame.yielded_types
        if yielded != types:
            raise UsageError(f"if_() yields {_listed(types)}, otherwise() yields {_listed(yielded)}", span)
        last.otherwise = frame.region

    @contextmanager
    def for_(
        self,
        start: Operand,
        stop: Operand,
        step: Operand | None = None,
        *,
        init: Sequence[Operand] = (),
        unroll: bool | int | None = None,
    ) -> Generator[SequentialLoop]:
        """`for`: the block runs for each index in order, and yields the values carried to the next iteration.

        with k.for_(0, n, init=[total]) as loop:
            k.yield_(loop.carried[0] + x[loop.index])
        total = loop.result

        Args:
            start: The first index, an integer.
            stop: The index after the last; of the type of start.
            step: The step; 1 by default.
            init: The values carried into the first iteration; the results if there is none.
            unroll: Whether to unroll the loop, or by which factor.

        Raises:
            TlxError: Bounds are not integers of one type, the step is the constant 0, unroll is below 1, or other
                types are yielded.
        """
        span = self.here()
        bounds = (start, stop) if step is None else (start, stop, step)
        type_ = self._common_type(bounds, INDEX) or INDEX
        first, last, *rest = self._operands(bounds, type_)
        initial = [self._as_value(value, None) for value in init]
        names = tuple(self._name(value) for value in initial)
        types = tuple(value.type for value in initial)
        with self._region(types) as frame:
            index = self._value(type_)
            loop = SequentialLoop(index=index, carried=tuple(self._value(t) for t in types))
            written = For(
                variable=index.name,
                start=first,
                stop=last,
                step=rest[0] if rest else None,
                carried=tuple(value.name for value in loop.carried),
                initial=names,
                body=UNWRITTEN,
                attributes=dictionary_of({} if unroll is None else {"unroll": unroll}, span),
            )
            self._check(written, types, span)
            yield loop
        yielded = frame.yielded_types
        if yielded != types:
            raise UsageError(f"the loop carries {_listed(types)}, but yields {_listed(yielded)}", span)
        written.body = frame.region
        loop.values.extend(self._add(written, types, span))

    def yield_(self, *values: Operand) -> None:
        """`yield`: the results of the enclosing `if`, `for` or `cooperative_matrix_apply`; ends the region.

        Args:
            values: The values, of the number and types of the results.

        Raises:
            TlxError: Their number or types are different.
        """
        expected = self._frame.expected
        if expected is not None and len(expected) != len(values):
            raise UsageError(
                f"expected {_listed(expected)} to be yielded, got {counted(len(values), 'value')}", self.here()
            )
        types: Sequence[Type | None] = expected if expected is not None else [None] * len(values)
        yielded = [self._as_value(value, type_) for value, type_ in zip(values, types, strict=True)]
        self._add(Yield(values=tuple(self._name(value) for value in yielded)), (), self.here())
        self._frame.yielded_types = tuple(value.type for value in yielded)


def _listed(types: Sequence[Type]) -> str:
    return ", ".join(map(str, types)) or "nothing"
